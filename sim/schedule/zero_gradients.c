/*
 * schedule/zero_gradients.c: ZeRO: buckets of gradients, and their reduction.
 *
 * A bucket closes when the next gradient would exceed `reduce_bucket_size` elements; the hook of
 * that gradient reduces it. What happens to a bucket of n elements on N GPUs, on the reduction
 * stream (compute without overlap_comm), in bytes of traffic:
 *
 *   divide            2 B n      read and write
 *   flatten           2 B n      slices by destination put side by side, in stages 1 and 2 with
 *                                reduce_scatter; stage 3 puts them in order of ranks
 *   reduce            all-reduce of B n (DeepSpeed's default in stages 1 and 2), or a reduction to
 *                     each owner, played as a reduce-scatter; stage 3: reduce-scatter
 *   keep              4 B n / N  own part out of the sum and into the partition; later microbatches
 *                                add: 5 B n / N
 *
 * A communication dtype other than the gradients' adds a cast there and back.
 */
#include "schedule/zero_private.h"

static void fill_buckets(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const int64_t size = fsdp->settings->zero.reduce_bucket_size;
    int32_t made = 0;
    struct zero_bucket *open = NULL;
    for (int32_t i = fsdp->model->module_count - 1; i >= 0; i--) {
        const struct fsdp_gradients *gradients = &fsdp->gradients[fsdp->model->modules[i].kind_idx];
        for (int32_t g = 0; g < gradients->count; g++) {
            if (open == NULL || open->numel + gradients->items[g].numel > size)
                open = ARENA_PUSH(fsdp->arena, &builder->buckets);
            open->numel += gradients->items[g].numel;
            open->sent = open->numel;
            open->tensors += gradients->items[g].tensors;
            open->gradient_end = ++made;
        }
    }
}

static bool scatters(const struct zero_builder *builder)
{
    const struct zero_config *zero = &builder->fsdp.settings->zero;
    if (builder->stage == 3)
        return builder->is_blocking ? zero->reduce_scatter && zero->contiguous_gradients
                                    : zero->reduce_scatter || !zero->contiguous_gradients;
    return zero->reduce_scatter && !zero->use_multi_rank_bucket_allreduce &&
           !zero_has_replicas(builder);
}

static bool flattens(const struct zero_builder *builder)
{
    return builder->stage == 3 ? scatters(builder) : builder->fsdp.settings->zero.reduce_scatter;
}

/* Passes of so many bytes an element over a bucket, as one segment. */
static int32_t add_passes(struct zero_builder *builder, const char *name, double elements,
                          const double *bytes, int32_t count)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    if (elements <= 0)
        return -1;
    struct kernel *kernels = ARENA_ARRAY(fsdp->arena, struct kernel, count);
    for (int32_t k = 0; k < count; k++)
        kernels[k] = (struct kernel){.name = name,
                                     .kind = KERNEL_CAST,
                                     .dtype = (enum dtype)fsdp->settings->precision.param_dtype,
                                     .bytes = elements * bytes[k]};
    return fsdp_add_segment(fsdp, (struct segment){.name = name,
                                                   .kernels = kernels,
                                                   .kernel_count = count,
                                                   .host_cost = HOST_KERNEL});
}

static void add_bucket_passes(struct zero_builder *builder, struct zero_bucket *bucket,
                              const char *name)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const double own = (double)zero_param_bytes(builder);
    const double sent = (double)zero_reduce_bytes(builder);
    const double elements = (double)bucket->sent;
    const double part = (double)bucket->numel / (double)zero_ranks(builder);
    const bool casts =
        fsdp->settings->precision.reduce_dtype != fsdp->settings->precision.param_dtype;
    double passes[3];
    int32_t count = 0;
    passes[count++] = 2 * own;
    if (flattens(builder))
        passes[count++] = 2 * own;
    if (casts)
        passes[count++] = own + sent;
    bucket->prepare =
        add_passes(builder, ARENA_JOIN(fsdp->arena, "divide(", name, ")"), elements, passes, count);
    const double kept = own + sent + 2 * own, added = own + sent + 3 * own;
    bucket->keep = add_passes(builder, ARENA_JOIN(fsdp->arena, "keep(", name, ")"), part, &kept, 1);
    bucket->add = add_passes(builder, ARENA_JOIN(fsdp->arena, "add(", name, ")"), part, &added, 1);
}

static void add_bucket(struct zero_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    struct zero_bucket *bucket = &builder->buckets.items[index];
    const struct zero_config *zero = &fsdp->settings->zero;
    const char *name = arena_printf(fsdp->arena, "bucket.%d", (int)index);
    const bool is_copied = flattens(builder) || !zero->contiguous_gradients ||
                           zero_param_bytes(builder) != zero_reduce_bytes(builder);
    bucket->flattened = fsdp_add_tensor(
        fsdp, (struct tensor){.name = ARENA_JOIN(fsdp->arena, "flattened(", name, ")"),
                              .bytes = is_copied ? bucket->numel * zero_reduce_bytes(builder) : 0,
                              .category = MEMORY_REDUCE_BUFFERS,
                              .stream = (uint8_t)builder->reduce_stream,
                              .unit = -1});
    add_bucket_passes(builder, bucket, name);
    zero_add_offload(builder, bucket, name);
    bucket->collective = fsdp_add_collective(
        fsdp, scatters(builder) ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE, 0,
        (double)bucket->sent * (double)zero_reduce_bytes(builder));
    if (builder->stage < 3 && scatters(builder)) {
        const int64_t part =
            (fsdp->model->rank_parameters + zero_ranks(builder) - 1) / zero_ranks(builder);
        bucket->extra_calls = (int32_t)((bucket->numel - 1) / (part > 0 ? part : 1));
    }
    bucket->ready = fsdp_add_event(fsdp, "ready", name);
    bucket->reduced = fsdp_add_event(fsdp, "reduced", name);
}

void zero_add_buckets(struct zero_builder *builder)
{
    if (builder->is_blocking)
        zero3_fill_reductions(builder);
    else
        fill_buckets(builder);
    for (int32_t i = 0; i < builder->buckets.count; i++)
        add_bucket(builder, i);
}

/* The copy of one gradient into the buffer, without its backward. */
static int32_t add_copy(struct zero_builder *builder, const struct fsdp_gradient *gradient)
{
    const double bytes = builder->fsdp.settings->zero.contiguous_gradients
                             ? 2 * (double)zero_param_bytes(builder)
                             : 0;
    return bytes > 0 ? add_passes(builder, "copy_gradient", (double)gradient->numel, &bytes, 1)
                     : -1;
}

static void add_kind(struct zero_builder *builder, int32_t module, struct zero_kind *kind)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct fsdp_gradients *gradients =
        &fsdp->gradients[fsdp->model->modules[module].kind_idx];
    const double own = (double)zero_param_bytes(builder);
    const struct zero_config *zero = &fsdp->settings->zero;
    const double copy = 2 * own, sum = 3 * own;
    kind->slices = ARENA_ARRAY(fsdp->arena, int32_t, gradients->count + 1);
    kind->sums = ARENA_ARRAY(fsdp->arena, int32_t, gradients->count + 1);
    kind->copies = ARENA_ARRAY(fsdp->arena, int32_t, gradients->count + 1);
    for (int32_t g = 0; g < gradients->count; g++) {
        const bool fits = gradients->items[g].numel <= zero->reduce_bucket_size;
        const bool copies = builder->stage == 2 || (builder->is_blocking && fits);
        kind->slices[g] = fsdp_add_gradient_slice(fsdp, module, g, &copy,
                                                  zero->contiguous_gradients && copies ? 1 : 0);
        kind->sums[g] =
            builder->stage == 1 ? fsdp_add_gradient_slice(fsdp, module, g, &sum, 1) : -1;
        kind->copies[g] = builder->stage != 2 ? add_copy(builder, &gradients->items[g]) : -1;
    }
}

void zero_add_slices(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct model *model = fsdp->model;
    builder->kinds = ARENA_ARRAY(fsdp->arena, struct zero_kind, model->kind_count);
    for (int32_t i = 0; i < model->module_count; i++) {
        struct zero_kind *kind = &builder->kinds[model->modules[i].kind_idx];
        if (kind->slices == NULL)
            add_kind(builder, i, kind);
    }
}

/* Stages 1 and 2 with overlap_comm: each stream waits for the other, so that at most one reduction
   is under way. Stage 3: the host waits for the third one before; blocking: for the one before, and
   the reduction starts beside the kernels that make its last gradient. */
static void order_streams(struct zero_builder *builder, int32_t index, int32_t unit)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_bucket *bucket = &builder->buckets.items[index];
    enum { MOST_IN_FLIGHT = 3 };
    const int32_t in_flight = builder->is_blocking ? 1 : MOST_IN_FLIGHT;
    if (!builder->overlaps)
        return;
    if (builder->stage == 3) {
        if (index >= in_flight)
            fsdp_op(fsdp, OP_HOST_WAIT, ZERO_COMPUTE, unit,
                    builder->buckets.items[index - in_flight].reduced);
        if (builder->is_blocking)
            fsdp_op(fsdp, OP_WAIT, ZERO_REDUCE, unit, builder->begun_event);
        return;
    }
    fsdp_op(fsdp, OP_RECORD, ZERO_COMPUTE, unit, bucket->ready);
    fsdp_op(fsdp, OP_WAIT, ZERO_REDUCE, unit, bucket->ready);
    if (index > 0)
        fsdp_op(fsdp, OP_WAIT, ZERO_COMPUTE, unit, builder->buckets.items[index - 1].reduced);
}

static void reduce(struct zero_builder *builder, int32_t index, int32_t unit)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_bucket *bucket = &builder->buckets.items[index];
    const int stream = builder->reduce_stream;
    order_streams(builder, index, unit);
    if (builder->stage < 3 && !builder->has_partition && index == 0)
        fsdp_alloc(fsdp, -1, builder->partition);
    fsdp_alloc(fsdp, unit, bucket->flattened);
    fsdp_op(fsdp, OP_SEGMENT, stream, unit, bucket->prepare);
    if (bucket->extra_calls > 0)
        fsdp_host(fsdp, HOST_COLLECTIVE, unit, bucket->extra_calls);
    if (fsdp->settings->dp_group.ranks > 1)
        fsdp_op(fsdp, OP_COLLECTIVE, stream, unit, bucket->collective);
    if (bucket->numel > 0 && policy_offloads_optimizer(fsdp->settings))
        zero_offload_bucket(builder, bucket, unit);
    else
        fsdp_op(fsdp, OP_SEGMENT, stream, unit,
                builder->has_partition ? bucket->add : bucket->keep);
    fsdp_free(fsdp, unit, bucket->flattened);
    fsdp_op(fsdp, OP_RECORD, stream, unit, bucket->reduced);
}

void zero_reduce_ready(struct zero_builder *builder, int32_t made, bool is_end, int32_t unit)
{
    while (builder->reduced_count < builder->buckets.count) {
        const int32_t end = builder->buckets.items[builder->reduced_count].gradient_end;
        if (made < end || (made == end && !is_end))
            return;
        reduce(builder, builder->reduced_count, unit);
        builder->reduced_count++;
    }
}
