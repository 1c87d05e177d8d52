/* cli/verb_compare.c: fsdpsim compare A B: two configurations or stored runs, where they differ. */
#include <stdio.h>
#include <unistd.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "report/report_compare.h"
#include "store/store.h"

struct side {
    const char *argument, *name;
    int64_t id; /* 0: a configuration */
    struct experiment experiment;
    struct outcome outcome;
};

/* A whole number is a stored run, unless a file has that name. */
static int64_t read_id(const char *argument)
{
    int64_t id = 0;
    if (!text_to_int64(argument, &id) || id < 1 || access(argument, F_OK) == 0)
        return 0;
    return id;
}

static enum status check_options(struct command *command, const struct side sides[2])
{
    const struct options *options = &command->options;
    const bool is_stored = sides[0].id > 0 || sides[1].id > 0;
    enum exit_code code = EXIT_DONE;
    if (options->is_json && options->is_markdown)
        code = command_refuse(command, NULL, "'--json' does not go with '--markdown'");
    if (options->is_json && options->top > 0)
        code = command_refuse(command, "JSON holds all units", "'--json' does not go with '--top'");
    if (is_stored && options->overrides.count > 0)
        code = command_refuse(command, "FILE@KEY=VALUE overrides one side",
                              "'-s' does not go with a stored run, which is not played again");
    if (text_equal(sides[0].argument, "-") && text_equal(sides[1].argument, "-"))
        code = command_refuse(command, "put one of them into a file",
                              "standard input can be read only once");
    return code == EXIT_DONE ? STATUS_OK : STATUS_INPUT;
}

static enum status load_stored(struct command *command, struct store *store, struct side *side)
{
    const char *created = NULL;
    const enum status status =
        store_load(store, &command->arena, side->id, &side->outcome, &created, &command->diag);
    if (status == STATUS_OK)
        side->name = arena_printf(&command->arena, "run %s of %s, %s", side->argument, created,
                                  side->outcome.config_name);
    return status;
}

/* Mistakes of both sides are shown, not only of the first. */
static enum status load_sides(struct command *command, struct side sides[2])
{
    struct store *store = NULL;
    enum status status = STATUS_OK;
    if (sides[0].id > 0 || sides[1].id > 0)
        status = store_open(store_default_path(&command->arena, command->options.db), STORE_READ,
                            &store, &command->diag);
    for (int i = 0; i < 2; i++) {
        struct side *side = &sides[i];
        enum status one = STATUS_OK;
        side->name = side->argument;
        if (side->id > 0) {
            one = store != NULL ? load_stored(command, store, side) : STATUS_OK;
        } else {
            one = command_load(command, side->argument, &side->experiment);
            if (one == STATUS_OK)
                one = experiment_build(&side->experiment);
            if (one != STATUS_OK)
                command_flush(command);
        }
        status = one != STATUS_OK ? one : status;
    }
    store_close(store);
    return status;
}

static enum status play_sides(struct side sides[2])
{
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && status == STATUS_OK; i++) {
        if (sides[i].id == 0)
            status = experiment_play(&sides[i].experiment, &sides[i].outcome);
    }
    return status;
}

static void print(struct command *command, const struct side sides[2])
{
    const struct options *options = &command->options;
    const char *const names[2] = {sides[0].name, sides[1].name};
    const int32_t top = options->top > INT32_MAX ? INT32_MAX : (int32_t)options->top;
    struct compare compare;
    compare_make(&compare, &command->arena, &sides[0].outcome, &sides[1].outcome);
    if (options->is_json)
        report_compare_json(&compare, stdout);
    else
        report_compare(&compare, names, top, options->is_markdown, stdout);
}

enum exit_code verb_compare(struct command *command)
{
    struct side sides[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        sides[i].argument = command->arguments.items[i];
        sides[i].id = read_id(sides[i].argument);
    }
    enum status status = check_options(command, sides);
    if (status == STATUS_OK)
        status = load_sides(command, sides);
    if (status == STATUS_OK)
        status = play_sides(sides);
    if (status == STATUS_OK)
        print(command, sides);
    command_flush(command);
    for (int i = 0; i < 2; i++)
        experiment_release(&sides[i].experiment);
    return (enum exit_code)status;
}
