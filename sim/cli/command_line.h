/*
 * cli/command_line.h: PROGRAM VERB [FILE] [options]: finds the verb, reads the options, plays it,
 * prints the messages, says by the exit code how it went. Nothing below this room prints errors or
 * exits.
 */
#ifndef FSDPSIM_CLI_COMMAND_LINE_H
#define FSDPSIM_CLI_COMMAND_LINE_H

#include "study/pool.h"

/* `team`: of which this process is one; then only sweeps are played, and workers say nothing. NULL:
   none. Returns the exit code. */
int command_line_play(const char *name, int argc, char **argv, const struct pool_team *team);

#endif
