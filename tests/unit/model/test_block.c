/*
 * One Llama block, by hand. The small model has T = 2·128 = 256 tokens; in bf16 an operand of all
 * tokens is hidden = query = 49,152 B, key = 16,384 B, ffn = 81,920 B.
 */
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "check.h"
#include "model_fixture.h"

extern const struct check_case block_cases[];

static const struct module_kind *small_block(struct arena *arena, struct train_shape shape)
{
    struct model_config config = fixture_small();
    return fixture_kind(fixture_build(arena, &config, &shape), MODULE_BLOCK);
}

/*
 * GEMMs: 2·(2·96·96 + 2·96·32 + 3·96·160)·256 = 36,175,872; causal attention 2·128·96·256 =
 * 6,291,456; backward 2 and 2.5 times those; the MFU counts full attention.
 */
static void test_flop(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    for (int compiled = 0; compiled < 2; compiled++) {
        shape.is_compiled = compiled != 0;
        const struct module_kind *block = small_block(&arena, shape);
        CHECK_NEAR(kernel_list_flop(&block->forward), 36175872.0 + 6291456.0, 1e-15);
        CHECK_NEAR(kernel_list_flop(&block->backward), 2 * 36175872.0 + 2.5 * 6291456.0, 1e-15);
        CHECK_NEAR(block->model_flop, 36175872.0 + 2 * 6291456.0, 1e-15);
    }
    arena_release(&arena);
}

static void test_gemm_shapes(void)
{
    static const struct {
        const char *name;
        bool is_backward;
        int64_t m, n, k;
        double bytes; /* 2·(mk + kn + mn) */
    } rows[] = {
        {"q_proj", false, 256, 96, 96, 116736},
        {"k_proj", false, 256, 32, 96, 71680},
        {"v_proj", false, 256, 32, 96, 71680},
        {"o_proj", false, 256, 96, 96, 116736},
        {"gate_proj", false, 256, 160, 96, 161792},
        {"up_proj", false, 256, 160, 96, 161792},
        {"down_proj", false, 256, 96, 160, 161792},
        {"k_proj.input_grad", true, 256, 96, 32, 71680},
        {"k_proj.weight_grad", true, 32, 96, 256, 71680},
        {"down_proj.input_grad", true, 256, 160, 96, 161792},
        {"down_proj.weight_grad", true, 96, 160, 256, 161792},
    };
    struct arena arena = {0};
    const struct module_kind *block = small_block(&arena, fixture_shape(128, 2));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].name);
        const struct kernel_list *list = rows[i].is_backward ? &block->backward : &block->forward;
        const struct kernel *kernel = fixture_kernel(list, rows[i].name);
        CHECK_INT(kernel->kind, KERNEL_GEMM);
        CHECK_INT(kernel->pass, rows[i].is_backward ? PASS_BACKWARD : PASS_FORWARD);
        CHECK_INT(kernel->dtype, DTYPE_BF16);
        CHECK_INT(kernel->m, rows[i].m);
        CHECK_INT(kernel->n, rows[i].n);
        CHECK_INT(kernel->k, rows[i].k);
        CHECK_INT(kernel->batch, 1);
        CHECK_NEAR(kernel->bytes, rows[i].bytes, 1e-15);
        CHECK_NEAR(kernel->flop, 2.0 * (double)(rows[i].m * rows[i].n * rows[i].k), 1e-15);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* 12 = 2·6 heads; q, k, v, output: 2·49,152 + 2·16,384, log-sum-exp 4·6·256 = 6,144. */
static void test_attention(void)
{
    struct arena arena = {0};
    const struct module_kind *block = small_block(&arena, fixture_shape(128, 2));
    const struct kernel *forward = fixture_kernel(&block->forward, "attention");
    const struct kernel *backward = fixture_kernel(&block->backward, "attention.grad");
    CHECK_INT(forward->kind, KERNEL_ATTENTION);
    CHECK_INT(forward->m, 128);
    CHECK_INT(forward->n, 128);
    CHECK_INT(forward->k, 16);
    CHECK_INT(forward->batch, 12);
    CHECK_NEAR(forward->flop, 4.0 * 2 * 6 * 128 * 128 * 16 / 2, 1e-15);
    CHECK_NEAR(forward->bytes, 137216.0, 1e-15);
    CHECK_INT(backward->kind, KERNEL_ATTENTION);
    CHECK_INT(backward->pass, PASS_BACKWARD);
    CHECK_NEAR(backward->flop / forward->flop, 2.5, 1e-15);
    CHECK_NEAR(backward->bytes, 4 * 49152.0 + 4 * 16384.0 + 3 * 6144.0, 1e-15);
    arena_release(&arena);
}

/*
 * Forward, eager, composed norms of 4 bf16 and 7 fp32 operands and 24 bytes a token, each 36·24,576
 * + 24·256 + 192 = 891,072; projections 116,736·2 + 71,680·2 + 161,792·3; rotary q 499,712
 * and k 172,032; attention 137,216; residuals 2·147,456; silu 163,840; mul 245,760: 4,157,824.
 * Compiled: rotary 139,264, residual + norm 197,824, silu·mul 245,760: 1,829,248. Backward without
 * its GEMMs (twice the forward's: 1,724,416) and attention (280,576): eager 9·81,920 + rotary
 * 671,744 + norm gradients (8 bf16, 17 fp32 operands, 36 bytes a token, the weight twice) + 5 sums
 * of 147,456; compiled 5·81,920 + 139,264 +
 * post norm (5 + 3)·49,152 + input norm (6 + 4)·49,152 + 4·1,216.
 */
static void test_bytes(void)
{
    static const struct {
        const char *name;
        bool is_compiled;
        int32_t forward_count, backward_count;
        double forward_bytes, backward_bytes;
    } rows[] = {
        {"eager", false, 32, 55, 4157824,
         1724416.0 + 280576 + 737280 + 671744 + 2 * (84.0 * 24576 + 9216 + 384) + 5 * 147456},
        {"compiled", true, 13, 21, 1829248,
         1724416.0 + 280576 + 409600 + 139264 + 18 * 49152 + 4 * 1216},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].name);
        struct train_shape shape = fixture_shape(128, 2);
        shape.is_compiled = rows[i].is_compiled;
        const struct module_kind *block = small_block(&arena, shape);
        CHECK_INT(block->forward.count, rows[i].forward_count);
        CHECK_INT(block->backward.count, rows[i].backward_count);
        CHECK_NEAR(kernel_list_bytes(&block->forward), rows[i].forward_bytes, 1e-15);
        CHECK_NEAR(kernel_list_bytes(&block->backward), rows[i].backward_bytes, 1e-15);
        CHECK_INT(block->host_op_count, rows[i].forward_count);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* fp32: the casts of rotary and norms vanish: 8 kernels fewer a pass. */
static void test_fp32_kernels(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    shape.compute_dtype = DTYPE_FP32;
    const struct module_kind *block = small_block(&arena, shape);
    CHECK_INT(block->forward.count, 24);
    CHECK_INT(block->backward.count, 47);
    CHECK_INT(block->host_op_count, 24);
    CHECK_NEAR(fixture_kernel(&block->forward, "q_proj")->bytes, 2 * 116736.0, 1e-15);
    CHECK_NEAR(fixture_kernel(&block->forward, "rotary.q")->bytes, 2 * 98304.0 + 8192, 1e-15);
    arena_release(&arena);
}

/* Biases: q 96 + k 32 + v 32 + o 96, gate 160 + up 160 + down 96; one reduction each. */
static void test_biases(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_small();
    struct train_shape shape = fixture_shape(128, 2);
    int64_t plain = model_config_parameters(&config);
    config.decoder.attention_bias = true;
    config.decoder.mlp_bias = true;
    const struct model *model = fixture_build(&arena, &config, &shape);
    const struct module_kind *block = fixture_kind(model, MODULE_BLOCK);
    CHECK_INT(model->parameters - plain, 3 * (256 + 416));
    CHECK_INT(model_config_parameters(&config), model->parameters);
    CHECK_INT(block->param_count, 16);
    CHECK_INT(block->backward.count, 55 + 7);
    /* Reads 256 rows of 160 gradients, writes 160. */
    CHECK_NEAR(fixture_kernel(&block->backward, "up_proj.bias_grad")->bytes, 2.0 * 160 * 257,
               1e-15);
    arena_release(&arena);
}

static void test_params(void)
{
    static const struct {
        const char *name;
        int64_t dim0, rest;
    } rows[] = {
        {"self_attn.q_proj.weight", 4096, 4096},     {"self_attn.k_proj.weight", 1024, 4096},
        {"self_attn.v_proj.weight", 1024, 4096},     {"self_attn.o_proj.weight", 4096, 4096},
        {"mlp.gate_proj.weight", 14336, 4096},       {"mlp.up_proj.weight", 14336, 4096},
        {"mlp.down_proj.weight", 4096, 14336},       {"input_layernorm.weight", 4096, 1},
        {"post_attention_layernorm.weight", 4096, 1}};
    struct arena arena = {0};
    struct model_config config = fixture_llama_8b();
    struct train_shape shape = fixture_shape(8192, 1);
    const struct module_kind *block =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    if (CHECK_INT(block->param_count, 9))
        for (int i = 0; i < 9; i++) {
            CHECK_TEXT(block->params[i].name, rows[i].name);
            CHECK_INT(block->params[i].dim0, rows[i].dim0);
            CHECK_INT(block->params[i].rest, rows[i].rest);
        }
    CHECK_INT(block->numel, 218112000);
    arena_release(&arena);
}

/* Bytes per token, saved and live, by shape of model. */
static void test_memory(void)
{
    struct decoder_config llama_8b = fixture_llama_8b().decoder;
    /* Attention far wider than the rest: h 64, 8 heads of 64, f 32. */
    struct decoder_config wide = {.hidden_size = 64,
                                  .intermediate_size = 32,
                                  .num_hidden_layers = 2,
                                  .num_attention_heads = 8,
                                  .head_dim = 64,
                                  .vocab_size = 100};
    enum { EAGER, COMPILED, HAND };
    const struct {
        const char *name;
        const struct decoder_config *decoder;
        enum dtype dtype;
        int mode;
        enum activation_checkpointing checkpointing;
        int64_t saved, recompute_saved, forward_temp, backward_temp;
    } rows[] = {
        /* fsdp_semantics.md 108 with grouped keys: 20·4096 + 4·1024 + 8·14336 + 4·32 + 8; hidden;
           (h + 2f)·2 */
        {"8B", &llama_8b, DTYPE_BF16, EAGER, CHECKPOINT_NONE, 200840, 0, 8192, 65536},
        /* 107 without silu(gate), which these recompute: 168,072 − 2·14336 */
        {"8B hand", &llama_8b, DTYPE_BF16, HAND, CHECKPOINT_NONE, 139400, 0, 8192, 65536},
        {"8B compiled", &llama_8b, DTYPE_FP16, COMPILED, CHECKPOINT_NONE, 139400, 0, 8192, 65536},
        /* norms: x, normalised, output; (6·4096 + 2·4096 + 2·1024 + 4·14336)·4 + 128 + 8 */
        {"8B fp32", &llama_8b, DTYPE_FP32, EAGER, CHECKPOINT_NONE, 368776, 0, 16384, 131072},
        /* the block's input, which the full set of eager has in fp32 only; forward (2h + 3f)·2 */
        {"8B full", &llama_8b, DTYPE_BF16, EAGER, CHECKPOINT_FULL, 8192, 209032, 102400, 65536},
        /* norms 2·(6·64 + 4), their outputs 4·64, q and context 4·512, k and v 4·512, MLP 8·32,
           log-sum-exp 4·8: 5416; rotary at its widest 2·(2·64 + 2·512 + 3·512) + 8·1024 = 13568;
           backward 2·(64 + 4·512) + 4·512 − (388 + 128 + 256) */
        {"wide", &wide, DTYPE_BF16, EAGER, CHECKPOINT_NONE, 5416, 0, 8152, 5500},
        /* rotary 13568 less the input 128 */
        {"wide full", &wide, DTYPE_BF16, EAGER, CHECKPOINT_FULL, 128, 5544, 13440, 5500},
        /* compiled: full set 4904 − 64, rotary 5376; backward frees 2·128 + 2·96 + 4 */
        {"wide compiled", &wide, DTYPE_BF16, COMPILED, CHECKPOINT_NONE, 4840, 0, 536, 5820},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].name);
        struct model_config config = {.type = TYPE_LLAMA, .decoder = *rows[i].decoder};
        struct train_shape shape = fixture_shape(1024, 3);
        shape.compute_dtype = rows[i].dtype;
        shape.is_compiled = rows[i].mode == COMPILED;
        shape.has_fused_kernels = rows[i].mode == HAND;
        shape.checkpointing = rows[i].checkpointing;
        const struct module_kind *block =
            fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
        CHECK_INT(block->saved_bytes, 3072 * rows[i].saved);
        CHECK_INT(block->recompute_saved_bytes, 3072 * rows[i].recompute_saved);
        CHECK_INT(block->is_recomputed, rows[i].checkpointing == CHECKPOINT_FULL);
        CHECK_INT(block->forward_temp_bytes, 3072 * rows[i].forward_temp);
        CHECK_INT(block->backward_temp_bytes, 3072 * rows[i].backward_temp);
        CHECK_INT(block->output_bytes,
                  3072 * rows[i].decoder->hidden_size * dtype_bytes(rows[i].dtype));
    }
    check_context(NULL);
    arena_release(&arena);
}

/*
 * Rotary of q and k, 65,536 B of bf16 together, 32,768 elements; table 4·128·16 = 8,192 B. Fused:
 * one kernel of 4 B an element. Complex numbers under compile: to fp32 (6), the product (8), from
 * fp32 (6), for q and k each. Eager both ways move the same, as do hand-written kernels.
 */
static void test_rotary(void)
{
    static const struct {
        enum rotary_form form;
        bool is_compiled;
        int kernels;
        double bytes;
    } rows[] = {{ROTARY_REAL, true, 1, 32768 * 4.0 + 8192},
                {ROTARY_COMPLEX, true, 6, 32768 * 20.0 + 2 * 8192},
                {ROTARY_REAL, false, 6, 32768 * 20.0 + 2 * 8192},
                {ROTARY_COMPLEX, false, 6, 32768 * 20.0 + 2 * 8192}};
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        shape.rotary = rows[i].form;
        shape.is_compiled = rows[i].is_compiled;
        const struct module_kind *block = small_block(&arena, shape);
        for (int pass = 0; pass < 2; pass++) {
            const struct kernel_list *list = pass == 0 ? &block->forward : &block->backward;
            double bytes = 0;
            int kernels = 0;
            for (int32_t k = 0; k < list->count; k++) {
                if (strncmp(list->items[k].name, "rotary", 6) != 0)
                    continue;
                bytes += list->items[k].bytes;
                kernels++;
            }
            check_context("%zu, pass %d", i, pass);
            CHECK_INT(kernels, rows[i].kernels);
            CHECK_NEAR(bytes, rows[i].bytes, 1e-15);
        }
    }
    check_context(NULL);
    arena_release(&arena);
}

static double bytes_named(const struct kernel_list *list, const char *name, int *count)
{
    double bytes = 0;
    *count = 0;
    for (int32_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) != 0)
            continue;
        bytes += list->items[i].bytes;
        ++*count;
    }
    return bytes;
}

/* Kernels whose end the host waits for: all have this name, if one is given. */
static int waits(const struct kernel_list *list, const char *name)
{
    int count = 0;
    for (int32_t i = 0; i < list->count; i++) {
        if (!list->items[i].host_waits)
            continue;
        count++;
        CHECK_TRUE(name == NULL || strcmp(list->items[i].name, name) == 0);
    }
    return count;
}

/* 128 position ids of 8 bytes: diff reads two and writes one of them, >= 0 reads it and writes a
   byte, all() reads that. The host waits before the attention, where it runs again too. */
static void test_packing_check(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_small();
    struct train_shape shape = fixture_shape(128, 2);
    int count = 0;
    const struct module_kind *without =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(waits(&without->forward, NULL), 0);
    shape.checks_packing = true;
    shape.checkpointing = CHECKPOINT_FULL;
    shape.stops_early = true;
    const struct module_kind *with =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(with->forward.count, without->forward.count + 3);
    CHECK_NEAR(bytes_named(&with->forward, "position_ids.diff", &count), 24.0 * 128, 1e-15);
    CHECK_NEAR(bytes_named(&with->forward, "position_ids.rises", &count), 9.0 * 128, 1e-15);
    CHECK_NEAR(bytes_named(&with->forward, "position_ids.all", &count), 128.0, 1e-15);
    CHECK_INT(count, 1);
    CHECK_INT(waits(&with->forward, "position_ids.all"), 1);
    CHECK_INT(waits(&with->recompute, "position_ids.all"), 1);
    CHECK_INT(waits(&with->backward, NULL), 0);
    CHECK_TRUE(fixture_kernel(&with->forward, "attention") ==
               fixture_kernel(&with->forward, "position_ids.all") + 1);
    arena_release(&arena);
}

/*
 * Four experts of 160, two a token, T = 256: 128 rows each, 12,288 elements of h. The products are
 * those of all chosen rows, 2·3·96·160·512 FLOP, once forward and twice backward. A gather moves 4
 * B an element, the routing product too, index_add 6; backward makes zeros of all 24,576 (2 B),
 * puts rows in (6), adds (6).
 */
static void test_expert_loop(void)
{
    struct arena arena = {0};
    struct model_config config = fixture_small();
    struct train_shape shape = fixture_shape(128, 2);
    int count = 0;
    config.type = TYPE_MIXTRAL;
    config.decoder.num_experts = 4;
    config.decoder.num_experts_per_tok = 2;
    const struct module_kind *grouped =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(waits(&grouped->forward, NULL), 0);
    shape.experts = EXPERTS_LOOP;
    const struct module_kind *loop =
        fixture_kind(fixture_build(&arena, &config, &shape), MODULE_BLOCK);
    CHECK_INT(waits(&loop->forward, "experts.where.total"), 4);
    CHECK_INT(waits(&loop->backward, NULL), 0);
    CHECK_NEAR(kernel_list_flop(&loop->forward), kernel_list_flop(&grouped->forward), 1e-15);
    CHECK_NEAR(kernel_list_flop(&loop->backward), kernel_list_flop(&grouped->backward), 1e-15);
    const struct kernel *down = fixture_kernel(&loop->forward, "experts.down_proj");
    CHECK_NEAR(down->flop, 2.0 * 128 * 160 * 96, 1e-15);
    CHECK_NEAR(bytes_named(&loop->forward, "experts.where.count", &count), 4 * 8.0 * 512, 1e-15);
    CHECK_NEAR(bytes_named(&loop->forward, "experts.where.select", &count), 4 * 8.0 * (512 + 128),
               1e-15);
    CHECK_NEAR(bytes_named(&loop->forward, "experts.weight.gather", &count), 4 * 2 * 2.0 * 128,
               1e-15);
    CHECK_NEAR(bytes_named(&loop->forward, "experts.gather", &count), 4 * 4.0 * 12288, 1e-15);
    CHECK_INT(count, 4);
    CHECK_NEAR(bytes_named(&loop->forward, "experts.index_add", &count), 4 * 6.0 * 12288, 1e-15);
    CHECK_NEAR(bytes_named(&loop->backward, "experts.gather.zeros", &count), 4 * 2.0 * 24576,
               1e-15);
    CHECK_NEAR(bytes_named(&loop->backward, "experts.gather.grad_sum", &count), 4 * 6.0 * 24576,
               1e-15);
    CHECK_INT(count, 4);
    arena_release(&arena);
}

const struct check_case block_cases[] = {{"flop", test_flop},
                                         {"gemm shapes", test_gemm_shapes},
                                         {"attention", test_attention},
                                         {"bytes", test_bytes},
                                         {"fp32 kernels", test_fp32_kernels},
                                         {"biases", test_biases},
                                         {"params", test_params},
                                         {"rotary", test_rotary},
                                         {"expert loop", test_expert_loop},
                                         {"packing check", test_packing_check},
                                         {"memory", test_memory},
                                         {NULL, NULL}};
