/* The tree of a model: its rows add up to the model. */
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "check.h"
#include "model/model_tree.h"
#include "model_fixture.h"

extern const struct check_case model_tree_cases[];

static struct model_tree tree_of(struct arena *arena, const char *name, int32_t depth)
{
    struct model_config config = {0};
    struct model_tree tree = {0};
    CHECK_TEXT(fixture_bind(arena, arena_printf(arena, "model: %s\n", name), &config), "");
    struct train_shape shape = fixture_shape(model_show_seq_len(&config), 1);
    model_tree_build(arena, fixture_build(arena, &config, &shape), depth, &tree);
    return tree;
}

/* Rows below the root sum to it; parts of a block to the block, but for parameters of no part. */
static void test_sums(void)
{
    static const char *const names[] = {"llama-3.1-8b", "gemma-2-9b", "deepseek-v2-lite",
                                        "t5-base",      "falcon-7b",  "vit-base-patch16-224",
                                        "gpt-oss-20b",  "pythia-1b"};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        check_context("%s", names[i]);
        struct model_tree tree = tree_of(&arena, names[i], 2);
        int64_t parameters[3] = {0}, active[3] = {0};
        double flop = 0.0, saved = 0.0, share = 0.0;
        for (int32_t row = 0; row < tree.count; row++) {
            const struct model_tree_row *one = &tree.items[row];
            parameters[one->depth] += one->parameters;
            active[one->depth] += one->active_parameters;
            flop += one->depth == 1 ? one->flop_per_token : 0.0;
            saved += one->depth == 1 ? one->saved_bytes_per_token : 0.0;
            share += one->depth == 1 ? one->flop_share : 0.0;
        }
        CHECK_INT(parameters[1], tree.items[0].parameters);
        CHECK_INT(active[1], tree.items[0].active_parameters);
        CHECK_NEAR(flop, tree.items[0].flop_per_token, 1e-12);
        CHECK_NEAR(saved, tree.items[0].saved_bytes_per_token, 1e-12);
        CHECK_NEAR(share, 1.0, 1e-12);
        CHECK_TRUE(parameters[2] <= parameters[1] && active[2] <= active[1]);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* Llama-3.1-8B: 32·218,112,000; attention 2·(4096² + 4096·1024), MLP 3·4096·14336 of a block. */
static void test_rows(void)
{
    static const struct {
        const char *name;
        int64_t parameters;
    } rows[] = {{"block", INT64_C(32) * 218112000},
                {"input_layernorm", 32 * 4096},
                {"self_attn", INT64_C(32) * 2 * 4096 * (4096 + 1024)},
                {"mlp", INT64_C(32) * 3 * 4096 * 14336},
                {"lm_head", 525336576}};
    struct arena arena = {0};
    struct model_tree tree = tree_of(&arena, "llama-3.1-8b", 2);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t found = -1;
        for (int32_t row = 0; row < tree.count; row++)
            if (strcmp(tree.items[row].name, rows[i].name) == 0)
                found = tree.items[row].parameters;
        check_context("%s", rows[i].name);
        CHECK_INT(found, rows[i].parameters);
    }
    check_context(NULL);
    CHECK_INT(tree_of(&arena, "llama-3.1-8b", 0).count, 1);
    CHECK_TRUE(tree_of(&arena, "llama-3.1-8b", 3).count > tree.count);
    arena_release(&arena);
}

const struct check_case model_tree_cases[] = {
    {"sums", test_sums}, {"rows", test_rows}, {NULL, NULL}};
