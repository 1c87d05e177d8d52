/*
 * model/outer_loss.c: the head and the loss.
 *
 * Cross entropy as PyTorch composes it, with fp32 upcast of bf16 logits, per element of T·V:
 * forward cast (reads B, writes 4), log-softmax (reads 4, writes 4, which is saved), nll (T
 * elements); backward zeros (4), nll (T elements), log-softmax gradient (reads 4 + 4, writes 4),
 * cast (reads 4, writes B). Without upcast, or in fp32, the two casts are not there. In chunks the
 * same kernels run a chunk at a time, and what does not stay is a chunk large. The cast counts as
 * element-wise work, not among FSDP's own copies.
 *
 * Fused: one kernel reads the logits forward, one reads them and writes the gradient in their place
 * backward; the logits are what stays. Fused with the head's product (Liger): for each chunk of
 * tokens the logits, their gradient in place, and both products of the backward, all in the
 * forward; nothing of T·V is ever in memory, and the backward has nothing left to do.
 *
 * Shifted: Hugging Face's models, up to transformers 4.45, make the logits fp32 and copy them
 * without the last token of each sequence, and the loss reads the copy: logits and copy forward,
 * the copy's gradient and the zeros it is put into backward. With a fused loss, which then reads
 * fp32, 8 T·V both ways; eager 12 T·V forward (logits, copy, log-softmax) and backward as above.
 *
 * A variable of the training loop that holds the model's output (`pred`, `outputs`) keeps the
 * logits, as the model gave them back, while backward runs: 2 or 4 T·V beside its 12; and where the
 * loss is taken inside the model, whose call gives that variable its next value, in the next
 * forward beside another set of all that.
 *
 * Metrics: frameworks that log a cross-entropy or perplexity of each microbatch compute it anew
 * from the logits, in fp32 under autocast and without gradient: cast (B + 4), log-softmax (4 + 4),
 * nll. Composer does so behind the backward (trainer.py, _eval_train_metrics), where the
 * activations are gone, so its temporaries make no peak and are not counted.
 */
#include "model/outer.h"

#include "model/block.h"

struct adder {
    struct arena *arena;
    struct module_kind *kind;
};

static struct kernel_sink sink_of(const struct outer *outer, struct kernel_list *list,
                                  enum kernel_pass pass, enum kernel_impl impl)
{
    return (struct kernel_sink){
        outer->arena, list, pass, outer->shape->compute_dtype, impl, lora_is_on(outer->shape)};
}

int64_t linear_loss_chunks(const struct outer *outer)
{
    const struct network *net = outer->net;
    if (outer->shape->loss_chunks > 1)
        return outer->shape->loss_chunks < outer->tokens ? outer->shape->loss_chunks
                                                         : outer->tokens;
    int64_t wanted = (net->vocab + net->h - 1) / net->h;
    int64_t rows = 1;
    while (rows < (outer->tokens + wanted - 1) / wanted)
        rows *= 2;
    return (outer->tokens + rows - 1) / rows;
}

static void linear_loss(const struct outer *outer, struct module_kind *kind)
{
    const struct network *net = outer->net;
    int64_t chunks = linear_loss_chunks(outer), h = net->embedding_width, vocab = net->vocab;
    int64_t rows = (outer->tokens + chunks - 1) / chunks;
    double element = (double)outer->element_bytes;
    struct kernel_sink sink = sink_of(outer, &kind->forward, PASS_FORWARD, IMPL_HAND);
    for (int64_t done = 0; done < outer->tokens; done += rows) {
        int64_t m = outer->tokens - done < rows ? outer->tokens - done : rows;
        emit_gemm(&sink, "lm_head", (struct gemm_shape){.m = m, .n = vocab, .k = h});
        emit_bytes(&sink, "cross_entropy", KERNEL_SOFTMAX_LOSS,
                   3.0 * element * (double)m * (double)vocab);
        emit_gemm(&sink, "lm_head.input_grad", (struct gemm_shape){.m = m, .n = h, .k = vocab});
        if (!lora_is_on(outer->shape))
            emit_gemm(&sink, "lm_head.weight_grad",
                      (struct gemm_shape){.m = vocab, .n = h, .k = m});
    }
    kind->forward_temp_bytes = rows * vocab * outer->element_bytes;
    kind->output_bytes = 0;
}

/* Gemma 2: c·tanh(logits/c). */
static void softcap(const struct outer *outer, struct kernel_sink *forward,
                    struct kernel_sink *backward, struct module_kind *kind)
{
    double bytes = (double)outer->element_bytes * (double)outer->tokens * (double)outer->net->vocab;
    if (!outer->net->has_softcap)
        return;
    emit_bytes(forward, "softcap.div", KERNEL_ELEMENTWISE, 2.0 * bytes);
    emit_bytes(forward, "softcap.tanh", KERNEL_ELEMENTWISE, 2.0 * bytes);
    emit_bytes(forward, "softcap.mul", KERNEL_ELEMENTWISE, 2.0 * bytes);
    emit_bytes(backward, "softcap.mul.grad", KERNEL_ELEMENTWISE, 2.0 * bytes);
    emit_bytes(backward, "softcap.tanh.grad", KERNEL_ELEMENTWISE, 3.0 * bytes);
    emit_bytes(backward, "softcap.div.grad", KERNEL_ELEMENTWISE, 2.0 * bytes);
    kind->saved_bytes += outer->tokens * outer->net->vocab * outer->element_bytes;
}

static void project(const struct outer *outer, struct kernel_sink *forward,
                    struct kernel_sink *backward, const char *name, int64_t rows, int64_t outputs,
                    int64_t inputs)
{
    const double elements = (double)rows * (double)inputs;
    (void)exchange_enter(forward, outer->shape,
                         (struct exchanged){"lm_head.input.gather", elements, false});
    emit_gemm(forward, name, (struct gemm_shape){.m = rows, .n = outputs, .k = inputs});
    const int32_t gather =
        exchanges_by_layer(outer->shape) && !lora_is_on(outer->shape)
            ? exchange_enter(backward, outer->shape,
                             (struct exchanged){"lm_head.input.gather", elements, false})
            : -1;
    emit_gemm(backward, join_names(outer->arena, name, ".input_grad"),
              (struct gemm_shape){.m = rows, .n = inputs, .k = outputs});
    exchange_beside(backward, gather);
    const int32_t reduce =
        exchanges_by_layer(outer->shape)
            ? exchange_enter_backward(
                  backward, outer->shape,
                  (struct exchanged){"lm_head.input_grad.reduce", elements, false})
            : -1;
    if (!lora_is_on(outer->shape))
        emit_gemm(backward, join_names(outer->arena, name, ".weight_grad"),
                  (struct gemm_shape){.m = outputs, .n = inputs, .k = rows});
    exchange_beside(backward, reduce);
    if (!exchanges_by_layer(outer->shape))
        (void)exchange_enter_backward(
            backward, outer->shape,
            (struct exchanged){"lm_head.input_grad.reduce", elements, false});
}

static void bias_grad(const struct outer *outer, struct kernel_sink *backward, const char *name,
                      int64_t rows, int64_t width)
{
    if (lora_is_on(outer->shape))
        return;
    emit_bytes(backward, name, KERNEL_REDUCE,
               (double)outer->element_bytes * (double)width * ((double)rows + 1.0));
}

/* BERT's masked-language head: a dense layer, gelu, a norm before the product. */
static void transform(const struct outer *outer, struct kernel_sink *forward,
                      struct kernel_sink *backward, struct module_kind *kind)
{
    const struct network *net = outer->net;
    double elements = (double)outer->tokens * (double)net->h;
    struct fusion_size act = {.elements = elements};
    struct fusion_size norm = {.elements = elements,
                               .tokens = (double)outer->tokens,
                               .weight_bytes = (double)(outer->element_bytes * net->h),
                               .reader_count = 1.0};
    project(outer, forward, backward, "transform", outer->tokens, net->h, net->h);
    bias_grad(outer, backward, "transform.bias_grad", outer->tokens, net->h);
    emit_op(forward, outer->mode, FUSION_ACTIVATION, "transform.act", act);
    emit_op(backward, outer->mode, FUSION_ACTIVATION, "transform.act", act);
    emit_op(forward, outer->mode, FUSION_LAYER_NORM, "transform.norm", norm);
    emit_op(backward, outer->mode, FUSION_LAYER_NORM, "transform.norm", norm);
    kind->saved_bytes += 3 * outer->hidden_bytes + 8 * outer->tokens;
    kind->model_flop += 2.0 * elements * (double)net->h;
}

int64_t outer_loss_classes(const struct outer *outer)
{
    const struct network *net = outer->net;
    const bool is_split = outer->shape->tensor_parallel.has_loss;
    return tensor_ranks(outer->shape) > 1 && !is_split ? net->whole_vocab : net->vocab;
}

/* Of all ranks, where the loss is not split. */
static void gather_logits(const struct outer *outer, struct kernel_sink *forward,
                          struct module_kind *kind)
{
    const int64_t classes = outer_loss_classes(outer);
    if (classes == outer->net->vocab)
        return;
    const double bytes = (double)outer->tokens * (double)classes * (double)outer->element_bytes;
    exchange_gather(forward, outer->shape, "lm_head.logits.gather", bytes);
    emit_bytes(forward, "lm_head.logits.cat", KERNEL_ELEMENTWISE, 2.0 * bytes);
    kind->forward_temp_bytes += outer->tokens * classes * outer->element_bytes;
}

void outer_head(const struct outer *outer, struct module_kind *kind)
{
    const struct network *net = outer->net;
    int64_t tokens = outer->tokens, h = net->embedding_width;
    struct kernel_sink forward = sink_of(outer, &kind->forward, PASS_FORWARD, IMPL_EAGER);
    struct kernel_sink backward = sink_of(outer, &kind->backward, PASS_BACKWARD, IMPL_EAGER);
    kind->role = MODULE_HEAD;
    kind->label = "lm_head";
    network_head_params(net, outer_add_param, &(struct adder){outer->arena, kind});
    /* The input, for the weight's gradient; Liger's: its gradient, made in the forward. */
    const bool keeps = !lora_is_on(outer->shape) || outer->shape->loss == LOSS_LINEAR;
    kind->saved_bytes = keeps ? outer->input_bytes : 0;
    kind->output_bytes = tokens * outer_loss_classes(outer) * outer->element_bytes;
    kind->backward_temp_bytes = outer->hidden_bytes;
    if (tensor_ranks(outer->shape) > 1)
        kind->backward_temp_bytes += tokens * h * outer->element_bytes;
    kind->model_flop = 2.0 * (double)tokens * (double)net->vocab * (double)h;
    if (net->kind == NETWORK_ENCODER)
        transform(outer, &forward, &backward, kind);
    if (h != net->h) {
        project(outer, &forward, &backward, "project_out", tokens, h, net->h);
        kind->saved_bytes += tokens * h * outer->element_bytes;
    }
    if (outer->shape->loss == LOSS_LINEAR) {
        linear_loss(outer, kind);
    } else {
        project(outer, &forward, &backward, "lm_head", tokens, net->vocab, h);
        gather_logits(outer, &forward, kind);
        if (net->has_head_bias || net->kind == NETWORK_ENCODER)
            bias_grad(outer, &backward, "lm_head.bias_grad", tokens, net->vocab);
        softcap(outer, &forward, &backward, kind);
    }
    kind->host_op_count = kind->forward.count;
}

void outer_pooled_head(const struct outer *outer, struct module_kind *kind)
{
    const struct network *net = outer->net;
    struct kernel_sink forward = sink_of(outer, &kind->forward, PASS_FORWARD, IMPL_EAGER);
    struct kernel_sink backward = sink_of(outer, &kind->backward, PASS_BACKWARD, IMPL_EAGER);
    int64_t rows = outer->shape->micro_batch;
    int64_t outputs = net->kind == NETWORK_VISION ? net->labels : net->h;
    kind->role = MODULE_HEAD;
    kind->label = net->kind == NETWORK_VISION ? "classifier" : "pooler";
    network_head_params(net, outer_add_param, &(struct adder){outer->arena, kind});
    project(outer, &forward, &backward, kind->label, rows, outputs, net->h);
    bias_grad(outer, &backward, "bias_grad", rows, outputs);
    kind->saved_bytes = outer->hidden_bytes;
    kind->output_bytes = rows * outputs * outer->element_bytes;
    kind->backward_temp_bytes = outer->hidden_bytes;
    kind->model_flop = 2.0 * (double)rows * (double)outputs * (double)net->h;
    kind->host_op_count = kind->forward.count;
}

struct loss_size {
    int64_t rows, classes, chunks;
    enum dtype dtype;
    bool has_cast, is_shifted;
};

/* The copy of the shifted logits; backward zeros, and a copy into them. */
static void shift_logits(const struct loss_size *size, struct kernel_sink *sink)
{
    const double bytes =
        (double)size->rows * (double)size->classes * (double)dtype_bytes(size->dtype);
    if (!size->is_shifted)
        return;
    if (sink->pass == PASS_BACKWARD)
        emit_bytes(sink, "logits.shift.zeros", KERNEL_ELEMENTWISE, bytes);
    emit_bytes(sink, "logits.shift", KERNEL_ELEMENTWISE, 2.0 * bytes);
}

/* What logits that the model casts take beyond those that the head made, whose place they have. */
static int64_t replaced_bytes(const struct outer *outer, const struct loss_size *size)
{
    return size->has_cast
               ? size->rows * size->classes * (dtype_bytes(size->dtype) - outer->element_bytes)
               : 0;
}

static void eager_loss(const struct outer *outer, const struct loss_size *size,
                       struct module_kind *kind)
{
    double element = (double)outer->element_bytes, wide = (double)dtype_bytes(size->dtype);
    double tokens = (double)size->rows / (double)size->chunks;
    double count = tokens * (double)size->classes;
    struct kernel_sink forward = sink_of(outer, &kind->forward, PASS_FORWARD, IMPL_EAGER);
    struct kernel_sink backward = sink_of(outer, &kind->backward, PASS_BACKWARD, IMPL_EAGER);
    forward.dtype = size->dtype;
    backward.dtype = size->dtype;
    for (int64_t i = 0; i < size->chunks; i++) {
        if (size->has_cast)
            emit_bytes(&forward, "logits.to_fp32", KERNEL_ELEMENTWISE, count * (element + wide));
        shift_logits(size, &forward);
        emit_bytes(&forward, "log_softmax", KERNEL_SOFTMAX_LOSS, count * 2.0 * wide);
        /* nll reads one element and one 8-byte target a token; its gradient writes that element. */
        emit_bytes(&forward, "nll", KERNEL_SOFTMAX_LOSS, tokens * (wide + 8.0));
        emit_bytes(&backward, "nll.zeros", KERNEL_ELEMENTWISE, count * wide);
        emit_bytes(&backward, "nll.grad", KERNEL_SOFTMAX_LOSS, tokens * (wide + 8.0));
        emit_bytes(&backward, "log_softmax.grad", KERNEL_SOFTMAX_LOSS, count * 3.0 * wide);
        shift_logits(size, &backward);
        if (size->has_cast)
            emit_bytes(&backward, "logits.from_fp32", KERNEL_ELEMENTWISE, count * (wide + element));
    }
    int64_t bytes = size->rows * size->classes * dtype_bytes(size->dtype);
    int64_t chunk_bytes = bytes / size->chunks;
    kind->saved_bytes = bytes;
    kind->forward_temp_bytes = size->has_cast ? chunk_bytes : 0;
    kind->backward_temp_bytes = 2 * chunk_bytes;
    if (size->is_shifted)
        kind->forward_temp_bytes = replaced_bytes(outer, size) + bytes;
    else if (outer->shape->model_upcasts)
        kind->forward_temp_bytes = replaced_bytes(outer, size);
    kind->piece_bytes = chunk_bytes;
}

static void fused_loss(const struct outer *outer, const struct loss_size *size,
                       struct module_kind *kind)
{
    struct kernel_sink forward = sink_of(outer, &kind->forward, PASS_FORWARD, IMPL_HAND);
    struct kernel_sink backward = sink_of(outer, &kind->backward, PASS_BACKWARD, IMPL_HAND);
    const enum dtype read = size->is_shifted ? size->dtype : outer->shape->compute_dtype;
    const bool has_cast = size->is_shifted && size->has_cast;
    const double element = (double)outer->element_bytes;
    const double count = (double)size->rows * (double)size->classes;
    const double logits = (double)dtype_bytes(read) * count;
    if (has_cast)
        emit_bytes(&forward, "logits.to_fp32", KERNEL_ELEMENTWISE, count * element + logits);
    shift_logits(size, &forward);
    emit_bytes(&forward, "cross_entropy", KERNEL_SOFTMAX_LOSS, logits + 16.0 * (double)size->rows);
    emit_bytes(&backward, "cross_entropy.grad", KERNEL_SOFTMAX_LOSS,
               2.0 * logits + 16.0 * (double)size->rows);
    shift_logits(size, &backward);
    if (has_cast)
        emit_bytes(&backward, "logits.from_fp32", KERNEL_ELEMENTWISE, logits + count * element);
    kind->saved_bytes = size->rows * (size->classes * dtype_bytes(read) + 4);
    if (size->is_shifted) {
        kind->forward_temp_bytes = replaced_bytes(outer, size);
        kind->backward_temp_bytes = size->rows * size->classes * dtype_bytes(read);
    }
}

static void loss_metrics(const struct outer *outer, const struct loss_size *size,
                         struct module_kind *kind)
{
    double element = (double)outer->element_bytes, wide = (double)dtype_bytes(DTYPE_FP32);
    double tokens = (double)size->rows, count = tokens * (double)size->classes;
    struct kernel_sink sink = sink_of(outer, &kind->forward, PASS_FORWARD, IMPL_EAGER);
    sink.dtype = DTYPE_FP32;
    for (int64_t i = 0; i < outer->shape->loss_metrics; i++) {
        if (outer->shape->compute_dtype != DTYPE_FP32)
            emit_bytes(&sink, "metric.to_fp32", KERNEL_ELEMENTWISE, count * (element + wide));
        emit_bytes(&sink, "metric.log_softmax", KERNEL_SOFTMAX_LOSS, count * 2.0 * wide);
        emit_bytes(&sink, "metric.nll", KERNEL_SOFTMAX_LOSS, tokens * (wide + 8.0));
    }
}

/* A loss split over the vocabulary: of each token the maximum, the sum, the target's logit. */
static void sum_over_vocabulary(const struct outer *outer, int64_t rows, struct module_kind *kind)
{
    static const char *const names[] = {"loss.max.reduce", "loss.sum.reduce", "loss.target.reduce"};
    struct kernel_sink sink = sink_of(outer, &kind->forward, PASS_FORWARD, IMPL_EAGER);
    for (size_t i = 0; i < 3 && outer->shape->tensor_parallel.has_loss; i++)
        exchange_sum(&sink, outer->shape, names[i], 4.0 * (double)rows);
}

void outer_loss(const struct outer *outer, int64_t rows, int64_t classes, struct module_kind *kind)
{
    const struct train_shape *shape = outer->shape;
    struct loss_size size = {.rows = rows, .classes = classes, .chunks = 1};
    size.dtype = shape->loss_upcast ? DTYPE_FP32 : shape->compute_dtype;
    size.has_cast = size.dtype != shape->compute_dtype;
    size.is_shifted = shape->loss_shifted;
    if (shape->loss_chunks > 1)
        size.chunks = shape->loss_chunks < rows ? shape->loss_chunks : rows;
    kind->role = MODULE_LOSS;
    kind->label = "loss";
    if (classes == 0 || shape->loss == LOSS_LINEAR)
        return;
    if (shape->loss == LOSS_FUSED)
        fused_loss(outer, &size, kind);
    else
        eager_loss(outer, &size, kind);
    loss_metrics(outer, &size, kind);
    sum_over_vocabulary(outer, rows, kind);
    const bool is_cast = shape->model_upcasts || size.is_shifted;
    if (shape->kept_output != OUTPUT_DROPPED)
        kind->kept_bytes =
            rows * classes * dtype_bytes(is_cast ? size.dtype : shape->compute_dtype);
    kind->output_bytes = dtype_bytes(size.dtype);
    kind->host_op_count = kind->forward.count;
}
