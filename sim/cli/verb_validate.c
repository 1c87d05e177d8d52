/* cli/verb_validate.c: fsdpsim validate [CSV], validate kernels [CSV]: predictions beside published
   measurements. */
#include <stdio.h>

#include "base/strbuf.h"
#include "cli/command.h"
#include "report/report_kernels.h"
#include "report/report_validate.h"
#include "study/validate.h"
#include "study/validate_kernels.h"

/* Rows of the table of the worst, without --limit. */
enum { DEFAULT_LIMIT = 20 };

static enum exit_code validate_kernels(struct command *command, const char *path)
{
    const struct options *options = &command->options;
    struct kernel_validation validation;
    if (options->source || options->facts.count > 0 || options->overrides.count > 0 ||
        options->limit != 0 || options->is_resolved)
        return command_refuse(command, NULL,
                              "'validate kernels' takes '--json' and '--markdown' only");
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

enum exit_code verb_validate(struct command *command)
{
    const struct options *options = &command->options;
    const struct text_list *arguments = &command->arguments;
    struct validation validation;
    if (options->is_json && options->is_markdown)
        return command_refuse(command, NULL, "'--json' and '--markdown' exclude each other");
    const char *const first = arguments->count > 0 ? arguments->items[0] : NULL;
    if (text_equal(first, "kernels"))
        return validate_kernels(command, arguments->count > 1 ? arguments->items[1] : NULL);
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
