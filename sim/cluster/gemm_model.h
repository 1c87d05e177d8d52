/*
 * cluster/gemm_model.h: the time of one matrix multiplication, by shape, on one GPU.
 *
 * Burst (one GEMM at a time on a cool part, as benchmarks measure):
 *
 *   t(m, n, k) = basis(m, n, k) · r(m, n, k)
 *
 * basis is arithmetic: a launch floor, the wave-quantised tensor time and the memory time. r is
 * what a benchmark of the GPU found beyond it, interpolated between the points of its grid
 * (topologies/gpus/grids/NAME.grid, cluster/gemm_grid.h), linear in log m, log n, log k; outside
 * the grid the end value holds. So it is exact at the points of the grid, follows waves between
 * them, and grows in proportion to the work beyond them. Where arithmetic bounds the end of the
 * grid and memory the shape beyond (the batched k = 64 of attention beside a table from k = 768
 * on), r is of the arithmetic alone and memory runs at stream_frac.
 *
 * Sustained (a training step): the burst, never faster than the best shape anybody listed
 * (ceiling_flop_per_s), then its compute part slowed by the layout of gradients (backward_frac), by
 * the kernel that takes scales of rows (rowwise_frac) and by the clock (sustained_clock_frac ·
 * clock_frac). Time bound by memory or by the launch keeps its speed. fp32 is its burst: the three
 * figures were measured in 16 bits, none in fp32.
 *
 * A GPU without a grid borrows one of its architecture: r is of the grid's GPU, basis of its own
 * (peak, SM count, bandwidth); gemm_model_is_derived says so. What r holds (filling a tile's
 * pipeline, writing its result, a launch) costs seconds, not a share: so r is looked up at the k on
 * which a tile of the grid's GPU works as long,
 *
 *   k_alike = k · (peak / SMs of the grid) / (peak / SMs of this one)
 *
 * and so it is where a dtype takes the table of another: fp32 of an MI210 (45.3 TFLOP/s on 104
 * units) on the table of its 16 bits (181) at 4 k; FP8 beside BF16 at k / 2.
 */
#ifndef FSDPSIM_CLUSTER_GEMM_MODEL_H
#define FSDPSIM_CLUSTER_GEMM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/status.h"
#include "model/kernel.h"

struct gemm_model;

/* What the file of the GPU says. */
struct gemm_spec {
    const char *gpu_name;                /* compared with the grid's: another one is "derived" */
    double peak_flop_per_s[DTYPE_COUNT]; /* dense; 0: not supported */
    double hbm_bytes_per_s;              /* peak */
    int64_t sm_count;
    double kernel_floor_s; /* shortest kernel; 0: the grid's */
    double ceiling_frac;   /* best shape listed, share of the dense peak; 0: none */
    double backward_frac;  /* rate of gradient layouts; 0 counts as 1 */
    double rowwise_frac;   /* rate of float8 products with scales of rows; 0 counts as 1 */
    double stream_frac;    /* of the peak of HBM, reached by streaming kernels; 0 counts as 1 */
    double sustained_clock_frac; /* 0 counts as 1 */
};

/*
 * `grid_path`: a file of topologies/gpus/grids. The model lives in the arena. A file that cannot be
 * read is STATUS_WORLD, one that does not hold a grid STATUS_INPUT, both with a message. Reading
 * takes less than 1 ms.
 */
MUST_CHECK enum status gemm_model_new(struct arena *arena, struct diag *diag,
                                      const struct gemm_spec *spec, const char *grid_path,
                                      struct gemm_model **model);

/*
 * Seconds of a KERNEL_GEMM in a training step, alone on all SMs. `is_memory_bound` may be NULL. The
 * dtype must have a peak (the caller refuses the others).
 */
double gemm_model_s(const struct gemm_model *model, const struct kernel *kernel, double clock_frac,
                    bool *is_memory_bound);
/* The same as a benchmark would measure it: forward layout, no ceiling, no sustained clock. */
double gemm_model_burst_s(const struct gemm_model *model, const struct kernel *kernel);

/*
 * How far the measurements behind a dtype scatter about their own neighbours, 90th percentile
 * (cluster/gemm_grid.h), a mark for the errors of a prediction. 0: not known, or the table is that
 * of another dtype or GPU.
 */
double gemm_model_scatter(const struct gemm_model *model, enum dtype dtype);

/* The grid is that of another GPU. */
bool gemm_model_is_derived(const struct gemm_model *model);
/* What the grid holds: equal for equal tables, wherever they stand. */
struct hash128 gemm_model_content(const struct gemm_model *model);
/* Where the grid comes from, one line; for `list gpus`. */
const char *gemm_model_source(const struct gemm_model *model);

#endif
