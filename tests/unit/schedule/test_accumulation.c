/*
 * tests/unit/schedule/test_accumulation.c: several microbatches a step: what is reduced, gathered,
 * kept. Numbers in comments: statements of docs/fsdp2.md and docs/fsdp1.md.
 *
 * Four units of U parameters, P = 4 U, on 8 GPUs; times on the machine of units-32: forward 10,
 * backward 20, gather = scatter = 15 ms.
 */
#include <string.h>

#include "schedule_tests.h"

enum { U = 1000000, P = 4 * U };
#define UNITS_32 "worked-examples/units-32"
#define EIGHT_GPUS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 1000000, forward: 10 ms, "           \
    "backward: 20 ms}]}; cluster=ideal-400; train.grad_accum=3; "                                  \
    "train.precision={param_dtype: bf16, reduce_dtype: fp32, storage_dtype: bf16}; "

/* Bytes / (P · 7/8): a gather is 2, a scatter 4. */
static void test_volume(void)
{
    static const struct {
        const char *overrides;
        double passes;
    } rows[] = {
        {"fsdp={}", 3 * (2 * 2 + 4)},
        {"fsdp.requires_gradient_sync=last", 3 * 2 * 2 + 4},
        {"fsdp.reshard_after_forward=false", 3 * (2 + 4)},
        /* 54: what backward leaves, the next forward need not gather. */
        {"fsdp.reshard_after_backward=last", (2 + 1 + 1) * 2 + 3 * 4},
        {"fsdp={reshard_after_backward: last, reshard_after_forward: false}", 2 + 3 * 4},
        {"fsdp={reshard_after_backward: last, reshard_after_forward: false, "
         "requires_gradient_sync: last}",
         2 + 4},
        /* 55: the order of forwards is kept, so a first unit prefetches the last one of the
           microbatch before: once used by the next forward, once dropped at the end. */
        {"fsdp.is_last_backward=last", 3 * (2 * 2 + 4) + 2 / 4.0},
        {"fsdp={api: fsdp1}", 3 * (2 * 2 + 4)},
        {"fsdp={api: fsdp1, requires_gradient_sync: last}", 3 * 2 * 2 + 4},
        /* 86: kept from microbatch to microbatch. */
        {"fsdp={api: fsdp1, sharding_strategy: shard_grad_op, requires_gradient_sync: last}",
         2 + 4},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), EIGHT_GPUS "%s", rows[i].overrides);
        check_context("%s", overrides);
        if (played_play(&played, UNITS_32, overrides)) {
            CHECK_NEAR(played.outcome.comm_bytes_per_gpu, rows[i].passes * P * 7 / 8, 1e-12);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* The most bytes of tensors named so alive at once, and those alive where a mark stands. */
struct alive {
    double most, at_second_forward;
};

static struct alive count_alive(const struct program *program, const char *name)
{
    struct alive alive = {0};
    double now = 0;
    int32_t forwards = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind == OP_MARK && op->index == MARK_FORWARD_BEGIN && ++forwards == 2)
            alive.at_second_forward = now;
        if (op->kind != OP_ALLOC && op->kind != OP_FREE)
            continue;
        const struct tensor *tensor = &program->tensors.items[op->index];
        if (strncmp(tensor->name, name, strlen(name)) != 0)
            continue;
        now += (op->kind == OP_ALLOC ? 1 : -1) * (double)tensor->bytes;
        alive.most = now > alive.most ? now : alive.most;
    }
    return alive;
}

/* 53: P · B_r, whether cast or not; 86: P · B_p; 54: P · B_p of parameters. */
static void test_memory(void)
{
    static const struct {
        const char *overrides, *tensor;
        double most, between; /* bytes / P */
    } rows[] = {
        {"fsdp={}", "accumulated_grads", 0, 0},
        {"fsdp.requires_gradient_sync=last", "accumulated_grads", 4, 4},
        {"fsdp.requires_gradient_sync=last", "reduce_scatter_input", 1, 0},
        {"fsdp.requires_gradient_sync=last; train.precision.reduce_dtype=bf16", "accumulated_grads",
         2, 2},
        {"fsdp={api: fsdp1, requires_gradient_sync: last}", "accumulated_grads", 2, 2},
        {"fsdp.reshard_after_backward=last", "params", 2, 2},
        {"fsdp={api: fsdp1, sharding_strategy: shard_grad_op, requires_gradient_sync: last}",
         "flat_params", 2, 2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), EIGHT_GPUS "%s", rows[i].overrides);
        check_context("%s %s", overrides, rows[i].tensor);
        if (played_build(&played, UNITS_32, overrides)) {
            const struct alive alive = count_alive(played.experiment.program, rows[i].tensor);
            CHECK_NEAR(1 + alive.most / P, 1 + rows[i].most, 1e-12);
            CHECK_NEAR(1 + alive.at_second_forward / P, 1 + rows[i].between, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/*
 * Two microbatches. Forward: 15 a gather, the last unit computes behind it: 70. Backward: the
 * gather of the last unit ends 5 behind that.
 *   with scatters: 5 + 20, then gather and scatter share the wire: 5 + 20 + 15 + 4·15 + 15 ... as a
 *   list of ends: B3 95, S3 110, G1 125, S2 140, G0 155, S1 170, B0 175, S0 190.
 *   without: 75, then 20 a unit: 155.
 * Parameters kept between microbatches: the second forward is 40; its last unit's second gather
 *   runs meanwhile, so backward begins at once: 155 + 40, B3 215, S3 230, G1 245, S2 260, G0 275,
 *   S1 290, B0 295, S0 310. Kept from forward to backward too: 70 + 80 + 40, then B3 210, B2 230,
 *   B1 250, B0 270, S0 285.
 */
static void test_time(void)
{
    static const struct {
        const char *overrides;
        double step_ms;
    } rows[] = {
        {"fsdp={}", 2 * 190},
        {"fsdp.requires_gradient_sync=last", 155 + 190},
        {"fsdp={requires_gradient_sync: last, reshard_after_backward: last}", 310},
        {"fsdp={requires_gradient_sync: last, reshard_after_backward: last, "
         "reshard_after_forward: false}",
         285},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides),
                 "model={family: abstract, units: [{repeat: 4, parameters: 15000000, forward: 10 "
                 "ms, backward: 20 ms}]}; train.grad_accum=2; "
                 "train.precision.storage_dtype=bf16; simulate.ideal=[host, copies, contention, "
                 "optimizer, latency]; %s",
                 rows[i].overrides);
        check_context("%s", rows[i].overrides);
        if (played_play(&played, UNITS_32, overrides))
            CHECK_NEAR(1e3 * played.outcome.step_time_s, rows[i].step_ms, 1e-4);
        played_release(&played);
    }
    check_context(NULL);
}

/* 30a, 30b: cast and kept; added to; copied in from there. In reduce_dtype nothing is cast. */
static void test_order(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32,
                          EIGHT_GPUS "fsdp.requires_gradient_sync=last")) {
        static const char *const wanted[] = {
            "host: free params(units.3)",
            "host: alloc accumulated_grads(units.3)",
            "compute: segment keep_grads(units.3)",
            "host: free grads(units.3)",
            "compute: segment add_grads(units.3)",
            "host: free grads(units.3)",
            "host: free params(units.3)",
            "compute: segment add_grads(units.3)",
            "host: free grads(units.3)",
            "host: alloc reduce_scatter_input(units.3)",
            "compute: segment chunk_cat_kept(units.3)",
            "host: free accumulated_grads(units.3)",
            "reduce-scatter: reduce_scatter bytes=4000000 on dp_shard",
            NULL};
        program_text_check_order(&text, program_text_find(&text, 0, "compute: mark forward_end"),
                                 wanted);
        CHECK_INT(program_text_count(&text, "reduce-scatter: reduce_scatter"), 4);
        /* Cast 2 + 4, sum 4 + 2 + 4, copy 4 + 4 B an element. */
        CHECK_CONTAINS(text.whole, "kernel keep_grads(units.3) cast fp32 flop=0 bytes=6000000\n");
        CHECK_CONTAINS(text.whole,
                       "kernel add_grads(units.3) elementwise fp32 flop=0 bytes=10000000\n");
        CHECK_CONTAINS(text.whole,
                       "kernel chunk_cat_kept(units.3) chunk_cat fp32 flop=0 bytes=8000000\n");
    }
    played_release(&played);
    if (program_text_read(&text, &played, UNITS_32,
                          EIGHT_GPUS "fsdp.requires_gradient_sync=last; "
                                     "train.precision.reduce_dtype=bf16"))
        CHECK_INT(program_text_count(&text, "compute: segment keep_grads(units.3)"), 0);
    played_release(&played);
}

/* 55: compute waits for a reduction where the next one of the unit begins, and at the end: 4 + 4 +
   4; else also at the end of every backward. */
static void test_is_last_backward(void)
{
    static const struct {
        const char *overrides;
        int32_t waits;
    } rows[] = {{EIGHT_GPUS, 20}, {EIGHT_GPUS "fsdp.is_last_backward=last", 12}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct program_text text;
        int32_t waits = 0;
        if (program_text_read(&text, &played, UNITS_32, rows[i].overrides))
            for (int32_t k = 0; k < text.count; k++)
                waits += strstr(text.lines[k], "wait post_reduced(") != NULL;
        CHECK_INT(waits, rows[i].waits);
        played_release(&played);
    }
}

const struct check_case accumulation_cases[] = {{"53-55, 86: bytes on the wire", test_volume},
                                                {"53, 54, 86: memory", test_memory},
                                                {"53, 54: time", test_time},
                                                {"30a, 30b: order", test_order},
                                                {"55: waits", test_is_last_backward},
                                                {0}};
