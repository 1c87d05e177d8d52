/*
 * model/block_memory.c: what a block keeps, what it recomputes, and its peaks.
 *
 * Policies of checkpointing (fsdp_semantics.md 110, 111):
 * - full, every: the block's input stays; the forward runs again. A reentrant checkpoint calls
 *   backward on the output that it made again, and holds it meanwhile (torch/utils/checkpoint.py,
 *   CheckpointFunction.backward). With early stop
 *   (torch.utils.checkpoint without reentrance, PyTorch 2.1 on, pytorch PR 96866) it ends where the
 *   last tensor is saved that the backward reads, which is before the last product: down of a
 *   Llama-3-8B block is 0.27 of its products. Compiled it always does: the backward graph holds
 * what its gradients depend on and no more. Reentrant checkpoints run to the end.
 * - selective by operation: the input, the outputs of every second linear layer (the first, third,
 *   ... of the block; never the router) and the fused attention's output stay; the rest runs again,
 *   but for casts to float8 that only products which stay had read.
 *   Eager keeps them as they come; compiled only those that the backward reads (a node that must be
 *   saved is saved where it is in the cut: torch/_functorch/partitioners.py, solve_min_cut), so not
 *   the output of down.
 * - by child: each norm, attention, MLP keeps its input and runs again by itself; one at a time is
 *   whole.
 *
 * Peaks beside what the header says, per token:
 * - Forward, nothing recomputed. The set grows to the full one, so the extra is the output of down
 *   (hB), or the amount by which the attention part at its widest exceeds the full set: at the
 *   rotary x and normed (2hB), raw and rotated q and k, v ((2q + 2k + v)B), and in eager their fp32
 *   forms and products (8(q + k)); with eager attention the scores before and after the softmax.
 * - Forward, recomputed. Only what is saved stays. Widest: y, normed, and the MLP's tensors, or the
 *   attention as above without x.
 * - Backward. Saved tensors go as soon as their node is done, so the extra beside the full set is
 *   at the activation: the incoming gradient and those of product, silu(gate), up, less the product
 *   that is gone ((h + 2f)B); (h + 3f)B where the product was not kept, under a frozen last layer.
 *   Or at attention, when the MLP's part is gone: gradients of residual,
 *   context, dq, dk, dv, and the fp32 accumulator of dq.
 *
 * - A quantised base: the largest weight of the block, dequantised.
 *
 * - Tensor parallelism on t ranks: what is q, k, v, f wide is so of one rank; the stream (x, y,
 *   residuals, their gradients) has T/t tokens with sequence parallelism, what a part reads and
 *   writes all T. So forward ends with the part's output before it is reduced beside that after,
 * and backward of the MLP is at its widest where the gathered gradient meets that of the product,
 * or where the gradients of its two readers are summed.
 *
 * Example, Llama-3-8B in bf16, one-kernel norms: forward 8,192, backward 65,536 beside the 168,072
 * that are saved.
 */
#include "model/block.h"

#include "base/strbuf.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct widths {
    int64_t full;    /* all saved tensors */
    int64_t mlp;     /* of them, those of the MLP and its norm */
    int64_t inputs;  /* inputs of all children */
    int64_t largest; /* saved set of the largest child */
};

static struct widths sum_children(const struct block *block)
{
    struct widths widths = {0};
    for (int32_t i = 0; i < block->child_count; i++) {
        const struct block_child *child = &block->children[i];
        widths.full += child->saved_bytes;
        widths.inputs += child->input_bytes;
        if (child->part == PART_OUTSIDE)
            widths.inputs += child->saved_bytes;
        else
            widths.largest = larger(widths.largest, child->saved_bytes - child->input_bytes);
        bool is_norm_of_mlp = child->part == PART_NORM && i + 1 < block->child_count &&
                              block->children[i + 1].part == PART_MLP;
        if (child->part == PART_MLP || is_norm_of_mlp)
            widths.mlp += child->saved_bytes;
    }
    return widths;
}

/* The composed RMSNorm keeps an fp32 copy of the block's input, not the input. */
static bool keeps_input(const struct block *block)
{
    return block->net->norm == NORM_LAYER || block->mode != FUSION_EAGER ||
           block->element_bytes == 4;
}

/* Tensors alive while attention is at its widest, the block's input included. */
static int64_t attention_passing_bytes(const struct block *block)
{
    const struct network *net = block->net;
    int64_t element = block->element_bytes, tokens = block->tokens;
    int64_t heads = gathered_heads(block) * (net->q + net->k) + net->v;
    bool is_rotary = net->position == POSITION_ROTARY;
    bool is_fused = block->mode != FUSION_EAGER && block->shape->rotary != ROTARY_COMPLEX;
    bool has_wide_rotary = is_rotary && !is_fused && block->mode != FUSION_HAND && element != 4;
    int64_t stream = block->hidden_bytes + tokens * element * net->h;
    int64_t bytes = stream + tokens * element * (is_rotary ? 2 * heads - net->v : heads);
    int64_t wide = has_wide_rotary
                       ? (int64_t)(8.0 * net->rotary_frac * (double)(tokens * (heads - net->v)))
                       : 0;
    if (block->attention != ATTENTION_EAGER)
        return bytes + wide;
    const struct attention_part self = {false, tokens, block->spec->seq_len, tokens,
                                        block->spec->seq_len};
    int64_t scores = (int64_t)attention_score_count(block, &self);
    bool is_wide = !net->traits.has_native_softmax && block->mode != FUSION_COMPILED;
    return larger(bytes + wide,
                  stream + tokens * element * heads + scores * (element + (is_wide ? 4 : element)));
}

/* Gradients of a part's output: of the stream, and gathered. */
static int64_t output_grad_bytes(const struct block *block)
{
    const int64_t whole = block->element_bytes * block->tokens * block->net->h;
    return block->hidden_bytes + (sequence_ranks(block->shape) > 1 ? whole : 0);
}

static int64_t attention_backward_bytes(const struct block *block, int64_t freed)
{
    const struct network *net = block->net;
    int64_t element = block->element_bytes, tokens = block->tokens;
    int64_t grads =
        output_grad_bytes(block) + tokens * element * (net->q + net->context + net->k + net->v);
    if (block->attention != ATTENTION_EAGER)
        return grads + 4 * tokens * net->q - freed;
    const struct attention_part self = {false, tokens, block->spec->seq_len, tokens,
                                        block->spec->seq_len};
    bool is_wide = !net->traits.has_native_softmax && block->mode != FUSION_COMPILED;
    int64_t scores = (int64_t)attention_score_count(block, &self);
    return output_grad_bytes(block) + tokens * element * net->context +
           scores * (element + (is_wide ? 4 : element)) - freed;
}

static bool is_linear(const struct kernel *kernel)
{
    return kernel->kind == KERNEL_GEMM && kernel->batch == 1 && !text_equal(kernel->name, "router");
}

/* Kernels of the forward that run again at most. */
static int32_t rerun_count(const struct block *block)
{
    bool stops_early = block->shape->stops_early || block->mode == FUSION_COMPILED;
    return stops_early ? block->needed_end : block->kind->forward.count;
}

/* torchtitan keeps what a reduce-scatter gives too. */
static bool is_kept_exchange(const struct block *block, const struct kernel *kernel)
{
    return kernel->kind == KERNEL_EXCHANGE && kernel->exchange == EXCHANGE_REDUCE_SCATTER &&
           keeps_gathered(block->shape);
}

/* Of those that an exchange runs beside, the ones that run again. */
struct rerun {
    int32_t exchange, until; /* its place in the new list; the last of them in the old one */
};

static void run_again(struct block *block, struct rerun *rerun, int32_t index)
{
    struct kernel_list *list = &block->kind->recompute;
    struct kernel kernel = block->kind->forward.items[index];
    if (index <= rerun->until)
        list->items[rerun->exchange].beside_count++;
    if (kernel.kind == KERNEL_EXCHANGE)
        *rerun = (struct rerun){list->count, index + kernel.beside_count};
    if (kernel.kind == KERNEL_EXCHANGE)
        kernel.beside_count = 0;
    *ARENA_PUSH(block->arena, list) = kernel;
}

/* Whether a cast to float8 is for a product that runs again; `linear_count` products come before.
 */
static bool casts_for_rerun(const struct block *block, int32_t index, int32_t linear_count)
{
    const struct kernel_list *list = &block->kind->forward;
    const enum operand operand = list->items[index].operand;
    bool has_passed = false;
    for (int32_t i = index + 1; i < rerun_count(block); i++) {
        if (!is_linear(&list->items[i])) {
            if (has_passed && list->items[i].operand == operand)
                return false;
            continue;
        }
        if (linear_count++ % 2 != 0)
            return true;
        has_passed = true;
        if (operand == OPERAND_WEIGHT)
            return false;
    }
    return false;
}

/* What is not kept and that something before the end of the rerun reads. */
static bool is_rerun(const struct block *block, int32_t index, int32_t linear_count)
{
    const struct kernel *kernel = &block->kind->forward.items[index];
    return index < rerun_count(block) &&
           (kernel->operand == OPERAND_NONE || casts_for_rerun(block, index, linear_count));
}

/* Of the last linear layer that runs again its adapter's input is read, not its output: a compiled
   graph has no product of the base that nobody reads, an eager forward calls it on the way. */
static bool is_dead(const struct block *block, const struct kernel *kernel)
{
    const struct kernel_list *list = &block->kind->forward;
    const int32_t count = rerun_count(block);
    if (block->mode != FUSION_COMPILED || count == 0)
        return false;
    static const char suffix[] = ".lora_A";
    const char *last = list->items[count - 1].name;
    const size_t length = strlen(last), end = sizeof(suffix) - 1;
    if (length <= end || !text_equal(last + length - end, suffix) ||
        strncmp(kernel->name, last, length - end) != 0)
        return false;
    static const char unpack[] = ".dequantize"; /* and its scales and their mean */
    const char *rest = kernel->name + length - end;
    return text_equal(rest, "") || strncmp(rest, unpack, sizeof(unpack) - 1) == 0;
}

static double rerun_all(struct block *block)
{
    struct module_kind *kind = block->kind;
    double skipped_flop = 0.0;
    struct rerun rerun = {.until = -1};
    for (int32_t i = 0; i < kind->forward.count; i++) {
        const struct kernel *kernel = &kind->forward.items[i];
        if (i < rerun_count(block) && !is_dead(block, kernel))
            run_again(block, &rerun, i);
        else if (kernel->kind == KERNEL_GEMM)
            skipped_flop += kernel->flop;
    }
    return skipped_flop;
}

static int64_t select_operations(struct block *block, double *kept_flop)
{
    struct module_kind *kind = block->kind;
    bool keeps_attention = block->attention != ATTENTION_EAGER && !block->shape->reruns_attention;
    int64_t bytes = 0;
    int32_t linear_count = 0;
    struct rerun rerun = {.until = -1};
    *kept_flop = 0.0;
    for (int32_t i = 0; i < kind->forward.count; i++) {
        const struct kernel *kernel = &kind->forward.items[i];
        const bool is_read = block->mode != FUSION_COMPILED || i < rerun_count(block);
        bool is_kept = (keeps_attention && kernel->kind == KERNEL_ATTENTION) ||
                       (is_read && is_kept_exchange(block, kernel));
        if (is_kept && kernel->kind == KERNEL_EXCHANGE)
            bytes += block->hidden_bytes;
        if (is_linear(kernel)) {
            is_kept = linear_count++ % 2 == 0 && is_read;
            if (is_kept) {
                bytes += kernel->m * kernel->n * block->element_bytes;
                *kept_flop += kernel->flop;
            }
        }
        if (is_kept)
            continue;
        if (is_rerun(block, i, linear_count))
            run_again(block, &rerun, i);
        else if (i >= rerun_count(block) && kernel->kind == KERNEL_GEMM)
            *kept_flop += kernel->flop;
    }
    if (keeps_attention) {
        bytes += block->tokens * (block->net->context * block->element_bytes + 4 * block->net->a);
        *kept_flop += block->attention_flop;
    }
    return bytes;
}

static double select_children(struct block *block)
{
    struct module_kind *kind = block->kind;
    bool stops_early = rerun_count(block) < kind->forward.count;
    int32_t begin = 0;
    double skipped_flop = 0.0;
    for (int32_t i = 0; i < block->child_count; i++) {
        const struct block_child *child = &block->children[i];
        int32_t end = stops_early ? child->needed_end : child->kernel_end;
        for (int32_t k = begin; child->part != PART_OUTSIDE && k < child->kernel_end; k++) {
            const struct kernel *kernel = &kind->forward.items[k];
            if (k < end)
                *ARENA_PUSH(block->arena, &kind->recompute) = *kernel;
            else if (kernel->kind == KERNEL_GEMM)
                skipped_flop += kernel->flop;
        }
        begin = child->kernel_end;
    }
    return skipped_flop;
}

static void apply_checkpointing(struct block *block, const struct widths *widths)
{
    struct module_kind *kind = block->kind;
    int64_t whole = widths->full + (keeps_input(block) ? 0 : block->hidden_bytes);
    double kept_flop = 0.0;
    kind->is_recomputed = true;
    kind->recompute_saved_bytes = whole;
    switch (block->shape->checkpointing) {
    case CHECKPOINT_NONE:
        kind->is_recomputed = false;
        kind->recompute_saved_bytes = 0;
        kind->saved_bytes = widths->full;
        return;
    case CHECKPOINT_FULL:
    case CHECKPOINT_EVERY:
        kind->saved_bytes = block->hidden_bytes;
        kind->recompute_saved_bytes += block->shape->is_reentrant ? block->hidden_bytes : 0;
        kept_flop = rerun_all(block);
        break;
    case CHECKPOINT_SELECTIVE_OP:
        kind->saved_bytes = block->hidden_bytes + select_operations(block, &kept_flop);
        kind->recompute_saved_bytes = larger(whole, kind->saved_bytes);
        break;
    case CHECKPOINT_PER_CHILD:
        kind->saved_bytes = widths->inputs;
        kind->recompute_saved_bytes = widths->inputs + widths->largest;
        kept_flop = select_children(block);
        break;
    }
    kind->recompute_flop = kind->model_flop - kept_flop;
}

/* Beside the saved set, in the backward of the MLP. */
static int64_t mlp_backward_bytes(const struct block *block, int64_t freed)
{
    const int64_t width = block->net->h, whole = block->element_bytes * block->tokens;
    const int64_t at_activation = block->hidden_bytes + whole * mlp_backward_width(block);
    if (tensor_ranks(block->shape) == 1)
        return at_activation;
    const int64_t at_output = output_grad_bytes(block) + whole * block->net->f;
    const int64_t at_input = block->hidden_bytes + block->input_bytes - freed +
                             whole * (mlp_backward_width(block) + 2 * width);
    return larger(at_activation, larger(at_output, at_input));
}

/* Keys and values that a cache in the model's output holds; where nothing runs again they are those
   that attention saved, if it did not repeat them. */
static void cache_keys(struct block *block)
{
    const struct network *net = block->net;
    const struct block_spec *spec = block->spec;
    struct module_kind *kind = block->kind;
    if (!block->shape->caches_keys || !spec->is_causal)
        return;
    const int64_t tokens = block->tokens + (spec->has_cross ? spec->cross_tokens : 0);
    const int64_t bytes = block->element_bytes * tokens * (net->k + net->v);
    const bool are_saved = !kind->is_recomputed && !repeats_keys(block);
    if (are_saved && block->shape->kept_output == OUTPUT_DROPPED)
        return;
    kind->kept_bytes = bytes;
    kind->saved_bytes -= are_saved ? bytes : 0;
}

void block_memory(struct block *block)
{
    const struct network *net = block->net;
    struct module_kind *kind = block->kind;
    const int64_t whole = block->element_bytes * block->tokens;
    const bool is_cut = tensor_ranks(block->shape) > 1;
    const struct widths widths = sum_children(block);
    int64_t passing = attention_passing_bytes(block);
    kind->output_bytes = kind->piece_bytes = block->hidden_bytes;
    apply_checkpointing(block, &widths);
    kind->backward_temp_bytes =
        larger(mlp_backward_bytes(block, widths.mlp), attention_backward_bytes(block, widths.mlp));
    kind->forward_temp_bytes =
        larger(block->hidden_bytes + (is_cut ? whole * net->h : 0), passing - widths.full);
    if (kind->is_recomputed)
        kind->forward_temp_bytes =
            larger(block->hidden_bytes + whole * (net->h + mlp_passing_width(block)),
                   passing - block->hidden_bytes);
    if (exchanges_by_copy(block->shape) && !part_gathers_beside(block)) {
        kind->forward_temp_bytes += whole * net->h;
        kind->backward_temp_bytes += whole * net->h;
    }
    kind->forward_temp_bytes += lora_weight_bytes(block);
    kind->backward_temp_bytes += lora_weight_bytes(block);
    cache_keys(block);
}
