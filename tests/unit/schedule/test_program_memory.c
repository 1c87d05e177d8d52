/*
 * tests/unit/schedule/test_program_memory.c: what is allocated in the order of issue
 * (max_memory_allocated), against what streams are still using.
 */
#include <stdio.h>
#include <string.h>

#include "schedule_tests.h"

enum { U = 15000000 };
#define UNITS_32 "worked-examples/units-32"
#define FOUR_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 15000000, forward: 10 ms, "          \
    "backward: 20 ms}]}; "

/*
 * Two GPUs, four equal units of U parameters, bf16 over fp32. States: (4 + 8) B * 4 U / 2 = 24 U.
 *
 * fsdp1: when unit 1's gradients are concatenated it holds its parameters and those prefetched for
 * unit 0, the gradients and the flat one, 2 U each, and the sharded gradients of units 3 and 2, 4 U
 * / 2 each: 12 U. Unit 0 has nothing to prefetch and one sharded gradient more: 6 U + 6 U.
 *
 * fsdp2: at the end of unit 1's backward its parameters, the buffer gathered for unit 0, its
 * gradients and the reduce-scatter input of unit 2, 2 U each, and the shards of units 3 and 2: 12 U
 * again; unit 0 has no buffer but one shard more.
 */
static void test_closed_forms(void)
{
    static const char *const policies[] = {"fsdp.api=fsdp1", "fsdp.api=fsdp2"};
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        struct played played;
        char overrides[256];
        snprintf(overrides, sizeof(overrides), "%s%s", FOUR_UNITS, policies[i]);
        if (played_play(&played, UNITS_32, overrides)) {
            check_context("%s", policies[i]);
            CHECK_INT(played.experiment.n_gpus, 2);
            CHECK_NEAR((double)played.outcome.peak_allocated_bytes, 36.0 * U, 1e-4);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* fsdp1 records streams: what is freed stays active until they are done with it. fully_shard
 * records none. */
static void test_active(void)
{
    struct played played;
    if (played_play(&played, UNITS_32, FOUR_UNITS "fsdp.api=fsdp1"))
        CHECK_TRUE(played.outcome.peak_active_bytes > played.outcome.peak_allocated_bytes + U);
    played_release(&played);
    if (played_play(&played, UNITS_32, FOUR_UNITS "fsdp.api=fsdp2"))
        CHECK_INT(played.outcome.peak_active_bytes, played.outcome.peak_allocated_bytes);
    played_release(&played);
}

#define LORA                                                                                       \
    "fsdp={api: fsdp1}; train.precision={param_dtype: bf16, storage_dtype: bf16}; "                \
    "train.lora={rank: 8, target_modules: [q_proj]}; train.loss=linear; "                          \
    "train.activation_checkpointing={policy: full, early_stop: false}"

/* Bytes of the tensors whose name begins with `prefix`, and how many. */
static int64_t sum_named(const struct program *program, const char *prefix, int32_t *count)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->tensors.count; i++) {
        const struct tensor *tensor = &program->tensors.items[i];
        if (strncmp(tensor->name, prefix, strlen(prefix)) != 0)
            continue;
        bytes += tensor->bytes;
        ++*count;
    }
    return bytes;
}

/*
 * A reentrant checkpoint around a frozen flat parameter: Llama-3.1-8B, 8,192 tokens, 32 blocks keep
 * their input (2 * 4,096 B a token) and 31 the gradient of the one behind: 63 hidden states.
 * Nothing where flat parameters get gradients, and where the checkpoint is inside.
 */
static void test_kept_inputs(void)
{
    static const struct {
        const char *overrides;
        int32_t count;
        int64_t hidden;
    } rows[] = {
        {LORA "; train.activation_checkpointing.reentrant=true", 32, 63},
        {LORA "; train.activation_checkpointing.reentrant=true; fsdp.use_orig_params=true", 0, 0},
        {LORA, 0, 0},
        {"fsdp={api: fsdp1}; train.activation_checkpointing={reentrant: true}; train.compile=false",
         0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), "train.compile=false; %s", rows[i].overrides);
        if (played_build(&played, "llama3-8b_dgx-h100", overrides)) {
            int32_t count = 0;
            check_context("%s", rows[i].overrides);
            CHECK_INT(sum_named(played.experiment.program, "kept_input", &count),
                      rows[i].hidden * 2 * 4096 * 8192);
            CHECK_INT(count, rows[i].count);
        }
        played_release(&played);
    }
    check_context(NULL);
}

#define STATES                                                                                     \
    "model=mistral-7b-v0.1; cluster=dgx-a100; gpus_per_node=%d; nodes=1; train.micro_batch=1; "    \
    "train.seq_len=512; train.compile=false; train.loss=linear; train.optimizer.impl=foreach; "    \
    "train.precision={param_dtype: bf16, reduce_dtype: bf16, storage_dtype: %s}; "                 \
    "train.optimizer.state_dtype=%s; fsdp={api: %s}"

/*
 * Full fine-tuning with foreach AdamW, published peaks in bytes a parameter times GPUs
 * (fms-acceleration, A100 80 GB; three digits): one GPU in bf16 10.00, FSDP1 in bf16 on two 10.00,
 * with fp32 parameters 20.00. All stand in the optimizer's step: parameter, gradient, two moments,
 * and the list that holds the root of v.
 */
static void test_published_states(void)
{
    static const struct {
        int gpus;
        const char *storage, *api;
        double bytes;
    } rows[] = {{1, "bf16", "ddp", 10.0}, {2, "bf16", "fsdp1", 10.0}, {4, "fp32", "fsdp1", 20.0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[640];
        snprintf(overrides, sizeof(overrides), STATES, rows[i].gpus, rows[i].storage,
                 rows[i].storage, rows[i].api);
        if (played_play(&played, "llama3-8b_dgx-h100", overrides)) {
            const struct outcome *outcome = &played.outcome;
            check_context("%d %s %s", rows[i].gpus, rows[i].storage, rows[i].api);
            CHECK_NEAR((double)outcome->peak_allocated_bytes * rows[i].gpus /
                           (double)outcome->parameters,
                       rows[i].bytes, 2e-3);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* Adapters under DDP: buckets, gradients and moments of what is trained; one GPU has no bucket. */
static void test_ddp_adapters(void)
{
    static const char lora[] =
        "cluster=dgx-a100; nodes=1; gpus_per_node=%d; fsdp={api: ddp}; train.compile=false; "
        "train.precision={param_dtype: bf16, storage_dtype: bf16}; train.loss=linear; "
        "train.lora={rank: 8, target_modules: [q_proj, v_proj]}";
    for (int gpus = 1; gpus <= 2; gpus++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), lora, gpus);
        if (played_build(&played, "llama3-8b_dgx-h100", overrides)) {
            const struct program *program = played.experiment.program;
            int32_t count = 0;
            /* 3,407,872 trained parameters of 8,030,261,248 (test_lora.c of the model room). */
            CHECK_INT(sum_named(program, "bucket.", &count), gpus == 1 ? 0 : 2 * 3407872);
            CHECK_INT(sum_named(program, "gradients(", &count), 2 * 3407872);
            CHECK_INT(sum_named(program, "adam_moments(", &count), 8 * INT64_C(3407872));
            CHECK_INT(sum_named(program, "shard(", &count), 2 * (INT64_C(8030261248) + 3407872));
        }
        played_release(&played);
    }
}

/*
 * FSDP1 against FSDP2, torchtitan pull request 165: Llama-2-7B on 8 H100 of 95.04 GiB, 8 sequences
 * of 2,048 a GPU, peak of active memory in percent of that, and tokens a second and GPU (middle of
 * the range it gives, 1 % to both sides). fully_shard holds less in both; in speed their ranges
 * overlap.
 */
static void test_published_comparison(void)
{
    static const struct {
        const char *checkpointing;
        double fsdp1_percent, fsdp2_percent, fsdp1_tokens, fsdp2_tokens;
    } rows[] = {{"full", 24.81, 23.92, 6150, 6200}, {"selective", 52.98, 52.13, 6600, 6700}};
    static const char *const policies[] = {"{api: fsdp1}", "{api: fsdp2, wrap: block}"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double active[2] = {0}, tokens[2] = {0};
        for (int p = 0; p < 2; p++) {
            struct played played;
            char overrides[512];
            snprintf(
                overrides, sizeof(overrides),
                "model=llama-2-7b; cluster=grand-teton-h100-96gb; nodes=1; train.seq_len=2048; "
                "train.micro_batch=8; train.compile=false; train.rotary=complex; "
                "train.optimizer.impl=foreach; train.activation_checkpointing=%s; "
                "train.loss={upcast: model, keeps_logits: true}; fsdp=%s",
                rows[i].checkpointing, policies[p]);
            if (played_play(&played, "llama3-8b_dgx-h100", overrides)) {
                active[p] = (double)played.outcome.peak_active_bytes;
                tokens[p] = played.outcome.tokens_per_s_per_gpu;
            }
            played_release(&played);
        }
        check_context("%s", rows[i].checkpointing);
        const double percent = 95.04 * 1073741824.0 / 100.0;
        CHECK_NEAR(active[0], rows[i].fsdp1_percent * percent, 0.03);
        CHECK_NEAR(active[1], rows[i].fsdp2_percent * percent, 0.03);
        CHECK_TRUE(active[1] < active[0]);
        CHECK_NEAR(tokens[0], rows[i].fsdp1_tokens, 0.05);
        CHECK_NEAR(tokens[1], rows[i].fsdp2_tokens, 0.05);
        CHECK_NEAR(tokens[1] / tokens[0], rows[i].fsdp2_tokens / rows[i].fsdp1_tokens, 0.02);
    }
    check_context(NULL);
}

const struct check_case program_memory_cases[] = {
    {"closed_forms", test_closed_forms},
    {"active", test_active},
    {"kept_inputs", test_kept_inputs},
    {"published_states", test_published_states},
    {"published_comparison", test_published_comparison},
    {"ddp_adapters", test_ddp_adapters},
    {NULL, NULL}};
