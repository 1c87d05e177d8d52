/*
 * model/block_mlp.c: the MLP part of a block: plain, gated, or experts.
 *
 * Experts: the router's product and its top-k, tokens sorted by expert (T·top_k rows), one grouped
 * GEMM a projection (tokens spread evenly), the activation, and the weighted sum back; shared
 * experts are a gated MLP that all tokens pass. Or a loop over the experts: block_expert_loop.c.
 */
#include "model/block.h"

enum { LINEARS_MAX = 3 };

struct mlp {
    const char *gate, *up, *down, *fused, *activation;
    int64_t f;
    bool is_gated, is_fused, has_bias;
};

static struct mlp dense_mlp(const struct block *block)
{
    const struct decoder_traits *traits = &block->net->traits;
    return (struct mlp){.gate = "gate_proj",
                        .up = "up_proj",
                        .down = "down_proj",
                        .fused = "gate_up_proj",
                        .activation = "act",
                        .f = block->net->f,
                        .is_gated = traits->is_gated,
                        .is_fused = traits->is_gated && traits->has_fused_gate_up,
                        .has_bias = traits->has_mlp_bias};
}

static struct mlp shared_mlp(const struct block *block)
{
    return (struct mlp){.gate = "shared_expert.gate_proj",
                        .up = "shared_expert.up_proj",
                        .down = "shared_expert.down_proj",
                        .activation = "shared_expert.act",
                        .f = block->net->shared_f,
                        .is_gated = true};
}

static int mlp_linears(const struct block *block, const struct mlp *mlp,
                       struct linear linears[LINEARS_MAX])
{
    int64_t h = block->net->h, tokens = block->tokens;
    int count = 0;
    if (mlp->is_fused) {
        linears[count++] =
            (struct linear){mlp->fused, 2 * mlp->f, h, tokens, .has_bias = mlp->has_bias};
    } else {
        if (mlp->is_gated)
            linears[count++] =
                (struct linear){mlp->gate, mlp->f, h, tokens, .has_bias = mlp->has_bias};
        linears[count++] = (struct linear){
            mlp->up, mlp->f, h, tokens, .has_bias = mlp->has_bias, .shares_input = mlp->is_gated};
    }
    linears[count++] = (struct linear){.name = mlp->down,
                                       .outputs = h,
                                       .inputs = mlp->f,
                                       .tokens = tokens,
                                       .has_bias = mlp->has_bias,
                                       .is_row_parallel = true};
    return count;
}

static enum fusion_op activation_op(const struct block *block, bool is_gated)
{
    if (block->net->activation == ACTIVATION_GELU_NEW)
        return is_gated ? FUSION_GATED_GELU_NEW : FUSION_GELU_NEW;
    return is_gated ? FUSION_GATED_ACTIVATION : FUSION_ACTIVATION;
}

static void one_forward(struct block *block, const struct mlp *mlp)
{
    struct linear linears[LINEARS_MAX];
    int count = mlp_linears(block, mlp, linears);
    const int32_t gather = part_enter(block);
    for (int i = 0; i < count - 1; i++)
        linear_forward(block, &linears[i]);
    if (part_gathers_beside(block))
        exchange_beside(&block->forward, gather);
    block_activation(block, &block->forward, activation_op(block, mlp->is_gated), mlp->activation,
                     (double)block->tokens * (double)mlp->f);
    block->needed_end = block->kind->forward.count;
    part_write(block, &linears[count - 1]);
}

static void one_backward(struct block *block, const struct mlp *mlp)
{
    struct linear linears[LINEARS_MAX];
    double elements = (double)block->tokens * (double)mlp->f;
    int count = mlp_linears(block, mlp, linears);
    part_write_backward(block, &linears[count - 1]);
    block_activation(block, &block->backward, activation_op(block, mlp->is_gated), mlp->activation,
                     elements);
    if (mlp->is_fused)
        block_op(block, &block->backward, FUSION_COPY, "gate_up.grad_cat", 2.0 * elements);
    for (int i = count - 2; i >= 0; i--)
        linear_backward(block, &linears[i]);
}

/* Grouped GEMM: `experts` of them, the tokens spread evenly; FLOP are exact. */
struct grouped {
    const char *name;
    int64_t outputs, inputs;
};

static void grouped_gemm(const struct block *block, struct kernel_sink *sink, const char *name,
                         const int64_t sizes[3])
{
    const struct network *net = block->net;
    double rows = (double)block->tokens * (double)net->top_k;
    int64_t per_expert = block->tokens * net->top_k / net->experts;
    struct gemm_shape shape = {.m = sizes[0], .n = sizes[1], .k = sizes[2], .batch = net->experts};
    int64_t *spread = shape.m == 0 ? &shape.m : &shape.k;
    double other =
        shape.m == 0 ? (double)shape.n * (double)shape.k : (double)shape.m * (double)shape.n;
    *spread = per_expert > 0 ? per_expert : 1;
    shape.flop = 2.0 * rows * other;
    emit_gemm(sink, name, shape);
}

static void grouped_forward(struct block *block, const struct grouped *grouped)
{
    const int64_t sizes[3] = {0, grouped->outputs, grouped->inputs};
    grouped_gemm(block, &block->forward, grouped->name, sizes);
}

static void grouped_backward(struct block *block, const struct grouped *grouped)
{
    struct arena *arena = block->arena;
    const int64_t input_grad[3] = {0, grouped->inputs, grouped->outputs};
    const int64_t weight_grad[3] = {grouped->outputs, grouped->inputs, 0};
    grouped_gemm(block, &block->backward, join_names(arena, grouped->name, ".input_grad"),
                 input_grad);
    if (!lora_is_on(block->shape))
        grouped_gemm(block, &block->backward, join_names(arena, grouped->name, ".weight_grad"),
                     weight_grad);
}

static struct linear router_linear(const struct block *block)
{
    return (struct linear){.name = "router",
                           .outputs = block->net->experts,
                           .inputs = block->net->h,
                           .tokens = block->tokens};
}

static void grouped_experts_forward(struct block *block)
{
    const struct network *net = block->net;
    struct kernel_sink *sink = &block->forward;
    double rows = (double)block->tokens * (double)net->top_k;
    const struct grouped gate_up = {"experts.gate_up_proj", 2 * net->expert_f, net->h};
    const struct grouped down = {"experts.down_proj", net->h, net->expert_f};
    block_op(block, sink, FUSION_COPY, "experts.permute", rows * (double)net->h);
    grouped_forward(block, &gate_up);
    block_activation(block, sink, FUSION_GATED_ACTIVATION, "experts.act",
                     rows * (double)net->expert_f);
    grouped_forward(block, &down);
    /* The weighted sum reads the experts' outputs in its backward. */
    block->needed_end = block->kind->forward.count;
    block_op(block, sink, FUSION_COPY, "experts.combine", rows * (double)net->h);
}

static void experts_forward(struct block *block)
{
    const struct network *net = block->net;
    struct kernel_sink *sink = &block->forward;
    struct linear router = router_linear(block);
    linear_forward(block, &router);
    block_op(block, sink, FUSION_SOFTMAX_WIDE, "router.softmax",
             (double)block->tokens * (double)net->experts);
    if (block->shape->experts == EXPERTS_LOOP)
        expert_loop_forward(block);
    else
        grouped_experts_forward(block);
    if (net->shared_f > 0) {
        const struct mlp shared = shared_mlp(block);
        one_forward(block, &shared);
        block_op(block, sink, FUSION_RESIDUAL_INSIDE, "shared_expert.sum",
                 (double)block->tokens * (double)net->h);
    }
}

static void grouped_experts_backward(struct block *block)
{
    const struct network *net = block->net;
    struct kernel_sink *sink = &block->backward;
    double rows = (double)block->tokens * (double)net->top_k;
    const struct grouped gate_up = {"experts.gate_up_proj", 2 * net->expert_f, net->h};
    const struct grouped down = {"experts.down_proj", net->h, net->expert_f};
    block_op(block, sink, FUSION_COPY, "experts.combine.grad", rows * (double)net->h);
    grouped_backward(block, &down);
    block_activation(block, sink, FUSION_GATED_ACTIVATION, "experts.act",
                     rows * (double)net->expert_f);
    grouped_backward(block, &gate_up);
    block_op(block, sink, FUSION_COPY, "experts.permute.grad", rows * (double)net->h);
}

static void experts_backward(struct block *block)
{
    const struct network *net = block->net;
    struct kernel_sink *sink = &block->backward;
    struct linear router = router_linear(block);
    if (net->shared_f > 0) {
        const struct mlp shared = shared_mlp(block);
        one_backward(block, &shared);
    }
    if (block->shape->experts == EXPERTS_LOOP)
        expert_loop_backward(block);
    else
        grouped_experts_backward(block);
    block_op(block, sink, FUSION_SOFTMAX_WIDE, "router.softmax",
             (double)block->tokens * (double)net->experts);
    linear_backward(block, &router);
}

void mlp_forward(struct block *block)
{
    if (block->spec->is_moe) {
        experts_forward(block);
    } else {
        const struct mlp mlp = dense_mlp(block);
        one_forward(block, &mlp);
    }
}

void mlp_backward(struct block *block)
{
    if (block->spec->is_moe) {
        experts_backward(block);
    } else {
        const struct mlp mlp = dense_mlp(block);
        one_backward(block, &mlp);
    }
}

int mlp_reader_count(const struct block *block)
{
    const struct network *net = block->net;
    if (block->spec->is_moe)
        return net->shared_f > 0 ? 4 : 2;
    return net->traits.is_gated && !net->traits.has_fused_gate_up ? 2 : 1;
}

/* Tensors of width f that stay: see model.h. */
static int64_t trained_tensors(const struct block *block, bool is_gated)
{
    bool is_eager = block->activation_mode == FUSION_EAGER;
    enum activation_kind activation = block->net->activation;
    if (is_gated) {
        if (!is_eager)
            return 3; /* gate, up, product */
        return activation == ACTIVATION_GELU_NEW ? 7 : 4;
    }
    if (activation == ACTIVATION_RELU)
        return 1; /* its output serves both */
    bool is_composed =
        activation == ACTIVATION_GELU_NEW && block->activation_mode != FUSION_COMPILED;
    return is_composed ? 5 : 2; /* x, tanh, x/2, 1 + tanh, output */
}

static struct linear down_linear(const struct block *block)
{
    struct linear linears[LINEARS_MAX];
    const struct mlp mlp = dense_mlp(block);
    return linears[mlp_linears(block, &mlp, linears) - 1];
}

static bool down_keeps_input(const struct block *block)
{
    const struct linear down = down_linear(block);
    return block->spec->is_moe ? !lora_is_on(block->shape) : linear_keeps_input(block, &down);
}

/* The product that only the last weight's gradient reads goes; relu's serves relu too. */
static int64_t saved_tensors(const struct block *block, bool is_gated)
{
    const bool is_shared = !is_gated && block->net->activation == ACTIVATION_RELU;
    return trained_tensors(block, is_gated) - (down_keeps_input(block) || is_shared ? 0 : 1);
}

bool mlp_keeps_input(const struct block *block)
{
    struct linear linears[LINEARS_MAX];
    const struct mlp mlp = dense_mlp(block);
    if (block->spec->is_moe)
        return !lora_is_on(block->shape);
    for (int i = mlp_linears(block, &mlp, linears) - 2; i >= 0; i--)
        if (linear_keeps_input(block, &linears[i]))
            return true;
    return false;
}

static int64_t adapter_bytes(const struct block *block)
{
    struct linear linears[LINEARS_MAX];
    const struct mlp mlp = dense_mlp(block);
    int64_t bytes = 0;
    for (int i = mlp_linears(block, &mlp, linears) - 1; i >= 0; i--)
        bytes += lora_saved_bytes(block, &linears[i]);
    return bytes;
}

int64_t mlp_saved_bytes(const struct block *block)
{
    const struct network *net = block->net;
    int64_t element = block->element_bytes, tokens = block->tokens;
    int64_t input = mlp_keeps_input(block) ? block->input_bytes : 0;
    int64_t sorted = lora_is_on(block->shape) ? 0 : net->h;
    if (!block->spec->is_moe)
        return input + adapter_bytes(block) +
               element * tokens * net->f * saved_tensors(block, net->traits.is_gated);
    /* The sorted tokens and the experts' outputs, the router's logits and probabilities. */
    return input +
           element * tokens * net->top_k *
               (sorted + net->h + net->expert_f * saved_tensors(block, true)) +
           element * tokens * net->shared_f * saved_tensors(block, true) +
           8 * tokens * net->experts;
}

int64_t mlp_passing_width(const struct block *block)
{
    const struct network *net = block->net;
    if (block->spec->is_moe)
        return net->top_k * (net->h + 3 * net->expert_f) + 3 * net->shared_f;
    return (net->traits.is_gated ? 3 : 2) * net->f;
}

int64_t mlp_backward_width(const struct block *block)
{
    const struct network *net = block->net;
    if (block->spec->is_moe)
        return net->top_k * (net->h + 2 * net->expert_f);
    /* The product goes as its gradient comes, where the last linear layer had kept it. */
    const struct linear down = down_linear(block);
    const int64_t incoming = down_keeps_input(block) && !linear_holds_input(block, &down) ? 0 : 1;
    return (net->traits.is_gated ? 2 + incoming : 1) * net->f;
}

double mlp_gemm_flop(const struct block *block)
{
    const struct network *net = block->net;
    double tokens = (double)block->tokens, h = (double)net->h;
    if (!block->spec->is_moe)
        return 2.0 * tokens * h * (double)net->f * (net->traits.is_gated ? 3.0 : 2.0);
    return 2.0 * tokens * h *
           ((double)net->experts + 3.0 * (double)net->top_k * (double)net->expert_f +
            3.0 * (double)net->shared_f);
}
