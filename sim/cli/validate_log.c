/* cli/validate_log.c: see validate_log.h. */
#include "cli/validate_log.h"

#include <stdio.h>

#include "base/shown_text.h"
#include "report/report_torchtitan_log.h"
#include "study/beside.h"

static enum exit_code check_options(struct command *command)
{
    const struct options *options = &command->options;
    if (command->arguments.count != 1)
        return command_refuse(command, "fsdpsim validate --torchtitan-log train.log mine.yaml",
                              "'--torchtitan-log' wants one configuration, what the run was");
    if (options->source != NULL || options->facts.count > 0 || options->limit != 0 ||
        options->is_resolved || options->is_markdown || options->svg != NULL ||
        options->output != NULL || options->update != NULL)
        return command_refuse(command, NULL,
                              "'--torchtitan-log' goes with '--json' and '--set' only");
    return EXIT_DONE;
}

enum exit_code validate_log(struct command *command)
{
    const char *path = command->options.torchtitan_log;
    struct arena *arena = &command->arena;
    struct torchtitan_log log;
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    struct spreads spreads = {0};
    const enum exit_code code = check_options(command);
    if (code != EXIT_DONE)
        return code;
    /* The mistakes of both files are shown. */
    const enum status read = torchtitan_log_load(arena, path, &log, &command->diag);
    enum status status = command_load(command, command->arguments.items[0], &experiment);
    if (status == STATUS_OK || read == STATUS_WORLD)
        status = read;
    if (status == STATUS_OK)
        status = experiment_build(&experiment);
    if (status == STATUS_OK)
        status = experiment_play(&experiment, &outcome);
    if (status == STATUS_OK && beside_applies(&experiment))
        status = spreads_load(arena, data_folders_find(arena), &spreads, &command->diag);
    if (status == STATUS_OK) {
        const struct interval interval = interval_of(&spreads, &experiment, &outcome, false);
        const struct log_comparison comparison = {.log_name = text_shown(arena, path),
                                                  .log = &log,
                                                  .outcome = &outcome,
                                                  .interval = &interval};
        if (command->options.is_json)
            report_torchtitan_log_json(&comparison, stdout);
        else
            report_torchtitan_log(&comparison, stdout);
    }
    command_flush(command);
    experiment_release(&experiment);
    return (enum exit_code)status;
}
