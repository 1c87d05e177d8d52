/*
 * report/report_sweep.h: the points of a sweep as a table: for people (aligned, Markdown), with how
 * each compares with the best; for machines (CSV, JSON) with every metric.
 *
 * Rows are in the order of the points and come from the database alone, so the bytes do not depend
 * on the number of workers, shards or resumes.
 */
#ifndef FSDPSIM_REPORT_REPORT_SWEEP_H
#define FSDPSIM_REPORT_REPORT_SWEEP_H

#include <stdio.h>

#include "study/sweep.h"

MUST_CHECK enum status report_sweep_table(struct sweep *sweep, bool is_markdown, FILE *file,
                                          struct diag *diag);
MUST_CHECK enum status report_sweep_csv(struct sweep *sweep, FILE *file, struct diag *diag);
MUST_CHECK enum status report_sweep_json(struct sweep *sweep, FILE *file, struct diag *diag);

/* The last part of a swept key, or all of it where two would be alike. */
const char *report_sweep_key(const struct sweep_plan *plan, int32_t axis);

#endif
