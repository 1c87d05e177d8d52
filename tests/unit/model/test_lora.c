/*
 * Adapters on a frozen base, by hand: parameters to the last digit, FLOP, kernels, saved bytes. The
 * small block (test_block.c) has 256 tokens.
 */
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "model/block.h"
#include "model_fixture.h"

extern const struct check_case lora_cases[];

static const char *q_and_v[] = {"q_proj", "v_proj"};
static const char *all_linear[] = {"all-linear"};

static struct lora_shape lora(int64_t rank, const char **words, int64_t count)
{
    return (struct lora_shape){.rank = rank, .targets = {.items = words, .count = count}};
}

static const struct module_kind *small_block(struct arena *arena, const struct train_shape *shape)
{
    struct model_config config = fixture_small();
    return fixture_kind(fixture_build(arena, &config, shape), MODULE_BLOCK);
}

/*
 * Llama-2-7B: q and v, rank 8: 32·2·8·8192 = 4,194,304 (what PEFT prints for it). All linear
 * layers, rank 16: a block q, k, v, o 4·16·8192, gate and up 2·16·15104, down 16·15104 =
 * 1,249,280; 32 of them 39,976,960. Llama-3.1-8B has k and v of 1,024 rows: rank 8, q and v:
 * 32·8·(8192 + 5120) = 3,407,872.
 */
static void test_parameters(void)
{
    static const struct {
        bool is_llama_2;
        int64_t rank;
        const char **words;
        int64_t count, trained, base;
    } rows[] = {{true, 8, q_and_v, 2, 4194304, 6738415616},
                {true, 16, all_linear, 1, 39976960, 6738415616},
                {false, 8, q_and_v, 2, 3407872, 8030261248}};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct model_config config = fixture_llama_8b();
        struct train_shape shape = fixture_shape(128, 1);
        if (rows[i].is_llama_2) {
            config.decoder.intermediate_size = 11008;
            config.decoder.num_key_value_heads = 32;
            config.decoder.vocab_size = 32000;
        }
        shape.lora = lora(rows[i].rank, rows[i].words, rows[i].count);
        const struct model *model = fixture_build(&arena, &config, &shape);
        CHECK_INT(model->parameters - model->frozen_parameters, rows[i].trained);
        CHECK_INT(model->frozen_parameters, rows[i].base);
    }
    arena_release(&arena);
}

/*
 * Base products 36,175,872 forward, and once more backward (no weight's gradient); adapters of rank
 * 4 on q and v: 2·256·4·((96 + 96) + (96 + 32)) = 655,360 forward, twice that backward; attention
 * as ever. The head's 2·256·96·1000 twice. MFU: 4 a frozen parameter, 6 an adapter's.
 */
static void test_flop(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_small();
    struct train_shape shape = fixture_shape(128, 2);
    const struct model *full = fixture_build(&arena, &config, &shape);
    shape.lora = lora(4, q_and_v, 2);
    const struct model *model = fixture_build(&arena, &config, &shape);
    const struct module_kind *block = fixture_kind(model, MODULE_BLOCK);
    CHECK_NEAR(kernel_list_flop(&block->forward), 36175872.0 + 6291456.0 + 655360.0, 1e-15);
    CHECK_NEAR(kernel_list_flop(&block->backward), 36175872.0 + 2.5 * 6291456.0 + 2 * 655360.0,
               1e-15);
    CHECK_NEAR(kernel_list_flop(&fixture_kind(model, MODULE_HEAD)->backward), 49152000.0, 1e-15);
    const double frozen = (double)(full->parameters - full->input_embedding_parameters);
    CHECK_NEAR(model->flop_per_token, full->flop_per_token - 2.0 * frozen + 6.0 * 3.0 * 4.0 * 320.0,
               1e-15);
    arena_release(&arena);
}

static void test_products(void)
{
    static const struct {
        const char *name;
        bool is_backward;
        int64_t m, n, k;
    } rows[] = {{"v_proj.lora_A", false, 256, 4, 96},
                {"v_proj.lora_B", false, 256, 32, 4},
                {"v_proj.lora_B.input_grad", true, 256, 4, 32},
                {"v_proj.lora_B.weight_grad", true, 32, 4, 256},
                {"v_proj.lora_A.input_grad", true, 256, 96, 4},
                {"v_proj.lora_A.weight_grad", true, 4, 96, 256},
                {"v_proj.input_grad", true, 256, 96, 32}};
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    shape.lora = lora(4, q_and_v, 2);
    const struct module_kind *block = small_block(&arena, &shape);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct kernel *kernel =
            fixture_kernel(rows[i].is_backward ? &block->backward : &block->forward, rows[i].name);
        CHECK_INT(kernel->m, rows[i].m);
        CHECK_INT(kernel->n, rows[i].n);
        CHECK_INT(kernel->k, rows[i].k);
    }
    arena_release(&arena);
}

/* No gradient of a weight but an adapter's; nothing behind the embedding. */
static void test_frozen(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_small();
    for (int compiled = 0; compiled < 2; compiled++) {
        struct train_shape shape = fixture_shape(128, 2);
        int32_t made = 0;
        shape.is_compiled = compiled != 0;
        shape.lora = lora(4, q_and_v, 2);
        const struct model *model = fixture_build(&arena, &config, &shape);
        for (int32_t k = 0; k < model->kind_count; k++)
            for (int32_t i = 0; i < model->kinds[k].backward.count; i++) {
                const char *name = model->kinds[k].backward.items[i].name;
                if (strstr(name, "weight_grad") == NULL)
                    continue;
                CHECK_TRUE(strstr(name, ".lora_") != NULL);
                made++;
            }
        CHECK_INT(made, 4);
        CHECK_INT(fixture_kind(model, MODULE_EMBEDDING)->backward.count, 0);
    }
    arena_release(&arena);
}

/*
 * A token, beside a block that is trained, kernels fused by hand: the input of gate and up (2·96)
 * and the product that down reads (2·160) go, 4 elements of each adapter come: -496. With dropout
 * the input of q, k, v goes too (2·96) and each adapter has a dropped copy and a mask, 96·3:
 * -496 - 192 + 576. Every layer adapted, rank 4: 7·8 more and nothing less. In eager mode the two
 * norms keep no normalised tensor: 2·2·96 less.
 */
static void test_saved(void)
{
    static const struct {
        const char **words;
        int64_t count;
        double dropout;
        bool is_eager;
        int64_t a_token;
    } rows[] = {{q_and_v, 2, 0.0, false, -496},
                {q_and_v, 2, 0.1, false, -112},
                {all_linear, 1, 0.0, false, 56},
                {q_and_v, 2, 0.0, true, -880}};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct train_shape shape = fixture_shape(128, 2);
        shape.has_fused_kernels = !rows[i].is_eager;
        const int64_t trained = small_block(&arena, &shape)->saved_bytes;
        shape.lora = lora(4, rows[i].words, rows[i].count);
        shape.lora.dropout = rows[i].dropout;
        CHECK_INT(small_block(&arena, &shape)->saved_bytes - trained, 256 * rows[i].a_token);
    }
    arena_release(&arena);
}

/*
 * At the activation's backward the gradients of product, silu(gate), up are alive beside the one
 * that comes in: (h + 3f)·2 B a token. A trained last layer had kept the product, which goes: (h +
 * 2f)·2.
 */
static void test_backward_peak(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(2048, 1);
    shape.has_fused_kernels = true;
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(block->backward_temp_bytes, INT64_C(2048) * 2 * (4096 + 2 * 14336));
    shape.lora = lora(8, q_and_v, 2);
    block = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(block->backward_temp_bytes, INT64_C(2048) * 2 * (4096 + 3 * 14336));
    arena_release(&arena);
}

static bool has_kernel(const struct kernel_list *list, const char *name)
{
    for (int32_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

/*
 * nf4: 4.5 bits a weight, 4.126953125 with scales of 1 byte for 64 and 4 bytes for 256 of those. q
 * of 96 × 96 weights: read with scales in fp32, and written in bf16, before each of its two
 * products. Double quantisation first makes 144 scales from as many bytes and adds their mean: 1 +
 * 4/256 and 4 bytes each, then 4 and 4.
 */
static void test_nf4(void)
{
    static const double bits[2] = {4.5, 4.126953125};
    struct arena arena = {0};
    for (int i = 0; i < 2; i++) {
        struct train_shape shape = fixture_shape(128, 2);
        shape.lora = lora(4, q_and_v, 2);
        shape.lora.quantization = QUANTIZE_NF4;
        shape.lora.has_double_quant = i == 1;
        const struct module_kind *block = small_block(&arena, &shape);
        const double bytes = 96.0 * 96.0 * (4.5 / 8.0 + 2.0);
        CHECK_NEAR(fixture_kernel(&block->forward, "q_proj.dequantize")->bytes, bytes, 1e-12);
        CHECK_NEAR(fixture_kernel(&block->backward, "q_proj.dequantize")->bytes, bytes, 1e-12);
        CHECK_NEAR(lora_scale_bytes(&shape.lora), (bits[i] - 4.0) / 8.0, 1e-12);
        CHECK_INT(has_kernel(&block->forward, "q_proj.dequantize.scales"), i);
        CHECK_INT(has_kernel(&block->backward, "q_proj.dequantize.mean"), i);
        if (i == 1) {
            CHECK_NEAR(fixture_kernel(&block->forward, "q_proj.dequantize.scales")->bytes,
                       144.0 * (5.0 + 4.0 / 256.0), 1e-12);
            CHECK_NEAR(fixture_kernel(&block->backward, "q_proj.dequantize.mean")->bytes,
                       144.0 * 8.0, 1e-12);
        }
        int64_t packed = 0;
        for (int32_t p = 0; p < block->param_count; p++)
            packed +=
                block->params[p].is_packed ? block->params[p].dim0 * block->params[p].rest : 0;
        CHECK_INT(packed, 2 * 96 * 96 + 2 * 96 * 32 + 3 * 96 * 160);
    }
    arena_release(&arena);
}

/*
 * Held inputs of packed products, a token of a block with dropout, 2 B each: the norms' outputs, 96
 * wide, that q, k, v and gate, up read, and the product that down reads, 160; o's is the context,
 * which attention keeps. In the backward the product stays beside its gradient: 3f, not 2f.
 */
static void test_held_inputs(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    shape.has_fused_kernels = true;
    shape.lora = lora(4, q_and_v, 2);
    shape.lora.dropout = 0.1;
    shape.lora.quantization = QUANTIZE_NF4;
    const struct module_kind *block = small_block(&arena, &shape);
    const int64_t bare = block->saved_bytes, backward = block->backward_temp_bytes;
    shape.lora.holds_inputs = true;
    block = small_block(&arena, &shape);
    CHECK_INT(block->saved_bytes - bare, INT64_C(256) * 2 * (96 + 96 + 160));
    CHECK_INT(block->backward_temp_bytes, backward);
    shape.lora.quantization = QUANTIZE_NONE;
    const int64_t open = small_block(&arena, &shape)->saved_bytes;
    CHECK_INT(open, bare);
    arena_release(&arena);
}

/*
 * q and v of one layer for q, k, v (96 + 32 + 32): A of both stacked, 8 × 96, B 128 × 4 in two
 * groups. Its output among zeros: 128 · 2 B a token are kept for index_copy; the view v keeps raw q
 * and k, 128 · 2 B, beside rotated ones.
 */
static void test_fused_targets(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_small();
    struct train_shape shape = fixture_shape(128, 2);
    shape.lora = lora(4, q_and_v, 2);
    shape.lora.dropout = 0.1;
    const struct module_kind *apart =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    struct model_config fused = fixture_small();
    fused.type = TYPE_PHI3;
    const struct model *model = fixture_build(&arena, &fused, &shape);
    const struct module_kind *block = fixture_kind(model, MODULE_BLOCK);
    const struct kernel *first = fixture_kernel(&block->forward, "qkv_proj.lora_A");
    const struct kernel *second = fixture_kernel(&block->forward, "qkv_proj.lora_B");
    CHECK_INT(first->n, 8);
    CHECK_INT(second->n, 128);
    CHECK_INT(second->k, 4);
    CHECK_NEAR(fixture_kernel(&block->backward, "qkv_proj.lora_B.input_grad")->flop,
               2.0 * 256 * 4 * 128, 1e-15);
    CHECK_INT(block->numel - block->frozen_numel, apart->numel - apart->frozen_numel);
    /* One dropped input and mask instead of two, 96·3. */
    CHECK_INT(block->saved_bytes - apart->saved_bytes, INT64_C(256) * (2 * 128 + 2 * 128 - 288));
    arena_release(&arena);
}

/* 256 tokens of 96: to fp32 and back 6 bytes an element each, the dropout in fp32 9, in bf16 5. */
static void test_wide_input(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    shape.lora = lora(4, q_and_v, 2);
    shape.lora.dropout = 0.1;
    CHECK_NEAR(fixture_kernel(&small_block(&arena, &shape)->forward, "q_proj.lora_dropout")->bytes,
               5.0 * 24576, 1e-15);
    shape.lora.has_wide_input = true;
    const struct module_kind *block = small_block(&arena, &shape);
    for (int i = 0; i < 2; i++) {
        const struct kernel_list *list = i == 0 ? &block->forward : &block->backward;
        CHECK_NEAR(fixture_kernel(list, "q_proj.lora.to_fp32")->bytes, 6.0 * 24576, 1e-15);
        CHECK_NEAR(fixture_kernel(list, "q_proj.lora_dropout")->bytes, 9.0 * 24576, 1e-15);
        CHECK_NEAR(fixture_kernel(list, "q_proj.lora.from_fp32")->bytes, 6.0 * 24576, 1e-15);
    }
    arena_release(&arena);
}

/*
 * Early stop with adapters on all layers: the last tensor that backward reads is x·Aᵀ of down. An
 * eager forward comes by down's own product on the way there, and leaves out B's, 2·T·r·h; a
 * compiled graph has no use for the product, 2·T·f·h, nor for its weight unpacked, nor for the
 * scales of that. T 256, h 96, f
 * 160.
 */
static void test_early_stop(void)
{
    static const struct {
        bool is_compiled, has_double_quant;
        double skipped_flop;
    } rows[] = {{false, false, 2.0 * 256 * 4 * 96},
                {false, true, 2.0 * 256 * 4 * 96},
                {true, false, 2.0 * 256 * 4 * 96 + 2.0 * 256 * 160 * 96},
                {true, true, 2.0 * 256 * 4 * 96 + 2.0 * 256 * 160 * 96}};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct train_shape shape = fixture_shape(128, 2);
        shape.lora = lora(4, all_linear, 1);
        shape.lora.quantization = QUANTIZE_NF4;
        shape.lora.has_double_quant = rows[i].has_double_quant;
        shape.checkpointing = CHECKPOINT_FULL;
        shape.stops_early = true;
        shape.is_compiled = rows[i].is_compiled;
        const bool reads_scales = !rows[i].is_compiled && rows[i].has_double_quant;
        const struct module_kind *block = small_block(&arena, &shape);
        CHECK_TRUE(has_kernel(&block->recompute, "down_proj.lora_A"));
        CHECK_TRUE(has_kernel(&block->recompute, "up_proj"));
        CHECK_TRUE(!has_kernel(&block->recompute, "down_proj.lora_B"));
        CHECK_INT(has_kernel(&block->recompute, "down_proj"), !rows[i].is_compiled);
        CHECK_INT(has_kernel(&block->recompute, "down_proj.dequantize"), !rows[i].is_compiled);
        CHECK_INT(has_kernel(&block->recompute, "down_proj.dequantize.scales"), reads_scales);
        CHECK_INT(has_kernel(&block->recompute, "down_proj.dequantize.mean"), reads_scales);
        CHECK_INT(has_kernel(&block->recompute, "up_proj.dequantize.mean"),
                  rows[i].has_double_quant);
        CHECK_NEAR(block->model_flop - block->recompute_flop, rows[i].skipped_flop, 1e-12);
    }
    arena_release(&arena);
}

/* Two passes over a layer's output less, and nothing else. */
static void test_fused_scale(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    shape.lora = lora(4, q_and_v, 2);
    const struct module_kind *block = small_block(&arena, &shape);
    CHECK_TRUE(has_kernel(&block->forward, "q_proj.lora_scale"));
    CHECK_TRUE(has_kernel(&block->backward, "v_proj.lora_scale.grad"));
    const int32_t forward = block->forward.count, backward = block->backward.count;
    shape.lora.has_fused_scale = true;
    block = small_block(&arena, &shape);
    CHECK_INT(forward - block->forward.count, 2);
    CHECK_INT(backward - block->backward.count, 2);
    CHECK_TRUE(!has_kernel(&block->forward, "q_proj.lora_scale"));
    CHECK_TRUE(!has_kernel(&block->backward, "v_proj.lora_scale.grad"));
    arena_release(&arena);
}

/* One pass over a layer's output more, for each adapter, forward only. */
static void test_output_copy(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    shape.lora = lora(4, q_and_v, 2);
    const struct module_kind *block = small_block(&arena, &shape);
    const int32_t forward = block->forward.count, backward = block->backward.count;
    shape.lora.copies_output = true;
    block = small_block(&arena, &shape);
    CHECK_INT(block->forward.count - forward, 2);
    CHECK_INT(block->backward.count, backward);
    CHECK_NEAR(fixture_kernel(&block->forward, "q_proj.lora_copy")->bytes, 256.0 * 96.0 * 4.0,
               1e-12);
    arena_release(&arena);
}

const struct check_case lora_cases[] = {{"parameters", test_parameters},
                                        {"flop", test_flop},
                                        {"products", test_products},
                                        {"frozen", test_frozen},
                                        {"saved", test_saved},
                                        {"nf4", test_nf4},
                                        {"held inputs", test_held_inputs},
                                        {"fused targets", test_fused_targets},
                                        {"wide input", test_wide_input},
                                        {"early stop", test_early_stop},
                                        {"fused scale", test_fused_scale},
                                        {"output copy", test_output_copy},
                                        {"backward peak", test_backward_peak},
                                        {NULL, NULL}};
