/*
 * tests/unit/collective/test_plan_published.c: plans against other simulators and measured tables.
 *
 * The cross-check step (32 units of 404,750,336 bytes, compute hides all but the first gather and
 * the last scatter) was run by three public simulators; its exposed part is two collectives.
 * Measured tables: bounds are wide on purpose, nothing is tuned to a row.
 */
#include "plan_tests.h"

static void test_other_simulators(void)
{
    static const struct {
        const char *who, *cluster;
        int64_t hosts;
        double step_ms, tolerance;
    } rows[] = {
        {"ASTRA-sim, 8", "ideal-8x400", 1, 443.636, 0.10},
        {"ATLAHS, 8", "ideal-8x400", 1, 443.455, 0.10},
        {"SimGrid, 8", "ideal-8x450", 1, 443.230, 0.10},
        {"ASTRA-sim, 64", "ideal-64-two-level", 8, 445.268, 0.10},
        {"ATLAHS, 64", "ideal-64-400", 8, 443.760, 0.10},
        {"SimGrid, 64", "ideal-64-two-level", 8, 445.197, 0.10},
        {"ASTRA-sim, 512", "ideal-64-two-level", 64, 446.600, 0.25},
        {"ATLAHS, 512", "ideal-64-400", 64, 444.460, 0.25},
        {"SimGrid, 512", "ideal-64-two-level", 64, 446.986, 0.25},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].who);
        double gather_s =
            alone_s(rows[i].cluster, NULL, rows[i].hosts, 8, COLLECTIVE_ALL_GATHER, 404750336);
        double scatter_s =
            alone_s(rows[i].cluster, NULL, rows[i].hosts, 8, COLLECTIVE_REDUCE_SCATTER, 404750336);
        CHECK_NEAR((gather_s + scatter_s) * 1e3, rows[i].step_ms - 441.6, rows[i].tolerance);
    }
    check_context(NULL);
}

/* Microseconds by nccl-tests (xxrjun, 8 and 10 x 1, 2, 4 H100, NCCL 2.29) and aiconfigurator. */
static void test_measured(void)
{
    static const struct {
        const char *what;
        int64_t hosts, gpus;
        enum collective_op op;
        double bytes, us, tolerance;
    } rows[] = {
        {"8 H100, 32 MiB", 1, 8, COLLECTIVE_REDUCE_SCATTER, 33554432, 111.83, 0.12},
        {"8 H100, 128 MiB", 1, 8, COLLECTIVE_REDUCE_SCATTER, 134217728, 380.31, 0.10},
        {"8 H100, 1 GiB", 1, 8, COLLECTIVE_REDUCE_SCATTER, 1073741824, 2741.51, 0.10},
        {"8 H100, 8 GiB", 1, 8, COLLECTIVE_REDUCE_SCATTER, 8589934592, 20799.7, 0.10},
        {"8 H100, gather 256 MiB", 1, 8, COLLECTIVE_ALL_GATHER, 268435456, 728.79, 0.10},
        {"8 H100, gather 512 MiB", 1, 8, COLLECTIVE_ALL_GATHER, 536870912, 1401.5, 0.10},
        {"10 x 4 H100, 256 MiB", 10, 4, COLLECTIVE_ALL_GATHER, 268435200, 1551.54, 0.20},
        {"10 x 4 H100, 1 GiB", 10, 4, COLLECTIVE_ALL_GATHER, 1073741440, 5421.99, 0.20},
        {"10 x 4 H100, 8 GiB", 10, 4, COLLECTIVE_ALL_GATHER, 8589934080, 43085.0, 0.20},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].what);
        double time_s =
            alone_s("dgx-h100", NULL, rows[i].hosts, rows[i].gpus, rows[i].op, rows[i].bytes);
        CHECK_NEAR(time_s * 1e6, rows[i].us, rows[i].tolerance);
    }
    check_context(NULL);
}

const struct check_case published_cases[] = {
    {"other simulators", test_other_simulators}, {"measured tables", test_measured}, {0}};
