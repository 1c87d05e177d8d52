/* cli/validate_store.h: a validation into the results database (store/store_validation.h). */
#ifndef FSDPSIM_CLI_VALIDATE_STORE_H
#define FSDPSIM_CLI_VALIDATE_STORE_H

#include "cli/command.h"
#include "study/validate.h"

/* Unless --no-db; says on stderr where. */
MUST_CHECK enum status validate_store(struct command *command, const struct validation *validation);

#endif
