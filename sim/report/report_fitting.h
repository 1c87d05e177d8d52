/*
 * report/report_fitting.h: `fsdpsim memory --budget`: what was tried, why it fails, what fits; and
 * all of `memory` as JSON.
 */
#ifndef FSDPSIM_REPORT_REPORT_FITTING_H
#define FSDPSIM_REPORT_REPORT_FITTING_H

#include <stdio.h>

#include "run/fitting.h"

void report_fitting(const struct experiment *experiment, const struct fitting *fitting, FILE *file);
/* `fitting` may be NULL. */
void report_memory_json(const struct experiment *experiment, const struct estimate *estimate,
                        const struct fitting *fitting, FILE *file);

#endif
