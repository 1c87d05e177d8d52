/*
 * tests/property/run/test_policies.c: every policy on every model, number of GPUs, precision and
 * accumulation: identities of times and memory, allocations in balance, the closed form of the
 * bytes on the wire, the same answer again, and never more memory of a state by more sharding.
 */
#include <string.h>

#include "program_balance.h"
#include "property_tests.h"

/* More sharding from row to row. `accumulates`: reduced in every microbatch; volumes in passes of
   all parameters over the wire, a gather or a scatter one, an all-reduce two. */
static const struct policy {
    const char *name, *overrides;
    double reduced, gathered;
    bool accumulates, is_bound; /* is_bound: not more than that (what is kept is not gathered) */
} policies[] = {
    {"ddp", "fsdp={api: ddp}", 2, 0, true, false},
    {"ddp", "fsdp={api: ddp}; ddp.gradient_as_bucket_view=true; ddp.no_sync=true", 2, 0, false,
     false},
    {"zero1", "fsdp={api: zero1}", 2, 1, false, false},
    {"zero1",
     "fsdp={api: zero1}; zero.overlap_comm=true; zero.use_multi_rank_bucket_allreduce=false", 1, 1,
     false, false},
    {"zero2", "fsdp={api: zero2}", 2, 1, true, false},
    {"zero2", "fsdp={api: zero2}; zero.overlap_comm=true; zero.reduce_bucket_size=4000", 2, 1, true,
     false},
    {"zero3", "fsdp={api: zero3}; zero.param_persistence_threshold=20", 1, 2, true, true},
    {"zero3",
     "fsdp={api: zero3}; zero.overlap_comm=false; zero.param_persistence_threshold=0; "
     "zero.prefetch_bucket_size=300; zero.max_live_parameters=2000; zero.max_reuse_distance=100",
     1, 2, true, true},
};

static const char *const models[] = {
    "", "model.tie_word_embeddings=true; train.activation_checkpointing=none",
    "train.compile=true; model.num_hidden_layers=3",
    "model={family: abstract, units: [{repeat: 3, parameters: 2385, forward: 1 ms, backward: 2 "
    "ms}, "
    "{parameters: 7001, forward: 1 ms, backward: 3 ms}]}"};

static const char *const sizes[] = {"cluster=ideal-64-400; nodes=1; gpus_per_node=1",
                                    "cluster=ideal-64-400; nodes=1; gpus_per_node=2",
                                    "cluster=ideal-64-400; nodes=1",
                                    "cluster=ideal-64-400; nodes=3", "cluster=dgx-h100; nodes=2"};

static const struct precision {
    const char *overrides;
    double bytes; /* of a gradient and of a gathered parameter */
    bool is_ddp_only;
} precisions[] = {
    {"train.precision={param_dtype: fp32}", 4, false},
    {"train.precision={param_dtype: bf16, storage_dtype: bf16, master_dtype: none}", 2, false},
    {"train.precision={param_dtype: bf16, storage_dtype: bf16, master_dtype: fp32}", 2, false},
    {"train.precision={param_dtype: fp16, storage_dtype: fp16, master_dtype: fp32}", 2, false},
    {"train.precision={param_dtype: bf16, storage_dtype: fp32}", 4, true},
};

/* Padding of parts to whole elements, the norm and small renewals are a few bytes a parameter. */
static void check_volume(const struct played *played, const struct policy *policy,
                         const struct precision *precision)
{
    const struct outcome *outcome = &played->outcome;
    const double n = (double)outcome->n_gpus;
    const double steps = policy->accumulates ? (double)played->experiment.train.grad_accum : 1;
    const double gathers = policy->is_bound ? steps * policy->gathered : policy->gathered;
    const double passes = steps * policy->reduced + gathers;
    const double pass_bytes =
        (double)played->experiment.model->parameters * precision->bytes * (n - 1) / n;
    const double slack = 64 * n * 64;
    CHECK_TRUE(outcome->comm_bytes_per_gpu <= passes * pass_bytes + slack);
    if (policy->is_bound) /* each parameter once at least */
        CHECK_TRUE(n == 1 || outcome->comm_bytes_per_gpu > 0.9 * steps * pass_bytes);
    else
        CHECK_TRUE(outcome->comm_bytes_per_gpu >= passes * pass_bytes);
}

static double state_bytes(const struct program *program)
{
    double bytes = 0;
    for (int32_t i = 0; i < program->tensors.count; i++) {
        const struct tensor *tensor = &program->tensors.items[i];
        if (tensor->category == MEMORY_PARAMETERS || tensor->category == MEMORY_OPTIMIZER)
            bytes += (double)tensor->bytes;
    }
    return bytes;
}

static bool check_one(const char *overrides, const struct policy *policy,
                      const struct precision *precision, double *states)
{
    struct played played, again;
    const bool is_played = played_play(&played, TWO_BLOCKS, overrides);
    if (is_played) {
        check_context("%s", overrides);
        check_identities(&played);
        check_volume(&played, policy, precision);
        program_check_balance(played.experiment.program);
        *states = state_bytes(played.experiment.program);
        if (played_play(&again, TWO_BLOCKS, overrides))
            CHECK_U64(again.outcome.fingerprint, played.outcome.fingerprint);
        played_release(&again);
        check_context(NULL);
    }
    played_release(&played);
    return is_played;
}

/* All policies on one set-up: parts of whole elements may cost a few. */
static void check_setup(const char *setup, const struct precision *precision, int64_t *played)
{
    double before = 1e30, states = 0;
    for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
        char overrides[1024];
        if (precision->is_ddp_only && strcmp(policies[p].name, "ddp") != 0)
            continue;
        snprintf(overrides, sizeof(overrides), "%s; %s; %s", policies[p].overrides,
                 precision->overrides, setup);
        if (!check_one(overrides, &policies[p], precision, &states))
            continue;
        ++*played;
        check_context("%s", overrides);
        CHECK_TRUE(states <= before + 1000);
        check_context(NULL);
        before = states;
    }
}

static void test_matrix(void)
{
    int64_t played = 0;
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            for (size_t d = 0; d < sizeof(precisions) / sizeof(precisions[0]); d++)
                for (int accum = 1; accum <= 3; accum += 2) {
                    char setup[512];
                    snprintf(setup, sizeof(setup), "%s; train.grad_accum=%d%s%s", sizes[s], accum,
                             models[m][0] != '\0' ? "; " : "", models[m]);
                    check_setup(setup, &precisions[d], &played);
                }
    /* 4 models, 5 sizes, 2 accumulations: 8 policies in 4 precisions and 2 in the fifth. */
    CHECK_INT(played, 4 * 5 * 2 * (8 * 4 + 2));
}

const struct check_case policies_cases[] = {{"policy x model x size x precision", test_matrix},
                                            {0}};
