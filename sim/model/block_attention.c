/*
 * model/block_attention.c: the attention part of a block, fused or eager, with latent (MLA) and
 * cross attention.
 *
 * Fused: one kernel reads q, k, v, writes the context and a log-sum-exp a head. Eager: the scores
 * q·kᵀ in memory (b·a·s·s), scale and mask, softmax, dropout, the product with v, and the context
 * put together; grouped key heads are first repeated. The backward mirrors it.
 */
#include "model/block.h"

enum { LINEARS_MAX = 6 };

static struct linear linear_of(const char *name, int64_t outputs, int64_t inputs, int64_t tokens)
{
    return (struct linear){.name = name, .outputs = outputs, .inputs = inputs, .tokens = tokens};
}

static int latent_linears(const struct block *block, struct linear linears[LINEARS_MAX])
{
    const struct network *net = block->net;
    int64_t tokens = block->tokens;
    bool bias = net->traits.has_qkv_bias;
    int count = 0;
    if (net->q_lora > 0) {
        linears[count] = linear_of("q_a_proj", net->q_lora, net->h, tokens);
        linears[count++].has_bias = bias;
        linears[count++] = linear_of("q_b_proj", net->q, net->q_lora, tokens);
    } else {
        linears[count++] = linear_of("q_proj", net->q, net->h, tokens);
    }
    linears[count] = linear_of("kv_a_proj", net->kv_lora + net->d_rope, net->h, tokens);
    linears[count++].has_bias = bias;
    linears[count++] =
        linear_of("kv_b_proj", net->a * (net->d_nope + net->d_v), net->kv_lora, tokens);
    return count;
}

/* Everything before the attention itself. */
static int input_linears(const struct block *block, const struct attention_part *part,
                         struct linear linears[LINEARS_MAX])
{
    const struct network *net = block->net;
    const struct decoder_traits *traits = &net->traits;
    if (net->kv_lora > 0)
        return latent_linears(block, linears);
    if (traits->has_fused_qkv && !part->is_cross) {
        linears[0] = linear_of("qkv_proj", net->q + net->k + net->v, net->h, part->tokens);
        linears[0].has_bias = traits->has_qkv_bias;
        return 1;
    }
    linears[0] = linear_of("q_proj", net->q, net->h, part->tokens);
    linears[1] = linear_of("k_proj", net->k, net->h, part->key_tokens);
    linears[2] = linear_of("v_proj", net->v, net->h, part->key_tokens);
    for (int i = 0; i < 3; i++) {
        linears[i].has_bias = traits->has_qkv_bias && !part->is_cross;
        linears[i].shares_input = i > (part->is_cross ? 1 : 0);
    }
    return 3;
}

static struct linear output_linear(const struct block *block, const struct attention_part *part)
{
    struct linear linear = linear_of("o_proj", block->net->h, block->net->context, part->tokens);
    linear.is_row_parallel = true;
    linear.follows_attention = true;
    linear.has_bias = block->net->traits.has_o_bias && !part->is_cross;
    return linear;
}

int attention_reader_count(const struct block *block)
{
    if (block->net->kv_lora > 0)
        return 2;
    return block->net->traits.has_fused_qkv ? 1 : 3;
}

double attention_score_count(const struct block *block, const struct attention_part *part)
{
    return (double)block->shape->micro_batch * (double)block->net->a * (double)part->seq_len *
           (double)part->key_seq_len;
}

bool repeats_keys(const struct block *block)
{
    return block->attention == ATTENTION_EAGER && block->net->kv_heads < block->net->a;
}

/* Widths of k and v as attention reads them. */
static int64_t key_width(const struct block *block)
{
    return repeats_keys(block) ? block->net->a * block->net->d_qk : block->net->k;
}

static int64_t value_width(const struct block *block)
{
    return repeats_keys(block) ? block->net->a * block->net->d_v : block->net->v;
}

static void latent_norms(struct block *block, struct kernel_sink *sink)
{
    const struct network *net = block->net;
    const char *const names[2] = {"q_a_layernorm", "kv_a_layernorm"};
    const int64_t widths[2] = {net->q_lora, net->kv_lora};
    for (int i = 0; i < 2; i++) {
        if (net->kv_lora == 0 || widths[i] == 0)
            continue;
        struct fusion_size size = {.elements = (double)block->tokens * (double)widths[i],
                                   .tokens = (double)block->tokens,
                                   .weight_bytes = (double)(block->element_bytes * widths[i]),
                                   .reader_count = 1.0};
        emit_op(sink, block->mode, fusion_norm_op(block->shape, NORM_RMS, false), names[i], size);
    }
}

static void fused_attention(struct block *block, struct kernel_sink *sink,
                            const struct attention_part *part)
{
    const struct network *net = block->net;
    bool is_forward = sink->pass == PASS_FORWARD;
    double element = (double)block->element_bytes;
    double queries = (double)part->tokens, keys = (double)part->key_tokens;
    double q = element * queries * (double)net->q, c = element * queries * (double)net->context;
    double kv = element * keys * (double)(net->k + net->v);
    double log_sum_exp = 4.0 * (double)net->a * queries;
    struct attention_shape shape = {.batch = block->shape->micro_batch,
                                    .queries = part->seq_len,
                                    .keys = part->key_seq_len,
                                    .heads = net->a,
                                    .qk_dim = net->d_qk,
                                    .v_dim = net->d_v,
                                    .window = block->spec->has_window ? net->window : 0,
                                    .is_causal = block->spec->is_causal && !part->is_cross,
                                    .impl = block->attention};
    /* Forward reads q, k, v, writes context and log-sum-exp. Backward reads q, k, v, the context,
       its gradient, log-sum-exp; writes dq, dk, dv; the row sums are written and read once. */
    shape.bytes =
        is_forward ? q + c + kv + log_sum_exp : 2.0 * q + 2.0 * c + 2.0 * kv + 3.0 * log_sum_exp;
    emit_attention(sink, is_forward ? "attention" : "attention.grad", shape);
}

static struct gemm_shape batched(const struct block *block, int64_t m, int64_t n, int64_t k)
{
    return (struct gemm_shape){
        .m = m, .n = n, .k = k, .batch = block->shape->micro_batch * block->net->a};
}

static enum fusion_op softmax_op(const struct block *block)
{
    return block->net->traits.has_native_softmax ? FUSION_SOFTMAX : FUSION_SOFTMAX_WIDE;
}

static void repeat_keys(struct block *block, struct kernel_sink *sink,
                        const struct attention_part *part)
{
    const struct network *net = block->net;
    if (!repeats_keys(block))
        return;
    /* Reads one head, writes a group (backward the reverse): as elements of a copy, the mean. */
    double keys = (double)part->key_tokens / 2.0;
    block_op(block, sink, FUSION_COPY, "k.repeat", keys * (double)(net->k + key_width(block)));
    block_op(block, sink, FUSION_COPY, "v.repeat", keys * (double)(net->v + value_width(block)));
}

static void eager_forward(struct block *block, const struct attention_part *part)
{
    const struct network *net = block->net;
    struct kernel_sink *sink = &block->forward;
    double scores = attention_score_count(block, part);
    int64_t s = part->seq_len, t = part->key_seq_len;
    repeat_keys(block, sink, part);
    emit_gemm(sink, "scores", batched(block, s, t, net->d_qk));
    block_op(block, sink, FUSION_SCORES_MASK, "scores", scores);
    block_op(block, sink, softmax_op(block), "softmax", scores);
    if (net->attention_dropout > 0.0)
        block_op(block, sink, FUSION_SCORES_DROPOUT, "softmax.dropout", scores);
    emit_gemm(sink, "context", batched(block, s, net->d_v, t));
    block_op(block, sink, FUSION_COPY, "context.contiguous",
             (double)part->tokens * (double)net->context);
}

static void eager_backward(struct block *block, const struct attention_part *part)
{
    const struct network *net = block->net;
    struct kernel_sink *sink = &block->backward;
    double scores = attention_score_count(block, part);
    int64_t s = part->seq_len, t = part->key_seq_len;
    block_op(block, sink, FUSION_COPY, "context.grad.contiguous",
             (double)part->tokens * (double)net->context);
    emit_gemm(sink, "context.probability_grad", batched(block, s, t, net->d_v));
    emit_gemm(sink, "context.value_grad", batched(block, t, net->d_v, s));
    if (net->attention_dropout > 0.0)
        block_op(block, sink, FUSION_SCORES_DROPOUT, "softmax.dropout", scores);
    block_op(block, sink, softmax_op(block), "softmax", scores);
    block_op(block, sink, FUSION_SCORES_MASK, "scores", scores);
    emit_gemm(sink, "scores.query_grad", batched(block, s, net->d_qk, t));
    emit_gemm(sink, "scores.key_grad", batched(block, t, net->d_qk, s));
    repeat_keys(block, sink, part);
}

/* Whether position ids ever fall, as they do where a packed sequence ends: torch.diff, >= 0, all(),
   of 64-bit integers, and the host reads the answer. */
static void check_packing(struct block *block, const struct attention_part *part)
{
    struct kernel_sink *sink = &block->forward;
    const double ids = (double)part->seq_len;
    emit_bytes(sink, "position_ids.diff", KERNEL_ELEMENTWISE, 3.0 * 8.0 * ids);
    emit_bytes(sink, "position_ids.rises", KERNEL_ELEMENTWISE, 9.0 * ids);
    emit_bytes(sink, "position_ids.all", KERNEL_ELEMENTWISE, ids);
    emit_host_wait(sink);
}

void attention_forward(struct block *block, const struct attention_part *part)
{
    struct linear linears[LINEARS_MAX];
    int count = input_linears(block, part, linears);
    const int32_t gather = part_enter(block);
    for (int i = 0; i < count; i++)
        linear_forward(block, &linears[i]);
    if (part_gathers_beside(block))
        exchange_beside(&block->forward, gather);
    if (!part->is_cross) {
        latent_norms(block, &block->forward);
        shape_heads(block, &block->forward);
    }
    if (block->shape->checks_packing && block->attention != ATTENTION_EAGER)
        check_packing(block, part);
    if (block->attention == ATTENTION_EAGER)
        eager_forward(block, part);
    else
        fused_attention(block, &block->forward, part);
    struct linear output = output_linear(block, part);
    block->needed_end = block->kind->forward.count;
    part_write(block, &output);
}

void attention_backward(struct block *block, const struct attention_part *part)
{
    const struct network *net = block->net;
    struct linear linears[LINEARS_MAX];
    struct linear output = output_linear(block, part);
    part_write_backward(block, &output);
    if (block->attention == ATTENTION_EAGER)
        eager_backward(block, part);
    else
        fused_attention(block, &block->backward, part);
    if (!part->is_cross) {
        shape_heads(block, &block->backward);
        latent_norms(block, &block->backward);
        if (net->traits.has_fused_qkv)
            block_op(block, &block->backward, FUSION_COPY, "qkv.grad_cat",
                     (double)block->tokens * (double)(net->q + net->k + net->v));
    }
    for (int i = input_linears(block, part, linears) - 1; i >= 0; i--)
        linear_backward(block, &linears[i]);
}

bool attention_keeps_input(const struct block *block, const struct attention_part *part)
{
    struct linear linears[LINEARS_MAX];
    for (int i = input_linears(block, part, linears) - 1; i >= 0; i--)
        if (linear_keeps_input(block, &linears[i]))
            return true;
    return false;
}

static int64_t adapter_bytes(const struct block *block, const struct attention_part *part)
{
    struct linear linears[LINEARS_MAX];
    const struct linear output = output_linear(block, part);
    int64_t bytes = lora_saved_bytes(block, &output);
    for (int i = input_linears(block, part, linears) - 1; i >= 0; i--)
        bytes += lora_saved_bytes(block, &linears[i]);
    return bytes;
}

/* Bytes a score that eager attention keeps. */
static int64_t score_bytes(const struct block *block)
{
    int64_t element = block->element_bytes;
    bool keeps_wide =
        !block->net->traits.has_native_softmax && element != 4 && block->mode != FUSION_COMPILED;
    int64_t dropout = block->net->attention_dropout > 0.0 ? element + 1 : 0;
    return element + (keeps_wide ? 4 : 0) + dropout;
}

/* A view keeps what it is a view of: fused, v the raw q and k beside the rotated ones. */
static int64_t raw_width(const struct block *block, const struct attention_part *part)
{
    const struct network *net = block->net;
    const bool is_view = net->traits.has_fused_qkv && net->kv_lora == 0 && !part->is_cross &&
                         !repeats_keys(block) && block->mode == FUSION_EAGER;
    return is_view && net->position == POSITION_ROTARY ? net->q + net->k : 0;
}

/* The input (a norm's output), q, k, v, the context, and what the softmax leaves. What cross
   attention reads of the encoder is one tensor for all blocks: counted with the encoder's norm. */
int64_t attention_saved_bytes(const struct block *block, const struct attention_part *part)
{
    const struct network *net = block->net;
    int64_t element = block->element_bytes, tokens = part->tokens;
    int64_t input = attention_keeps_input(block, part) ? block->input_bytes : 0;
    const int64_t times = part->is_cross ? 1 : gathered_heads(block);
    const int64_t keys = times > 1 ? times * net->q : key_width(block);
    int64_t bytes =
        input + element * tokens * (times * net->q + net->context + raw_width(block, part)) +
        element * part->key_tokens * (keys + value_width(block)) + adapter_bytes(block, part);
    if (net->kv_lora > 0)
        bytes += element * tokens * (net->q_lora + net->kv_lora) +
                 norm_saved_bytes(block, tokens * net->kv_lora, tokens) +
                 (net->q_lora > 0 ? norm_saved_bytes(block, tokens * net->q_lora, tokens) : 0);
    if (net->traits.has_qk_norm && !part->is_cross)
        bytes += norm_saved_bytes(block, times * tokens * net->q, times * tokens * net->a) +
                 norm_saved_bytes(block, times * tokens * net->k, times * tokens * net->kv_heads);
    if (block->attention == ATTENTION_EAGER)
        return bytes + score_bytes(block) * (int64_t)attention_score_count(block, part);
    return bytes + 4 * net->a * tokens;
}

double attention_gemm_flop(const struct block *block, const struct attention_part *part)
{
    struct linear linears[LINEARS_MAX];
    struct linear output = output_linear(block, part);
    double sum = (double)output.tokens * (double)output.outputs * (double)output.inputs;
    for (int i = input_linears(block, part, linears) - 1; i >= 0; i--)
        sum += (double)linears[i].tokens * (double)linears[i].outputs * (double)linears[i].inputs;
    return 2.0 * sum;
}
