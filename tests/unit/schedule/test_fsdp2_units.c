/* tests/unit/schedule/test_fsdp2_units.c: FSDP2: which modules form a unit, sizes, settings. */
#include <string.h>

#include "schedule_tests.h"

static void check_unit(const struct program *program, int32_t index, const char *name,
                       int64_t parameters, int32_t tensors)
{
    const struct unit *unit = &program->units.items[index];
    CHECK_TEXT(unit->name, name);
    CHECK_INT(unit->parameters, parameters);
    CHECK_INT(unit->param_count, tensors);
}

/* h 16, f 40, 8 key and value rows, V 96: a block has 2·16·16 + 2·8·16 + 3·40·16 + 2·16. */
enum { BLOCK = 512 + 256 + 1920 + 32, EMBEDDING = 96 * 16, HEAD = 96 * 16 + 16 };

static void test_torchtitan(void)
{
    struct played played;
    if (played_build(&played, TWO_BLOCKS, "fsdp.wrap=torchtitan")) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program->units.count, 5);
        check_unit(program, 0, "root", 0, 0);
        check_unit(program, 1, "embed_tokens", EMBEDDING, 1);
        check_unit(program, 2, "layers.0", BLOCK, 9);
        check_unit(program, 3, "layers.1", BLOCK, 9);
        check_unit(program, 4, "norm+lm_head", HEAD, 2);
    }
    played_release(&played);
}

static void test_block(void)
{
    struct played played;
    if (played_build(&played, TWO_BLOCKS, "fsdp.wrap=block")) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program->units.count, 3);
        check_unit(program, 0, "root", EMBEDDING + HEAD, 3);
        check_unit(program, 1, "layers.0", BLOCK, 9);
        check_unit(program, 2, "layers.1", BLOCK, 9);
    }
    played_release(&played);
}

/* 5: tied weights in one unit, counted once, kept after forward, reduced at the end. */
static void test_tied(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "model.tie_word_embeddings=true")) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program->units.count, 4);
        check_unit(program, 1, "embed_tokens+norm+lm_head", EMBEDDING + 16, 2);
        CHECK_INT(program_text_count(&text, "compute: wait gathered(embed_tokens+norm+lm_head)"),
                  1);
        CHECK_INT(
            program_text_count(&text, "compute: segment chunk_cat(embed_tokens+norm+lm_head)"), 1);
        static const char *const wanted[] = {
            "compute: segment embed_tokens.backward",
            "host: free params(embed_tokens+norm+lm_head)",
            "reduce-scatter: record reduced(embed_tokens+norm+lm_head)",
            "compute: mark backward_end", NULL};
        program_text_check_order(&text, 0, wanted);
    }
    played_release(&played);
}

/* 4: kept from forward to backward: one gather a unit, parameters freed when reduced. */
static void test_not_resharded(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "fsdp.reshard_after_forward=false")) {
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 4);
        const int32_t end = program_text_find(&text, 0, "compute: mark forward_end");
        CHECK_TRUE(program_text_find(&text, 0, "host: free params(layers.0)") > end);
        CHECK_TRUE(program_text_find(&text, 0, "host: free params(layers.1)") > end);
        CHECK_INT(program_text_count(&text, "host: free params(embed_tokens)"), 1);
    }
    played_release(&played);
}

static void test_communicators(void)
{
    struct played played;
    if (played_build(&played, TWO_BLOCKS, NULL)) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program->communicators.count, 1);
        for (int32_t i = 0; i < program->collectives.count; i++)
            CHECK_INT(program->collectives.items[i].communicator, 0);
    }
    played_release(&played);
    if (played_build(&played, TWO_BLOCKS, "fsdp.separate_reduce_scatter_communicator=true")) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program->communicators.count, 2);
        for (int32_t i = 0; i < program->collectives.count; i++) {
            const struct collective *collective = &program->collectives.items[i];
            CHECK_INT(collective->communicator, collective->op == COLLECTIVE_REDUCE_SCATTER);
        }
    }
    played_release(&played);
}

static void test_streams(void)
{
    struct played played;
    if (played_build(&played, TWO_BLOCKS, NULL)) {
        const struct program *program = played.experiment.program;
        static const char *const names[] = {"compute", "all-gather copy-in", "all-gather",
                                            "reduce-scatter"};
        CHECK_INT(program->streams.count, 4);
        for (int32_t i = 0; i < program->streams.count && i < 4; i++) {
            CHECK_TEXT(program->streams.items[i].name, names[i]);
            CHECK_INT(program->streams.items[i].is_high_priority, i > 0);
        }
    }
    played_release(&played);
}

/* Dim 0 is padded to a multiple of the group: ⌈dim0 / ranks⌉ rows on each. */
static void test_shard_numel(void)
{
    static const struct {
        int64_t dim0, rest, ranks, numel;
    } rows[] = {{4096, 4096, 8, 512 * 4096},
                {16, 40, 3, 6 * 40},
                {1, 7, 8, 7},
                {5, 1, 4, 2},
                {128256, 4096, 1, INT64_C(128256) * 4096},
                {9, 3, 9, 3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct param param = {.name = "weight", .dim0 = rows[i].dim0, .rest = rows[i].rest};
        check_context("%d x %d over %d", (int)rows[i].dim0, (int)rows[i].rest, (int)rows[i].ranks);
        CHECK_INT(param_shard_numel(&param, rows[i].ranks), rows[i].numel);
    }
    check_context(NULL);
}

/* Over 3 GPUs 16 rows become 18, 8 become 9, 40 become 42: q and o 288 each, k and v 144, gate and
   up 672, down 18 x 40 = 720, norms 18: 2,964 elements of a block instead of 2,720. */
static void test_padding(void)
{
    struct played played;
    if (played_build(&played, TWO_BLOCKS, "cluster=ideal-400; gpus_per_node=3")) {
        const struct program *program = played.experiment.program;
        const struct unit *block = &program->units.items[2];
        CHECK_INT(block->parameters, 2720);
        CHECK_INT(block->all_gather_bytes, 2964 * 2);
        CHECK_INT(block->reduce_scatter_bytes, 2964 * 4);
        for (int32_t i = 0; i < program->tensors.count; i++) {
            const struct tensor *tensor = &program->tensors.items[i];
            if (strcmp(tensor->name, "shard(layers.0)") == 0)
                CHECK_INT(tensor->bytes, 988 * 4);
            if (strcmp(tensor->name, "adam_moments(layers.0)") == 0)
                CHECK_INT(tensor->bytes, 2 * 988 * 4);
            if (strcmp(tensor->name, "grads(layers.0)") == 0)
                CHECK_INT(tensor->bytes, 2720 * 2);
        }
    }
    played_release(&played);
}

/* FSDP's own copies, per unit of U (bf16, fp32 reduction): cast 6 B U/N and copy-in 4 B U/N in one
   segment, copy-out 4 B U, chunk-cat 6 B U. */
static void test_copies(void)
{
    struct played played;
    if (played_build(&played, TWO_BLOCKS, NULL)) {
        const char *text = played_dump(&played);
        CHECK_CONTAINS(text, "kernel copy_in(layers.0) copy_in bf16 flop=0 bytes=13600\n");
        CHECK_CONTAINS(text, "kernel copy_out(layers.0) copy_out bf16 flop=0 bytes=10880\n");
        CHECK_CONTAINS(text, "kernel chunk_cat(layers.0) chunk_cat fp32 flop=0 bytes=16320\n");
    }
    played_release(&played);
}

const struct check_case units_cases[] = {{"wrap: torchtitan", test_torchtitan},
                                         {"wrap: block", test_block},
                                         {"5: tied weights", test_tied},
                                         {"4: reshard_after_forward: false", test_not_resharded},
                                         {"communicators", test_communicators},
                                         {"streams", test_streams},
                                         {"52: rows of a shard", test_shard_numel},
                                         {"52: padding", test_padding},
                                         {"124: bytes of the copies", test_copies},
                                         {0}};
