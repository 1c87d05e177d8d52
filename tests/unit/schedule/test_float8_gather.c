/*
 * tests/unit/schedule/test_float8_gather.c: weights that FSDP2 gathers in float8.
 *
 * The two blocks (h 16, f 40, 8 key rows, 2 GPUs): 2,688 elements of a block in linear layers, 32
 * in norms; the root of `wrap: block` has 3,088, none in float8.
 */
#include "program_balance.h"
#include "schedule_tests.h"

#define FLOAT8                                                                                     \
    "cluster=dgx-h100; gpus_per_node=2; train.compile=true; train.float8=tensorwise; "             \
    "train.precision={param_dtype: bf16, reduce_dtype: fp32}; "

/* A byte instead of two is gathered; what is kept and reduced is as before. */
static void test_traffic(void)
{
    static const struct {
        const char *overrides;
        int64_t gathered;
    } rows[] = {{FLOAT8 "fsdp={wrap: block}", 2 * 2720},
                {FLOAT8 "fsdp={wrap: block, float8_all_gather: true}", 2688 + 2 * 32}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_build(&played, TWO_BLOCKS, rows[i].overrides)) {
            const struct program *program = played.experiment.program;
            CHECK_INT(program->units.items[1].parameters, 2720);
            CHECK_INT(program->units.items[1].all_gather_bytes, rows[i].gathered);
            CHECK_INT(program->units.items[1].reduce_scatter_bytes, 4 * 2720);
            CHECK_INT(program->units.items[0].all_gather_bytes, 2 * 3088);
            CHECK_INT(program_kept_bytes(program, MEMORY_PARAMETERS), 4 * (2 * 2720 + 3088) / 2);
            program_check_balance(program);
        }
        played_release(&played);
    }
}

/*
 * Four experts, h 16, f 24: 4 · 3 · 24 · 16 = 4,608 elements. Grouped products stay in bf16, and so
 * does what they read; in a loop each expert has nn.Linear layers. The rest of the block: attention
 * 16·16 + 2·8·16 + 16·16 = 768, the router 4·16, norms 32.
 */
static void test_experts(void)
{
    static const char model[] =
        "model={model_type: mixtral, num_hidden_layers: 2, hidden_size: 16, intermediate_size: 24, "
        "num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 96, num_local_experts: 4, "
        "num_experts_per_tok: 2}; cluster=dgx-h100; gpus_per_node=2; train.float8=tensorwise; "
        "train.precision={param_dtype: bf16, reduce_dtype: fp32}; "
        "fsdp={wrap: block, float8_all_gather: true}; train.experts=";
    static const struct {
        const char *experts;
        int64_t gathered;
    } rows[] = {{"grouped", 2 * 4608 + (768 + 64) + 2 * 32}, {"loop", 4608 + (768 + 64) + 2 * 32}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct arena arena = {0};
        if (played_build(&played, TWO_BLOCKS,
                         arena_printf(&arena, "%s%s", model, rows[i].experts))) {
            const struct program *program = played.experiment.program;
            CHECK_INT(program->units.items[1].parameters, 4608 + 768 + 64 + 32);
            CHECK_INT(program->units.items[1].all_gather_bytes, rows[i].gathered);
            program_check_balance(program);
        }
        played_release(&played);
        arena_release(&arena);
    }
}

const struct check_case float8_gather_cases[] = {
    {"traffic", test_traffic}, {"experts", test_experts}, {NULL, NULL}};
