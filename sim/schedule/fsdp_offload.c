/*
 * schedule/fsdp_offload.c: states that are kept in the memory of the host, and updated there.
 *
 * CPUOffloadPolicy (fsdp2), CPUOffload(offload_params=True) (fsdp1): shards, their gradients and
 * the optimizer's state leave the GPU. A unit's shard is copied to the GPU before each gather, as
 * it is stored, and dies when it has been cast (without a cast: gathered). A reduced gradient is
 * copied to the host and dies on the GPU; the host adds it to what an earlier microbatch left. The
 * update is a pass, or passes, over host memory (cluster/host_compute.h).
 *
 *   GPU:   nothing of the states; for a while a shard, a reduced gradient
 *   host:  parameter, gradient and state of the shard: 4 + 4 + 8 B an fp32 parameter of AdamW
 *
 * Example, 1e9 parameters on 8 GPUs of a host: 2 GB a GPU, 16 GB in the host's memory; copies of
 * 0.5 GB up twice and down once a step.
 *
 * Left out: rounding of pinned allocations to powers of two, the scalar all-reduce of the norm over
 * gloo, caches.
 */
#include "schedule/fsdp_private.h"

bool policy_offloads_optimizer(const struct policy_settings *settings)
{
    switch ((enum policy_api)settings->fsdp.api) {
    case API_FSDP2:
    case API_FSDP1:
        return settings->fsdp.cpu_offload.params;
    case API_ZERO1:
    case API_ZERO2:
    case API_ZERO3:
        return settings->zero.offload_optimizer == OFFLOAD_CPU;
    case API_DDP:
        return false;
    }
    BUG("no such api %d", settings->fsdp.api);
}

bool fsdp_offloads(const struct fsdp_builder *builder)
{
    const int api = builder->settings->fsdp.api;
    return (api == API_FSDP2 || api == API_FSDP1) && builder->settings->fsdp.cpu_offload.params;
}

/* Accumulating, PyTorch copies gradients into pageable memory and waits. */
static bool is_pinned(const struct fsdp_builder *builder)
{
    return builder->settings->fsdp.cpu_offload.pin_memory;
}

void fsdp_add_offload(struct fsdp_builder *builder, int32_t index, int stream)
{
    struct fsdp_unit *unit = &builder->units[index];
    unit->device_shard = unit->offloaded_event = -1;
    if (!fsdp_offloads(builder))
        return;
    /* Cast parameter by parameter, one is on the GPU at a time. */
    const bool casts = unit->sizes.cast_shard > 0 && builder->settings->fsdp.api == API_FSDP2;
    const int64_t parts = casts && unit->param_count > 0 ? unit->param_count : 1;
    unit->device_shard =
        fsdp_add_unit_tensor(builder, index, "device_shard", unit->sizes.stored_bytes / parts,
                             MEMORY_TEMPORARIES, stream);
    unit->offloaded_event = fsdp_add_event(builder, "gradient_offloaded", unit->name);
    builder->program->host.gradients +=
        unit->sizes.reduced_shard *
        dtype_bytes((enum dtype)builder->settings->precision.storage_dtype);
}

/* Memory that is not pinned is staged by the host, which waits for the copy. */
void fsdp_copy(struct fsdp_builder *builder, enum copy_kind kind, int stream, int32_t unit,
               int64_t bytes, int32_t parts, int32_t event)
{
    if (bytes <= 0)
        return;
    fsdp_add_op(builder, (struct op){.kind = OP_COPY,
                                     .stream = (uint8_t)stream,
                                     .unit = unit,
                                     .index = (int32_t)kind,
                                     .count = parts,
                                     .bytes = bytes});
    fsdp_op(builder, OP_RECORD, stream, unit, event);
    if (kind == COPY_H2D_PAGEABLE || kind == COPY_D2H_PAGEABLE)
        fsdp_op(builder, OP_HOST_WAIT, stream, unit, event);
}

void fsdp_host_compute(struct fsdp_builder *builder, enum host_pass pass, int32_t unit,
                       double bytes)
{
    if (bytes <= 0)
        return;
    const int64_t threads = builder->settings->optimizer.omp_num_threads;
    fsdp_add_op(builder, (struct op){.kind = OP_HOST_COMPUTE,
                                     .unit = unit,
                                     .index = (int32_t)pass,
                                     .count = (int32_t)threads,
                                     .bytes = (int64_t)bytes});
}

void fsdp_bring_shard(struct fsdp_builder *builder, int32_t index, int stream, int32_t copied)
{
    const struct fsdp_unit *unit = &builder->units[index];
    const int32_t parts = builder->settings->fsdp.api == API_FSDP2 ? unit->param_count : 1;
    if (!fsdp_offloads(builder))
        return;
    fsdp_alloc(builder, index, unit->device_shard);
    fsdp_copy(builder, is_pinned(builder) ? COPY_H2D : COPY_H2D_PAGEABLE, stream, index,
              unit->sizes.stored_bytes, parts, copied);
    /* Each parameter is cast by a kernel of its own; one is in the pass that follows. */
    if (unit->sizes.cast_shard > 0 && parts > 1)
        fsdp_host(builder, HOST_KERNEL, index, parts - 1);
}

void fsdp_offload_gradient(struct fsdp_builder *builder, int32_t index, int stream)
{
    const struct fsdp_unit *unit = &builder->units[index];
    const enum dtype storage = (enum dtype)builder->settings->precision.storage_dtype;
    const int64_t bytes = unit->sizes.reduced_shard * dtype_bytes(storage);
    const bool waits = !is_pinned(builder) || unit->has_gradient;
    const int32_t parts = builder->settings->fsdp.api == API_FSDP2 ? unit->sizes.trained_count : 1;
    fsdp_copy(builder, waits ? COPY_D2H_PAGEABLE : COPY_D2H, stream, index, bytes, parts,
              unit->offloaded_event);
    if (unit->has_gradient) /* reads both, writes the sum */
        fsdp_host_compute(builder, HOST_PASS_FUSED, index, 3.0 * (double)bytes);
}

void fsdp_await_gradient(struct fsdp_builder *builder, int32_t index)
{
    fsdp_op(builder, OP_HOST_WAIT, FSDP_COMPUTE, index, builder->units[index].offloaded_event);
}
