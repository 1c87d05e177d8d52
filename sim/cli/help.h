/* cli/help.h: texts generated from the verb and option tables: help, man page, completion. */
#ifndef FSDPSIM_CLI_HELP_H
#define FSDPSIM_CLI_HELP_H

#include <stdio.h>

#include "cli/verb.h"

void help_write_overview(FILE *file);
void help_write_verb(const struct verb *verb, FILE *file);
void help_write_man(FILE *file);
void help_write_bash_completion(FILE *file);

#endif
