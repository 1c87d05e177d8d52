/*
 * schedule/zero3_blocking.c: ZeRO stage 3 as DeepSpeed had it before 0.6 (zero.coordinator:
 * blocking).
 *
 * Source: runtime/zero/stage3.py and partition_parameters.py of spring 2021 (0.3.16), as they shape
 * time:
 *
 *   fetch    parameter by parameter; the host waits for the whole GPU (torch.cuda.synchronize)
 *            before and behind each gather; nothing is gathered ahead and nothing kept, because the
 *            trace is off by one (DeepSpeed issue 1069): a checkpointed block is gathered three
 *            times a microbatch. Passes over a parameter of n elements of B bytes: B n to zero it,
 *            2 B n out of the list that c10d gathers into, B n for a norm that is computed to be
 *            printed
 *   reduce   a gradient that would overflow the bucket has the bucket reduced first; one that is
 *            larger than a bucket is reduced by itself, beside the next one. Without reduce_scatter
 *            the whole buffer is all-reduced each time, however little is in it. The reduction does
 *            not wait for compute, and runs beside the kernels that make the gradient whose hook
 *            starts it; the next gather waits for it
 *
 * Example, a bucket of 4 elements and gradients of 1, 8, 1, 8, 1, all-reduced: in front of the
 * first 8 a buffer of 4; in front of each 1 behind an 8 the buffer and the 8, 12; in front of the
 * second 8 a buffer of 4; at the end one more: 4 + 12 + 4 + 12 + 4 = 36 for 19 elements.
 *
 * Left out: views and copies of the list on the host, one a GPU; norms of parameters that persist.
 */
#include "schedule/zero_private.h"

/* ---- reductions ----------------------------------------------------------------------------- */

struct filling {
    int64_t elements;  /* since the last reduction */
    int64_t oversized; /* of them, in a gradient larger than the bucket */
    int32_t tensors;
};

static void close_bucket(struct zero_builder *builder, struct filling *filling, int32_t made)
{
    const struct zero_config *zero = &builder->fsdp.settings->zero;
    const bool goes_whole = zero->contiguous_gradients && !zero->reduce_scatter;
    *ARENA_PUSH(builder->fsdp.arena, &builder->buckets) = (struct zero_bucket){
        .numel = filling->elements,
        .sent = goes_whole ? zero->reduce_bucket_size + filling->oversized : filling->elements,
        .tensors = filling->tensors,
        .gradient_end = made};
    *filling = (struct filling){0};
}

/* Whether there is anything to reduce: an empty buffer goes too, an empty list does not. */
static bool has_content(const struct zero_builder *builder, const struct filling *filling)
{
    const struct zero_config *zero = &builder->fsdp.settings->zero;
    return filling->elements > 0 || (zero->contiguous_gradients && !zero->reduce_scatter);
}

/* Hooks run from a module's last parameter to its first; where a product makes a weight's gradient,
   that of its bias comes with it. `base`: gradients made before this module. */
static void fill_from_module(struct zero_builder *builder, int32_t module, int32_t base,
                             struct filling *filling)
{
    const struct fsdp_builder *fsdp = &builder->fsdp;
    const struct module_kind *kind = fsdp_kind(fsdp, module);
    const struct fsdp_gradients *gradients =
        &fsdp->gradients[fsdp->model->modules[module].kind_idx];
    const int64_t size = fsdp->settings->zero.reduce_bucket_size;
    int32_t item = 0;
    for (int32_t p = kind->param_count - 1; p >= 0; p--) {
        const int64_t numel = kind->params[p].dim0 * kind->params[p].rest;
        if (kind->params[p].is_frozen)
            continue;
        if (filling->elements + numel > size && has_content(builder, filling))
            close_bucket(builder, filling, base + item);
        filling->elements += numel;
        filling->oversized = numel > size ? numel : filling->oversized;
        filling->tensors++;
        if (item < gradients->count - 1 && numel == gradients->items[item].numel)
            item++;
    }
}

void zero3_fill_reductions(struct zero_builder *builder)
{
    const struct fsdp_builder *fsdp = &builder->fsdp;
    struct filling filling = {0};
    int32_t made = 0;
    for (int32_t i = fsdp->model->module_count - 1; i >= 0; i--) {
        fill_from_module(builder, i, made, &filling);
        made += fsdp->gradients[fsdp->model->modules[i].kind_idx].count;
    }
    close_bucket(builder, &filling, made);
}

/* ---- fetching ------------------------------------------------------------------------------- */

void zero3_blocking_setup(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const enum dtype dtype = (enum dtype)fsdp->settings->precision.param_dtype;
    builder->idle_event = fsdp_add_event(fsdp, "idle", "compute");
    builder->begun_event = fsdp_add_event(fsdp, "begun", "gradient");
    for (int32_t i = 0; i < builder->leaf_count; i++) {
        struct zero_leaf *leaf = &builder->leaves[i];
        const double bytes = (double)leaf->numel * (double)zero_param_bytes(builder);
        leaf->fill = fsdp_add_pass(fsdp, ARENA_JOIN(fsdp->arena, "zeros(", leaf->name, ")"),
                                   KERNEL_CAST, dtype, bytes, false);
        leaf->norm = fsdp_add_pass(fsdp, ARENA_JOIN(fsdp->arena, "norm(", leaf->name, ")"),
                                   KERNEL_REDUCE, dtype, bytes, false);
    }
}

/* The host waits for compute and for reductions; gathers are over when it comes here. */
static void await_device(struct zero_builder *builder, int32_t unit)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    fsdp_op(fsdp, OP_RECORD, ZERO_COMPUTE, unit, builder->idle_event);
    fsdp_op(fsdp, OP_HOST_WAIT, ZERO_COMPUTE, unit, builder->idle_event);
    if (builder->overlaps && builder->reduced_count > 0)
        fsdp_op(fsdp, OP_HOST_WAIT, ZERO_COMPUTE, unit,
                builder->buckets.items[builder->reduced_count - 1].reduced);
}

static void fetch_leaf(struct zero_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    struct zero_leaf *leaf = &builder->leaves[index];
    if (!zero3_is_missing(leaf))
        return;
    await_device(builder, leaf->unit);
    fsdp_op(fsdp, OP_SEGMENT, builder->fetch_stream, leaf->unit, leaf->fill);
    zero3_gather(builder, &index, 1);
    zero3_await(builder, leaf->chunk);
    fsdp_op(fsdp, OP_SEGMENT, ZERO_COMPUTE, leaf->unit, leaf->norm);
    await_device(builder, leaf->unit);
}

/* A checkpointed block has its forward again, which releases what it fetched, and then backward. */
void zero3_blocking_fetch(struct zero_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_visit *visit = &builder->visits[index];
    const bool is_repeated = visit->is_backward && fsdp_kind(fsdp, visit->module)->is_recomputed;
    const int32_t count = visit->leaf_count, passes = is_repeated ? 2 : 1;
    builder->is_backward = visit->is_backward;
    int32_t submodules = 0;
    for (int32_t i = 0; i < count; i++)
        submodules += builder->leaves[visit->leaves[i]].begins_submodule;
    if (submodules > 0)
        fsdp_host(fsdp, HOST_ZERO_MODULE, fsdp->modules[visit->module].unit, passes * submodules);
    for (int32_t pass = 0; pass < passes; pass++)
        for (int32_t i = 0; i < count; i++) {
            const int32_t at = visit->leaves[pass == 0 ? i : count - 1 - i];
            fetch_leaf(builder, at);
            if (pass + 1 < passes && builder->leaves[at].is_available)
                zero3_free_leaf(builder, &builder->leaves[at]);
        }
}

/* ---- backward ------------------------------------------------------------------------------- */

/* Before the backward of a weight that is gathered the device was waited for, and so the reductions
   of those before it. */
static void begin_gradient(struct zero_builder *builder, int32_t unit, int64_t numel)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    if (!builder->overlaps)
        return;
    if (builder->reduced_count > 0 && numel > fsdp->settings->zero.param_persistence_threshold)
        fsdp_op(fsdp, OP_WAIT, ZERO_COMPUTE, unit,
                builder->buckets.items[builder->reduced_count - 1].reduced);
    fsdp_op(fsdp, OP_RECORD, ZERO_COMPUTE, unit, builder->begun_event);
}

void zero3_blocking_backward(struct zero_builder *builder, int32_t index, int32_t *made)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct fsdp_module *module = &fsdp->modules[index];
    const int32_t kind_idx = fsdp->model->modules[index].kind_idx;
    const struct fsdp_gradients *gradients = &fsdp->gradients[kind_idx];
    fsdp_begin_backward(fsdp, index);
    fsdp_alloc(fsdp, module->unit, module->grads);
    if (gradients->count == 0)
        fsdp_issue(fsdp, module->unit, module->backward);
    for (int32_t g = 0; g < gradients->count; g++) {
        begin_gradient(builder, module->unit, gradients->items[g].numel);
        fsdp_issue(fsdp, module->unit, builder->kinds[kind_idx].slices[g]);
        fsdp_host(fsdp, HOST_ZERO_GRAD, module->unit, gradients->items[g].tensors);
        zero_reduce_ready(builder, ++*made, false, module->unit);
    }
    fsdp_end_backward(fsdp, index);
    if (builder->overlaps)
        fsdp_op(fsdp, OP_RECORD_STREAM, ZERO_REDUCE, module->unit, module->grads);
    fsdp_free(fsdp, module->unit, module->grads);
}
