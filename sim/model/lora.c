/*
 * model/lora.c: adapters on a frozen base: LoRA, and QLoRA with a base in 4 bits.
 *
 *   y = x·Wᵀ + s·(drop(x)·Aᵀ)·Bᵀ        W: out × in, frozen; A: r × in; B: out × r
 *
 * Forward, as PEFT (peft/tuners/lora/layer.py) and torchtune (modules/peft/lora.py) call it: the
 * base's product, dropout where there is one, the two thin products, a pass that scales, one that
 * adds. Backward, last first: the scale, dB and dU from dY, dA and dX from dU, the mask, the base's
 * dX = dY·W, and the sum of the two; no product for W. Parameters r·(in + out) a layer, FLOP a
 * token 2·r·(in + out) forward and twice that backward.
 *
 * Example, Llama-2-7B, rank 8 on q and v: 32 · 2 · 8 · (4096 + 4096) = 4,194,304 parameters.
 *
 * PEFT keeps adapters of a 16-bit base in fp32 (autocast_adapter_dtype) and casts the layer's input
 * to that; under autocast the products run in 16 bits all the same, so what is added is a cast to
 * fp32, a dropout in fp32 (9 bytes an element, not 5) and a cast back, for each adapter and pass.
 *
 * Up to bitsandbytes 0.43.2 every such product held its input as well, in an attribute of its node,
 * which no hook of a checkpoint sees and which dies with the graph (bitsandbytes pull request
 * 1270).
 *
 * Saved: the input only for layers that have an adapter (with dropout its dropped copy and a byte
 * of mask an element instead), and T·r of drop(x)·Aᵀ. Frozen: no gradient of norms, biases, head
 * and embedding; the graph ends at the embedding.
 *
 * nf4 (bitsandbytes; torchao's NF4Tensor): 4 bits a weight and a scale of 4 bytes for 64 of them;
 * with double quantisation 1 byte for 64 and 4 bytes for 256 of those: 4.127 bits. Every product
 * with W, forward and backward, is preceded by a kernel that reads that and writes W; with double
 * quantisation by two small ones before it, the scales to fp32 and their mean added in place
 * (bitsandbytes/functional.py, dequantize_4bit, nested).
 *
 * PEFT copies what a packed base product made before it adds the adapter's
 * (peft/tuners/lora/bnb.py, result.clone()).
 *
 * Where a recompute stops early the last thing it makes is x·Aᵀ of the last adapted layer; compiled
 * it does so without the base's product of that layer, which nobody reads.
 *
 * Left out: adapters of experts; that the first block needs no gradient of its input where nothing
 * asks for it; products of merged or fused adapters.
 */
#include <string.h>

#include "base/strbuf.h"
#include "model/block.h"

enum { NF4_BLOCK = 64, NF4_SCALES_BLOCK = 256 };

bool lora_is_on(const struct train_shape *shape)
{
    return shape->lora.rank > 0;
}

/* Layers of experts, and the router, have none. */
bool lora_has_target(const struct train_shape *shape, const char *linear)
{
    const char *const *words = shape->lora.targets.items;
    if (!lora_is_on(shape) || strchr(linear, '.') != NULL || text_equal(linear, "router"))
        return false;
    for (int64_t i = 0; i < shape->lora.targets.count; i++)
        if (text_equal(words[i], "all-linear") || text_equal(words[i], linear))
            return true;
    return false;
}

/*
 * Of one linear layer. q, k, v fused, and some of them targets: A of each stacked, the second
 * product in groups, its output put among zeros (litgpt's LoRAQKVLinear).
 */
struct adapter {
    int64_t parts; /* 0: none */
    int64_t outputs;
    bool is_scattered; /* index_copy, whose backward keeps what was put */
};

static struct adapter adapter_of(const struct block *block, const struct linear *linear)
{
    static const char *const names[] = {"q_proj", "k_proj", "v_proj"};
    const int64_t widths[] = {block->net->q, block->net->k, block->net->v};
    struct adapter adapter = {0};
    if (lora_has_target(block->shape, linear->name))
        return (struct adapter){1, linear->outputs, false};
    for (int i = 0; text_equal(linear->name, "qkv_proj") && i < 3; i++) {
        const bool is_target = lora_has_target(block->shape, names[i]);
        adapter.parts += is_target;
        adapter.outputs += is_target ? widths[i] : 0;
    }
    adapter.is_scattered = adapter.parts > 0 && adapter.parts < 3;
    return adapter;
}

double lora_scale_bytes(const struct lora_shape *lora)
{
    const double per_block = lora->has_double_quant ? 1.0 + 4.0 / NF4_SCALES_BLOCK : 4.0;
    return lora->quantization == QUANTIZE_NF4 ? per_block / NF4_BLOCK : 0.0;
}

static bool is_packed(const struct block *block, const struct linear *linear)
{
    return block->shape->lora.quantization == QUANTIZE_NF4 && !text_equal(linear->name, "router");
}

static const char *named(struct block *block, const struct linear *linear, const char *suffix)
{
    return join_names(block->arena, linear->name, suffix);
}

void lora_dequantize(struct block *block, struct kernel_sink *sink, const struct linear *linear)
{
    if (!is_packed(block, linear))
        return;
    const struct lora_shape *lora = &block->shape->lora;
    const double weights = (double)linear->outputs * (double)linear->inputs;
    const double scale_bytes = lora_scale_bytes(lora), fp32_bytes = weights / NF4_BLOCK * 4.0;
    if (lora->has_double_quant) {
        emit_bytes(sink, named(block, linear, ".dequantize.scales"), KERNEL_ELEMENTWISE,
                   weights * scale_bytes + fp32_bytes);
        emit_bytes(sink, named(block, linear, ".dequantize.mean"), KERNEL_ELEMENTWISE,
                   2.0 * fp32_bytes);
    }
    const double read = 0.5 * weights + fp32_bytes;
    emit_bytes(sink, named(block, linear, ".dequantize"), KERNEL_ELEMENTWISE,
               read + weights * (double)block->element_bytes);
}

/* ---- kernels ------------------------------------------------------------------------------ */

static void pass(struct block *block, struct kernel_sink *sink, const char *name, double elements,
                 double operands)
{
    emit_bytes(sink, name, KERNEL_ELEMENTWISE, elements * operands * (double)block->element_bytes);
}

static void add_params(struct block *block, const struct linear *linear,
                       const struct adapter *adapter)
{
    const char *name = join_names(block->arena, block->prefix, linear->name);
    const int64_t rank = block->shape->lora.rank, stacked = rank * adapter->parts;
    *ARENA_PUSH(block->arena, &block->params) =
        (struct param){.name = join_names(block->arena, name, ".lora_A.weight"),
                       .dim0 = stacked,
                       .rest = linear->inputs};
    *ARENA_PUSH(block->arena, &block->params) =
        (struct param){.name = join_names(block->arena, name, ".lora_B.weight"),
                       .dim0 = adapter->outputs,
                       .rest = rank};
    block->kind->numel += stacked * linear->inputs + rank * adapter->outputs;
}

/* Forward the adapter's input, backward its gradient. */
static void drop_input(struct block *block, struct kernel_sink *sink, const struct linear *linear)
{
    const struct lora_shape *lora = &block->shape->lora;
    const double elements = (double)linear->tokens * (double)linear->inputs;
    const double cast_bytes = elements * (double)(block->element_bytes + 4);
    if (!lora->has_wide_input || block->element_bytes == 4 || block->mode == FUSION_COMPILED) {
        if (lora->dropout > 0.0)
            block_op(block, sink, FUSION_DROPOUT, named(block, linear, ".lora_dropout"), elements);
        return;
    }
    emit_bytes(sink, named(block, linear, ".lora.to_fp32"), KERNEL_ELEMENTWISE, cast_bytes);
    if (lora->dropout > 0.0)
        emit_bytes(sink, named(block, linear, ".lora_dropout"), KERNEL_ELEMENTWISE, 9.0 * elements);
    emit_bytes(sink, named(block, linear, ".lora.from_fp32"), KERNEL_ELEMENTWISE, cast_bytes);
}

/* Zeros, what index_copy reads and writes, and before it the turn from channels first. */
static void scatter(struct block *block, struct kernel_sink *sink, const struct linear *linear,
                    const struct adapter *adapter)
{
    const double tokens = (double)linear->tokens;
    const bool is_forward = sink->pass == PASS_FORWARD;
    if (adapter->is_scattered)
        pass(block, sink, named(block, linear, is_forward ? ".lora_pad" : ".lora_pad.grad"),
             tokens * (4.0 * (double)adapter->outputs +
                       (is_forward ? 3.0 * (double)linear->outputs : 0.0)),
             1.0);
}

void lora_forward(struct block *block, const struct linear *linear)
{
    const struct adapter adapter = adapter_of(block, linear);
    if (adapter.parts == 0)
        return;
    struct kernel_sink *sink = &block->forward;
    const int64_t rank = block->shape->lora.rank, tokens = linear->tokens;
    const double outputs = (double)tokens * (double)linear->outputs;
    add_params(block, linear, &adapter);
    if (block->shape->lora.copies_output && block->mode != FUSION_COMPILED)
        pass(block, sink, named(block, linear, ".lora_copy"), outputs, 2.0);
    drop_input(block, sink, linear);
    emit_gemm(sink, named(block, linear, ".lora_A"),
              (struct gemm_shape){.m = tokens, .n = rank * adapter.parts, .k = linear->inputs});
    block->needed_end = block->kind->forward.count;
    emit_gemm(sink, named(block, linear, ".lora_B"),
              (struct gemm_shape){.m = tokens, .n = adapter.outputs, .k = rank});
    scatter(block, sink, linear, &adapter);
    if (block->mode != FUSION_COMPILED && !block->shape->lora.has_fused_scale)
        pass(block, sink, named(block, linear, ".lora_scale"), outputs, 2.0);
    pass(block, sink, named(block, linear, ".lora_sum"), outputs, 3.0);
    block->lora_flop += 2.0 * (double)tokens * (double)rank *
                        (double)(adapter.parts * linear->inputs + adapter.outputs);
}

void lora_backward(struct block *block, const struct linear *linear)
{
    const struct adapter adapter = adapter_of(block, linear);
    if (adapter.parts == 0)
        return;
    struct kernel_sink *sink = &block->backward;
    const int64_t rank = block->shape->lora.rank, tokens = linear->tokens;
    const int64_t in = linear->inputs, out = adapter.outputs, stacked = rank * adapter.parts;
    if (!block->shape->lora.has_fused_scale)
        pass(block, sink, named(block, linear, ".lora_scale.grad"),
             (double)tokens * (double)linear->outputs, 2.0);
    scatter(block, sink, linear, &adapter);
    emit_gemm(sink, named(block, linear, ".lora_B.input_grad"),
              (struct gemm_shape){.m = tokens, .n = stacked, .k = out / adapter.parts});
    emit_gemm(sink, named(block, linear, ".lora_B.weight_grad"),
              (struct gemm_shape){.m = out, .n = rank, .k = tokens});
    emit_gemm(sink, named(block, linear, ".lora_A.input_grad"),
              (struct gemm_shape){.m = tokens, .n = in, .k = stacked});
    emit_gemm(sink, named(block, linear, ".lora_A.weight_grad"),
              (struct gemm_shape){.m = stacked, .n = in, .k = tokens});
    drop_input(block, sink, linear);
}

void lora_sum_gradients(struct block *block, const struct linear *linear)
{
    if (adapter_of(block, linear).parts > 0)
        pass(block, &block->backward, named(block, linear, ".lora_sum.grad"),
             (double)linear->tokens * (double)linear->inputs, 3.0);
}

/* ---- memory ------------------------------------------------------------------------------- */

bool linear_holds_input(const struct block *block, const struct linear *linear)
{
    return block->shape->lora.holds_inputs && is_packed(block, linear);
}

bool linear_keeps_input(const struct block *block, const struct linear *linear)
{
    return !lora_is_on(block->shape) || linear_holds_input(block, linear) ||
           (adapter_of(block, linear).parts > 0 && block->shape->lora.dropout <= 0.0);
}

int64_t lora_saved_bytes(const struct block *block, const struct linear *linear)
{
    const struct lora_shape *lora = &block->shape->lora;
    const struct adapter adapter = adapter_of(block, linear);
    if (adapter.parts == 0)
        return 0;
    const int64_t dropped = lora->dropout > 0.0 ? linear->inputs * (block->element_bytes + 1) : 0;
    const int64_t put = adapter.is_scattered ? adapter.outputs : 0;
    return linear->tokens * ((lora->rank * adapter.parts + put) * block->element_bytes + dropped);
}

int64_t lora_weight_bytes(const struct block *block)
{
    int64_t largest = 0;
    if (block->shape->lora.quantization == QUANTIZE_NONE)
        return 0;
    for (int32_t i = 0; i < block->params.count; i++) {
        const struct param *param = &block->params.items[i];
        const int64_t experts =
            strstr(param->name, "mlp.experts.") != NULL ? 2 * block->net->experts : 1;
        const int64_t numel = param->dim0 * param->rest / experts;
        largest = numel > largest ? numel : largest;
    }
    return largest * block->element_bytes;
}

void lora_freeze(const struct train_shape *shape, struct module_kind *kind)
{
    for (int32_t i = 0; lora_is_on(shape) && i < kind->param_count; i++) {
        struct param *param = &kind->params[i];
        param->is_frozen = strstr(param->name, ".lora_") == NULL;
        param->is_packed = param->is_frozen && kind->role == MODULE_BLOCK && param->rest > 1 &&
                           shape->lora.quantization == QUANTIZE_NF4 &&
                           strstr(param->name, "router") == NULL;
        kind->frozen_numel += param->is_frozen ? param->dim0 * param->rest : 0;
        kind->frozen_count += param->is_frozen;
    }
}
