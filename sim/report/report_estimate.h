/*
 * report/report_estimate.h: the closed forms in words: `fsdpsim memory` and `fsdpsim explain`.
 *
 * Textbook arithmetic is in decimal units (MB 1e6, GB 1e9), as textbooks print it; each figure
 * stands beside how it comes about, so that it can be checked by hand.
 */
#ifndef FSDPSIM_REPORT_REPORT_ESTIMATE_H
#define FSDPSIM_REPORT_REPORT_ESTIMATE_H

#include <stdio.h>

#include "run/estimate.h"

void report_memory(const struct experiment *experiment, const struct estimate *estimate,
                   FILE *file);

/*
 * Sizes, volumes, times of one unit and the bound of the step, beside what the simulation found.
 * `hidden_frac`: the share of communication a textbook assumes to be hidden, 0…1 (negative: not
 * given). Needs a played experiment.
 */
MUST_CHECK enum status report_explain(struct experiment *experiment, const struct outcome *outcome,
                                      double hidden_frac, FILE *file);

#endif
