/* cli/verb_validate.c: fsdpsim validate [CSV], validate kernels [CSV], validate models [CSV],
   validate collectives [FILE...], validate all: predictions beside published measurements. */
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/new_file.h"
#include "cli/validate_log.h"
#include "cli/validate_store.h"
#include "cli/validate_update.h"
#include "report/report_causes.h"
#include "report/report_comm_tables.h"
#include "report/report_kernels.h"
#include "report/report_models.h"
#include "report/report_scatter.h"
#include "report/report_series.h"
#include "report/report_validate.h"
#include "study/validate.h"
#include "study/validate_causes.h"
#include "study/validate_collectives.h"
#include "study/validate_kernels.h"
#include "study/validate_models.h"
#include "study/validate_series.h"

/* Rows of the table of the worst, without --limit. */
enum { DEFAULT_LIMIT = 20 };

/* Whether an option stands that only training runs have. */
static bool has_run_option(const struct options *options)
{
    return options->source || options->facts.count > 0 || options->overrides.count > 0 ||
           options->limit != 0 || options->is_resolved;
}

/* A part of `validate`: NULL or a CSV, and where to. */
typedef enum status validate_part(struct command *command, const char *path, FILE *file);

static enum status write_models(struct command *command, const char *path, FILE *file)
{
    const struct options *options = &command->options;
    struct model_validation validation;
    const enum status status =
        model_validation_run(&command->arena, path, &validation, &command->diag);
    if (status != STATUS_OK)
        return status;
    if (options->is_json)
        report_models_json(&validation, file);
    else if (options->is_markdown)
        report_models_markdown(&validation, file);
    else
        report_models(&validation, file);
    return STATUS_OK;
}

static enum status write_kernels(struct command *command, const char *path, FILE *file)
{
    const struct options *options = &command->options;
    struct kernel_validation validation;
    const enum status status =
        kernel_validation_run(&command->arena, path, &validation, &command->diag);
    if (status != STATUS_OK)
        return status;
    if (options->is_json)
        report_kernels_json(&validation, file);
    else if (options->is_markdown)
        report_kernels_markdown(&validation, file);
    else
        report_kernels(&validation, file);
    return STATUS_OK;
}

/* `request` NULL: the tables that ship. */
static enum status write_collectives(struct command *command,
                                     const struct collective_request *request, FILE *file)
{
    const struct options *options = &command->options;
    const struct collective_request none = {0};
    struct collective_validation validation;
    const enum status status = collective_validation_run(
        &command->arena, request != NULL ? request : &none, &validation, &command->diag);
    if (status != STATUS_OK)
        return status;
    if (options->is_json)
        report_comm_tables_json(&validation, file);
    else if (options->is_markdown)
        report_comm_tables_markdown(&validation, file);
    else
        report_comm_tables(&validation, file);
    return STATUS_OK;
}

/* ---- training runs ------------------------------------------------------------------------ */

static enum status write_picture(struct command *command, const struct validation *validation)
{
    struct new_file new_file;
    if (command->options.svg == NULL)
        return STATUS_OK;
    const enum status status = new_file_open(command, command->options.svg, &new_file);
    if (status != STATUS_OK)
        return status;
    report_scatter_svg(validation, new_file.file);
    return new_file_close(command, &new_file, true);
}

/* In results/accuracy.md the picture stands beside the page. */
static const char *picture_link(const struct options *options)
{
    if (options->svg == NULL)
        return NULL;
    const char *slash = strrchr(options->svg, '/');
    return slash != NULL ? slash + 1 : options->svg;
}

static enum status write_runs(struct command *command, const char *path, FILE *file)
{
    const struct options *options = &command->options;
    const struct validate_request request = {.csv_path = path,
                                             .source = options->source,
                                             .facts_paths = options->facts.items,
                                             .facts_count = options->facts.count,
                                             .overrides = options->overrides.items,
                                             .override_count = options->overrides.count};
    const int64_t limit = options->limit != 0 ? options->limit : DEFAULT_LIMIT;
    struct validation validation;
    struct validate_series_list series = {0};
    struct validate_causes causes = {0};
    enum status status = validate_run(&command->arena, &request, &validation, &command->diag);
    if (status == STATUS_OK)
        status = validate_series_load(&command->arena, &validation, &series, &command->diag);
    if (status == STATUS_OK && path == NULL)
        status = validate_causes_load(&command->arena, &validation, &causes, &command->diag);
    if (status == STATUS_OK)
        status = write_picture(command, &validation);
    if (status == STATUS_OK)
        status = validate_store(command, &validation);
    if (status != STATUS_OK)
        return status;
    if (options->is_json)
        report_validation_json(&validation, file);
    else if (options->is_markdown)
        report_validation_markdown(&validation, limit, picture_link(options), file);
    else
        report_validation(&validation, limit, options->is_resolved, file);
    if (!options->is_json) {
        report_causes(&causes, options->is_markdown, file);
        report_series(&series, options->is_markdown, file);
    }
    return STATUS_OK;
}

static enum status write_all(struct command *command, const char *path, FILE *file)
{
    static validate_part *const parts[] = {write_runs, write_kernels, write_models};
    enum status status = STATUS_OK;
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]) && status == STATUS_OK; k++)
        status = parts[k](command, path, file);
    return status == STATUS_OK ? write_collectives(command, NULL, file) : status;
}

/* ---- the verb ----------------------------------------------------------------------------- */

/* To -o FILE, or to standard output. */
static enum exit_code write_out(struct command *command, validate_part *part, const char *path)
{
    const char *output = command->options.output;
    if (output == NULL || text_equal(output, "-"))
        return (enum exit_code)part(command, path, stdout);
    struct new_file new_file;
    enum status status = new_file_open(command, output, &new_file);
    if (status != STATUS_OK)
        return (enum exit_code)status;
    status = part(command, path, new_file.file);
    if (status == STATUS_OK)
        status = new_file_close(command, &new_file, true);
    else
        new_file_drop(&new_file);
    return (enum exit_code)status;
}

static bool has_log_option(const struct options *options)
{
    return options->op != NULL || options->nodes != 0 || options->ranks != 0;
}

static enum exit_code validate_collectives(struct command *command)
{
    const struct options *options = &command->options;
    struct collective_request request = {.paths = command->arguments.items + 1,
                                         .path_count = command->arguments.count - 1,
                                         .rules_paths = options->facts.items,
                                         .rules_count = options->facts.count,
                                         .overrides = options->overrides.items,
                                         .override_count = options->overrides.count};
    if (options->source != NULL || options->limit != 0 || options->is_resolved ||
        options->svg != NULL || options->output != NULL)
        return command_refuse(command, NULL,
                              "'--source', '--limit', '--resolved', '--svg' and '--output' do not "
                              "go with 'validate collectives'");
    if (!command_log_request(command, &request.said))
        return EXIT_INPUT;
    return (enum exit_code)write_collectives(command, &request, stdout);
}

static enum exit_code validate_parts(struct command *command, const char *first,
                                     validate_part *part)
{
    const struct options *options = &command->options;
    const char *second = command->arguments.count > 1 ? command->arguments.items[1] : NULL;
    const bool is_all = part == write_all;
    const bool is_update = options->update != NULL;
    if (command->arguments.count > (is_all ? 1 : 2))
        return command_refuse(command, NULL,
                              is_all ? "'validate all' takes no CSV" : "one CSV at a time");
    if (is_all && options->is_json)
        return command_refuse(command, "one part at a time",
                              "'--json' does not go with 'validate all'");
    if (!is_all && (has_run_option(options) || options->svg != NULL))
        return command_refuse(
            command, NULL, "'validate %s' takes '--json', '--markdown' and '--output' only", first);
    if (is_update && (options->output != NULL || options->svg != NULL || has_run_option(options) ||
                      options->is_markdown))
        return command_refuse(command, "it writes every file, of the tables that ship",
                              "'--update' goes with 'validate all' alone");
    if (is_update)
        return validate_update(command, options->update);
    return write_out(command, part, second);
}

enum exit_code verb_validate(struct command *command)
{
    static const struct {
        const char *word;
        validate_part *part;
    } parts[] = {{"kernels", write_kernels}, {"models", write_models}, {"all", write_all}};
    const struct options *options = &command->options;
    const char *const first = command->arguments.count > 0 ? command->arguments.items[0] : NULL;
    if (options->is_json && options->is_markdown)
        return command_refuse(command, NULL, "'--json' and '--markdown' exclude each other");
    if (options->is_unstored && options->db != NULL)
        return command_refuse(command, NULL, "'--no-db' does not go with '--db'");
    if (options->torchtitan_log != NULL)
        return validate_log(command);
    if (text_equal(first, "collectives"))
        return validate_collectives(command);
    if (has_log_option(options))
        return command_refuse(command, NULL,
                              "'--op', '--nodes' and '--ranks' go with 'validate collectives'");
    if (options->update != NULL && !text_equal(first, "all"))
        return command_refuse(command, NULL, "'--update' goes with 'validate all' alone");
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
        if (text_equal(first, parts[k].word))
            return validate_parts(command, first, parts[k].part);
    if (command->arguments.count > 1)
        return command_refuse(command, NULL, "one CSV at a time");
    return write_out(command, write_runs, first);
}
