/* cli/verb_run.c: fsdpsim run FILE...: play, print side by side, store, check the conditions. */
#include <errno.h>
#include <stdio.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/new_file.h"
#include "cli/run_trace.h"
#include "cli/run_why.h"
#include "report/report.h"
#include "report/report_beside.h"
#include "run/condition.h"
#include "store/store.h"

struct runs {
    struct experiment *experiments;
    struct outcome *outcomes;
    const struct outcome **list; /* pointers to them, as report and store want it */
    struct condition *conditions;
    struct beside *besides; /* after all are played */
    int32_t count;
};

/* Reads every condition before anything is simulated. */
static enum status read_conditions(struct command *command, struct runs *runs)
{
    const struct text_list *texts = &command->options.conditions;
    enum status status = STATUS_OK;
    runs->conditions = ARENA_ARRAY(&command->arena, struct condition, texts->count);
    for (int32_t k = 0; k < texts->count; k++) {
        const enum status one = condition_parse(&command->arena, "--assert", texts->items[k],
                                                &runs->conditions[k], &command->diag);
        status = one != STATUS_OK ? one : status;
    }
    return status;
}

static enum status check_options(struct command *command)
{
    const struct options *options = &command->options;
    enum exit_code code = EXIT_DONE;
    if (options->dump_path != NULL && command->arguments.count > 1)
        code = command_refuse(command, NULL, "'--dump-program' wants one FILE, not %d",
                              (int)command->arguments.count);
    if (options->trace_path != NULL && command->arguments.count > 1)
        code = command_refuse(command, NULL, "'--trace' wants one FILE, not %d",
                              (int)command->arguments.count);
    if (options->is_json && options->has_units)
        code = command_refuse(command, "JSON holds the units, collectives and links anyway",
                              "'--json' does not go with '--units'");
    for (int32_t k = 0; k < command->arguments.count && options->is_why; k++) {
        const char *file = command->arguments.items[k];
        if (file[0] == '-' && (file[1] == '\0' || file[1] == '@'))
            code = command_refuse(command, "put the configuration into a file",
                                  "'--why' reads FILE again for each setting that it tries: "
                                  "standard input cannot be");
    }
    if (options->is_unstored && options->db != NULL)
        code = command_refuse(command, NULL, "'--no-db' does not go with '--db'");
    return code == EXIT_DONE ? STATUS_OK : STATUS_INPUT;
}

/* Loads and builds all; every file's mistakes are shown, not only the first file's. */
static enum status load_all(struct command *command, struct runs *runs)
{
    enum status status = STATUS_OK;
    for (int32_t k = 0; k < runs->count; k++) {
        struct experiment *experiment = &runs->experiments[k];
        enum status one = command_load(command, command->arguments.items[k], experiment);
        if (one == STATUS_OK)
            one = experiment_build(experiment);
        if (one != STATUS_OK) {
            command_flush(command);
            status = one;
        }
    }
    return status;
}

static enum status play_all(struct runs *runs, bool keeps_journal)
{
    for (int32_t k = 0; k < runs->count; k++) {
        runs->experiments[k].keeps_journal = keeps_journal;
        const enum status status = experiment_play(&runs->experiments[k], &runs->outcomes[k]);
        if (status != STATUS_OK)
            return status;
        runs->list[k] = &runs->outcomes[k];
    }
    return STATUS_OK;
}

static enum status dump_program(struct command *command, const struct experiment *experiment)
{
    const char *path = command->options.dump_path;
    if (text_equal(path, "-")) {
        program_dump(experiment->program, stdout);
        return STATUS_OK;
    }
    if (config_has_read(&experiment->config, path))
        return (enum status)command_refuse(command, NULL,
                                           "'--dump-program %s' would overwrite a file that the "
                                           "configuration is read from",
                                           path);
    struct new_file new_file;
    const enum status status = new_file_open(command, path, &new_file);
    if (status != STATUS_OK)
        return status;
    errno = 0;
    program_dump(experiment->program, new_file.file);
    return new_file_close(command, &new_file, true);
}

static int32_t top_of(const struct options *options)
{
    return options->top > INT32_MAX ? INT32_MAX : (int32_t)options->top;
}

static void print_json(const struct runs *runs, const struct why *whys, int32_t top)
{
    for (int32_t k = 0; k < runs->count; k++)
        report_json_of(runs->list[k], top, runs->besides != NULL ? &runs->besides[k] : NULL,
                       whys != NULL ? &whys[k] : NULL, stdout);
}

/* What measurements say; without the files, and for a run that they say nothing of: nothing. */
static enum status lay_beside(struct command *command, struct runs *runs)
{
    struct besides besides;
    const enum status status = besides_load(&command->arena, &besides, &command->diag);
    if (status != STATUS_OK)
        return status;
    runs->besides = ARENA_ARRAY(&command->arena, struct beside, runs->count);
    for (int32_t k = 0; k < runs->count; k++)
        runs->besides[k] = beside_applies(&runs->experiments[k])
                               ? beside_of(&besides, &runs->experiments[k], &runs->outcomes[k])
                               : (struct beside){0};
    return STATUS_OK;
}

/* NULL: not asked for. */
static struct why *find_whys(struct command *command, const struct runs *runs)
{
    if (!command->options.is_why)
        return NULL;
    struct why *whys = ARENA_ARRAY(&command->arena, struct why, runs->count);
    for (int32_t k = 0; k < runs->count; k++)
        whys[k] = run_why(command, command->arguments.items[k], &runs->experiments[k],
                          &runs->outcomes[k]);
    return whys;
}

static void print(struct command *command, const struct runs *runs)
{
    enum { WHY_ROWS = 10 };
    struct arena *arena = &command->arena;
    const struct options *options = &command->options;
    const int32_t top = top_of(options);
    const struct why *whys = find_whys(command, runs);
    if (options->is_json) {
        print_json(runs, whys, top);
        return;
    }
    report_summary(runs->list, runs->count, stdout);
    for (int32_t k = 0; k < runs->count; k++)
        report_beside(&runs->besides[k], runs->count > 1 ? command->arguments.items[k] : NULL,
                      stdout);
    const bool has_tables = options->has_units || top > 0;
    for (int32_t k = 0; k < runs->count && (has_tables || whys != NULL); k++) {
        printf("\n");
        if (runs->count > 1)
            printf("%s\n\n", text_shown(arena, command->arguments.items[k]));
        if (has_tables)
            command_write_tables(runs->list[k], top);
        if (has_tables && whys != NULL)
            printf("\n");
        if (whys != NULL)
            report_why(&whys[k], top > 0 ? top : WHY_ROWS, stdout);
    }
}

static enum status store_all(struct command *command, const struct runs *runs)
{
    if (command->options.is_unstored)
        return STATUS_OK;
    const char *path = store_default_path(&command->arena, command->options.db);
    int64_t *ids = ARENA_ARRAY(&command->arena, int64_t, runs->count);
    struct store *store = NULL;
    enum status status = store_open(path, STORE_WRITE, &store, &command->diag);
    if (status == STATUS_OK)
        status = store_add_runs(store, runs->list, runs->count, ids, &command->diag);
    store_close(store);
    if (status != STATUS_OK || command->options.is_quiet)
        return status;
    path = text_shown(&command->arena, path);
    if (runs->count == 1)
        fprintf(stderr, "stored as run %lld in %s\n", (long long)ids[0], path);
    else
        fprintf(stderr, "stored as runs %lld to %lld in %s\n", (long long)ids[0],
                (long long)ids[runs->count - 1], path);
    return status;
}

/* Says on stderr which condition does not hold for which FILE. */
static enum exit_code judge(struct command *command, const struct runs *runs)
{
    enum exit_code code = EXIT_DONE;
    for (int32_t k = 0; k < runs->count; k++) {
        for (int32_t c = 0; c < command->options.conditions.count; c++) {
            const struct condition *condition = &runs->conditions[c];
            if (condition_holds(condition, runs->list[k]))
                continue;
            diag_add(&command->diag, DIAG_ERROR, NO_PLACE, NULL,
                     "%s: --assert '%s' does not hold: %s is %s", command->arguments.items[k],
                     condition->text, condition->metric->name,
                     condition_obtained(&command->arena, condition, runs->list[k]));
            code = EXIT_CONDITION;
        }
    }
    return code;
}

enum exit_code verb_run(struct command *command)
{
    const int32_t count = command->arguments.count;
    struct runs runs = {.count = count};
    runs.experiments = ARENA_ARRAY(&command->arena, struct experiment, count);
    runs.outcomes = ARENA_ARRAY(&command->arena, struct outcome, count);
    runs.list = ARENA_ARRAY(&command->arena, const struct outcome *, count);

    enum exit_code code = EXIT_DONE;
    command_add_overrides(command);
    enum status status = check_options(command);
    const enum status read = read_conditions(command, &runs);
    if (status == STATUS_OK)
        status = read;
    if (status == STATUS_OK)
        status = load_all(command, &runs);
    if (status == STATUS_OK && command->options.trace_path != NULL) {
        status = run_trace_check(command, &runs.experiments[0]);
    }
    if (status == STATUS_OK && command->options.dump_path != NULL) {
        status = dump_program(command, &runs.experiments[0]);
        if (text_equal(command->options.dump_path, "-"))
            goto out;
    }
    if (status == STATUS_OK)
        status = play_all(&runs, command->options.trace_path != NULL || command->options.is_why);
    if (status == STATUS_OK)
        status = lay_beside(command, &runs);
    if (status != STATUS_OK)
        goto out;
    print(command, &runs);
    code = judge(command, &runs);
    /* What was simulated is stored even when nobody could read it. */
    const bool is_printed = command_close_output(command);
    if (command->options.trace_path != NULL)
        status = run_trace_write(command, &runs.experiments[0]);
    const enum status stored = store_all(command, &runs);
    if (status == STATUS_OK)
        status = stored;
    if (status == STATUS_OK && !is_printed)
        status = STATUS_WORLD;
out:
    command_flush(command);
    for (int32_t k = 0; k < count; k++)
        experiment_release(&runs.experiments[k]);
    return status != STATUS_OK ? (enum exit_code)status : code;
}
