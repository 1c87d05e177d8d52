/*
 * study/validate_causes.h: what stands behind the scored step times that are far off.
 *
 * results/measured/causes.yaml names rows of the table and either the mechanism behind their error
 * that is not simulated, or what has been tried where none is known. A row counts as far when
 * |error| of its step time is above `cause_far`; rows of the file that are nearer are left out, so
 * the file may name rows that come and go.
 *
 *   - {rows: [YA-001, YA-007], cause: the network is not stated}
 *   - {rows: [IE-031], tried: jitter between ranks, contention on the fabric}
 *
 * What is said of a row never changes its prediction.
 */
#ifndef FSDPSIM_STUDY_VALIDATE_CAUSES_H
#define FSDPSIM_STUDY_VALIDATE_CAUSES_H

#include "study/validate.h"

extern const double cause_far;

struct validate_cause {
    const char *text;                 /* NULL: nothing is said of these rows */
    bool is_known;                    /* a cause; else what was tried */
    const struct validate_row **rows; /* in scope, scored, far; worst first */
    int32_t count;
};

struct validate_causes {
    struct validate_cause *items; /* in the file's order; rows that it does not name last */
    int32_t count, capacity;
    int32_t far, unknown; /* rows; of them without a known cause */
};

/* Of the rows of `validation`, whose order is as it stays. A row named twice is a mistake. */
MUST_CHECK enum status validate_causes_load(struct arena *arena,
                                            const struct validation *validation,
                                            struct validate_causes *causes, struct diag *diag);

#endif
