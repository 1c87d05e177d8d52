/* tests/unit/schedule/test_wrap.c: which modules form a unit, and what is played where units lie in
   one another. Numbers in comments: statements of docs/fsdp2.md and docs/fsdp1.md. */
#include <string.h>

#include "model/module_name.h"
#include "schedule_tests.h"

#define UNITS_32 "worked-examples/units-32"
#define FOUR_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 1000000, forward: 10 ms, "           \
    "backward: 20 ms}]}; cluster=ideal-400; "                                                      \
    "train.precision={param_dtype: bf16, reduce_dtype: bf16, storage_dtype: bf16}; "

static void test_names(void)
{
    static const struct {
        const char *name, *pattern;
        bool matches;
    } rows[] = {
        {"layers.0", "layers.*", true},         {"layers.0.mlp", "layers.*", false},
        {"layers.0.mlp", "layers.*.mlp", true}, {"layers", "layers.*", false},
        {"layers.10", "layers.1", false},       {"norm", "*", true},
        {"layers.0.mlp", "*.0.*", true},        {"lm_head", "lm_hea", false},
        {"layers.15", "layers.0-15", true},     {"layers.16", "layers.0-15", false},
        {"layers.3.mlp", "layers.2-3.*", true}, {"layers.x", "layers.0-15", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK_INT(module_name_matches(rows[i].name, rows[i].pattern), rows[i].matches);
}

struct wanted_unit {
    const char *name;
    int64_t parameters;
};

static void check_units(const char *overrides, int32_t count, const struct wanted_unit *wanted)
{
    struct played played;
    check_context("%s", overrides);
    if (played_build(&played, TWO_BLOCKS, overrides)) {
        const struct program *program = played.experiment.program;
        int64_t sum = 0;
        check_context("%s", overrides);
        CHECK_INT(program->units.count, count);
        for (int32_t i = 0; i < program->units.count; i++)
            sum += program->units.items[i].parameters;
        CHECK_INT(sum, played.experiment.model->parameters);
        for (int32_t i = 0; wanted[i].name != NULL && i < program->units.count; i++) {
            CHECK_TEXT(program->units.items[i].name, wanted[i].name);
            CHECK_INT(program->units.items[i].parameters, wanted[i].parameters);
        }
        program_check_balance(program);
    }
    played_release(&played);
    check_context(NULL);
}

/* 72: Qwen2.5-7B: h 3,584, f 18,944, key width 512, V 152,064: an MLP has 3 h f, attention
   2 h² + 2 · 512 h + h + 1,024, with two norms 29,371,904 a block; of 28, and the last norm, is the
   base model. Qwen2.5-72B: h 8,192, f 29,568: every projection of the MLP has 242e6, attention
   2 h² + 2 · 1,024 h + h + 2,048; 161 norms stay in the root. */
static void test_size(void)
{
    static const struct wanted_unit small[] = {{"root", 0},
                                               {"model", 28 * 29371904 + 3584},
                                               {"embed_tokens", 152064 * 3584},
                                               {"layers.0.mlp", 3 * 3584 * 18944},
                                               {"layers.1.mlp", 3 * 3584 * 18944},
                                               {NULL, 0}};
    check_units("model=qwen2.5-7b; fsdp.wrap=size", 32, small);
    check_units("model=qwen2.5-7b; fsdp={api: fsdp1, wrap: size}", 32, small);
    const int64_t attention = INT64_C(2) * 8192 * 8192 + INT64_C(2) * 1024 * 8192 + 8192 + 2048;
    const struct wanted_unit large[] = {{"root", 161 * 8192},
                                        {"embed_tokens", INT64_C(152064) * 8192},
                                        {"layers.0.self_attn", attention},
                                        {"layers.0.mlp.gate_proj", INT64_C(8192) * 29568},
                                        {"layers.0.mlp.up_proj", INT64_C(8192) * 29568},
                                        {"layers.0.mlp.down_proj", INT64_C(8192) * 29568},
                                        {"layers.1.self_attn", attention},
                                        {NULL, 0}};
    check_units("model=qwen2.5-72b; fsdp={api: fsdp1, wrap: size}", 3 + 4 * 80, large);
    /* 404e6 and more: the MLP of a block, and with it nothing else. */
    static const struct wanted_unit none[] = {{"root", 8528}, {NULL, 0}};
    check_units("fsdp.wrap={policy: size, min_num_params: 8529}", 1, none);
}

/* h 16, f 40, key width 8: attention 2 · 256 + 2 · 128, MLP 3 · 640, two norms of 16. */
static void test_children(void)
{
    static const struct wanted_unit child[] = {
        {"root", 96 * 16 * 2 + 16}, {"layers.0", 32}, {"layers.0.self_attn", 768},
        {"layers.0.mlp", 1920},     {"layers.1", 32}, {NULL, 0}};
    check_units("fsdp.wrap=child", 7, child);
    check_units("fsdp={api: fsdp1, wrap: child}", 7, child);
    static const struct wanted_unit named[] = {{"root", 96 * 16},
                                               {"layers.0", 32 + 768},
                                               {"layers.0.mlp", 1920},
                                               {"layers.1", 32 + 768},
                                               {"layers.1.mlp", 1920},
                                               {"norm+lm_head", 96 * 16 + 16},
                                               {NULL, 0}};
    check_units("fsdp.wrap={policy: modules, modules: [layers.*.mlp, layers.*, norm+lm_head]}", 6,
                named);
    static const struct wanted_unit lists[] = {{"root", 96 * 16 * 2 + 16},
                                               {"layers.0+layers.1", 2 * 2720},
                                               {"layers.2+layers.3", 2 * 2720},
                                               {"layers.4", 2720},
                                               {NULL, 0}};
    check_units("model.num_hidden_layers=5; fsdp.wrap={policy: block, every: 2}", 4, lists);
    static const struct wanted_unit tied[] = {
        {"root", 0}, {"embed_tokens+norm+lm_head", 96 * 16 + 16}, {"layers.0", 2720}, {NULL, 0}};
    check_units("model.tie_word_embeddings=true; fsdp.wrap={policy: modules, modules: [layers.*, "
                "embed_tokens+norm+lm_head]}",
                4, tied);
}

/* Units in one another: hooks nest, and the block's own parameters stay from its first kernel to
   its last. */
static void test_nested_order(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "fsdp.wrap=child")) {
        static const char *const forward[] = {"compute: wait gathered(layers.0)",
                                              "compute: segment layers.0.forward.0",
                                              "compute: wait gathered(layers.0.self_attn)",
                                              "compute: segment layers.0.forward.1",
                                              "host: free params(layers.0.self_attn)",
                                              "compute: segment layers.0.forward.2",
                                              "compute: wait gathered(layers.0.mlp)",
                                              "compute: segment layers.0.forward.3",
                                              "host: free params(layers.0.mlp)",
                                              "compute: segment layers.0.forward.4",
                                              "host: free params(layers.0)",
                                              "compute: wait gathered(layers.1)",
                                              NULL};
        int32_t at = program_text_check_order(&text, 0, forward);
        static const char *const backward[] = {"compute: wait gathered(layers.0)",
                                               "host: alloc cast(layers.0.mlp)",
                                               "compute: wait gathered(layers.0.mlp)",
                                               "compute: segment layers.1.backward.0",
                                               "host: free params(layers.0.mlp)",
                                               "compute: segment chunk_cat(layers.0.mlp)",
                                               "compute: segment layers.1.backward.1",
                                               "compute: wait gathered(layers.0.self_attn)",
                                               "compute: segment layers.1.backward.2",
                                               "compute: segment chunk_cat(layers.0.self_attn)",
                                               "compute: segment layers.1.backward.3",
                                               "host: free params(layers.0)",
                                               "compute: segment chunk_cat(layers.0)",
                                               NULL};
        at = program_text_find(&text, at, "compute: mark forward_end");
        at = program_text_find(&text, at, "compute: segment chunk_cat(layers.1)");
        program_text_check_order(&text, at, backward);
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 1 + 6 + 6);
        CHECK_INT(program_text_count(&text, "reduce-scatter: reduce_scatter"), 7);
    }
    played_release(&played);
}

/* Two of 32 units are one: forward 20, backward 40, gather = scatter = 30 ms: 16 · 30 + 20.
   Backward: B15 behind the gather that follows the last one of forward, at 10, until 50, its
   scatter until 80, then 14 times a gather and a scatter until 920; the last B ends at 930, its
   scatter at 960. */
static void test_every(void)
{
    struct played played;
    if (played_play(&played, UNITS_32, "fsdp.wrap={policy: block, every: 2}")) {
        CHECK_NEAR(played.outcome.forward_s, 0.500, 1e-9);
        CHECK_NEAR(played.outcome.backward_s, 0.960, 1e-9);
    }
    played_release(&played);
}

/* 58, 59: gathers of four units a step, and with a list in forward those that a reentrant recompute
   fires again, in vain: of units 3, 2 and 1. Bytes / (P · 7/8); a scatter is one pass. */
static void test_recompute(void)
{
    static const struct {
        const char *overrides;
        double gathers; /* of one unit */
    } rows[] = {
        {"train.activation_checkpointing=full", 8},
        {"train.activation_checkpointing={policy: full, reentrant: true}", 12},
        {"train.activation_checkpointing=full; fsdp.forward_prefetch=1", 8},
        {"train.activation_checkpointing={policy: full, reentrant: true}; "
         "fsdp.forward_prefetch=1",
         15},
        {"train.activation_checkpointing={policy: full, reentrant: true}; "
         "fsdp.api=fsdp1",
         12},
        {"train.activation_checkpointing={policy: full, reentrant: true}; "
         "fsdp.reshard_after_forward=false",
         4},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), FOUR_UNITS "%s", rows[i].overrides);
        check_context("%s", rows[i].overrides);
        if (played_play(&played, UNITS_32, overrides)) {
            CHECK_NEAR(played.outcome.comm_bytes_per_gpu, (rows[i].gathers + 4) * 2e6 * 7 / 8,
                       1e-12);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 60: in a checkpointed block the unit of the last child is there when the recompute begins, that
   of the others is gathered for it and once more for its backward. With children checkpointed each,
   none is. */
static void test_recompute_inside(void)
{
    static const struct {
        const char *overrides;
        int32_t attention, mlp, block;
    } rows[] = {
        {"train.activation_checkpointing=full", 3, 2, 2},
        {"train.activation_checkpointing={policy: full, reentrant: true}", 3, 3, 3},
        {"train.activation_checkpointing=per_child", 2, 2, 2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct program_text text;
        char overrides[256];
        snprintf(overrides, sizeof(overrides), "fsdp.wrap=child; %s", rows[i].overrides);
        check_context("%s", rows[i].overrides);
        if (program_text_read(&text, &played, TWO_BLOCKS, overrides)) {
            CHECK_INT(program_text_count(&text, "all-gather: all_gather bytes=1536 on dp_shard"),
                      2 * rows[i].attention);
            CHECK_INT(program_text_count(&text, "all-gather: all_gather bytes=3840 on dp_shard"),
                      2 * rows[i].mlp);
            CHECK_INT(program_text_count(&text, "all-gather: all_gather bytes=64 on dp_shard"),
                      2 * rows[i].block);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

static void test_refused(void)
{
    static const struct refusal rows[] = {
        {"fsdp.wrap={policy: modules, modules: [layers.*.ffn]}",
         "model 'two-blocks' has no module 'layers.*.ffn'"},
        {"fsdp.wrap={policy: modules}", "'policy: modules' needs a list 'modules'"},
        {"fsdp.wrap={policy: size, every: 2}", "'every' means nothing for this policy of 'wrap'"},
        {"fsdp.wrap={policy: block, min_num_params: 5}", "'min_num_params' means nothing"},
        {"fsdp.wrap={policy: block, modules: [norm]}", "'modules' means nothing"},
        {"fsdp={api: fsdp1, wrap: {policy: block, every: 2}}",
         "fsdp1 wraps single modules, not several blocks"},
        {"fsdp={api: fsdp1, wrap: {policy: modules, modules: [norm+lm_head]}}",
         "fsdp1 wraps single modules, not lists of them"},
        {"model.tie_word_embeddings=true; fsdp.wrap={policy: modules, modules: [embed_tokens]}",
         "embedding and head share weights, so they must be in one unit"},
        {"fsdp.wrap={policy: modules, modules: [layers.0+layers.1, layers.1+norm]}",
         "'layers.1' would be in two units: of 'layers.0+layers.1' and of 'layers.1+norm'"},
        {"fsdp.wrap={policy: modules, modules: [layers.*, norm, layers.*]}",
         "'layers.0' would be in two units: of 'layers.*' and of 'layers.*'"},
        {"model={family: abstract, units: [{parameters: 5, forward: 1 s, backward: 1 s}]}; "
         "fsdp.wrap=child",
         "the units of an abstract model have nothing inside"},
    };
    check_refusals(rows, sizeof(rows) / sizeof(rows[0]));
}

const struct check_case wrap_cases[] = {{"names", test_names},
                                        {"72: by size", test_size},
                                        {"children, lists", test_children},
                                        {"units in one another", test_nested_order},
                                        {"several blocks a unit: time", test_every},
                                        {"58, 59: recompute", test_recompute},
                                        {"60: units inside a checkpoint", test_recompute_inside},
                                        {"refused", test_refused},
                                        {0}};
