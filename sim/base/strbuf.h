/* base/strbuf.h: a growing text. Zero-initialise; `text` is never NULL after the first add. */
#ifndef FSDPSIM_BASE_STRBUF_H
#define FSDPSIM_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/status.h"

struct strbuf {
    char *text;
    size_t length, capacity;
};

void strbuf_release(struct strbuf *buf);
void strbuf_add(struct strbuf *buf, const char *text);
void strbuf_add_bytes(struct strbuf *buf, const char *bytes, size_t count);
void strbuf_printf(struct strbuf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Reads a whole file ("-": standard input) of at most `max_bytes`. A file that is missing, a
 * folder, unreadable or too large adds a message and returns STATUS_WORLD or (too large)
 * STATUS_INPUT. On success the caller releases `buf`.
 */
MUST_CHECK enum status strbuf_read_file(struct strbuf *buf, const char *path, size_t max_bytes,
                                        struct diag *diag);

/* The same, as a source in `arena` with the name that messages show. It may hold NUL bytes. */
MUST_CHECK enum status source_load(struct arena *arena, const char *path, size_t max_bytes,
                                   struct source **source, struct diag *diag);

bool text_equal(const char *a, const char *b); /* both may be NULL */
/* The whole of `text` as a number: no trailing characters, no nan/inf, no octal or hex. */
bool text_to_int64(const char *text, int64_t *value);
bool text_to_double(const char *text, double *value);

#endif
