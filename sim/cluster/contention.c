/* cluster/contention.c: see contention.h. */
#include "cluster/contention.h"

#include <math.h>

static double batch_of(const struct kernel *kernel)
{
    return kernel->batch > 0 ? (double)kernel->batch : 1;
}

static double tiles_of(const struct kernel *kernel, double rows, double columns)
{
    return batch_of(kernel) * ceil((double)kernel->m / rows) * ceil((double)kernel->n / columns);
}

/* A kernel trace (H800) has a product of 64 tiles of 128 × 128 left as it is on 132 SMs. */
static const double busy_enough = 0.4;

static double gemm_blocks(const struct kernel *kernel, double sms)
{
    static const double shapes[][2] = {{256, 128}, {128, 128}, {128, 64}, {64, 64}};
    double tiles = 0;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]) && tiles < busy_enough * sms; i++) {
        const double *shape = shapes[i];
        tiles = fmin(tiles_of(kernel, shape[0], shape[1]), tiles_of(kernel, shape[1], shape[0]));
    }
    return tiles;
}

/* Blocks of 128 queries; HUGE_VAL: many, not known. */
static double blocks_of(const struct kernel *kernel, double sms)
{
    if (kernel->kind == KERNEL_GEMM && kernel->m > 0 && kernel->n > 0)
        return gemm_blocks(kernel, sms);
    if (kernel->kind == KERNEL_ATTENTION && kernel->m > 0)
        return batch_of(kernel) * ceil((double)kernel->m / 128);
    return HUGE_VAL;
}

static double waves(enum kernel_kind kind, double blocks, double sms)
{
    return kind == KERNEL_GEMM ? ceil(blocks / sms) : fmax(1, blocks / sms);
}

static bool is_tensor_kind(enum kernel_kind kind)
{
    return kind == KERNEL_GEMM || kind == KERNEL_ATTENTION || kind == KERNEL_GIVEN;
}

double contention_slowdown(const struct contention *contention, int64_t sm_count,
                           const struct kernel *kernel, bool is_memory_bound)
{
    if (is_memory_bound || !is_tensor_kind(kernel->kind))
        return contention->cache_slowdown;
    const double sms = (double)sm_count;
    /* One is left, so that no run can stand still. */
    const double left = fmax(1, sms - (double)contention->sms_held);
    const double blocks = blocks_of(kernel, sms);
    if (isinf(blocks))
        return contention->cache_slowdown * sms / left;
    return (waves(kernel->kind, blocks, left) + (contention->cache_slowdown - 1) * blocks / left) /
           waves(kernel->kind, blocks, sms);
}
