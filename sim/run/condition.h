/*
 * run/condition.h: what `--assert` and `--until` take: a metric of the outcome, compared with a
 * value.
 *
 *   fits    !fits    peak_device_bytes<80GiB    exposed_comm_fraction<=5%    step_time_s<1.2s
 *
 * Metrics in bytes, seconds or bytes per second need a unit; fractions are plain (0…1) or in
 * percent.
 */
#ifndef FSDPSIM_RUN_CONDITION_H
#define FSDPSIM_RUN_CONDITION_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "run/outcome.h"

enum comparison {
    COMPARE_LESS,
    COMPARE_LESS_EQUAL,
    COMPARE_GREATER,
    COMPARE_GREATER_EQUAL,
    COMPARE_EQUAL,
    COMPARE_NOT_EQUAL
};

struct condition {
    const char *option; /* "--assert": for messages */
    const char *text;   /* as the user wrote it */
    const struct metric *metric;
    enum comparison comparison;
    double value;
    const char *word; /* of a metric that is text */
};

MUST_CHECK enum status condition_parse(struct arena *arena, const char *option, const char *text,
                                       struct condition *condition, struct diag *diag);
/* Whether it holds; a metric without a value (mfu under fp8) fails every condition. */
bool condition_holds(const struct condition *condition, const struct outcome *outcome);
/* What the metric is, with its unit: "81.3 GiB". */
const char *condition_obtained(struct arena *arena, const struct condition *condition,
                               const struct outcome *outcome);

/* "5%" or "0.05". */
bool text_to_fraction(struct arena *arena, const char *text, double *fraction);

#endif
