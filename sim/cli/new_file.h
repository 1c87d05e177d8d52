/*
 * cli/new_file.h: a file that is written beside its place and then put there, so that what was
 * there stays until the new one is whole: a full disk leaves no half file.
 *
 * A link stays one, the mode of a file that is replaced too. A pipe or a device is written to as it
 * is. A database is never replaced: it may hold what nobody can play again.
 */
#ifndef FSDPSIM_CLI_NEW_FILE_H
#define FSDPSIM_CLI_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/command.h"

struct new_file {
    FILE *file;
    const char *name;      /* as the user wrote it */
    const char *path;      /* where it goes */
    const char *temporary; /* NULL: written in place */
    bool had_one;
};

/* Whether a file of that name is a SQLite database. */
bool file_is_database(const char *name);

/* STATUS_WORLD with a message when it cannot be written; STATUS_INPUT: a database stands there. */
MUST_CHECK enum status new_file_open(struct command *command, const char *name,
                                     struct new_file *new_file);
/* Puts it in place; `is_written` false: takes it away, with a message. */
MUST_CHECK enum status new_file_close(struct command *command, struct new_file *new_file,
                                      bool is_written);
/* Takes it away, where something else went wrong and was told. */
void new_file_drop(struct new_file *new_file);

#endif
