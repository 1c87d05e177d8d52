/* tests/unit/run/test_fitting.c: what to change to fit, by hand and by its own advice. */
#include <string.h>

#include "base/strbuf.h"
#include "run/fitting.h"
#include "run_tests.h"

/* 7e9 parameters, 4 + 4 + 8 B, 8 GPUs, nothing but states and units in flight (worked example A).
 */
static void test_stages(void)
{
    static const struct {
        const char *what, *settings;
        double over_gb;
    } rows[] = {{"ddp", "fsdp.api=ddp", 112 - 20},
                {"zero1", "fsdp.api=zero1", 56 + 56 / 8.0 - 20},
                {"zero2", "fsdp.api=zero2", 28 + 84 / 8.0 - 20}};
    struct played played;
    struct fitting fitting;
    CHECK_INT(played_load(&played, "worked-examples/a", NULL), STATUS_OK);
    CHECK_INT(fitting_find(&played.experiment, 20e9, &fitting), STATUS_OK);
    CHECK_INT(fitting.count, 5);
    for (int i = 0; i < 3; i++) {
        CHECK_TEXT(fitting.tries[i].what, rows[i].what);
        CHECK_TEXT(fitting.tries[i].settings, rows[i].settings);
        CHECK_NEAR(fitting.tries[i].row.over_bytes, rows[i].over_gb * 1e9, 1e-12);
    }
    /* Kept gathered: all 28 GB beside 14 GB of shards, and more in flight. */
    CHECK_TRUE(fitting.tries[3].row.total_bytes > 42e9 && !fitting.tries[3].fits);
    CHECK_TEXT(fitting.tries[3].settings, "fsdp.reshard_after_forward=false");
    CHECK_TRUE(fitting.has_found && fitting.tries[4].fits);
    CHECK_TEXT(fitting.tries[4].settings, "");
    CHECK_NEAR(fitting.tries[4].row.states_bytes, 14e9, 1e-12);
    played_release(&played);
}

/* A step that fits as DDP needs nothing else. */
static void test_first(void)
{
    struct played played;
    struct fitting fitting;
    CHECK_INT(played_load(&played, "worked-examples/a", NULL), STATUS_OK);
    CHECK_INT(fitting_find(&played.experiment, 112e9, &fitting), STATUS_OK);
    CHECK_INT(fitting.count, 1);
    CHECK_TRUE(fitting.has_found);
    CHECK_INT(fitting_find(&played.experiment, 1e9, &fitting), STATUS_OK);
    CHECK_TRUE(!fitting.has_found && !fitting.tries[fitting.count - 1].fits);
    /* What was tried leaves no trace. */
    CHECK_INT(played.experiment.fsdp.reshard_after_forward, 1);
    CHECK_TRUE(!played.experiment.fsdp.cpu_offload.params);
    played_release(&played);
}

/* "a=1 b=2" → "a=1; b=2" */
static const char *as_overrides(struct arena *arena, const char *base, const char *settings)
{
    struct strbuf text = {0};
    strbuf_add(&text, base);
    for (strbuf_add(&text, "; "); *settings != '\0'; settings++)
        strbuf_add_bytes(&text, *settings == ' ' ? "; " : settings, *settings == ' ' ? 2 : 1);
    const char *copy = arena_strdup(arena, text.text);
    strbuf_release(&text);
    return copy;
}

/* Whoever follows the advice gets the bytes that it promised. */
static void test_advice_holds(void)
{
    static const struct {
        const char *config, *base;
        double budget;
        const char *last;
    } rows[] = {
        {"llama3-8b_dgx-h100", "train.micro_batch=1", 75e9, "zero2"},
        {"llama3-8b_dgx-h100", "train.activation_checkpointing=none; train.micro_batch=6", 45e9,
         "+ micro_batch: 3"},
        {"llama3-8b_dgx-h100", "train.activation_checkpointing=none", 45e9,
         "+ activation_checkpointing: selective"},
        {"llama3-8b_dgx-h100", "model=llama-3-70b; train.seq_len=2048", 30e9, "+ cpu_offload"},
        {"llama3-8b_dgx-h100", "fsdp.api=fsdp1; fsdp.sharding_strategy=shard_grad_op", 40e9,
         "zero3 (fsdp1)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played, advised;
        struct fitting fitting;
        struct estimate estimate;
        check_context("row %zu", i);
        CHECK_INT(played_load(&played, rows[i].config, rows[i].base), STATUS_OK);
        CHECK_INT(fitting_find(&played.experiment, rows[i].budget, &fitting), STATUS_OK);
        CHECK_TRUE(fitting.has_found);
        const struct fitting_try *found = &fitting.tries[fitting.count - 1];
        CHECK_TEXT(found->what, rows[i].last);
        CHECK_INT(played_load(&advised, rows[i].config,
                              as_overrides(&played.arena, rows[i].base, found->settings)),
                  STATUS_OK);
        CHECK_INT(estimate_memory(&advised.experiment, rows[i].budget, false, &estimate),
                  STATUS_OK);
        const int stage = strcmp(found->what, "zero2") == 0 ? STAGE_ZERO2 : STAGE_ZERO3;
        CHECK_NEAR(estimate.rows[stage].total_bytes, found->row.total_bytes, 1e-12);
        CHECK_TRUE(estimate.rows[stage].fits);
        for (int32_t k = 0; k + 1 < fitting.count; k++)
            CHECK_TRUE(!fitting.tries[k].fits);
        played_release(&advised);
        played_release(&played);
    }
    check_context(NULL);
}

const struct check_case fitting_cases[] = {
    {"stages of a worked example", test_stages},
    {"no more than needed", test_first},
    {"advice that is followed holds", test_advice_holds},
    {0},
};
