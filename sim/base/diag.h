/*
 * base/diag.h: messages with a place, collected, printed once.
 *
 *   topologies/h100.yaml:5:14: error: unit 'Gb' does not fit 'bandwidth'
 *       5 |   bandwidth: 400 Gb
 *         |              ^^^^^^
 *         = accepted units: Gbps (Gb/s, Gbit/s) for bits; GB/s, GiB/s for bytes
 *
 * Wording: lower case, no full stop, what is wrong first, names in 'quotes'. All mistakes of a run
 * are collected (printing stops after 20 errors and says how many more there are).
 */
#ifndef FSDPSIM_BASE_DIAG_H
#define FSDPSIM_BASE_DIAG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/status.h"

/* A text that places point into: a file, or one `-s key=value` (name "<command line>"). */
struct source {
    const char *name; /* as the user wrote it */
    const char *text; /* NUL-terminated, may be NULL (then no excerpt is shown) */
    size_t length;
};

/* Line and column start at 1 and count characters as an editor does; line 0: no place. */
struct place {
    const struct source *source;
    int32_t line;
    int32_t column;
    int32_t length; /* characters to underline, at least 1 */
};

#define NO_PLACE ((struct place){0})

enum diag_level { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE };

struct diag_message {
    enum diag_level level;
    struct place place;
    const char *text;
    const char *hint; /* after '= ', may be NULL */
};

struct diag {
    struct arena *arena;
    struct diag_message *items;
    int32_t count, capacity;
    int32_t error_count;
};

void diag_init(struct diag *diag, struct arena *arena);

/* The message and the hint are copied. The hint may be NULL. A note follows the message before it.
 */
void diag_add(struct diag *diag, enum diag_level level, struct place place, const char *hint,
              const char *format, ...) PRINTF_LIKE(5, 6);
/* The world failed: no place; prints as `error: cannot open '…': reason`. */
void diag_world(struct diag *diag, const char *format, ...) PRINTF_LIKE(2, 3);
/* Drops warnings and notes. */
void diag_keep_errors(struct diag *diag);
/* NULL: there is none. */
const struct diag_message *diag_first_error(const struct diag *diag);
/* Removes warnings and notes whose text and place were said already (loading a file twice). */
void diag_write(const struct diag *diag, FILE *file, bool is_coloured);
/* The same, uncoloured, as a text in the arena. */
char *diag_text(const struct diag *diag, struct arena *arena);

/*
 * The nearest of `names` by edit distance (at most 2, and less than the length of `word`), or NULL.
 * `names` ends with NULL.
 */
const char *nearest_name(const char *word, const char *const *names);

#endif
