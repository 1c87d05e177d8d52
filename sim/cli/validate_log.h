/* cli/validate_log.h: fsdpsim validate --torchtitan-log FILE CONFIG: a user's run beside its
   prediction. */
#ifndef FSDPSIM_CLI_VALIDATE_LOG_H
#define FSDPSIM_CLI_VALIDATE_LOG_H

#include "cli/command.h"

enum exit_code validate_log(struct command *command);

#endif
