/*
 * schedule/zero_offload.c: ZeRO with the optimizer, and in stage 3 the parameters, on the host.
 *
 * A reduced bucket's own part is cast to fp32 and copied to the host when the last microbatch has
 * been reduced, a copy for each gradient. Microbatches are summed on the GPU all the same, in a
 * buffer that lives on the host: it comes to the GPU and goes back. Stage 3 sends the first one up
 * and down again too (it looks at it on the GPU), and waits for the copy in fp32. In elements p of
 * the part and B bytes each:
 *
 *   stage 1                        D2H 4 p
 *   stage 2, several microbatches  D2H B p; H2D B p, D2H B p, ...; H2D B p, D2H 4 p
 *   stage 3, each microbatch       D2H B p, H2D B p; behind the last D2H 4 p
 *
 * Offloaded parameters come to the GPU before each gather, straight into their part of its buffer.
 */
#include "schedule/zero_private.h"

enum { FP32_BYTES = 4 };

bool policy_offloads_params(const struct policy_settings *settings)
{
    const int api = settings->fsdp.api;
    if (api == API_FSDP2 || api == API_FSDP1)
        return settings->fsdp.cpu_offload.params;
    return api == API_ZERO3 && settings->zero.offload_param == OFFLOAD_CPU;
}

static int64_t part_of(const struct zero_builder *builder, const struct zero_bucket *bucket)
{
    return (bucket->numel + zero_ranks(builder) - 1) / zero_ranks(builder);
}

/* Whether the sum of microbatches is on the host, in the dtype of the gradients. */
static bool sums_on_host(const struct zero_builder *builder)
{
    return builder->stage == 3 || (builder->stage == 2 && builder->fsdp.settings->grad_accum > 1);
}

void zero_add_offload(struct zero_builder *builder, struct zero_bucket *bucket, const char *name)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const int64_t part = part_of(builder, bucket);
    const double own = (double)zero_param_bytes(builder), sent = (double)zero_reduce_bytes(builder);
    const enum dtype dtype = (enum dtype)fsdp->settings->precision.param_dtype;
    bucket->fp32_part = bucket->to_fp32 = bucket->sum = bucket->offloaded = -1;
    if (!policy_offloads_optimizer(fsdp->settings))
        return;
    bucket->fp32_part = fsdp_add_tensor(
        fsdp, (struct tensor){.name = ARENA_JOIN(fsdp->arena, "fp32_part(", name, ")"),
                              .bytes = part * FP32_BYTES,
                              .category = MEMORY_TEMPORARIES,
                              .stream = (uint8_t)builder->reduce_stream,
                              .unit = -1});
    bucket->to_fp32 = fsdp_add_pass(fsdp, ARENA_JOIN(fsdp->arena, "to_fp32(", name, ")"),
                                    KERNEL_CAST, dtype, (double)part * (sent + FP32_BYTES), false);
    bucket->sum = fsdp_add_pass(fsdp, ARENA_JOIN(fsdp->arena, "sum(", name, ")"),
                                KERNEL_ELEMENTWISE, dtype, (double)part * 3 * own, false);
    bucket->offloaded = fsdp_add_event(fsdp, "offloaded", name);
    fsdp->program->host.gradients +=
        part * (FP32_BYTES + (sums_on_host(builder) ? zero_param_bytes(builder) : 0));
}

void zero_offload_bucket(struct zero_builder *builder, const struct zero_bucket *bucket,
                         int32_t unit)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const int stream = builder->reduce_stream;
    const int64_t part = part_of(builder, bucket), own = part * zero_param_bytes(builder);
    const bool sums = sums_on_host(builder), is_last = builder->is_last_microbatch;
    const int32_t parts = bucket->tensors / (int32_t)zero_ranks(builder) + 1;
    if (sums && builder->has_partition) {
        fsdp_copy(fsdp, COPY_H2D, stream, unit, own, parts, bucket->offloaded);
        fsdp_op(fsdp, OP_SEGMENT, stream, unit, bucket->sum);
    }
    if (sums && (builder->stage == 3 || !is_last))
        fsdp_copy(fsdp, COPY_D2H, stream, unit, own, parts, bucket->offloaded);
    if (builder->stage == 3 && !builder->has_partition)
        fsdp_copy(fsdp, COPY_H2D, stream, unit, own, parts, bucket->offloaded);
    if (!is_last)
        return;
    fsdp_alloc(fsdp, unit, bucket->fp32_part);
    fsdp_op(fsdp, OP_SEGMENT, stream, unit, bucket->to_fp32);
    fsdp_copy(fsdp, COPY_D2H, stream, unit, part * FP32_BYTES, parts, bucket->offloaded);
    fsdp_free(fsdp, unit, bucket->fp32_part);
    if (builder->stage == 3)
        fsdp_op(fsdp, OP_HOST_WAIT, stream, unit, bucket->offloaded);
}

void zero_fetch_from_host(struct zero_builder *builder, const struct zero_chunk *chunk,
                          int32_t unit)
{
    fsdp_copy(&builder->fsdp, COPY_H2D, builder->fetch_stream, unit,
              chunk->shard * zero_param_bytes(builder), chunk->tensors, chunk->arrived);
}

void zero_return_updates(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    if (!policy_offloads_params(fsdp->settings) || policy_offloads_optimizer(fsdp->settings))
        return;
    fsdp_copy(fsdp, COPY_D2H, ZERO_COMPUTE, -1,
              optimizer_elements(fsdp) * zero_param_bytes(builder), 1, builder->drained_event);
    fsdp_op(fsdp, OP_HOST_WAIT, ZERO_COMPUTE, -1, builder->drained_event);
}
