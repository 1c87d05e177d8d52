/*
 * schedule/optimizer.c: the optimizer's step: state, clipping, update, zero_grad.
 *
 * Gradient norm (reads the sharded gradients), its scalar all-reduce, the scaling pass; fused AdamW
 * in one pass: reads parameter, gradient and two moments, writes parameter and moments (28 B per
 * fp32 parameter). The moments appear at the first step(), and stay.
 */
#include "schedule/fsdp_private.h"

void optimizer_add_state(struct fsdp_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    const enum dtype state = (enum dtype)builder->settings->optimizer.state_dtype;
    unit->optimizer_state = fsdp_add_tensor(
        builder,
        (struct tensor){.name = arena_printf(builder->arena, "adam_moments(%s)", unit->name),
                        .bytes = 2 * unit->shard * dtype_bytes(state),
                        .category = MEMORY_OPTIMIZER,
                        .unit = index,
                        .pieces = 2 * unit->optimizer_tensors});
}

void optimizer_setup(struct fsdp_builder *builder)
{
    const enum dtype storage = (enum dtype)builder->settings->precision.storage_dtype;
    const enum dtype state = (enum dtype)builder->settings->optimizer.state_dtype;
    int64_t shard = 0;
    for (int32_t i = 0; i < builder->unit_count; i++)
        shard += builder->units[i].shard;
    const double grad_bytes = (double)shard * (double)dtype_bytes(storage);
    const double state_bytes = 2 * (double)shard * (double)dtype_bytes(state);
    builder->norm_segment = builder->scale_segment = builder->norm_all_reduce = -1;
    if (builder->settings->is_clipping) {
        builder->norm_segment =
            fsdp_add_pass(builder, "gradient_norm", KERNEL_REDUCE, storage, grad_bytes, true);
        builder->scale_segment = fsdp_add_pass(builder, "clip_gradients", KERNEL_ELEMENTWISE,
                                               storage, 2 * grad_bytes, true);
        builder->norm_all_reduce = fsdp_add_collective(builder, COLLECTIVE_ALL_REDUCE, 0, 4);
    }
    builder->optimizer_segment = fsdp_add_pass(builder, "adamw", KERNEL_OPTIMIZER, storage,
                                               3 * grad_bytes + 2 * state_bytes, true);
}

void optimizer_free_gradients(struct fsdp_builder *builder)
{
    for (int32_t i = 0; i < builder->unit_count; i++) {
        fsdp_flagged_op(builder, OP_FREE, OP_LATER_STEPS, i, builder->units[i].sharded_grads);
        builder->units[i].has_gradient = false;
    }
}

void optimizer_step(struct fsdp_builder *builder)
{
    int32_t tensors = 0;
    for (int32_t i = 0; i < builder->unit_count; i++)
        tensors += builder->units[i].optimizer_tensors;
    if (tensors == 0)
        return;
    if (builder->settings->is_clipping) {
        fsdp_host(builder, HOST_OPTIMIZER, -1, 1);
        fsdp_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
        fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->norm_segment);
        if (builder->settings->shard_group.ranks > 1)
            fsdp_op(builder, OP_COLLECTIVE, FSDP_COMPUTE, -1, builder->norm_all_reduce);
        fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->scale_segment);
    }
    fsdp_host(builder, HOST_OPTIMIZER, -1, 1);
    fsdp_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
    for (int32_t i = 0; i < builder->unit_count; i++)
        fsdp_flagged_op(builder, OP_ALLOC, OP_FIRST_STEP, i, builder->units[i].optimizer_state);
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->optimizer_segment);
}
