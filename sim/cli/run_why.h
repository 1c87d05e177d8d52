/* cli/run_why.h: `run --why`: finds the path, tries the settings; text or JSON is report_why.h. */
#ifndef FSDPSIM_CLI_RUN_WHY_H
#define FSDPSIM_CLI_RUN_WHY_H

#include "cli/command.h"
#include "report/report_why.h"

/* `argument`: the FILE as it was given, with overrides of its own. The experiment was played with a
   journal. */
struct why run_why(struct command *command, const char *argument,
                   const struct experiment *experiment, const struct outcome *outcome);

#endif
