/* model/block.c: a block put together from norms, attention and MLP, forward and backward. */
#include "model/block.h"

void block_op(struct block *block, struct kernel_sink *sink, enum fusion_op op, const char *name,
              double elements)
{
    emit_op(sink, block->mode, op, name, (struct fusion_size){.elements = elements});
}

void block_activation(struct block *block, struct kernel_sink *sink, enum fusion_op op,
                      const char *name, double elements)
{
    emit_op(sink, block->activation_mode, op, name, (struct fusion_size){.elements = elements});
}

/* ---- norms and residuals ------------------------------------------------------------------ */

/* The kernels from `begin` on are those of a part. */
static void tag_part(struct kernel_list *list, int32_t begin, const char *name)
{
    for (int32_t i = begin; i < list->count; i++)
        list->items[i].part = name;
}

int64_t norm_saved_bytes(const struct block *block, int64_t elements, int64_t rows)
{
    return fusion_norm_saved_bytes(block->shape, block->mode, block->net->norm,
                                   block->element_bytes, elements, rows, lora_is_on(block->shape));
}

static double stream_elements(const struct block *block)
{
    return (double)block->stream_tokens * (double)block->net->h;
}

static void norm(struct block *block, struct kernel_sink *sink, const char *name,
                 bool follows_residual, int reader_count)
{
    const struct network *net = block->net;
    const enum fusion_op op = fusion_norm_op(block->shape, net->norm, follows_residual);
    struct fusion_size size = {.elements = stream_elements(block),
                               .tokens = (double)block->stream_tokens,
                               .weight_bytes = (double)(block->element_bytes * net->h),
                               .reader_count = (double)reader_count};
    emit_op(sink, block->mode, op, name, size);
}

/* dtensor: each rank's gradient of a norm's weight is of its own tokens. */
static void sum_norm_grads(struct block *block, const char *name)
{
    const int64_t tensors = block->net->traits.has_norm_bias ? 2 : 1;
    if (sequence_ranks(block->shape) == 1 || !keeps_gathered(block->shape) ||
        lora_is_on(block->shape))
        return;
    for (int64_t i = 0; i < tensors; i++)
        exchange_sum(&block->backward, block->shape,
                     join_names(block->arena, name, ".weight_grad.reduce"),
                     (double)(block->net->h * block->element_bytes));
}

/* A norm's backward: the readers' gradients first, afterwards the residual's. */
static void norm_backward(struct block *block, const char *name, int reader_count,
                          bool has_residual)
{
    double hidden = stream_elements(block);
    struct kernel_sink *sink = &block->backward;
    const int32_t begin = block->kind->backward.count;
    if (tensor_ranks(block->shape) > 1 && keeps_gathered(block->shape))
        reader_count = 1; /* summed before they were reduced */
    for (int i = 1; i < reader_count; i++)
        block_op(block, sink, FUSION_GRAD_SUM, "grad_sum", hidden);
    norm(block, sink, name, false, reader_count);
    sum_norm_grads(block, name);
    if (has_residual)
        block_op(block, sink, FUSION_GRAD_SUM, "residual.grad_sum", hidden);
    tag_part(&block->kind->backward, begin, name);
}

static void dropout(struct block *block, struct kernel_sink *sink, const char *name)
{
    if (block->net->hidden_dropout > 0.0)
        block_op(block, sink, FUSION_DROPOUT, name, stream_elements(block));
}

/* ---- the ends of a part --------------------------------------------------------------------- */

static double part_elements(const struct block *block)
{
    return (double)block->tokens * (double)block->net->h;
}

static const char *part_name(struct block *block, const char *what)
{
    return tensor_ranks(block->shape) > 1 ? join_names(block->arena, block->prefix, what) : what;
}

bool part_is_async(const struct block *block)
{
    return block->shape->tensor_parallel.is_async;
}

bool part_gathers_beside(const struct block *block)
{
    return part_is_async(block) && !float8_is_rowwise(block->shape);
}

/* What is gathered is a byte an element where casts come first. */
static struct exchanged exchanged_of(struct block *block, const char *what, bool is_gathered)
{
    const bool is_narrow = is_gathered && exchanges_float8(block->shape);
    return (struct exchanged){
        .name = part_name(block, what),
        .elements = part_elements(block) / (is_narrow ? (double)block->element_bytes : 1.0),
        .is_piped = is_gathered ? part_gathers_beside(block) : part_is_async(block)};
}

int32_t part_enter(struct block *block)
{
    return exchange_enter(&block->forward, block->shape, exchanged_of(block, "input.gather", true));
}

static int32_t leave(struct block *block)
{
    return exchange_leave(&block->forward, block->shape,
                          exchanged_of(block, "output.reduce", false));
}

void part_write(struct block *block, const struct linear *linear)
{
    const int32_t reduce = part_is_async(block) ? leave(block) : -1;
    linear_forward(block, linear);
    exchange_beside(&block->forward, reduce);
    if (!part_is_async(block))
        (void)leave(block);
    else /* what the others sent stands side by side */
        emit_bytes(&block->forward, part_name(block, "output.sum"), KERNEL_ELEMENTWISE,
                   part_elements(block) * (double)block->element_bytes *
                       (1.0 + 1.0 / (double)tensor_ranks(block->shape)));
}

void part_write_backward(struct block *block, const struct linear *linear)
{
    const int32_t gather = exchange_leave_backward(&block->backward, block->shape,
                                                   exchanged_of(block, "output_grad.gather", true));
    linear_backward(block, linear);
    if (part_gathers_beside(block))
        exchange_beside_product(&block->backward, gather);
}

/* The sum of what the readers of the input give, eager one by one, then over the ranks. */
void part_enter_backward(struct block *block, int reader_count)
{
    struct kernel_sink *sink = &block->backward;
    const double bytes = part_elements(block) * (double)block->element_bytes;
    if (tensor_ranks(block->shape) == 1 || exchanges_by_layer(block->shape))
        return;
    if (block->mode == FUSION_COMPILED && reader_count > 1)
        emit_bytes(sink, part_name(block, "grad_sum"), KERNEL_ELEMENTWISE,
                   (double)(reader_count + 1) * bytes);
    for (int i = 1; i < reader_count; i++)
        block_op(block, sink, FUSION_GRAD_SUM, part_name(block, "grad_sum"), part_elements(block));
    (void)exchange_enter_backward(
        sink, block->shape,
        (struct exchanged){part_name(block, "input_grad.reduce"), part_elements(block), false});
}

/* ---- children ----------------------------------------------------------------------------- */

static void end_child(struct block *block, enum block_part part, const char *name,
                      int64_t saved_bytes, int64_t input_bytes)
{
    const int32_t kernel_end = block->kind->forward.count;
    if (part != PART_OUTSIDE)
        tag_part(&block->kind->forward,
                 block->child_count > 0 ? block->children[block->child_count - 1].kernel_end : 0,
                 name);
    BUG_IF(block->child_count >= BLOCK_CHILDREN_MAX);
    if (part == PART_NORM)
        block->needed_end = kernel_end;
    block->children[block->child_count++] = (struct block_child){.part = part,
                                                                 .name = name,
                                                                 .saved_bytes = saved_bytes,
                                                                 .input_bytes = input_bytes,
                                                                 .kernel_end = kernel_end,
                                                                 .needed_end = block->needed_end};
}

static void norm_child(struct block *block, const char *name, bool follows_residual)
{
    norm(block, &block->forward, name, follows_residual, 1);
    end_child(block, PART_NORM, name,
              norm_saved_bytes(block, block->stream_tokens * block->net->h, block->stream_tokens),
              block->hidden_bytes);
}

static void attention_child(struct block *block, const struct attention_part *part, bool owns_input)
{
    int64_t saved = attention_saved_bytes(block, part);
    block->prefix = part->is_cross ? "cross_attn." : "self_attn.";
    attention_forward(block, part);
    if (!owns_input && attention_keeps_input(block, part))
        saved -= block->input_bytes;
    end_child(block, PART_ATTENTION, part->is_cross ? "cross_attn" : "self_attn", saved,
              owns_input ? block->hidden_bytes : 0);
}

static void mlp_child(struct block *block, bool owns_input)
{
    int64_t saved = mlp_saved_bytes(block);
    block->prefix = "mlp.";
    mlp_forward(block);
    if (!owns_input && mlp_keeps_input(block))
        saved -= block->input_bytes;
    end_child(block, PART_MLP, "mlp", saved, owns_input ? block->hidden_bytes : 0);
}

/* After a part: post-norm, dropout, the sum with the residual. */
static void close_part(struct block *block, const char *post_norm, const char *name, bool is_last)
{
    int64_t mask = block->net->hidden_dropout > 0.0 ? block->stream_tokens * block->net->h : 0;
    if (block->net->traits.norms_per_layer == 4)
        norm_child(block, post_norm, false);
    dropout(block, &block->forward, join_names(block->arena, name, ".dropout"));
    if (mask > 0)
        block->needed_end = block->kind->forward.count;
    block_op(block, &block->forward, is_last ? FUSION_RESIDUAL : FUSION_RESIDUAL_INSIDE,
             join_names(block->arena, name, ".residual"), stream_elements(block));
    end_child(block, PART_OUTSIDE, "", mask, 0);
}

static struct attention_part self_part(const struct block *block)
{
    const struct block_spec *spec = block->spec;
    return (struct attention_part){false, spec->tokens, spec->seq_len, spec->tokens, spec->seq_len};
}

static struct attention_part cross_part(const struct block *block)
{
    const struct block_spec *spec = block->spec;
    return (struct attention_part){true, spec->tokens, spec->seq_len, spec->cross_tokens,
                                   spec->cross_seq_len};
}

/* ---- sequences ---------------------------------------------------------------------------- */

static const char *second_norm_name(const struct block *block)
{
    return block->net->traits.norms_per_layer == 4 ? "pre_feedforward_layernorm"
                                                   : "post_attention_layernorm";
}

static void build_forward(struct block *block)
{
    const struct decoder_traits *traits = &block->net->traits;
    const struct attention_part self = self_part(block);
    bool is_parallel = traits->is_parallel, has_one_norm = traits->norms_per_layer == 1;
    norm_child(block, "input_layernorm", false);
    if (is_parallel && !has_one_norm)
        norm_child(block, "post_attention_layernorm", false);
    attention_child(block, &self, true);
    if (is_parallel) {
        mlp_child(block, !has_one_norm || !attention_keeps_input(block, &self));
        dropout(block, &block->forward, "attention.dropout");
        block_op(block, &block->forward, FUSION_RESIDUAL_INSIDE, "attention.residual",
                 (double)block->tokens * (double)block->net->h);
        close_part(block, "", "mlp", true);
        return;
    }
    close_part(block, "post_attention_layernorm", "attention", false);
    if (block->spec->has_cross) {
        const struct attention_part cross = cross_part(block);
        norm_child(block, "cross_attention_layernorm", true);
        attention_child(block, &cross, true);
        close_part(block, "", "cross_attention", false);
    }
    norm_child(block, second_norm_name(block), true);
    mlp_child(block, true);
    close_part(block, "post_feedforward_layernorm", "mlp", true);
}

static void open_part_backward(struct block *block, const char *post_norm, const char *name)
{
    dropout(block, &block->backward, join_names(block->arena, name, ".dropout"));
    if (block->net->traits.norms_per_layer == 4)
        norm_backward(block, post_norm, 1, false);
}

static void attention_child_backward(struct block *block, const struct attention_part *part)
{
    const int32_t begin = block->kind->backward.count;
    block->prefix = part->is_cross ? "cross_attn." : "self_attn.";
    attention_backward(block, part);
    part_enter_backward(block, attention_reader_count(block));
    tag_part(&block->kind->backward, begin, part->is_cross ? "cross_attn" : "self_attn");
}

static void mlp_child_backward(struct block *block)
{
    const int32_t begin = block->kind->backward.count;
    block->prefix = "mlp.";
    mlp_backward(block);
    part_enter_backward(block, mlp_reader_count(block));
    tag_part(&block->kind->backward, begin, "mlp");
}

static void build_parallel_backward(struct block *block)
{
    const struct attention_part self = self_part(block);
    int attention_readers = attention_reader_count(block), mlp_readers = mlp_reader_count(block);
    dropout(block, &block->backward, "mlp.dropout");
    mlp_child_backward(block);
    dropout(block, &block->backward, "attention.dropout");
    attention_child_backward(block, &self);
    if (block->net->traits.norms_per_layer == 1) {
        norm_backward(block, "input_layernorm", attention_readers + mlp_readers, true);
        return;
    }
    norm_backward(block, "post_attention_layernorm", mlp_readers, true);
    norm_backward(block, "input_layernorm", attention_readers, true);
}

static void build_backward(struct block *block)
{
    const struct attention_part self = self_part(block);
    if (block->net->traits.is_parallel) {
        build_parallel_backward(block);
        return;
    }
    open_part_backward(block, "post_feedforward_layernorm", "mlp");
    mlp_child_backward(block);
    norm_backward(block, second_norm_name(block), mlp_reader_count(block), true);
    if (block->spec->has_cross) {
        const struct attention_part cross = cross_part(block);
        open_part_backward(block, "", "cross_attention");
        attention_child_backward(block, &cross);
        norm_backward(block, "cross_attention_layernorm", 1, true);
    }
    open_part_backward(block, "post_attention_layernorm", "attention");
    attention_child_backward(block, &self);
    norm_backward(block, "input_layernorm", attention_reader_count(block), true);
}

static bool is_linear_weight(const struct block *block, const struct network_param *param)
{
    return param->role == PARAM_LINEAR ||
           (param->role == PARAM_EXPERTS && block->shape->experts == EXPERTS_LOOP);
}

static void add_param(void *context, const struct network_param *param)
{
    struct block *block = context;
    *ARENA_PUSH(block->arena, &block->params) =
        (struct param){.name = param->name,
                       .dim0 = param->rows,
                       .rest = param->rest,
                       .is_float8 = block->shape->gathers_float8 && is_linear_weight(block, param)};
    block->kind->numel += param->rows * param->rest;
}

/* The children as a reader of the model's tree sees them. */
static void set_parts(struct block *block)
{
    const struct attention_part self = self_part(block), cross = cross_part(block);
    double width = 2.0 * (double)(block->net->d_qk + block->net->d_v);
    struct module_kind *kind = block->kind;
    kind->parts = ARENA_ARRAY(block->arena, struct module_part, block->child_count);
    for (int32_t i = 0; i < block->child_count; i++) {
        const struct block_child *child = &block->children[i];
        struct module_part *part = &kind->parts[kind->part_count++];
        part->name = child->name;
        part->saved_bytes = child->saved_bytes;
        if (child->part == PART_MLP)
            part->model_flop = mlp_gemm_flop(block);
        if (child->part == PART_ATTENTION) {
            const struct attention_part *attention = child->name[0] == 'c' ? &cross : &self;
            part->model_flop = attention_gemm_flop(block, attention) +
                               width * attention_score_count(block, attention);
        }
    }
}

/* Model FLOP of the forward: products, and attention without the mask's saving. */
static void count_flop(struct block *block)
{
    const struct attention_part self = self_part(block), cross = cross_part(block);
    double width = (double)(block->net->d_qk + block->net->d_v);
    double flop = attention_gemm_flop(block, &self) + mlp_gemm_flop(block);
    block->attention_flop = 2.0 * attention_score_count(block, &self) * width;
    if (block->spec->has_cross) {
        flop += attention_gemm_flop(block, &cross);
        block->attention_flop += 2.0 * attention_score_count(block, &cross) * width;
    }
    block->kind->model_flop = flop + block->attention_flop + block->lora_flop;
}

void block_build(struct arena *arena, const struct network *net, const struct train_shape *shape,
                 const struct block_spec *spec, enum activation_checkpointing checkpointing,
                 struct module_kind *kind)
{
    struct train_shape own_shape = *shape;
    own_shape.checkpointing = checkpointing;
    struct block block = {.arena = arena,
                          .net = net,
                          .shape = &own_shape,
                          .spec = spec,
                          .kind = kind,
                          .mode = fusion_mode_of(shape),
                          .attention = net->position == POSITION_RELATIVE ? ATTENTION_EAGER
                                                                          : shape->attention,
                          .tokens = spec->tokens,
                          .element_bytes = dtype_bytes(shape->compute_dtype)};
    block.activation_mode =
        block.mode == FUSION_HAND && shape->has_eager_activation ? FUSION_EAGER : block.mode;
    enum kernel_impl impl = block.mode == FUSION_COMPILED ? IMPL_INDUCTOR : IMPL_EAGER;
    block.stream_tokens = block.tokens / sequence_ranks(shape);
    block.hidden_bytes = block.stream_tokens * net->h * block.element_bytes;
    block.input_bytes =
        keeps_gathered(shape) ? block.tokens * net->h * block.element_bytes : block.hidden_bytes;
    block.forward = (struct kernel_sink){
        arena, &kind->forward, PASS_FORWARD, shape->compute_dtype, impl, lora_is_on(shape)};
    block.backward = (struct kernel_sink){
        arena, &kind->backward, PASS_BACKWARD, shape->compute_dtype, impl, lora_is_on(shape)};
    kind->role = MODULE_BLOCK;
    kind->label = spec->label;
    network_block_params(net, spec, add_param, &block);
    build_forward(&block);
    kind->params = block.params.items;
    kind->param_count = block.params.count;
    build_backward(&block);
    count_flop(&block);
    block_memory(&block);
    set_parts(&block);
    kind->active_numel = kind->numel - (spec->is_moe ? network_idle_expert_numel(net) : 0);
    kind->host_op_count = kind->forward.count;
}
