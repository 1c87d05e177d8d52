/*
 * run/fitting.h: what to change so that a step fits into so many bytes a GPU: settings tried in
 * order of what they cost in time, each on top of those before it, by the closed forms of
 * run/estimate.h, until one fits.
 *
 *   ddp, zero1, zero2          sharding that adds no communication volume to the step
 *   zero3, kept gathered       the same volume; parameters stay whole from forward to backward
 *   zero3                      a second gather of the parameters: half as much volume again
 *   the loss in chunks         some launches
 *   activation checkpointing   selective: some of the forward again; full: all of it, a third more
 *   micro_batch halved         smaller kernels, the batch kept by accumulation
 *   offload to the host        every state over PCIe, twice a step
 *
 * Example: 7e9 parameters, 4 + 4 + 8 B, 8 GPUs, 20 GB: ddp 112 GB, zero1 63 GB, zero2 38.5 GB too
 * much as states alone; zero3 14 GB of states.
 *
 * Left out: what a setting does to the time (`sweep` and `run --why` play it); the reserve of the
 * caching allocator; combinations that skip a cheaper setting which does not help.
 */
#ifndef FSDPSIM_RUN_FITTING_H
#define FSDPSIM_RUN_FITTING_H

#include "run/estimate.h"

enum { FITTING_TRIES_MAX = 40 };

struct fitting_try {
    const char *what;     /* "zero2", "+ micro_batch: 2" */
    const char *settings; /* what to say to get there from the configuration, "" : nothing */
    struct estimate_row row;
    double outside_bytes;
    double host_over_bytes; /* of a host, where its memory is known and does not suffice */
    bool fits;
};

struct fitting {
    struct fitting_try tries[FITTING_TRIES_MAX];
    int32_t count; /* the last one fits, or nothing does */
    bool has_found;
    double budget_bytes;
};

/* budget_bytes 0: the GPU's memory. Needs experiment_load only, and leaves the experiment as it
   was. */
MUST_CHECK enum status fitting_find(struct experiment *experiment, double budget_bytes,
                                    struct fitting *fitting);

#endif
