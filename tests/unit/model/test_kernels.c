/* Kernels of other blocks than Llama's: eager attention, experts, latent heads, windows. */
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "check.h"
#include "model_fixture.h"

extern const struct check_case kernels_cases[];

static const struct module_kind *bind_block(struct arena *arena, const char *text,
                                            const struct train_shape *shape)
{
    struct model_config config = {0};
    CHECK_TEXT(fixture_bind(arena, text, &config), "");
    return fixture_kind(fixture_build(arena, &config, shape), MODULE_BLOCK);
}

/*
 * Small model: 6 heads of 16, 2 key/value heads, s = 128, b = 2: 196,608 scores. Products 12·(128 ×
 * 128 × 16); softmax reads bf16, writes fp32: 6 bytes a score; the cast 6; scale and mask 4 each.
 */
static void test_eager_attention(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_small();
    struct train_shape shape = fixture_shape(128, 2);
    shape.attention = ATTENTION_EAGER;
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    const double scores = 196608;
    const struct kernel *product = fixture_kernel(&block->forward, "scores");
    CHECK_INT(product->batch, 12);
    CHECK_INT(product->m, 128);
    CHECK_INT(product->n, 128);
    CHECK_INT(product->k, 16);
    CHECK_NEAR(product->flop, 2.0 * scores * 16, 1e-15);
    CHECK_NEAR(fixture_kernel(&block->forward, "scores.mask")->bytes, 4 * scores, 1e-15);
    CHECK_NEAR(fixture_kernel(&block->forward, "softmax")->bytes, 6 * scores, 1e-15);
    CHECK_INT(fixture_kernel(&block->forward, "softmax")->kind, KERNEL_SOFTMAX_LOSS);
    CHECK_NEAR(fixture_kernel(&block->forward, "softmax.from_fp32")->bytes, 6 * scores, 1e-15);
    /* Gradient in bf16 (after its cast), output and input of the gradient in fp32. */
    CHECK_NEAR(fixture_kernel(&block->backward, "softmax.grad")->bytes, 10 * scores, 1e-15);
    CHECK_INT(fixture_kernel(&block->backward, "context.value_grad")->n, 16);
    CHECK_INT(fixture_count(&block->forward, ".repeat"), 2);
    /* Full square, four products more backward. */
    CHECK_NEAR(kernel_list_flop(&block->forward), 36175872.0 + 4 * scores * 16, 1e-15);
    CHECK_NEAR(kernel_list_flop(&block->backward), 2 * (36175872.0 + 4 * scores * 16), 1e-15);
    /* Compiled: one kernel from scores to probabilities. */
    shape.is_compiled = true;
    block = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(fixture_count(&block->forward, "softmax"), 1);
    CHECK_INT(fixture_count(&block->forward, "scores"), 1);
    CHECK_INT(fixture_kernel(&block->forward, "softmax")->impl, IMPL_INDUCTOR);
    arena_release(&arena);
}

/* Four experts of 48, two a token, one shared, T = 64: grouped products of 32 rows an expert. */
static void test_experts(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(64, 1);
    const struct module_kind *block =
        bind_block(&arena,
                   "model: {family: decoder, hidden_size: 96, intermediate_size: 160,"
                   " num_attention_heads: 6, num_hidden_layers: 2, vocab_size: 500,"
                   " num_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 48,"
                   " n_shared_experts: 1}\n",
                   &shape);
    const struct kernel *up = fixture_kernel(&block->forward, "experts.gate_up_proj");
    CHECK_INT(up->batch, 4);
    CHECK_INT(up->m, 32);
    CHECK_INT(up->n, 96);
    CHECK_INT(up->k, 96);
    CHECK_NEAR(up->flop, 2.0 * 128 * 96 * 96, 1e-15);
    const struct kernel *grad = fixture_kernel(&block->backward, "experts.down_proj.weight_grad");
    CHECK_INT(grad->m, 96);
    CHECK_INT(grad->n, 48);
    CHECK_INT(grad->k, 32);
    CHECK_NEAR(grad->flop, 2.0 * 128 * 96 * 48, 1e-15);
    /* attention 4·96², router 4·96, two of the experts and the shared one 3·96·48 each */
    CHECK_NEAR(block->model_flop,
               2.0 * 64 * (4 * 96 * 96 + 4 * 96 + 3 * 3 * 96 * 48) + 4.0 * 64 * 64 * 96, 1e-14);
    CHECK_INT(block->numel, 4 * 96 * 96 + 2 * 96 + 4 * 96 + 5 * 3 * 96 * 48);
    /* Tokens that do not divide: FLOP stay exact. */
    shape.seq_len = 63;
    block = bind_block(&arena,
                       "model: {model_type: mixtral, hidden_size: 96, intermediate_size: 48,"
                       " num_attention_heads: 6, num_key_value_heads: 6, num_hidden_layers: 2,"
                       " vocab_size: 500, num_local_experts: 4}\n",
                       &shape);
    CHECK_NEAR(fixture_kernel(&block->forward, "experts.gate_up_proj")->flop, 2.0 * 126 * 96 * 96,
               1e-15);
    arena_release(&arena);
}

/* DeepSeek-V3: heads of 192 and 128. Causal forward 2·b·a·s²/2·(192 + 128), backward 3·192 + 2·128.
 */
static void test_latent_attention(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(1024, 1);
    const struct module_kind *block = bind_block(&arena, "model: deepseek-v3\n", &shape);
    const struct kernel *forward = fixture_kernel(&block->forward, "attention");
    const struct kernel *backward = fixture_kernel(&block->backward, "attention.grad");
    const double pairs = 128 * 1024.0 * 1024 / 2;
    CHECK_INT(forward->k, 192);
    CHECK_INT(forward->batch, 128);
    CHECK_TRUE(forward->is_causal);
    CHECK_NEAR(forward->flop, 2 * pairs * 320, 1e-15);
    CHECK_NEAR(backward->flop, 2 * pairs * (3 * 192 + 2 * 128), 1e-15);
    CHECK_INT(fixture_kernel(&block->forward, "q_b_proj")->n, 128 * 192);
    CHECK_INT(fixture_kernel(&block->forward, "kv_a_proj")->n, 576);
    CHECK_INT(fixture_kernel(&block->forward, "kv_b_proj")->n, 128 * 256);
    CHECK_INT(fixture_kernel(&block->forward, "o_proj")->k, 128 * 128);
    arena_release(&arena);
}

/* Gemma 3: five of six layers see 1,024 keys. At s = 4,096: 1024·4096 − 1024²/2 pairs instead of
   4096²/2; at s = 512 there is no difference, and one kind of block. */
static void test_windows(void)
{
    struct arena arena = {0};
    struct model_config config = {0};
    struct train_shape shape = fixture_shape(4096, 1);
    CHECK_TEXT(fixture_bind(&arena, "model: gemma-3-4b-text\n", &config), "");
    const struct model *model = fixture_build(&arena, &config, &shape);
    const struct module_kind *local = &model->kinds[model->modules[1].kind_idx];
    const struct module_kind *global = &model->kinds[model->modules[6].kind_idx];
    CHECK_TRUE(local != global);
    CHECK_TRUE(local == &model->kinds[model->modules[7].kind_idx]);
    CHECK_NEAR(fixture_kernel(&local->forward, "attention")->flop /
                   fixture_kernel(&global->forward, "attention")->flop,
               (1024.0 * 4096 - 1024 * 512.0) / (4096 * 2048.0), 1e-12);
    CHECK_NEAR(local->model_flop, global->model_flop, 1e-15);
    CHECK_INT(fixture_count(&local->forward, "layernorm.to_fp32"), 4);
    CHECK_INT(fixture_count(&local->forward, "q_norm"), 7);
    shape.seq_len = 512;
    model = fixture_build(&arena, &config, &shape);
    CHECK_INT(model->modules[1].kind_idx, model->modules[6].kind_idx);
    arena_release(&arena);
}

/*
 * RMSNorm in eager mode: seven kernels, or PyTorch's one since July 2025, which reads and writes
 * bf16 and keeps x and a word a row: x in fp32 and x normalised were 6 bytes, now 2.
 */
static void test_fused_norms(void)
{
    struct arena arena = {0};
    const struct model_config config = fixture_small();
    struct train_shape shape = fixture_shape(128, 2);
    const struct module_kind *apart =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    shape.has_fused_norms = true;
    const struct module_kind *fused =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(fixture_count(&apart->forward, "input_layernorm"), 7);
    CHECK_INT(fixture_count(&fused->forward, "input_layernorm"), 1);
    CHECK_TRUE(fixture_kernel(&fused->forward, "input_layernorm")->impl == IMPL_EAGER);
    CHECK_INT(apart->saved_bytes - fused->saved_bytes, 2 * 256 * 96 * (4 + 2 - 2));
    shape.is_compiled = true;
    fused = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    shape.has_fused_norms = false;
    apart = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(apart->saved_bytes, fused->saved_bytes);
    CHECK_INT(apart->forward.count, fused->forward.count);
    arena_release(&arena);
}

/* An encoder sees all pairs; T5 has no fused attention, two lengths, and cross products between. */
static void test_encoders(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    const struct module_kind *block = bind_block(&arena, "model: bert-base-uncased\n", &shape);
    const struct kernel *attention = fixture_kernel(&block->forward, "attention");
    CHECK_TRUE(!attention->is_causal);
    CHECK_NEAR(attention->flop, 4.0 * 2 * 12 * 128 * 128 * 64, 1e-15);
    CHECK_INT(fixture_kernel(&block->forward, "input_layernorm")->impl, IMPL_EAGER);

    struct model_config config = {0};
    CHECK_TEXT(fixture_bind(&arena, "model: t5-small\n", &config), "");
    shape.decoder_seq_len = 40;
    const struct model *model = fixture_build(&arena, &config, &shape);
    const struct module_kind *decoder = NULL;
    for (int32_t i = 0; i < model->kind_count; i++)
        if (strcmp(model->kinds[i].label, "decoder.block") == 0)
            decoder = &model->kinds[i];
    if (CHECK_TRUE(decoder != NULL)) {
        const struct kernel_list *list = &decoder->forward;
        CHECK_INT(fixture_kernel(list, "q_proj")->m, 80);
        CHECK_INT(fixture_count(list, "k_proj"), 2);
        int32_t last = 0;
        for (int32_t i = 0; i < list->count; i++)
            if (strcmp(list->items[i].name, "scores") == 0)
                last = i;
        CHECK_INT(list->items[last].m, 40);
        CHECK_INT(list->items[last].n, 128);
    }
    arena_release(&arena);
}

/* Parallel blocks: Falcon one norm for both parts, GPT-NeoX two; GPT-2's weights lie (in, out). */
static void test_arrangements(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(256, 1);
    const struct module_kind *block = bind_block(&arena, "model: falcon-7b\n", &shape);
    CHECK_INT(fixture_count(&block->forward, "layernorm"), 1);
    CHECK_INT(fixture_kernel(&block->forward, "qkv_proj")->n, 4544 + 2 * 64);
    block = bind_block(&arena, "model: pythia-70m\n", &shape);
    CHECK_INT(fixture_count(&block->forward, "layernorm"), 2);
    CHECK_INT(fixture_count(&block->backward, "bias_grad"), 4);
    /* a quarter of each head turns: 20 bytes an element and the table */
    CHECK_NEAR(fixture_kernel(&block->forward, "rotary.q")->bytes,
               8.0 * 256 * 512 / 4 + 4.0 * 256 * 16, 1e-15);
    block = bind_block(&arena, "model: gpt2\n", &shape);
    CHECK_INT(block->params[0].dim0, 768);
    CHECK_INT(block->params[0].rest, 2304);
    CHECK_INT(fixture_count(&block->forward, "act"), 8);
    CHECK_INT(fixture_count(&block->forward, "dropout"), 2);
    shape.is_compiled = true;
    block = bind_block(&arena, "model: gpt2\n", &shape);
    CHECK_INT(fixture_count(&block->forward, "act"), 1);
    CHECK_INT(fixture_count(&block->forward, "dropout"), 0);
    arena_release(&arena);
}

static void test_sequence_bounds(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct model *model = NULL;
    struct model_config config = {0};
    struct train_shape shape = fixture_shape(1025, 1);
    diag_init(&diag, &arena);
    CHECK_TEXT(fixture_bind(&arena, "model: gpt2\n", &config), "");
    CHECK_INT(model_build(&arena, &config, &shape, &model, &diag), STATUS_INPUT);
    CHECK_CONTAINS(fixture_messages(&arena, &diag), "longer than the model's 1024 learned");
    config = (struct model_config){0};
    CHECK_TEXT(fixture_bind(&arena, "model: vit-base-patch16-224\n", &config), "");
    CHECK_INT(model_build(&arena, &config, &shape, &model, &diag), STATUS_INPUT);
    CHECK_CONTAINS(fixture_messages(&arena, &diag), "197 tokens, not 1025");
    arena_release(&arena);
}

const struct check_case kernels_cases[] = {{"fused norms", test_fused_norms},
                                           {"eager attention", test_eager_attention},
                                           {"experts", test_experts},
                                           {"latent attention", test_latent_attention},
                                           {"windows", test_windows},
                                           {"encoders", test_encoders},
                                           {"arrangements", test_arrangements},
                                           {"sequence bounds", test_sequence_bounds},
                                           {NULL, NULL}};
