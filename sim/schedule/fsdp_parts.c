/*
 * schedule/fsdp_parts.c: of how many allocations, and how large, a tensor of the program is.
 *
 * The caching allocator treats 117 MB and 8 KB differently, so what is one tensor a parameter is
 * allocated so: parameters, shards, gradients, optimizer states. Activations and temporaries are
 * known as sums; they are cut into tensors of the size that their module names (piece_bytes).
 * Example, a Llama-3-8B block in bf16: 33.6, 8.4, 8.4, 33.6, 3 x 117.4 MB and two of 8 KB.
 */
#include <math.h>

#include "schedule/fsdp_private.h"

struct sizes {
    int64_t *items; /* elements of each tensor */
    int32_t count, capacity;
    int64_t sum;
};

/* Of a module, those that are in the unit; -1: all. */
static void add_params(const struct fsdp_builder *builder, int32_t module, int32_t unit,
                       bool is_trained_only, struct sizes *sizes)
{
    const struct module_kind *kind = fsdp_kind(builder, module);
    for (int32_t i = 0; i < kind->param_count; i++) {
        const struct param *param = &kind->params[i];
        if ((is_trained_only && param->is_frozen) ||
            (unit >= 0 && fsdp_param_unit(builder, module, i) != unit))
            continue;
        const int64_t numel = param_shard_numel(param, builder->settings->shard_group.ranks);
        *ARENA_PUSH(builder->arena, sizes) = numel;
        sizes->sum += numel;
    }
}

/* Shares of the tensor in proportion to the sizes; the last one takes what rounding leaves. */
static void split(struct fsdp_builder *builder, int32_t tensor_idx, const struct sizes *sizes,
                  int32_t copies)
{
    struct tensor *tensor = &builder->program->tensors.items[tensor_idx];
    if (sizes->count < 2 || sizes->sum == 0)
        return;
    const int64_t bytes = tensor->bytes / copies;
    struct tensor_part *parts = ARENA_ARRAY(builder->arena, struct tensor_part, sizes->count);
    int32_t count = 0;
    int64_t left = bytes;
    for (int32_t i = 0; i < sizes->count; i++) {
        const double share = (double)sizes->items[i] / (double)sizes->sum;
        int64_t part = i + 1 == sizes->count ? left : llround((double)bytes * share);
        part = part < 1 ? 1 : part;
        left -= part;
        if (count > 0 && parts[count - 1].bytes == part)
            parts[count - 1].count += copies;
        else
            parts[count++] = (struct tensor_part){part, copies};
    }
    tensor->parts = parts;
    tensor->part_count = count;
}

void fsdp_split_by_param(struct fsdp_builder *builder, int32_t tensor, int32_t unit,
                         bool is_trained_only, int32_t copies)
{
    struct sizes sizes = {0};
    if (tensor < 0)
        return;
    for (int32_t i = 0; i < builder->model->module_count; i++)
        if (builder->modules[i].unit == unit || builder->modules[i].path_units != NULL)
            add_params(builder, i, unit, is_trained_only, &sizes);
    split(builder, tensor, &sizes, copies);
}

void fsdp_split_module_grads(struct fsdp_builder *builder, int32_t tensor, int32_t module)
{
    struct sizes sizes = {0};
    if (tensor < 0)
        return;
    add_params(builder, module, -1, true, &sizes);
    split(builder, tensor, &sizes, 1);
}

int32_t fsdp_piece_count(const struct module_kind *kind, int64_t bytes)
{
    enum { MOST = 1 << 12 };
    if (kind->piece_bytes <= 0 || bytes <= kind->piece_bytes)
        return 1;
    const int64_t count = (bytes + kind->piece_bytes - 1) / kind->piece_bytes;
    return count < MOST ? (int32_t)count : MOST;
}
