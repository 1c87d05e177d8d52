/* schedule/fsdp2.c: FSDP2 (`fully_shard`): the step and its forward. See fsdp2_private.h. */
#include "schedule/fsdp2_private.h"

static void wait_on_gather_streams(struct fsdp2_builder *builder, int32_t unit, int32_t event)
{
    fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_COPY_IN, unit, event);
    fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_ALL_GATHER, unit, event);
}

/* 10, 11: what this rank holds, into its part of the buffer. A slice has param_dtype already. */
static void copy_in(struct fsdp2_builder *builder, int32_t index)
{
    const struct fsdp2_unit *unit = &builder->units[index];
    if (unit->has_slice) {
        wait_on_gather_streams(builder, index, unit->resharded);
        fsdp_alloc(&builder->fsdp, index, unit->gather_buffer);
        fsdp_op(&builder->fsdp, OP_SEGMENT, FSDP2_COPY_IN, index, unit->copy_in_slice);
        return;
    }
    fsdp_bring_shard(&builder->fsdp, index, FSDP2_COPY_IN, unit->copied_in); /* 14 */
    fsdp_alloc(&builder->fsdp, index, unit->cast);
    fsdp_alloc(&builder->fsdp, index, unit->gather_buffer);
    fsdp_op(&builder->fsdp, OP_SEGMENT, FSDP2_COPY_IN, index, unit->copy_in);
    fsdp_free(&builder->fsdp, index, unit->cast);
    fsdp_free(&builder->fsdp, index, unit->common->device_shard);
}

/* 9, 11-13: issue the all-gather, unless it is under way or the unit is gathered already. */
void fsdp2_unshard(struct fsdp2_builder *builder, int32_t index, bool is_backward)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (unit->common->param_count == 0 || unit->is_pending || unit->is_unsharded ||
        (is_backward && !unit->is_needed_in_backward))
        return;
    unit->is_pending = true;
    copy_in(builder, index);
    fsdp_op(&builder->fsdp, OP_RECORD, FSDP2_COPY_IN, index, unit->copied_in);
    fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_ALL_GATHER, index, unit->copied_in);
    if (fsdp_is_sharded(&builder->fsdp))
        fsdp_op(&builder->fsdp, OP_COLLECTIVE, FSDP2_ALL_GATHER, index,
                unit->has_slice ? unit->all_gather_slices : unit->all_gather);
    fsdp_op(&builder->fsdp, OP_RECORD, FSDP2_ALL_GATHER, index, unit->gathered);
}

/* 15: the buffer of the unit before is released when this one is about to be copied out. */
static void release_parked(struct fsdp2_builder *builder)
{
    if (builder->parked_unit < 0)
        return;
    const struct fsdp2_unit *parked = &builder->units[builder->parked_unit];
    wait_on_gather_streams(builder, builder->parked_unit, parked->copied_out);
    fsdp_free(&builder->fsdp, builder->parked_unit, parked->gather_buffer);
    builder->parked_unit = -1;
}

void fsdp2_free_slice(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (unit->has_slice)
        fsdp_free(&builder->fsdp, index, unit->post_forward_shard);
    unit->has_slice = false;
}

/* 15-18: compute waits for the all-gather and copies it out into the parameters. */
void fsdp2_wait_for_unshard(struct fsdp2_builder *builder, int32_t index, bool is_backward)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (!unit->is_pending)
        return;
    if (!is_backward)
        release_parked(builder);
    fsdp_op(&builder->fsdp, OP_WAIT, FSDP2_COMPUTE, index, unit->gathered);
    fsdp_alloc(&builder->fsdp, index, unit->params);
    fsdp_op(&builder->fsdp, OP_SEGMENT, FSDP2_COMPUTE, index, unit->copy_out);
    fsdp_op(&builder->fsdp, OP_RECORD, FSDP2_COMPUTE, index, unit->copied_out);
    fsdp2_free_slice(builder, index);
    if (is_backward) {
        wait_on_gather_streams(builder, index, unit->copied_out);
        fsdp_free(&builder->fsdp, index, unit->gather_buffer);
    } else {
        builder->parked_unit = index;
    }
    unit->is_pending = false;
    unit->is_unsharded = true;
}

/* 19: hooks, all-gather, wait; then the units of the explicit list. In a recompute the buffer goes
   at once; PyTorch parks it until the next one. */
static void pre_forward(struct fsdp2_builder *builder, int32_t index, bool is_recompute)
{
    fsdp_host(&builder->fsdp, HOST_HOOK, index, 1);
    if (builder->units[index].common->param_count > 0)
        fsdp_host(&builder->fsdp, HOST_HOOK_PARAM, index,
                  builder->units[index].common->param_count);
    fsdp2_unshard(builder, index, false);
    fsdp2_wait_for_unshard(builder, index, is_recompute);
    /* The root has no list of units to prefetch. */
    const int64_t ahead = index > 0 ? builder->fsdp.settings->fsdp.forward_prefetch : 0;
    for (int64_t i = 1; i <= ahead && index + i < builder->fsdp.unit_count; i++)
        fsdp2_unshard(builder, index + (int32_t)i, false);
}

/* 22: a slice of the parameters stays. */
static void keep_slice(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (unit->post_forward_shard < 0)
        return;
    fsdp_alloc(&builder->fsdp, index, unit->post_forward_shard);
    fsdp_op(&builder->fsdp, OP_SEGMENT, FSDP2_COMPUTE, index, unit->keep_slice);
    fsdp_op(&builder->fsdp, OP_RECORD, FSDP2_COMPUTE, index, unit->resharded);
    unit->has_slice = true;
}

/* 21 */
static void reshard_after_forward(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    if (!unit->is_resharded || !unit->is_unsharded)
        return;
    keep_slice(builder, index);
    fsdp_free(&builder->fsdp, index, unit->params);
    unit->is_unsharded = false;
}

/* 21: reshard, remember the order. */
static void post_forward(struct fsdp2_builder *builder, int32_t index)
{
    if (builder->units[index].common->param_count == 0)
        return;
    reshard_after_forward(builder, index);
    builder->units[index].post_forward_idx = builder->post_forward_count;
    builder->post_forward_order[builder->post_forward_count++] = index;
}

/* 59, 60: the forward of a unit that backward has not reached yet runs again, hooks and all. The
   order of forwards stays that of the first one. */
void fsdp2_recompute(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct fsdp_run *run = &fsdp->backward.items[index];
    for (int32_t unit = 1; unit < fsdp->unit_count; unit++)
        if (!fsdp->units[unit].has_begun && fsdp_is_inside(fsdp, run->unit, unit) &&
            fsdp_recompute_enters(fsdp, index, unit))
            pre_forward(builder, unit, true);
    fsdp_play_backward(fsdp, run);
    for (int32_t unit = run->unit; unit > 0; unit = fsdp->units[unit].parent)
        if (!fsdp->units[unit].has_begun && fsdp_recompute_leaves(fsdp, index, unit))
            reshard_after_forward(builder, unit);
}

static void forward(struct fsdp2_builder *builder)
{
    fsdp_op(&builder->fsdp, OP_MARK, FSDP2_COMPUTE, -1, MARK_FORWARD_BEGIN);
    /* 7: the gather streams wait for everything queued on compute, the optimizer included. */
    fsdp_op(&builder->fsdp, OP_RECORD, FSDP2_COMPUTE, 0, builder->root_event);
    wait_on_gather_streams(builder, 0, builder->root_event);
    pre_forward(builder, 0, false);
    const struct fsdp_runs *runs = &builder->fsdp.forward;
    int32_t next = 1;
    for (int32_t r = 0; r < runs->count; r++) {
        const struct fsdp_run *run = &runs->items[r];
        /* Units are numbered as forward reaches them. */
        while (next < builder->fsdp.unit_count && runs->first[next] == r)
            pre_forward(builder, next++, false);
        fsdp_play_forward(&builder->fsdp, run);
        for (int32_t unit = run->unit; unit > 0; unit = builder->fsdp.units[unit].parent)
            if (runs->last[unit] == r)
                post_forward(builder, unit);
        /* The root's forward ends before the loss. */
        if (run->unit >= 0 && (r + 1 == runs->count || runs->items[r + 1].unit < 0)) {
            post_forward(builder, 0);
            release_parked(builder);
        }
    }
    fsdp_op(&builder->fsdp, OP_MARK, FSDP2_COMPUTE, -1, MARK_FORWARD_END);
}

/* 40, 53-55: what this microbatch does. */
static void begin_microbatch(struct fsdp2_builder *builder, int64_t microbatch)
{
    const struct fsdp_builder *fsdp = &builder->fsdp;
    const struct fsdp_config *config = &fsdp->settings->fsdp;
    const bool defers = fsdp_is_replicated(fsdp) && config->defer_all_reduce;
    builder->syncs = fsdp_is_due(fsdp, config->requires_gradient_sync, microbatch);
    builder->all_reduces =
        fsdp_is_due(fsdp, defers ? MICROBATCH_LAST : MICROBATCH_EVERY, microbatch);
    builder->reshards_after_backward =
        fsdp_is_due(fsdp, config->reshard_after_backward, microbatch);
    builder->is_last_backward = fsdp_is_due(fsdp, config->is_last_backward, microbatch);
}

struct program *fsdp2_build(struct arena *arena, const struct model *model,
                            const struct policy_settings *settings)
{
    struct fsdp2_builder builder = {.fsdp = {.arena = arena,
                                             .model = model,
                                             .settings = settings,
                                             .program = ARENA_NEW(arena, struct program)},
                                    .parked_unit = -1};
    builder.fsdp.program->policy = "fsdp2";
    fsdp2_setup(&builder);
    fsdp_op(&builder.fsdp, OP_MARK, FSDP2_COMPUTE, -1, MARK_STEP_BEGIN);
    fsdp_host(&builder.fsdp, HOST_STEP, -1, 1);
    optimizer_free_gradients(&builder.fsdp);
    for (int64_t i = 0; i < settings->grad_accum; i++) {
        begin_microbatch(&builder, i);
        forward(&builder);
        fsdp2_backward(&builder);
    }
    optimizer_step(&builder.fsdp);
    fsdp_op(&builder.fsdp, OP_MARK, FSDP2_COMPUTE, -1, MARK_STEP_END);
    return builder.fsdp.program;
}
