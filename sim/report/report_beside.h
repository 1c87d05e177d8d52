/*
 * report/report_beside.h: how far a prediction may be trusted, below the summary of a run.
 *
 *   Beside measurements
 *     expected, p5 to p95      1.120 s to 1.310 s (spread 4.8 %)
 *     closest measured run     TT-054, llama3-8b on 8 x h100-sxm5-80gb: 1.260 s, predicted -9.3 %
 *       here                   checkpointing full not selective (distance 1.0)
 *
 * JSON: members `step_time_interval` (with what each part adds) and `closest_measured` of the run's
 * object; null where there is none.
 */
#ifndef FSDPSIM_REPORT_REPORT_BESIDE_H
#define FSDPSIM_REPORT_REPORT_BESIDE_H

#include <stdio.h>

#include "report/json_writer.h"
#include "study/beside.h"

/* `name`: of the run, where there are several; else NULL. */
void report_beside(const struct beside *beside, const char *name, FILE *file);
/* Members of the object that is open. */
void report_beside_json(const struct beside *beside, struct json_writer *json);

#endif
