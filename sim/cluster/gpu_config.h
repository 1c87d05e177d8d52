/* cluster/gpu_config.h: a GPU file as bound, before anything is derived from it. */
#ifndef FSDPSIM_CLUSTER_GPU_CONFIG_H
#define FSDPSIM_CLUSTER_GPU_CONFIG_H

#include <stdint.h>

#include "config/field.h"
#include "model/kernel.h"

struct gpu_memory {
    double total_bytes;
    const char *source;
};

struct gpu_peaks {
    double flop_per_s[DTYPE_COUNT];
    const char *source;
};

struct gpu_hbm {
    double bytes_per_s;
    const char *source;
};

struct gpu_sm {
    int64_t count;
    const char *source;
};

struct gpu_footprint {
    double context_bytes, communicator_bytes, workspace_bytes;
    const char *source;
};

struct gpu_clock {
    double sustained_frac;
    const char *source;
};

struct gpu_launch {
    double kernel_floor_s, gap_s;
    const char *source;
};

struct gpu_point {
    double gflop, share;
};

struct gpu_gemm {
    struct config_list points; /* struct gpu_point */
    double backward_frac;
    const char *source;
};

struct gpu_share {
    double forward, backward;
    const char *source;
};

struct gpu_shares {
    struct gpu_share of[KERNEL_KIND_COUNT];
};

struct gpu_config {
    int64_t version;
    const char *name;
    const char *summary;
    struct config_list aliases; /* const char * */
    struct gpu_memory memory;
    struct gpu_peaks peaks;
    struct gpu_hbm hbm;
    struct gpu_sm sm;
    struct gpu_footprint footprint;
    struct gpu_clock clock;
    struct gpu_launch launch;
    struct gpu_gemm gemm;
    struct gpu_share attention;
    struct gpu_shares hbm_shares;
};

#endif
