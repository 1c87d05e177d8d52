/*
 * tests/unit/schedule/test_outputs.c: how long the model's output lives: logits, and the keys and
 * values of a cache.
 */
#include <stdio.h>

#include "schedule_tests.h"

/* Llama-3-8B, 8,192 tokens: logits in bf16; keys and values of 32 blocks, 1,024 wide each. */
enum { TOKENS = 8192 };
static const double logits = 2.0 * TOKENS * 128256;
static const double keys_values = 32.0 * 2.0 * 2.0 * TOKENS * 1024;

static double peak_of(const char *overrides)
{
    struct played played;
    double peak = 0;
    if (played_play(&played, "llama3-8b_dgx-h100", overrides))
        peak = (double)played.outcome.peak_allocated_bytes;
    played_release(&played);
    return peak;
}

static double peak_with(const char *keeps, const char *cache, const char *others)
{
    char overrides[512];
    snprintf(overrides, sizeof(overrides),
             "train.loss.keeps_logits=%s; train.key_value_cache=%s; %s", keeps, cache, others);
    return peak_of(overrides);
}

/* Held through backward, whose beginning is the peak: that is higher by all that is held; where no
   block runs again keys and values are there in any case. */
static void test_until_backward(void)
{
    static const char *const policies[] = {"fsdp={api: fsdp2, wrap: block}", "fsdp={api: fsdp1}"};
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        char full[256], none[256];
        check_context("%s", policies[i]);
        snprintf(full, sizeof(full), "%s; train.activation_checkpointing=full", policies[i]);
        snprintf(none, sizeof(none), "%s; train.activation_checkpointing=none", policies[i]);
        const double bare = peak_with("false", "false", full);
        CHECK_NEAR(peak_with("true", "false", full) - bare, logits, 1e-9);
        CHECK_NEAR(peak_with("true", "true", full) - bare, logits + keys_values, 1e-9);
        /* 512 B a tensor: they are not the same ones. */
        CHECK_NEAR(peak_with("true", "true", none), peak_with("true", "false", none), 1e-5);
        CHECK_NEAR(peak_with("false", "true", none), peak_with("false", "false", none), 1e-9);
        /* Dropped before backward begins. */
        CHECK_NEAR(peak_with("false", "true", full), bare, 1e-9);
    }
    check_context(NULL);
}

/* Backward that does not reach the first modules ends with the first one that it does reach. */
static void test_frozen_front(void)
{
    static const char frozen[] = "train.frozen=[embed_tokens, layers.0-3]; train.grad_accum=3; "
                                 "train.activation_checkpointing=full";
    const double bare = peak_with("false", "false", frozen);
    CHECK_NEAR(peak_with("true", "true", frozen) - bare, logits + keys_values, 1e-9);
    CHECK_NEAR(peak_with("next_step", "true", frozen) - bare, logits + keys_values, 1e-9);
}

/*
 * dlrover, atorch/examples/llama2/README.md: Llama-2-7B with transformers' cache on, 4 sequences of
 * 4,096 a GPU, FSDP1, max_memory_allocated on 8 and on 64 A100: 39,596.3 and 31,161.9 MiB. The peak
 * is the loss of the second step: 4,096 MiB of inputs of blocks, 2 · 8,192 of keys and values, and
 * 2,000 four times: logits of this step and the one before, their shifted copy, log-softmax.
 */
static void test_published(void)
{
    static const struct {
        int nodes;
        double mib;
    } rows[] = {{1, 39596.3}, {8, 31161.9}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char overrides[1024];
        snprintf(overrides, sizeof(overrides),
                 "model=llama-2-7b; cluster=dgx-a100; nodes=%d; train.seq_len=4096; "
                 "train.micro_batch=4; train.compile=false; train.optimizer.impl=foreach; "
                 "train.max_grad_norm=0; train.precision={param_dtype: bf16, reduce_dtype: bf16}; "
                 "train.activation_checkpointing=full; train.key_value_cache=true; "
                 "train.loss={upcast: model, shifted: true, keeps_logits: next_step}; "
                 "fsdp={api: fsdp1, wrap: block, forward_prefetch: 1}",
                 rows[i].nodes);
        check_context("%d", rows[i].nodes);
        CHECK_NEAR(peak_of(overrides) / 1048576.0, rows[i].mib, 0.03);
    }
    check_context(NULL);
}

const struct check_case output_cases[] = {{"until backward", test_until_backward},
                                          {"frozen front", test_frozen_front},
                                          {"published", test_published},
                                          {NULL, NULL}};
