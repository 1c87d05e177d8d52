/* cli/verb_solve.c: fsdpsim solve FILE: the value of one key with which conditions hold. */
#include <stdio.h>
#include <unistd.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "report/report_solve.h"
#include "store/store.h"
#include "study/solve.h"

/* ---- options ------------------------------------------------------------------------------ */

static enum status read_tolerance(struct command *command, double *tolerance)
{
    const char *text = command->options.tolerance;
    *tolerance = solve_default_tolerance;
    if (text == NULL)
        return STATUS_OK;
    if (text_to_fraction(&command->arena, text, tolerance) && *tolerance >= 1e-9 &&
        *tolerance <= 0.5)
        return STATUS_OK;
    return (enum status)command_refuse(command, "a share of the value, from 1e-9 to 0.5, as 0.1%",
                                       "'--tolerance %s' is no tolerance", text);
}

/* Two times are never equal to the last picosecond. */
static enum status check_condition(struct command *command, const struct condition *condition)
{
    const bool is_equality =
        condition->comparison == COMPARE_EQUAL || condition->comparison == COMPARE_NOT_EQUAL;
    if (condition->metric->kind != METRIC_DOUBLE || !is_equality)
        return STATUS_OK;
    return (enum status)command_refuse(
        command, "with <= or >= the answer is where they are equal, within the tolerance",
        "--until '%s': '%s' is hardly ever equal to a value", condition->text,
        condition->metric->name);
}

static enum status read_options(struct command *command, struct solve_request *request,
                                struct knob *knob)
{
    const struct options *options = &command->options;
    const int32_t count = options->until.count;
    struct condition *conditions = ARENA_ARRAY(&command->arena, struct condition, count);
    enum status status = STATUS_OK;
    if (options->vary.count != 1)
        status = (enum status)command_refuse(command, "--vary KEY=LOW:HIGH, as --vary nodes=1:128",
                                             options->vary.count == 0
                                                 ? "'fsdpsim solve' wants '--vary'"
                                                 : "'--vary' is given %d times: one key is varied",
                                             (int)options->vary.count);
    else
        status = knob_parse(knob, &command->arena, options->vary.items[0], &command->diag);
    if (count == 0)
        status = (enum status)command_refuse(
            command, "--until CONDITION, as --until 'exposed_comm_fraction<=5%'",
            "'fsdpsim solve' wants '--until'");
    for (int32_t i = 0; i < count; i++) {
        enum status one = condition_parse(&command->arena, "--until", options->until.items[i],
                                          &conditions[i], &command->diag);
        if (one == STATUS_OK)
            one = check_condition(command, &conditions[i]);
        status = one != STATUS_OK ? one : status;
    }
    if (options->is_smallest && options->is_largest)
        status =
            (enum status)command_refuse(command, NULL, "'--smallest' does not go with '--largest'");
    if (options->is_unstored && options->db != NULL)
        status = (enum status)command_refuse(command, NULL, "'--no-db' does not go with '--db'");
    const enum status read = read_tolerance(command, &request->tolerance);
    request->knob = knob;
    request->conditions = conditions;
    request->condition_count = count;
    request->wanted = options->is_smallest  ? SOLVE_SMALLEST
                      : options->is_largest ? SOLVE_LARGEST
                                            : SOLVE_DERIVED;
    return status != STATUS_OK ? status : read;
}

/* ---- progress ----------------------------------------------------------------------------- */

static void show_progress(void *context, int64_t count)
{
    (void)context;
    fprintf(stderr, "\r\033[Kplayed %lld points", (long long)count);
}

/* ---- the answer --------------------------------------------------------------------------- */

/* Plays the answer once more, whole, and stores it as a run. */
static enum status store_answer(struct command *command, const struct solve *solve)
{
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    const struct outcome *list = &outcome;
    struct store *store = NULL;
    int64_t id = 0;
    const char *path = store_default_path(&command->arena, command->options.db);
    enum status status =
        solve_load(solve, solve->answer, &command->arena, &experiment, &command->diag);
    if (status == STATUS_OK)
        status = experiment_build(&experiment);
    if (status == STATUS_OK)
        status = experiment_play(&experiment, &outcome);
    if (status == STATUS_OK)
        status = store_open(path, STORE_WRITE, &store, &command->diag);
    if (status == STATUS_OK)
        status = store_add_runs(store, &list, 1, &id, &command->diag);
    store_close(store);
    command_flush(command);
    experiment_release(&experiment);
    if (status == STATUS_OK && !command->options.is_quiet)
        fprintf(stderr, "stored as run %lld in %s\n", (long long)id,
                text_shown(&command->arena, path));
    return status;
}

static enum exit_code answer(struct command *command, const struct solve *solve)
{
    if (solve->has_sweep)
        diag_add(&command->diag, DIAG_WARNING, NO_PLACE, "'fsdpsim sweep' plays all its points",
                 "'sweep' is left out by 'fsdpsim solve'");
    if (command->options.is_json)
        report_solve_json(solve, stdout);
    else
        report_solve(solve, stdout);
    const bool is_printed = command_close_output(command);
    if (solve->result == SOLVE_NOTHING) {
        const char *hint = NULL;
        const char *text = report_solve_failure(solve, &command->arena, &hint);
        diag_add(&command->diag, DIAG_ERROR, NO_PLACE, hint, "%s", text);
        return is_printed ? EXIT_CONDITION : EXIT_WORLD;
    }
    enum status status = STATUS_OK;
    if (!command->options.is_unstored)
        status = store_answer(command, solve);
    if (status == STATUS_OK && !is_printed)
        status = STATUS_WORLD;
    return (enum exit_code)status;
}

enum exit_code verb_solve(struct command *command)
{
    struct config_cache cache = {0};
    struct knob knob;
    struct solve_request request = {.cache = &cache};
    struct solve solve = {0};
    struct text_list overrides = {0};
    const bool is_shown = !command->options.is_quiet && isatty(STDERR_FILENO) == 1;
    request.path = command_split_file(command, command->arguments.items[0], &overrides);
    request.overrides = overrides.items;
    request.override_count = overrides.count;
    request.has_played = is_shown ? show_progress : NULL;
    enum exit_code code = EXIT_DONE;
    enum status status = read_options(command, &request, &knob);
    if (status == STATUS_OK)
        status = solve_run(&solve, &command->arena, &request, &command->diag);
    if (is_shown && solve.points.count > 0)
        fputs("\r\033[K", stderr);
    code = status == STATUS_OK ? answer(command, &solve) : (enum exit_code)status;
    command_flush(command);
    solve_release(&solve);
    config_cache_release(&cache);
    return code;
}
