/*
 * tests/unit/worked/test_reserved.c: what the caching allocator holds, by hand (fsdp_semantics.md
 * 41, 43, 48, 79, 0.10).
 */
#include <string.h>

#include "worked_tests.h"

static const int64_t mib = INT64_C(1) << 20;

/* Units of 33,554,432 parameters on 8 GPUs: U = 64 MiB in bf16, a shard of 16 MiB in fp32. */
#define UNITS                                                                                      \
    "model={family: abstract, units: [{repeat: 16, parameters: 33554432, forward: 10 ms, "         \
    "backward: 20 ms}]}; cluster=ideal-8x400"

struct forward {
    const struct op *end; /* of forward */
    int64_t most_active, reserved, active;
    bool is_over;
};

static void see(void *context, const struct memory_change *change)
{
    struct forward *forward = context;
    forward->is_over |= change->step > 0 || (change->step == 0 && change->op > forward->end);
    if (forward->is_over)
        return;
    forward->active += change->delta_bytes;
    forward->reserved = change->reserved_bytes;
    if (forward->active > forward->most_active)
        forward->most_active = forward->active;
}

/* Prologue and first forward; false when it was not played. */
static bool play_forward(struct forward *forward, const char *overrides)
{
    struct played played;
    *forward = (struct forward){0};
    bool is_played = played_build(&played, "worked-examples/units-32", overrides);
    if (is_played) {
        const struct program *program = played.experiment.program;
        for (int32_t i = 0; i < program->step.count; i++)
            if (program->step.items[i].kind == OP_MARK &&
                program->step.items[i].index == MARK_FORWARD_END)
                forward->end = &program->step.items[i];
        const struct observer observer = {.context = forward, .memory_changed = see};
        const struct machine_setup setup = {.layout = &played.experiment.layout,
                                            .programs = &program,
                                            .program_count = 1,
                                            .ideal = played.experiment.ideal,
                                            .steps = 1,
                                            .observers = &observer,
                                            .observer_count = 1};
        struct machine_result result;
        is_played =
            CHECK_INT(machine_play(&played.arena, &setup, &result, &played.diag), STATUS_OK);
    }
    played_release(&played);
    return is_played;
}

/*
 * 41, 43: two gather buffers are in the copy-in stream's pool and a set of parameters in compute's:
 * 3 U reserved, where 2 U and the cast shard of 8 MiB (in a segment of 20) are active at once:
 * buffer of the unit before, cast shard, buffer of this one.
 */
static void test_forward(void)
{
    struct forward forward;
    if (!play_forward(&forward, UNITS))
        return;
    CHECK_INT(forward.most_active, (16 * 16 + 2 * 64 + 8) * mib);
    CHECK_INT(forward.reserved, (16 * 16 + 3 * 64 + 20) * mib);
    /* 42: one unit gathered ahead by hand is one buffer more. */
    if (!play_forward(&forward, UNITS "; fsdp.forward_prefetch=1"))
        return;
    CHECK_INT(forward.most_active, (16 * 16 + 3 * 64 + 8) * mib);
    /* 44: all stay gathered. */
    if (!play_forward(&forward, UNITS "; fsdp.reshard_after_forward=false"))
        return;
    CHECK_INT(forward.reserved, (16 * 16 + (16 + 2) * 64 + 20) * mib);
}

/* 45, 0.10: the end of a backward with moments that came at the end of the first step. */
static void test_first_step(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-32", UNITS)) {
        const struct outcome *outcome = &played.outcome;
        CHECK_TRUE(outcome->first_step_peak_active_bytes < outcome->peak_active_bytes);
        CHECK_TRUE(outcome->first_step_peak_reserved_bytes < outcome->peak_reserved_bytes);
        CHECK_TEXT(outcome->peak_phase, "backward");
        int64_t sum = 0;
        for (int32_t i = 0; i < outcome->memory_unit_count; i++)
            sum += outcome->memory_units[i].bytes;
        CHECK_INT(sum, outcome->peak_active_bytes);
        CHECK_TRUE(outcome->peak_time_s >= 0 && outcome->peak_time_s <= outcome->step_time_s);
    }
    played_release(&played);
}

/* 79: without the limiter every gather takes a new block until memory is used up; then the host
   waits, gives segments back (1 ms each to get again here), and goes on. */
static void test_retries(void)
{
    static const char *const common =
        UNITS "; fsdp.api=fsdp1; cluster.host.gpu.memory.total=1800MiB; "
              "simulate.ideal=[copies, contention, optimizer, latency]; "
              "cluster.host.cpu.device_malloc.time=1 ms; simulate.warmup_steps=4; "
              "fsdp.limit_all_gathers=";
    struct played limited, unlimited;
    char overrides[2][512];
    snprintf(overrides[0], sizeof(overrides[0]), "%strue", common);
    snprintf(overrides[1], sizeof(overrides[1]), "%sfalse", common);
    if (played_play(&limited, "worked-examples/units-32", overrides[0]) &&
        played_play(&unlimited, "worked-examples/units-32", overrides[1])) {
        CHECK_TRUE(limited.outcome.fits && unlimited.outcome.fits);
        CHECK_NEAR(limited.outcome.alloc_retries, 0, EXACT);
        CHECK_TRUE(unlimited.outcome.alloc_retries >= 1);
        CHECK_TRUE(unlimited.outcome.alloc_retry_s > 1e-3);
        CHECK_TRUE(unlimited.outcome.step_time_s > limited.outcome.step_time_s + 1e-3);
        CHECK_TRUE(unlimited.outcome.peak_device_bytes <= 1800 * mib);
        CHECK_TRUE(unlimited.outcome.peak_reserved_bytes >
                   limited.outcome.peak_reserved_bytes + 150 * mib);
        CHECK_TRUE(unlimited.outcome.warning_count > 0);
        CHECK_CONTAINS(unlimited.outcome.warnings[0], "times a step");
    }
    played_release(&limited);
    played_release(&unlimited);
}

/* Near the limit two steps with one and with two retries follow each other (1.29 and 1.67 s): a
   step is the mean of whole turns, whenever the count begins; the host never waits longer than a
   step. */
static void test_retries_in_turns(void)
{
    static const char *const warmups[] = {"1", "4", "5", "6", "7"};
    double first_s = 0;
    for (size_t i = 0; i < sizeof(warmups) / sizeof(warmups[0]); i++) {
        char overrides[256];
        snprintf(overrides, sizeof(overrides),
                 "train.activation_checkpointing=none; cluster.host.gpu.memory.total=73320MB; "
                 "simulate.warmup_steps=%s",
                 warmups[i]);
        struct played played;
        if (played_play(&played, "llama3-8b_dgx-h100", overrides)) {
            const struct outcome *outcome = &played.outcome;
            first_s = i == 0 ? outcome->step_time_s : first_s;
            CHECK_NEAR(outcome->step_time_s, first_s, 0.01);
            CHECK_NEAR(outcome->alloc_retries, 1.5, EXACT);
            CHECK_TRUE(outcome->alloc_retry_s < outcome->step_time_s);
            CHECK_NEAR(outcome->compute_s + outcome->exposed_comm_s + outcome->idle_s,
                       outcome->step_time_s, 1e-9);
        }
        played_release(&played);
    }
}

/* What is in force already is not advised. */
static void test_advice(void)
{
    static const struct {
        const char *overrides, *given, *absent;
    } rows[] = {
        {"train.activation_checkpointing=none; cluster.host.gpu.memory.total=73320MB",
         "try train.allocator.expandable_segments: true, activation_checkpointing: full, more GPUs",
         "micro_batch"},
        {"train.activation_checkpointing=none; cluster.host.gpu.memory.total=71300MB; "
         "train.allocator.expandable_segments=true",
         "try activation_checkpointing: full, more GPUs", "expandable"},
        {"train.micro_batch=8", "try a smaller micro_batch, more GPUs", "checkpointing"},
        {"cluster.host.gpu.memory.total=33GB", "try more GPUs", "micro_batch"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_play(&played, "llama3-8b_dgx-h100", rows[i].overrides) &&
            CHECK_TRUE(played.outcome.warning_count > 0)) {
            CHECK_CONTAINS(played.outcome.warnings[0], rows[i].given);
            CHECK_TRUE(strstr(played.outcome.warnings[0], rows[i].absent) == NULL);
        }
        played_release(&played);
    }
}

/* No retry helps: it does not fit, and nothing is charged. */
static void test_too_small(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-32",
                    UNITS "; cluster.host.gpu.memory.total=600MiB")) {
        CHECK_TRUE(!played.outcome.fits);
        CHECK_NEAR(played.outcome.alloc_retries, 0, EXACT);
        CHECK_INT(played.outcome.memory_over_bytes, played.outcome.peak_device_bytes - 600 * mib);
    }
    played_release(&played);
}

const struct check_case reserved_cases[] = {{"forward", test_forward},
                                            {"first step", test_first_step},
                                            {"retries", test_retries},
                                            {"retries in turns", test_retries_in_turns},
                                            {"advice on memory", test_advice},
                                            {"too small", test_too_small},
                                            {0}};
