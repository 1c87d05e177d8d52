/* schedule/fsdp2_backward.c: FSDP2: backward, reduce-scatter, the end-of-backward callback. */
#include "schedule/fsdp2_private.h"

/* 27: the units of the explicit list, or the one before this in post-forward order. The root has no
   list. */
static void prefetch(struct fsdp2_builder *builder, int32_t index)
{
    const int64_t listed = builder->fsdp.settings->fsdp.backward_prefetch;
    for (int64_t i = 1; index > 0 && i <= listed && i < index; i++)
        fsdp2_unshard(builder, index - (int32_t)i, true);
    struct fsdp2_unit *unit = &builder->units[index];
    if (unit->post_forward_idx > 0 && (index == 0 || listed <= 0))
        fsdp2_unshard(builder, builder->post_forward_order[unit->post_forward_idx - 1], true);
    unit->post_forward_idx = -1;
}

/* 27: gather this unit if it is not, then prefetch. */
static void pre_backward(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (unit->common->param_count == 0)
        return;
    fsdp_host(&builder->fsdp, HOST_HOOK, index, 1);
    fsdp2_unshard(builder, index, true);
    fsdp2_wait_for_unshard(builder, index, true);
    prefetch(builder, index);
}

/* 30d: compute waits for the oldest pending reduce-scatter and frees its input. */
static void drain_oldest_reduce(struct fsdp2_builder *builder)
{
    const int32_t oldest = builder->pending_reduce[0];
    fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_COMPUTE, oldest, builder->units[oldest].reduced);
    fsdp_free(&builder->fsdp, oldest, builder->units[oldest].reduce_input);
    builder->pending_reduce_count--;
    for (int32_t i = 0; i < builder->pending_reduce_count; i++)
        builder->pending_reduce[i] = builder->pending_reduce[i + 1];
}

/* The all-reduced shard of a unit that was cast, if it is alive. */
static void release_reduced(struct fsdp2_builder *builder, int32_t index)
{
    fsdp_free_reduced(&builder->fsdp, index);
    int32_t kept = 0;
    for (int32_t i = 0; i < builder->held_reduced_count; i++)
        if (builder->held_reduced[i] != index)
            builder->held_reduced[kept++] = builder->held_reduced[i];
    builder->held_reduced_count = kept;
}

/* 39: so many of these live on; 0: all, until they are waited for. */
static void drain_held_reduced(struct fsdp2_builder *builder)
{
    const int64_t most = builder->fsdp.settings->fsdp.all_reduce_buffers;
    if (most > 0 && builder->held_reduced_count >= most)
        release_reduced(builder, builder->held_reduced[0]);
}

/* 40: without an all-reduce the shard of a first microbatch is the partial sum. */
static void alloc_reduce_output(struct fsdp2_builder *builder, int32_t index)
{
    const struct fsdp2_unit *unit = &builder->units[index];
    if (builder->all_reduces)
        fsdp_alloc_reduced(&builder->fsdp, index);
    else
        fsdp_alloc(&builder->fsdp, index,
                   unit->has_partial ? unit->common->reduce_output : unit->partial);
}

/* 40: what is not all-reduced yet is summed in reduce_dtype on the stream that made it. */
static void sum_partial(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (unit->has_partial) {
        fsdp_op(&builder->fsdp, OP_SEGMENT, FSDP2_REDUCE_SCATTER, index, unit->sum_partial);
        fsdp_free(&builder->fsdp, index,
                  builder->all_reduces ? unit->partial : unit->common->reduce_output);
    }
    unit->has_partial = !builder->all_reduces;
}

/* 38: all-reduce of the shard over its replicas, in place, and what 30h says, on its own stream. */
static void all_reduce(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    fsdp_op(&builder->fsdp, OP_RECORD, FSDP2_REDUCE_SCATTER, index, unit->summed);
    fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_ALL_REDUCE, index, unit->summed);
    fsdp_op(&builder->fsdp, OP_COLLECTIVE, FSDP2_ALL_REDUCE, index, unit->all_reduce);
    fsdp_op(&builder->fsdp, OP_SEGMENT, FSDP2_ALL_REDUCE, index, unit->post_divide);
    fsdp_keep_gradient(&builder->fsdp, index, FSDP2_ALL_REDUCE);
    fsdp_op(&builder->fsdp, OP_RECORD, FSDP2_ALL_REDUCE, index, unit->post_reduced);
    if (unit->common->is_reduced_apart)
        builder->held_reduced[builder->held_reduced_count++] = index;
}

/* 30g, 30h: reduce-scatter; the reduced shard becomes the gradient. */
static void reduce(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    drain_held_reduced(builder);
    alloc_reduce_output(builder, index);
    fsdp_op(fsdp, OP_SEGMENT, FSDP2_REDUCE_SCATTER, index, unit->pre_divide);
    if (fsdp_is_sharded(fsdp))
        fsdp_op(fsdp, OP_COLLECTIVE, FSDP2_REDUCE_SCATTER, index, unit->reduce_scatter);
    fsdp_op(fsdp, OP_RECORD, FSDP2_REDUCE_SCATTER, index, unit->reduced);
    builder->pending_reduce[builder->pending_reduce_count++] = index;
    sum_partial(builder, index);
    if (fsdp_is_replicated(fsdp) && builder->all_reduces) {
        all_reduce(builder, index);
        return;
    }
    if (builder->all_reduces) {
        fsdp_op(fsdp, OP_SEGMENT, FSDP2_REDUCE_SCATTER, index, unit->post_divide);
        fsdp_keep_gradient(fsdp, index, FSDP2_REDUCE_SCATTER);
        fsdp_free_reduced(fsdp, index);
    }
    fsdp_op(fsdp, OP_RECORD, FSDP2_REDUCE_SCATTER, index, unit->post_reduced);
}

/* 30a, 53: to what earlier microbatches left. */
static void add_to_kept(struct fsdp2_builder *builder, int32_t index)
{
    const struct fsdp2_unit *unit = &builder->units[index];
    if (!unit->has_kept)
        return;
    fsdp_op(&builder->fsdp, OP_SEGMENT, FSDP2_COMPUTE, index, unit->add_grads);
    fsdp_free_module_grads(&builder->fsdp, index);
}

/* 30b: without a cast the gradients themselves stay. */
static void keep_unsharded(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (unit->has_kept)
        return;
    unit->has_kept = true;
    if (unit->keep_grads < 0)
        fsdp_free_module_grads(&builder->fsdp, index);
    fsdp_alloc(&builder->fsdp, index, unit->kept_grads);
    fsdp_op(&builder->fsdp, OP_SEGMENT, FSDP2_COMPUTE, index, unit->keep_grads);
    if (unit->keep_grads >= 0)
        fsdp_free_module_grads(&builder->fsdp, index);
}

/* 30f: into the reduce-scatter input, where the gradients end. */
static void copy_in_gradients(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    fsdp_alloc(&builder->fsdp, index, unit->reduce_input);
    fsdp_op(&builder->fsdp, OP_SEGMENT, FSDP2_COMPUTE, index,
            unit->has_kept ? unit->chunk_cat_kept : unit->chunk_cat);
    if (unit->has_kept)
        fsdp_free(&builder->fsdp, index, unit->kept_grads);
    else
        fsdp_free_module_grads(&builder->fsdp, index);
    unit->has_kept = false;
}

/* 30: reshard, wait for the buffer, copy in, reduce. */
static void post_backward(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (unit->common->param_count == 0 || unit->has_ended)
        return;
    unit->has_ended = true;
    fsdp_host(&builder->fsdp, HOST_HOOK, index, 1);
    fsdp_host(&builder->fsdp, HOST_HOOK_PARAM, index, unit->common->param_count);
    add_to_kept(builder, index);
    fsdp2_free_slice(builder, index);
    if (unit->is_unsharded && builder->reshards_after_backward) {
        fsdp_free(&builder->fsdp, index, unit->params);
        unit->is_unsharded = false;
    }
    if (unit->common->sizes.trained_count == 0) /* no gradient, nothing to reduce */
        return;
    if (!builder->syncs) {
        keep_unsharded(builder, index);
        return;
    }
    while (builder->pending_reduce_count >= builder->fsdp.settings->fsdp.reduce_scatter_buffers)
        drain_oldest_reduce(builder);
    if (unit->common->has_gradient) { /* 30e */
        fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_COMPUTE, index, unit->post_reduced);
        release_reduced(builder, index);
    }
    copy_in_gradients(builder, index);
    fsdp_op(&builder->fsdp, OP_RECORD, FSDP2_COMPUTE, index, unit->reduce_ready);
    fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_REDUCE_SCATTER, index, unit->reduce_ready);
    reduce(builder, index);
}

/* 33: compute waits for the reduction of a unit; what was gathered in vain is dropped. */
static void finalize(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (unit->common->has_gradient || unit->has_partial) {
        fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_COMPUTE, index, unit->post_reduced);
        release_reduced(builder, index);
        fsdp_await_gradient(&builder->fsdp, index); /* 57 */
    }
    if (!unit->is_pending)
        return;
    unit->is_pending = false;
    fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_COMPUTE, index, unit->gathered);
    fsdp_free(&builder->fsdp, index, unit->gather_buffer);
}

/* 33: root first, then traversal order. 55: before the last backward nothing is waited for, and the
   order of forwards is kept. */
static void end_of_backward(struct fsdp2_builder *builder)
{
    for (int32_t i = 0; i < builder->fsdp.unit_count; i++) {
        post_backward(builder, i);
        if (builder->is_last_backward)
            finalize(builder, i);
    }
    for (int32_t i = 0; i < builder->fsdp.unit_count; i++)
        builder->units[i].has_ended = false;
    if (!builder->is_last_backward)
        return;
    builder->post_forward_count = 0;
    while (builder->pending_reduce_count > 0)
        drain_oldest_reduce(builder);
}

/* 27, 58: the units whose output's gradient is there: of the run, and of those it lies in. Under a
   reentrant checkpoint what is inside has no output yet before the recompute. */
static void begin_units(struct fsdp2_builder *builder, int32_t r, bool is_before_recompute)
{
    int32_t unit;
    while ((unit = fsdp_begin_next(&builder->fsdp, r, is_before_recompute)) > 0)
        pre_backward(builder, unit);
}

static void begin_root(struct fsdp2_builder *builder)
{
    if (!builder->fsdp.units[0].has_begun)
        pre_backward(builder, 0);
    builder->fsdp.units[0].has_begun = true;
}

void fsdp2_backward(struct fsdp2_builder *builder)
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
            fsdp2_recompute(builder, r);
            continue;
        }
        begin_units(builder, r, false);
        fsdp_play_backward(fsdp, run);
        for (int32_t unit = run->unit; unit > 0; unit = fsdp->units[unit].parent)
            if (runs->last[unit] == r && !builder->units[unit].reduces_at_end)
                post_backward(builder, unit);
    }
    end_of_backward(builder);
    fsdp_op(fsdp, OP_MARK, FSDP2_COMPUTE, -1, MARK_BACKWARD_END);
}
