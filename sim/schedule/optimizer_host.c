/*
 * schedule/optimizer_host.c: the optimizer's step where its state is on the host.
 *
 * The same work as in optimizer.c, over host memory. The update is one pass (`impl: fused`: torch's
 * fused AdamW on CPUs, DeepSpeed's CPUAdam) or several (`foreach`, which torch plays tensor by
 * tensor there, and `forloop`).
 *
 *   FSDP        the norm reads the gradients, clipping reads and writes them, both in one pass; the
 *               update follows: nothing of it is on the GPU
 *   DeepSpeed   the norm was found on the GPU; the host waits for its all-reduce, scales the fp32
 *               gradients, updates; the master copy goes to the GPU in fp32 and is cast there, or,
 *               with parameters on the host, is cast by the host
 *
 * Example, AdamW in fp32: FSDP fused 4 + 8 + 28 B a parameter with clipping, otherwise 4 + 8 + 80
 * B; DeepSpeed 8 + 28 B, then 4 B to the GPU.
 */
#include "schedule/fsdp_private.h"

/* Stage 3 takes so many at a time. */
static int64_t elements_at_once(const struct fsdp_builder *builder)
{
    const int64_t elements = optimizer_elements(builder);
    const int64_t most = builder->update_elements;
    return most > 0 && most < elements ? most : elements;
}

static double update_bytes_each(const struct fsdp_builder *builder)
{
    return (double)dtype_bytes(optimizer_update_dtype(builder));
}

void optimizer_host_setup(struct fsdp_builder *builder)
{
    const struct precision_config *precision = &builder->settings->precision;
    const enum dtype storage = (enum dtype)precision->storage_dtype;
    builder->norm_all_reduce = builder->norm_event = -1;
    builder->from_master_segment = builder->optimizer_temporary = -1;
    if (!builder->settings->checks_gradients)
        return;
    builder->norm_all_reduce = fsdp_add_collective(builder, COLLECTIVE_ALL_REDUCE, 0, 4);
    builder->norm_event = fsdp_add_event(builder, "gradients_checked", "optimizer");
    if (policy_offloads_params(builder->settings))
        return;
    const double each = update_bytes_each(builder) + (double)dtype_bytes(storage);
    const bool casts = precision->master_dtype != MASTER_NONE;
    builder->from_master_segment =
        fsdp_add_pass(builder, "parameters_from_master", KERNEL_CAST, storage,
                      casts ? (double)optimizer_elements(builder) * each : 0, true);
    builder->optimizer_temporary = fsdp_add_tensor(
        builder, (struct tensor){.name = "updated_master",
                                 .bytes = casts ? elements_at_once(builder) *
                                                      dtype_bytes(optimizer_update_dtype(builder))
                                                : 0,
                                 .category = MEMORY_TEMPORARIES,
                                 .unit = -1});
}

/* FSDP: over the shards alone; the scalar that ranks exchange over gloo is left out. */
static void clip(struct fsdp_builder *builder, double gradient_bytes, int32_t tensors)
{
    if (!builder->settings->is_clipping)
        return;
    fsdp_host(builder, HOST_OPTIMIZER, -1, 1);
    fsdp_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
    fsdp_host_compute(builder, HOST_PASS_FUSED, -1, 3 * gradient_bytes);
}

/* DeepSpeed: always, for the loss scale as well. */
static void await_and_scale(struct fsdp_builder *builder, double gradient_bytes)
{
    if (builder->program->communicators.items[0].group.ranks > 1)
        fsdp_op(builder, OP_COLLECTIVE, FSDP_COMPUTE, -1, builder->norm_all_reduce);
    fsdp_op(builder, OP_RECORD, FSDP_COMPUTE, -1, builder->norm_event);
    fsdp_op(builder, OP_HOST_WAIT, FSDP_COMPUTE, -1, builder->norm_event);
    fsdp_host_compute(builder, HOST_PASS_FUSED, -1, 2 * gradient_bytes);
}

/* DeepSpeed: the updated master copy becomes parameters. */
static void write_back(struct fsdp_builder *builder, double elements)
{
    const double each = update_bytes_each(builder);
    const int64_t at_once = elements_at_once(builder);
    const int64_t groups = at_once > 0 ? (optimizer_elements(builder) + at_once - 1) / at_once : 1;
    if (policy_offloads_params(builder->settings)) {
        const enum dtype storage = (enum dtype)builder->settings->precision.storage_dtype;
        fsdp_host_compute(builder, HOST_PASS_FUSED, -1,
                          elements * (each + (double)dtype_bytes(storage)));
        return;
    }
    fsdp_alloc(builder, -1, builder->optimizer_temporary);
    fsdp_copy(builder, COPY_H2D, FSDP_COMPUTE, -1, (int64_t)(elements * each), (int32_t)groups,
              builder->norm_event);
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->from_master_segment);
    fsdp_free(builder, -1, builder->optimizer_temporary);
}

void optimizer_host_step(struct fsdp_builder *builder, int32_t tensors)
{
    const bool is_deepspeed = builder->settings->checks_gradients;
    const double elements = (double)optimizer_elements(builder);
    const double gradient_bytes = elements * update_bytes_each(builder);
    const enum host_pass pass =
        builder->settings->optimizer.impl == OPTIMIZER_FUSED ? HOST_PASS_FUSED : HOST_PASS_SEPARATE;
    if (is_deepspeed)
        await_and_scale(builder, gradient_bytes);
    else
        clip(builder, gradient_bytes, tensors);
    fsdp_host(builder, HOST_OPTIMIZER, -1, 1);
    fsdp_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
    fsdp_host_compute(builder, pass, -1, elements * optimizer_update_bytes(builder));
    if (is_deepspeed)
        write_back(builder, elements);
}
