/* model/block_linear.c: a linear layer of a block: its product and the two of its gradients. */
#include "model/block.h"

void linear_forward(struct block *block, const struct linear *linear)
{
    float8_forward(block, linear);
    lora_dequantize(block, &block->forward, linear);
    emit_gemm(&block->forward, linear->name,
              (struct gemm_shape){.m = linear->tokens,
                                  .n = linear->outputs,
                                  .k = linear->inputs,
                                  .product = float8_products(block->shape).forward});
    lora_forward(block, linear);
}

/* Megatron's column-parallel layer gathers its input again and reduces its gradient by itself. */
static int32_t exchange_of_layer(struct block *block, const struct linear *linear, bool is_gather)
{
    const double elements = (double)linear->tokens * (double)linear->inputs;
    struct kernel_sink *sink = &block->backward;
    if (!exchanges_by_layer(block->shape) || linear->is_row_parallel)
        return -1;
    if (!is_gather)
        return exchange_enter_backward(
            sink, block->shape,
            (struct exchanged){.name = join_names(block->arena, linear->name, ".input_grad.reduce"),
                               .elements = elements});
    if (!linear_keeps_input(block, linear))
        return -1;
    return exchange_enter(
        sink, block->shape,
        (struct exchanged){.name = join_names(block->arena, linear->name, ".input.gather"),
                           .elements = elements});
}

static void weight_backward(struct block *block, const struct linear *linear)
{
    struct kernel_sink *sink = &block->backward;
    emit_gemm(sink, join_names(block->arena, linear->name, ".weight_grad"),
              (struct gemm_shape){.m = linear->outputs,
                                  .n = linear->inputs,
                                  .k = linear->tokens,
                                  .product = float8_products(block->shape).weight_grad});
    float8_after_weight_grad(block, linear);
    if (linear->has_bias) {
        struct fusion_size size = {.elements = (double)linear->tokens * (double)linear->outputs,
                                   .weight_bytes =
                                       (double)(block->element_bytes * linear->outputs)};
        emit_op(sink, block->mode, FUSION_BIAS_GRAD,
                join_names(block->arena, linear->name, ".bias_grad"), size);
    }
}

void linear_backward(struct block *block, const struct linear *linear)
{
    struct kernel_sink *sink = &block->backward;
    float8_backward(block, linear);
    lora_backward(block, linear);
    lora_dequantize(block, sink, linear);
    const int32_t gather = exchange_of_layer(block, linear, true);
    emit_gemm(sink, join_names(block->arena, linear->name, ".input_grad"),
              (struct gemm_shape){.m = linear->tokens,
                                  .n = linear->inputs,
                                  .k = linear->outputs,
                                  .product = float8_products(block->shape).input_grad});
    float8_after_input_grad(block, linear);
    exchange_beside(sink, gather);
    const int32_t reduce = exchange_of_layer(block, linear, false);
    if (lora_is_on(block->shape))
        lora_sum_gradients(block, linear);
    else
        weight_backward(block, linear);
    exchange_beside(sink, reduce);
}
