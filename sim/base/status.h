/*
 * base/status.h: how functions that can fail say so.
 *
 * Three voices (style guide, "Errors"): the user's input is wrong (STATUS_INPUT, exit 2), the world
 * failed (STATUS_WORLD, exit 1), or we are wrong (BUG, abort). A function that returns a status has
 * added its message to the `struct diag *` it was given; only cli/ prints. Running out of memory is
 * the world's failure, but nothing can be built on it: it ends the process where it is met.
 */
#ifndef FSDPSIM_BASE_STATUS_H
#define FSDPSIM_BASE_STATUS_H

#include <stddef.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_idx, first_idx) __attribute__((format(printf, format_idx, first_idx)))

enum status {
    STATUS_OK = 0,
    STATUS_WORLD = 1, /* disk, database, memory: not the user's text */
    STATUS_INPUT = 2, /* a file, a flag or a value is wrong */
};

/* We are wrong: print file, line and message, ask for a report, abort. */
__attribute__((noreturn)) void bug_at(const char *file, int line, const char *format, ...)
    PRINTF_LIKE(3, 4);
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
#define BUG_IF(condition) ((condition) ? BUG("unexpected: %s", #condition) : (void)0)

/* `error: out of memory (67108864 bytes wanted)`, exit with STATUS_WORLD; 0: how many is not known.
 */
__attribute__((noreturn)) void out_of_memory(size_t wanted_bytes);

#endif
