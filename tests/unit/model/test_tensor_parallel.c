/* One rank's part of a network under tensor parallelism, by hand. */
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "check.h"
#include "model_fixture.h"

extern const struct check_case tensor_parallel_cases[];

static struct train_shape cut_shape(int64_t seq_len, int64_t ranks,
                                    enum tensor_parallel_style style, bool has_sequence)
{
    struct train_shape shape = fixture_shape(seq_len, 1);
    shape.tensor_parallel = (struct tensor_parallel_shape){
        .ranks = ranks, .style = style, .has_sequence = has_sequence, .has_loss = true};
    return shape;
}

/*
 * Korthikanti et al. 2022, table 2: a GPT block with dropout and unfused attention keeps
 * s·b·h·(10 + 24/t + 5·a·s/(h·t)) bytes, with sequence parallelism s·b·h·(34/t + 5·a·s/(h·t)); to
 * which come mean and 1/σ of two norms, 16 a token of the stream. Here h = 768, a = 12, s·b = 1536.
 */
static void test_korthikanti(void)
{
    const int64_t h = 768, a = 12, s = 512, b = 3, tokens = s * b;
    static const int64_t ranks[] = {1, 2, 4, 12};
    const struct model_config config = {.type = TYPE_GPT2,
                                        .decoder = {.hidden_size = h,
                                                    .num_hidden_layers = 2,
                                                    .num_attention_heads = a,
                                                    .vocab_size = 1200,
                                                    .max_position_embeddings = 1024,
                                                    .tie_word_embeddings = true,
                                                    .hidden_act = "gelu",
                                                    .attention_dropout = 0.1,
                                                    .hidden_dropout = 0.1}};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        const int64_t t = ranks[i];
        struct arena arena = {0};
        for (int has_sequence = 0; has_sequence < (t == 12 ? 1 : 2); has_sequence++) {
            struct train_shape shape = cut_shape(s, t, TENSOR_PARALLEL_MEGATRON, has_sequence != 0);
            shape.micro_batch = b;
            shape.attention = ATTENTION_EAGER;
            check_context("t = %d, sequence %d", (int)t, has_sequence);
            const struct model *model = fixture_build(&arena, &config, &shape);
            const int64_t whole = has_sequence ? 0 : 10 * h + 16;
            const int64_t cut = has_sequence ? 34 * h + 16 : 24 * h;
            CHECK_INT(fixture_kind(model, MODULE_BLOCK)->saved_bytes,
                      tokens * (whole + (cut + 5 * a * s) / t));
        }
        arena_release(&arena);
    }
    check_context(NULL);
}

/* Llama-3.1-8B on 8 ranks: 4 of 32 heads, 1 of 8 key heads, 1,792 of 14,336, 16,032 of 128,256. */
static void test_shapes(void)
{
    static const struct {
        const char *name;
        int64_t n, k;
    } rows[] = {{"q_proj", 512, 4096},    {"k_proj", 128, 4096},     {"v_proj", 128, 4096},
                {"o_proj", 4096, 512},    {"gate_proj", 1792, 4096}, {"up_proj", 1792, 4096},
                {"down_proj", 4096, 1792}};
    struct arena arena = {0};
    const struct model_config config = fixture_llama_8b();
    const struct train_shape alone = fixture_shape(8192, 1);
    const struct train_shape shape = cut_shape(8192, 8, TENSOR_PARALLEL_DTENSOR, true);
    const struct model *whole = fixture_build(&arena, &config, &alone);
    const struct model *model = fixture_build(&arena, &config, &shape);
    const struct module_kind *block = fixture_kind(model, MODULE_BLOCK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct kernel *kernel = fixture_kernel(&block->forward, rows[i].name);
        check_context("%s", rows[i].name);
        CHECK_INT(kernel->m, 8192);
        CHECK_INT(kernel->n, rows[i].n);
        CHECK_INT(kernel->k, rows[i].k);
    }
    check_context(NULL);
    CHECK_INT(fixture_kernel(&block->forward, "attention")->batch, 4);
    CHECK_INT(fixture_kernel(&fixture_kind(model, MODULE_HEAD)->forward, "lm_head")->n, 16032);
    /* An eighth of all but 65 norms of 4,096; totals are those of the network. */
    CHECK_INT(model->rank_parameters, (8030261248 - 65 * 4096) / 8 + 65 * 4096);
    CHECK_INT(model->rank_trained_parameters, model->rank_parameters);
    CHECK_INT(model->parameters, whole->parameters);
    CHECK_NEAR(model->flop_per_token, whole->flop_per_token, 1e-15);
    CHECK_NEAR(8 * block->model_flop, fixture_kind(whole, MODULE_BLOCK)->model_flop, 1e-15);
    CHECK_INT(whole->rank_parameters, whole->parameters);
    arena_release(&arena);
}

struct expected {
    const char *name;
    enum exchange exchange;
    double bytes;
    int32_t beside;
};

static void check_exchanges(const struct kernel_list *list, const struct expected *rows)
{
    int32_t seen = 0;
    for (int32_t i = 0; i < list->count; i++) {
        const struct kernel *kernel = &list->items[i];
        if (kernel->kind != KERNEL_EXCHANGE)
            continue;
        const struct expected *row = &rows[seen];
        check_context("exchange %d, %s", (int)seen, kernel->name);
        if (!CHECK_TRUE(row->name != NULL))
            break;
        CHECK_TEXT(kernel->name, row->name);
        CHECK_INT(kernel->exchange, row->exchange);
        CHECK_NEAR(kernel->exchange_bytes, row->bytes, 1e-15);
        CHECK_INT(kernel->beside_count, row->beside);
        CHECK_NEAR(kernel->bytes + kernel->flop, 0.0, 0.0);
        seen++;
    }
    check_context(NULL);
    CHECK_TRUE(rows[seen].name == NULL);
}

/* T·h in bf16: 128 · 96 · 2 = 24,576 B; a norm's gradient 192 B. */
static void test_exchanges(void)
{
    enum { WHOLE = 24576, NORM = 192 };
    static const struct expected gathered[] = {
        {"self_attn.input.gather", EXCHANGE_ALL_GATHER, WHOLE, 0},
        {"self_attn.output.reduce", EXCHANGE_REDUCE_SCATTER, WHOLE, 0},
        {"mlp.input.gather", EXCHANGE_ALL_GATHER, WHOLE, 0},
        {"mlp.output.reduce", EXCHANGE_REDUCE_SCATTER, WHOLE, 0},
        {0}};
    static const struct expected gathered_backward[] = {
        {"mlp.output_grad.gather", EXCHANGE_ALL_GATHER, WHOLE, 0},
        {"mlp.input_grad.reduce", EXCHANGE_REDUCE_SCATTER, WHOLE, 0},
        {"post_attention_layernorm.weight_grad.reduce", EXCHANGE_ALL_REDUCE, NORM, 0},
        {"self_attn.output_grad.gather", EXCHANGE_ALL_GATHER, WHOLE, 0},
        {"self_attn.input_grad.reduce", EXCHANGE_REDUCE_SCATTER, WHOLE, 0},
        {"input_layernorm.weight_grad.reduce", EXCHANGE_ALL_REDUCE, NORM, 0},
        {0}};
    static const struct expected reduced[] = {
        {"self_attn.output.reduce", EXCHANGE_ALL_REDUCE, WHOLE, 0},
        {"mlp.output.reduce", EXCHANGE_ALL_REDUCE, WHOLE, 0},
        {0}};
    static const struct expected reduced_backward[] = {
        {"up_proj.input_grad.reduce", EXCHANGE_ALL_REDUCE, WHOLE, 1},
        {"gate_proj.input_grad.reduce", EXCHANGE_ALL_REDUCE, WHOLE, 1},
        {"v_proj.input_grad.reduce", EXCHANGE_ALL_REDUCE, WHOLE, 1},
        {"k_proj.input_grad.reduce", EXCHANGE_ALL_REDUCE, WHOLE, 1},
        {"q_proj.input_grad.reduce", EXCHANGE_ALL_REDUCE, WHOLE, 1},
        {0}};
    struct arena arena = {0};
    const struct model_config config = fixture_small();
    struct train_shape shape = cut_shape(128, 2, TENSOR_PARALLEL_DTENSOR, true);
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    check_exchanges(&block->forward, gathered);
    check_exchanges(&block->backward, gathered_backward);
    shape = cut_shape(128, 2, TENSOR_PARALLEL_MEGATRON, false);
    block = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    check_exchanges(&block->forward, reduced);
    check_exchanges(&block->backward, reduced_backward);
    arena_release(&arena);
}

/* Async: the gather beside q, k, v and beside gate, up; the reduction beside the last product. With
   tensorwise float8 a byte an element is gathered, and a rank casts its half of the input; with
   scales of rows inductor leaves gathers alone, and the last product has two casts before it. */
static void test_async_and_float8(void)
{
    static const struct expected piped[] = {
        {"self_attn.input.gather", EXCHANGE_ALL_GATHER, 24576, 3},
        {"self_attn.output.reduce", EXCHANGE_REDUCE_SCATTER, 24576, 1},
        {"mlp.input.gather", EXCHANGE_ALL_GATHER, 24576, 2},
        {"mlp.output.reduce", EXCHANGE_REDUCE_SCATTER, 24576, 1},
        {0}};
    static const struct expected reductions_piped[] = {
        {"self_attn.input.gather", EXCHANGE_ALL_GATHER, 24576, 0},
        {"self_attn.output.reduce", EXCHANGE_REDUCE_SCATTER, 24576, 3},
        {"mlp.input.gather", EXCHANGE_ALL_GATHER, 24576, 0},
        {"mlp.output.reduce", EXCHANGE_REDUCE_SCATTER, 24576, 3},
        {0}};
    struct arena arena = {0};
    const struct model_config config = fixture_small();
    struct train_shape shape = cut_shape(128, 2, TENSOR_PARALLEL_DTENSOR, true);
    shape.tensor_parallel.is_async = true;
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    check_exchanges(&block->forward, piped);
    shape.is_compiled = true;
    shape.float8 = FLOAT8_ROWWISE;
    block = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    check_exchanges(&block->forward, reductions_piped);
    shape.tensor_parallel.is_async = false;
    shape.float8 = FLOAT8_TENSORWISE;
    block = fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_NEAR(fixture_kernel(&block->forward, "mlp.input.gather")->exchange_bytes, 12288, 1e-15);
    CHECK_NEAR(fixture_kernel(&block->forward, "mlp.output.reduce")->exchange_bytes, 24576, 1e-15);
    /* q reads 64 tokens of 96, writes a byte each: 3 B an element. */
    CHECK_NEAR(fixture_kernel(&block->forward, "q_proj.input.to_fp8")->bytes, 3 * 64 * 96, 1e-15);
    arena_release(&arena);
}

/* What a torchtitan block gathers stays; copies of it come and go. Recomputing by operation keeps
   what reduce-scatters give: x, every second product's output, and two halves of T·h. */
static void test_selective(void)
{
    struct arena arena = {0};
    const struct model_config config = fixture_small();
    struct train_shape shape = cut_shape(128, 2, TENSOR_PARALLEL_DTENSOR, true);
    shape.checkpointing = CHECKPOINT_SELECTIVE_OP;
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    int32_t gathers = 0, scatters = 0;
    for (int32_t i = 0; i < block->recompute.count; i++) {
        const struct kernel *kernel = &block->recompute.items[i];
        gathers += kernel->kind == KERNEL_EXCHANGE && kernel->exchange == EXCHANGE_ALL_GATHER;
        scatters += kernel->kind == KERNEL_EXCHANGE && kernel->exchange == EXCHANGE_REDUCE_SCATTER;
    }
    CHECK_INT(gathers, 2);
    CHECK_INT(scatters, 0);
    /* x 64·96; of seven products the 1st, 3rd, 5th and 7th: q 48, v 16, gate 80, down 96 wide;
       attention's context 48 and its 3 fp32 sums; two scattered outputs 64·96. All in bf16. */
    CHECK_INT(block->saved_bytes, 2 * 64 * 96 + 2 * 128 * (48 + 16 + 80 + 96) +
                                      128 * (2 * 48 + 4 * 3) + 2 * (2 * 64 * 96));
    arena_release(&arena);
}

/*
 * q and k whole, by hand: 8 heads of 16 and 4 of keys on two ranks, T = 128 tokens in bf16: q 128
 * wide, k 64, and k repeated as wide as q. Forward only; a copy reads and writes.
 */
static void test_gathered_heads(void)
{
    static const struct {
        const char *name;
        double bytes;
    } rows[] = {{"q.cat", 4.0 * 128 * 128},
                {"k.cat", 4.0 * 128 * 64},
                {"k.repeat", 2.0 * 128 * (64 + 128)},
                {"q.own", 4.0 * 128 * 64},
                {"k.own", 4.0 * 128 * 64},
                {"q_norm", 4.0 * 128 * 128 + 8.0 * 128 * 8 + 2 * 16},
                {"k_norm", 4.0 * 128 * 64 + 8.0 * 128 * 4 + 2 * 16}};
    struct arena arena = {0};
    struct model_config config = {0};
    CHECK_TEXT(fixture_bind(&arena,
                            "model: {model_type: qwen3, hidden_size: 96, num_hidden_layers: 2, "
                            "num_attention_heads: 8, num_key_value_heads: 4, head_dim: 16, "
                            "intermediate_size: 160, vocab_size: 1000}\n",
                            &config),
               "");
    struct train_shape shape = cut_shape(128, 2, TENSOR_PARALLEL_DTENSOR, true);
    shape.has_fused_norms = true;
    const struct module_kind *split =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    shape.tensor_parallel.gathers_heads = true;
    CHECK_TRUE(model_cut_refusal(&arena, &config, &shape) == NULL);
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_NEAR(fixture_kernel(&block->forward, "q.gather")->exchange_bytes, 2 * 128 * 128, 1e-15);
    CHECK_NEAR(fixture_kernel(&block->forward, "k.gather")->exchange_bytes, 2 * 128 * 64, 1e-15);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].name);
        CHECK_NEAR(fixture_kernel(&block->forward, rows[i].name)->bytes, rows[i].bytes, 1e-12);
    }
    check_context(NULL);
    for (int32_t i = 0; i < block->backward.count; i++)
        CHECK_TRUE(strstr(block->backward.items[i].name, "q.gather") == NULL);
    CHECK_NEAR(block->model_flop, split->model_flop, 1e-15);
    /* q 128 for 64 wide, k 128 for 32; what the norms keep of q and k, and a word for 12 rows of a
       token instead of 6. */
    CHECK_INT(block->saved_bytes - split->saved_bytes, 2 * 128 * (64 + 96 + 64 + 32) + 4 * 128 * 6);
    arena_release(&arena);
}

static void test_refusals(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    static const struct {
        int64_t ranks;
        enum tensor_parallel_style style;
        const char *text;
    } rows[] = {
        {3, TENSOR_PARALLEL_DTENSOR, "3 ranks cannot share 32 heads"},
        {16, TENSOR_PARALLEL_DTENSOR, "16 ranks cannot share 8 key and value heads"},
        {16, TENSOR_PARALLEL_MEGATRON, NULL},
        {8, TENSOR_PARALLEL_DTENSOR, NULL},
        {1, TENSOR_PARALLEL_DTENSOR, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct train_shape shape = cut_shape(8192, rows[i].ranks, rows[i].style, true);
        const char *text = model_cut_refusal(&arena, &config, &shape);
        check_context("%d ranks", (int)rows[i].ranks);
        if (rows[i].text == NULL)
            CHECK_TRUE(text == NULL);
        else if (CHECK_TRUE(text != NULL))
            CHECK_TEXT(text, rows[i].text);
    }
    check_context(NULL);
    /* 32 rows of keys, one head for two ranks; a sequence of 100 in 8 parts. */
    struct train_shape shape = cut_shape(100, 8, TENSOR_PARALLEL_DTENSOR, true);
    CHECK_CONTAINS(model_cut_refusal(&arena, &config, &shape), "100 tokens");
    shape.tensor_parallel.has_sequence = false;
    CHECK_TRUE(model_cut_refusal(&arena, &config, &shape) == NULL);
    shape.tensor_parallel.gathers_heads = true;
    CHECK_CONTAINS(model_cut_refusal(&arena, &config, &shape), "which this model lacks");
    shape.tensor_parallel.gathers_heads = false;
    shape.loss = LOSS_LINEAR;
    CHECK_CONTAINS(model_cut_refusal(&arena, &config, &shape), "linear");
    config.decoder.num_experts = 8;
    shape.loss = LOSS_EAGER;
    config.family = FAMILY_ABSTRACT;
    CHECK_CONTAINS(model_cut_refusal(&arena, &config, &shape), "abstract");
    arena_release(&arena);
}

const struct check_case tensor_parallel_cases[] = {
    {"activations (Korthikanti et al.)", test_korthikanti},
    {"shapes and totals", test_shapes},
    {"exchanges", test_exchanges},
    {"async, float8", test_async_and_float8},
    {"gathered heads", test_gathered_heads},
    {"selective checkpointing", test_selective},
    {"what cannot be cut", test_refusals},
    {0}};
