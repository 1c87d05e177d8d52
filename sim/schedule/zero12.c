/* schedule/zero12.c: ZeRO stages 1 and 2: every GPU keeps all parameters. See zero_private.h. */
#include "schedule/zero_private.h"

/* Stage 1 keeps whole gradients until the last microbatch has been reduced. */
static void add_kept_grads(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    builder->kept_grads = ARENA_ARRAY(fsdp->arena, int32_t, fsdp->model->module_count);
    for (int32_t i = 0; i < fsdp->model->module_count; i++) {
        const struct module_kind *kind = fsdp_kind(fsdp, i);
        builder->kept_grads[i] = fsdp_add_tensor(
            fsdp,
            (struct tensor){
                .name = ARENA_JOIN(fsdp->arena, "gradients(", fsdp->model->modules[i].name, ")"),
                .bytes = builder->stage == 1 ? kind->numel * zero_param_bytes(builder) : 0,
                .category = MEMORY_GRADIENTS,
                .unit = fsdp->modules[i].unit});
        fsdp_split_module_grads(fsdp, builder->kept_grads[i], i);
    }
}

/*
 * 96: the updated parameters, in pieces of at least allgather_bucket_size elements; or a broadcast
 * of each GPU's part. A broadcast of S bytes goes once round the ring, as a gather of S · n / (n -
 * 1) does: the same steps, the same bytes on each link; it is played as one.
 */
static void add_updates(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_config *zero = &fsdp->settings->zero;
    const int64_t ranks = zero_ranks(builder);
    int64_t shard = 0;
    for (int32_t i = 0; i < fsdp->unit_count; i++)
        shard += fsdp->units[i].shard;
    const int64_t whole = shard * ranks / zero->allgather_bucket_size;
    const int64_t pieces = !zero->allgather_partitions ? ranks : whole > 1 ? whole : 1;
    double bytes = (double)(shard * ranks) / (double)pieces * (double)zero_param_bytes(builder);
    if (!zero->allgather_partitions && ranks > 1)
        bytes *= (double)ranks / (double)(ranks - 1);
    const int32_t update =
        fsdp_add_collective(fsdp, COLLECTIVE_ALL_GATHER, zero_has_replicas(builder) ? 1 : 0, bytes);
    for (int64_t i = 0; i < pieces && ranks > 1; i++)
        *ARENA_PUSH(fsdp->arena, &builder->updates) = update;
}

void zero12_setup(struct zero_builder *builder)
{
    add_kept_grads(builder);
    add_updates(builder);
    builder->drained_event = fsdp_add_event(&builder->fsdp, "drained", "reduction");
}

static void forward(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    fsdp_op(fsdp, OP_MARK, ZERO_COMPUTE, -1, MARK_FORWARD_BEGIN);
    for (int32_t i = 0; i < fsdp->model->module_count; i++)
        fsdp_run_forward(fsdp, i);
    fsdp_op(fsdp, OP_MARK, ZERO_COMPUTE, -1, MARK_FORWARD_END);
}

/* `reduces`: the hooks copy gradients into buckets and reduce those that are full. */
static void run_module(struct zero_builder *builder, int32_t index, bool is_first, bool reduces,
                       int32_t *made)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct fsdp_module *module = &fsdp->modules[index];
    const int32_t kind_idx = fsdp->model->modules[index].kind_idx;
    const struct zero_kind *kind = &builder->kinds[kind_idx];
    const struct fsdp_gradients *gradients = &fsdp->gradients[kind_idx];
    const bool is_kept = builder->kept_grads[index] >= 0;
    const bool is_passing = !is_kept || !is_first;
    fsdp_begin_backward(fsdp, index);
    if (is_first)
        fsdp_alloc(fsdp, module->unit, builder->kept_grads[index]);
    if (is_passing)
        fsdp_alloc(fsdp, module->unit, module->grads);
    if (gradients->count == 0)
        fsdp_issue(fsdp, module->unit, module->backward);
    for (int32_t g = 0; g < gradients->count; g++) {
        fsdp_issue(fsdp, module->unit, is_kept && !is_first ? kind->sums[g] : kind->slices[g]);
        ++*made;
        if (!reduces)
            continue;
        fsdp_host(fsdp, HOST_ZERO_GRAD, module->unit, gradients->items[g].tensors);
        if (is_kept)
            fsdp_op(fsdp, OP_SEGMENT, ZERO_COMPUTE, module->unit, kind->copies[g]);
        zero_reduce_ready(builder, *made, false, module->unit);
    }
    fsdp_end_backward(fsdp, index);
    if (is_passing)
        fsdp_free(fsdp, module->unit, module->grads);
    if (reduces)
        fsdp_free(fsdp, module->unit, builder->kept_grads[index]);
}

/* Stage 1 without overlap_comm: all of it when the last backward is over. */
static void reduce_kept(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    int32_t made = 0;
    for (int32_t i = fsdp->model->module_count - 1; i >= 0; i--) {
        const int32_t kind_idx = fsdp->model->modules[i].kind_idx;
        const struct fsdp_gradients *gradients = &fsdp->gradients[kind_idx];
        const int32_t unit = fsdp->modules[i].unit;
        for (int32_t g = 0; g < gradients->count; g++) {
            fsdp_host(fsdp, HOST_ZERO_GRAD, unit, gradients->items[g].tensors);
            fsdp_op(fsdp, OP_SEGMENT, ZERO_COMPUTE, unit, builder->kinds[kind_idx].copies[g]);
            zero_reduce_ready(builder, ++made, false, unit);
        }
        fsdp_free(fsdp, unit, builder->kept_grads[i]);
    }
    zero_reduce_ready(builder, made, true, -1);
}

static void backward(struct zero_builder *builder, bool is_first, bool is_last)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const bool reduces = builder->stage == 2 || (builder->overlaps && is_last);
    int32_t made = 0;
    builder->reduced_count = 0;
    if (is_first)
        for (int i = 0; i < 2; i++)
            fsdp_flagged_op(fsdp, OP_ALLOC, OP_FIRST_STEP, -1, builder->buffers[i]);
    for (int32_t i = fsdp->model->module_count - 1; i >= 0; i--)
        run_module(builder, i, is_first, reduces, &made);
    if (reduces)
        zero_reduce_ready(builder, made, true, -1);
    else if (is_last)
        reduce_kept(builder);
    if (builder->overlaps && builder->reduced_count > 0) {
        fsdp_op(fsdp, OP_RECORD, ZERO_REDUCE, -1, builder->drained_event);
        fsdp_op(fsdp, OP_WAIT, ZERO_COMPUTE, -1, builder->drained_event);
    }
    fsdp_op(fsdp, OP_MARK, ZERO_COMPUTE, -1, MARK_BACKWARD_END);
}

void zero12_microbatch(struct zero_builder *builder, bool is_first, bool is_last)
{
    forward(builder);
    backward(builder, is_first, is_last);
    builder->has_partition = builder->stage == 2;
}

void zero12_gather_updates(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    fsdp_free(fsdp, -1, builder->partition);
    builder->has_partition = false;
    for (int32_t i = 0; i < builder->updates.count && zero_ranks(builder) > 1; i++)
        fsdp_op(fsdp, OP_COLLECTIVE, ZERO_COMPUTE, -1, builder->updates.items[i]);
}
