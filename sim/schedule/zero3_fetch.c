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
#include <string.h>

#include "schedule/zero_private.h"

/* ---- leaves and trace ----------------------------------------------------------------------- */

/* "self_attn.q_proj" of "self_attn.q_proj.weight". */
static size_t owner_length(const char *param)
{
    const char *dot = strrchr(param, '.');
    return dot != NULL ? (size_t)(dot - param) : 0;
}

static bool same_owner(const struct param *a, const struct param *b)
{
    const size_t length = owner_length(a->name);
    return length == owner_length(b->name) && strncmp(a->name, b->name, length) == 0;
}

static void add_to_leaf(struct zero_builder *builder, struct zero_leaf *leaf,
                        const struct param *param)
{
    const int64_t ranks = zero_ranks(builder), numel = param->dim0 * param->rest;
    const int64_t secondary = zero_secondary_ranks(builder);
    if (numel <= builder->fsdp.settings->zero.param_persistence_threshold || ranks == 1)
        return;
    leaf->numel += numel;
    leaf->shard += (numel + ranks - 1) / ranks;
    leaf->secondary_shard += (numel + secondary - 1) / secondary;
    leaf->tensors++;
}

static void add_leaf_tensor(struct zero_builder *builder, struct zero_leaf *leaf)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    leaf->params = fsdp_add_tensor(
        fsdp,
        (struct tensor){.name = ARENA_JOIN(fsdp->arena, "params(", leaf->name, ")"),
                        .bytes = leaf->shard * zero_ranks(builder) * zero_param_bytes(builder),
                        .category = MEMORY_UNSHARDED_PARAMETERS,
                        .stream = (uint8_t)builder->fetch_stream,
                        .unit = leaf->unit,
                        .pieces = leaf->tensors});
}

/* What hpZ keeps of a leaf from its first release in a step to the update. */
static void add_secondary(struct zero_builder *builder, struct zero_leaf *leaf)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const bool is_kept = zero_secondary_ranks(builder) > 1;
    const int64_t bytes = is_kept ? leaf->secondary_shard * zero_param_bytes(builder) : 0;
    leaf->secondary = fsdp_add_tensor(
        fsdp, (struct tensor){.name = ARENA_JOIN(fsdp->arena, "secondary(", leaf->name, ")"),
                              .bytes = bytes,
                              .category = MEMORY_UNSHARDED_PARAMETERS,
                              .unit = leaf->unit,
                              .pieces = leaf->tensors});
    leaf->keep_secondary =
        fsdp_add_pass(fsdp, ARENA_JOIN(fsdp->arena, "keep(", leaf->name, ")"), KERNEL_CAST,
                      (enum dtype)fsdp->settings->precision.param_dtype, 2 * (double)bytes, false);
}

/* The leaves of a module, from builder->leaf_count on. */
static int32_t add_leaves(struct zero_builder *builder, int32_t module)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct module_kind *kind = fsdp_kind(fsdp, module);
    const int32_t first = builder->leaf_count;
    for (int32_t p = 0; p < kind->param_count; p++) {
        const struct param *param = &kind->params[p];
        if (p == 0 || !same_owner(&kind->params[p - 1], param))
            builder->leaves[builder->leaf_count++] = (struct zero_leaf){
                .name = arena_printf(fsdp->arena, "%s.%.*s", fsdp->model->modules[module].name,
                                     (int)owner_length(param->name), param->name),
                .unit = fsdp->modules[module].unit,
                .chunk = -1};
        add_to_leaf(builder, &builder->leaves[builder->leaf_count - 1], param);
    }
    for (int32_t i = first; i < builder->leaf_count; i++) {
        add_leaf_tensor(builder, &builder->leaves[i]);
        add_secondary(builder, &builder->leaves[i]);
    }
    return builder->leaf_count - first;
}

/* Backward uses leaves in reverse, after the forward that a checkpointed block repeats. */
static void add_visit(struct zero_builder *builder, int32_t module, bool is_backward, int32_t first,
                      int32_t count)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const bool is_reversed = is_backward && !fsdp_kind(fsdp, module)->is_recomputed;
    int32_t *leaves = ARENA_ARRAY(fsdp->arena, int32_t, count + 1);
    for (int32_t i = 0; i < count; i++) {
        leaves[i] = is_reversed ? first + count - 1 - i : first + i;
        builder->trace[builder->trace_count + i] = leaves[i];
    }
    builder->visits[builder->visit_count++] = (struct zero_visit){.module = module,
                                                                  .is_backward = is_backward,
                                                                  .leaves = leaves,
                                                                  .leaf_count = count,
                                                                  .entry = builder->trace_count};
    builder->trace_count += count;
}

void zero3_add_trace(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct model *model = fsdp->model;
    int32_t params = 0;
    for (int32_t i = 0; i < model->module_count; i++)
        params += fsdp_kind(fsdp, i)->param_count;
    builder->leaves = ARENA_ARRAY(fsdp->arena, struct zero_leaf, params + 1);
    builder->trace = ARENA_ARRAY(fsdp->arena, int32_t, 4 * (params + 1));
    builder->visits = ARENA_ARRAY(fsdp->arena, struct zero_visit, 2 * model->module_count);
    int32_t *first = ARENA_ARRAY(fsdp->arena, int32_t, model->module_count);
    int32_t *count = ARENA_ARRAY(fsdp->arena, int32_t, model->module_count);
    for (int32_t i = 0; i < model->module_count; i++) {
        /* A tied head uses the embedding's table. */
        const bool is_tied = model->is_tied && fsdp_kind(fsdp, i)->role == MODULE_HEAD;
        first[i] = is_tied ? first[0] : builder->leaf_count;
        count[i] = is_tied ? (count[0] > 0 ? 1 : 0) : add_leaves(builder, i);
        add_visit(builder, i, false, first[i], count[i]);
    }
    for (int32_t i = model->module_count - 1; i >= 0; i--)
        add_visit(builder, i, true, first[i], count[i]);
}

/* ---- gathering ------------------------------------------------------------------------------ */

static void add_chunk_buffer(struct zero_builder *builder, struct zero_chunk *chunk)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_leaf *first = &builder->leaves[chunk->leaves[0]];
    const double moved = (double)(chunk->padded * zero_param_bytes(builder));
    chunk->buffer = chunk->copy_out = -1;
    if (chunk->tensors == 1)
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
static void gather(struct zero_builder *builder, const int32_t *leaves, int32_t count)
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
static void wait_for(struct zero_builder *builder, int32_t index)
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

static bool is_missing(const struct zero_leaf *leaf)
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
        if (!is_missing(leaf) || leaf->is_chosen)
            continue;
        leaf->is_chosen = true;
        chosen[count++] = index;
        numel += leaf->numel;
    }
    for (int32_t i = 0; i < count; i++)
        builder->leaves[chosen[i]].is_chosen = false;
    if (count > 0)
        gather(builder, chosen, count);
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
        if (is_missing(leaf))
            gather(builder, &visit->leaves[i], 1);
        if (leaf->chunk >= 0)
            wait_for(builder, leaf->chunk);
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
    const int64_t distance = builder->fsdp.settings->zero.max_reuse_distance;
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

void zero3_release(struct zero_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_visit *visit = &builder->visits[index];
    for (int32_t i = 0; i < visit->leaf_count; i++) {
        struct zero_leaf *leaf = &builder->leaves[visit->leaves[i]];
        if (!leaf->is_available || is_reused(builder, index, visit->leaves[i]))
            continue;
        keep_secondary(builder, leaf);
        if (builder->fetch_stream != ZERO_COMPUTE)
            fsdp_op(fsdp, OP_RECORD_STREAM, ZERO_COMPUTE, leaf->unit, leaf->params);
        fsdp_free(fsdp, leaf->unit, leaf->params);
        leaf->is_available = false;
        builder->available -= leaf->numel;
    }
}
