/*
 * report/report_explain_private.h: the two halves of `fsdpsim explain`: one unit of FSDP
 * (report_explain_unit.c), or a whole step of policies that have none (report_explain.c).
 */
#ifndef FSDPSIM_REPORT_REPORT_EXPLAIN_PRIVATE_H
#define FSDPSIM_REPORT_REPORT_EXPLAIN_PRIVATE_H

#include <stdio.h>

#include "run/experiment.h"

/* Kernels of a segment one after the other, nothing beside them. */
double explain_segment_alone_s(const struct experiment *experiment, const struct segment *segment);

/* The largest unit that is there more than once, under another number; or the largest of all. */
int32_t explain_choose_unit(const struct program *program);

/* Volume, times and bound of the unit that a step is made of; false: no unit has collectives of its
   own, and nothing is written. `hidden_frac` as of report_explain(). */
bool report_explain_unit(struct experiment *experiment, double hidden_frac, FILE *file);

#endif
