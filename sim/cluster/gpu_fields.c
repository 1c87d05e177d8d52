/* cluster/gpu_fields.c: the fields of a GPU file and of its table of bandwidth shares. */
#include <stddef.h>

#include "cluster/gpu_attention.h"
#include "cluster/gpu_config.h"

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
    {.key = "attention_frac",
     .kind = FIELD_REAL,
     .offset = offsetof(struct gpu_clock, attention_frac),
     .default_text = "1",
     .min = 0.001,
     .max = 1,
     .help = "rate of attention in a step, as a share of what its table says"},
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
    if ((gemm->points.count < 1) == (gemm->grid == NULL))
        config_error(config, path, NULL, "'gemm' needs either 'grid' or 'points'");
    for (int64_t i = 1; i < gemm->points.count; i++) {
        if (points[i].gflop <= points[i - 1].gflop) {
            char *at = arena_printf(config->arena, "%s.points[%lld].gflop", path, (long long)i);
            config_error(config, at, NULL, "'gflop' must grow from point to point");
        }
    }
}

static const struct field gemm_fields[] = {
    {.key = "grid",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct gpu_gemm, grid),
     .help = "measured times by shape: topologies/gpus/grids/NAME.grid, or a path"},
    {.key = "points",
     .kind = FIELD_LIST,
     .offset = offsetof(struct gpu_gemm, points),
     .table = &point_table,
     .help = "instead of a grid: burst efficiency by size"},
    {.key = "ceiling",
     .kind = FIELD_REAL,
     .offset = offsetof(struct gpu_gemm, ceiling_frac),
     .min = 0.001,
     .max = 1,
     .help = "best shape ever listed, as a share of the dense peak; absent: none"},
    FIELD_SHARE(struct gpu_gemm, backward_frac, "backward_frac",
                "rate of gradient GEMMs as a share of the forward one"),
    {.key = "rowwise_frac",
     .kind = FIELD_REAL,
     .offset = offsetof(struct gpu_gemm, rowwise_frac),
     .default_text = "1",
     .min = 0.001,
     .max = 1,
     .help = "rate of float8 GEMMs with scales of rows, as a share of those with one scale"},
    FIELD_SOURCE(struct gpu_gemm),
    {0}};
static const struct field_table gemm_table = {.name = "gemm",
                                              .help = "matrix multiplication",
                                              .fields = gemm_fields,
                                              .struct_bytes = sizeof(struct gpu_gemm),
                                              .check = gemm_check};

static const struct choice kinds[] = {
    {"gemm", KERNEL_GEMM, "GEMMs that are bound by memory, without a grid"},
    {"attention", KERNEL_ATTENTION, "attention that is bound by memory"},
    {"norm", KERNEL_NORM, "RMSNorm, LayerNorm"},
    {"elementwise", KERNEL_ELEMENTWISE, "activations, residual adds, rotary"},
    {"softmax_loss", KERNEL_SOFTMAX_LOSS, "log-softmax and cross entropy"},
    {"embedding", KERNEL_EMBEDDING, "token lookup and its gradient"},
    {"copy_in", KERNEL_COPY_IN, "FSDP: shards to all-gather input"},
    {"copy_out", KERNEL_COPY_OUT, "FSDP: all-gather output to parameters"},
    {"chunk_cat", KERNEL_CHUNK_CAT, "FSDP: gradients to reduce-scatter input"},
    {"cast", KERNEL_CAST, "plain dtype conversion"},
    {"optimizer", KERNEL_OPTIMIZER, "AdamW"},
    {"reduce", KERNEL_REDUCE, "gradient norm"},
    {"any", KERNEL_KIND_COUNT, "all of them"},
    {0}};

static const struct choice impls[] = {
    {"eager", IMPL_EAGER, "one PyTorch operation with a kernel of its own"},
    {"composite", IMPL_COMPOSITE, "one pass of an operation PyTorch composes of several"},
    {"inductor", IMPL_INDUCTOR, "generated by torch.compile"},
    {"hand", IMPL_HAND, "hand-fused"},
    {"any", IMPL_COUNT, "all of them"},
    {0}};

static const struct field share_fields[] = {
    {.key = "kind",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct share_row, kind),
     .is_required = true,
     .choices = kinds,
     .help = "kind of kernel"},
    {.key = "impl",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct share_row, impl),
     .default_text = "any",
     .choices = impls,
     .help = "who wrote it"},
    FIELD_SHARE(struct share_row, share[PASS_FORWARD], "forward", "share of the peak, forward"),
    FIELD_SHARE(struct share_row, share[PASS_BACKWARD], "backward", "share of the peak, backward"),
    FIELD_SOURCE(struct share_row),
    {0}};
static const struct field_table share_table = {.name = "share row",
                                               .help = "one kind and implementation",
                                               .fields = share_fields,
                                               .struct_bytes = sizeof(struct share_row)};

static const struct field shares_fields[] = {
    FIELD_VERSION(struct shares_config),
    FIELD_NAME(struct shares_config),
    FIELD_SUMMARY(struct shares_config),
    {.key = "rows",
     .kind = FIELD_LIST,
     .offset = offsetof(struct shares_config, rows),
     .is_required = true,
     .min = 1,
     .table = &share_table,
     .help = "shares by kind and implementation; a later row wins"},
    {0}};
static const struct field_table shares_table = {
    .name = "hbm_shares",
    .help = "share of the memory bandwidth reached, every operand counted once: "
            "topologies/gpus/tables/NAME.yaml",
    .fields = shares_fields,
    .struct_bytes = sizeof(struct shares_config)};

static const struct choice basis_words[] = {
    {"assumed", BASIS_ASSUMED, "no data: a value of its class"},
    {"derived", BASIS_DERIVED, "from data of a relative, by share of peak"},
    {"measured", BASIS_MEASURED, "from data of this GPU for its main kernels"},
    {0}};

static const char *const part_names[GPU_PART_COUNT] = {[GPU_PART_GEMM] = "gemm",
                                                       [GPU_PART_ATTENTION] = "attention",
                                                       [GPU_PART_MEMORY] = "memory_bound",
                                                       [GPU_PART_CLOCK] = "clock"};

const char *gpu_part_name(enum gpu_part part)
{
    return part_names[part];
}

const char *gpu_basis_name(enum gpu_basis_word basis)
{
    return basis_words[basis].word;
}

#define FIELD_BASIS(part, word, text)                                                              \
    {                                                                                              \
        .key = (word), .kind = FIELD_ENUM, .offset = (part) * sizeof(int),                         \
        .default_text = "assumed", .choices = basis_words, .help = (text)                          \
    }

static const struct field basis_fields[] = {
    FIELD_BASIS(GPU_PART_GEMM, "gemm", "what the times of matrix products rest on"),
    FIELD_BASIS(GPU_PART_ATTENTION, "attention", "what the times of attention rest on"),
    FIELD_BASIS(GPU_PART_MEMORY, "memory_bound", "what the times of the other kernels rest on"),
    FIELD_BASIS(GPU_PART_CLOCK, "clock", "what the clock under load rests on"),
    {0}};
static const struct field_table basis_table = {.name = "basis",
                                               .help = "what the times rest on",
                                               .fields = basis_fields,
                                               .struct_bytes = sizeof(struct gpu_basis)};

static const struct field price_fields[] = {{.key = "low",
                                             .kind = FIELD_REAL,
                                             .offset = offsetof(struct gpu_price, low_usd_per_h),
                                             .min = 0,
                                             .max = 1e6,
                                             .help = "USD an hour and GPU, cheapest seen"},
                                            {.key = "high",
                                             .kind = FIELD_REAL,
                                             .offset = offsetof(struct gpu_price, high_usd_per_h),
                                             .min = 0,
                                             .max = 1e6,
                                             .help = "USD an hour and GPU, dearest seen"},
                                            {.key = "source",
                                             .kind = FIELD_TEXT,
                                             .offset = offsetof(struct gpu_price, source),
                                             .help = "where the prices come from, and when"},
                                            {0}};
static const struct field_table price_table = {.name = "price",
                                               .help = "of renting one GPU; edit as you like",
                                               .fields = price_fields,
                                               .struct_bytes = sizeof(struct gpu_price)};

static const struct field gpu_fields[] = {
    FIELD_VERSION(struct gpu_config),
    FIELD_NAME(struct gpu_config),
    FIELD_SUMMARY(struct gpu_config),
    {.key = "aliases",
     .kind = FIELD_TEXT_LIST,
     .is_line = true,
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
    {.key = "attention",
     .kind = FIELD_REF,
     .offset = offsetof(struct gpu_config, attention),
     .is_required = true,
     .table = &attention_table,
     .folder = "topologies/gpus/tables",
     .help = "rates of attention by implementation"},
    {.key = "hbm_shares",
     .kind = FIELD_REF,
     .offset = offsetof(struct gpu_config, hbm_shares),
     .is_required = true,
     .table = &shares_table,
     .folder = "topologies/gpus/tables",
     .help = "share of the memory bandwidth by kind of kernel"},
    {.key = "basis",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct gpu_config, basis),
     .table = &basis_table,
     .help = "what the times rest on"},
    {.key = "price",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct gpu_config, price),
     .table = &price_table,
     .help = "of renting one GPU"},
    {0}};

const struct field_table gpu_table = {.name = "gpu",
                                      .help = "a GPU: topologies/gpus/NAME.yaml",
                                      .fields = gpu_fields,
                                      .struct_bytes = sizeof(struct gpu_config)};

const struct field_table *const gpu_tables[] = {&gpu_table, NULL};
