/* tests/unit/worked/test_engine.c: the schedule's own figures, on machines without losses. */
#include "worked_tests.h"

/* 10 ms for the first gather, then 3 x 25; backward gathers were queued ahead: 3 x 50 + 10. */
static void test_three_units(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-3", NULL)) {
        CHECK_NEAR(played.outcome.forward_s, 0.085, EXACT);
        CHECK_NEAR(played.outcome.backward_s, 0.160, EXACT);
        CHECK_TRUE(played.outcome.backward_s <= 0.170);
        CHECK_NEAR(played.outcome.step_time_s, 0.245, EXACT);
    }
    played_release(&played);
}

struct steady {
    const char *config, *overrides;
    double forward_s, backward_s; /* a unit */
};

/* What 32 units more add, so that beginning and end drop out. */
static void check_steady(const struct steady *row)
{
    double forward_s[2] = {0}, backward_s[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct played played;
        char overrides[160];
        snprintf(overrides, sizeof(overrides), "model.repeat=%d; %s", i + 1, row->overrides);
        if (played_play(&played, row->config, overrides)) {
            CHECK_INT(played.outcome.unit_count, 32 * (i + 1));
            forward_s[i] = played.outcome.forward_s;
            backward_s[i] = played.outcome.backward_s;
        }
        played_release(&played);
    }
    check_context("%s %s", row->config, row->overrides);
    CHECK_NEAR((forward_s[1] - forward_s[0]) / 32, row->forward_s, EXACT);
    CHECK_NEAR((backward_s[1] - backward_s[0]) / 32, row->backward_s, EXACT);
    check_context(NULL);
}

#define SEPARATE "fsdp.separate_reduce_scatter_communicator=true"

/*
 * Shared communicator: gather and scatter take turns, 15 + 15. Separate: both at once, if the wire
 * carries both: max(compute, 15). On a wire of 1 GB/s they share it: 15 MB of each leave a GPU for
 * every unit, so 30 ms whatever the communicators.
 */
static void test_thirty_two_units(void)
{
    static const struct steady rows[] = {
        {"worked-examples/units-32", "", 0.015, 0.030},
        {"worked-examples/units-32", SEPARATE, 0.015, 0.020},
        {"worked-examples/units-32-fast", "", 0.015, 0.030},
        {"worked-examples/units-32-fast", SEPARATE, 0.015, 0.015},
        {"worked-examples/units-32", "cluster=ideal-2x1gbs", 0.015, 0.030},
        {"worked-examples/units-32", "cluster=ideal-2x1gbs; " SEPARATE, 0.015, 0.030},
        {"worked-examples/units-32-fast", "cluster=ideal-2x1gbs; " SEPARATE, 0.015, 0.030},
        {"worked-examples/units-32", "simulate.network=messages", 0.015, 0.030},
        {"worked-examples/units-32", "simulate.network=messages; " SEPARATE, 0.015, 0.020},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_steady(&rows[i]);
}

/* The whole phases, not only their slope. Forward: 32 gathers, then the last unit's compute. */
static void test_thirty_two_units_whole(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-32", NULL)) {
        CHECK_NEAR(played.outcome.forward_s, 32 * 0.015 + 0.010, EXACT);
        /* 96 collectives in a row, but for 5 ms in the first backward (20 ms hide one gather; its
           scatter is issued at its end) and 5 ms in the last (which hides one scatter). */
        const double comm_s = 96 * 0.015;
        CHECK_NEAR(played.outcome.comm_s, comm_s, EXACT);
        CHECK_NEAR(played.outcome.step_time_s, comm_s + 0.005 + 0.005, EXACT);
        CHECK_NEAR(played.outcome.exposed_comm_s + played.outcome.compute_s,
                   played.outcome.step_time_s, EXACT);
    }
    played_release(&played);
}

/* A unit's backward waits for the scatter before it: one buffer; two hide it. */
static void test_reduce_buffers(void)
{
    static const struct {
        const char *overrides;
        double backward_s;
    } rows[] = {{NULL, 0.482},
                {"fsdp.reduce_scatter_buffers=2", 0.354},
                {"fsdp.reduce_scatter_buffers=32", 0.354}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_play(&played, "worked-examples/reduce-buffers", rows[i].overrides)) {
            check_context("%s", rows[i].overrides != NULL ? rows[i].overrides : "1 buffer");
            CHECK_NEAR(played.outcome.backward_s, rows[i].backward_s, EXACT);
            check_context(NULL);
        }
        played_release(&played);
    }
}

const struct check_case engine_cases[] = {
    {"3 units: 85 and 160 ms", test_three_units},
    {"32 units: steady state", test_thirty_two_units},
    {"32 units: whole phases", test_thirty_two_units_whole},
    {"reduce-scatter buffers: 482 and 354 ms", test_reduce_buffers},
    {0}};
