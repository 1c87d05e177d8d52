/*
 * study/interval.h: between which step times a run may be expected, from what its components are
 * known by (study/spread.h). Never from the errors of training runs.
 *
 * With shares w of the step and standard deviations s of each part's time, independent of each
 * other:
 *
 *   s_step^2 = s_repeat^2 + (w_compute s_compute)^2 + (w_clock s_clock)^2 + (w_comm s_comm)^2
 *              + (w_idle s_host)^2
 *   s_compute^2 = sum over GEMM shapes (w s_gemm)^2 + (w_attention s_attention)^2
 *              + sum over memory-bound kinds (w s_memory)^2        shares of the kernels' time
 *   5th, 95th percentile = step exp(-+ 1.645 s_step)
 *
 * A GEMM shape is off for itself, attention and a kind of memory-bound kernel as a whole. w_clock:
 * GEMMs and attention. Where the network bounds the step (outcome_is_network_bound),
 * communication counts with all of it, and compute with what is left of the step; else
 * communication counts with what of it is exposed.
 *
 *   H100, Llama-3-8B: repeats 0.030, kernels 0.027 (GEMM shapes of 0.07, attention of 0.11), clock
 *   0.91 of the step by 0.04: 0.036; s_step 0.054: -8.5 % to +9.3 %
 *
 * Left out: settings that are wrong, or assumed where a source is silent (but for the network).
 */
#ifndef FSDPSIM_STUDY_INTERVAL_H
#define FSDPSIM_STUDY_INTERVAL_H

#include <stdbool.h>

#include "run/experiment.h"
#include "study/spread.h"

struct interval {
    double low_s, high_s; /* 5th and 95th percentile; NaN: not known */
    double spread;        /* s_step */
    struct {
        double repeat, compute, clock, comm, host; /* each as it enters s_step */
    } parts;
};

/* Of a run that was played; `is_network_assumed`: nobody says what the hosts are joined by. */
struct interval interval_of(const struct spreads *spreads, const struct experiment *experiment,
                            const struct outcome *outcome, bool is_network_assumed);

#endif
