/* tests/unit/worked/test_cases_policies.c: what users met with a policy's options (configs/cases).
 */
#include <string.h>

#include "worked_tests.h"

/*
 * Llama-2-13B: 40 blocks, and the root once. Two gathers a block, three where a reentrant recompute
 * runs the hooks. With an explicit list of one its recompute gathers the block behind it once more,
 * of which the last one has none: 39.
 */
static void test_recompute(void)
{
    static const struct {
        const char *overrides;
        int64_t gathers;
    } rows[] = {
        {"train.activation_checkpointing.reentrant=false", 2 * 40 + 1},
        {"", 3 * 40 + 1},
        {"fsdp={api: fsdp2}; train.activation_checkpointing.reentrant=false", 2 * 40 + 1},
        {"fsdp={api: fsdp2}", 3 * 40 + 1},
        {"fsdp={api: fsdp2, forward_prefetch: 1}; train.activation_checkpointing.reentrant=false",
         2 * 40 + 1},
        {"fsdp={api: fsdp2, forward_prefetch: 1}", 3 * 40 + 1 + 39},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_build(&played, "cases/recompute-gathers-again", rows[i].overrides))
            CHECK_INT(count_gathers(played.experiment.program), rows[i].gathers);
        played_release(&played);
    }
    check_context(NULL);
}

/* And less is hidden: more communication beside the same compute. */
static void test_recompute_exposed(void)
{
    struct played around, inside;
    if (played_play(&around, "cases/recompute-gathers-again", NULL) &&
        played_play(&inside, "cases/recompute-gathers-again",
                    "train.activation_checkpointing.reentrant=false")) {
        CHECK_TRUE(around.outcome.exposed_comm_s > 1.2 * inside.outcome.exposed_comm_s);
        CHECK_TRUE(around.outcome.step_time_s > inside.outcome.step_time_s);
    }
    played_release(&around);
    played_release(&inside);
}

/*
 * Qwen2.5-0.5B: 24 blocks; five units of a block (the block itself has nothing left, so four
 * gather) against one, forward and backward, and the root. As many bytes in four times the
 * collectives, all at small sizes; more work of the host.
 */
static void test_wrapped_too_fine(void)
{
    struct played fine, block;
    if (played_play(&fine, "cases/wrapped-too-fine", NULL) &&
        played_play(&block, "cases/wrapped-too-fine", "fsdp={wrap: block}")) {
        CHECK_INT(count_gathers(fine.experiment.program), 2 * 24 * 4 + 1);
        CHECK_INT(count_gathers(block.experiment.program), 2 * 24 + 1);
        CHECK_NEAR(fine.outcome.comm_bytes_per_gpu, block.outcome.comm_bytes_per_gpu, 1e-3);
        double alone_s[2] = {0};
        const struct outcome *outcomes[] = {&fine.outcome, &block.outcome};
        for (int k = 0; k < 2; k++)
            for (int32_t i = 0; i < outcomes[k]->collective_count; i++)
                alone_s[k] +=
                    (double)outcomes[k]->collectives[i].count * outcomes[k]->collectives[i].alone_s;
        CHECK_TRUE(alone_s[0] > 1.15 * alone_s[1]);
        /* Unwrapping gives at least the reported 18 %. */
        CHECK_TRUE(fine.outcome.step_time_s > 1.18 * block.outcome.step_time_s);
        CHECK_TEXT(fine.outcome.bottleneck, "host");
    }
    played_release(&fine);
    played_release(&block);
}

/*
 * A GPU's eighth of 6,738,415,616 parameters, in passes of 80 B a parameter, or one of 28, and 12
 * for clipping. Two cores for eight ranks move 2 · 22.3 GB/s.
 */
static void test_states_on_the_host(void)
{
    struct played host, gpu, cores;
    if (played_play(&host, "cases/states-on-the-host", NULL) &&
        played_play(&gpu, "cases/states-on-the-host", "fsdp.cpu_offload=false") &&
        played_play(&cores, "cases/states-on-the-host",
                    "cluster.host.cores=2; train.optimizer.impl=fused")) {
        const double ratio = host.outcome.step_time_s / gpu.outcome.step_time_s;
        CHECK_TRUE(ratio > 3 && ratio < 10);
        CHECK_TRUE(host.outcome.optimizer_s > host.outcome.step_time_s / 2);
        CHECK_NEAR(cores.outcome.optimizer_s, 6738415616.0 * (28 + 12) / (2 * 22.3e9), 0.01);
    }
    played_release(&host);
    played_release(&gpu);
    played_release(&cores);
}

/* Parameters and gradients of 4 B, moments of 8: 16 B of an eighth of 6,738,415,616 on each GPU. */
static void test_explained_on_the_host(void)
{
    struct played host, gpu;
    if (played_play(&host, "cases/states-on-the-host", NULL) &&
        played_play(&gpu, "cases/states-on-the-host", "fsdp.cpu_offload=false")) {
        CHECK_CONTAINS(played_explain(&host, -1),
                       "states on the host: 13.47683 GB of each GPU, 107.8146 GB a host of 8");
        CHECK_TRUE(strstr(played_explain(&gpu, -1), "on the host") == NULL);
    }
    played_release(&host);
    played_release(&gpu);
}

/*
 * Four units, 120 ms a microbatch; one of each host's two costs three times as much, not the same
 * one. Reduced over both hosts in each: 3 + 3 times 120 ms. In the last one only: 1 + 3.
 */
static void test_unlike_microbatches(void)
{
    static const struct {
        const char *overrides;
        double step_s;
    } rows[] = {{"", 0.720},
                {"fsdp.defer_all_reduce=true", 0.480},
                {"simulate.fold=off", 0.720},
                {"simulate.fold=off; fsdp.defer_all_reduce=true", 0.480},
                {"train.microbatch_costs=[]", 0.240},
                {"train.microbatch_costs=[{cost: 2.5}]", 0.600},
                {"train.microbatch_costs=[{microbatch: 1, cost: 2.5}, {cost: 2}]", 0.840},
                /* One GPU of a shard group holds up all, whatever is deferred. */
                {"train.microbatch_costs=[{host: 1, gpu: 3, microbatch: 1, cost: 2.5}]", 0.420}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, "cases/unlike-microbatches", rows[i].overrides))
            CHECK_NEAR(played.outcome.step_time_s, rows[i].step_s, 1e-6);
        played_release(&played);
    }
    check_context(NULL);
}

static void test_unlike_refused(void)
{
    struct played played;
    CHECK_INT(played_load(&played, "cases/unlike-microbatches",
                          "train.microbatch_costs=[{host: 2, gpu: 8, microbatch: 2, cost: 2}, "
                          "{gpu: 1, cost: 2}]"),
              STATUS_INPUT);
    CHECK_INT(played.diag.error_count, 4);
    played_release(&played);
}

const struct check_case cases_policies_cases[] = {
    {"recompute gathers again", test_recompute},
    {"recompute gathers again: exposed", test_recompute_exposed},
    {"wrapped too fine", test_wrapped_too_fine},
    {"states on the host", test_states_on_the_host},
    {"explained: states on the host", test_explained_on_the_host},
    {"unlike microbatches", test_unlike_microbatches},
    {"unlike microbatches: refused", test_unlike_refused},
    {0}};
