/*
 * report/report_sweep_view.h: a sweep at a glance, in plain characters.
 *
 *   map    the metric for each pair of values of the last two swept keys, shaded from ' ' (the
 *          least of all) to '@' (the most); behind each row its knee
 *   line   for each combination of the other keys, a bar for each value of the last one
 *
 * The knee of a row is the first value of the last key with which it has 95 % of the tokens a
 * second that its best value gives: what is beyond buys little. A value in brackets: that point
 * does not fit into memory; '-': it was not played.
 *
 *   nodes   25Gbps      50Gbps      100Gbps       knee
 *       8   56.4 % @@   32.1 % *+    6.0 % :.   100Gbps
 *
 * Left out: zipped sweeps have no such table.
 */
#ifndef FSDPSIM_REPORT_REPORT_SWEEP_VIEW_H
#define FSDPSIM_REPORT_REPORT_SWEEP_VIEW_H

#include <stdio.h>

#include "study/sweep.h"

MUST_CHECK enum status report_sweep_map(struct sweep *sweep, const struct metric *metric,
                                        FILE *file, struct diag *diag);
MUST_CHECK enum status report_sweep_line(struct sweep *sweep, const struct metric *metric,
                                         FILE *file, struct diag *diag);

#endif
