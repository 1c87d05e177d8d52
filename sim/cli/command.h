/*
 * cli/command.h: one invocation: its options, its arguments, its messages, and what verbs share.
 *
 * Results go to stdout, messages to stderr. Verbs return an exit code; command_flush prints what
 * was collected, while the files that the messages point into are still loaded.
 */
#ifndef FSDPSIM_CLI_COMMAND_H
#define FSDPSIM_CLI_COMMAND_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "collective/nccl_log.h"
#include "run/experiment.h"
#include "study/pool.h"

struct command {
    const char *program;          /* its name, for messages */
    const struct pool_team *team; /* of which this process is one; NULL: none */
    struct arena arena;
    struct diag diag;
    const struct verb *verb;
    struct options options;
    struct text_list arguments;
    bool has_lost_output; /* said already */
};

/* Prints the messages so far to stderr and forgets them (with --quiet only if one is an error). A
   worker of a team says nothing: its leader does. */
void command_flush(struct command *command);

/* `error: …` without a place; returns EXIT_INPUT. */
enum exit_code command_refuse(struct command *command, const char *hint, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* There is no verb `name`: with the nearest one. */
enum exit_code verb_refuse(struct command *command, const char *name);

/* `word` is not one of the verb's words: with those, or the nearest one. */
enum exit_code command_refuse_word(struct command *command, const char *word);

/* FILE without the overrides that it may carry, and all overrides: those of -s, then its own. */
const char *command_split_file(struct command *command, const char *argument,
                               struct text_list *overrides);

/*
 * Loads FILE with the overrides of `-s`; FILE may carry some of its own, FILE@key=value@key=value,
 * which come last. The caller releases the experiment, also after a failure, after command_flush.
 */
MUST_CHECK enum status command_load(struct command *command, const char *argument,
                                    struct experiment *experiment);

/* Options that are short for overrides (`--samples K`), before anything is loaded. */
void command_add_overrides(struct command *command);

/* `--op`, `--ranks`, `--nodes`: what a log of nccl-tests does not say; false after a message. */
bool command_log_request(struct command *command, struct nccl_request *request);

/*
 * Refuses a `-o FILE` or `--svg FILE` that is a database or one of the files that are read, under
 * whatever name (path, link): by device and inode, also of the part that `-o` writes first.
 */
enum exit_code command_check_output(struct command *command);

/*
 * `-o FILE`, or standard output where it is "-" or not given. A file is written beside itself and
 * then put in its place, so that an old one stays until the new one is whole. NULL: not opened,
 * after a message.
 */
FILE *command_output_open(struct command *command);
MUST_CHECK enum status command_output_close(struct command *command, FILE *file);

/* `--units`, `--top N`: the tables of units (the `top` slowest, 0: all), collectives and links. */
void command_write_tables(const struct outcome *outcome, int64_t top);

/* Flushes stdout; false, with a message the first time, when not everything could be written. */
bool command_close_output(struct command *command);

#endif
