/*
 * cli/verb.h: the verbs, and the state of one command.
 *
 * A verb is one row of verb_table and one file verb_NAME.c. A verb that is not built does not
 * exist.
 */
#ifndef FSDPSIM_CLI_VERB_H
#define FSDPSIM_CLI_VERB_H

#include <stdint.h>

/* Values are bit numbers in struct option's `verbs`. */
enum verb_id {
    VERB_RUN,
    VERB_SWEEP,
    VERB_SOLVE,
    VERB_COMPARE,
    VERB_CHECK,
    VERB_SCHEMA,
    VERB_LIST,
    VERB_MODEL,
    VERB_TOPOLOGY,
    VERB_IMPORT,
    VERB_MEMORY,
    VERB_EXPLAIN,
    VERB_VALIDATE,
    VERB_COMM,
    VERB_CALIBRATE,
    VERB_DB,
    VERB_COMPLETION,
    VERB_HELP,
    VERB_COUNT
};

enum exit_code {
    EXIT_DONE = 0,
    EXIT_WORLD = 1,       /* disk, database, closed pipe */
    EXIT_INPUT = 2,       /* a file, a flag or a value is wrong */
    EXIT_CONDITION = 3,   /* an --assert did not hold, nothing was found */
    EXIT_SOME_FAILED = 4, /* points of a sweep */
    EXIT_STOPPED = 75,    /* the same command goes on */
};

struct command;

struct example {
    const char *command, *says;
};

struct verb {
    enum verb_id id;
    const char *name;
    const char *arguments; /* as in the usage line, "FILE..." */
    const char *summary;   /* one line */
    const char *text;      /* paragraphs below the usage line */
    struct example examples[2];
    const char *const *words; /* what the first argument can be, NULL-ended; NULL: files */
    int32_t min_arguments, max_arguments;
    enum exit_code (*play)(struct command *command);
};

extern const struct verb verb_table[];          /* VERB_COUNT rows, in the order of enum verb_id */
const struct verb *verb_find(const char *name); /* NULL: there is none */
void verb_names(const char *names[VERB_COUNT + 1]); /* NULL-ended */

enum exit_code verb_run(struct command *command);
enum exit_code verb_sweep(struct command *command);
enum exit_code verb_solve(struct command *command);
enum exit_code verb_compare(struct command *command);
enum exit_code verb_check(struct command *command);
enum exit_code verb_schema(struct command *command);
enum exit_code verb_list(struct command *command);
enum exit_code verb_model(struct command *command);
enum exit_code verb_topology(struct command *command);
enum exit_code verb_import(struct command *command);
enum exit_code verb_memory(struct command *command);
enum exit_code verb_explain(struct command *command);
enum exit_code verb_validate(struct command *command);
enum exit_code verb_comm(struct command *command);
enum exit_code verb_calibrate(struct command *command);
enum exit_code verb_db(struct command *command);
enum exit_code verb_completion(struct command *command);
enum exit_code verb_help(struct command *command);

#endif
