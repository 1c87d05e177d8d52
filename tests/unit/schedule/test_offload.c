/*
 * tests/unit/schedule/test_offload.c: states on the host. Numbers in comments: statements of
 * docs/fsdp2.md and docs/fsdp1.md.
 *
 * Four units of 1e6 parameters, forward 10 and backward 20 ms each, on 8 GPUs of a host.
 */
#include <string.h>

#include "schedule_tests.h"

#define UNITS_32 "worked-examples/units-32"
#define EIGHT_GPUS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 1000000, forward: 10 ms, "           \
    "backward: 20 ms}]}; cluster=ideal-400; cluster.host.copy_link=pcie4; "                        \
    "cluster.host.copy_link.bandwidth=1 GB/s; cluster.host.copy_link.copy_efficiency=1; "          \
    "train.precision={param_dtype: bf16, reduce_dtype: fp32, storage_dtype: fp32}; "

enum { P = 4000000, RANKS = 8 };

/* 14, 57: before the gather the shard comes in, is cast and dies; the gradient leaves and dies; the
   host waits for it behind all reductions. */
static void test_fsdp2_program(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "fsdp.cpu_offload=true")) {
        static const char *const unshard[] = {"host: alloc device_shard(layers.0)",
                                              "all-gather copy-in: copy h2d",
                                              "all-gather copy-in: record copied_in(layers.0)",
                                              "host: alloc cast(layers.0)",
                                              "host: alloc all_gather_buffer(layers.0)",
                                              "all-gather copy-in: segment copy_in(layers.0)",
                                              "host: free cast(layers.0)",
                                              "host: free device_shard(layers.0)",
                                              "all-gather copy-in: record copied_in(layers.0)",
                                              NULL};
        static const char *const reduce[] = {"reduce-scatter: reduce_scatter",
                                             "reduce-scatter: record reduced(layers.0)",
                                             "reduce-scatter: copy d2h",
                                             "reduce-scatter: record gradient_offloaded(layers.0)",
                                             "host: free sharded_grads(layers.0)",
                                             "reduce-scatter: record post_reduced(layers.0)",
                                             NULL};
        static const char *const end[] = {"compute: wait post_reduced(layers.0)",
                                          "host: host_wait gradient_offloaded(layers.0)",
                                          "compute: wait post_reduced(layers.1)",
                                          "host: host_wait gradient_offloaded(layers.1)",
                                          "compute: mark backward_end",
                                          "host: host_compute fused",
                                          "compute: mark step_end",
                                          NULL};
        program_text_check_block(&text, 0, unshard);
        program_text_check_block(
            &text, program_text_find(&text, 0, "reduce-scatter: record reduced(layers.0)"),
            reduce + 1);
        program_text_check_order(&text, 0, end);
        CHECK_TRUE(strstr(text.whole, "adam_moments") == NULL);
        CHECK_TRUE(strstr(text.whole, " shard(") == NULL);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
}

/* 57: not pinned, the host waits for every copy; a later microbatch is added on the host, into
   pageable memory whatever the policy says: 3 fp32 operands of a shard. */
static void test_fsdp2_waits(void)
{
    static const struct {
        const char *overrides;
        int32_t pageable_in, pageable_out, sums;
    } rows[] = {
        {"fsdp.cpu_offload={pin_memory: true}", 0, 0, 0},
        {"fsdp.cpu_offload={pin_memory: false}", 8, 4, 0},
        {"fsdp.cpu_offload=true; train.grad_accum=3", 0, 2 * 4, 2 * 4},
        {"fsdp.cpu_offload=true; train.grad_accum=3; fsdp.requires_gradient_sync=last", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct program_text text;
        char overrides[768], sum[64];
        snprintf(overrides, sizeof(overrides), EIGHT_GPUS "%s", rows[i].overrides);
        snprintf(sum, sizeof(sum), "host: host_compute fused bytes=%d", 3 * 4 * P / 4 / RANKS);
        check_context("%s", rows[i].overrides);
        if (program_text_read(&text, &played, UNITS_32, overrides)) {
            CHECK_INT(program_text_count(&text, "all-gather copy-in: copy h2d-pageable"),
                      rows[i].pageable_in);
            CHECK_INT(program_text_count(&text, "reduce-scatter: copy d2h-pageable"),
                      rows[i].pageable_out);
            CHECK_INT(program_text_count(&text, sum), rows[i].sums);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 85: all of it on the post-backward stream, gradients on the GPU until the host has waited. */
static void test_fsdp1_program(void)
{
    struct played played;
    struct program_text text;
    char overrides[768];
    snprintf(overrides, sizeof(overrides), EIGHT_GPUS "fsdp={api: fsdp1, cpu_offload: true}");
    if (program_text_read(&text, &played, UNITS_32, overrides)) {
        static const char *const end[] = {"compute: wait post_backward_done(root)",
                                          "compute: record gradients_offloaded(root)",
                                          "host: host_wait gradients_offloaded(root)", NULL};
        static const char *const unshard[] = {
            "host: alloc device_shard(units.0)", "pre-unshard: copy h2d",
            "pre-unshard: segment cast_shard(units.0)", "host: free device_shard(units.0)", NULL};
        const int32_t waited =
            program_text_check_block(&text, program_text_find(&text, 0, end[0]), end);
        CHECK_INT(program_text_count(&text, "post-backward: copy d2h"), 4);
        CHECK_TRUE(program_text_find(&text, 0, "host: free sharded_grads(units.0)") >= waited);
        program_text_check_order(&text, 0, unshard);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
}

/* Nothing of the states is on the GPU, 16 B a parameter on the host. */
static void test_memory(void)
{
    static const char *const apis[] = {"fsdp={api: fsdp2, cpu_offload: true}",
                                       "fsdp={api: fsdp1, cpu_offload: true}"};
    for (size_t i = 0; i < sizeof(apis) / sizeof(apis[0]); i++) {
        struct played played;
        char overrides[768];
        snprintf(overrides, sizeof(overrides), EIGHT_GPUS "cluster.host.memory=50 MB; %s", apis[i]);
        check_context("%s", apis[i]);
        if (played_play(&played, UNITS_32, overrides)) {
            const struct outcome *outcome = &played.outcome;
            CHECK_INT(outcome->peak_composition[MEMORY_PARAMETERS], 0);
            CHECK_INT(outcome->peak_composition[MEMORY_OPTIMIZER], 0);
            CHECK_INT(outcome->peak_host_bytes, 16 * P);
            CHECK_INT(outcome->host_memory_bytes, 50000000);
            CHECK_TRUE(!outcome->fits);
            CHECK_INT(outcome->memory_over_bytes, 0);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/*
 * Two processors of 10 cores and 100 GB/s, eight ranks: fused at the whole of it 25 GB/s a rank,
 * passes at half 12.5, one thread 10; an update of 0.5e6 parameters moves 28 or 80 B each, the norm
 * and clipping 12. A core a host: 1.25 GB/s a rank.
 */
static void test_update_time(void)
{
    static const struct {
        const char *overrides;
        double expected_ms;
    } rows[] = {
        {"train.max_grad_norm=0", 0.5 * 28 / 25},
        {"train.max_grad_norm=1", 0.5 * 40 / 25},
        {"train.max_grad_norm=0; train.optimizer={impl: forloop}", 0.5 * 80 / 12.5},
        {"train.max_grad_norm=0; train.optimizer={omp_num_threads: 1}", 0.5 * 28 / 10},
        {"train.max_grad_norm=0; train.optimizer={omp_num_threads: 64}", 0.5 * 28 / 25},
        {"train.max_grad_norm=0; cluster.host.cores=1", 0.5 * 28 / 1.25},
        {"train.max_grad_norm=0; cluster.host.memory_bandwidth=80 GB/s", 0.5 * 28 / 10},
    };
    static const char *const apis[] = {"fsdp2", "fsdp1"};
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[768];
        snprintf(overrides, sizeof(overrides),
                 EIGHT_GPUS "fsdp={api: %s, cpu_offload: true}; simulate.ideal=[host, copies]; %s",
                 apis[i % 2], rows[i / 2].overrides);
        check_context("%s", overrides);
        if (played_play(&played, UNITS_32, overrides))
            CHECK_NEAR(played.outcome.optimizer_s, rows[i / 2].expected_ms * 1e-3, 1e-6);
        played_release(&played);
    }
    check_context(NULL);
}

/* A link of 1 GB/s: a shard of 0.5 MB takes 0.5 ms. The first of a forward is exposed, the others
   come while units compute. */
static void test_copies_take_time(void)
{
    static const char *const ways[] = {"fsdp.cpu_offload=false", "fsdp.cpu_offload=true"};
    double forward_s[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct played played;
        char overrides[768];
        snprintf(overrides, sizeof(overrides),
                 EIGHT_GPUS "simulate.ideal=[host, copies, optimizer]; %s", ways[i]);
        if (played_play(&played, UNITS_32, overrides))
            forward_s[i] = played.outcome.forward_s;
        played_release(&played);
    }
    CHECK_NEAR(forward_s[1] - forward_s[0], 0.5e-3, 1e-9);
}

const struct check_case offload_cases[] = {{"14, 57: fsdp2", test_fsdp2_program},
                                           {"57: the host waits", test_fsdp2_waits},
                                           {"85: fsdp1", test_fsdp1_program},
                                           {"memory", test_memory},
                                           {"the update", test_update_time},
                                           {"copies take time", test_copies_take_time},
                                           {0}};
