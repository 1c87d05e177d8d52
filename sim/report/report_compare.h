/*
 * report/report_compare.h: two outcomes beside each other: what differs, where, and in words.
 *
 *   A: my.yaml
 *   B: my.yaml@nodes=4
 *
 *   settings that differ      A  B  A from       B from
 *   nodes                     1  4  my.yaml:6:8  <command line>
 *
 * Below it time (by category, phase and unit), throughput and memory (by category and unit), the
 * largest difference first; then one paragraph. Each list ends in its sum.
 */
#ifndef FSDPSIM_REPORT_REPORT_COMPARE_H
#define FSDPSIM_REPORT_REPORT_COMPARE_H

#include <stdio.h>

#include "study/compare.h"

enum { COMPARE_ROWS = 8 }; /* of units, unless another number is asked for */

/* `names`: what A and B are. `top`: rows of a list of units, the rest in one. */
void report_compare(const struct compare *compare, const char *const names[2], int32_t top,
                    bool is_markdown, FILE *file);
void report_compare_json(const struct compare *compare, FILE *file);
/* What changed, what it did to the step, where the time went, memory. In the arena. */
const char *report_compare_words(const struct compare *compare, struct arena *arena);

#endif
