/* cli/verb_estimate.c: fsdpsim memory FILE and fsdpsim explain FILE: closed forms. */
#include <stdio.h>

#include "base/units.h"
#include "cli/command.h"
#include "run/estimate.h"

/* 0 without --budget. */
static enum status read_budget(struct command *command, double *bytes)
{
    const char *text = command->options.budget;
    *bytes = 0.0;
    if (text == NULL)
        return STATUS_OK;
    const enum unit_error error = units_parse(text, DIM_BYTES, bytes, NULL);
    if (error == UNIT_OK && *bytes > 0.0)
        return STATUS_OK;
    const char *hint =
        arena_printf(&command->arena, "accepted units: %s", units_accepted(DIM_BYTES));
    if (error == UNIT_MISSING)
        return (enum status)command_refuse(command, hint, "'--budget %s' needs a unit", text);
    return (enum status)command_refuse(command, hint, "'--budget %s' is not a size", text);
}

enum exit_code verb_memory(struct command *command)
{
    struct experiment experiment = {0};
    double budget_bytes = 0.0;
    enum status status = read_budget(command, &budget_bytes);
    if (status == STATUS_OK)
        status = command_load(command, command->arguments.items[0], &experiment);
    if (status == STATUS_OK)
        status = estimate_write_memory(&experiment, budget_bytes, stdout);
    command_flush(command);
    experiment_release(&experiment);
    return (enum exit_code)status;
}

enum exit_code verb_explain(struct command *command)
{
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    enum status status = command_load(command, command->arguments.items[0], &experiment);
    if (status == STATUS_OK)
        status = experiment_build(&experiment);
    if (status == STATUS_OK)
        status = experiment_play(&experiment, &outcome);
    if (status == STATUS_OK)
        status = estimate_write_explain(&experiment, &outcome, stdout);
    command_flush(command);
    experiment_release(&experiment);
    return (enum exit_code)status;
}
