/*
 * tests/unit/worked/test_crosscheck.c: the same step in three independent public simulators.
 *
 * 32 equal units of 404,750,336 bytes, forward 4.6 ms and backward 9.2 ms each. Of the step 441.6
 * ms are compute, so only the rest says anything: 10 % at 8 and 64 GPUs, 25 % at 512. Each peer is
 * compared on the network it was given.
 */
#include "worked_tests.h"

static const double compute_s = 0.4416;

static void test_peers(void)
{
    static const struct {
        const char *config, *peer;
        double step_ms, tolerance;
    } rows[] = {
        {"crosscheck-8", "ASTRA-sim", 443.636, 0.10},
        {"crosscheck-8", "ATLAHS", 443.455, 0.10},
        {"crosscheck-8-450", "SimGrid", 443.230, 0.10},
        {"crosscheck-64", "ASTRA-sim", 445.268, 0.10},
        {"crosscheck-64-400", "ATLAHS", 443.760, 0.10},
        {"crosscheck-64", "SimGrid", 445.197, 0.10},
        {"crosscheck-512", "ASTRA-sim", 446.600, 0.25},
        {"crosscheck-512-400", "ATLAHS", 444.460, 0.25},
        {"crosscheck-512", "SimGrid", 446.986, 0.25},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char config[64];
        snprintf(config, sizeof(config), "worked-examples/%s", rows[i].config);
        if (played_play(&played, config, NULL)) {
            check_context("%s against %s", rows[i].config, rows[i].peer);
            CHECK_NEAR(played.outcome.compute_s, compute_s, EXACT);
            CHECK_NEAR(played.outcome.step_time_s - compute_s, rows[i].step_ms * 1e-3 - compute_s,
                       rows[i].tolerance);
            check_context(NULL);
        }
        played_release(&played);
    }
}

/* First gather + last scatter, each by the closed form of its rings. */
static void test_by_hand(void)
{
    const double bytes = 404750336;
    static const struct {
        const char *config;
        int64_t gpus;
    } rows[] = {{"crosscheck-8", 8}, {"crosscheck-64", 64}, {"crosscheck-512", 512}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char config[64];
        snprintf(config, sizeof(config), "worked-examples/%s", rows[i].config);
        const double hosts = (double)rows[i].gpus / 8;
        double collective_s = 7 * 5e-6 + 7.0 / 8 * bytes / 400e9;
        if (hosts > 1)
            collective_s = 7 * 2e-6 + 7.0 / 8 * bytes / 450e9 + (hosts - 1) * 5e-6 +
                           (hosts - 1) / hosts * bytes / 8 / 50e9;
        if (played_play(&played, config, NULL)) {
            check_context("%s", rows[i].config);
            CHECK_INT(played.outcome.n_gpus, rows[i].gpus);
            /* Picoseconds, rounded up a few times. */
            CHECK_NEAR(played.outcome.exposed_comm_s, 2 * collective_s, 1e-8);
            CHECK_NEAR(played.outcome.idle_s, 0, EXACT);
            check_context(NULL);
        }
        played_release(&played);
    }
}

/* 441.6 + 2 x 7/8 x 404.75 MB / 400 GB/s = 443.37 ms, without latency. */
static void test_without_latency(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/crosscheck-8",
                    "simulate.ideal=[host, copies, contention, optimizer, latency]"))
        CHECK_NEAR(played.outcome.step_time_s * 1e3, 443.37, 0.01 / 443.37);
    played_release(&played);
}

static void test_messages(void)
{
    double exposed_s[2] = {0};
    static const char *const overrides[] = {"simulate.network=flows", "simulate.network=messages"};
    for (int i = 0; i < 2; i++) {
        struct played played;
        if (played_play(&played, "worked-examples/crosscheck-8", overrides[i]))
            exposed_s[i] = played.outcome.step_time_s - compute_s;
        played_release(&played);
    }
    CHECK_NEAR(exposed_s[1], exposed_s[0], 0.01);
}

const struct check_case crosscheck_cases[] = {{"exposed part against three simulators", test_peers},
                                              {"first gather + last scatter", test_by_hand},
                                              {"443.37 ms plus latency", test_without_latency},
                                              {"messages against flows", test_messages},
                                              {0}};
