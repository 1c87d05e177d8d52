/* cluster/gpu_attention.c: the table of attention rates and its use. */
#include "cluster/gpu_attention.h"

#include <math.h>
#include <stddef.h>

enum { DIMS_MAX = 16 };

struct attention_point {
    double head_dim;
    double share[2], half[2];
};

struct attention_series {
    struct attention_point points[DIMS_MAX]; /* head_dim increasing */
    int count;
};

struct attention_model {
    double tile_rows;                                    /* 0: any number of tiles fills the GPU */
    struct attention_series of[ATTENTION_IMPL_COUNT][2]; /* by implementation and is_causal */
    enum attention_impl played[ATTENTION_IMPL_COUNT]; /* what stands in; itself where it exists */
};

static const struct choice impls[] = {
    {"fa2", ATTENTION_FA2, "FlashAttention-2, PyTorch's flash backend"},
    {"eager", ATTENTION_EAGER, "matrix products and softmax, unfused"},
    {"fa1", ATTENTION_FA1, "FlashAttention 1"},
    {"fa3", ATTENTION_FA3, "FlashAttention-3"},
    {"triton", ATTENTION_TRITON, "the Triton kernel of 2022-23"},
    {"xformers", ATTENTION_XFORMERS, "CUTLASS memory-efficient"},
    {"cudnn", ATTENTION_CUDNN, "cuDNN"},
    {0}};

static const struct choice masks[] = {{"full", 0, NULL}, {"causal", 1, NULL}, {0}};

const char *attention_impl_name(enum attention_impl impl)
{
    for (const struct choice *choice = impls; choice->word; choice++)
        if (choice->value == (int64_t)impl)
            return choice->word;
    BUG("attention implementation %d", (int)impl);
}

#define FIELD_PASS(word, member, pass, low, high, text)                                            \
    {                                                                                              \
        .key = (word), .kind = FIELD_REAL,                                                         \
        .offset = offsetof(struct attention_row, member) + (pass) * sizeof(double),                \
        .is_required = true, .min = (low), .max = (high), .help = (text)                           \
    }

static const struct field row_fields[] = {
    {.key = "impl",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct attention_row, impl),
     .is_required = true,
     .choices = impls,
     .help = "implementation"},
    {.key = "mask",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct attention_row, mask),
     .is_required = true,
     .choices = masks,
     .help = "full or causal (half of the FLOP)"},
    {.key = "head_dim",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct attention_row, head_dim),
     .is_required = true,
     .min = 1,
     .max = 4096,
     .help = "head dimension"},
    FIELD_PASS("forward", share, PASS_FORWARD, 0.001, 1, "share of the dense peak, long sequences"),
    FIELD_PASS("forward_half", half, PASS_FORWARD, 0, 1e5, "sequence at half of that rate"),
    FIELD_PASS("backward", share, PASS_BACKWARD, 0.001, 1, "the same, backward"),
    FIELD_PASS("backward_half", half, PASS_BACKWARD, 0, 1e5, "the same, backward"),
    {0}};
static const struct field_table row_table = {.name = "attention row",
                                             .help = "one implementation, mask and head dimension",
                                             .fields = row_fields,
                                             .struct_bytes = sizeof(struct attention_row)};

static const struct field attention_fields[] = {
    FIELD_VERSION(struct attention_config),
    FIELD_NAME(struct attention_config),
    FIELD_SUMMARY(struct attention_config),
    {.key = "tile_rows",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct attention_config, tile_rows),
     .default_text = "128",
     .min = 0,
     .max = 4096,
     .help = "rows of a tile: fewer tiles than SMs leave SMs idle; 0: never"},
    {.key = "rows",
     .kind = FIELD_LIST,
     .offset = offsetof(struct attention_config, rows),
     .is_required = true,
     .min = 1,
     .table = &row_table,
     .help = "rates by implementation, mask and head dimension"},
    {.key = "source",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct attention_config, source),
     .is_required = true,
     .help = "where the numbers come from"},
    {0}};
const struct field_table attention_table = {
    .name = "attention",
    .help = "attention rates of an architecture: topologies/gpus/tables/NAME.yaml",
    .fields = attention_fields,
    .struct_bytes = sizeof(struct attention_config)};

/* Keeps the points in order of head dimension; a second row of one dimension replaces the first. */
static void series_add(struct attention_series *series, const struct attention_row *row)
{
    const struct attention_point point = {.head_dim = (double)row->head_dim,
                                          .share = {row->share[0], row->share[1]},
                                          .half = {row->half[0], row->half[1]}};
    int at = 0;
    while (at < series->count && series->points[at].head_dim < point.head_dim)
        at++;
    if (at < series->count && !(series->points[at].head_dim > point.head_dim)) {
        series->points[at] = point;
        return;
    }
    for (int i = series->count++; i > at; i--)
        series->points[i] = series->points[i - 1];
    series->points[at] = point;
}

/* What runs where an implementation does not exist: FlashAttention-3 and cuDNN need Hopper, Flash
   Attention 2 needs Ampere, and so on down to plain matrix products. */
static const enum attention_impl stand_ins[ATTENTION_IMPL_COUNT] = {
    [ATTENTION_FA3] = ATTENTION_CUDNN,    [ATTENTION_CUDNN] = ATTENTION_FA2,
    [ATTENTION_FA2] = ATTENTION_FA1,      [ATTENTION_TRITON] = ATTENTION_FA1,
    [ATTENTION_FA1] = ATTENTION_XFORMERS, [ATTENTION_XFORMERS] = ATTENTION_EAGER,
    [ATTENTION_EAGER] = ATTENTION_FA2};

static const struct attention_series *stand_in(const struct attention_model *model, int impl,
                                               int is_causal, enum attention_impl *played)
{
    enum attention_impl word = (enum attention_impl)impl;
    for (int steps = 0; steps < ATTENTION_IMPL_COUNT; steps++, word = stand_ins[word]) {
        *played = word;
        if (model->of[word][is_causal].count > 0)
            return &model->of[word][is_causal];
        if (model->of[word][!is_causal].count > 0)
            return &model->of[word][!is_causal];
    }
    return NULL;
}

struct attention_model *attention_model_new(struct arena *arena, struct config *config,
                                            const char *path, const struct attention_config *from)
{
    const struct attention_row *rows = from->rows.items;
    struct attention_model *measured = ARENA_NEW(arena, struct attention_model);
    for (int64_t i = 0; i < from->rows.count; i++) {
        struct attention_series *series = &measured->of[rows[i].impl][rows[i].mask];
        if (series->count == DIMS_MAX) {
            config_error(config, path, NULL, "more than %d head dimensions for '%s'", DIMS_MAX,
                         attention_impl_name((enum attention_impl)rows[i].impl));
            return NULL;
        }
        series_add(series, &rows[i]);
    }
    struct attention_model *model = ARENA_NEW(arena, struct attention_model);
    model->tile_rows = (double)from->tile_rows;
    for (int impl = 0; impl < ATTENTION_IMPL_COUNT; impl++) {
        for (int is_causal = 0; is_causal < 2; is_causal++) {
            const struct attention_series *series =
                stand_in(measured, impl, is_causal, &model->played[impl]);
            if (series == NULL) {
                config_error(config, path, NULL, "'rows' has no implementation for '%s'",
                             attention_impl_name((enum attention_impl)impl));
                return NULL;
            }
            model->of[impl][is_causal] = *series;
        }
    }
    return model;
}

enum attention_impl attention_played(const struct attention_model *model, enum attention_impl impl)
{
    return model != NULL ? model->played[impl] : impl;
}

double attention_share(const struct attention_model *model, const struct kernel *kernel,
                       int64_t sm_count)
{
    const struct attention_series *series = &model->of[kernel->attention][kernel->is_causal];
    const double dim = (double)kernel->k;
    int right = 0;
    while (right < series->count - 1 && series->points[right].head_dim < dim)
        right++;
    const struct attention_point *high = &series->points[right];
    const struct attention_point *low = right > 0 ? high - 1 : high;
    double weight = 1;
    if (right > 0 && dim < high->head_dim)
        weight = (dim - low->head_dim) / (high->head_dim - low->head_dim);
    const double share =
        low->share[kernel->pass] * (1 - weight) + high->share[kernel->pass] * weight;
    const double half = low->half[kernel->pass] * (1 - weight) + high->half[kernel->pass] * weight;
    const double length = fmax((double)kernel->m, 1);
    double fill = 1;
    if (model->tile_rows > 0 && kernel->batch > 0)
        fill = fmin(1, (double)kernel->batch * ceil(length / model->tile_rows) / (double)sm_count);
    return share * fill * length / (length + half);
}
