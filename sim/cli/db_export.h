/*
 * cli/db_export.h: fsdpsim db export csv|json: rows of the database to a file or standard output.
 */
#ifndef FSDPSIM_CLI_DB_EXPORT_H
#define FSDPSIM_CLI_DB_EXPORT_H

#include "cli/command.h"
#include "store/store.h"

/* What can be said of the options without the database. */
MUST_CHECK enum status db_export_check(struct command *command);
MUST_CHECK enum status db_export(struct command *command, struct store *store);

#endif
