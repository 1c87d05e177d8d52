/* tests/unit/worked/test_activations.c: act-67, C, and what checkpointing costs. */
#include "worked_tests.h"

static void test_act_67(void)
{
    struct played played;
    struct estimate estimate;
    if (CHECK_INT(played_load(&played, "worked-examples/act-67", NULL), STATUS_OK) &&
        CHECK_INT(estimate_memory(&played.experiment, 0, false, &estimate), STATUS_OK)) {
        CHECK_INT(estimate.hidden_elements, 4 * 2048 * 4096);
        CHECK_NEAR(estimate.hidden_bytes, 67108864, EXACT);
        CHECK_CONTAINS(played_memory(&played, &estimate), "67,108,864 B");
    }
    played_release(&played);
}

/*
 * The published model has 175e9 parameters; the Llama-shaped stand-in, with f = 32,768 and tied
 * embeddings: 96 (4 h² + 3 h f + 2 h) + V h + h = 174.57e9, so 4.1 GB to two digits.
 */
static void test_c(void)
{
    const double h = 12288, f = 32768;
    const double parameters = 96 * (4 * h * h + 3 * h * f + 2 * h) + 50257 * h + h;
    struct played played;
    struct estimate estimate;
    if (CHECK_INT(played_load(&played, "worked-examples/c", NULL), STATUS_OK) &&
        CHECK_INT(estimate_memory(&played.experiment, 0, false, &estimate), STATUS_OK)) {
        CHECK_INT(estimate.hidden_elements, 201326592);
        CHECK_NEAR(estimate.hidden_bytes, 402653184, EXACT);
        CHECK_INT(estimate.layers, 96);
        CHECK_NEAR((double)estimate.parameters, parameters, EXACT);
        CHECK_NEAR((double)estimate.parameters, 175e9, 0.005);
        CHECK_INT(estimate.ranks, 1024);
        CHECK_NEAR(estimate.rows[STAGE_ZERO3].states_bytes, 24 * parameters / 1024, EXACT);
        CHECK_NEAR(estimate.rows[STAGE_ZERO3].states_bytes, 24 * 175e9 / 1024, 0.005);
        /* 96 x 402,653,184 B = 38.654705664 GB, on every GPU. */
        CHECK_TRUE(estimate.activation_bytes >= 38.65e9);
        const char *text = played_memory(&played, &estimate);
        CHECK_CONTAINS(text, "201,326,592 elements");
        CHECK_CONTAINS(text, "402,653,184 B");
        CHECK_CONTAINS(text, "96 layers: 38.65471 GB");
    }
    played_release(&played);
}

/* Activations are not divided by the number of GPUs; the state is. */
static void test_c_does_not_shrink(void)
{
    double activation_bytes[2] = {0}, states_bytes[2] = {0};
    static const char *const nodes[] = {"nodes=2", "nodes=512"};
    for (int i = 0; i < 2; i++) {
        struct played played;
        struct estimate estimate;
        if (CHECK_INT(played_load(&played, "worked-examples/c", nodes[i]), STATUS_OK) &&
            CHECK_INT(estimate_memory(&played.experiment, 0, false, &estimate), STATUS_OK)) {
            activation_bytes[i] = estimate.activation_bytes;
            states_bytes[i] = estimate.rows[STAGE_ZERO3].states_bytes;
        }
        played_release(&played);
    }
    CHECK_NEAR(activation_bytes[1], activation_bytes[0], EXACT);
    CHECK_NEAR(states_bytes[1], states_bytes[0] / 256, EXACT);
}

/* Backward is twice forward, and checkpointing runs forward again: 4/3 of the compute. */
static void test_checkpointing_costs_a_third(void)
{
    double compute_s[2] = {0};
    static const char *const overrides[] = {"train.activation_checkpointing=none",
                                            "train.activation_checkpointing=full"};
    for (int i = 0; i < 2; i++) {
        struct played played;
        if (played_play(&played, "worked-examples/units-32", overrides[i]))
            compute_s[i] = played.outcome.compute_s;
        played_release(&played);
    }
    CHECK_NEAR(compute_s[0], 32 * (0.010 + 0.020), EXACT);
    CHECK_NEAR(compute_s[1] / compute_s[0], 4.0 / 3.0, EXACT);
}

const struct check_case activations_cases[] = {
    {"act-67: 67,108,864 B", test_act_67},
    {"C: 38.65 GB against 4.1 GB", test_c},
    {"C: activations are not divided by N", test_c_does_not_shrink},
    {"checkpointing: a third more compute", test_checkpointing_costs_a_third},
    {0}};
