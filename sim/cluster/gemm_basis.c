/* cluster/gemm_basis.c: the arithmetic under a grid, and finding a place in it. */
#include <math.h>

#include "cluster/gemm_grid.h"

/* Output tiles that the libraries choose from. */
static const double tiles[][2] = {{256, 128}, {128, 256}, {128, 128},
                                  {128, 64},  {64, 128},  {64, 64}};
static const double tile_largest = 256 * 128;
static const double tile_overhead = 3000; /* c of the header */
static const double split_k_least = 256;
static const double split_s = 2e-6;

static double tile_waves_s(const struct gemm_device *device, const struct gemm_shape *shape,
                           const double *tile)
{
    double area = tile[0] * tile[1];
    double efficiency =
        area / (area + tile_overhead) * ((tile_largest + tile_overhead) / tile_largest);
    double count = shape->batch * ceil(shape->m / tile[0]) * ceil(shape->n / tile[1]);
    double wave_s_per_k = device->sm_count * 2 * area / (device->peak_flop_per_s * efficiency);
    double whole_s = ceil(count / device->sm_count) * wave_s_per_k * shape->k;
    double parts = floor(device->sm_count / count);
    if (parts < 2 || shape->k <= split_k_least)
        return whole_s;
    double k = fmax(shape->k / parts, split_k_least);
    double sums_bytes = 4 * shape->batch * shape->m * shape->n * parts;
    double split = wave_s_per_k * k + split_s + sums_bytes / device->hbm_bytes_per_s;
    return fmin(whole_s, split);
}

struct gemm_parts gemm_basis(const struct gemm_device *device, const struct gemm_shape *shape)
{
    double products = shape->batch * shape->m * shape->n * shape->k;
    double ideal_s = 2 * products / device->peak_flop_per_s;
    double waves_s = (double)INFINITY;
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++)
        waves_s = fmin(waves_s, tile_waves_s(device, shape, tiles[i]));
    double operand = shape->batch * (shape->m * shape->k + shape->n * shape->k);
    double result = shape->batch * shape->m * shape->n;
    double bytes = operand * device->operand_bytes + result * device->result_bytes;
    return (struct gemm_parts){
        .floor_s = device->floor_s,
        .compute_s = ideal_s * pow(waves_s / ideal_s, device->wave_frac),
        .memory_s = bytes / device->hbm_bytes_per_s,
    };
}

void gemm_element_bytes(enum dtype dtype, double *operand_bytes, double *result_bytes)
{
    *operand_bytes = (double)dtype_bytes(dtype);
    *result_bytes = (double)dtype_bytes(dtype == DTYPE_FP8 ? DTYPE_BF16 : dtype);
}

void gemm_axis_logs(struct gemm_axis *axis)
{
    for (int32_t i = 0; i < axis->count; i++)
        axis->log_at[i] = log((double)axis->at[i]);
}

double gemm_axis_clamp(const struct gemm_axis *axis, double value)
{
    return fmin(fmax(value, axis->at[0]), axis->at[axis->count - 1]);
}

/* Index of the lower neighbour and the weight of the upper one. */
static int32_t axis_find(const struct gemm_axis *axis, double value, double *weight)
{
    int32_t last = axis->count - 1;
    *weight = 0;
    if (last == 0 || value <= axis->at[0])
        return 0;
    *weight = 1;
    if (value >= axis->at[last])
        return last - 1;
    int32_t i = 0;
    while (axis->at[i + 1] <= value)
        i++;
    *weight = (log(value) - axis->log_at[i]) / (axis->log_at[i + 1] - axis->log_at[i]);
    return i;
}

void gemm_cell_find(const struct gemm_table *table, const struct gemm_shape *shape,
                    struct gemm_cell *cell)
{
    double um;
    double un;
    double uk;
    int32_t im = axis_find(&table->m, shape->m * shape->batch, &um);
    int32_t in = axis_find(&table->n, shape->n, &un);
    int32_t ik = axis_find(&table->k, shape->k, &uk);
    for (int32_t i = 0; i < 8; i++) {
        double wm = i & 1 ? um : 1 - um;
        double wn = i & 2 ? un : 1 - un;
        double wk = i & 4 ? uk : 1 - uk;
        /* An axis of one point has no upper neighbour; its weight is 0. */
        int32_t jm = im + (i & 1 && table->m.count > 1);
        int32_t jn = in + (i & 2 && table->n.count > 1);
        int32_t jk = ik + (i & 4 && table->k.count > 1);
        cell->corner[i] = (jm * table->n.count + jn) * table->k.count + jk;
        cell->weight[i] = wm * wn * wk;
    }
}

double gemm_r(const struct gemm_table *table, const struct gemm_shape *shape)
{
    struct gemm_cell cell;
    gemm_cell_find(table, shape, &cell);
    double log_r = 0;
    for (int32_t i = 0; i < 8; i++) {
        if (cell.weight[i] == 1)
            return table->r[cell.corner[i]];
        if (cell.weight[i] > 0)
            log_r += cell.weight[i] * log(table->r[cell.corner[i]]);
    }
    return exp(log_r);
}
