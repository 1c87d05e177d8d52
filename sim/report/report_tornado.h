/*
 * report/report_tornado.h: which key of a sweep moves a metric how much.
 *
 * One by one (sweep_knobs.h): a row a key, the metric at its values, the swing, most minus least of
 * these and the base; the largest swing first. Sobol's points: Spearman's rank correlation of the
 * metric with the key over all points that are done (of a list: with the place in it), in [-1, 1],
 * the largest |r| first: near 1 the key alone orders the results, near 0 it does not by itself.
 * Its square is no share of the variance, and says nothing of keys that only matter together.
 */
#ifndef FSDPSIM_REPORT_REPORT_TORNADO_H
#define FSDPSIM_REPORT_REPORT_TORNADO_H

#include <stdio.h>

#include "study/sweep.h"

MUST_CHECK enum status report_tornado(struct sweep *sweep, const struct metric *metric, FILE *file,
                                      struct diag *diag);

#endif
