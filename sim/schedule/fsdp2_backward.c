/* schedule/fsdp2_backward.c: FSDP2: backward, reduce-scatter, the end-of-backward callback. */
#include "schedule/fsdp2_private.h"

/* 27: gather this unit if it is not, then prefetch the one before it in post-forward order. */
static void pre_backward(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    if (unit->param_count == 0)
        return;
    fsdp2_host(builder, HOST_HOOK, index, 1);
    fsdp2_unshard(builder, index);
    fsdp2_wait_for_unshard(builder, index, true);
    for (int32_t i = 1; i < builder->post_forward_count; i++)
        if (builder->post_forward_order[i] == index)
            fsdp2_unshard(builder, builder->post_forward_order[i - 1]);
}

/* 30d: compute waits for the oldest pending reduce-scatter and frees its input. */
static void drain_oldest_reduce(struct fsdp2_builder *builder)
{
    const int32_t oldest = builder->pending_reduce[0];
    fsdp2_op(builder, OP_WAIT, FSDP2_COMPUTE, oldest, builder->units[oldest].reduced);
    fsdp2_free(builder, oldest, builder->units[oldest].reduce_input);
    builder->pending_reduce_count--;
    for (int32_t i = 0; i < builder->pending_reduce_count; i++)
        builder->pending_reduce[i] = builder->pending_reduce[i + 1];
}

/* 30h: the reduced shard becomes, or is added to, the sharded gradient. */
static void keep_gradient(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    if (unit->has_gradient) {
        fsdp2_alloc(builder, index, unit->cast_grads_output);
        fsdp2_op(builder, OP_SEGMENT, FSDP2_REDUCE_SCATTER, index, unit->cast_grads);
        fsdp2_op(builder, OP_SEGMENT, FSDP2_REDUCE_SCATTER, index, unit->accumulate);
        fsdp2_free(builder, index, unit->cast_grads_output);
        fsdp2_free(builder, index, unit->reduce_output);
    } else if (unit->cast_grads >= 0) {
        fsdp2_alloc(builder, index, unit->sharded_grads);
        fsdp2_op(builder, OP_SEGMENT, FSDP2_REDUCE_SCATTER, index, unit->cast_grads);
        fsdp2_free(builder, index, unit->reduce_output);
    }
    unit->has_gradient = true;
    fsdp2_op(builder, OP_RECORD, FSDP2_REDUCE_SCATTER, index, unit->post_reduced);
}

/* 30: reshard, wait for the buffer, copy in, reduce-scatter. */
static void post_backward(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    if (unit->param_count == 0 || unit->has_reduced)
        return;
    unit->has_reduced = true;
    fsdp2_host(builder, HOST_HOOK, index, 1);
    fsdp2_host(builder, HOST_HOOK_PARAM, index, unit->param_count);
    if (unit->is_unsharded) {
        fsdp2_free(builder, index, unit->params);
        unit->is_unsharded = false;
    }
    while (builder->pending_reduce_count >= builder->settings->fsdp.reduce_scatter_buffers)
        drain_oldest_reduce(builder);
    if (unit->has_gradient) /* 30e */
        fsdp2_op(builder, OP_WAIT, FSDP2_COMPUTE, index, unit->post_reduced);
    fsdp2_alloc(builder, index, unit->reduce_input);
    fsdp2_op(builder, OP_SEGMENT, FSDP2_COMPUTE, index, unit->chunk_cat);
    for (int32_t i = 0; i < builder->model->module_count; i++)
        if (builder->modules[i].unit == index)
            fsdp2_free(builder, index, builder->modules[i].grads);
    fsdp2_op(builder, OP_RECORD, FSDP2_COMPUTE, index, unit->reduce_ready);
    fsdp2_op(builder, OP_WAIT, FSDP2_REDUCE_SCATTER, index, unit->reduce_ready);
    /* Without a cast the reduced shard is the gradient itself. */
    const bool is_gradient = unit->cast_grads < 0 && !unit->has_gradient;
    fsdp2_alloc(builder, index, is_gradient ? unit->sharded_grads : unit->reduce_output);
    if (builder->settings->shard_group.ranks > 1)
        fsdp2_op(builder, OP_COLLECTIVE, FSDP2_REDUCE_SCATTER, index, unit->reduce_scatter);
    fsdp2_op(builder, OP_RECORD, FSDP2_REDUCE_SCATTER, index, unit->reduced);
    builder->pending_reduce[builder->pending_reduce_count++] = index;
    keep_gradient(builder, index);
}

static bool is_loss(const struct fsdp2_builder *builder, int32_t module)
{
    return builder->model->kinds[builder->model->modules[module].kind_idx].role == MODULE_LOSS;
}

static void run_module_backward(struct fsdp2_builder *builder, int32_t index)
{
    const struct fsdp_module *module = &builder->modules[index];
    const int32_t unit = module->unit;
    fsdp2_alloc(builder, unit, module->recomputed);
    fsdp2_alloc(builder, unit, module->backward_temp);
    fsdp2_alloc(builder, unit, module->grads);
    fsdp2_op(builder, OP_SEGMENT, FSDP2_COMPUTE, unit, module->backward);
    fsdp2_free(builder, unit, module->backward_temp);
    fsdp2_free(builder, unit, module->recomputed);
    fsdp2_free(builder, unit, module->saved);
    fsdp2_free(builder, unit, module->output_grad);
    /* The gradient of the logits is cast from the loss's fp32 one as its last act, when the rest of
       the loss is gone already, and dies in the head. */
    if (is_loss(builder, index))
        for (int32_t i = 0; i < index; i++)
            fsdp2_alloc(builder, builder->modules[i].unit, builder->modules[i].output_grad);
}

/* 33: root first, then traversal order; compute waits for each group's reduction in turn. */
static void end_of_backward(struct fsdp2_builder *builder)
{
    for (int32_t i = 0; i < builder->unit_count; i++) {
        post_backward(builder, i);
        if (builder->units[i].param_count > 0)
            fsdp2_op(builder, OP_WAIT, FSDP2_COMPUTE, i, builder->units[i].post_reduced);
    }
    while (builder->pending_reduce_count > 0)
        drain_oldest_reduce(builder);
    for (int32_t i = 0; i < builder->unit_count; i++)
        builder->units[i].has_reduced = false;
}

/* The first module of a unit in forward order is the last in backward. */
static bool is_first_of_unit(const struct fsdp2_builder *builder, int32_t module)
{
    const int32_t unit = builder->modules[module].unit;
    for (int32_t i = 0; i < module; i++)
        if (builder->modules[i].unit == unit)
            return false;
    return true;
}

void fsdp2_backward(struct fsdp2_builder *builder)
{
    bool *has_begun = ARENA_ARRAY(builder->arena, bool, builder->unit_count);
    for (int32_t i = builder->model->module_count - 1; i >= 0; i--) {
        const int32_t unit = builder->modules[i].unit;
        if (unit >= 0 && !has_begun[unit]) {
            has_begun[unit] = true;
            pre_backward(builder, unit);
        }
        run_module_backward(builder, i);
        if (unit >= 0 && is_first_of_unit(builder, i) && !builder->units[unit].reduces_at_end)
            post_backward(builder, unit);
    }
    end_of_backward(builder);
    fsdp2_op(builder, OP_MARK, FSDP2_COMPUTE, -1, MARK_BACKWARD_END);
}
