/*
 * cli/validate_update.h: writes what is generated below results/ anew.
 *
 *   FOLDER/measured/spread.csv   by how much kernels and collectives scatter (study/spread.h)
 *   FOLDER/measured/index.csv    the measured runs that `run` looks at (study/closest.h)
 *   FOLDER/accuracy.svg          predicted against measured step times
 *   FOLDER/accuracy.md           every table of `validate`
 *
 * The intervals of the page rest on the spread.csv of the data folders: for a clone those are the
 * files just written.
 */
#ifndef FSDPSIM_CLI_VALIDATE_UPDATE_H
#define FSDPSIM_CLI_VALIDATE_UPDATE_H

#include "cli/command.h"

enum exit_code validate_update(struct command *command, const char *folder);

#endif
