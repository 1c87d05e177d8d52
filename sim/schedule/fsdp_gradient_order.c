/*
 * schedule/fsdp_gradient_order.c: in which order, and when, backward makes the gradients of a
 * module.
 *
 * Buckets (DDP, ZeRO) fill in the order in which gradients become ready. The product that makes a
 * weight's gradient, dW = dYᵀ·X, has as many outputs as the weight has elements, so the kernels of
 * the backward themselves say which share of the module's gradients is ready behind each of them.
 * What no product makes (norms, biases, embeddings) is ready at the module's end.
 *
 * A compiled block is one graph: autograd gets all of its gradients when the graph has run.
 *
 * Example, a Llama-3-8B block: down 58,720,256 elements, up and gate as many, o 16,777,216, v and k
 * 4,194,304, q 16,777,216; two norms of 4,096 at the end: 218,112,000 in all.
 *
 * With adapters only those have gradients, each made by a product of its own.
 *
 * Left out: a norm's gradient is ready a few kernels before the end.
 */
#include <string.h>

#include "schedule/fsdp_private.h"

static bool makes_weight_gradient(const struct kernel *kernel)
{
    static const char suffix[] = ".weight_grad";
    const size_t length = strlen(kernel->name), end = sizeof(suffix) - 1;
    return kernel->kind == KERNEL_GEMM && length > end &&
           strcmp(kernel->name + length - end, suffix) == 0;
}

static void order_kind(struct fsdp_builder *builder, int32_t module,
                       struct fsdp_gradients *gradients)
{
    const struct module_kind *kind = fsdp_kind(builder, module);
    const struct segment *backward =
        &builder->issues.items[builder->modules[module].backward].whole;
    int64_t left = kind->numel - kind->frozen_numel;
    int32_t tensors = kind->param_count - kind->frozen_count;
    for (int32_t k = 0; k < backward->kernel_count && !backward->is_compiled; k++) {
        const struct kernel *kernel = &backward->kernels[k];
        const int64_t made = kernel->m * kernel->n * kernel->batch;
        if (!makes_weight_gradient(kernel) || made > left)
            continue;
        *ARENA_PUSH(builder->arena, gradients) =
            (struct fsdp_gradient){.kernel_end = k + 1, .numel = made, .tensors = 1};
        left -= made;
        tensors--;
    }
    if (left > 0)
        *ARENA_PUSH(builder->arena, gradients) =
            (struct fsdp_gradient){.numel = left, .tensors = tensors > 1 ? tensors : 1};
    if (gradients->count > 0)
        gradients->items[gradients->count - 1].kernel_end = backward->kernel_count;
}

void fsdp_order_gradients(struct fsdp_builder *builder)
{
    const struct model *model = builder->model;
    bool *is_done = ARENA_ARRAY(builder->arena, bool, model->kind_count);
    builder->gradients = ARENA_ARRAY(builder->arena, struct fsdp_gradients, model->kind_count);
    for (int32_t i = 0; i < model->module_count; i++) {
        const int32_t kind_idx = model->modules[i].kind_idx;
        if (!is_done[kind_idx])
            order_kind(builder, i, &builder->gradients[kind_idx]);
        is_done[kind_idx] = true;
    }
}

int32_t fsdp_add_gradient_slice(struct fsdp_builder *builder, int32_t module, int32_t index,
                                const double *pass_bytes, int32_t pass_count)
{
    const struct fsdp_gradients *gradients =
        &builder->gradients[builder->model->modules[module].kind_idx];
    const struct fsdp_gradient *gradient = &gradients->items[index];
    const struct segment whole = builder->issues.items[builder->modules[module].backward].whole;
    const int32_t begin = index > 0 ? gradients->items[index - 1].kernel_end : 0;
    const int32_t own = gradient->kernel_end - begin;
    const int32_t count = own + pass_count * gradient->tensors;
    struct kernel *kernels = ARENA_ARRAY(builder->arena, struct kernel, count > 0 ? count : 1);
    for (int32_t k = 0; k < own; k++)
        kernels[k] = whole.kernels[begin + k];
    for (int32_t k = own; k < count; k++)
        kernels[k] = (struct kernel){.name = "gradient_pass",
                                     .kind = KERNEL_CAST,
                                     .dtype = (enum dtype)builder->settings->precision.param_dtype,
                                     .bytes = (double)gradient->numel / gradient->tensors *
                                              pass_bytes[(k - own) / gradient->tensors]};
    struct segment slice = whole;
    slice.kernels = kernels;
    slice.kernel_count = count;
    slice.forward_kernels = whole.forward_kernels - begin;
    if (slice.forward_kernels < 0)
        slice.forward_kernels = 0;
    if (slice.forward_kernels > own)
        slice.forward_kernels = own;
    if (gradients->count > 1)
        slice.name = arena_printf(builder->arena, "%s.%d", whole.name, index);
    return fsdp_add_issue(builder, slice);
}
