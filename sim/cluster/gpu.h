/*
 * cluster/gpu.h: a GPU: peaks, measured efficiency, what the driver reports; and the time a kernel
 * takes alone on it.
 *
 *   GEMM       by shape, from the measured grid of the GPU or of a relative (cluster/gemm_model.h)
 *   attention  floor + max(flop / (peak · share(implementation, mask, pass, head dimension, s)),
 *              bytes / (hbm · share)), see cluster/gpu_attention.h
 *   others     floor + bytes / (hbm · share(kind, implementation, pass)): a start-up and a rate fit
 *              published bandwidths within a few percent over 1 MB to 30 GB
 *
 * Tables of shares belong to an architecture (topologies/gpus/tables), so that forty GPUs do not
 * repeat them; a GPU file names its own. Everything else stands in topologies/gpus/NAME.yaml, each
 * constant with its source, and `basis` says what was measured on this GPU, what is derived from a
 * relative, and what is assumed.
 *
 * Clocks: parts at their power limit throttle after about 5 ms of work back to back; a training
 * step is longer, so `sustained_clock_frac` holds for all GEMMs of a step (gpu_kernel_s) and for
 * none of a benchmark (gpu_kernel_burst_s). Memory-bound kernels keep their speed.
 *
 * A part run below its rated power is not derived: published pairs disagree by more than a model
 * would gain. cuBLAS on GB300 keeps 0.32 at 500 of 1400 W (facebookexperimental/triton PR 2023), a
 * V100 0.88 at 175 of 250 W (bradrlaw/ai-server PR 32), an H100 at 500 of 700 W 0.74 to 0.86 in
 * GEMMs, 0.72 in FlashAttention-3, 0.97 in cuDNN. Where the clock is known, it can be said: -s
 * cluster.host.gpu.clock.sustained_frac=0.6, and attention_frac.
 *
 * Example: 872 MB of copy-out at 0.55 of 3350 GB/s after a floor of 2.6 us: 476 us.
 *
 * Left out: L2 (a few MB that stay in it are faster than said), the width of a normalised row.
 */
#ifndef FSDPSIM_CLUSTER_GPU_H
#define FSDPSIM_CLUSTER_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "config/config.h"
#include "model/kernel.h"

struct attention_model;
struct curve;
struct gemm_model;
struct gpu_config; /* as bound from YAML: cluster/gpu_config.h */

/* What of a GPU's times rests on what. */
enum gpu_part {
    GPU_PART_GEMM,
    GPU_PART_ATTENTION,
    GPU_PART_MEMORY,
    GPU_PART_CLOCK,
    GPU_PART_COUNT
};
const char *gpu_part_name(enum gpu_part part);
enum gpu_basis_word {
    BASIS_ASSUMED,  /* no data: a value of its class, with bounds */
    BASIS_DERIVED,  /* from data of a relative, by share of peak */
    BASIS_MEASURED, /* from data of this GPU for its main kernels: a table may derive the rest, such
                       as a backward pass, and says so in its sources */
    BASIS_COUNT
};
const char *gpu_basis_name(enum gpu_basis_word basis);

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
    double attention_clock_frac; /* of attention in a step, against its table */
    double kernel_floor_s;       /* shortest kernel */
    double launch_gap_s;         /* idle GPU between dependent kernels of one stream */
    double hbm_share[KERNEL_KIND_COUNT][IMPL_COUNT][2]; /* by implementation, kernel_pass; 0…1 */
    struct attention_model *attention;
    struct gemm_model *gemm;       /* NULL: the curve below */
    struct curve *gemm_efficiency; /* share of the dense peak over FLOP */
    double gemm_rowwise_frac;      /* with the curve: of float8 products with scales of rows */
    double gemm_backward_frac;     /* with the curve: rate of gradient GEMMs to forward's */
    enum gpu_basis_word basis[GPU_PART_COUNT];
    double price_low_usd_per_h, price_high_usd_per_h; /* 0: not known */
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
/* The same as a benchmark measures it, one kernel at a time on a cool part. */
double gpu_kernel_burst_s(const struct gpu *gpu, const struct kernel *kernel);

#endif
