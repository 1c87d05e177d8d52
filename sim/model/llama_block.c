/*
 * model/llama_block_private.h: kernels, parameters and activations of one Llama block.
 *
 *   x → norm → q, k, v → rotary → attention → o → + x = y
 *   y → norm → gate, up → silu(gate)·up → down → + y
 *
 * Letters as in model.h; bytes below are per token. What is live beside what the header says:
 *
 * - Forward, nothing recomputed. The set grows to the full one, so the extra is the output of down
 *   (hB), or the amount by which the attention part at its widest exceeds the full set: at the
 *   rotary x and normed (2hB), raw and rotated q, k, v ((2q + 3k)B), and in eager their fp32 forms
 *   and products (8(q + k)).
 *
 * - Forward, full checkpointing. Only x stays. Widest: y, normed, silu, up, product ((2h + 3f)B),
 *   or the rotary as above without x.
 *
 * - Backward. Saved tensors go as soon as their node is done, so the extra beside the full set is
 *   at silu·mul: the incoming gradient and those of product, silu(gate), up, less the product that
 *   is gone ((h + 2f)B). Or at attention, when the MLP's part (2h + 4f)B is gone: gradients of
 *   residual and output, dq, dk, dv, and the fp32 accumulator of dq ((h + 2q + 2k)B + 4q).
 *
 * Example, Llama-3-8B in bf16: forward 8,192, backward 65,536 beside the 168,072 that are saved.
 */
#include "model/llama_block_private.h"

#include "model/kernel_private.h"

/* y = x·Wᵀ (+ bias): its parameters and the names of its kernels. */
struct linear {
    const char *weight, *bias;
    const char *forward, *input_grad, *weight_grad, *bias_grad;
    int64_t rows, columns; /* output and input features */
    bool has_bias;
};

enum { LINEAR_Q, LINEAR_K, LINEAR_V, LINEAR_O, LINEAR_GATE, LINEAR_UP, LINEAR_DOWN, LINEAR_COUNT };

#define LINEAR_NAMES(part, name)                                                                   \
    .weight = part name ".weight", .bias = part name ".bias", .forward = (name),                   \
    .input_grad = name ".input_grad", .weight_grad = name ".weight_grad",                          \
    .bias_grad = name ".bias_grad"

struct block {
    const struct llama_dims *dims;
    const struct train_shape *shape;
    struct linear linears[LINEAR_COUNT];
    int64_t tokens, element_bytes;
    /* Bytes of one operand: all tokens of a width. */
    double hidden, query, key, ffn;
};

static void set_linears(struct block *block)
{
    const struct llama_dims *d = block->dims;
    bool attention = d->has_attention_bias, mlp = d->has_mlp_bias;
    const struct linear linears[LINEAR_COUNT] = {
        [LINEAR_Q] = {LINEAR_NAMES("self_attn.", "q_proj"), d->q, d->h, attention},
        [LINEAR_K] = {LINEAR_NAMES("self_attn.", "k_proj"), d->k, d->h, attention},
        [LINEAR_V] = {LINEAR_NAMES("self_attn.", "v_proj"), d->k, d->h, attention},
        [LINEAR_O] = {LINEAR_NAMES("self_attn.", "o_proj"), d->h, d->q, attention},
        [LINEAR_GATE] = {LINEAR_NAMES("mlp.", "gate_proj"), d->f, d->h, mlp},
        [LINEAR_UP] = {LINEAR_NAMES("mlp.", "up_proj"), d->f, d->h, mlp},
        [LINEAR_DOWN] = {LINEAR_NAMES("mlp.", "down_proj"), d->h, d->f, mlp},
    };
    for (int i = 0; i < LINEAR_COUNT; i++)
        block->linears[i] = linears[i];
}

static void add_param(struct module_kind *kind, const char *name, int64_t dim0, int64_t rest)
{
    kind->params[kind->param_count++] = (struct param){.name = name, .dim0 = dim0, .rest = rest};
    kind->numel += dim0 * rest;
}

/* In the order of module registration: attention, MLP, norms. */
static void build_params(struct arena *arena, const struct block *block, struct module_kind *kind)
{
    kind->params = ARENA_ARRAY(arena, struct param, 2 * LINEAR_COUNT + 2);
    for (int i = 0; i < LINEAR_COUNT; i++) {
        const struct linear *linear = &block->linears[i];
        add_param(kind, linear->weight, linear->rows, linear->columns);
        if (linear->has_bias)
            add_param(kind, linear->bias, linear->rows, 1);
    }
    add_param(kind, "input_layernorm.weight", block->dims->h, 1);
    add_param(kind, "post_attention_layernorm.weight", block->dims->h, 1);
}

static void emit_linear(const struct block *block, struct kernel_sink *sink, int idx)
{
    const struct linear *linear = &block->linears[idx];
    emit_gemm(sink, linear->forward, block->tokens, linear->rows, linear->columns);
}

static void emit_linear_grads(const struct block *block, struct kernel_sink *sink, int idx)
{
    const struct linear *linear = &block->linears[idx];
    emit_gemm(sink, linear->input_grad, block->tokens, linear->columns, linear->rows);
    emit_gemm(sink, linear->weight_grad, linear->rows, linear->columns, block->tokens);
    if (linear->has_bias)
        emit_bytes(sink, linear->bias_grad, KERNEL_ELEMENTWISE,
                   (double)block->element_bytes * (double)linear->rows *
                       ((double)block->tokens + 1.0));
}

/* A norm that moves `operands` hidden-wide tensors, its weight, and 4 bytes of 1/rms a token. */
static void emit_norm(const struct block *block, struct kernel_sink *sink, const char *name,
                      double operands)
{
    double weight = (double)block->element_bytes * (double)block->dims->h;
    emit_bytes(sink, name, KERNEL_NORM,
               operands * block->hidden + weight + 4.0 * (double)block->tokens);
}

/*
 * Rotary of one operand (compiled: q and k in one kernel). Eager computes in fp32: cast, complex
 * multiply, cast back; in fp32 the casts do nothing. The table of s·d/2 complex fp32 is read each
 * time. The backward moves the same bytes.
 */
static void emit_rotary(const struct block *block, struct kernel_sink *sink)
{
    double table = 4.0 * (double)block->shape->seq_len * (double)block->dims->d;
    double tokens = (double)block->tokens;
    if (block->shape->is_compiled) {
        emit_bytes(sink, "rotary", KERNEL_ELEMENTWISE, 2.0 * (block->query + block->key) + table);
        return;
    }
    const char *const names[2][3] = {{"rotary.q.to_fp32", "rotary.q", "rotary.q.from_fp32"},
                                     {"rotary.k.to_fp32", "rotary.k", "rotary.k.from_fp32"}};
    for (int i = 0; i < 2; i++) {
        double operand = i == 0 ? block->query : block->key;
        double wide = 4.0 * tokens * (double)(i == 0 ? block->dims->q : block->dims->k);
        bool is_cast = block->element_bytes != 4;
        if (is_cast)
            emit_bytes(sink, names[i][0], KERNEL_ELEMENTWISE, operand + wide);
        emit_bytes(sink, names[i][1], KERNEL_ELEMENTWISE, 2.0 * wide + table);
        if (is_cast)
            emit_bytes(sink, names[i][2], KERNEL_ELEMENTWISE, wide + operand);
    }
}

static struct attention_shape attention_of(const struct block *block, double bytes)
{
    return (struct attention_shape){.batch = block->shape->micro_batch,
                                    .sequence = block->shape->seq_len,
                                    .heads = block->dims->a,
                                    .head_dim = block->dims->d,
                                    .bytes = bytes};
}

static double log_sum_exp_bytes(const struct block *block)
{
    return 4.0 * (double)block->dims->a * (double)block->tokens;
}

static void build_forward(const struct block *block, struct kernel_sink *sink)
{
    bool is_fused = block->shape->is_compiled;
    emit_norm(block, sink, "input_layernorm", 2.0);
    emit_linear(block, sink, LINEAR_Q);
    emit_linear(block, sink, LINEAR_K);
    emit_linear(block, sink, LINEAR_V);
    emit_rotary(block, sink);
    /* Reads q, k, v; writes the output and the log-sum-exp. */
    emit_attention(
        sink, "attention",
        attention_of(block, 2.0 * block->query + 2.0 * block->key + log_sum_exp_bytes(block)));
    emit_linear(block, sink, LINEAR_O);
    if (is_fused) {
        emit_norm(block, sink, "residual.post_attention_layernorm", 4.0);
    } else {
        emit_bytes(sink, "attention.residual", KERNEL_ELEMENTWISE, 3.0 * block->hidden);
        emit_norm(block, sink, "post_attention_layernorm", 2.0);
    }
    emit_linear(block, sink, LINEAR_GATE);
    emit_linear(block, sink, LINEAR_UP);
    if (is_fused) {
        emit_bytes(sink, "silu_mul", KERNEL_ELEMENTWISE, 3.0 * block->ffn);
    } else {
        emit_bytes(sink, "silu", KERNEL_ELEMENTWISE, 2.0 * block->ffn);
        emit_bytes(sink, "mul", KERNEL_ELEMENTWISE, 3.0 * block->ffn);
    }
    emit_linear(block, sink, LINEAR_DOWN);
    emit_bytes(sink, "mlp.residual", KERNEL_ELEMENTWISE, 3.0 * block->hidden);
}

/*
 * A norm whose output went to `readers` projections, and the residual around it. Eager: the
 * readers' gradients are summed one by one, then the input gradient (reads dy, x; writes dx), the
 * weight gradient (reads dy, x), the sum with the residual's gradient. Compiled: the sums happen
 * inside.
 */
static void emit_norm_grads(const struct block *block, struct kernel_sink *sink,
                            const char *input_grad, const char *weight_grad, int readers)
{
    if (block->shape->is_compiled) {
        emit_norm(block, sink, input_grad, (double)readers + 3.0);
        emit_norm(block, sink, weight_grad, (double)readers + 1.0);
        return;
    }
    for (int i = 1; i < readers; i++)
        emit_bytes(sink, "grad_sum", KERNEL_ELEMENTWISE, 3.0 * block->hidden);
    emit_norm(block, sink, input_grad, 3.0);
    emit_norm(block, sink, weight_grad, 2.0);
    emit_bytes(sink, "residual.grad_sum", KERNEL_ELEMENTWISE, 3.0 * block->hidden);
}

static void build_backward(const struct block *block, struct kernel_sink *sink)
{
    emit_linear_grads(block, sink, LINEAR_DOWN);
    if (block->shape->is_compiled) {
        emit_bytes(sink, "silu_mul.grad", KERNEL_ELEMENTWISE, 5.0 * block->ffn);
    } else {
        emit_bytes(sink, "mul.silu_grad", KERNEL_ELEMENTWISE, 3.0 * block->ffn);
        emit_bytes(sink, "mul.up_grad", KERNEL_ELEMENTWISE, 3.0 * block->ffn);
        emit_bytes(sink, "silu.grad", KERNEL_ELEMENTWISE, 3.0 * block->ffn);
    }
    emit_linear_grads(block, sink, LINEAR_UP);
    emit_linear_grads(block, sink, LINEAR_GATE);
    emit_norm_grads(block, sink, "post_attention_layernorm.input_grad",
                    "post_attention_layernorm.weight_grad", 2);
    emit_linear_grads(block, sink, LINEAR_O);
    /* Reads q, k, v, output, its gradient, log-sum-exp; writes dq, dk, dv; the row sums of
       output·gradient are written and read once. */
    emit_attention(sink, "attention.grad",
                   attention_of(block, 4.0 * block->query + 4.0 * block->key +
                                           3.0 * log_sum_exp_bytes(block)));
    emit_rotary(block, sink);
    emit_linear_grads(block, sink, LINEAR_V);
    emit_linear_grads(block, sink, LINEAR_K);
    emit_linear_grads(block, sink, LINEAR_Q);
    emit_norm_grads(block, sink, "input_layernorm.input_grad", "input_layernorm.weight_grad", 3);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void build_memory(const struct block *block, struct module_kind *kind)
{
    const struct llama_dims *d = block->dims;
    int64_t element = block->element_bytes, tokens = block->tokens;
    bool has_wide_rotary = !block->shape->is_compiled && element != 4;
    int64_t input = d->h * element;
    int64_t full = element * (4 * d->h + 2 * d->q + 2 * d->k + 4 * d->f) + 4 * d->a + 8;
    int64_t rotary =
        element * (2 * d->h + 2 * d->q + 3 * d->k) + (has_wide_rotary ? 8 * (d->q + d->k) : 0);
    int64_t mlp_passing = element * (2 * d->h + 3 * d->f);
    int64_t backward_mlp = element * (d->h + 2 * d->f);
    int64_t backward_attention =
        element * (d->h + 2 * d->q + 2 * d->k) + 4 * d->q - element * (2 * d->h + 4 * d->f);

    kind->output_bytes = tokens * input;
    kind->saved_bytes = tokens * full;
    kind->forward_temp_bytes = tokens * larger(input, rotary - full);
    kind->backward_temp_bytes = tokens * larger(backward_mlp, backward_attention);
    if (block->shape->checkpointing == CHECKPOINT_FULL) {
        kind->is_recomputed = true;
        kind->recompute_saved_bytes = kind->saved_bytes;
        kind->saved_bytes = tokens * input;
        kind->forward_temp_bytes = tokens * larger(mlp_passing, rotary - input);
    }
}

void llama_block_build(struct arena *arena, const struct llama_dims *dims,
                       const struct train_shape *shape, struct module_kind *kind)
{
    struct block block = {.dims = dims,
                          .shape = shape,
                          .tokens = shape->seq_len * shape->micro_batch,
                          .element_bytes = dtype_bytes(shape->compute_dtype)};
    double operand = (double)block.tokens * (double)block.element_bytes;
    block.hidden = operand * (double)dims->h;
    block.query = operand * (double)dims->q;
    block.key = operand * (double)dims->k;
    block.ffn = operand * (double)dims->f;
    set_linears(&block);

    kind->role = MODULE_BLOCK;
    build_params(arena, &block, kind);
    struct kernel_sink forward = {arena, &kind->forward, PASS_FORWARD, shape->compute_dtype};
    struct kernel_sink backward = {arena, &kind->backward, PASS_BACKWARD, shape->compute_dtype};
    build_forward(&block, &forward);
    build_backward(&block, &backward);
    build_memory(&block, kind);

    double h = (double)dims->h, q = (double)dims->q, k = (double)dims->k, f = (double)dims->f;
    kind->model_flop = (double)block.tokens * (2.0 * (2.0 * h * q + 2.0 * h * k + 3.0 * h * f) +
                                               4.0 * (double)shape->seq_len * q);
    /* Two norms, seven products, attention, two sums, silu, mul: 14; rotary of q and k. */
    kind->host_op_count = 14 + (block.element_bytes == 4 ? 2 : 6);
}
