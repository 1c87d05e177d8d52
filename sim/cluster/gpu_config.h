/* cluster/gpu_config.h: a GPU file as bound, before anything is derived from it. */
#ifndef FSDPSIM_CLUSTER_GPU_CONFIG_H
#define FSDPSIM_CLUSTER_GPU_CONFIG_H

#include <stdint.h>

#include "cluster/gpu.h"
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
    double sustained_frac, attention_frac;
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
    const char *grid;          /* NULL: `points` */
    struct config_list points; /* struct gpu_point */
    double ceiling_frac;       /* 0: none */
    double backward_frac;
    double rowwise_frac;
    const char *source;
};

struct gpu_basis {
    int of[GPU_PART_COUNT]; /* enum gpu_basis_word */
};

struct gpu_price {
    double low_usd_per_h, high_usd_per_h;
    const char *source;
};

struct attention_row {
    int impl; /* enum attention_impl */
    int mask; /* bool: causal */
    int64_t head_dim;
    double share[2], half[2]; /* by kernel_pass */
};

struct attention_config { /* topologies/gpus/tables/attention-NAME.yaml */
    int64_t version;
    const char *name, *summary, *source;
    int64_t tile_rows;
    struct config_list rows; /* struct attention_row */
};

struct share_row {
    int kind; /* enum kernel_kind, or KERNEL_KIND_COUNT: any */
    int impl; /* enum kernel_impl, or IMPL_COUNT: any */
    double share[2];
    const char *source;
};

struct shares_config { /* topologies/gpus/tables/memory-NAME.yaml */
    int64_t version;
    const char *name, *summary;
    struct config_list rows; /* struct share_row */
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
    struct attention_config attention;
    struct shares_config hbm_shares;
    struct gpu_basis basis;
    struct gpu_price price;
};

#endif
