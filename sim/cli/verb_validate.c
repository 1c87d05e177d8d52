/* cli/verb_validate.c: fsdpsim validate [CSV], validate kernels [CSV], validate models [CSV],
   validate collectives [FILE...]: predictions beside published measurements. */
#include <stdio.h>

#include "base/strbuf.h"
#include "cli/command.h"
#include "report/report_comm_tables.h"
#include "report/report_kernels.h"
#include "report/report_models.h"
#include "report/report_validate.h"
#include "study/validate.h"
#include "study/validate_collectives.h"
#include "study/validate_kernels.h"
#include "study/validate_models.h"

/* Rows of the table of the worst, without --limit. */
enum { DEFAULT_LIMIT = 20 };

/* Whether an option stands that only training runs have. */
static bool has_run_option(const struct options *options)
{
    return options->source || options->facts.count > 0 || options->overrides.count > 0 ||
           options->limit != 0 || options->is_resolved;
}

static enum exit_code validate_models(struct command *command, const char *path)
{
    const struct options *options = &command->options;
    struct model_validation validation;
    const enum status status =
        model_validation_run(&command->arena, path, &validation, &command->diag);
    if (status != STATUS_OK)
        return (enum exit_code)status;
    if (options->is_json)
        report_models_json(&validation, stdout);
    else if (options->is_markdown)
        report_models_markdown(&validation, stdout);
    else
        report_models(&validation, stdout);
    return EXIT_DONE;
}

static enum exit_code validate_kernels(struct command *command, const char *path)
{
    const struct options *options = &command->options;
    struct kernel_validation validation;
    const enum status status =
        kernel_validation_run(&command->arena, path, &validation, &command->diag);
    if (status != STATUS_OK)
        return (enum exit_code)status;
    if (options->is_json)
        report_kernels_json(&validation, stdout);
    else if (options->is_markdown)
        report_kernels_markdown(&validation, stdout);
    else
        report_kernels(&validation, stdout);
    return EXIT_DONE;
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
    struct collective_validation validation;
    if (options->source != NULL || options->limit != 0 || options->is_resolved)
        return command_refuse(command, NULL,
                              "'--source', '--limit' and '--resolved' do not go with "
                              "'validate collectives'");
    if (!command_log_request(command, &request.said))
        return EXIT_INPUT;
    const enum status status =
        collective_validation_run(&command->arena, &request, &validation, &command->diag);
    if (status != STATUS_OK)
        return (enum exit_code)status;
    if (options->is_json)
        report_comm_tables_json(&validation, stdout);
    else if (options->is_markdown)
        report_comm_tables_markdown(&validation, stdout);
    else
        report_comm_tables(&validation, stdout);
    return EXIT_DONE;
}

enum exit_code verb_validate(struct command *command)
{
    const struct options *options = &command->options;
    const struct text_list *arguments = &command->arguments;
    struct validation validation;
    if (options->is_json && options->is_markdown)
        return command_refuse(command, NULL, "'--json' and '--markdown' exclude each other");
    const char *const first = arguments->count > 0 ? arguments->items[0] : NULL;
    if (text_equal(first, "collectives"))
        return validate_collectives(command);
    if (has_log_option(options))
        return command_refuse(command, NULL,
                              "'--op', '--nodes' and '--ranks' go with 'validate collectives'");
    const char *const second = arguments->count > 1 ? arguments->items[1] : NULL;
    const bool is_kernels = text_equal(first, "kernels");
    if (is_kernels || text_equal(first, "models")) {
        if (arguments->count > 2)
            return command_refuse(command, NULL, "one CSV at a time");
        if (has_run_option(options))
            return command_refuse(command, NULL,
                                  "'validate %s' takes '--json' and '--markdown' only", first);
        return is_kernels ? validate_kernels(command, second) : validate_models(command, second);
    }
    if (arguments->count > 1)
        return command_refuse(command, NULL, "one CSV at a time");
    const struct validate_request request = {.csv_path = first,
                                             .source = options->source,
                                             .facts_paths = options->facts.items,
                                             .facts_count = options->facts.count,
                                             .overrides = options->overrides.items,
                                             .override_count = options->overrides.count};
    const enum status status = validate_run(&command->arena, &request, &validation, &command->diag);
    if (status != STATUS_OK)
        return (enum exit_code)status;
    const int64_t limit = options->limit != 0 ? options->limit : DEFAULT_LIMIT;
    if (options->is_json)
        report_validation_json(&validation, stdout);
    else if (options->is_markdown)
        report_validation_markdown(&validation, limit, stdout);
    else
        report_validation(&validation, limit, options->is_resolved, stdout);
    return EXIT_DONE;
}
