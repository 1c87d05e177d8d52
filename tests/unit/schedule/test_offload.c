/*
 * tests/unit/schedule/test_offload.c: states on the host. Numbers in comments: statements of
 * docs/fsdp2.md and docs/fsdp1.md.
 *
 * Four units of 1e6 parameters, forward 10 and backward 20 ms each, on 8 GPUs of a host.
 */
#include <string.h>

#include "run/estimate.h"
#include "schedule_tests.h"

#define UNITS_32 "worked-examples/units-32"
#define EIGHT_GPUS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 1000000, forward: 10 ms, "           \
    "backward: 20 ms}]}; cluster=ideal-400; cluster.host.copy_link=pcie4; "                        \
    "cluster.host.copy_link.bandwidth=1 GB/s; cluster.host.copy_link.copy_efficiency=1; "          \
    "train.precision={param_dtype: bf16, reduce_dtype: fp32, storage_dtype: fp32}; "

#define ZERO_GPUS                                                                                  \
    "model={family: abstract, units: [{repeat: 4, parameters: 1000000, forward: 10 ms, "           \
    "backward: 20 ms}]}; cluster=ideal-400; cluster.host.copy_link=pcie4; "                        \
    "cluster.host.copy_link.bandwidth=1 GB/s; cluster.host.copy_link.copy_efficiency=1; "          \
    "train.precision={param_dtype: bf16}; "

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

/* Bytes of a step, to the GPU, to the host, and computed on the host. */
struct moved {
    double up, down, computed;
};

static struct moved count_moved(const struct program *program)
{
    struct moved moved = {0};
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind == OP_HOST_COMPUTE)
            moved.computed += (double)op->bytes;
        if (op->kind == OP_COPY)
            *(copy_is_to_gpu((enum copy_kind)op->index) ? &moved.up : &moved.down) +=
                (double)op->bytes;
    }
    return moved;
}

/*
 * DeepSpeed, p = P / 8 in bf16. Down: 4 p in fp32 behind the last microbatch; sums of stage 2 from
 * the second on go 2 p up and down, stage 3's first also. Up: the master copy, 4 p; offloaded
 * parameters instead 2 p for each of two gathers of a parameter. On the host: scale 8, update 28,
 * and cast 6 where parameters are there.
 */
static void test_zero_moves(void)
{
    static const struct {
        const char *overrides;
        struct moved each; /* bytes / p */
        double host;       /* bytes / P kept there */
    } rows[] = {
        {"fsdp.api=zero1; zero.offload_optimizer=cpu", {4, 4, 36}, 16},
        {"fsdp.api=zero1; zero.offload_optimizer=cpu; train.grad_accum=3", {4, 4, 36}, 16},
        {"fsdp.api=zero2; zero.offload_optimizer=cpu", {4, 4, 36}, 16},
        {"fsdp.api=zero2; zero={offload_optimizer: cpu, overlap_comm: true}", {4, 4, 36}, 16},
        {"fsdp.api=zero2; zero.offload_optimizer=cpu; train.grad_accum=3",
         {2 + 2 + 4, 2 + 2 + 4, 36},
         18},
        {"fsdp.api=zero3; zero.offload_optimizer=cpu", {2 + 4, 2 + 4, 36}, 18},
        {"fsdp.api=zero3; zero.offload_optimizer=cpu; train.grad_accum=3",
         {3 * 2 + 4, 3 * 2 + 4, 36},
         18},
        {"fsdp.api=zero3; zero={offload_optimizer: cpu, offload_param: cpu, max_reuse_distance: 0}",
         {2 + 2 * 2, 2 + 4, 36 + 6},
         20},
        {"fsdp.api=zero3; zero={offload_param: cpu, max_reuse_distance: 0}", {2 * 2, 2, 0}, 2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[768];
        snprintf(overrides, sizeof(overrides), ZERO_GPUS "%s", rows[i].overrides);
        check_context("%s", rows[i].overrides);
        if (played_play(&played, UNITS_32, overrides)) {
            const struct moved moved = count_moved(played.experiment.program);
            CHECK_NEAR(moved.up * RANKS / P, rows[i].each.up, 1e-12);
            CHECK_NEAR(moved.down * RANKS / P, rows[i].each.down, 1e-12);
            CHECK_NEAR(1 + moved.computed * RANKS / P, 1 + rows[i].each.computed, 1e-12);
            CHECK_NEAR((double)played.outcome.peak_host_bytes / P, rows[i].host, 1e-12);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 36 B of 0.5e6 elements at 25 GB/s, 2 MB over 1 GB/s, 8 MB of parameters gathered at 400 GB/s. */
static void test_zero_update_time(void)
{
    struct played played;
    if (played_play(&played, UNITS_32,
                    ZERO_GPUS "fsdp.api=zero2; zero.offload_optimizer=cpu; "
                              "simulate.ideal=[host, copies]"))
        CHECK_NEAR(played.outcome.optimizer_s, 0.72e-3 + 2e-3 + 8e6 * 7 / 8 / 400e9, 1e-6);
    played_release(&played);
}

/* `memory`: example G, 3e9 parameters of 2 + 2 + 12 B on 8 GPUs: what stays on a GPU, and what a
   GPU keeps on its host; DeepSpeed has gradients there in fp32. */
static void test_estimate(void)
{
    static const struct {
        const char *overrides;
        int stage;
        double gpu, host; /* bytes a parameter */
    } rows[] = {
        {"fsdp={api: zero1}; zero.offload_optimizer=cpu", STAGE_ZERO1, 2 + 2, (12 + 4) / 8.0},
        {"fsdp={api: zero2}; zero.offload_optimizer=cpu", STAGE_ZERO2, 2, (12 + 4) / 8.0},
        {"fsdp={api: zero3}; zero.offload_optimizer=cpu", STAGE_ZERO3, 2 / 8.0, (12 + 4) / 8.0},
        {"fsdp={api: zero3}; zero={offload_optimizer: cpu, offload_param: cpu}", STAGE_ZERO3, 0,
         (12 + 4 + 2) / 8.0},
        {"fsdp={api: zero3}; zero={offload_param: cpu}", STAGE_ZERO3, (2 + 12) / 8.0, 2 / 8.0},
        {"fsdp={api: zero3}; zero={offload_param: cpu}", STAGE_ZERO2, 2 + 14 / 8.0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct estimate estimate;
        check_context("%s", rows[i].overrides);
        if (CHECK_INT(played_load(&played, "worked-examples/g", rows[i].overrides), STATUS_OK) &&
            CHECK_INT(estimate_memory(&played.experiment, 0, false, &estimate), STATUS_OK)) {
            const struct estimate_row *row = &estimate.rows[rows[i].stage];
            CHECK_NEAR(1 + row->states_bytes / 3e9, 1 + rows[i].gpu, 1e-12);
            CHECK_NEAR(1 + row->host_bytes / 3e9, 1 + rows[i].host, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

const struct check_case offload_cases[] = {
    {"14, 57: fsdp2", test_fsdp2_program},     {"57: the host waits", test_fsdp2_waits},
    {"85: fsdp1", test_fsdp1_program},         {"memory", test_memory},
    {"the update", test_update_time},          {"copies take time", test_copies_take_time},
    {"zero: what moves", test_zero_moves},     {"zero: the update", test_zero_update_time},
    {"memory, without events", test_estimate}, {0}};
