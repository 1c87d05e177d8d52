/*
 * tests/unit/schedule/test_lora.c: adapters under FSDP: what is gathered, reduced, kept.
 *
 * The two blocks (h 16, f 40, 8 key rows, 2 GPUs) with rank 4 on q and v: a block has 2,720 frozen
 * elements, of which 2,688 in linear layers, and 4·(16 + 16) + 4·(16 + 8) = 224 trained ones. The
 * root of `wrap: block`: 96·16 twice and a norm of 16, 3,088, all frozen.
 */
#include <string.h>

#include "program_balance.h"
#include "schedule_tests.h"

#define LORA                                                                                       \
    "train.lora={rank: 4, target_modules: [q_proj, v_proj]}; "                                     \
    "train.precision={param_dtype: bf16, reduce_dtype: fp32}; "
#define FSDP1 "fsdp={api: fsdp1, wrap: block, use_orig_params: false}"
#define FSDP1_ORIGINAL "fsdp={api: fsdp1, wrap: block, use_orig_params: true}"
#define FSDP2 "fsdp={api: fsdp2, wrap: block}"

/* The whole unit is gathered in bf16; reduced in fp32 is what each API has a gradient for. Without
   original parameters the adapters are not in the block's unit. */
static void test_traffic(void)
{
    static const struct {
        const char *overrides;
        int64_t parameters, reduced;
    } rows[] = {
        {LORA FSDP2, 2944, 4 * 224}, {LORA FSDP1, 2720, 0}, {LORA FSDP1_ORIGINAL, 2944, 4 * 2944}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct program_text text;
        if (program_text_read(&text, &played, TWO_BLOCKS, rows[i].overrides)) {
            const struct program *program = played.experiment.program;
            CHECK_INT(program->units.items[1].parameters, rows[i].parameters);
            CHECK_INT(program->units.items[1].all_gather_bytes, 2 * rows[i].parameters);
            CHECK_INT(program->units.items[1].reduce_scatter_bytes, rows[i].reduced);
            CHECK_INT(program->units.items[0].all_gather_bytes, 2 * 3088);
            CHECK_INT(program->units.items[0].reduce_scatter_bytes, 0);
            CHECK_TRUE(strstr(text.whole, "reduce_scatter_input(root)") == NULL);
            program_check_balance(program);
        }
        played_release(&played);
    }
}

/* PEFT's fsdp_auto_wrap_policy: A is 4 x 16, B 16 x 4 of q and 8 x 4 of v, each a unit in its
   block's one, in the order in which forward reaches them, and flattened whatever the policy of the
   rest. */
static void test_adapter_units(void)
{
    static const struct {
        const char *name;
        int64_t parameters;
    } units[] = {{"self_attn.q_proj.lora_A", 64},
                 {"self_attn.q_proj.lora_B", 64},
                 {"self_attn.v_proj.lora_A", 64},
                 {"self_attn.v_proj.lora_B", 32}};
    struct played played;
    if (played_build(&played, TWO_BLOCKS, LORA FSDP1)) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program->units.count, 1 + 2 * (1 + 4));
        for (int32_t i = 0; i < 8; i++) {
            const struct unit *unit = &program->units.items[2 + i + i / 4];
            CHECK_TRUE(strstr(unit->name, units[i % 4].name) != NULL);
            CHECK_TRUE(strstr(unit->name, i < 4 ? "layers.0." : "layers.1.") != NULL);
            CHECK_INT(unit->all_gather_bytes, 2 * units[i % 4].parameters);
            CHECK_INT(unit->reduce_scatter_bytes, 4 * units[i % 4].parameters);
        }
    }
    played_release(&played);
    if (played_build(&played, TWO_BLOCKS, LORA FSDP1_ORIGINAL))
        CHECK_INT(played.experiment.program->units.count, 1 + 2);
    played_release(&played);
    /* Attention and MLP as units beside: two more a block. */
    if (played_build(&played, TWO_BLOCKS, LORA "fsdp={api: fsdp1, wrap: child}"))
        CHECK_INT(played.experiment.program->units.count, 1 + 2 * (1 + 2 + 4));
    played_release(&played);
}

/*
 * Gathers of a step. A block's unit: forward and backward, and once more for the recompute of a
 * reentrant checkpoint around it, not of one inside. Adapters lie in the checkpoint either way:
 * three times with one. 5,440 bytes of a block; 128 of the three adapters of 64, 64 of that of 32.
 */
static void test_gathers(void)
{
    static const struct {
        const char *checkpointing;
        int32_t blocks, adapters;
    } rows[] = {{"none", 2, 2},
                {"full", 2, 3},
                {"{policy: full, reentrant: true}", 3, 3},
                {"{policy: full, reentrant: true, inside_unit: true}", 2, 3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct program_text text;
        struct arena arena = {0};
        const char *overrides = ARENA_JOIN(
            &arena, LORA FSDP1 "; train.activation_checkpointing=", rows[i].checkpointing);
        if (program_text_read(&text, &played, TWO_BLOCKS, overrides)) {
            CHECK_INT(program_text_count(&text, "unshard: all_gather bytes=5440"),
                      2 * rows[i].blocks);
            CHECK_INT(program_text_count(&text, "unshard: all_gather bytes=128"),
                      2 * 3 * rows[i].adapters);
            CHECK_INT(program_text_count(&text, "unshard: all_gather bytes=64"),
                      2 * rows[i].adapters);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
        arena_release(&arena);
    }
}

/*
 * Units of adapters take the place of blocks in the limiter's queue and in the order of backward,
 * so nothing of a block hides the next one's gather. Forward: four frees are queued where a block
 * begins (the root's of backward has made it one more than blocks alone leave), the oldest that of
 * q's B: its successor's gather waits for most of the block before. Backward: the unit in front of
 * block 1's first adapter is block 0, which is gathered when that adapter's turn has come, and
 * under a reentrant checkpoint no adapter is gathered before its recompute.
 */
static void test_limited(void)
{
    static const char *const wanted[] = {
        "compute: record forward_freed(layers.0)",
        "host: host_wait forward_freed(layers.0.self_attn.q_proj.lora_B)",
        "unshard: all_gather bytes=5440 on dp_shard",
        "compute: mark forward_end",
        "unshard: all_gather bytes=5440 on dp_shard",
        "compute: wait unsharded(layers.1)",
        "compute: segment layers.1.recompute.0",
        "unshard: all_gather bytes=128 on dp_shard",
        "compute: segment layers.1.backward.0",
        "compute: segment layers.1.backward.4",
        "compute: wait unsharded(layers.1.self_attn.q_proj.lora_A)",
        "unshard: all_gather bytes=5440 on dp_shard",
        "compute: segment layers.1.backward.5",
        "compute: segment layers.1.backward.6",
        "compute: wait unsharded(layers.0)",
        NULL};
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          LORA FSDP1 "; train.activation_checkpointing={policy: full, reentrant: "
                                     "true, inside_unit: true}")) {
        program_text_check_order(&text, 0, wanted);
        CHECK_INT(program_text_count(&text, "unshard: all_gather bytes=5440"), 4);
    }
    played_release(&played);
}

/*
 * One of two GPUs, bytes. Parameters: frozen (2·2,720 + 3,088) / 2 elements in bf16, trained 224 in
 * fp32 (2·224 / 2). Gradients in fp32: of the adapters, or with original parameters of both flat
 * parameters whole. Two moments of the adapters in fp32.
 */
static void test_kept(void)
{
    static const struct {
        const char *overrides;
        int64_t parameters, gradients;
    } rows[] = {{LORA FSDP2, 4264 * 2 + 224 * 4, 224 * 4},
                {LORA FSDP1, 4264 * 2 + 224 * 4, 224 * 4},
                {LORA FSDP1_ORIGINAL, 4264 * 2 + 224 * 4, 2944 * 4},
                {LORA FSDP2 "; train.lora.base_dtype=fp32", 4264 * 4 + 224 * 4, 224 * 4}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_build(&played, TWO_BLOCKS, rows[i].overrides)) {
            const struct program *program = played.experiment.program;
            CHECK_INT(program_kept_bytes(program, MEMORY_PARAMETERS), rows[i].parameters);
            CHECK_INT(program_kept_bytes(program, MEMORY_GRADIENTS), rows[i].gradients);
            CHECK_INT(program_kept_bytes(program, MEMORY_OPTIMIZER), 224 * 8);
        }
        played_release(&played);
    }
}

/*
 * nf4, adapters in bf16: 2,688 weights of a block at half a byte and 32 of norms at 2, gathered;
 * the scales, 4 bytes for 64 weights, are whole on each GPU with fsdp1 (2·168) and gathered with
 * fsdp2, weight by weight: q and o 16·16, k and v 8·16, three of 40·16.
 */
static void test_packed(void)
{
    static const char packed[] =
        "; train.lora.quantization=nf4; train.precision.storage_dtype=bf16";
    struct played played;
    struct arena arena = {0};
    if (played_build(&played, TWO_BLOCKS, arena_printf(&arena, "%s%s%s", LORA, FSDP1, packed))) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program->units.items[1].all_gather_bytes, 1344 + 2 * 32);
        CHECK_INT(program_kept_bytes(program, MEMORY_PARAMETERS),
                  (2 * (1344 + 2 * 32 + 2 * 224) + 2 * 3088) / 2 + 2 * 168);
        program_check_balance(program);
    }
    played_release(&played);
    if (played_build(&played, TWO_BLOCKS, arena_printf(&arena, "%s%s%s", LORA, FSDP2, packed))) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program->units.items[1].all_gather_bytes, 1344 + 168 + 2 * 32 + 2 * 224);
        program_check_balance(program);
    }
    played_release(&played);
    arena_release(&arena);
}

static void test_played(void)
{
    static const char *const rows[] = {LORA FSDP2,
                                       LORA FSDP1,
                                       LORA FSDP1_ORIGINAL,
                                       LORA "fsdp={api: ddp}",
                                       LORA FSDP2 "; train.activation_checkpointing=full",
                                       LORA FSDP1 "; train.grad_accum=3"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_play(&played, TWO_BLOCKS, rows[i])) {
            const struct outcome *outcome = &played.outcome;
            CHECK_NEAR(outcome->compute_s + outcome->exposed_comm_s + outcome->idle_s,
                       outcome->step_time_s, 1e-9);
        }
        played_release(&played);
    }
}

static void check_message(const char *overrides, const char *wanted)
{
    struct played played;
    CHECK_INT(played_try(&played, TWO_BLOCKS, overrides), STATUS_INPUT);
    if (strstr(played_messages(&played), wanted) == NULL)
        CHECK_TEXT(played_messages(&played), wanted);
    played_release(&played);
}

static void test_refused(void)
{
    check_message("train.lora={rank: 4, target_modules: [q_proj, w_proj]}",
                  "model 'two-blocks' has no linear layer 'w_proj'");
    check_message(
        "train.lora={rank: 4, target_modules: [w_proj]}",
        "accepted: all-linear, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj");
    check_message("train.lora={target_modules: all-linear}", "rank");
    check_message("train.lora={rank: 4}", "target_modules");
    check_message("train.lora={rank: 4, target_modules: []}", "no layer gets an adapter");
    check_message("train.activation_checkpointing={policy: full, inside_unit: true}",
                  "'inside_unit' means nothing for a checkpoint that is not reentrant");
    check_message(LORA "fsdp={api: zero3}", "'lora' cannot be simulated yet with 'api: zero3'");
    check_message("train.lora={rank: 4, target_modules: all-linear, double_quant: true}",
                  "'double_quant' means nothing without quantisation");
    check_message("train.lora={rank: 4, target_modules: all-linear, output_copy: true}",
                  "'output_copy' means nothing without quantisation");
    check_message("cluster=dgx-h100; gpus_per_node=2; train.compile=true; "
                  "train.precision={param_dtype: bf16}; train.lora={rank: 4, target_modules: "
                  "all-linear, quantization: nf4, output_copy: true}",
                  "'output_copy' means nothing for compiled blocks");
}

/* A recompute enters units whose next one has had its forward: nothing is prefetched there. */
static void test_prefetch_in_recompute(void)
{
    int32_t gathers[2] = {0};
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        struct played played;
        struct program_text text;
        if (program_text_read(&text, &played, TWO_BLOCKS,
                              prefetch ? LORA "train.activation_checkpointing=full; fsdp={api: "
                                              "fsdp1, wrap: block, use_orig_params: false, "
                                              "forward_prefetch: 1}"
                                       : LORA "train.activation_checkpointing=full; " FSDP1)) {
            program_check_balance(played.experiment.program);
            gathers[prefetch] = program_text_count(&text, "unshard: all_gather");
        }
        played_release(&played);
    }
    CHECK_TRUE(gathers[0] > 8);
    CHECK_INT(gathers[1], gathers[0]);
}

const struct check_case lora_cases[] = {{"traffic", test_traffic},
                                        {"prefetch in recompute", test_prefetch_in_recompute},
                                        {"adapter_units", test_adapter_units},
                                        {"gathers", test_gathers},
                                        {"limited", test_limited},
                                        {"kept", test_kept},
                                        {"packed", test_packed},
                                        {"played", test_played},
                                        {"refused", test_refused},
                                        {0}};
