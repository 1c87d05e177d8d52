/* cli/verb_estimate.c: fsdpsim memory FILE and fsdpsim explain FILE: closed forms. */
#include <stdio.h>

#include "base/units.h"
#include "cli/command.h"
#include "report/report_estimate.h"
#include "report/report_fitting.h"
#include "run/condition.h"

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

/* With a budget, and where nothing fits, what to change as well. */
static enum status write_memory(struct command *command, struct experiment *experiment,
                                double budget_bytes)
{
    const bool is_json = command->options.is_json;
    struct estimate estimate = {0};
    struct fitting fitting = {0};
    enum status status =
        estimate_memory(experiment, budget_bytes, command->options.has_ddp_buckets, &estimate);
    const bool is_asked = budget_bytes > 0 || estimate.smallest_fitting < 0;
    if (status == STATUS_OK && is_asked)
        status = fitting_find(experiment, budget_bytes, &fitting);
    if (status != STATUS_OK)
        return status;
    if (is_json) {
        report_memory_json(experiment, &estimate, is_asked ? &fitting : NULL, stdout);
        return STATUS_OK;
    }
    report_memory(experiment, &estimate, stdout);
    if (is_asked)
        report_fitting(experiment, &fitting, stdout);
    return STATUS_OK;
}

enum exit_code verb_memory(struct command *command)
{
    struct experiment experiment = {0};
    double budget_bytes = 0.0;
    enum status status = read_budget(command, &budget_bytes);
    if (status == STATUS_OK)
        status = command_load(command, command->arguments.items[0], &experiment);
    if (status == STATUS_OK)
        status = write_memory(command, &experiment, budget_bytes);
    command_flush(command);
    experiment_release(&experiment);
    return (enum exit_code)status;
}

/* -1 without --hidden-share. */
static enum status read_hidden_share(struct command *command, double *share)
{
    const char *text = command->options.hidden_share;
    *share = -1.0;
    if (text == NULL)
        return STATUS_OK;
    if (text_to_fraction(&command->arena, text, share) && *share >= 0.0 && *share <= 1.0)
        return STATUS_OK;
    return (enum status)command_refuse(command, "accepted: 0 to 1, or 0% to 100%",
                                       "'--hidden-share %s' is not a share", text);
}

enum exit_code verb_explain(struct command *command)
{
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    double hidden_share = -1.0;
    enum status status = read_hidden_share(command, &hidden_share);
    if (status == STATUS_OK)
        status = command_load(command, command->arguments.items[0], &experiment);
    if (status == STATUS_OK)
        status = experiment_build(&experiment);
    if (status == STATUS_OK)
        status = experiment_play(&experiment, &outcome);
    if (status == STATUS_OK)
        status = report_explain(&experiment, &outcome, hidden_share, stdout);
    command_flush(command);
    experiment_release(&experiment);
    return (enum exit_code)status;
}
