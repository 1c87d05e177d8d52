/*
 * model/float8.c: what torchao's Float8Linear does around its products.
 *
 * A product of matrix units wants both operands with the inner dimension contiguous. Three products
 * have three inner dimensions, so x, W and the output's gradient dY are each cast twice:
 *
 *   Y = x·Wᵀ over inputs      dx = dY·W over outputs      dW = dYᵀ·x over tokens
 *
 * Recipes (torchao/float8/config.py, from_recipe_name), bytes an element, compiled:
 * - tensorwise: one scale a tensor. Its largest element (2), then the cast (2 + 1). Backward knows
 *   the scales of x and W and casts them turned (2 + 1); dY is cast to both layouts at once (2 + 1
 *   + 1). With the all-gather in float8 the weight comes as it is; backward turns it (1 + 1). What
 *   tensor parallelism gathers in float8 is turned the same way.
 * - rowwise: one scale a row of what is inner. Row by row that is one kernel (2 + 1); the other way
 *   the tensor is turned first (2 + 2) and then cast (2 + 1), and dY is cast and turned by one
 *   kernel (2 + 1 + 2). torchao/testing/training/roofline_utils.py lists these kernels.
 * - rowwise_with_gw_hp: as rowwise, but dW is a product in 16 bits, and W has the largest of its
 *   row scales in backward (2 + 1).
 * Forward, inductor casts rows in the kernel that makes x (pytorch pull request 130422): 1.
 *
 * Sums in fp32 (gemm_config_grad_input, gemm_config_grad_weight: use_fast_accum=False) are slow in
 * PyTorch's own rowwise kernel, so that gradients are products with one scale whose result is
 * multiplied afterwards (float8_ops.py, addmm_float8_unwrapped; torchao issue 2184). Where
 * element-wise work follows, inductor does it there: not after dW, nor before attention's backward.
 *
 * Check by hand: single layers on an H100 of 500 W, T = 16384, forward and backward, gradients that
 * cost nothing to read (torchao pull request 2185): 8192 → 1280 takes 1757 us, these kernels 1.94
 * ms; 1024 → 8192 1193 us and 1.03 ms; 8192 → 7168 5707 us and 5.78 ms; 3584 → 8192 3034 us
 * and 2.97 ms.
 */
#include "model/block.h"

#include "base/strbuf.h"

bool float8_is_rowwise(const struct train_shape *shape)
{
    return shape->float8 == FLOAT8_ROWWISE || shape->float8 == FLOAT8_ROWWISE_GW_HP;
}

struct float8_products float8_products(const struct train_shape *shape)
{
    if (shape->float8 == FLOAT8_NONE)
        return (struct float8_products){PRODUCT_PLAIN, PRODUCT_PLAIN, PRODUCT_PLAIN};
    return (struct float8_products){
        .forward = float8_is_rowwise(shape) ? PRODUCT_FLOAT8_ROWWISE : PRODUCT_FLOAT8,
        .input_grad = PRODUCT_FLOAT8,
        .weight_grad = shape->float8 == FLOAT8_ROWWISE_GW_HP ? PRODUCT_PLAIN : PRODUCT_FLOAT8};
}

static void cast(struct block *block, struct kernel_sink *sink, enum fusion_op op,
                 const struct linear *linear, const char *suffix, double elements)
{
    const int32_t begin = sink->list->count;
    const bool is_input = text_equal(suffix, ".input"), is_weight = text_equal(suffix, ".weight");
    block_op(block, sink, op, join_names(block->arena, linear->name, suffix), elements);
    for (int32_t i = begin; i < sink->list->count; i++)
        sink->list->items[i].operand = is_input    ? OPERAND_INPUT
                                       : is_weight ? OPERAND_WEIGHT
                                                   : OPERAND_NONE;
}

/* Whether the tensor at this side of the layer is exchanged in float8. */
static bool is_exchanged(const struct block *block, const struct linear *linear, bool is_input)
{
    return is_input != linear->is_row_parallel && exchanges_float8(block->shape);
}

static double own_share(const struct block *block, const struct linear *linear, bool is_input)
{
    return is_exchanged(block, linear, is_input) ? 1.0 / (double)tensor_ranks(block->shape) : 1.0;
}

static bool is_cast_already(const struct block *block, const struct linear *linear)
{
    return linear->shares_input && block->mode == FUSION_COMPILED;
}

/* Row by row in the kernel that made it: not behind attention, nor behind a gather. */
static enum fusion_op input_op(const struct block *block, const struct linear *linear)
{
    if (!float8_is_rowwise(block->shape))
        return FUSION_FP8_TENSORWISE;
    const bool is_gathered = sequence_ranks(block->shape) > 1 && !linear->is_row_parallel;
    return linear->follows_attention || is_gathered ? FUSION_FP8_ROWWISE
                                                    : FUSION_FP8_ROWWISE_INSIDE;
}

void float8_forward(struct block *block, const struct linear *linear)
{
    const double inputs = (double)linear->inputs;
    if (block->shape->float8 == FLOAT8_NONE)
        return;
    if (!is_cast_already(block, linear))
        cast(block, &block->forward, input_op(block, linear), linear, ".input",
             (double)linear->tokens * inputs * own_share(block, linear, true));
    if (!block->shape->gathers_float8)
        cast(block, &block->forward,
             float8_is_rowwise(block->shape) ? FUSION_FP8_ROWWISE : FUSION_FP8_TENSORWISE, linear,
             ".weight", (double)linear->outputs * inputs);
}

static void cast_output_grad(struct block *block, const struct linear *linear)
{
    struct kernel_sink *sink = &block->backward;
    const double elements = (double)linear->tokens * (double)linear->outputs;
    if (is_exchanged(block, linear, false)) {
        cast(block, sink, FUSION_FP8_TENSORWISE, linear, ".output_grad",
             elements * own_share(block, linear, false));
        cast(block, sink, FUSION_FP8_TURN, linear, ".output_grad", elements);
        return;
    }
    cast(block, sink,
         block->shape->float8 == FLOAT8_TENSORWISE ? FUSION_FP8_TENSORWISE_BOTH
         : block->shape->float8 == FLOAT8_ROWWISE  ? FUSION_FP8_ROWWISE_BOTH
                                                   : FUSION_FP8_ROWWISE,
         linear, ".output_grad", elements);
}

void float8_backward(struct block *block, const struct linear *linear)
{
    struct kernel_sink *sink = &block->backward;
    const enum float8_recipe recipe = block->shape->float8;
    const enum fusion_op turned =
        recipe == FLOAT8_ROWWISE ? FUSION_FP8_ROWWISE_TURNED : FUSION_FP8_TENSORWISE_TURNED;
    if (recipe == FLOAT8_NONE)
        return;
    cast_output_grad(block, linear);
    cast(block, sink, block->shape->gathers_float8 ? FUSION_FP8_TURN : turned, linear, ".weight",
         (double)linear->outputs * (double)linear->inputs);
    if (recipe != FLOAT8_ROWWISE_GW_HP && !is_cast_already(block, linear))
        cast(block, sink, is_exchanged(block, linear, true) ? FUSION_FP8_TURN : turned, linear,
             ".input", (double)linear->tokens * (double)linear->inputs);
}

void float8_after_input_grad(struct block *block, const struct linear *linear)
{
    const bool is_fused = block->mode == FUSION_COMPILED && !linear->follows_attention;
    if (float8_is_rowwise(block->shape) && !is_fused)
        cast(block, &block->backward, FUSION_FP8_RESCALE, linear, ".input_grad",
             (double)linear->tokens * (double)linear->inputs);
}

void float8_after_weight_grad(struct block *block, const struct linear *linear)
{
    if (block->shape->float8 == FLOAT8_ROWWISE)
        cast(block, &block->backward, FUSION_FP8_RESCALE, linear, ".weight_grad",
             (double)linear->outputs * (double)linear->inputs);
}
