/*
 * What is kept, what runs again, what logits and loss cost: the fixtures of published runs as far
 * as the network alone decides them.
 */
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "check.h"
#include "model_fixture.h"

extern const struct check_case checkpoint_cases[];

static const double gib = 1073741824.0;

static const struct module_kind *block_of(struct arena *arena, struct train_shape shape)
{
    struct model_config config = fixture_llama_8b();
    return fixture_kind(fixture_build(arena, &config, &shape), MODULE_BLOCK);
}

static bool has_kernel(const struct kernel_list *list, const char *name)
{
    for (int32_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

/*
 * Selective by operation: of q, k, v, o, gate, up, down every second stays, that is q, v, gate,
 * down: 2·(4096 + 1024 + 14336 + 4096); the block's input 8192, attention 8192 + 4·32: 63,616 a
 * token. Again run k, o, up and what is not a product.
 */
static void test_selective(void)
{
    static const struct {
        const char *name;
        bool is_again;
    } rows[] = {{"q_proj", false},    {"k_proj", true},     {"v_proj", false},
                {"o_proj", true},     {"gate_proj", false}, {"up_proj", true},
                {"down_proj", false}, {"attention", false}, {"act.mul", true}};
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(8192, 1);
    shape.checkpointing = CHECKPOINT_SELECTIVE_OP;
    const struct module_kind *block = block_of(&arena, shape);
    CHECK_INT(block->saved_bytes, 8192 * 63616);
    CHECK_INT(block->recompute_saved_bytes, 8192 * (200840 + 8192));
    CHECK_TRUE(block->is_recomputed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].name);
        CHECK_INT(has_kernel(&block->recompute, rows[i].name), rows[i].is_again);
    }
    check_context(NULL);
    CHECK_INT(block->forward.count - block->recompute.count, 5);
    /* k 4096·1024, o 4096², up 4096·14336, two FLOP each */
    CHECK_NEAR(block->recompute_flop, 2.0 * 8192 * 4096 * (1024 + 4096 + 14336), 1e-14);
    /* Compiled: nothing reads the output of down, 2h. */
    shape.is_compiled = true;
    block = block_of(&arena, shape);
    CHECK_INT(block->saved_bytes, 8192 * (63616 - 8192));
    CHECK_TRUE(!has_kernel(&block->recompute, "down_proj"));
    CHECK_NEAR(block->recompute_flop, 2.0 * 8192 * 4096 * (1024 + 4096 + 14336), 1e-14);
    arena_release(&arena);
}

/*
 * torchtitan's published run (99, 112): Llama-3.1-8B, 2 sequences of 8,192, selective
 * checkpointing, 8 GPUs: 77.0 GiB reserved compiled, 82.4 eager; on 128 GPUs 15.4 GiB less. What
 * the network knows: 16 bytes a parameter and GPU, the blocks' kept tensors, logits and loss at
 * their largest. That is below the measured figure and not far from it (the rest is FSDP's buffers
 * and the allocator: 11.5 GiB compiled, 12.9 eager).
 */
static void test_published_selective(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(8192, 2);
    shape.checkpointing = CHECKPOINT_SELECTIVE_OP;
    static const double measured[2] = {82.4, 77.0}, kept[2] = {31.06, 27.06};
    for (int is_compiled = 0; is_compiled < 2; is_compiled++) {
        shape.is_compiled = is_compiled != 0;
        const struct model *model = fixture_build(&arena, &config, &shape);
        const double states = 16.0 * (double)model->parameters / gib;
        CHECK_NEAR(states / 8 - states / 128, 14.02, 1e-3);
        const double blocks = 32.0 * (double)fixture_kind(model, MODULE_BLOCK)->saved_bytes / gib;
        CHECK_NEAR(blocks, kept[is_compiled], 1e-3);
        const struct module_kind *loss = fixture_kind(model, MODULE_LOSS);
        const double logits = (double)(loss->saved_bytes + loss->backward_temp_bytes) / gib;
        CHECK_NEAR(logits, 23.48, 1e-3);
        const double sum = states / 8 + blocks + logits;
        CHECK_TRUE(sum < measured[is_compiled] && sum > 0.84 * measured[is_compiled]);
    }
    arena_release(&arena);
}

/* 110: a block keeps its input; by child four hidden tensors (norm, attention, norm, MLP). */
static void test_children(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(4096, 1);
    shape.checkpointing = CHECKPOINT_PER_CHILD;
    const struct module_kind *block = block_of(&arena, shape);
    CHECK_INT(block->saved_bytes, 4 * 8192 * INT64_C(4096));
    CHECK_TRUE(has_kernel(&block->recompute, "down_proj"));
    CHECK_TRUE(!has_kernel(&block->recompute, "attention.residual"));
    CHECK_NEAR(block->recompute_flop, block->model_flop, 1e-15);
    /* The MLP is the largest child: gate, up, silu, product. */
    CHECK_INT(block->recompute_saved_bytes - block->saved_bytes, INT64_C(8) * 14336 * 4096);
    shape.checkpointing = CHECKPOINT_FULL;
    block = block_of(&arena, shape);
    CHECK_INT(block->saved_bytes, 8192 * INT64_C(4096));
    CHECK_INT(block->recompute.count, block->forward.count);
    arena_release(&arena);
}

/* The last kernel that runs again. */
static void check_last(const struct module_kind *block, const char *name)
{
    if (CHECK_TRUE(block->recompute.count > 0))
        CHECK_TEXT(block->recompute.items[block->recompute.count - 1].name, name);
}

/*
 * Early stop: nothing after the last tensor that the backward reads. That is the input of down, the
 * last product, whose output goes into a sum: 2·T·f·h less, and the sum's kernel. By child also o:
 * 2·T·h·h. Compiled it is so without the flag.
 */
static void test_early_stop(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(4096, 1);
    const double down_flop = 2.0 * 4096 * 14336 * 4096, o_flop = 2.0 * 4096 * 4096 * 4096;
    shape.checkpointing = CHECKPOINT_FULL;
    shape.stops_early = true;
    const struct module_kind *block = block_of(&arena, shape);
    CHECK_INT(block->forward.count - block->recompute.count, 2);
    check_last(block, "act.mul");
    CHECK_NEAR(block->model_flop - block->recompute_flop, down_flop, 1e-14);
    shape.stops_early = false;
    shape.is_compiled = true;
    block = block_of(&arena, shape);
    check_last(block, "act.mul");
    CHECK_NEAR(block->model_flop - block->recompute_flop, down_flop, 1e-14);
    shape.is_compiled = false;
    shape.stops_early = true;
    shape.checkpointing = CHECKPOINT_PER_CHILD;
    block = block_of(&arena, shape);
    CHECK_TRUE(!has_kernel(&block->recompute, "o_proj"));
    CHECK_NEAR(block->model_flop - block->recompute_flop, down_flop + o_flop, 1e-14);
    /* Selective keeps the output of down in any case: only the sum is left out. */
    shape.checkpointing = CHECKPOINT_SELECTIVE_OP;
    block = block_of(&arena, shape);
    CHECK_INT(block->forward.count - block->recompute.count, 6);
    CHECK_NEAR(block->recompute_flop, 2.0 * 4096 * 4096 * (1024 + 4096 + 14336), 1e-14);
    arena_release(&arena);
}

/* What comes after the last product needs its output: dropout its mask, a norm behind the MLP
   (Gemma 2) its input, the weighted sum of experts (Mixtral) their outputs. */
static void test_early_stop_late(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(512, 1);
    shape.checkpointing = CHECKPOINT_FULL;
    shape.stops_early = true;
    struct model_config config = fixture_small();
    config.type = TYPE_GPT2;
    config.decoder.num_key_value_heads = 6;
    config.decoder.max_position_embeddings = 1024;
    config.decoder.hidden_act = "gelu";
    config.decoder.hidden_dropout = 0.1;
    check_last(fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK), "mlp.dropout");
    config = fixture_small();
    config.type = TYPE_GEMMA2;
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_TRUE(has_kernel(&block->recompute, "down_proj"));
    CHECK_NEAR(block->recompute_flop, block->model_flop, 1e-15);
    config = fixture_small();
    config.type = TYPE_MIXTRAL;
    config.decoder.num_experts = 4;
    config.decoder.num_experts_per_tok = 2;
    check_last(fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK),
               "experts.down_proj");
    arena_release(&arena);
}

/* Every third of 32 blocks: 2, 5, ..., 29, ten of them, of another kind than the rest. */
static void test_every(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(512, 1);
    shape.checkpointing = CHECKPOINT_EVERY;
    shape.checkpoint_every = 3;
    const struct model *model = fixture_build(&arena, &config, &shape);
    int recomputed = 0;
    for (int32_t i = 0; i < model->module_count; i++)
        recomputed += model->kinds[model->modules[i].kind_idx].is_recomputed;
    CHECK_INT(recomputed, 10);
    CHECK_TRUE(model->kinds[model->modules[1 + 2].kind_idx].is_recomputed);
    CHECK_TRUE(!model->kinds[model->modules[1 + 3].kind_idx].is_recomputed);
    arena_release(&arena);
}

/*
 * 106, Korthikanti et al.: a GPT block with dropout and unfused attention keeps s·b·h·(34 +
 * 5·a·s/h) bytes, to which come mean and 1/σ of two norms (16 a token). 109: the 5as/h are the
 * softmax (2), its dropped copy (2) and mask (1). Without dropout and fused: 34 less 2 masks of 1,
 * plus 4a.
 */
static void test_korthikanti(void)
{
    const int64_t h = 768, a = 12, s = 512, b = 3, tokens = s * b;
    struct model_config config = {.type = TYPE_GPT2,
                                  .decoder = {.hidden_size = h,
                                              .num_hidden_layers = 2,
                                              .num_attention_heads = a,
                                              .vocab_size = 1000,
                                              .max_position_embeddings = 1024,
                                              .tie_word_embeddings = true,
                                              .hidden_act = "gelu",
                                              .attention_dropout = 0.1,
                                              .hidden_dropout = 0.1}};
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(s, b);
    shape.attention = ATTENTION_EAGER;
    const struct model *model = fixture_build(&arena, &config, &shape);
    CHECK_INT(fixture_kind(model, MODULE_BLOCK)->saved_bytes, tokens * (34 * h + 5 * a * s + 16));
    config.decoder.attention_dropout = 0.0;
    config.decoder.hidden_dropout = 0.0;
    shape.attention = ATTENTION_FA2;
    model = fixture_build(&arena, &config, &shape);
    CHECK_INT(fixture_kind(model, MODULE_BLOCK)->saved_bytes, tokens * (32 * h + 4 * a + 16));
    arena_release(&arena);
}

/*
 * 108: an eager block whose heads all have keys of their own keeps 24h + 8f, to which come 4a + 8:
 * Llama-2-7B.
 */
static void test_eager_norms(void)
{
    struct arena arena = {0};
    struct model_config config = {.type = TYPE_LLAMA,
                                  .decoder = {.hidden_size = 4096,
                                              .intermediate_size = 11008,
                                              .num_hidden_layers = 1,
                                              .num_attention_heads = 32,
                                              .vocab_size = 32000}};
    struct train_shape shape = fixture_shape(1000, 1);
    const struct model *model = fixture_build(&arena, &config, &shape);
    CHECK_INT(fixture_kind(model, MODULE_BLOCK)->saved_bytes,
              1000 * (24 * 4096 + 8 * 11008 + 4 * 32 + 8));
    arena_release(&arena);
}

/*
 * 105: T = 8,192, V = 128,256: 4TV is 3.91 GiB. Chunking the loss lowered a run from 49.58 to 42.26
 * GiB, 7.32; torchtune's eight chunks leave one eighth of 8TV: 6.85.
 */
static void test_chunked_loss(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(8192, 1);
    const struct module_kind *whole =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_LOSS);
    shape.loss_chunks = 8;
    const struct module_kind *chunked =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_LOSS);
    double saved = (double)(whole->saved_bytes + whole->backward_temp_bytes - chunked->saved_bytes -
                            chunked->backward_temp_bytes);
    CHECK_NEAR(saved / gib, 8.0 * 7 / 8 * 8192.0 * 128256 / gib, 1e-9);
    CHECK_NEAR(saved / gib, 7.32, 0.08);
    CHECK_INT(chunked->forward.count, 8 * whole->forward.count);
    CHECK_NEAR(kernel_list_bytes(&chunked->forward), kernel_list_bytes(&whole->forward), 1e-12);
    CHECK_NEAR(kernel_list_bytes(&chunked->backward), kernel_list_bytes(&whole->backward), 1e-12);
    arena_release(&arena);
}

/* Two metrics of 8,192 tokens: each casts (2 + 4), takes the log-softmax (4 + 4) and picks (4 + 8 a
   token); nothing of it has a gradient or stays. */
static void test_loss_metrics(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(8192, 1);
    shape.loss = LOSS_FUSED;
    const struct module_kind *bare =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_LOSS);
    shape.loss_metrics = 2;
    const struct module_kind *loss =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_LOSS);
    CHECK_NEAR(kernel_list_bytes(&loss->forward) - kernel_list_bytes(&bare->forward),
               2.0 * 8192 * (14.0 * 128256 + 12.0), 1e-12);
    CHECK_INT(loss->forward.count - bare->forward.count, 6);
    CHECK_INT(loss->backward.count, bare->backward.count);
    CHECK_INT(loss->saved_bytes, bare->saved_bytes);
    arena_release(&arena);
}

/* Fused: the logits stay, nothing wide. With the head's product: no logits; Liger cuts 8,192 tokens
   by ceil(128,256/4,096) = 32 into pieces of 256. */
static void test_fused_losses(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(8192, 1);
    const int64_t logits = INT64_C(8192) * 128256 * 2;
    shape.loss = LOSS_FUSED;
    const struct model *model = fixture_build(&arena, &config, &shape);
    const struct module_kind *loss = fixture_kind(model, MODULE_LOSS);
    CHECK_INT(loss->saved_bytes, logits + 4 * 8192);
    CHECK_INT(loss->backward_temp_bytes, 0);
    CHECK_INT(loss->forward.items[0].impl, IMPL_HAND);
    double head_flop = kernel_list_flop(&fixture_kind(model, MODULE_HEAD)->forward);
    shape.loss = LOSS_LINEAR;
    model = fixture_build(&arena, &config, &shape);
    const struct module_kind *head = fixture_kind(model, MODULE_HEAD);
    CHECK_INT(head->output_bytes, 0);
    CHECK_INT(head->forward_temp_bytes, INT64_C(256) * 128256 * 2);
    CHECK_INT(head->forward.count, 32 * 4);
    CHECK_INT(head->backward.count, 0);
    CHECK_NEAR(kernel_list_flop(&head->forward), 3.0 * head_flop, 1e-12);
    CHECK_INT(fixture_kind(model, MODULE_LOSS)->saved_bytes, 0);
    arena_release(&arena);
}

/*
 * Hugging Face's shifted copy, bytes an element of T·V. Fused over fp32: logits and their copy, 8;
 * backward the copy, which the gradient takes, and the zeros it is put into, 8. Eager: and the
 * log-softmax, 12; backward 12 as without. In bf16 (GPT-BigCode): 6 and 6.
 */
static void test_shifted_losses(void)
{
    static const struct {
        enum loss_impl impl;
        bool has_upcast;
        int64_t forward, backward, extra; /* extra: bytes a token beside */
        double moved;                     /* by the shift itself, forward */
    } rows[] = {{LOSS_FUSED, true, 8, 8, 4, 8},
                {LOSS_EAGER, true, 12, 12, 0, 8},
                {LOSS_EAGER, false, 6, 6, 0, 4}};
    const int64_t count = INT64_C(8192) * 128256;
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct model_config config = fixture_llama_8b();
        struct train_shape shape = fixture_shape(4096, 2);
        shape.loss = rows[i].impl;
        shape.loss_upcast = rows[i].has_upcast;
        shape.loss_shifted = true;
        const struct model *model = fixture_build(&arena, &config, &shape);
        const struct module_kind *loss = fixture_kind(model, MODULE_LOSS);
        const int64_t logits = fixture_kind(model, MODULE_HEAD)->output_bytes;
        CHECK_INT(logits + loss->saved_bytes + loss->forward_temp_bytes,
                  rows[i].forward * count + rows[i].extra * 8192);
        CHECK_INT(loss->saved_bytes + loss->backward_temp_bytes,
                  rows[i].backward * count + rows[i].extra * 8192);
        CHECK_NEAR(fixture_kernel(&loss->forward, "logits.shift")->bytes,
                   rows[i].moved * (double)count, 1e-12);
    }
    arena_release(&arena);
}

/*
 * Who casts, and what a variable of the loop holds, bytes an element of T·V: in the loss 2 + 4 + 4
 * forward, 12 backward and 2 held; in the model 4 + 4, 12 and 4; not at all 2 + 2, 6 and 2.
 */
static void test_kept_logits(void)
{
    static const struct {
        bool has_upcast, is_model;
        int64_t forward, backward, kept;
    } rows[] = {{true, false, 10, 12, 2}, {true, true, 8, 12, 4}, {false, false, 4, 6, 2}};
    const int64_t count = INT64_C(8192) * 128256;
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct model_config config = fixture_llama_8b();
        struct train_shape shape = fixture_shape(4096, 2);
        shape.loss_upcast = rows[i].has_upcast;
        shape.model_upcasts = rows[i].is_model;
        shape.kept_output = OUTPUT_UNTIL_BACKWARD;
        const struct model *model = fixture_build(&arena, &config, &shape);
        const struct module_kind *loss = fixture_kind(model, MODULE_LOSS);
        const int64_t logits = fixture_kind(model, MODULE_HEAD)->output_bytes;
        CHECK_INT(logits + loss->saved_bytes + loss->forward_temp_bytes, rows[i].forward * count);
        CHECK_INT(loss->saved_bytes + loss->backward_temp_bytes, rows[i].backward * count);
        CHECK_INT(loss->kept_bytes, rows[i].kept * count);
    }
    arena_release(&arena);
}

/*
 * A cache of keys and values, 2 · 2 · 1,024 B a token of Llama-3-8B: beside what a block keeps
 * where it runs again; where it does not, and the output lives on, taken out of that.
 */
static void test_cached_keys(void)
{
    static const struct {
        enum activation_checkpointing checkpointing;
        enum kept_output kept;
        int64_t cached, taken;
    } rows[] = {{CHECKPOINT_FULL, OUTPUT_DROPPED, 4096, 0},
                {CHECKPOINT_FULL, OUTPUT_UNTIL_NEXT_OUTPUT, 4096, 0},
                {CHECKPOINT_NONE, OUTPUT_DROPPED, 0, 0},
                {CHECKPOINT_NONE, OUTPUT_UNTIL_BACKWARD, 4096, 4096}};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct train_shape shape = fixture_shape(8192, 1);
        shape.checkpointing = rows[i].checkpointing;
        shape.kept_output = rows[i].kept;
        const int64_t bare = block_of(&arena, shape)->saved_bytes;
        shape.caches_keys = true;
        const struct module_kind *block = block_of(&arena, shape);
        CHECK_INT(block->kept_bytes, rows[i].cached * 8192);
        CHECK_INT(bare - block->saved_bytes, rows[i].taken * 8192);
    }
    /* Eager attention saves them repeated for all heads: the cache is apart. */
    struct train_shape shape = fixture_shape(512, 1);
    shape.attention = ATTENTION_EAGER;
    shape.kept_output = OUTPUT_UNTIL_BACKWARD;
    const int64_t bare = block_of(&arena, shape)->saved_bytes;
    shape.caches_keys = true;
    CHECK_INT(block_of(&arena, shape)->saved_bytes, bare);
    CHECK_INT(block_of(&arena, shape)->kept_bytes, INT64_C(4096) * 512);
    arena_release(&arena);
}

/*
 * 107: one-kernel norms and rotary, SwiGLU of PyTorch's operations: 12h + 4k + 8f + 4a + 8 bytes a
 * token, 168,072 for Llama-3-8B; with a fused activation gate, up and product only, 2f less. A
 * reentrant checkpoint holds the block's output beside: 2h.
 */
static void test_hand_fused(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(8192, 1);
    shape.has_fused_kernels = true;
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(block->saved_bytes, INT64_C(8192) * (168072 - 2 * 14336));
    shape.has_eager_activation = true;
    block = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(block->saved_bytes, INT64_C(8192) * 168072);
    CHECK_INT(fixture_kernel(&block->forward, "act")->impl, IMPL_EAGER);
    shape.checkpointing = CHECKPOINT_FULL;
    shape.is_reentrant = true;
    block = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(block->recompute_saved_bytes, INT64_C(8192) * (168072 + 2 * 4096));
    arena_release(&arena);
}

const struct check_case checkpoint_cases[] = {{"selective", test_selective},
                                              {"published selective", test_published_selective},
                                              {"children", test_children},
                                              {"early stop", test_early_stop},
                                              {"early stop late", test_early_stop_late},
                                              {"every", test_every},
                                              {"korthikanti", test_korthikanti},
                                              {"eager norms", test_eager_norms},
                                              {"chunked loss", test_chunked_loss},
                                              {"loss metrics", test_loss_metrics},
                                              {"fused losses", test_fused_losses},
                                              {"shifted losses", test_shifted_losses},
                                              {"kept logits", test_kept_logits},
                                              {"cached keys", test_cached_keys},
                                              {"hand fused", test_hand_fused},
                                              {NULL, NULL}};
