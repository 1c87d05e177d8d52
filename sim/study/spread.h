/*
 * study/spread.h: by how much components of a prediction scatter, as standard deviations of their
 * time over the predicted one.
 *
 *   results/measured/spread.yaml   repeats, host, clocks, parts without data: facts with sources
 *   results/measured/spread.csv    generated: kernels of the hold-out by GPU, and collectives from
 *                                  the cluster files alone, within a host and across hosts
 *
 * Of measured errors e: spread = (90th percentile of |e|) / 1.645, which for a normal error is its
 * standard deviation, and counts the tails (and a bias) in full.
 *
 *   GEMMs of 1 GFLOP and more on H100: 90th percentile 9.8 %, spread 0.060
 *
 * (measured by spread_measure.h). A GPU with less than 30 measured kernels of a part takes the row
 * `any`, of all GPUs.
 */
#ifndef FSDPSIM_STUDY_SPREAD_H
#define FSDPSIM_STUDY_SPREAD_H

#include <stdbool.h>

#include "cluster/gpu.h"

enum spread_part {
    SPREAD_GEMM,
    SPREAD_ATTENTION,
    SPREAD_MEMORY, /* memory-bound kernels */
    SPREAD_KERNEL_COUNT,
    SPREAD_ONE_HOST = SPREAD_KERNEL_COUNT, /* collectives */
    SPREAD_HOSTS,
    SPREAD_COUNT
};
const char *spread_part_name(enum spread_part part);

struct spread_row {
    enum spread_part part;
    const char *gpu; /* "any": of all GPUs; collectives have no other */
    int64_t n;
    double spread;
};

struct spread_rows {
    struct spread_row *items;
    int32_t count, capacity;
};

struct spreads {
    bool is_known; /* false: the data folders have no spread.yaml */
    struct spread_rows rows;
    double repeat, host, network_unstated;
    double clock[BASIS_COUNT], kernels[BASIS_COUNT]; /* kernels[BASIS_MEASURED]: by `rows` */
};

/* The two files, where they are; STATUS_INPUT with messages when they cannot be read. Without
   spread.csv there are no rows. */
MUST_CHECK enum status spreads_load(struct arena *arena, const char *const *data_folders,
                                    struct spreads *spreads, struct diag *diag);
/* NaN: no such row, and none for `any`. */
double spread_find(const struct spreads *spreads, enum spread_part part, const char *gpu);

#endif
