/*
 * cluster/gpu.h: a GPU: peaks, measured efficiency, what the driver reports; and the time a kernel
 * takes alone on it.
 *
 * Roofline with measured efficiency: t = max(floor, flop / (peak(dtype)·e(flop)·clock),
 * bytes / (hbm·share(kind))). e(flop) is the median share of the dense peak by size of GEMM, from a
 * measured grid; `sustained_clock_frac` turns a burst figure into one that holds for seconds at full
 * power. Every constant stands in topologies/gpus/NAME.yaml with its source.
 */
#ifndef FSDPSIM_CLUSTER_GPU_H
#define FSDPSIM_CLUSTER_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "config/field.h"
#include "model/kernel.h"

struct gpu_config; /* as bound from YAML: gpu_private.h */

struct gpu {
    const char *name;
    double peak_flop_per_s[DTYPE_COUNT]; /* dense; 0: not supported */
    double hbm_bytes_per_s;
    int64_t memory_bytes;     /* total as nvidia-smi reports */
    int64_t sm_count;
    int64_t context_bytes;    /* CUDA context and loaded kernels */
    int64_t communicator_bytes; /* per NCCL communicator */
    int64_t workspace_bytes;  /* cuBLAS, lives in the allocator */
    double sustained_clock_frac;
    double kernel_floor_s;    /* shortest kernel */
    double launch_gap_s;      /* idle GPU between dependent kernels of one stream */
    double hbm_share[KERNEL_KIND_COUNT][2]; /* by kernel_pass, 0…1 */
    double attention_share[2];              /* of the dense peak, by pass */
    const struct curve *gemm_efficiency;    /* share of the dense peak over FLOP */
};

extern const struct field_table gpu_table;

/*
 * Seconds alone on the GPU, all SMs, no contention. `clock_frac` (0…1] slows compute-bound work of a
 * throttled GPU; memory-bound work keeps its speed. Reports what bounds it when is_memory_bound is
 * not NULL.
 */
double gpu_kernel_s(const struct gpu *gpu, const struct kernel *kernel, double clock_frac,
                    bool *is_memory_bound);

#endif
