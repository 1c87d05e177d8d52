/*
 * report/trace_output.h: bytes of a trace on their way to a file, through one fixed buffer, as they
 * are or compressed (gzip, no time and no name in its header: the same input gives the same bytes).
 *
 * A write that fails is remembered and ends the writing; trace_output_close says it.
 */
#ifndef FSDPSIM_REPORT_TRACE_OUTPUT_H
#define FSDPSIM_REPORT_TRACE_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"

struct trace_output;

struct trace_output *trace_output_new(struct arena *arena, FILE *file, bool is_compressed);
/* False: not everything could be written. */
MUST_CHECK bool trace_output_close(struct trace_output *out);

void put_raw(struct trace_output *out, const char *text);
/* What stands between the quotes of a JSON string; the quotes are the caller's. */
void put_escaped(struct trace_output *out, const char *text);
void put_int(struct trace_output *out, int64_t value);
void put_double(struct trace_output *out, double value); /* finite */
/* Nanoseconds as microseconds with three digits: 1234567 is 1234.567. */
void put_us(struct trace_output *out, int64_t ns);

#endif
