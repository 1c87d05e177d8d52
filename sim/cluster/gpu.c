/* cluster/gpu.c: from the bound GPU file to `struct gpu`, and the time of a kernel. */
#include "cluster/gpu.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cluster/gemm_model.h"
#include "cluster/gpu_attention.h"
#include "cluster/gpu_config.h"
#include "numeric/curve.h"

static struct curve *gemm_curve(struct arena *arena, const struct gpu_gemm *gemm)
{
    const struct gpu_point *points = gemm->points.items;
    int32_t count = (int32_t)gemm->points.count;
    double *flop = ARENA_ARRAY(arena, double, count);
    double *share = ARENA_ARRAY(arena, double, count);
    for (int32_t i = 0; i < count; i++) {
        flop[i] = points[i].gflop * 1e9;
        share[i] = points[i].share;
    }
    return curve_new(flop, share, count);
}

static enum status build_gemm(struct arena *arena, struct config *config, const char *path,
                              const struct gpu_config *from, struct gpu *gpu)
{
    const struct gpu_gemm *gemm = &from->gemm;
    const char *at = arena_printf(config->arena, "%s%sgemm.grid", path, path[0] ? "." : "");
    gpu->gemm_backward_frac = gemm->backward_frac;
    gpu->gemm_rowwise_frac = gemm->rowwise_frac;
    if (gemm->grid == NULL) {
        gpu->gemm_efficiency = gemm_curve(arena, gemm);
        if (gpu->gemm_efficiency)
            return STATUS_OK;
        config_error(config, path, NULL, "the points of 'gemm' do not make a curve");
        return STATUS_INPUT;
    }
    const char *file = gemm->grid;
    if (strchr(file, '/') == NULL)
        file = data_path(config->arena, config->data_folders, "topologies/gpus/grids",
                         arena_printf(config->arena, "%s.grid", gemm->grid));
    if (file == NULL) {
        config_error(config, at, NULL, "no grid of that name in topologies/gpus/grids");
        return STATUS_INPUT;
    }
    struct gemm_spec spec = {.gpu_name = from->name,
                             .hbm_bytes_per_s = from->hbm.bytes_per_s,
                             .sm_count = from->sm.count,
                             .kernel_floor_s = from->launch.kernel_floor_s,
                             .ceiling_frac = gemm->ceiling_frac,
                             .backward_frac = gemm->backward_frac,
                             .rowwise_frac = gemm->rowwise_frac,
                             .stream_frac = gpu->hbm_share[KERNEL_GEMM][IMPL_HAND][PASS_FORWARD],
                             .sustained_clock_frac = from->clock.sustained_frac};
    for (int i = 0; i < DTYPE_COUNT; i++)
        spec.peak_flop_per_s[i] = from->peaks.flop_per_s[i];
    return gemm_model_new(arena, config->diag, &spec, file, &gpu->gemm);
}

/* In the order of the rows, so that the later, more special ones win; all must be covered. */
static enum status build_shares(struct config *config, const char *path,
                                const struct shares_config *from, struct gpu *gpu)
{
    const struct share_row *rows = from->rows.items;
    for (int64_t i = 0; i < from->rows.count; i++) {
        const struct share_row *row = &rows[i];
        for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++) {
            for (int impl = 0; impl < IMPL_COUNT; impl++) {
                if ((row->kind != kind && row->kind != KERNEL_KIND_COUNT) ||
                    (row->impl != impl && row->impl != IMPL_COUNT))
                    continue;
                gpu->hbm_share[kind][impl][PASS_FORWARD] = row->share[PASS_FORWARD];
                gpu->hbm_share[kind][impl][PASS_BACKWARD] = row->share[PASS_BACKWARD];
            }
        }
    }
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++) {
        for (int impl = 0; impl < IMPL_COUNT && kind != KERNEL_GIVEN; impl++) {
            if (gpu->hbm_share[kind][impl][PASS_FORWARD] > 0)
                continue;
            config_error(config, path, NULL, "'hbm_shares' has no row for '%s'",
                         kernel_kind_name((enum kernel_kind)kind));
            return STATUS_INPUT;
        }
    }
    return STATUS_OK;
}

enum status gpu_build(struct arena *arena, struct config *config, const char *path,
                      const void *bound, struct gpu *gpu)
{
    const struct gpu_config *from = bound;
    *gpu = (struct gpu){
        .name = from->name,
        .hbm_bytes_per_s = from->hbm.bytes_per_s,
        .memory_bytes = (int64_t)from->memory.total_bytes,
        .sm_count = from->sm.count,
        .context_bytes = (int64_t)from->footprint.context_bytes,
        .communicator_bytes = (int64_t)from->footprint.communicator_bytes,
        .workspace_bytes = (int64_t)from->footprint.workspace_bytes,
        .sustained_clock_frac = from->clock.sustained_frac,
        .attention_clock_frac = from->clock.attention_frac,
        .kernel_floor_s = from->launch.kernel_floor_s,
        .launch_gap_s = from->launch.gap_s,
        .price_low_usd_per_h = from->price.low_usd_per_h,
        .price_high_usd_per_h = from->price.high_usd_per_h,
    };
    for (int i = 0; i < DTYPE_COUNT; i++)
        gpu->peak_flop_per_s[i] = from->peaks.flop_per_s[i];
    for (int i = 0; i < GPU_PART_COUNT; i++)
        gpu->basis[i] = (enum gpu_basis_word)from->basis.of[i];
    gpu->attention = attention_model_new(arena, config, path, &from->attention);
    if (gpu->attention == NULL)
        return STATUS_INPUT;
    enum status status = build_shares(config, path, &from->hbm_shares, gpu);
    if (status == STATUS_OK)
        status = build_gemm(arena, config, path, from, gpu);
    return status;
}

void gpu_release(struct gpu *gpu)
{
    curve_free(gpu->gemm_efficiency);
    *gpu = (struct gpu){0};
}

/* What bounds a kernel, before the floor: seconds of arithmetic and of memory traffic. */
struct bound {
    double compute_s, memory_s;
};

static struct bound attention_bound(const struct gpu *gpu, const struct kernel *kernel,
                                    double clock_frac)
{
    struct bound bound = {.memory_s = kernel->bytes /
                                      (gpu->hbm_bytes_per_s *
                                       gpu->hbm_share[KERNEL_ATTENTION][IMPL_HAND][kernel->pass])};
    if (kernel->flop > 0)
        bound.compute_s = kernel->flop / (gpu->peak_flop_per_s[kernel->dtype] * clock_frac *
                                          attention_share(gpu->attention, kernel, gpu->sm_count));
    return bound;
}

/* GEMM by size alone: machines of round numbers, and whoever has no grid. The floor is part of it:
   what is shorter takes as long as the floor. */
static struct bound curve_bound(const struct gpu *gpu, const struct kernel *kernel,
                                double clock_frac)
{
    struct bound bound = {
        .memory_s = kernel->bytes /
                    (gpu->hbm_bytes_per_s * gpu->hbm_share[KERNEL_GEMM][IMPL_HAND][kernel->pass])};
    if (kernel->flop > 0) {
        double share = curve_at(gpu->gemm_efficiency, kernel->flop);
        double kernel_frac = kernel->pass == PASS_BACKWARD ? gpu->gemm_backward_frac : 1;
        if (kernel->product == PRODUCT_FLOAT8_ROWWISE)
            kernel_frac *= gpu->gemm_rowwise_frac;
        bound.compute_s =
            kernel->flop / (gpu->peak_flop_per_s[kernel->dtype] * share * kernel_frac * clock_frac);
    }
    bound.compute_s = fmax(bound.compute_s, gpu->kernel_floor_s);
    return bound;
}

static void check_dtype(const struct gpu *gpu, const struct kernel *kernel)
{
    bool is_tensor_kind = kernel->kind == KERNEL_GEMM || kernel->kind == KERNEL_ATTENTION;
    if (is_tensor_kind && kernel->flop > 0 && gpu->peak_flop_per_s[kernel->dtype] <= 0)
        BUG("kernel '%s' has a dtype that '%s' does not support", kernel->name, gpu->name);
}

double gpu_kernel_s(const struct gpu *gpu, const struct kernel *kernel, double clock_frac,
                    bool *is_memory_bound)
{
    struct bound bound = {0};
    double floor_s = gpu->kernel_floor_s;
    check_dtype(gpu, kernel);
    if (kernel->kind == KERNEL_GIVEN) {
        bound.compute_s = kernel->given_s / clock_frac;
        floor_s = 0;
    } else if (kernel->kind == KERNEL_GEMM && gpu->gemm) {
        return gemm_model_s(gpu->gemm, kernel, clock_frac, is_memory_bound);
    } else if (kernel->kind == KERNEL_GEMM) {
        bound = curve_bound(gpu, kernel, gpu->sustained_clock_frac * clock_frac);
        floor_s = 0;
    } else if (kernel->kind == KERNEL_ATTENTION) {
        bound = attention_bound(gpu, kernel, gpu->attention_clock_frac * clock_frac);
    } else {
        bound.memory_s = kernel->bytes / (gpu->hbm_bytes_per_s *
                                          gpu->hbm_share[kernel->kind][kernel->impl][kernel->pass]);
    }
    if (is_memory_bound)
        *is_memory_bound = bound.memory_s > fmax(bound.compute_s, floor_s);
    return floor_s + fmax(bound.compute_s, bound.memory_s);
}

double gpu_kernel_burst_s(const struct gpu *gpu, const struct kernel *kernel)
{
    check_dtype(gpu, kernel);
    if (kernel->kind == KERNEL_GEMM && gpu->gemm)
        return gemm_model_burst_s(gpu->gemm, kernel);
    struct gpu cool = *gpu;
    cool.sustained_clock_frac = 1;
    cool.attention_clock_frac = 1;
    return gpu_kernel_s(&cool, kernel, 1, NULL);
}
