/*
 * tests/unit/schedule/program_text.h: the text form of a program, read back line by line.
 *
 * A line of the step is "stream  operation unit=…". A wanted line is written "stream: operation",
 * and matches when the stream is that one and the operation begins so, up to the end of a word:
 * "compute: wait gathered(layers.0)".
 */
#ifndef FSDPSIM_TESTS_PROGRAM_TEXT_H
#define FSDPSIM_TESTS_PROGRAM_TEXT_H

#include "played.h"

struct program_text {
    const char *whole;
    const char **lines; /* of the step, without host_work */
    int32_t count;
};

/* Builds the program of a configuration and takes its text; alive as long as `played`. */
bool program_text_read(struct program_text *text, struct played *played, const char *config,
                       const char *overrides);
/* First line at or behind `from` that matches, -1: none. */
int32_t program_text_find(const struct program_text *text, int32_t from, const char *wanted);
int32_t program_text_count(const struct program_text *text, const char *wanted);
/* `wanted` (NULL-ended) stand one right behind the other, from the first match of the first one at
   or behind `from`; CHECKs, returns the line behind the last. */
int32_t program_text_check_block(const struct program_text *text, int32_t from,
                                 const char *const *wanted);
/* … stand in this order, with other lines between. */
int32_t program_text_check_order(const struct program_text *text, int32_t from,
                                 const char *const *wanted);

#endif
