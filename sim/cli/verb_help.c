/* cli/verb_help.c: fsdpsim help [VERB], fsdpsim completion SHELL. */
#include <stdio.h>

#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/help.h"

enum exit_code verb_help(struct command *command)
{
    if (command->options.is_man) {
        help_write_man(stdout);
        return EXIT_DONE;
    }
    if (command->arguments.count == 0) {
        help_write_overview(stdout);
        return EXIT_DONE;
    }
    const char *name = command->arguments.items[0];
    const struct verb *verb = verb_find(name);
    if (verb == NULL)
        return verb_refuse(command, name);
    help_write_verb(verb, stdout);
    return EXIT_DONE;
}

enum exit_code verb_completion(struct command *command)
{
    if (!text_equal(command->arguments.items[0], "bash"))
        return command_refuse_word(command, command->arguments.items[0]);
    help_write_bash_completion(stdout);
    return EXIT_DONE;
}
