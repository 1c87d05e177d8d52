/*
 * schedule/zero3_fetch.c: ZeRO stage 3: which parameters are gathered when, and how long they stay.
 *
 * The coordinator of DeepSpeed with a complete trace. At the hook of each submodule: gather what of
 * its parameters is not there and not under way; wait for what is; then gather ahead in the order
 * of the trace, at most `prefetch_bucket_size` elements (the last parameter may exceed it) and as
 * long as fewer than `max_live_parameters` are gathered. Behind a submodule its parameters are
 * released, unless the trace uses them again within `max_reuse_distance` elements.
 *
 * Gathering several parameters in one collective puts the shards side by side first and cuts the
 * parameters out of its buffer afterwards (2 B and 2 B an element), on the fetch stream.
 *
 * hpZ (ZeRO++, Wang et al. 2023, arXiv 2306.10209, section 3.2): when a parameter is first released
 * in a step, a GPU keeps 1/h of it, h = zero_hpz_partition_size; from then on backward gathers it
 * among those h neighbours alone. The update makes the copies void (invalidate_secondary_tensor).
 *
 * Left out: kernels inside a block start when all of the block's parameters are there.
 */
#include "schedule/zero_private.h"

/* ---- gathering ------------------------------------------------------------------------------ */

static void add_chunk_buffer(struct zero_builder *builder, struct zero_chunk *chunk)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_leaf *first = &builder->leaves[chunk->leaves[0]];
    const double moved = (double)(chunk->padded * zero_param_bytes(builder));
    chunk->buffer = chunk->copy_out = -1;
    if (chunk->tensors == 1 && !builder->is_blocking)
        return;
    chunk->buffer = fsdp_add_tensor(
        fsdp, (struct tensor){.name = ARENA_JOIN(fsdp->arena, "fetch_buffer(", first->name, ")"),
                              .bytes = (int64_t)moved,
                              .category = MEMORY_UNSHARDED_PARAMETERS,
                              .stream = (uint8_t)builder->fetch_stream,
                              .unit = first->unit});
    chunk->copy_out =
        fsdp_add_pass(fsdp, ARENA_JOIN(fsdp->arena, "cut(", first->name, ")"), KERNEL_CAST,
                      (enum dtype)fsdp->settings->precision.param_dtype, 2 * moved, false);
}

/* The collective of equal size that is in the table already, else a new one. */
static int32_t gather_of(struct zero_builder *builder, double bytes, bool is_secondary)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct program *program = fsdp->program;
    const int32_t communicator = is_secondary ? builder->secondary_communicator : 0;
    for (int32_t i = 0; i < program->collectives.count; i++)
        if (program->collectives.items[i].op == COLLECTIVE_ALL_GATHER &&
            program->collectives.items[i].communicator == communicator &&
            program->collectives.items[i].bytes == bytes)
            return i;
    return fsdp_add_collective(fsdp, COLLECTIVE_ALL_GATHER, communicator, bytes);
}

/* One collective for all of them. */
void zero3_gather(struct zero_builder *builder, const int32_t *leaves, int32_t count)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    struct zero_chunk *chunk = ARENA_PUSH(fsdp->arena, &builder->chunks);
    chunk->leaves = ARENA_ARRAY(fsdp->arena, int32_t, count);
    chunk->leaf_count = count;
    chunk->is_secondary = builder->is_backward && builder->leaves[leaves[0]].has_secondary;
    for (int32_t i = 0; i < count; i++) {
        struct zero_leaf *leaf = &builder->leaves[leaves[i]];
        chunk->leaves[i] = leaves[i];
        chunk->tensors += leaf->tensors;
        chunk->numel += leaf->numel;
        chunk->shard += chunk->is_secondary ? leaf->secondary_shard : leaf->shard;
        leaf->chunk = builder->chunks.count - 1;
    }
    const struct zero_leaf *first = &builder->leaves[leaves[0]];
    const int64_t ranks = chunk->is_secondary ? zero_secondary_ranks(builder) : zero_ranks(builder);
    chunk->padded = chunk->shard * ranks;
    const double bytes = (double)(chunk->padded * zero_param_bytes(builder));
    add_chunk_buffer(builder, chunk);
    chunk->gathered = fsdp_add_event(fsdp, "gathered", first->name);
    chunk->arrived = fsdp_add_event(fsdp, "arrived", first->name);
    builder->available += chunk->numel;
    fsdp_alloc(fsdp, first->unit, chunk->buffer >= 0 ? chunk->buffer : first->params);
    if (policy_offloads_params(fsdp->settings))
        zero_fetch_from_host(builder, chunk, first->unit);
    else if (chunk->buffer >= 0)
        fsdp_op(fsdp, OP_SEGMENT, builder->fetch_stream, first->unit,
                fsdp_add_pass(fsdp, "join_shards", KERNEL_CAST,
                              (enum dtype)fsdp->settings->precision.param_dtype,
                              2 * bytes / (double)ranks, false));
    fsdp_op(fsdp, OP_RECORD, builder->fetch_stream, first->unit, chunk->arrived);
    fsdp_op(fsdp, OP_WAIT, ZERO_GATHER, first->unit, chunk->arrived);
    fsdp_op(fsdp, OP_COLLECTIVE, ZERO_GATHER, first->unit,
            gather_of(builder, bytes, chunk->is_secondary));
    fsdp_op(fsdp, OP_RECORD, ZERO_GATHER, first->unit, chunk->gathered);
}

/* The host runs at most three fetches ahead of those that have arrived. */
static void hold_back(struct zero_builder *builder, int32_t event, int32_t unit)
{
    enum { MOST_WAITING = 3 };
    struct fsdp_builder *fsdp = &builder->fsdp;
    if (builder->waiting_count == MOST_WAITING) {
        fsdp_op(fsdp, OP_HOST_WAIT, ZERO_COMPUTE, unit, builder->waiting[0]);
        builder->waiting_count--;
        for (int32_t i = 0; i < builder->waiting_count; i++)
            builder->waiting[i] = builder->waiting[i + 1];
    }
    builder->waiting[builder->waiting_count++] = event;
}

/* Every parameter of a gather is cut out when the first of them is needed. */
void zero3_await(struct zero_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_chunk *chunk = &builder->chunks.items[index];
    const int32_t unit = builder->leaves[chunk->leaves[0]].unit;
    hold_back(builder, chunk->arrived, unit);
    fsdp_host(fsdp, HOST_ZERO_FETCH, unit, chunk->tensors);
    fsdp_op(fsdp, OP_WAIT, builder->fetch_stream, unit, chunk->gathered);
    for (int32_t i = 0; i < chunk->leaf_count; i++) {
        struct zero_leaf *leaf = &builder->leaves[chunk->leaves[i]];
        if (chunk->buffer >= 0)
            fsdp_alloc(fsdp, leaf->unit, leaf->params);
        leaf->chunk = -1;
        leaf->is_available = true;
    }
    fsdp_op(fsdp, OP_SEGMENT, builder->fetch_stream, unit, chunk->copy_out);
    fsdp_free(fsdp, unit, chunk->buffer);
    fsdp_op(fsdp, OP_RECORD, builder->fetch_stream, unit, chunk->arrived);
    fsdp_op(fsdp, OP_WAIT, ZERO_COMPUTE, unit, chunk->arrived);
}

bool zero3_is_missing(const struct zero_leaf *leaf)
{
    return leaf->numel > 0 && !leaf->is_available && leaf->chunk < 0;
}

static void prefetch(struct zero_builder *builder)
{
    const struct zero_config *zero = &builder->fsdp.settings->zero;
    const int64_t room = zero->max_live_parameters - builder->available;
    const int64_t most = room < zero->prefetch_bucket_size ? room : zero->prefetch_bucket_size;
    int32_t *chosen = ARENA_ARRAY(builder->fsdp.arena, int32_t, builder->leaf_count + 1);
    int32_t count = 0;
    int64_t numel = 0;
    while (builder->trace_at < builder->trace_count && numel < most) {
        const int32_t index = builder->trace[builder->trace_at++];
        struct zero_leaf *leaf = &builder->leaves[index];
        if (!zero3_is_missing(leaf) || leaf->is_chosen)
            continue;
        leaf->is_chosen = true;
        chosen[count++] = index;
        numel += leaf->numel;
    }
    for (int32_t i = 0; i < count; i++)
        builder->leaves[chosen[i]].is_chosen = false;
    if (count > 0)
        zero3_gather(builder, chosen, count);
}

void zero3_begin_trace(struct zero_builder *builder)
{
    builder->trace_at = 0;
    builder->waiting_count = 0;
    BUG_IF(builder->available != 0);
}

/* Submodules of a block that own no parameters have hooks too, and prefetch. */
void zero3_fetch(struct zero_builder *builder, int32_t index)
{
    enum { BLOCK_CALLS = 3 }; /* the block, its attention, its MLP */
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_visit *visit = &builder->visits[index];
    const int32_t unit = fsdp->modules[visit->module].unit;
    builder->is_backward = visit->is_backward;
    const bool is_block = fsdp_kind(fsdp, visit->module)->role == MODULE_BLOCK;
    const int32_t calls = is_block ? BLOCK_CALLS : 0;
    if (calls + visit->leaf_count > 0)
        fsdp_host(fsdp, HOST_ZERO_MODULE, unit, calls + visit->leaf_count);
    for (int32_t i = 0; i < calls; i++)
        prefetch(builder);
    for (int32_t i = 0; i < visit->leaf_count; i++) {
        struct zero_leaf *leaf = &builder->leaves[visit->leaves[i]];
        if (zero3_is_missing(leaf))
            zero3_gather(builder, &visit->leaves[i], 1);
        if (leaf->chunk >= 0)
            zero3_await(builder, leaf->chunk);
        if (builder->trace_at <= visit->entry + i)
            builder->trace_at = visit->entry + i + 1;
        prefetch(builder);
    }
}

/* ---- releasing ------------------------------------------------------------------------------ */

/* Whether the trace uses the leaf again before so many elements have passed. A block that is
   computed again passes its parameters twice. */
static bool is_reused(const struct zero_builder *builder, int32_t visit_idx, int32_t leaf_idx)
{
    const int64_t distance =
        builder->is_blocking ? 0 : builder->fsdp.settings->zero.max_reuse_distance;
    int64_t passed = 0;
    for (int32_t v = visit_idx + 1; v < builder->visit_count && passed < distance; v++) {
        const struct zero_visit *visit = &builder->visits[v];
        const struct module_kind *kind = fsdp_kind(&builder->fsdp, visit->module);
        for (int32_t i = 0; i < visit->leaf_count; i++)
            if (visit->leaves[i] == leaf_idx)
                return true;
        passed += visit->is_backward && kind->is_recomputed ? 2 * kind->numel : kind->numel;
    }
    return false;
}

static void keep_secondary(struct zero_builder *builder, struct zero_leaf *leaf)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    if (leaf->has_secondary || leaf->secondary < 0)
        return;
    fsdp_alloc(fsdp, leaf->unit, leaf->secondary);
    fsdp_op(fsdp, OP_SEGMENT, ZERO_COMPUTE, leaf->unit, leaf->keep_secondary);
    leaf->has_secondary = true;
}

void zero3_drop_secondary(struct zero_builder *builder)
{
    for (int32_t i = 0; i < builder->leaf_count; i++) {
        struct zero_leaf *leaf = &builder->leaves[i];
        if (leaf->has_secondary)
            fsdp_free(&builder->fsdp, leaf->unit, leaf->secondary);
        leaf->has_secondary = false;
    }
}

void zero3_free_leaf(struct zero_builder *builder, struct zero_leaf *leaf)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    if (builder->fetch_stream != ZERO_COMPUTE)
        fsdp_op(fsdp, OP_RECORD_STREAM, ZERO_COMPUTE, leaf->unit, leaf->params);
    fsdp_free(fsdp, leaf->unit, leaf->params);
    leaf->is_available = false;
    builder->available -= leaf->numel;
}

void zero3_release(struct zero_builder *builder, int32_t index)
{
    const struct zero_visit *visit = &builder->visits[index];
    for (int32_t i = 0; i < visit->leaf_count; i++) {
        struct zero_leaf *leaf = &builder->leaves[visit->leaves[i]];
        if (!leaf->is_available || is_reused(builder, index, visit->leaves[i]))
            continue;
        keep_secondary(builder, leaf);
        zero3_free_leaf(builder, leaf);
    }
}
