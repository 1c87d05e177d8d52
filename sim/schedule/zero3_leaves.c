/*
 * schedule/zero3_leaves.c: ZeRO stage 3: the submodules that own parameters, which are fetched one
 * by one, and the order in which a step visits them.
 *
 * Example: a Llama block is seven linears and two norms, nine leaves; norms that persist have no
 * elements to fetch. Before DeepSpeed 0.6 parameters are gathered one by one: each is a leaf.
 */
#include <string.h>

#include "schedule/zero_private.h"

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
        const bool begins = p == 0 || !same_owner(&kind->params[p - 1], param);
        if (begins || builder->is_blocking)
            builder->leaves[builder->leaf_count++] = (struct zero_leaf){
                .begins_submodule = begins,
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
