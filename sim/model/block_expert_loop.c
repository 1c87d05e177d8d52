/*
 * model/block_expert_loop.c: experts one after another, as transformers' Mixtral and its relatives
 * do.
 *
 * For each expert: find its tokens (torch.where: two kernels count them, the host waits for their
 * number, three write where they are), gather them, three products, the activation, a product with
 * the routing weights, which are gathered too, index_add into the result. Tokens spread evenly:
 * T·top_k/E rows each.
 *
 * Backward: index_select of the gradient, the routing product (both factors), the products'
 * gradients, and for the gather a tensor of zeros of all tokens into which the rows are put, added
 * to what the experts before it left.
 *
 * Bytes per element of T·h or rows·h: each operand once. Left out: one_hot and top-k of the router.
 */
#include "model/block.h"

struct loop {
    double rows_hidden, rows_wide, all_hidden; /* elements */
    double element;
    int64_t rows;
};

static struct loop loop_of(const struct block *block)
{
    const struct network *net = block->net;
    int64_t rows = block->tokens * net->top_k / net->experts;
    rows = rows > 0 ? rows : 1;
    return (struct loop){.rows_hidden = (double)rows * (double)net->h,
                         .rows_wide = (double)rows * (double)net->expert_f,
                         .all_hidden = (double)block->tokens * (double)net->h,
                         .element = (double)block->element_bytes,
                         .rows = rows};
}

static struct linear projection(const struct block *block, const struct loop *loop,
                                const char *name, bool is_down)
{
    const struct network *net = block->net;
    return (struct linear){.name = name,
                           .outputs = is_down ? net->h : net->expert_f,
                           .inputs = is_down ? net->expert_f : net->h,
                           .tokens = loop->rows};
}

static void bytes(struct kernel_sink *sink, const char *name, double count, double element)
{
    emit_bytes(sink, name, KERNEL_ELEMENTWISE, count * element);
}

/* torch.where of a row of the mask, 64-bit integers: cub's reduction in two passes; its selection
   in two, and the places as coordinates. */
static void find_tokens(struct block *block, const struct loop *loop)
{
    struct kernel_sink *sink = &block->forward;
    const double choices = (double)block->tokens * (double)block->net->top_k;
    const double rows = (double)loop->rows;
    bytes(sink, "experts.where.count", choices, 8.0);
    bytes(sink, "experts.where.total", 1.0, 8.0);
    emit_host_wait(sink);
    bytes(sink, "experts.where.init", 1.0, 8.0);
    bytes(sink, "experts.where.select", choices + rows, 8.0);
    bytes(sink, "experts.where.place", 3.0 * rows, 8.0);
}

void expert_loop_forward(struct block *block)
{
    const struct loop loop = loop_of(block);
    const struct linear gate = projection(block, &loop, "experts.gate_proj", false);
    const struct linear up = projection(block, &loop, "experts.up_proj", false);
    const struct linear down = projection(block, &loop, "experts.down_proj", true);
    struct kernel_sink *sink = &block->forward;
    for (int64_t i = 0; i < block->net->experts; i++) {
        find_tokens(block, &loop);
        block_op(block, sink, FUSION_COPY, "experts.gather", loop.rows_hidden);
        linear_forward(block, &gate);
        linear_forward(block, &up);
        block_activation(block, sink, FUSION_GATED_ACTIVATION, "experts.act", loop.rows_wide);
        linear_forward(block, &down);
        block->needed_end = block->kind->forward.count;
        bytes(sink, "experts.weight.gather", 2.0 * (double)loop.rows, loop.element);
        bytes(sink, "experts.weight", 2.0 * loop.rows_hidden, loop.element);
        bytes(sink, "experts.index_add", 3.0 * loop.rows_hidden, loop.element);
    }
}

void expert_loop_backward(struct block *block)
{
    const struct loop loop = loop_of(block);
    const struct linear gate = projection(block, &loop, "experts.gate_proj", false);
    const struct linear up = projection(block, &loop, "experts.up_proj", false);
    const struct linear down = projection(block, &loop, "experts.down_proj", true);
    struct kernel_sink *sink = &block->backward;
    for (int64_t i = 0; i < block->net->experts; i++) {
        block_op(block, sink, FUSION_COPY, "experts.index_add.grad", loop.rows_hidden);
        bytes(sink, "experts.weight.input_grad", 2.0 * loop.rows_hidden, loop.element);
        bytes(sink, "experts.weight.weight_grad", 4.0 * loop.rows_hidden, loop.element);
        linear_backward(block, &down);
        block_activation(block, sink, FUSION_GATED_ACTIVATION, "experts.act", loop.rows_wide);
        linear_backward(block, &up);
        linear_backward(block, &gate);
        bytes(sink, "experts.grad_sum", 3.0 * loop.rows_hidden, loop.element);
        bytes(sink, "experts.gather.zeros", loop.all_hidden, loop.element);
        bytes(sink, "experts.gather.grad", 3.0 * loop.rows_hidden, loop.element);
        bytes(sink, "experts.gather.grad_sum", 3.0 * loop.all_hidden, loop.element);
    }
}
