/* schedule/ddp.c: DDP (DistributedDataParallel): the step. See ddp_private.h. */
#include "schedule/ddp_private.h"

static bool casts(const struct fsdp_builder *fsdp)
{
    return fsdp->settings->precision.param_dtype != fsdp->settings->precision.storage_dtype;
}

/* 94: weights in param_dtype, which autograd keeps until the module's backward. */
static void cast_weights(struct ddp_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct ddp_module *module = &builder->modules[index];
    if (module->weights < 0)
        return;
    fsdp_alloc(fsdp, fsdp->modules[index].unit, module->weights);
    fsdp_op(fsdp, OP_SEGMENT, DDP_COMPUTE, fsdp->modules[index].unit, module->cast);
}

static void forward(struct ddp_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    fsdp_op(fsdp, OP_MARK, DDP_COMPUTE, -1, MARK_FORWARD_BEGIN);
    for (int32_t i = 0; i < fsdp->model->module_count; i++) {
        cast_weights(builder, i);
        fsdp_run_forward(fsdp, i);
    }
    /* The cache dies with the autocast region; a checkpointed block kept no reference. */
    for (int32_t i = 0; i < fsdp->model->module_count; i++)
        if (fsdp_kind(fsdp, i)->is_recomputed)
            fsdp_free(fsdp, fsdp->modules[i].unit, builder->modules[i].weights);
    fsdp_op(fsdp, OP_MARK, DDP_COMPUTE, -1, MARK_FORWARD_END);
}

/* 93: the walk through the graph, and which parameters any GPU used. */
static void find_unused(struct ddp_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct ddp_config *ddp = &fsdp->settings->ddp;
    if (!ddp->find_unused_parameters)
        return;
    if (ddp->static_graph) {
        fsdp_flagged_op(fsdp, OP_HOST_WORK, OP_FIRST_STEP, -1, HOST_DDP_WALK);
        fsdp->program->step.items[fsdp->program->step.count - 1].count = builder->graph_nodes;
        return;
    }
    fsdp_host(fsdp, HOST_DDP_WALK, -1, builder->graph_nodes);
}

/* 90: on the all-reduce stream behind all that filled it; index order is issue order. */
static void launch(struct ddp_builder *builder, const struct ddp_bucket *bucket, int32_t unit)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    fsdp_alloc(fsdp, unit, bucket->compressed);
    fsdp_op(fsdp, OP_SEGMENT, DDP_COMPUTE, unit, bucket->compress);
    fsdp_op(fsdp, OP_RECORD, DDP_COMPUTE, unit, bucket->ready);
    fsdp_op(fsdp, OP_WAIT, DDP_ALL_REDUCE, unit, bucket->ready);
    fsdp_op(fsdp, OP_COLLECTIVE, DDP_ALL_REDUCE, unit, bucket->all_reduce);
    fsdp_op(fsdp, OP_RECORD, DDP_ALL_REDUCE, unit, bucket->reduced);
}

/* Compute waits for each bucket in turn, and copies it back where gradients are no views. */
static void finish(struct ddp_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct ddp_config *ddp = &fsdp->settings->ddp;
    if (ddp->find_unused_parameters && !ddp->static_graph) {
        fsdp_op(fsdp, OP_COLLECTIVE, DDP_ALL_REDUCE, -1, builder->used_map);
        fsdp_op(fsdp, OP_RECORD, DDP_ALL_REDUCE, -1, builder->used_done);
    }
    for (int32_t i = 0; i < builder->buckets.count; i++) {
        const struct ddp_bucket *bucket = &builder->buckets.items[i];
        fsdp_op(fsdp, OP_WAIT, DDP_COMPUTE, -1, bucket->reduced);
        fsdp_op(fsdp, OP_SEGMENT, DDP_COMPUTE, -1, bucket->restore);
        fsdp_free(fsdp, -1, bucket->compressed);
        fsdp_op(fsdp, OP_SEGMENT, DDP_COMPUTE, -1, bucket->copy);
    }
    if (ddp->find_unused_parameters && !ddp->static_graph)
        fsdp_op(fsdp, OP_HOST_WAIT, DDP_COMPUTE, -1, builder->used_done);
}

/* Gradients that are not kept themselves live until they are cast, added or copied. */
static void run_module(struct ddp_builder *builder, int32_t index, int variant, int32_t *made,
                       int32_t *launched)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct ddp_module *module = &builder->modules[index];
    const struct fsdp_module *common = &fsdp->modules[index];
    const int32_t count = fsdp->gradients[fsdp->model->modules[index].kind_idx].count;
    const bool accumulates = (variant & DDP_ACCUMULATES) != 0;
    const bool is_passing = accumulates || casts(fsdp) || module->grads < 0;
    fsdp_begin_backward(fsdp, index);
    if (!accumulates)
        fsdp_alloc(fsdp, common->unit, module->grads);
    if (is_passing)
        fsdp_alloc(fsdp, common->unit, common->grads);
    if (fsdp_kind(fsdp, index)->is_recomputed)
        cast_weights(builder, index);
    if (count == 0)
        fsdp_issue(fsdp, common->unit, common->backward);
    for (int32_t g = 0; g < count; g++) {
        fsdp_issue(fsdp, common->unit, module->slices[variant][g]);
        ++*made;
        if ((variant & DDP_SYNCS) != 0 && *made == builder->buckets.items[*launched].gradient_end)
            launch(builder, &builder->buckets.items[(*launched)++], common->unit);
    }
    fsdp_end_backward(fsdp, index);
    fsdp_free(fsdp, common->unit, module->weights);
    if (is_passing)
        fsdp_free(fsdp, common->unit, common->grads);
}

static void backward(struct ddp_builder *builder, int variant)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    int32_t made = 0, launched = 0;
    if ((variant & DDP_SYNCS) != 0)
        find_unused(builder);
    for (int32_t i = fsdp->model->module_count - 1; i >= 0; i--)
        run_module(builder, i, variant, &made, &launched);
    if ((variant & DDP_SYNCS) != 0)
        finish(builder);
    fsdp_op(fsdp, OP_MARK, DDP_COMPUTE, -1, MARK_BACKWARD_END);
}

/* zero_grad: gradients die, buckets stay. */
static void free_gradients(struct ddp_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    for (int32_t i = 0; i < fsdp->model->module_count; i++)
        fsdp_flagged_op(fsdp, OP_FREE, OP_LATER_STEPS, fsdp->modules[i].unit,
                        builder->modules[i].grads);
}

struct program *ddp_build(struct arena *arena, const struct model *model,
                          const struct policy_settings *settings)
{
    struct ddp_builder builder = {.fsdp = {.arena = arena,
                                           .model = model,
                                           .settings = settings,
                                           .program = ARENA_NEW(arena, struct program)}};
    struct fsdp_builder *fsdp = &builder.fsdp;
    fsdp->program->policy = "ddp";
    ddp_setup(&builder);
    fsdp_op(fsdp, OP_MARK, DDP_COMPUTE, -1, MARK_STEP_BEGIN);
    fsdp_host(fsdp, HOST_STEP, -1, 1);
    free_gradients(&builder);
    for (int64_t i = 0; i < settings->grad_accum; i++) {
        const bool syncs = settings->dp_group.ranks > 1 &&
                           (!settings->ddp.no_sync || i + 1 == settings->grad_accum);
        forward(&builder);
        backward(&builder, (i > 0 ? DDP_ACCUMULATES : 0) | (syncs ? DDP_SYNCS : 0));
    }
    optimizer_step(fsdp);
    fsdp_op(fsdp, OP_MARK, DDP_COMPUTE, -1, MARK_STEP_END);
    return fsdp->program;
}
