/* A whole model, Llama: parameters, FLOP conventions, activations and loss against published
 * facts. */
#include <stddef.h>

#include "base/arena.h"
#include "check.h"
#include "model_fixture.h"

extern const struct check_case transformer_cases[];

static void test_modules(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(8192, 1);
    const struct model *model = fixture_build(&arena, &config, &shape);
    if (CHECK_INT(model->module_count, 36)) {
        CHECK_TEXT(model->modules[0].name, "embed_tokens");
        CHECK_TEXT(model->modules[18].name, "layers.17");
        CHECK_INT(model->modules[1].kind_idx, model->modules[32].kind_idx);
        CHECK_TEXT(model->modules[33].name, "norm");
        CHECK_TEXT(model->modules[34].name, "lm_head");
        CHECK_INT(model->kinds[model->modules[34].kind_idx].role, MODULE_HEAD);
        CHECK_TEXT(model->modules[35].name, "loss");
        CHECK_INT(model->kinds[model->modules[35].kind_idx].param_count, 0);
    }
    CHECK_TEXT(model->name, "llama-3.1-8b");
    CHECK_INT(model->parameters, 8030261248);
    CHECK_INT(model->input_embedding_parameters, 128256 * 4096);
    CHECK_INT(model->layers, 32);
    CHECK_INT(model->heads, 32);
    CHECK_INT(model->hidden_size, 4096);
    CHECK_INT(model->vocab_size, 128256);
    CHECK_INT(model->active_parameters, 8030261248);
    CHECK_INT(model->head_dim, 128);
    CHECK_INT(model->tokens, 8192);
    arena_release(&arena);
}

/*
 * torchtitan's published runs of Llama-3.1-8B at sequence 8,192: 5,762 tokens/s/GPU are 333.7
 * TFLOP/s, 33.7 % of 989; compiled 6,667 are 386.1. By hand: 6·(8,030,261,248 − 525,336,576) +
 * 6·32·32·256·8192.
 */
static void test_flop_per_token(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(8192, 1);
    const struct model *model = fixture_build(&arena, &config, &shape);
    CHECK_NEAR(model->flop_per_token, 45029548032.0 + 12884901888.0, 1e-15);
    CHECK_NEAR(5762 * model->flop_per_token, 333.7e12, 2e-4);
    CHECK_NEAR(5762 * model->flop_per_token / 989e12, 0.337, 2e-3);
    CHECK_NEAR(6667 * model->flop_per_token, 386.1e12, 2e-4);

    /* Tied: nothing is subtracted, and the embedding's parameters count once. */
    config.decoder.tie_word_embeddings = true;
    model = fixture_build(&arena, &config, &shape);
    CHECK_INT(model->parameters, 8030261248 - 525336576);
    CHECK_INT(model->input_embedding_parameters, 0);
    CHECK_TRUE(model->is_tied);
    CHECK_NEAR(model->flop_per_token, 45029548032.0 + 12884901888.0, 1e-15);
    arena_release(&arena);
}

static double forward_gemm_flop(const struct model *model)
{
    double sum = 0.0;
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct kernel_list *list = &model->kinds[model->modules[i].kind_idx].forward;
        for (int32_t j = 0; j < list->count; j++)
            sum += list->items[j].kind == KERNEL_GEMM ? list->items[j].flop : 0.0;
    }
    return sum;
}

/*
 * The 2N of a forward pass: GEMM FLOP per token are twice the parameters that stand in matrices
 * which are multiplied (all but norms and the input embedding; a tied head counts), whatever the
 * shape. And the per-module model FLOP are 1/3 of the convention, but for the norms' 6 a parameter.
 */
static void test_gemm_identity(void)
{
    static const struct decoder_config rows[] = {
        {.hidden_size = 4096,
         .intermediate_size = 14336,
         .num_hidden_layers = 32,
         .num_attention_heads = 32,
         .num_key_value_heads = 8,
         .vocab_size = 128256},
        {.hidden_size = 2048,
         .intermediate_size = 8192,
         .num_hidden_layers = 16,
         .num_attention_heads = 32,
         .num_key_value_heads = 8,
         .head_dim = 64,
         .vocab_size = 128256,
         .tie_word_embeddings = true},
        {.hidden_size = 16384,
         .intermediate_size = 53248,
         .num_hidden_layers = 126,
         .num_attention_heads = 128,
         .num_key_value_heads = 8,
         .vocab_size = 128256},
        {.hidden_size = 96,
         .intermediate_size = 160,
         .num_hidden_layers = 3,
         .num_attention_heads = 5,
         .num_key_value_heads = 1,
         .head_dim = 24,
         .vocab_size = 77},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("row %d", (int)i);
        struct model_config config = {.type = TYPE_LLAMA, .decoder = rows[i]};
        struct train_shape shape = fixture_shape(512, 3);
        const struct model *model = fixture_build(&arena, &config, &shape);
        int64_t norms = rows[i].hidden_size * (2 * rows[i].num_hidden_layers + 1);
        double matrices = (double)(model->parameters - norms - model->input_embedding_parameters);
        CHECK_NEAR(forward_gemm_flop(model) / 1536.0, 2.0 * matrices, 1e-14);
        CHECK_INT(model_config_parameters(&config), model->parameters);

        double model_flop = 0.0;
        for (int32_t j = 0; j < model->module_count; j++)
            model_flop += model->kinds[model->modules[j].kind_idx].model_flop;
        CHECK_NEAR(3.0 * model_flop / 1536.0, model->flop_per_token - 6.0 * (double)norms, 1e-14);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* Llama-3-8B, 8,192 tokens, 32 blocks: 41.0 GiB saved (168,072 B a token and block). */
static void test_activations(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(8192, 1);
    shape.has_fused_kernels = true;
    const struct model *model = fixture_build(&arena, &config, &shape);
    /* Hand-fused SwiGLU recomputes silu(gate), which 107 counts. */
    int64_t block_bytes =
        fixture_kind(model, MODULE_BLOCK)->saved_bytes + INT64_C(8192) * 2 * 14336;
    CHECK_INT(block_bytes, 168072 * 8192);
    CHECK_NEAR(32.0 * (double)block_bytes / 1073741824.0, 41.0, 1e-3);
    arena_release(&arena);
}

/* Worked examples: one tensor of B = 4, S = 2048, d = 4096 in bf16; b = 8, s = 2048, d = 12288. */
static void test_worked_examples(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(2048, 4);
    shape.checkpointing = CHECKPOINT_FULL;
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(block->output_bytes, 67108864);
    CHECK_INT(block->saved_bytes, 67108864);

    config.decoder = (struct decoder_config){.hidden_size = 12288,
                                             .intermediate_size = 49152,
                                             .num_hidden_layers = 96,
                                             .num_attention_heads = 96,
                                             .vocab_size = 50257};
    shape = fixture_shape(2048, 8);
    shape.compute_dtype = DTYPE_FP16;
    shape.checkpointing = CHECKPOINT_FULL;
    block = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(block->saved_bytes, 402653184);
    CHECK_INT(block->saved_bytes / 2, 201326592);
    CHECK_NEAR(96.0 * (double)block->saved_bytes, 38.65e9, 2e-4);
    arena_release(&arena);
}

/* T·V = 8192·128256 = 1,050,673,152: one fp32 copy of the logits is 3.91 GiB. */
static void test_loss_memory(void)
{
    static const struct {
        const char *name;
        enum dtype dtype;
        bool has_upcast;
        int64_t logits, saved, forward_temp, backward_temp; /* bytes an element of T·V */
        int32_t forward_count, backward_count;
    } rows[] = {{"bf16, upcast", DTYPE_BF16, true, 2, 4, 4, 8, 3, 4},
                {"bf16", DTYPE_BF16, false, 2, 2, 0, 4, 2, 3},
                {"fp32, upcast", DTYPE_FP32, true, 4, 4, 0, 8, 2, 3}};
    const int64_t count = 1050673152;
    struct arena arena = {0};
    CHECK_NEAR(4.0 * (double)count / 1073741824.0, 3.91, 2e-3);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].name);
        struct model_config config = fixture_llama_8b();
        struct train_shape shape = fixture_shape(4096, 2);
        shape.compute_dtype = rows[i].dtype;
        shape.loss_upcast = rows[i].has_upcast;
        const struct model *model = fixture_build(&arena, &config, &shape);
        const struct module_kind *loss = fixture_kind(model, MODULE_LOSS);
        CHECK_INT(fixture_kind(model, MODULE_HEAD)->output_bytes, rows[i].logits * count);
        CHECK_INT(loss->saved_bytes, rows[i].saved * count);
        CHECK_INT(loss->forward_temp_bytes, rows[i].forward_temp * count);
        CHECK_INT(loss->backward_temp_bytes, rows[i].backward_temp * count);
        CHECK_INT(loss->forward.count, rows[i].forward_count);
        CHECK_INT(loss->backward.count, rows[i].backward_count);
        CHECK_INT(loss->host_op_count, rows[i].forward_count);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* Bytes of what is not a block: T = 256, h = 96, V = 1000, bf16. T·V = 256,000; hidden 49,152. */
static void test_outer_kernels(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_small();
    struct train_shape shape = fixture_shape(128, 2);
    config.decoder.tie_word_embeddings = true;
    const struct model *model = fixture_build(&arena, &config, &shape);
    const struct module_kind *embedding = fixture_kind(model, MODULE_EMBEDDING);
    const struct module_kind *norm = fixture_kind(model, MODULE_NORM);
    const struct module_kind *head = fixture_kind(model, MODULE_HEAD);
    const struct module_kind *loss = fixture_kind(model, MODULE_LOSS);
    CHECK_INT(embedding->params[0].dim0, 1000);
    CHECK_INT(embedding->params[0].rest, 96);
    CHECK_INT(embedding->saved_bytes, 2048);
    CHECK_NEAR(kernel_list_bytes(&embedding->forward), 2 * 49152.0 + 2048, 1e-15);
    /* zeros 192,000; scatter 3·49,152 + 2,048; sum with the head's gradient 3·192,000 */
    CHECK_NEAR(kernel_list_bytes(&embedding->backward), 192000.0 + 149504 + 576000, 1e-15);
    CHECK_INT(norm->numel, 96);
    /* fp32 copy, normalised, 1/rms */
    CHECK_INT(norm->saved_bytes, 6 * 24576 + 1024);
    CHECK_INT(norm->backward_temp_bytes, 2 * 49152);
    CHECK_NEAR(kernel_list_bytes(&norm->forward), 891072.0, 1e-15);
    CHECK_NEAR(kernel_list_bytes(&norm->backward), 84.0 * 24576 + 9216 + 384, 1e-15);
    CHECK_INT(head->param_count, 0);
    CHECK_INT(head->saved_bytes, 49152);
    CHECK_INT(head->backward_temp_bytes, 49152);
    CHECK_NEAR(kernel_list_flop(&head->forward), 2.0 * 256 * 1000 * 96, 1e-15);
    CHECK_NEAR(kernel_list_flop(&head->backward), 4.0 * 256 * 1000 * 96, 1e-15);
    /* cast 6, log-softmax 8, nll 256·12; backward 4 + 12 + 6, nll 256·12 */
    CHECK_NEAR(kernel_list_bytes(&loss->forward), 14 * 256000.0 + 3072, 1e-15);
    CHECK_NEAR(kernel_list_bytes(&loss->backward), 22 * 256000.0 + 3072, 1e-15);
    CHECK_INT(fixture_kernel(&loss->forward, "log_softmax")->dtype, DTYPE_FP32);
    arena_release(&arena);
}

static void test_too_large(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct model *model = NULL;
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(INT64_C(1) << 40, INT64_C(1) << 40);
    diag_init(&diag, &arena);
    CHECK_INT(model_build(&arena, &config, &shape, &model, &diag), STATUS_INPUT);
    CHECK_CONTAINS(fixture_messages(&arena, &diag), "tokens in one microbatch are too many");

    shape = fixture_shape(1 << 30, 300);
    CHECK_INT(model_build(&arena, &config, &shape, &model, &diag), STATUS_INPUT);
    CHECK_CONTAINS(fixture_messages(&arena, &diag), "bytes are too large to count");

    shape = fixture_shape(128, 1);
    config.decoder.num_hidden_layers = INT64_C(1) << 40;
    CHECK_INT(model_build(&arena, &config, &shape, &model, &diag), STATUS_INPUT);
    CHECK_CONTAINS(fixture_messages(&arena, &diag), "parameters is too large");

    config = fixture_llama_8b();
    shape.compute_dtype = DTYPE_FP8;
    CHECK_INT(model_build(&arena, &config, &shape, &model, &diag), STATUS_INPUT);
    CHECK_CONTAINS(fixture_messages(&arena, &diag), "'fp8'");
    CHECK_INT(diag.error_count, 4);
    arena_release(&arena);
}

const struct check_case transformer_cases[] = {{"modules", test_modules},
                                               {"flop per token", test_flop_per_token},
                                               {"gemm identity", test_gemm_identity},
                                               {"activations", test_activations},
                                               {"worked examples", test_worked_examples},
                                               {"loss memory", test_loss_memory},
                                               {"outer kernels", test_outer_kernels},
                                               {"too large", test_too_large},
                                               {NULL, NULL}};
