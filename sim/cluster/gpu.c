/* cluster/gpu.c: the fields of a GPU file, and the time of a kernel. */
#include "cluster/gpu.h"

#include <math.h>
#include <stddef.h>

#include "cluster/gpu_config.h"
#include "numeric/curve.h"

#define FIELD_SOURCE(type)                                                                         \
    {                                                                                              \
        .key = "source", .kind = FIELD_TEXT, .offset = offsetof(type, source),                     \
        .is_required = true, .help = "where the numbers beside it come from"                       \
    }

#define FIELD_BYTES(type, member, word, text)                                                      \
    {                                                                                              \
        .key = (word), .kind = FIELD_QUANTITY, .dimension = DIM_BYTES,                             \
        .offset = offsetof(type, member), .is_required = true, .min = 0, .max = 1e15,              \
        .help = (text)                                                                             \
    }

#define FIELD_PEAK(dtype, word, required)                                                          \
    {                                                                                              \
        .key = (word), .kind = FIELD_QUANTITY, .dimension = DIM_FLOP_RATE,                         \
        .offset = offsetof(struct gpu_peaks, flop_per_s) + (dtype) * sizeof(double),               \
        .is_required = (required), .min = 1e9, .max = 1e18,                                        \
        .help = "dense peak of " word " operands"                                                  \
    }

#define FIELD_GROUP(type, member, word, struct_table, text)                                        \
    {                                                                                              \
        .key = (word), .kind = FIELD_STRUCT, .offset = offsetof(type, member),                     \
        .is_required = true, .table = &(struct_table), .help = (text)                              \
    }

#define FIELD_SHARE(type, member, word, text)                                                      \
    {                                                                                              \
        .key = (word), .kind = FIELD_REAL, .offset = offsetof(type, member), .is_required = true,  \
        .min = 0.001, .max = 1, .help = (text)                                                     \
    }

static const struct field memory_fields[] = {{.key = "total",
                                              .kind = FIELD_QUANTITY,
                                              .dimension = DIM_BYTES,
                                              .offset = offsetof(struct gpu_memory, total_bytes),
                                              .is_required = true,
                                              .min = 1e6,
                                              .max = 1e15,
                                              .help = "total memory as nvidia-smi reports it"},
                                             FIELD_SOURCE(struct gpu_memory),
                                             {0}};
static const struct field_table memory_table = {.name = "memory",
                                                .help = "device memory",
                                                .fields = memory_fields,
                                                .struct_bytes = sizeof(struct gpu_memory)};

static const struct field peaks_fields[] = {
    FIELD_PEAK(DTYPE_FP32, "fp32", true),  FIELD_PEAK(DTYPE_BF16, "bf16", false),
    FIELD_PEAK(DTYPE_FP16, "fp16", false), FIELD_PEAK(DTYPE_FP8, "fp8", false),
    FIELD_SOURCE(struct gpu_peaks),        {0}};
static const struct field_table peaks_table = {.name = "peaks",
                                               .help = "dense peak rates; absent: not supported",
                                               .fields = peaks_fields,
                                               .struct_bytes = sizeof(struct gpu_peaks)};

static const struct field hbm_fields[] = {{.key = "bandwidth",
                                           .kind = FIELD_QUANTITY,
                                           .dimension = DIM_BANDWIDTH,
                                           .offset = offsetof(struct gpu_hbm, bytes_per_s),
                                           .is_required = true,
                                           .min = 1e6,
                                           .max = 1e18,
                                           .help = "peak, reads and writes together"},
                                          FIELD_SOURCE(struct gpu_hbm),
                                          {0}};
static const struct field_table hbm_table = {.name = "hbm",
                                             .help = "memory bandwidth",
                                             .fields = hbm_fields,
                                             .struct_bytes = sizeof(struct gpu_hbm)};

static const struct field sm_fields[] = {{.key = "count",
                                          .kind = FIELD_COUNT,
                                          .offset = offsetof(struct gpu_sm, count),
                                          .is_required = true,
                                          .min = 1,
                                          .max = 10000,
                                          .help = "streaming multiprocessors"},
                                         FIELD_SOURCE(struct gpu_sm),
                                         {0}};
static const struct field_table sm_table = {.name = "sm",
                                            .help = "streaming multiprocessors",
                                            .fields = sm_fields,
                                            .struct_bytes = sizeof(struct gpu_sm)};

static const struct field footprint_fields[] = {
    FIELD_BYTES(struct gpu_footprint, context_bytes, "context", "CUDA context and loaded kernels"),
    FIELD_BYTES(struct gpu_footprint, communicator_bytes, "communicator",
                "device memory of one NCCL communicator"),
    FIELD_BYTES(struct gpu_footprint, workspace_bytes, "workspace",
                "cuBLAS workspace of one handle and stream; lives in the allocator"),
    FIELD_SOURCE(struct gpu_footprint),
    {0}};
static const struct field_table footprint_table = {.name = "footprint",
                                                   .help = "memory taken besides tensors",
                                                   .fields = footprint_fields,
                                                   .struct_bytes = sizeof(struct gpu_footprint)};

static const struct field clock_fields[] = {
    FIELD_SHARE(struct gpu_clock, sustained_frac, "sustained_frac",
                "rate of dense GEMMs over seconds at full power, as a share of a burst"),
    FIELD_SOURCE(struct gpu_clock),
    {0}};
static const struct field_table clock_table = {.name = "clock",
                                               .help = "clock under load",
                                               .fields = clock_fields,
                                               .struct_bytes = sizeof(struct gpu_clock)};

static const struct field launch_fields[] = {
    {.key = "kernel_floor",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct gpu_launch, kernel_floor_s),
     .is_required = true,
     .min = 0,
     .max = 1e-3,
     .help = "the shortest a kernel takes"},
    {.key = "gap",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct gpu_launch, gap_s),
     .is_required = true,
     .min = 0,
     .max = 1e-3,
     .help = "idle between dependent kernels of one stream"},
    FIELD_SOURCE(struct gpu_launch),
    {0}};
static const struct field_table launch_table = {.name = "launch",
                                                .help = "what a kernel costs besides its work",
                                                .fields = launch_fields,
                                                .struct_bytes = sizeof(struct gpu_launch)};

static const struct field point_fields[] = {
    {.key = "gflop",
     .kind = FIELD_REAL,
     .offset = offsetof(struct gpu_point, gflop),
     .is_required = true,
     .min = 1e-9,
     .max = 1e12,
     .help = "size of the GEMM in 10^9 floating point operations"},
    FIELD_SHARE(struct gpu_point, share, "share", "share of the dense peak reached"),
    {0}};
static const struct field_table point_table = {.name = "point",
                                               .help = "one point of the efficiency curve",
                                               .fields = point_fields,
                                               .struct_bytes = sizeof(struct gpu_point)};

static void gemm_check(struct config *config, const char *path, void *bound)
{
    const struct gpu_gemm *gemm = bound;
    const struct gpu_point *points = gemm->points.items;
    if (gemm->points.count < 1)
        config_error(config, path, NULL, "'points' needs at least one point");
    for (int64_t i = 1; i < gemm->points.count; i++) {
        if (points[i].gflop <= points[i - 1].gflop) {
            char *at = arena_printf(config->arena, "%s.points[%lld].gflop", path, (long long)i);
            config_error(config, at, NULL, "'gflop' must grow from point to point");
        }
    }
}

static const struct field gemm_fields[] = {
    {.key = "points",
     .kind = FIELD_LIST,
     .offset = offsetof(struct gpu_gemm, points),
     .is_required = true,
     .table = &point_table,
     .help = "burst efficiency by size, forward layout"},
    FIELD_SHARE(struct gpu_gemm, backward_frac, "backward_frac",
                "rate of gradient GEMMs as a share of the forward one"),
    FIELD_SOURCE(struct gpu_gemm),
    {0}};
static const struct field_table gemm_table = {.name = "gemm",
                                              .help = "matrix multiplication",
                                              .fields = gemm_fields,
                                              .struct_bytes = sizeof(struct gpu_gemm),
                                              .check = gemm_check};

static const struct field share_fields[] = {
    FIELD_SHARE(struct gpu_share, forward, "forward", "share of the peak in the forward pass"),
    FIELD_SHARE(struct gpu_share, backward, "backward", "share of the peak in the backward pass"),
    FIELD_SOURCE(struct gpu_share),
    {0}};
static const struct field_table share_table = {.name = "share",
                                               .help = "share of a peak by pass",
                                               .fields = share_fields,
                                               .struct_bytes = sizeof(struct gpu_share)};

#define FIELD_KIND(kind_index, word, text)                                                         \
    {                                                                                              \
        .key = (word), .kind = FIELD_STRUCT, .offset = (kind_index) * sizeof(struct gpu_share),    \
        .is_required = true, .table = &share_table, .help = (text)                                 \
    }

static const struct field shares_fields[] = {
    FIELD_KIND(KERNEL_GEMM, "gemm", "GEMMs that are bound by memory"),
    FIELD_KIND(KERNEL_ATTENTION, "attention", "attention that is bound by memory"),
    FIELD_KIND(KERNEL_NORM, "norm", "RMSNorm, LayerNorm"),
    FIELD_KIND(KERNEL_ELEMENTWISE, "elementwise", "activations, residual adds, rotary"),
    FIELD_KIND(KERNEL_SOFTMAX_LOSS, "softmax_loss", "log-softmax and cross entropy"),
    FIELD_KIND(KERNEL_EMBEDDING, "embedding", "token lookup and its gradient"),
    FIELD_KIND(KERNEL_COPY_IN, "copy_in", "FSDP: shards to all-gather input"),
    FIELD_KIND(KERNEL_COPY_OUT, "copy_out", "FSDP: all-gather output to parameters"),
    FIELD_KIND(KERNEL_CHUNK_CAT, "chunk_cat", "FSDP: gradients to reduce-scatter input"),
    FIELD_KIND(KERNEL_CAST, "cast", "plain dtype conversion"),
    FIELD_KIND(KERNEL_OPTIMIZER, "optimizer", "fused AdamW"),
    FIELD_KIND(KERNEL_REDUCE, "reduce", "gradient norm"),
    {0}};
static const struct field_table shares_table = {
    .name = "hbm_shares",
    .help = "share of the memory bandwidth reached, every operand counted once",
    .fields = shares_fields,
    .struct_bytes = sizeof(struct gpu_shares)};

static const struct field gpu_fields[] = {
    {.key = "version",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct gpu_config, version),
     .default_text = "1",
     .min = 1,
     .max = 1,
     .help = "of the file format"},
    {.key = "name",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct gpu_config, name),
     .is_required = true,
     .help = "as it is printed"},
    {.key = "summary",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct gpu_config, summary),
     .help = "one line for lists"},
    {.key = "aliases",
     .kind = FIELD_TEXT_LIST,
     .offset = offsetof(struct gpu_config, aliases),
     .help = "other names that people write"},
    FIELD_GROUP(struct gpu_config, memory, "memory", memory_table, "device memory"),
    FIELD_GROUP(struct gpu_config, peaks, "peaks", peaks_table, "dense peak rates"),
    FIELD_GROUP(struct gpu_config, hbm, "hbm", hbm_table, "memory bandwidth"),
    FIELD_GROUP(struct gpu_config, sm, "sm", sm_table, "streaming multiprocessors"),
    FIELD_GROUP(struct gpu_config, footprint, "footprint", footprint_table,
                "memory taken besides tensors"),
    FIELD_GROUP(struct gpu_config, clock, "clock", clock_table, "clock under load"),
    FIELD_GROUP(struct gpu_config, launch, "launch", launch_table,
                "what a kernel costs besides its work"),
    FIELD_GROUP(struct gpu_config, gemm, "gemm", gemm_table, "matrix multiplication"),
    FIELD_GROUP(struct gpu_config, attention, "attention", share_table,
                "fused attention: share of the dense peak, causal half counted once"),
    FIELD_GROUP(struct gpu_config, hbm_shares, "hbm_shares", shares_table,
                "share of the memory bandwidth by kind of kernel"),
    {0}};

const struct field_table gpu_table = {.name = "gpu",
                                      .help = "a GPU: topologies/gpus/NAME.yaml",
                                      .fields = gpu_fields,
                                      .struct_bytes = sizeof(struct gpu_config)};

const struct field_table *const gpu_tables[] = {&gpu_table, NULL};

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
        .kernel_floor_s = from->launch.kernel_floor_s,
        .launch_gap_s = from->launch.gap_s,
        .gemm_backward_frac = from->gemm.backward_frac,
        .attention_share = {from->attention.forward, from->attention.backward},
    };
    for (int i = 0; i < DTYPE_COUNT; i++)
        gpu->peak_flop_per_s[i] = from->peaks.flop_per_s[i];
    for (int i = 0; i < KERNEL_KIND_COUNT; i++) {
        gpu->hbm_share[i][PASS_FORWARD] = from->hbm_shares.of[i].forward;
        gpu->hbm_share[i][PASS_BACKWARD] = from->hbm_shares.of[i].backward;
    }
    gpu->gemm_efficiency = gemm_curve(arena, &from->gemm);
    if (gpu->gemm_efficiency)
        return STATUS_OK;
    config_error(config, path, NULL, "the points of 'gemm' do not make a curve");
    return STATUS_INPUT;
}

void gpu_release(struct gpu *gpu)
{
    curve_free(gpu->gemm_efficiency);
    *gpu = (struct gpu){0};
}

/* FLOP/s that a tensor-core kernel reaches; 0 for the kinds that memory alone bounds. */
static double kernel_flop_per_s(const struct gpu *gpu, const struct kernel *kernel)
{
    double peak = gpu->peak_flop_per_s[kernel->dtype];
    if (kernel->kind == KERNEL_ATTENTION)
        return peak * gpu->attention_share[kernel->pass];
    if (kernel->kind != KERNEL_GEMM)
        return 0;
    double share = curve_at(gpu->gemm_efficiency, kernel->flop);
    double layout_frac = kernel->pass == PASS_BACKWARD ? gpu->gemm_backward_frac : 1;
    return peak * share * layout_frac * gpu->sustained_clock_frac;
}

double gpu_kernel_s(const struct gpu *gpu, const struct kernel *kernel, double clock_frac,
                    bool *is_memory_bound)
{
    double compute_s = 0;
    double memory_s = 0;
    if (kernel->kind == KERNEL_GIVEN) {
        compute_s = kernel->given_s / clock_frac;
    } else {
        double flop_per_s = kernel_flop_per_s(gpu, kernel) * clock_frac;
        bool is_tensor_kind = kernel->kind == KERNEL_GEMM || kernel->kind == KERNEL_ATTENTION;
        if (is_tensor_kind && kernel->flop > 0) {
            if (flop_per_s <= 0)
                BUG("kernel '%s' has a dtype that '%s' does not support", kernel->name, gpu->name);
            compute_s = kernel->flop / flop_per_s;
        }
        memory_s =
            kernel->bytes / (gpu->hbm_bytes_per_s * gpu->hbm_share[kernel->kind][kernel->pass]);
        compute_s = fmax(compute_s, gpu->kernel_floor_s);
    }
    if (is_memory_bound)
        *is_memory_bound = memory_s > compute_s;
    return fmax(compute_s, memory_s);
}
