/*
 * report/report_why.h: `run --why`: the critical path of a run, what its compute stream waited for,
 * and the settings that would help most, as text and as JSON.
 */
#ifndef FSDPSIM_REPORT_REPORT_WHY_H
#define FSDPSIM_REPORT_REPORT_WHY_H

#include <stdio.h>

#include "observe/critical_path.h"
#include "report/json_writer.h"
#include "run/outcome.h"
#include "study/advice.h"

struct why {
    const struct outcome *outcome;
    int64_t steps; /* reported: the path is of all, figures are of one */
    const struct critical_path *path;
    const struct advice *advice;
};

enum { WHY_SETTINGS = 3 /* shown */ };

/* `top`: rows of a table at most. */
void report_why(const struct why *why, int32_t top, FILE *file);
/* The members of an object: "critical_path", "waits", "settings", "what_if". */
void report_why_json(const struct why *why, struct json_writer *json);

#endif
