/* schedule/fsdp_gradient.c: from the reduced shard to the sharded gradient. */
#include "schedule/fsdp_private.h"

bool fsdp_is_sharded(const struct fsdp_builder *builder)
{
    return builder->settings->shard_group.ranks > 1;
}

bool fsdp_is_replicated(const struct fsdp_builder *builder)
{
    return builder->settings->replicate_group.ranks > 1;
}

/* The power of two nearest the square root of all that reduce together, from above, that divides
   them. */
int64_t fsdp_pre_divide_factor(const struct fsdp_builder *builder)
{
    const int64_t ranks =
        builder->settings->shard_group.ranks * builder->settings->replicate_group.ranks;
    int64_t factor = 1;
    while (ranks % factor == 0 && ranks / factor > factor)
        factor *= 2;
    return factor;
}

bool fsdp_is_due(const struct fsdp_builder *builder, int when, int64_t microbatch)
{
    return when == MICROBATCH_EVERY || microbatch + 1 == builder->settings->grad_accum;
}

bool fsdp_reduces_again(const struct fsdp_builder *builder)
{
    return builder->settings->grad_accum > 1 && !fsdp_keeps_unsharded(builder);
}

bool fsdp_keeps_unsharded(const struct fsdp_builder *builder)
{
    return builder->settings->grad_accum > 1 &&
           builder->settings->fsdp.requires_gradient_sync == MICROBATCH_LAST;
}

void fsdp_add_gradient_tensors(struct fsdp_builder *builder, int32_t index, int stream,
                               int cast_stream)
{
    struct fsdp_unit *unit = &builder->units[index];
    const struct precision_config *precision = &builder->settings->precision;
    const int64_t reduced =
        unit->sizes.reduced_shard * dtype_bytes((enum dtype)precision->reduce_dtype);
    const int64_t stored =
        unit->sizes.reduced_shard * dtype_bytes((enum dtype)precision->storage_dtype);
    const bool casts = precision->reduce_dtype != precision->storage_dtype;
    unit->reduce_output = fsdp_add_unit_tensor(builder, index, "reduce_scatter_output", reduced,
                                               MEMORY_REDUCE_BUFFERS, stream);
    unit->sharded_grads = fsdp_add_unit_tensor(builder, index, "sharded_grads", stored,
                                               MEMORY_GRADIENTS, casts ? cast_stream : stream);
    unit->cast_grads_output = fsdp_add_unit_tensor(
        builder, index, "cast_grads", casts && fsdp_reduces_again(builder) ? stored : 0,
        MEMORY_TEMPORARIES, cast_stream);
}

void fsdp_add_gradient_segments(struct fsdp_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    const enum dtype reduce = (enum dtype)builder->settings->precision.reduce_dtype;
    const enum dtype storage = (enum dtype)builder->settings->precision.storage_dtype;
    const double shard = (double)unit->sizes.reduced_shard;
    const double reduce_bytes = (double)dtype_bytes(reduce);
    const double storage_bytes = (double)dtype_bytes(storage);
    unit->cast_grads =
        fsdp_add_unit_pass(builder, index, "cast_grads", KERNEL_CAST, storage,
                           reduce != storage ? shard * (reduce_bytes + storage_bytes) : 0);
    unit->accumulate =
        fsdp_add_unit_pass(builder, index, "accumulate_grads", KERNEL_ELEMENTWISE, storage,
                           fsdp_reduces_again(builder) ? shard * 3 * storage_bytes : 0);
}

void fsdp_alloc_reduced(struct fsdp_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    const bool accumulates = unit->has_gradient && !fsdp_offloads(builder);
    unit->is_reduced_apart = unit->cast_grads >= 0 || accumulates;
    fsdp_alloc(builder, index, unit->is_reduced_apart ? unit->reduce_output : unit->sharded_grads);
}

/* It dies on the GPU when the stream has copied it: at once, or with FSDP1 at the end of backward.
 */
static void keep_on_host(struct fsdp_builder *builder, int32_t index, int stream)
{
    struct fsdp_unit *unit = &builder->units[index];
    if (unit->cast_grads >= 0) {
        fsdp_alloc(builder, index, unit->sharded_grads);
        fsdp_op(builder, OP_SEGMENT, stream, index, unit->cast_grads);
    }
    fsdp_offload_gradient(builder, index, stream);
    if (builder->settings->fsdp.api == API_FSDP2)
        fsdp_free(builder, index, unit->sharded_grads);
    unit->has_gradient = true;
}

void fsdp_keep_gradient(struct fsdp_builder *builder, int32_t index, int stream)
{
    struct fsdp_unit *unit = &builder->units[index];
    if (fsdp_offloads(builder)) {
        keep_on_host(builder, index, stream);
        return;
    }
    if (unit->has_gradient) {
        fsdp_alloc(builder, index, unit->cast_grads_output);
        fsdp_op(builder, OP_SEGMENT, stream, index, unit->cast_grads);
        fsdp_op(builder, OP_SEGMENT, stream, index, unit->accumulate);
        fsdp_free(builder, index, unit->cast_grads_output);
    } else if (unit->cast_grads >= 0) {
        fsdp_alloc(builder, index, unit->sharded_grads);
        fsdp_op(builder, OP_SEGMENT, stream, index, unit->cast_grads);
    }
    unit->has_gradient = true;
}

void fsdp_free_reduced(struct fsdp_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    if (unit->is_reduced_apart)
        fsdp_free(builder, index, unit->reduce_output);
    unit->is_reduced_apart = false;
}
