/* study/spread_measure.h: results/measured/spread.csv (study/spread.h) from the hold-out. */
#ifndef FSDPSIM_STUDY_SPREAD_MEASURE_H
#define FSDPSIM_STUDY_SPREAD_MEASURE_H

#include <stdio.h>

#include "study/spread.h"
#include "study/validate_collectives.h"
#include "study/validate_kernels.h"

void spread_measure(struct arena *arena, const struct kernel_validation *kernels,
                    const struct collective_validation *collectives, struct spread_rows *rows);
void spread_write(const struct spread_rows *rows, FILE *file);

#endif
