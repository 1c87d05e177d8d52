/*
 * model/model_llama.c: embedding, blocks, final norm, head and loss of the Llama family.
 *
 * Loss with fp32 upcast of bf16 logits, per element of T·V: forward cast (reads B, writes 4),
 * log-softmax (reads 4, writes 4, which is saved), nll (T elements); backward zeros (4), nll
 * (T elements), log-softmax gradient (reads 4 + 4, writes 4), cast (reads 4, writes B). Without
 * upcast, or in fp32, the two casts are not there. The cast counts as element-wise work, not among
 * FSDP's own copies.
 *
 * Embedding backward: zeros of the weight, then a scatter that reads the gradient and reads and
 * writes rows of the weight's. A tied weight gets the sum of two gradients, once.
 */
#include "model/kernel_private.h"
#include "model/llama_block_private.h"

enum { KIND_EMBEDDING, KIND_BLOCK, KIND_NORM, KIND_HEAD, KIND_LOSS, KIND_COUNT };

struct llama_dims llama_dims_of(const struct llama_config *llama)
{
    struct llama_dims dims = {
        .h = llama->hidden_size,
        .f = llama->intermediate_size,
        .layers = llama->num_hidden_layers,
        .a = llama->num_attention_heads,
        .kv_heads = llama->num_key_value_heads,
        .d = llama->head_dim,
        .vocab = llama->vocab_size,
        .is_tied = llama->tie_word_embeddings,
        .has_attention_bias = llama->attention_bias,
        .has_mlp_bias = llama->mlp_bias,
    };
    if (dims.kv_heads == 0)
        dims.kv_heads = dims.a;
    if (dims.d == 0 && dims.a > 0)
        dims.d = dims.h / dims.a;
    dims.q = dims.a * dims.d;
    dims.k = dims.kv_heads * dims.d;
    return dims;
}

double llama_parameters_estimate(const struct llama_dims *dims)
{
    double h = (double)dims->h, q = (double)dims->q, k = (double)dims->k, f = (double)dims->f;
    double block = 2.0 * h * (q + k) + 3.0 * h * f + 2.0 * h;
    double biases = (dims->has_attention_bias ? q + 2.0 * k + h : 0.0) +
                    (dims->has_mlp_bias ? 2.0 * f + h : 0.0);
    return (double)dims->layers * (block + biases) + h +
           (double)dims->vocab * h * (dims->is_tied ? 1.0 : 2.0);
}

int64_t llama_parameters(const struct llama_dims *dims)
{
    int64_t h = dims->h, q = dims->q, k = dims->k, f = dims->f;
    int64_t block = 2 * h * (q + k) + 3 * h * f + 2 * h;
    int64_t biases =
        (dims->has_attention_bias ? q + 2 * k + h : 0) + (dims->has_mlp_bias ? 2 * f + h : 0);
    return dims->layers * (block + biases) + h + dims->vocab * h * (dims->is_tied ? 1 : 2);
}

struct build {
    struct arena *arena;
    const struct llama_dims *dims;
    const struct train_shape *shape;
    int64_t tokens, element_bytes;
    int64_t hidden_bytes; /* all tokens */
};

static struct kernel_sink sink_of(const struct build *build, struct kernel_list *list,
                                  enum kernel_pass pass)
{
    return (struct kernel_sink){build->arena, list, pass, build->shape->compute_dtype};
}

static void set_param(const struct build *build, struct module_kind *kind, const char *name,
                      int64_t dim0, int64_t rest)
{
    kind->params = ARENA_NEW(build->arena, struct param);
    kind->params[0] = (struct param){.name = name, .dim0 = dim0, .rest = rest};
    kind->param_count = 1;
    kind->numel = dim0 * rest;
}

static void build_embedding(const struct build *build, struct module_kind *kind)
{
    double hidden = (double)build->hidden_bytes, ids = 8.0 * (double)build->tokens;
    double weight =
        (double)build->element_bytes * (double)build->dims->vocab * (double)build->dims->h;
    struct kernel_sink forward = sink_of(build, &kind->forward, PASS_FORWARD);
    struct kernel_sink backward = sink_of(build, &kind->backward, PASS_BACKWARD);
    kind->role = MODULE_EMBEDDING;
    set_param(build, kind, "embed_tokens.weight", build->dims->vocab, build->dims->h);
    emit_bytes(&forward, "embed_tokens", KERNEL_EMBEDDING, 2.0 * hidden + ids);
    emit_bytes(&backward, "embed_tokens.zeros", KERNEL_ELEMENTWISE, weight);
    emit_bytes(&backward, "embed_tokens.weight_grad", KERNEL_EMBEDDING, 3.0 * hidden + ids);
    if (build->dims->is_tied)
        emit_bytes(&backward, "tied.grad_sum", KERNEL_ELEMENTWISE, 3.0 * weight);
    kind->saved_bytes = 8 * build->tokens;
    kind->output_bytes = build->hidden_bytes;
    kind->backward_temp_bytes = build->hidden_bytes;
    kind->host_op_count = 1;
}

static void build_norm(const struct build *build, struct module_kind *kind)
{
    double hidden = (double)build->hidden_bytes;
    double small =
        4.0 * (double)build->tokens + (double)build->element_bytes * (double)build->dims->h;
    struct kernel_sink forward = sink_of(build, &kind->forward, PASS_FORWARD);
    struct kernel_sink backward = sink_of(build, &kind->backward, PASS_BACKWARD);
    kind->role = MODULE_NORM;
    set_param(build, kind, "norm.weight", build->dims->h, 1);
    emit_bytes(&forward, "norm", KERNEL_NORM, 2.0 * hidden + small);
    emit_bytes(&backward, "norm.input_grad", KERNEL_NORM, 3.0 * hidden + small);
    emit_bytes(&backward, "norm.weight_grad", KERNEL_NORM, 2.0 * hidden + small);
    kind->saved_bytes = build->hidden_bytes + 4 * build->tokens;
    kind->output_bytes = build->hidden_bytes;
    kind->backward_temp_bytes = 2 * build->hidden_bytes;
    kind->host_op_count = 1;
}

static void build_head(const struct build *build, struct module_kind *kind)
{
    int64_t tokens = build->tokens, vocab = build->dims->vocab, h = build->dims->h;
    struct kernel_sink forward = sink_of(build, &kind->forward, PASS_FORWARD);
    struct kernel_sink backward = sink_of(build, &kind->backward, PASS_BACKWARD);
    kind->role = MODULE_HEAD;
    if (!build->dims->is_tied)
        set_param(build, kind, "lm_head.weight", vocab, h);
    emit_gemm(&forward, "lm_head", tokens, vocab, h);
    emit_gemm(&backward, "lm_head.input_grad", tokens, h, vocab);
    emit_gemm(&backward, "lm_head.weight_grad", vocab, h, tokens);
    kind->saved_bytes = build->hidden_bytes;
    kind->output_bytes = tokens * vocab * build->element_bytes;
    kind->backward_temp_bytes = build->hidden_bytes;
    kind->model_flop = 2.0 * (double)tokens * (double)vocab * (double)h;
    kind->host_op_count = 1;
}

static void build_loss(const struct build *build, struct module_kind *kind)
{
    enum dtype dtype = build->shape->loss_upcast ? DTYPE_FP32 : build->shape->compute_dtype;
    bool has_cast = dtype != build->shape->compute_dtype;
    int64_t logits = build->tokens * build->dims->vocab;
    double element = (double)build->element_bytes, wide = (double)dtype_bytes(dtype);
    double count = (double)logits, tokens = (double)build->tokens;
    struct kernel_sink forward = sink_of(build, &kind->forward, PASS_FORWARD);
    struct kernel_sink backward = sink_of(build, &kind->backward, PASS_BACKWARD);
    forward.dtype = dtype;
    backward.dtype = dtype;
    kind->role = MODULE_LOSS;
    if (has_cast)
        emit_bytes(&forward, "logits.to_fp32", KERNEL_ELEMENTWISE, count * (element + wide));
    emit_bytes(&forward, "log_softmax", KERNEL_SOFTMAX_LOSS, count * 2.0 * wide);
    /* nll reads one element and one 8-byte target a token; its gradient writes that element. */
    emit_bytes(&forward, "nll", KERNEL_SOFTMAX_LOSS, tokens * (wide + 8.0));
    emit_bytes(&backward, "nll.zeros", KERNEL_ELEMENTWISE, count * wide);
    emit_bytes(&backward, "nll.grad", KERNEL_SOFTMAX_LOSS, tokens * (wide + 8.0));
    emit_bytes(&backward, "log_softmax.grad", KERNEL_SOFTMAX_LOSS, count * 3.0 * wide);
    if (has_cast)
        emit_bytes(&backward, "logits.from_fp32", KERNEL_ELEMENTWISE, count * (wide + element));
    kind->saved_bytes = logits * dtype_bytes(dtype);
    kind->forward_temp_bytes = has_cast ? logits * dtype_bytes(dtype) : 0;
    kind->backward_temp_bytes = 2 * logits * dtype_bytes(dtype);
    kind->output_bytes = dtype_bytes(dtype);
    kind->host_op_count = has_cast ? 3 : 2;
}

static void add_module(struct model *model, int32_t kind_idx, const char *name)
{
    model->modules[model->module_count++] = (struct module){.kind_idx = kind_idx, .name = name};
}

void llama_build(struct arena *arena, const struct llama_dims *dims,
                 const struct train_shape *shape, struct model *model)
{
    struct build build = {.arena = arena,
                          .dims = dims,
                          .shape = shape,
                          .tokens = model->tokens,
                          .element_bytes = dtype_bytes(shape->compute_dtype)};
    build.hidden_bytes = build.tokens * dims->h * build.element_bytes;

    model->kinds = ARENA_ARRAY(arena, struct module_kind, KIND_COUNT);
    model->kind_count = KIND_COUNT;
    build_embedding(&build, &model->kinds[KIND_EMBEDDING]);
    llama_block_build(arena, dims, shape, &model->kinds[KIND_BLOCK]);
    build_norm(&build, &model->kinds[KIND_NORM]);
    build_head(&build, &model->kinds[KIND_HEAD]);
    build_loss(&build, &model->kinds[KIND_LOSS]);

    model->modules = ARENA_ARRAY(arena, struct module, dims->layers + KIND_COUNT - 1);
    add_module(model, KIND_EMBEDDING, "embed_tokens");
    for (int64_t i = 0; i < dims->layers; i++)
        add_module(model, KIND_BLOCK, arena_printf(arena, "layers.%d", (int)i));
    add_module(model, KIND_NORM, "norm");
    add_module(model, KIND_HEAD, "lm_head");
    add_module(model, KIND_LOSS, "loss");

    model->layers = dims->layers;
    model->heads = dims->a;
    model->head_dim = dims->d;
    model->is_tied = dims->is_tied;
    for (int32_t i = 0; i < model->module_count; i++)
        model->parameters += model->kinds[model->modules[i].kind_idx].numel;
    model->input_embedding_parameters = dims->is_tied ? 0 : dims->vocab * dims->h;
    model->flop_per_token = 6.0 * (double)(model->parameters - model->input_embedding_parameters) +
                            6.0 * (double)dims->layers * (double)dims->a * 2.0 * (double)dims->d *
                                (double)shape->seq_len;
}
