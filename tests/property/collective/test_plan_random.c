/*
 * tests/property/collective/test_plan_random.c: what every collective must obey, over shipped
 * clusters, operations, sizes and shapes drawn at random.
 *
 * More bytes never take less time, and x times the bytes no more than x times the time (so there
 * is no jump where the protocol or the algorithm changes). More bandwidth is never slower. An
 * all-gather or reduce-scatter never shows more bus bandwidth than the slowest link that it passes.
 */
#include <stdio.h>

#include "base/philox.h"
#include "check.h"
#include "cluster_fixture.h"
#include "collective/plan.h"
#include "numeric/curve.h"

static const uint64_t seed = 2386;

static const struct machine_row {
    const char *name;
    int64_t gpus, most_hosts;
    double host_out_gb_per_s;
} machines[] = {
    {"dgx-h100", 8, 512, 400},         {"dgx-h100-25gbe", 8, 64, 3.125},
    {"dgx-b200", 8, 64, 400},          {"dgx-a100", 8, 64, 200},
    {"gh200-4gpu", 4, 256, 100},       {"mi300x-8gpu", 8, 32, 400},
    {"10gbe-single-gpu", 1, 16, 1.25}, {"p4d-a100-40gb", 8, 32, 50},
};

static double time_s(struct cluster_fixture *fixture, const struct layout *layout,
                     enum collective_op op, double bytes, bool is_average)
{
    const struct group group = group_whole(layout);
    const struct plan_options options = {.is_average = is_average};
    struct plan plan = {0};
    CHECK_INT(
        plan_build(&fixture->arena, layout, &group, op, bytes, &options, &plan, &fixture->diag),
        STATUS_OK);
    return plan_alone_s(layout, &plan);
}

static double more(double value)
{
    return value * (1 + 1e-12); /* rounding */
}

static void check_sizes(struct cluster_fixture *fixture, const struct machine_row *machine,
                        struct philox *random)
{
    const int64_t hosts = 1 + philox_below(random, (uint32_t)machine->most_hosts);
    const struct layout layout = fixture_layout(fixture, hosts, true);
    const enum collective_op op = (enum collective_op)philox_below(random, COLLECTIVE_OP_COUNT);
    const bool is_average = philox_below(random, 2) == 1;
    const double n = (double)layout.ranks;
    double bytes = 1024 + philox_below(random, 1024), before_s = 0;
    check_context("%s x %lld, %s", machine->name, (long long)hosts, collective_op_name(op));
    for (int i = 0; i < 60; i++) {
        const double now_s = time_s(fixture, &layout, op, bytes, is_average);
        CHECK_TRUE(now_s <= 1e6 && (now_s > 0 || n < 2));
        CHECK_TRUE(before_s <= more(now_s));
        if (i > 0)
            CHECK_TRUE(now_s <= more(1.31 * before_s));
        const bool is_gather = op == COLLECTIVE_ALL_GATHER || op == COLLECTIVE_REDUCE_SCATTER;
        if (is_gather && hosts > 1)
            CHECK_TRUE(bytes * (n - 1) / n <= more(now_s * machine->host_out_gb_per_s * 1e9));
        before_s = now_s;
        bytes *= 1.31;
    }
    check_context(NULL);
}

static void test_sizes(void)
{
    struct philox random;
    philox_init(&random, seed, 1, 0, 0);
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        struct cluster_fixture fixture;
        fixture_init(&fixture, machines[i].name, NULL);
        CHECK_INT(fixture.status, STATUS_OK);
        for (int j = 0; j < 8; j++)
            check_sizes(&fixture, &machines[i], &random);
        fixture_release(&fixture);
    }
}

static double with(const char *override, int64_t hosts, enum collective_op op, double bytes)
{
    const char *const overrides[] = {override, NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", overrides);
    const struct layout layout = fixture_layout(&fixture, hosts, true);
    const double seconds = time_s(&fixture, &layout, op, bytes, false);
    fixture_release(&fixture);
    return seconds;
}

static void test_bandwidth(void)
{
    static const char *const slow[] = {"host.nics.bandwidth=37 Gbps",
                                       "host.scale_up.bandwidth=61 GB/s"};
    static const char *const fast[] = {"host.nics.bandwidth=370 Gbps",
                                       "host.scale_up.bandwidth=610 GB/s"};
    struct philox random;
    philox_init(&random, seed, 2, 0, 0);
    for (int i = 0; i < 40; i++) {
        const int64_t hosts = 1 + philox_below(&random, 20);
        const enum collective_op op =
            (enum collective_op)philox_below(&random, COLLECTIVE_OP_COUNT);
        const double bytes = 1024.0 * (1 + philox_below(&random, 1 << 20));
        const int link = (int)philox_below(&random, 2);
        check_context("%lld hosts, %s of %.0f", (long long)hosts, collective_op_name(op), bytes);
        CHECK_TRUE(with(fast[link], hosts, op, bytes) <= more(with(slow[link], hosts, op, bytes)));
    }
    check_context(NULL);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        {"sizes", test_sizes}, {"bandwidth", test_bandwidth}, {0}};
    const struct check_suite suites[] = {{"plan_random", cases}, {0}};
    numeric_init();
    printf("seed %llu\n", (unsigned long long)seed);
    return check_main(argc, argv, suites);
}
