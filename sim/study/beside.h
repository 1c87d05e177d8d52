/*
 * study/beside.h: what stands beside a prediction: its interval, and the measured run nearest to
 * it.
 */
#ifndef FSDPSIM_STUDY_BESIDE_H
#define FSDPSIM_STUDY_BESIDE_H

#include "study/closest.h"
#include "study/interval.h"

/* Whether measurements say something of it: not of an abstract model, whose kernels are given. */
bool beside_applies(const struct experiment *experiment);

/* What ships, read once for many runs. */
struct besides {
    struct arena *arena;
    struct spreads spreads;
    struct run_index index;
};

struct beside {
    struct interval interval;
    const struct run_traits *closest; /* NULL: no index */
    double distance;                  /* to it, see closest.h */
    double error;                     /* of the prediction of that run, against its measurement */
    const char *difference;           /* what of this run is not as there; in the arena */
};

MUST_CHECK enum status besides_load(struct arena *arena, struct besides *besides,
                                    struct diag *diag);
struct beside beside_of(const struct besides *besides, const struct experiment *experiment,
                        const struct outcome *outcome);

#endif
