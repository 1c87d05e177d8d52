/* schedule/zero3.c: ZeRO stage 3: parameters are sharded too. See zero_private.h. */
#include "schedule/zero_private.h"

/* 95: small parameters stay whole on every GPU, beside their shards; one gather renews them after
   each update. */
static void add_persistent(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const int64_t threshold = fsdp->settings->zero.param_persistence_threshold;
    int64_t numel = 0;
    for (int32_t i = 0; i < fsdp->model->module_count; i++) {
        const struct module_kind *kind = fsdp_kind(fsdp, i);
        for (int32_t p = 0; p < kind->param_count; p++) {
            const int64_t one = kind->params[p].dim0 * kind->params[p].rest;
            numel += one <= threshold ? one : 0;
        }
    }
    fsdp_hold(fsdp,
              fsdp_add_tensor(fsdp, (struct tensor){.name = "persistent_params",
                                                    .bytes = zero_ranks(builder) > 1
                                                                 ? numel * zero_param_bytes(builder)
                                                                 : 0,
                                                    .category = MEMORY_UNSHARDED_PARAMETERS,
                                                    .unit = -1}));
    builder->persistent_gather =
        numel > 0 && zero_ranks(builder) > 1
            ? fsdp_add_collective(fsdp, COLLECTIVE_ALL_GATHER, 0,
                                  (double)numel * (double)zero_param_bytes(builder))
            : -1;
}

void zero3_setup(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    fsdp_hold(fsdp, builder->partition);
    fsdp_hold(fsdp, builder->buffers[0]);
    builder->copied_event = fsdp_add_event(fsdp, "gradients_made", "module");
    builder->drained_event = fsdp_add_event(fsdp, "drained", "reduction");
    add_persistent(builder);
    zero3_add_trace(builder);
    if (builder->is_blocking)
        zero3_blocking_setup(builder);
}

/* A module's gradients are copied into the buffer on the reduction stream, and die there. */
static void copy_gradients(struct zero_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct fsdp_module *module = &fsdp->modules[index];
    const int32_t kind_idx = fsdp->model->modules[index].kind_idx;
    const struct fsdp_gradients *gradients = &fsdp->gradients[kind_idx];
    if (gradients->count > 0 && builder->overlaps) {
        fsdp_op(fsdp, OP_RECORD, ZERO_COMPUTE, module->unit, builder->copied_event);
        fsdp_op(fsdp, OP_WAIT, ZERO_REDUCE, module->unit, builder->copied_event);
    }
    for (int32_t g = 0; g < gradients->count; g++) {
        fsdp_host(fsdp, HOST_ZERO_GRAD, module->unit, gradients->items[g].tensors);
        fsdp_op(fsdp, OP_SEGMENT, builder->reduce_stream, module->unit,
                builder->kinds[kind_idx].copies[g]);
    }
    if (builder->overlaps)
        fsdp_op(fsdp, OP_RECORD_STREAM, ZERO_REDUCE, module->unit, module->grads);
    fsdp_free(fsdp, module->unit, module->grads);
}

static void run_backward(struct zero_builder *builder, int32_t index, int32_t *made)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct fsdp_module *module = &fsdp->modules[index];
    const int32_t count = fsdp->gradients[fsdp->model->modules[index].kind_idx].count;
    fsdp_run_backward(fsdp, index);
    copy_gradients(builder, index);
    *made += count;
    zero_reduce_ready(builder, *made, false, module->unit);
}

static void end_backward(struct zero_builder *builder, int32_t made)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    zero_reduce_ready(builder, made, true, -1);
    builder->has_partition = true;
    if (builder->overlaps) {
        fsdp_op(fsdp, OP_RECORD, ZERO_REDUCE, -1, builder->drained_event);
        fsdp_op(fsdp, OP_WAIT, ZERO_COMPUTE, -1, builder->drained_event);
        fsdp_op(fsdp, OP_HOST_WAIT, ZERO_COMPUTE, -1, builder->drained_event);
    }
    fsdp_op(fsdp, OP_MARK, ZERO_COMPUTE, -1, MARK_BACKWARD_END);
}

void zero3_microbatch(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    int32_t made = 0;
    zero3_begin_trace(builder);
    builder->reduced_count = 0;
    fsdp_op(fsdp, OP_MARK, ZERO_COMPUTE, -1, MARK_FORWARD_BEGIN);
    for (int32_t v = 0; v < builder->visit_count; v++) {
        const struct zero_visit *visit = &builder->visits[v];
        if (visit->is_backward && (v == 0 || !builder->visits[v - 1].is_backward))
            fsdp_op(fsdp, OP_MARK, ZERO_COMPUTE, -1, MARK_FORWARD_END);
        if (builder->is_blocking)
            zero3_blocking_fetch(builder, v);
        else
            zero3_fetch(builder, v);
        if (visit->is_backward && builder->is_blocking)
            zero3_blocking_backward(builder, visit->module, &made);
        else if (visit->is_backward)
            run_backward(builder, visit->module, &made);
        else
            fsdp_run_forward(fsdp, visit->module);
        zero3_release(builder, v);
    }
    end_backward(builder, made);
}

void zero3_gather_updates(struct zero_builder *builder)
{
    builder->has_partition = false;
    zero_return_updates(builder);
    zero3_drop_secondary(builder);
    fsdp_op(&builder->fsdp, OP_COLLECTIVE, ZERO_COMPUTE, -1, builder->persistent_gather);
}
