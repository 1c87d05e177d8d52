/*
 * model/outer.c: embedding and final norm.
 *
 * Embedding backward: zeros of the weight, then a scatter that reads the gradient and reads and
 * writes rows of the weight's. A tied weight gets the sum of two gradients, once.
 */
#include "model/outer.h"

#include "model/block.h"

struct outer outer_of(struct arena *arena, const struct network *net,
                      const struct train_shape *shape, int64_t seq_len)
{
    struct outer outer = {.arena = arena,
                          .net = net,
                          .shape = shape,
                          .mode = shape->has_fused_kernels ? FUSION_HAND : FUSION_EAGER,
                          .tokens = seq_len * shape->micro_batch,
                          .seq_len = seq_len,
                          .element_bytes = dtype_bytes(shape->compute_dtype)};
    outer.stream_tokens = outer.tokens / sequence_ranks(shape);
    outer.hidden_bytes = outer.stream_tokens * net->h * outer.element_bytes;
    outer.input_bytes =
        keeps_gathered(shape) ? outer.tokens * net->h * outer.element_bytes : outer.hidden_bytes;
    return outer;
}

struct adder {
    struct arena *arena;
    struct module_kind *kind;
};

void outer_add_param(void *context, const struct network_param *param)
{
    enum { OUTER_PARAMS_MAX = 8 };
    const struct adder *adder = context;
    struct module_kind *kind = adder->kind;
    if (kind->params == NULL)
        kind->params = ARENA_ARRAY(adder->arena, struct param, OUTER_PARAMS_MAX);
    BUG_IF(kind->param_count >= OUTER_PARAMS_MAX);
    kind->params[kind->param_count++] =
        (struct param){.name = param->name, .dim0 = param->rows, .rest = param->rest};
    kind->numel += param->rows * param->rest;
}

static struct kernel_sink sink_of(const struct outer *outer, struct kernel_list *list,
                                  enum kernel_pass pass)
{
    return (struct kernel_sink){outer->arena, list,
                                pass,         outer->shape->compute_dtype,
                                IMPL_EAGER,   lora_is_on(outer->shape)};
}

static void emit_norm(const struct outer *outer, struct kernel_sink *sink, const char *name)
{
    const struct network *net = outer->net;
    struct fusion_size size = {.elements = (double)outer->stream_tokens * (double)net->h,
                               .tokens = (double)outer->stream_tokens,
                               .weight_bytes = (double)(outer->element_bytes * net->h),
                               .reader_count = 1.0};
    emit_op(sink, outer->mode, fusion_norm_op(outer->shape, net->norm, false), name, size);
}

static int64_t norm_bytes(const struct outer *outer)
{
    return fusion_norm_saved_bytes(outer->shape, outer->mode, outer->net->norm,
                                   outer->element_bytes, outer->stream_tokens * outer->net->h,
                                   outer->stream_tokens, lora_is_on(outer->shape));
}

/* A table of which each sequence or segment reads a few rows: forward lookup and sum. */
static void extra_table(const struct outer *outer, struct kernel_sink *forward,
                        struct kernel_sink *backward, const char *name, int64_t rows)
{
    double hidden = (double)outer->hidden_bytes, element = (double)outer->element_bytes;
    double width = (double)outer->net->h;
    if (rows == 0)
        return;
    emit_bytes(forward, name, KERNEL_EMBEDDING, 2.0 * element * (double)outer->seq_len * width);
    emit_bytes(forward, join_names(outer->arena, name, ".sum"), KERNEL_ELEMENTWISE, 3.0 * hidden);
    emit_bytes(backward, join_names(outer->arena, name, ".zeros"), KERNEL_ELEMENTWISE,
               element * (double)rows * width);
    emit_bytes(backward, join_names(outer->arena, name, ".weight_grad"), KERNEL_EMBEDDING,
               hidden + 2.0 * element * (double)outer->seq_len * width);
}

static void project(const struct outer *outer, struct kernel_sink *forward,
                    struct kernel_sink *backward, const char *name, int64_t outputs, int64_t inputs)
{
    int64_t tokens = outer->tokens;
    emit_gemm(forward, name, (struct gemm_shape){.m = tokens, .n = outputs, .k = inputs});
    emit_gemm(backward, join_names(outer->arena, name, ".input_grad"),
              (struct gemm_shape){.m = tokens, .n = inputs, .k = outputs});
    emit_gemm(backward, join_names(outer->arena, name, ".weight_grad"),
              (struct gemm_shape){.m = outputs, .n = inputs, .k = tokens});
}

/* Norm, scale and dropout of the embedded tokens. */
static void dress_embedding(const struct outer *outer, struct kernel_sink *forward,
                            struct kernel_sink *backward, struct module_kind *kind)
{
    const struct network *net = outer->net;
    double hidden = (double)outer->hidden_bytes;
    double elements = (double)outer->stream_tokens * (double)net->h;
    double rate = net->kind == NETWORK_DECODER && net->embedding_dropout <= 0.0
                      ? 0.0
                      : net->embedding_dropout + net->hidden_dropout;
    if (net->traits.has_embedding_scale) {
        emit_bytes(forward, "embed_scale", KERNEL_ELEMENTWISE, 2.0 * hidden);
        emit_bytes(backward, "embed_scale.grad", KERNEL_ELEMENTWISE, 2.0 * hidden);
    }
    if (net->traits.has_embedding_norm) {
        emit_norm(outer, forward, "embed_norm");
        emit_norm(outer, backward, "embed_norm");
        kind->saved_bytes += norm_bytes(outer);
    }
    if (rate > 0.0) {
        struct fusion_size size = {.elements = elements};
        emit_op(forward, outer->mode, FUSION_DROPOUT, "embed_dropout", size);
        emit_op(backward, outer->mode, FUSION_DROPOUT, "embed_dropout", size);
        kind->saved_bytes += outer->stream_tokens * net->h;
    }
}

/* A rank looks up the tokens of its rows of the table, zeros the others, and sums over the ranks.
 */
static void exchange_embedded(const struct outer *outer, struct kernel_sink *forward,
                              struct kernel_sink *backward)
{
    const double elements = (double)outer->tokens * (double)outer->net->h;
    if (tensor_ranks(outer->shape) == 1)
        return;
    emit_bytes(forward, "embed_tokens.mask", KERNEL_ELEMENTWISE,
               2.0 * elements * (double)outer->element_bytes);
    (void)exchange_leave(forward, outer->shape,
                         (struct exchanged){"embed_tokens.reduce", elements, false});
    (void)exchange_leave_backward(backward, outer->shape,
                                  (struct exchanged){"embed_tokens.grad.gather", elements, false});
}

void outer_embedding(const struct outer *outer, bool owns_table, struct module_kind *kind)
{
    const struct network *net = outer->net;
    struct kernel_sink forward = sink_of(outer, &kind->forward, PASS_FORWARD);
    struct kernel_sink backward = sink_of(outer, &kind->backward, PASS_BACKWARD);
    double ids = 8.0 * (double)outer->tokens, element = (double)outer->element_bytes;
    double embedded = element * (double)outer->tokens * (double)net->embedding_width;
    double weight = element * (double)net->vocab * (double)net->embedding_width;
    bool is_shared = net->is_tied || !owns_table;
    kind->role = MODULE_EMBEDDING;
    kind->label = owns_table ? "embed_tokens" : "decoder.embed_tokens";
    if (owns_table)
        network_embedding_params(net, outer_add_param, &(struct adder){outer->arena, kind});
    emit_bytes(&forward, "embed_tokens", KERNEL_EMBEDDING, 2.0 * embedded + ids);
    kind->saved_bytes = 8 * outer->tokens;
    exchange_embedded(outer, &forward, &backward);
    dress_embedding(outer, &forward, &backward, kind);
    extra_table(outer, &forward, &backward, "embed_positions", net->position_rows);
    extra_table(outer, &forward, &backward, "token_type_embeddings", net->token_types);
    if (net->embedding_width != net->h)
        project(outer, &forward, &backward, "project_in", net->h, net->embedding_width);
    emit_bytes(&backward, "embed_tokens.zeros", KERNEL_ELEMENTWISE, weight);
    emit_bytes(&backward, "embed_tokens.weight_grad", KERNEL_EMBEDDING, 3.0 * embedded + ids);
    if (is_shared)
        emit_bytes(&backward, "tied.grad_sum", KERNEL_ELEMENTWISE, 3.0 * weight);
    kind->output_bytes = outer->hidden_bytes;
    kind->backward_temp_bytes = outer->hidden_bytes;
    if (tensor_ranks(outer->shape) > 1) { /* before and after an exchange */
        const int64_t whole = outer->tokens * net->h * outer->element_bytes;
        kind->forward_temp_bytes += whole;
        kind->backward_temp_bytes += sequence_ranks(outer->shape) > 1 ? whole : 0;
    }
    if (lora_is_on(outer->shape)) { /* the graph begins behind it */
        kind->backward.count = 0;
        kind->saved_bytes = 0;
        kind->backward_temp_bytes = 0;
    }
    kind->host_op_count = kind->forward.count;
}

void outer_patch_embedding(const struct outer *outer, struct module_kind *kind)
{
    const struct network *net = outer->net;
    struct kernel_sink forward = sink_of(outer, &kind->forward, PASS_FORWARD);
    struct kernel_sink backward = sink_of(outer, &kind->backward, PASS_BACKWARD);
    int64_t patches = net->patches * outer->shape->micro_batch;
    kind->role = MODULE_EMBEDDING;
    kind->label = "patch_embedding";
    network_embedding_params(net, outer_add_param, &(struct adder){outer->arena, kind});
    emit_gemm(&forward, "patch_embedding",
              (struct gemm_shape){.m = patches, .n = net->h, .k = net->patch_features});
    emit_bytes(&forward, "patch_embedding.cat", KERNEL_ELEMENTWISE,
               2.0 * (double)outer->hidden_bytes);
    dress_embedding(outer, &forward, &backward, kind);
    extra_table(outer, &forward, &backward, "position_embeddings", net->position_rows);
    emit_bytes(&backward, "patch_embedding.bias_grad", KERNEL_REDUCE, (double)outer->hidden_bytes);
    emit_gemm(&backward, "patch_embedding.weight_grad",
              (struct gemm_shape){.m = net->h, .n = net->patch_features, .k = patches});
    kind->saved_bytes += patches * net->patch_features * outer->element_bytes;
    kind->output_bytes = outer->hidden_bytes;
    kind->backward_temp_bytes = outer->hidden_bytes;
    kind->model_flop = 2.0 * (double)patches * (double)net->h * (double)net->patch_features;
    kind->host_op_count = kind->forward.count;
}

void outer_norm(const struct outer *outer, bool has_readers, struct module_kind *kind)
{
    struct kernel_sink forward = sink_of(outer, &kind->forward, PASS_FORWARD);
    struct kernel_sink backward = sink_of(outer, &kind->backward, PASS_BACKWARD);
    kind->role = MODULE_NORM;
    kind->label = has_readers ? "encoder.norm" : "norm";
    network_final_norm_params(outer->net, outer_add_param, &(struct adder){outer->arena, kind});
    emit_norm(outer, &forward, "norm");
    emit_norm(outer, &backward, "norm");
    if (sequence_ranks(outer->shape) > 1 && keeps_gathered(outer->shape) &&
        !lora_is_on(outer->shape))
        exchange_sum(&backward, outer->shape, "norm.weight_grad.reduce",
                     (double)(outer->net->h * outer->element_bytes));
    kind->saved_bytes = norm_bytes(outer) + (has_readers ? outer->hidden_bytes : 0);
    kind->output_bytes = outer->hidden_bytes;
    kind->backward_temp_bytes = 2 * outer->hidden_bytes;
    kind->host_op_count = kind->forward.count;
}
