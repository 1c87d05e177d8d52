/* cli/command_line.c: one command from its words to its exit code; see command_line.h. */
#include "cli/command_line.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/help.h"
#include "numeric/curve.h"

static bool is_worker(const struct command *command)
{
    return command->team != NULL && command->team->is_worker;
}

static enum exit_code check_argument_count(struct command *command)
{
    const struct verb *verb = command->verb;
    const int32_t count = command->arguments.count;
    const char *usage = arena_printf(&command->arena, "usage: %s %s %s [options]", command->program,
                                     verb->name, verb->arguments);
    if (count < verb->min_arguments)
        return command_refuse(command, usage, "'fsdpsim %s' wants %s", verb->name, verb->arguments);
    if (verb->max_arguments >= 0 && count > verb->max_arguments)
        return command_refuse(command, usage, "'%s' is one argument too many for 'fsdpsim %s'",
                              command->arguments.items[verb->max_arguments], verb->name);
    return EXIT_DONE;
}

static enum exit_code play_verb(struct command *command)
{
    enum exit_code code = check_argument_count(command);
    if (code == EXIT_DONE)
        code = command_check_output(command);
    return code != EXIT_DONE ? code : command->verb->play(command);
}

static enum exit_code play(struct command *command, int argc, char **argv)
{
    const bool wants_help =
        argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    if (wants_help || strcmp(argv[1], "--version") == 0) {
        if (is_worker(command))
            return EXIT_DONE;
        if (wants_help)
            help_write_overview(stdout);
        else
            printf("%s %s\n", command->program, FSDPSIM_VERSION);
        return EXIT_DONE;
    }
    command->verb = verb_find(argv[1]);
    if (command->verb == NULL)
        return verb_refuse(command, argv[1]);
    if (command->team != NULL && command->verb->id != VERB_SWEEP)
        return command_refuse(command, arena_printf(&command->arena, "fsdpsim %s", argv[1]),
                              "'%s' plays sweeps only", command->program);
    const enum status status =
        options_parse(&command->arena, command->verb, argc, argv, 2, &command->options,
                      &command->arguments, &command->diag);
    if (status != STATUS_OK)
        return EXIT_INPUT;
    if (!command->options.is_help)
        return play_verb(command);
    if (!is_worker(command))
        help_write_verb(command->verb, stdout);
    return EXIT_DONE;
}

int command_line_play(const char *name, int argc, char **argv, const struct pool_team *team)
{
    numeric_init();
    /* A closed pipe is then a write error like a full disk, and what was simulated is still stored.
     */
    signal(SIGPIPE, SIG_IGN);
    struct command command = {.program = name, .team = team};
    arena_init(&command.arena);
    diag_init(&command.diag, &command.arena);
    enum exit_code code = play(&command, argc, argv);
    if (!command_close_output(&command))
        code = EXIT_WORLD;
    command_flush(&command);
    arena_release(&command.arena);
    return (int)code;
}
