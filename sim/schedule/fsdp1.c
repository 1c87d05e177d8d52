/* schedule/fsdp1.c: FSDP1 (FullyShardedDataParallel): the step and its forward. See
 * fsdp1_private.h. */
#include <string.h>

#include "schedule/fsdp1_private.h"

bool fsdp1_has_params(const struct fsdp1_builder *builder, int32_t unit)
{
    return builder->units[unit].common->param_count > 0;
}

/* 77: with two or more free events queued the host blocks until the oldest has happened; also where
   nothing is to be gathered. */
static void limit(struct fsdp1_builder *builder, int32_t index)
{
    enum { MOST_IN_FLIGHT = 2 };
    struct free_queue *queue = &builder->queue;
    if (queue->count < MOST_IN_FLIGHT)
        return;
    const struct free_event oldest = queue->items[0];
    queue->count--;
    memmove(queue->items, queue->items + 1, (size_t)queue->count * sizeof(oldest));
    if (oldest.is_of_last_step) {
        fsdp_flagged_op(&builder->fsdp, OP_HOST_WAIT, OP_LATER_STEPS, index, oldest.event);
        fsdp_flagged_op(&builder->fsdp, OP_HOST_WORK, OP_LATER_STEPS, index, HOST_LIMITER_WAKE);
    } else {
        fsdp_op(&builder->fsdp, OP_HOST_WAIT, FSDP1_COMPUTE, index, oldest.event);
        fsdp_host(&builder->fsdp, HOST_LIMITER_WAKE, index, 1);
    }
}

/* 74: cast, limiter, all-gather into the flat parameter; views of it become the parameters. */
void fsdp1_unshard(struct fsdp1_builder *builder, int32_t index, bool is_backward)
{
    struct fsdp1_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const bool gathers = !unit->is_gathered;
    if (gathers && (unit->cast_shard >= 0 || fsdp_offloads(fsdp))) {
        fsdp_bring_shard(fsdp, index, FSDP1_PRE_UNSHARD, unit->pre_unsharded);
        fsdp_alloc(fsdp, index, unit->cast);
        fsdp_op(fsdp, OP_SEGMENT, FSDP1_PRE_UNSHARD, index, unit->cast_shard);
        if (unit->cast_shard >= 0)
            fsdp_free(fsdp, index, unit->common->device_shard);
        fsdp_op(fsdp, OP_RECORD, FSDP1_PRE_UNSHARD, index, unit->pre_unsharded);
        fsdp_op(fsdp, OP_WAIT, FSDP1_UNSHARD, index, unit->pre_unsharded);
    }
    limit(builder, index);
    if (gathers) {
        fsdp_alloc(fsdp, index, unit->flat_params);
        if (fsdp_is_sharded(fsdp))
            fsdp_op(fsdp, OP_COLLECTIVE, FSDP1_UNSHARD, index, unit->all_gather);
        const int32_t gathered = unit->cast_shard >= 0 ? unit->cast : unit->common->device_shard;
        fsdp_op(fsdp, OP_RECORD_STREAM, FSDP1_UNSHARD, index, gathered);
        fsdp_free(fsdp, index, gathered);
        unit->is_gathered = true;
    }
    /* SHARD_GRAD_OP leaves the views as they are after forward; FULL_SHARD renews the root's. */
    const bool is_full = sharding_frees_after_forward(fsdp->settings->fsdp.sharding_strategy);
    if (gathers || (is_backward && index == 0 && is_full))
        fsdp_host(fsdp, HOST_FLAT_VIEW, index, unit->common->param_count);
}

/* 75: for all that the unshard stream was given so far. */
void fsdp1_wait_for_unshard(struct fsdp1_builder *builder, int32_t index)
{
    const struct fsdp1_unit *unit = &builder->units[index];
    fsdp_op(&builder->fsdp, OP_RECORD, FSDP1_UNSHARD, index, unit->unsharded);
    fsdp_op(&builder->fsdp, OP_WAIT, FSDP1_COMPUTE, index, unit->unsharded);
}

/* 76: the block returns to the pool when compute has passed; the limiter remembers when. */
void fsdp1_reshard(struct fsdp1_builder *builder, int32_t index, bool frees, bool is_backward)
{
    struct fsdp1_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    unit->is_prefetched = false;
    if (!frees)
        return;
    if (builder->uses_orig_params)
        fsdp_host(fsdp, HOST_ORIG_PARAM, index, unit->common->param_count);
    fsdp_op(fsdp, OP_RECORD_STREAM, FSDP1_COMPUTE, index, unit->flat_params);
    fsdp_free(fsdp, index, unit->flat_params);
    unit->is_gathered = false;
    if (!fsdp->settings->fsdp.limit_all_gathers || !fsdp_is_sharded(fsdp))
        return;
    const int32_t event = is_backward ? unit->backward_freed : unit->forward_freed;
    fsdp_op(fsdp, OP_RECORD, FSDP1_COMPUTE, index, event);
    *ARENA_PUSH(fsdp->arena, &builder->queue) = (struct free_event){.unit = index, .event = event};
}

/* 75: gather unless prefetched, wait. */
static void enter_forward(struct fsdp1_builder *builder, int32_t index)
{
    if (!fsdp1_has_params(builder, index))
        return;
    fsdp_host(&builder->fsdp, HOST_HOOK, index, 1);
    if (!builder->units[index].is_prefetched)
        fsdp1_unshard(builder, index, false);
    fsdp1_wait_for_unshard(builder, index);
}

/* 81: perhaps the unit that follows is prefetched; not in a recompute, as that one has had its
   forward (_prefetch_handle asks for _needs_pre_forward_unshard). */
static void pre_forward(struct fsdp1_builder *builder, int32_t index)
{
    const int32_t next = index + 1;
    enter_forward(builder, index);
    if (!fsdp1_has_params(builder, index) || builder->fsdp.settings->fsdp.forward_prefetch == 0 ||
        next == builder->fsdp.unit_count)
        return;
    fsdp1_unshard(builder, next, false);
    builder->units[next].is_prefetched = true;
}

static void post_forward(struct fsdp1_builder *builder, int32_t index)
{
    if (!fsdp1_has_params(builder, index))
        return;
    struct fsdp1_unit *unit = &builder->units[index];
    unit->post_forward_idx = builder->post_forward_count;
    builder->post_forward_order[builder->post_forward_count++] = index;
    fsdp1_reshard(builder, index, unit->is_resharded, false);
    /* Hooks on the outputs, for which there must be a graph. */
    unit->needs_backward_unshard = index == 0 || (builder->fsdp.backward.first[index] >= 0 &&
                                                  !fsdp_is_under_checkpoint(&builder->fsdp, index));
}

/* The forward of a unit that backward has not reached yet runs again, hooks and all; the order of
   forwards is that of the first one. */
void fsdp1_recompute(struct fsdp1_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct fsdp_run *run = &fsdp->backward.items[index];
    for (int32_t unit = 1; unit < fsdp->unit_count; unit++)
        if (!fsdp->units[unit].has_begun && fsdp_is_inside(fsdp, run->unit, unit) &&
            fsdp_recompute_enters(fsdp, index, unit))
            enter_forward(builder, unit);
    fsdp_play_backward(fsdp, run);
    for (int32_t unit = run->unit; unit > 0; unit = fsdp->units[unit].parent)
        if (!fsdp->units[unit].has_begun && fsdp_recompute_leaves(fsdp, index, unit)) {
            fsdp1_reshard(builder, unit, builder->units[unit].is_resharded, false);
            builder->units[unit].needs_backward_unshard = true;
        }
}

static void forward(struct fsdp1_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    builder->post_forward_count = 0;
    fsdp_op(fsdp, OP_MARK, FSDP1_COMPUTE, -1, MARK_FORWARD_BEGIN);
    /* The gather streams wait for everything queued on compute, the optimizer included. */
    fsdp_op(fsdp, OP_RECORD, FSDP1_COMPUTE, 0, builder->root_event);
    fsdp_op(fsdp, OP_WAIT, FSDP1_UNSHARD, 0, builder->root_event);
    fsdp_op(fsdp, OP_WAIT, FSDP1_PRE_UNSHARD, 0, builder->root_event);
    pre_forward(builder, 0);
    const struct fsdp_runs *runs = &fsdp->forward;
    int32_t next = 1;
    for (int32_t r = 0; r < runs->count; r++) {
        const struct fsdp_run *run = &runs->items[r];
        /* Units are numbered as forward reaches them. */
        while (next < fsdp->unit_count && runs->first[next] == r)
            pre_forward(builder, next++);
        fsdp_play_forward(fsdp, run);
        for (int32_t unit = run->unit; unit > 0; unit = fsdp->units[unit].parent)
            if (runs->last[unit] == r)
                post_forward(builder, unit);
        /* The root's forward ends before the loss. */
        if (run->unit >= 0 && (r + 1 == runs->count || runs->items[r + 1].unit < 0))
            post_forward(builder, 0);
    }
    fsdp_op(fsdp, OP_MARK, FSDP1_COMPUTE, -1, MARK_FORWARD_END);
}

static void write_step(struct fsdp1_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    fsdp_op(fsdp, OP_MARK, FSDP1_COMPUTE, -1, MARK_STEP_BEGIN);
    fsdp_host(fsdp, HOST_STEP, -1, 1);
    optimizer_free_gradients(fsdp);
    for (int64_t i = 0; i < fsdp->settings->grad_accum; i++) {
        builder->syncs = fsdp_is_due(fsdp, fsdp->settings->fsdp.requires_gradient_sync, i);
        forward(builder);
        fsdp1_backward(builder);
    }
    optimizer_step(fsdp);
    fsdp_op(fsdp, OP_MARK, FSDP1_COMPUTE, -1, MARK_STEP_END);
}

static bool queues_equal(const struct free_queue *a, const struct free_queue *b)
{
    if (a->count != b->count)
        return false;
    for (int32_t i = 0; i < a->count; i++)
        if (a->items[i].event != b->items[i].event)
            return false;
    return true;
}

struct program *fsdp1_build(struct arena *arena, const struct model *model,
                            const struct policy_settings *settings)
{
    struct fsdp1_builder builder = {.fsdp = {.arena = arena,
                                             .model = model,
                                             .settings = settings,
                                             .program = ARENA_NEW(arena, struct program)},
                                    /* torch.compile accepts no others. */
                                    .uses_orig_params =
                                        settings->fsdp.use_orig_params || settings->is_compiled};
    builder.fsdp.program->policy = "fsdp1";
    fsdp1_setup(&builder);
    struct free_queue before;
    int32_t tries = 0;
    do {
        BUG_IF(++tries > builder.fsdp.unit_count + 4);
        before = (struct free_queue){0};
        for (int32_t i = 0; i < builder.queue.count; i++) {
            builder.queue.items[i].is_of_last_step = true;
            *ARENA_PUSH(arena, &before) = builder.queue.items[i];
        }
        builder.fsdp.program->step.count = 0;
        write_step(&builder);
    } while (!queues_equal(&before, &builder.queue));
    return builder.fsdp.program;
}
