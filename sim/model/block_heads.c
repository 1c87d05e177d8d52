/*
 * model/block_heads.c: q and k between their products and attention: norms, rotary embedding.
 *
 * With tensor_parallel.gathers_heads each rank has all heads there, in forward and where it runs
 * again: torchtitan's Qwen3 had its norms of q and k in a style that wants whole tensors, so that
 * DTensor gathered what was split by heads, put it together by a copy, and normed, turned and
 * repeated it on all ranks (torchtitan issue 1867, until October 2025). Attention takes the rank's
 * own heads, and their gradients stay split.
 */
#include "model/block.h"

static void head_norm(struct block *block, struct kernel_sink *sink, const char *name,
                      int64_t width)
{
    const struct network *net = block->net;
    const enum fusion_op op = fusion_norm_op(block->shape, net->norm, false);
    double elements = (double)block->tokens * (double)width;
    struct fusion_size size = {.elements = elements,
                               .tokens = elements / (double)net->d_qk,
                               .weight_bytes = (double)(block->element_bytes * net->d_qk),
                               .reader_count = 1.0};
    emit_op(sink, block->mode, op, name, size);
}

/* Rotary of q and k: one kernel when compiled, unless written in complex numbers. The table of
   s·d/2 complex fp32 is read each time. */
static void rotary(struct block *block, struct kernel_sink *sink, int64_t times)
{
    const struct network *net = block->net;
    if (net->position != POSITION_ROTARY)
        return;
    double tokens = (double)block->tokens;
    double q = tokens * (double)(times * net->q) * net->rotary_frac;
    double k = tokens * (double)(times * net->k) * net->rotary_frac;
    double head = (double)net->d_qk * net->rotary_frac;
    if (net->kv_lora > 0) {
        q = tokens * (double)(net->a * net->d_rope);
        k = tokens * (double)net->d_rope;
        head = (double)net->d_rope;
    }
    struct fusion_size size = {.weight_bytes = 4.0 * (double)block->shape->seq_len * head};
    bool is_complex = block->shape->rotary == ROTARY_COMPLEX;
    enum fusion_op op = is_complex ? FUSION_ROTARY_COMPLEX : FUSION_ROTARY;
    if (block->mode == FUSION_COMPILED && !is_complex) {
        size.elements = q + k;
        emit_op(sink, block->mode, op, "rotary", size);
        return;
    }
    size.elements = q;
    emit_op(sink, block->mode, op, "rotary.q", size);
    size.elements = k;
    emit_op(sink, block->mode, op, "rotary.k", size);
}

int64_t gathered_heads(const struct block *block)
{
    return block->shape->tensor_parallel.gathers_heads ? tensor_ranks(block->shape) : 1;
}

static void gather_heads(struct block *block, struct kernel_sink *sink, const char *name,
                         double elements)
{
    exchange_gather(sink, block->shape, join_names(block->arena, name, ".gather"),
                    elements * (double)block->element_bytes);
    block_op(block, sink, FUSION_COPY, join_names(block->arena, name, ".cat"), elements);
}

/* All heads of q, and of k as often as q has them; then the rank's own. */
static void keep_own_heads(struct block *block, struct kernel_sink *sink, double times)
{
    const double tokens = (double)block->tokens;
    const double q = tokens * (double)block->net->q, k = tokens * (double)block->net->k;
    block_op(block, sink, FUSION_COPY, "k.repeat", times * (k + q) / 2.0);
    block_op(block, sink, FUSION_COPY, "q.own", q);
    block_op(block, sink, FUSION_COPY, "k.own", q);
}

void shape_heads(struct block *block, struct kernel_sink *sink)
{
    const struct network *net = block->net;
    const double tokens = (double)block->tokens;
    const int64_t times = sink->pass == PASS_FORWARD ? gathered_heads(block) : 1;
    if (times > 1) {
        gather_heads(block, sink, "q", tokens * (double)(times * net->q));
        gather_heads(block, sink, "k", tokens * (double)(times * net->k));
    }
    if (net->traits.has_qk_norm) {
        head_norm(block, sink, "q_norm", times * net->q);
        head_norm(block, sink, "k_norm", times * net->k);
    }
    rotary(block, sink, times);
    if (times > 1)
        keep_own_heads(block, sink, (double)times);
    if (net->kv_lora > 0) {
        block_op(block, sink, FUSION_COPY, "q.cat", tokens * (double)net->q);
        block_op(block, sink, FUSION_COPY, "k.cat", tokens * (double)net->k);
    }
}
