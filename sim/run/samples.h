/*
 * run/samples.h: many plays of one experiment, each with numbers drawn of its own.
 *
 * Sample i draws from the streams (seed, i, rank, purpose): what `simulate.jitter` says, and one
 * factor for each calibrated table that is used, as wide as its error bars
 * (cluster/calibration.h): the same for all of a sample's collectives that come from the table. So
 * an interval holds noise and what is not known. The machine is machine_jitter.c.
 *
 * Of each metric that depends on time: quantiles of type 7 (numeric/distribution.h) of the sorted
 * samples, exactly, at 5, 50 and 95 %. What is shown of the run otherwise is one sample, the one
 * whose step time is in the middle (of an even number the lower), so that its parts add up.
 *
 * Example: samples with steps of 1.30, 1.10, 1.20 and 1.50 s: p50 1.25 s, p95 1.47 s; shown is the
 * third.
 *
 * Sample i is the same whatever the number of samples, so more of them add to those there are.
 */
#ifndef FSDPSIM_RUN_SAMPLES_H
#define FSDPSIM_RUN_SAMPLES_H

#include "run/experiment.h"

struct samples {
    int64_t count;
    const struct metric **metrics;
    int32_t metric_count;
    double **values; /* by metric, then sample; NaN: not defined */
};

/* Plays samples 0 … count − 1 of an experiment that is built; `samples` lives in `arena`, which is
   not the experiment's. What the plays allocate is gone afterwards. */
MUST_CHECK enum status samples_play(struct experiment *experiment, int64_t count,
                                    struct arena *arena, struct samples *samples);
/* The place of `metric` among the samples' metrics; -1: it was not kept. */
int32_t samples_find(const struct samples *samples, const char *metric);

#endif
