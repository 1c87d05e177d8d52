/*
 * report/report_solve.h: what `solve` played, what it found, in a table and in words.
 *
 * The answer is one sentence with the metrics just inside and just outside; what makes it less than
 * certain (metrics that turn, several intervals, values that are refused) stands above it.
 */
#ifndef FSDPSIM_REPORT_REPORT_SOLVE_H
#define FSDPSIM_REPORT_REPORT_SOLVE_H

#include <stdio.h>

#include "study/solve.h"

void report_solve(const struct solve *solve, FILE *file);
void report_solve_json(const struct solve *solve, FILE *file);
/* Where nothing was found: what is closest, and (a hint) the metrics at both ends. */
const char *report_solve_failure(const struct solve *solve, struct arena *arena, const char **hint);

#endif
