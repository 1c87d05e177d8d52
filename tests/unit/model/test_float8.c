/*
 * tests/unit/model/test_float8.c: casts and products of each float8 recipe, by hand.
 *
 * The small model: T 256, h 96, k and v 32 wide, MLP 160 wide. Bytes an element as float8.c lists
 * them.
 */
#include <string.h>

#include "base/arena.h"
#include "check.h"
#include "model_fixture.h"

extern const struct check_case float8_cases[];

enum { TOKENS = 256, HIDDEN = 96, KEYS = 32, MIDDLE = 160 };
#define X ((double)TOKENS * HIDDEN)
#define SQUARE ((double)HIDDEN * HIDDEN)

static struct train_shape float8_shape(enum float8_recipe recipe)
{
    struct train_shape shape = fixture_shape(128, 2);
    shape.is_compiled = true;
    shape.float8 = recipe;
    return shape;
}

static const struct module_kind *small_block(struct arena *arena, const struct train_shape *shape)
{
    const struct model_config config = fixture_small();
    return fixture_kind(fixture_build(arena, &config, shape), MODULE_BLOCK);
}

/* Bytes of all kernels whose name begins so. */
static double bytes_named(const struct kernel_list *list, const char *begin)
{
    double bytes = 0;
    for (int32_t i = 0; i < list->count; i++)
        bytes += strncmp(list->items[i].name, begin, strlen(begin)) == 0 ? list->items[i].bytes : 0;
    return bytes;
}

/*
 * Forward and backward bytes of the casts of each tensor. Compiled q, k and v share their input's.
 * W and x of q_proj; x of o_proj, which attention wrote; the gradients of both outputs.
 */
static void test_casts(void)
{
    static const struct {
        enum float8_recipe recipe;
        bool gathers;
        const char *name;
        double elements, forward, backward;
    } rows[] = {
        {FLOAT8_TENSORWISE, false, "q_proj.input.", X, 2 + 3, 3},
        {FLOAT8_TENSORWISE, false, "k_proj.input.", X, 0, 0},
        {FLOAT8_TENSORWISE, false, "o_proj.input.", X, 2 + 3, 3},
        {FLOAT8_TENSORWISE, false, "q_proj.weight.", SQUARE, 2 + 3, 3},
        {FLOAT8_TENSORWISE, true, "q_proj.weight.", SQUARE, 0, 2},
        {FLOAT8_TENSORWISE, false, "q_proj.output_grad.", X, 0, 2 + 4},
        {FLOAT8_TENSORWISE, false, "o_proj.input_grad.", X, 0, 0},
        {FLOAT8_ROWWISE, false, "q_proj.input.", X, 1, 4 + 3},
        {FLOAT8_ROWWISE, false, "o_proj.input.", X, 3, 4 + 3},
        {FLOAT8_ROWWISE, false, "q_proj.weight.", SQUARE, 3, 4 + 3},
        {FLOAT8_ROWWISE, false, "q_proj.output_grad.", X, 0, 5 + 3},
        {FLOAT8_ROWWISE, false, "q_proj.input_grad.rescale", X, 0, 0},
        {FLOAT8_ROWWISE, false, "o_proj.input_grad.rescale", X, 0, 4},
        {FLOAT8_ROWWISE, false, "q_proj.weight_grad.rescale", SQUARE, 0, 4},
        {FLOAT8_ROWWISE_GW_HP, false, "q_proj.input.", X, 1, 0},
        {FLOAT8_ROWWISE_GW_HP, false, "q_proj.weight.", SQUARE, 3, 3},
        {FLOAT8_ROWWISE_GW_HP, false, "q_proj.output_grad.", X, 0, 3},
        {FLOAT8_ROWWISE_GW_HP, false, "q_proj.weight_grad.rescale", SQUARE, 0, 0},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct train_shape shape = float8_shape(rows[i].recipe);
        shape.gathers_float8 = rows[i].gathers;
        const struct module_kind *block = small_block(&arena, &shape);
        check_context("recipe %d, %s", (int)rows[i].recipe, rows[i].name);
        CHECK_NEAR(bytes_named(&block->forward, rows[i].name) / rows[i].elements, rows[i].forward,
                   1e-12);
        CHECK_NEAR(bytes_named(&block->backward, rows[i].name) / rows[i].elements, rows[i].backward,
                   1e-12);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* Operands of a byte, a result of two; gradients have one scale; gw_hp multiplies dW in 16 bits. */
static void test_products(void)
{
    static const struct {
        enum float8_recipe recipe;
        enum product forward, input_grad, weight_grad;
    } rows[] = {
        {FLOAT8_NONE, PRODUCT_PLAIN, PRODUCT_PLAIN, PRODUCT_PLAIN},
        {FLOAT8_TENSORWISE, PRODUCT_FLOAT8, PRODUCT_FLOAT8, PRODUCT_FLOAT8},
        {FLOAT8_ROWWISE, PRODUCT_FLOAT8_ROWWISE, PRODUCT_FLOAT8, PRODUCT_FLOAT8},
        {FLOAT8_ROWWISE_GW_HP, PRODUCT_FLOAT8_ROWWISE, PRODUCT_FLOAT8, PRODUCT_PLAIN},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct train_shape shape = float8_shape(rows[i].recipe);
        const struct module_kind *block = small_block(&arena, &shape);
        const struct kernel *kernels[] = {fixture_kernel(&block->forward, "up_proj"),
                                          fixture_kernel(&block->backward, "up_proj.input_grad"),
                                          fixture_kernel(&block->backward, "up_proj.weight_grad")};
        const enum product products[] = {rows[i].forward, rows[i].input_grad, rows[i].weight_grad};
        const double operands[] = {X + HIDDEN * MIDDLE, TOKENS * MIDDLE + HIDDEN * MIDDLE,
                                   X + TOKENS * MIDDLE};
        const double results[] = {TOKENS * MIDDLE, X, HIDDEN * MIDDLE};
        for (int j = 0; j < 3; j++) {
            const bool is_plain = products[j] == PRODUCT_PLAIN;
            check_context("recipe %d, product %d", (int)rows[i].recipe, j);
            CHECK_INT(kernels[j]->product, products[j]);
            CHECK_INT(kernels[j]->dtype, is_plain ? DTYPE_BF16 : DTYPE_FP8);
            CHECK_NEAR(kernels[j]->bytes, (is_plain ? 2 : 1) * operands[j] + 2 * results[j], 1e-15);
        }
        CHECK_INT(fixture_kernel(&block->forward, "attention")->dtype, DTYPE_BF16);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* Eager: the magnitude (2 + 2), its largest (2), the multiplication in fp32 and the cast. */
static void test_eager(void)
{
    struct arena arena = {0};
    struct train_shape shape = float8_shape(FLOAT8_ROWWISE);
    shape.is_compiled = false;
    const struct module_kind *block = small_block(&arena, &shape);
    CHECK_NEAR(fixture_kernel(&block->forward, "k_proj.input.abs")->bytes, 4 * X, 1e-12);
    CHECK_NEAR(fixture_kernel(&block->forward, "k_proj.input.amax")->bytes, 2 * X, 1e-12);
    CHECK_NEAR(fixture_kernel(&block->backward, "q_proj.input_grad.rescale")->bytes, 8 * X, 1e-12);
    arena_release(&arena);
}

/*
 * Of the seven products the 1st, 3rd, 5th and 7th stay (q, v, gate, down): their weights are not
 * cast again, nor is what only down read. k, o and up run again, and read three inputs.
 */
static void test_recomputed(void)
{
    static const enum float8_recipe recipes[] = {FLOAT8_TENSORWISE, FLOAT8_ROWWISE,
                                                 FLOAT8_ROWWISE_GW_HP};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        struct train_shape shape = float8_shape(recipes[i]);
        shape.checkpointing = CHECKPOINT_SELECTIVE_OP;
        const struct kernel_list *again = &small_block(&arena, &shape)->recompute;
        check_context("recipe %d", (int)recipes[i]);
        CHECK_INT(fixture_count(again, ".weight.to_fp8"), 3);
        CHECK_INT(fixture_count(again, "k_proj.weight.to_fp8"), 1);
        CHECK_INT(fixture_count(again, "o_proj.weight.to_fp8"), 1);
        CHECK_INT(fixture_count(again, "up_proj.weight.to_fp8"), 1);
        CHECK_INT(fixture_count(again, ".input.to_fp8"), 3);
        CHECK_INT(fixture_count(again, "down_proj"), 0);
    }
    check_context(NULL);
    arena_release(&arena);
}

static int count_attention(const struct kernel_list *list)
{
    int count = 0;
    for (int32_t i = 0; i < list->count; i++)
        count += list->items[i].kind == KERNEL_ATTENTION;
    return count;
}

/* save_attention: false: its output, 96 wide, and 6 sums in fp32 a token do not stay. */
static void test_attention_again(void)
{
    struct arena arena = {0};
    struct train_shape shape = fixture_shape(128, 2);
    shape.checkpointing = CHECKPOINT_SELECTIVE_OP;
    const struct module_kind *kept = small_block(&arena, &shape);
    shape.reruns_attention = true;
    const struct module_kind *again = small_block(&arena, &shape);
    CHECK_INT(count_attention(&kept->recompute), 0);
    CHECK_INT(count_attention(&again->recompute), 1);
    CHECK_NEAR(again->model_flop, kept->model_flop, 1e-15);
    CHECK_INT(kept->saved_bytes - again->saved_bytes, TOKENS * (2 * HIDDEN + 4 * 6));
    arena_release(&arena);
}

const struct check_case float8_cases[] = {{"casts", test_casts},
                                          {"products", test_products},
                                          {"eager", test_eager},
                                          {"recomputed", test_recomputed},
                                          {"attention recomputed", test_attention_again},
                                          {NULL, NULL}};
