/* schedule/fsdp1_backward.c: FSDP1: backward, gradient reduction, the end of backward. */
#include "schedule/fsdp1_private.h"

/* 80: the unit one position earlier in post-forward order, unless it had its turn or is under way.
 */
static void prefetch(struct fsdp1_builder *builder, int32_t index)
{
    const int32_t before = builder->units[index].post_forward_idx - 1;
    if (before < 0)
        return;
    const int32_t target = builder->post_forward_order[before];
    struct fsdp1_unit *unit = &builder->units[target];
    if (!unit->needs_backward_unshard || unit->is_prefetched)
        return;
    fsdp1_unshard(builder, target, true);
    unit->is_prefetched = true;
}

static void pre_backward(struct fsdp1_builder *builder, int32_t index)
{
    struct fsdp1_unit *unit = &builder->units[index];
    fsdp_host(&builder->fsdp, HOST_HOOK, index, 1);
    if (!unit->is_prefetched)
        fsdp1_unshard(builder, index, true);
    fsdp1_wait_for_unshard(builder, index);
    unit->needs_backward_unshard = false;
    if (builder->fsdp.settings->fsdp.backward_prefetch == PREFETCH_PRE)
        prefetch(builder, index);
}

/* 82: over the replicas, in place; with the hybrid strategies on a stream of its own. */
static void all_reduce(struct fsdp1_builder *builder, int32_t index)
{
    const struct fsdp1_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const int stream = builder->all_reduce_stream;
    if (stream == FSDP1_ALL_REDUCE) {
        fsdp_op(fsdp, OP_RECORD, FSDP1_POST_BACKWARD, index, unit->scattered);
        fsdp_op(fsdp, OP_WAIT, FSDP1_ALL_REDUCE, index, unit->scattered);
        if (unit->common->is_reduced_apart)
            fsdp_op(fsdp, OP_RECORD_STREAM, FSDP1_ALL_REDUCE, index, unit->common->reduce_output);
    }
    if (fsdp_is_replicated(fsdp))
        fsdp_op(fsdp, OP_COLLECTIVE, stream, index, unit->all_reduce);
    fsdp_op(fsdp, OP_SEGMENT, stream, index, unit->post_divide);
    fsdp_keep_gradient(fsdp, index, stream);
    fsdp_free_reduced(fsdp, index);
}

/* 82-84, on the post-backward stream; compute waits for none of it. */
static void reduce(struct fsdp1_builder *builder, int32_t index)
{
    struct fsdp1_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    fsdp_op(fsdp, OP_RECORD, FSDP1_COMPUTE, index, unit->grads_ready);
    fsdp_op(fsdp, OP_WAIT, FSDP1_POST_BACKWARD, index, unit->grads_ready);
    fsdp_alloc(fsdp, index, unit->reduce_input);
    fsdp_op(fsdp, OP_SEGMENT, FSDP1_POST_BACKWARD, index, unit->cast_unsharded_grads);
    fsdp_alloc_reduced(fsdp, index);
    fsdp_op(fsdp, OP_SEGMENT, FSDP1_POST_BACKWARD, index, unit->pre_divide);
    if (fsdp_is_sharded(fsdp))
        fsdp_op(fsdp, OP_COLLECTIVE, FSDP1_POST_BACKWARD, index, unit->reduce_scatter);
    all_reduce(builder, index);
    fsdp_free(fsdp, index, unit->reduce_input);
    const int32_t grads = unit->has_kept ? unit->kept_grads : unit->flat_grads;
    fsdp_op(fsdp, OP_RECORD_STREAM, FSDP1_POST_BACKWARD, index, grads);
    fsdp_free(fsdp, index, grads);
    unit->has_kept = false;
}

/* 86: the backward of the views concatenates the gradients; under no_sync and behind it they are
   added to what is there. */
static void make_flat_gradient(struct fsdp1_builder *builder, int32_t index)
{
    struct fsdp1_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const bool stays = !builder->syncs && !unit->has_kept;
    fsdp_alloc(fsdp, index, stays ? unit->kept_grads : unit->flat_grads);
    fsdp_op(fsdp, OP_SEGMENT, FSDP1_COMPUTE, index, unit->concat_grads);
    fsdp_free_module_grads(fsdp, index);
    if (unit->has_kept) {
        fsdp_op(fsdp, OP_SEGMENT, FSDP1_COMPUTE, index, unit->add_grads);
        fsdp_free(fsdp, index, unit->flat_grads);
    }
    unit->has_kept = unit->has_kept || stays;
}

/* 86: a strategy that keeps parameters after forward also does so under no_sync. */
static bool frees_after_backward(const struct fsdp1_builder *builder)
{
    return builder->syncs ||
           sharding_frees_after_forward(builder->fsdp.settings->fsdp.sharding_strategy);
}

/* The flat gradient, then the hook of the flat parameter. */
static void post_backward(struct fsdp1_builder *builder, int32_t index)
{
    const struct fsdp1_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const bool is_trained = unit->common->sizes.trained_count > 0;
    if (is_trained)
        make_flat_gradient(builder, index);
    fsdp_host(fsdp, HOST_HOOK, index, 1);
    fsdp1_reshard(builder, index, frees_after_backward(builder), true);
    if (fsdp->settings->fsdp.backward_prefetch == PREFETCH_POST)
        prefetch(builder, index);
    if (is_trained && builder->syncs)
        reduce(builder, index);
}

/* 85: the host waits for its gradients; those on the GPU go. */
static void await_offloaded(struct fsdp1_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    if (!fsdp_offloads(fsdp) || !builder->syncs)
        return;
    fsdp_op(fsdp, OP_RECORD, FSDP1_COMPUTE, 0, builder->offloaded_event);
    fsdp_op(fsdp, OP_HOST_WAIT, FSDP1_COMPUTE, 0, builder->offloaded_event);
    for (int32_t i = 0; i < fsdp->unit_count; i++)
        if (fsdp->units[i].has_gradient)
            fsdp_free(fsdp, i, fsdp->units[i].sharded_grads);
}

/* The units whose output's gradient is there: of the run, and of those it lies in. Under a
   reentrant checkpoint what is inside has no output yet before the recompute. */
static void begin_units(struct fsdp1_builder *builder, int32_t r, bool is_before_recompute)
{
    int32_t unit;
    while ((unit = fsdp_begin_next(&builder->fsdp, r, is_before_recompute)) > 0)
        if (fsdp1_has_params(builder, unit))
            pre_backward(builder, unit);
}

static void begin_root(struct fsdp1_builder *builder)
{
    if (!builder->fsdp.units[0].has_begun && fsdp1_has_params(builder, 0))
        pre_backward(builder, 0);
    builder->fsdp.units[0].has_begun = true;
}

void fsdp1_backward(struct fsdp1_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct fsdp_runs *runs = &fsdp->backward;
    for (int32_t unit = 0; unit < fsdp->unit_count; unit++)
        fsdp->units[unit].has_begun = false;
    for (int32_t r = 0; r < runs->count; r++) {
        const struct fsdp_run *run = &runs->items[r];
        if (run->unit >= 0)
            begin_root(builder);
        if (run->begins)
            begin_units(builder, fsdp_behind_recompute(fsdp, r), run->is_recompute);
        if (run->is_recompute) {
            fsdp1_recompute(builder, r);
            continue;
        }
        begin_units(builder, r, false);
        fsdp_play_backward(fsdp, run);
        if (run->ends)
            fsdp_alloc(fsdp, run->unit, builder->kept_inputs[run->module]);
        /* The hook of the flat parameter: the last of its gradients was made. */
        if (run->unit >= 0 && runs->last_own[run->unit] == r &&
            fsdp1_has_params(builder, run->unit))
            post_backward(builder, run->unit);
    }
    /* 85: the end-of-backward callback; what backward did not come to is freed too. */
    for (int32_t unit = 1; unit < fsdp->unit_count; unit++)
        if (runs->last_own[unit] < 0 && builder->units[unit].is_gathered)
            fsdp1_reshard(builder, unit, true, true);
    fsdp_op(fsdp, OP_RECORD, FSDP1_POST_BACKWARD, 0, builder->done_event);
    fsdp_op(fsdp, OP_WAIT, FSDP1_COMPUTE, 0, builder->done_event);
    fsdp_op(fsdp, OP_RECORD, FSDP1_ALL_REDUCE, 0, builder->all_reduced_event);
    fsdp_op(fsdp, OP_WAIT, FSDP1_COMPUTE, 0, builder->all_reduced_event);
    await_offloaded(builder);
    for (int32_t i = 0; i < fsdp->model->module_count; i++)
        fsdp_free(fsdp, fsdp->modules[i].unit, builder->kept_inputs[i]);
    fsdp_op(fsdp, OP_MARK, FSDP1_COMPUTE, -1, MARK_BACKWARD_END);
}
