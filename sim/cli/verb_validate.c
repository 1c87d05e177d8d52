/* cli/verb_validate.c: fsdpsim validate [CSV]: predictions beside published runs. */
#include <stdio.h>

#include "base/strbuf.h"
#include "cli/command.h"
#include "report/report_validate.h"
#include "study/validate.h"

/* Rows of the table of the worst, without --limit. */
enum { DEFAULT_LIMIT = 20 };

enum exit_code verb_validate(struct command *command)
{
    const struct options *options = &command->options;
    const struct text_list *arguments = &command->arguments;
    struct validation validation;
    if (options->is_json && options->is_markdown)
        return command_refuse(command, NULL, "'--json' and '--markdown' exclude each other");
    const struct validate_request request = {.csv_path =
                                                 arguments->count > 0 ? arguments->items[0] : NULL,
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
