/*
 * schedule/optimizer_host.c: the optimizer's step where its state is on the host.
 *
 * The same work as in optimizer.c, over host memory: the norm reads the gradients, clipping reads
 * and writes them, both in one pass; the update is one pass (`impl: fused`: torch's fused AdamW on
 * CPUs, DeepSpeed's CPUAdam) or several (`foreach`, which torch plays tensor by tensor there, and
 * `forloop`). Nothing of it is on the GPU.
 *
 * Example, AdamW in fp32: fused 4 + 8 + 28 B a parameter with clipping, otherwise 4 + 8 + 80 B.
 */
#include "schedule/fsdp_private.h"

/* Over the shards alone; the scalar that ranks exchange is left out. */
static void clip(struct fsdp_builder *builder, double gradient_bytes, int32_t tensors)
{
    fsdp_host(builder, HOST_OPTIMIZER, -1, 1);
    fsdp_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
    fsdp_host_compute(builder, HOST_PASS_FUSED, -1, 3 * gradient_bytes);
}

void optimizer_host_step(struct fsdp_builder *builder, int32_t tensors)
{
    const struct optimizer_config *optimizer = &builder->settings->optimizer;
    const double elements = (double)optimizer_elements(builder);
    const enum host_pass pass =
        optimizer->impl == OPTIMIZER_FUSED ? HOST_PASS_FUSED : HOST_PASS_SEPARATE;
    if (builder->settings->is_clipping)
        clip(builder, elements * (double)dtype_bytes(optimizer_update_dtype(builder)), tensors);
    fsdp_host(builder, HOST_OPTIMIZER, -1, 1);
    fsdp_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
    fsdp_host_compute(builder, pass, -1, elements * optimizer_update_bytes(builder));
}
