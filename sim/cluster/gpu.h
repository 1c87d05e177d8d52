/*
 * cluster/gpu.h: a GPU: peaks, measured efficiency, what the driver reports; and the time a kernel
 * takes alone on it.
 *
 * Roofline with measured efficiency: t = max(floor, flop / (peak(dtype)·e(flop)·clock),
 * bytes / (hbm·share(kind))). e(flop) is the median share of the dense peak by size of GEMM, from a
 * measured grid; `sustained_clock_frac` turns a burst figure into one that holds for seconds at
 * full power. Attention takes a share of the dense peak by pass (measured back to back, so already
 * sustained); every other kind is memory bound at its share of HBM. Every constant stands in
 * topologies/gpus/NAME.yaml with its source.
 *
 * Example: 275 GFLOP of bf16 GEMM at e = 0.803, 0.88 of the clock on 989.4 TFLOP/s: 393 us.
 *
 * Left out: the shape of a GEMM beyond its FLOP and bytes, wave quantisation, L2.
 */
#ifndef FSDPSIM_CLUSTER_GPU_H
#define FSDPSIM_CLUSTER_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "config/config.h"
#include "model/kernel.h"

struct curve;
struct gpu_config; /* as bound from YAML: cluster/gpu_config.h */

struct gpu {
    const char *name;
    double peak_flop_per_s[DTYPE_COUNT]; /* dense; 0: not supported */
    double hbm_bytes_per_s;
    int64_t memory_bytes; /* total as nvidia-smi reports */
    int64_t sm_count;
    int64_t context_bytes;      /* CUDA context and loaded kernels */
    int64_t communicator_bytes; /* per NCCL communicator */
    int64_t workspace_bytes;    /* cuBLAS, lives in the allocator */
    double sustained_clock_frac;
    double kernel_floor_s;                  /* shortest kernel */
    double launch_gap_s;                    /* idle GPU between dependent kernels of one stream */
    double hbm_share[KERNEL_KIND_COUNT][2]; /* by kernel_pass, 0…1 */
    double attention_share[2];              /* of the dense peak, by pass */
    double gemm_backward_frac;     /* rate of input- and weight-gradient GEMMs to forward's */
    struct curve *gemm_efficiency; /* share of the dense peak over FLOP */
};

extern const struct field_table gpu_table;
/* For `schema gpu`; NULL-ended. */
extern const struct field_table *const gpu_tables[];

/* Derives `struct gpu` from the struct bound through gpu_table at the dotted `path`. gpu_release
   frees the curve; it accepts a zeroed gpu. */
MUST_CHECK enum status gpu_build(struct arena *arena, struct config *config, const char *path,
                                 const void *bound, struct gpu *gpu);
void gpu_release(struct gpu *gpu);

/*
 * Seconds alone on the GPU, all SMs, no contention. `clock_frac` (0…1] slows compute-bound work of
 * a throttled GPU; memory-bound work keeps its speed. Reports what bounds it when is_memory_bound
 * is not NULL. A dtype without a peak (gpu->peak_flop_per_s 0) is for the caller to refuse.
 */
double gpu_kernel_s(const struct gpu *gpu, const struct kernel *kernel, double clock_frac,
                    bool *is_memory_bound);

#endif
