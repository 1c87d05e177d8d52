/* tests/property/run/test_same.c: what may not change a run, and which way it may change. */
#include <string.h>

#include "property_tests.h"

static const char *const runs[][2] = {
    {"llama3-8b_dgx-h100", "nodes=4"},
    {"llama3-8b_dgx-h100-25gbe", "train.grad_accum=2"},
    {"llama3-8b_dgx-h100", "fsdp.reshard_after_forward=false; fsdp.wrap=block; nodes=1"},
    {"llama3-8b_dgx-h100", "nodes=2; cluster.overrides=[{host: 1, gpu: 6, clock_frac: 0.77}]"},
    {TWO_BLOCKS, "train.grad_accum=3; simulate.steps=2"},
    {"worked-examples/reduce-buffers", "fsdp.reduce_scatter_buffers=2"},
    {"worked-examples/units-32", "fsdp.separate_reduce_scatter_communicator=true"},
    {"worked-examples/crosscheck-8", "simulate.network=messages"},
    {"llama3-8b_dgx-h100", "fsdp={api: ddp}; nodes=2; train.precision.storage_dtype=fp32"},
    {"llama3-8b_dgx-h100", "fsdp={api: zero2}; train.precision={param_dtype: bf16}; nodes=2; "
                           "zero.overlap_comm=true"},
    {"llama3-8b_dgx-h100", "fsdp={api: zero3}; train.precision={param_dtype: bf16}; nodes=2; "
                           "cluster.overrides=[{host: 1, gpu: 6, clock_frac: 0.77}]"},
};
enum { RUNS = sizeof(runs) / sizeof(runs[0]) };

/* Same input, same bytes. */
static void test_twice(void)
{
    for (int i = 0; i < RUNS; i++) {
        struct played first, second;
        if (played_play(&first, runs[i][0], runs[i][1]) &&
            played_play(&second, runs[i][0], runs[i][1])) {
            check_context("%s %s", runs[i][0], runs[i][1]);
            CHECK_U64(second.outcome.fingerprint, first.outcome.fingerprint);
            CHECK_TEXT(played_json(&second), played_json(&first));
            check_context(NULL);
            played_release(&second);
        }
        played_release(&first);
    }
}

/* Played again from one program: nothing of the first run is left in it. */
static void test_replayed(void)
{
    for (int i = 0; i < RUNS; i++) {
        struct played played;
        if (played_play(&played, runs[i][0], runs[i][1])) {
            const struct outcome first = played.outcome;
            check_context("%s %s", runs[i][0], runs[i][1]);
            CHECK_INT(experiment_play(&played.experiment, &played.outcome), STATUS_OK);
            CHECK_U64(played.outcome.fingerprint, first.fingerprint);
            check_same_metrics(&first, &played.outcome);
            check_context(NULL);
        }
        played_release(&played);
    }
}

/* Ties permuted: the order of what happens at one instant decides nothing. */
static void test_ties(void)
{
    for (int i = 0; i < RUNS; i++) {
        for (uint64_t tie_seed = 1; tie_seed <= 5; tie_seed++) {
            struct played plain, permuted;
            if (!played_play(&plain, runs[i][0], runs[i][1])) {
                played_release(&plain);
                break;
            }
            if (played_build(&permuted, runs[i][0], runs[i][1])) {
                permuted.experiment.tie_seed = tie_seed;
                CHECK_INT(experiment_play(&permuted.experiment, &permuted.outcome), STATUS_OK);
                check_context("%s %s, ties by %d", runs[i][0], runs[i][1], (int)tie_seed);
                CHECK_NEAR(permuted.outcome.step_time_s, plain.outcome.step_time_s, 1e-12);
                CHECK_INT(permuted.outcome.peak_device_bytes, plain.outcome.peak_device_bytes);
                CHECK_INT(permuted.outcome.peak_active_bytes, plain.outcome.peak_active_bytes);
                check_context(NULL);
            }
            played_release(&permuted);
            played_release(&plain);
        }
    }
}

static void look_begin(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                       const struct op *op, double copy_frac)
{
    (void)now_ps;
    (void)class_idx;
    (void)kind;
    (void)op;
    (void)copy_frac;
    ++*(int64_t *)context;
}

static void look_mark(void *context, int64_t now_ps, int32_t class_idx, int32_t step,
                      enum mark mark)
{
    (void)now_ps;
    (void)class_idx;
    (void)step;
    (void)mark;
    ++*(int64_t *)context;
}

static void look_use(void *context, int64_t now_ps, int32_t resource, double amount,
                     int64_t busy_ps)
{
    (void)now_ps;
    (void)resource;
    (void)amount;
    (void)busy_ps;
    ++*(int64_t *)context;
}

static void look_memory(void *context, const struct memory_change *change)
{
    (void)change;
    ++*(int64_t *)context;
}

/* No observer, some, many: the same run. */
static void test_observers(void)
{
    for (int i = 0; i < RUNS; i++) {
        struct played played;
        if (played_play(&played, runs[i][0], runs[i][1])) {
            struct experiment *experiment = &played.experiment;
            const struct program *program = experiment->program;
            int64_t seen = 0;
            const struct observer observers[] = {
                {.context = &seen, .activity_begin = look_begin},
                {.context = &seen, .mark_reached = look_mark, .resource_used = look_use},
                {.context = &seen, .memory_changed = look_memory}};
            struct machine_setup setup = {
                .layout = &experiment->layout,
                .programs = &program,
                .program_count = 1,
                .network = (enum network_mode)experiment->simulate.network,
                .ideal = experiment->ideal,
                .steps = (int32_t)(experiment->simulate.warmup_steps + experiment->simulate.steps),
                .observers = observers};
            check_context("%s %s", runs[i][0], runs[i][1]);
            for (int32_t count = 0; count <= 3; count++) {
                struct machine_result result;
                setup.observer_count = count;
                CHECK_INT(machine_play(&played.arena, &setup, &result, &played.diag), STATUS_OK);
                CHECK_U64(result.fingerprint, played.outcome.fingerprint);
                CHECK_INT(result.events, played.outcome.events);
            }
            CHECK_TRUE(seen > 0);
            check_context(NULL);
        }
        played_release(&played);
    }
}

static double step_time(const char *config, const char *overrides)
{
    struct played played;
    double step_time_s = -1;
    if (played_play(&played, config, overrides))
        step_time_s = played.outcome.step_time_s;
    played_release(&played);
    return step_time_s;
}

/* One communicator, no contention: a faster link only brings every operation forward. */
static void test_bandwidth(void)
{
    static const struct {
        const char *config, *overrides, *key, *unit;
    } rows[] = {
        {"worked-examples/units-32", "", "cluster.host.scale_up.bandwidth", "MB/s"},
        {"worked-examples/units-3", "", "cluster.host.scale_up.bandwidth", "MB/s"},
        {"worked-examples/reduce-buffers", "", "cluster.host.scale_up.bandwidth", "MB/s"},
        {"worked-examples/crosscheck-64", "", "cluster.host.nics.bandwidth", "GB/s"},
        {"llama3-8b_dgx-h100-25gbe", "simulate.ideal=[contention]", "cluster.host.nics.bandwidth",
         "Gbps"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double before_s = 1e300;
        for (int rate = 7; rate < 30000; rate = rate * 3 / 2 + 1) {
            char overrides[160];
            snprintf(overrides, sizeof(overrides), "%s; %s=%d %s", rows[i].overrides, rows[i].key,
                     rate, rows[i].unit);
            const double now_s = step_time(rows[i].config, overrides);
            check_context("%s at %d %s", rows[i].config, rate, rows[i].unit);
            CHECK_TRUE(now_s > 0 && now_s <= before_s * (1 + 1e-12));
            before_s = now_s;
        }
        check_context(NULL);
    }
}

/* A faster GPU, a faster host, fewer losses are never slower either. */
static void test_losses(void)
{
    static const char *const words[] = {"host", "copies", "optimizer", "latency", "contention"};
    const double all_s = step_time("llama3-8b_dgx-h100", "nodes=2");
    const double none_s =
        step_time("llama3-8b_dgx-h100",
                  "nodes=2; simulate.ideal=[host, copies, optimizer, latency, contention]");
    for (int i = 0; i < 5; i++) {
        char overrides[96];
        snprintf(overrides, sizeof(overrides), "nodes=2; simulate.ideal=[%s]", words[i]);
        const double one_s = step_time("llama3-8b_dgx-h100", overrides);
        check_context("%s", words[i]);
        CHECK_TRUE(one_s <= all_s * (1 + 1e-12));
        CHECK_TRUE(one_s >= none_s * (1 - 1e-12));
        check_context(NULL);
    }
}

/* A homogeneous cluster costs the same number of events at any size. */
static void test_events_at_any_size(void)
{
    int64_t events[2] = {0};
    static const char *const nodes[] = {"nodes=2", "nodes=1024"};
    for (int i = 0; i < 2; i++) {
        struct played played;
        if (played_play(&played, "worked-examples/crosscheck-64", nodes[i]))
            events[i] = played.outcome.events;
        played_release(&played);
    }
    CHECK_INT(events[1], events[0]);
}

const struct check_case same_cases[] = {{"twice", test_twice},
                                        {"one program played twice", test_replayed},
                                        {"ties permuted", test_ties},
                                        {"observers", test_observers},
                                        {"more bandwidth", test_bandwidth},
                                        {"fewer losses", test_losses},
                                        {"events at any size", test_events_at_any_size},
                                        {0}};
