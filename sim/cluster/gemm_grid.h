/*
 * cluster/gemm_grid.h: the file a GPU's matrix multiplications were boiled down to, and the
 * arithmetic it stands on.
 *
 * basis(m, n, k) of a device:
 *
 *   ideal_s  = 2·batch·m·n·k / peak
 *   waves_s  = min over tiles (a × b) of ceil(tiles / SMs) · SMs · 2·a·b·k / (peak · e(a, b)),
 *              tiles = batch · ceil(m/a) · ceil(n/b), e = (ab / (ab + c)) · ((A + c) / A),
 *              A = 256·128 the largest tile, c = 3000: smaller tiles load more for each product;
 *              with fewer tiles than SMs k may be split among the idle ones (at least 256 each,
 *              partial sums through memory, and 2 us)
 *   compute_s = ideal_s^(1 − wave_frac) · waves_s^wave_frac
 *   memory_s  = operands read and result written once, at the peak of HBM
 *   basis     = floor + max(compute_s, memory_s)
 *
 * wave_frac is how much of the quantisation shows: persistent and stream-K kernels hide some (0.2
 * to 0.4 on Hopper and Blackwell), older libraries little (0.6 to 0.8 on A100). It and r = measured
 * time / basis at the points of the grid were fitted to all shapes of the benchmark outside a
 * hold-out (tests/tools/gemm_fit.c); nothing else was looked at. c, 256 and 2 us are rules of
 * thumb: what they miss goes into r.
 *
 * Example, 132 SMs, m = 4096, n = 4352, tile 128 × 128: 32·34 = 1088 tiles, 8.24 waves, so 9; the
 * same work at 100 % of 989.4 TFLOP/s would take 8.24 of those 9.
 *
 * scatter is how far a measurement of at least 1 GFLOP is from the median of its four neighbours in
 * m (same n and k), waves taken out, 90th percentile: what the table does not foretell of itself.
 * On an L40S, 350 W, 16384 x 16384 runs at 0.74, 0.51, 0.52, 0.47, 0.74, 0.51 of the peak for m =
 * 2304, 2305, 2560, 2561, 2816, 2817; a deviation says nothing of that of the next k (correlation
 * 0.2; 0.9 on an RTX PRO 6000), so that the part's clock shows, not its kernels.
 *
 * FP8 has no table of its own in the grids that ship: it takes r of BF16 at half of k on its own
 * basis (cluster/gemm_model.h), so large shapes run up to the ratio of the peaks (2) faster.
 * Published for the GEMM alone: 1.90 to 1.97 (TransformerEngine, H200 and B300, layers of 4096 x
 * 16384), 2.1 to 2.5 (torchao, H100, 4096^3 to 32768^3, beside a slow BF16).
 *
 * The file (integers only; '#' starts a comment line):
 *
 *   gemm-grid 1
 *   gpu h100-sxm5-80gb
 *   source ai-dynamo/aiconfigurator 095f58a, … (Apache-2.0)
 *   table bf16 peak_gflop_per_s 989400 hbm_mb_per_s 3350000 sm 132 floor_ns 2450 wave_permille 400
 * \ scatter_permille 125 m 1 16 64 …            axes, increasing n 32 128 … k 32 128 … r 1 32 10421
 * 9980 …    10^4 · r at m = 1, n = 32 for every k; rows in order of m, then n table fp32 … bf16
 * also serves fp16, and the dtypes without a table
 */
#ifndef FSDPSIM_CLUSTER_GEMM_GRID_H
#define FSDPSIM_CLUSTER_GEMM_GRID_H

#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/status.h"
#include "model/kernel.h"

#define GEMM_AXIS_MAX 32

struct gemm_shape {
    double m, n, k, batch;
};

struct gemm_device {
    double peak_flop_per_s, hbm_bytes_per_s;
    double sm_count;
    double floor_s;
    double wave_frac;
    double operand_bytes, result_bytes; /* of an element */
};

struct gemm_parts {
    double floor_s, compute_s, memory_s;
};
struct gemm_parts gemm_basis(const struct gemm_device *device, const struct gemm_shape *shape);
static inline double gemm_parts_s(const struct gemm_parts *parts)
{
    return parts->floor_s +
           (parts->compute_s > parts->memory_s ? parts->compute_s : parts->memory_s);
}

struct gemm_axis {
    int32_t count;
    int32_t at[GEMM_AXIS_MAX];
    double log_at[GEMM_AXIS_MAX];
};
void gemm_axis_logs(struct gemm_axis *axis);

/* `value`, or the end of the axis that it is beyond. */
double gemm_axis_clamp(const struct gemm_axis *axis, double value);

/* r over three axes. */
struct gemm_table {
    enum dtype dtype;
    struct gemm_device device; /* that it was measured on */
    double scatter_frac;       /* of the measurements themselves, 90th percentile; 0: not known */
    struct gemm_axis m, n, k;
    double *r; /* [m][n][k] */
};

struct gemm_grid {
    const char *gpu_name, *source;
    struct gemm_table *tables[DTYPE_COUNT]; /* NULL: none */
    struct hash128 content; /* of the tables: comments and the source do not count */
};

/* Bytes of an operand and of a result: FP8 gives BF16. */
void gemm_element_bytes(enum dtype dtype, double *operand_bytes, double *result_bytes);

MUST_CHECK enum status gemm_grid_read(struct arena *arena, struct diag *diag, const char *path,
                                      struct gemm_grid *grid);

/* Corners of the cell around a shape and their weights (sum 1): for the fit, and for gemm_r. */
struct gemm_cell {
    int32_t corner[8]; /* index into r */
    double weight[8];
};
void gemm_cell_find(const struct gemm_table *table, const struct gemm_shape *shape,
                    struct gemm_cell *cell);
/* r at a shape: linear in the logarithms; the end value holds outside. */
double gemm_r(const struct gemm_table *table, const struct gemm_shape *shape);

#endif
