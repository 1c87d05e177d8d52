/*
 * tests/unit/collective/test_algorithms.c: every algorithm against arithmetic by hand, on hosts of
 * eight with 450 GB/s and 2 us inside, 50 GB/s and 5 us a NIC, and a library of round numbers.
 */
#include "cluster_fixture.h"
#include "plan_tests.h"

#define LIBRARY                                                                                    \
    "collectives.library={name: toy, base_ll: 1 us, base_ll128: 2 us, base_simple: 4 us, "         \
    "fill_chunks: 0.5, fill_chunks_reduced: 0.25, tree_efficiency: 1, tree_two_hosts: 0.8, "       \
    "nvls_latency: 20 us, nvls_level_latency: 30 us, nvls_tree_efficiency: 0.9, "                  \
    "nvls_min_gpus: 5, pat_efficiency: 0.75, pat_overlap: 2, pat_rank_latency: 1 us, "             \
    "exchange_efficiency: 0.8, sources: {base: toy, fill: toy, tree: toy, nvls: toy, pat: toy, "   \
    "exchange: toy, channels: toy}}"

enum { AG = COLLECTIVE_ALL_GATHER, RS = COLLECTIVE_REDUCE_SCATTER, AR = COLLECTIVE_ALL_REDUCE };

/* nccl-tests size */
#define S 64e6

static const struct by_hand {
    const char *what, *algorithm, *also;
    int64_t hosts, gpus;
    int op;
    double bytes, expected_s;
    const char *chosen, *protocol;
} by_hand[] = {
    /* 7 steps of 2 us, half a part more than 7/8 of the bytes */
    {"ring", "ring", NULL, 1, 8, AG, S, 18e-6 + S / 8 * 7.5 / 450e9, "ring", "simple"},
    /* 30 steps, 2 of them across; NICs 400 GB/s, ports 450 / (7/8) */
    {"ring, two hosts", "ring", NULL, 2, 8, AR, S, 70e-6 + S / 16 * 30.25 / 400e9, "ring",
     "simple"},
    /* two doublings beyond two hosts: a step across takes 20 us more, 1/1.2 of the rate */
    {"ring, congested", "ring", "host.nics.link.congestion={rate: 0.1, latency: 10 us}", 8, 8, RS,
     S, 4e-6 + 56 * 2e-6 + 7 * 25e-6 + S / 64 * 63.5 / (400e9 / 1.2), "ring", "simple"},
    /* half of the NICs or fewer: no congestion */
    {"ring, half of the NICs", "ring", "host.nics.link.congestion={rate: 0.1, latency: 10 us}", 8,
     4, RS, S, 4e-6 + 24 * 2e-6 + 7 * 5e-6 + S / 32 * 31.5 / 200e9, "ring", "simple"},
    /* 2 MB: 30 us on the wire, which hide 15 of 100 us; 20 MB hide all */
    {"handshake shows", "ring", "host.nics.link.pipelined_latency=100 us", 2, 1, AG, 2e6, 124e-6,
     "ring", "simple"},
    {"handshake is hidden", "ring", "host.nics.link.pipelined_latency=100 us", 2, 1, AG, 20e6,
     309e-6, "ring", "simple"},
    {"two levels", "two_level_ring", NULL, 2, 8, AG, S,
     4e-6 + 5e-6 + S / 8 / 2 * 1.5 / 50e9 + 14e-6 + S / 8 * 7.5 / 450e9, "two_level_ring",
     "simple"},
    /* chains of 7 edges up and down, one level; a port passes 2 S, the NICs S at 0.8 x 400 */
    {"tree, bound inside", "tree", NULL, 2, 8, AR, S, 42e-6 + 2 * S / 450e9, "tree", "simple"},
    {"tree, half through the NICs", "tree", "host.nics.bandwidth=10 GB/s", 2, 8, AR, S,
     42e-6 + S / (0.8 * 80e9), "tree", "simple"},
    {"tree over five hosts", "tree", "host.nics.link.tree_efficiency=0.5", 5, 8, AR, S,
     4e-6 + 2 * (14e-6 + 10e-6) + 2 * S / (0.5 * 400e9), "tree", "simple"},
    {"no tree gathers", "tree", NULL, 1, 8, AG, S, 18e-6 + S / 8 * 7.5 / 450e9, "ring", "simple"},
    {"NVLS", "nvls", "host.scale_up.link.nvls_efficiency=0.6", 1, 8, AR, S,
     24e-6 + S * 1.125 / 270e9, "nvls", "simple"},
    {"NVLS needs five", "nvls", "host.scale_up.link.nvls_efficiency=0.6", 1, 4, AR, S,
     4e-6 + 12e-6 + S / 4 * 6.25 / 450e9, "ring", "simple"},
    {"NVLSTree, two hosts", "nvlstree", "host.scale_up.link.nvls_efficiency=0.6", 2, 8, AR, S,
     24e-6 + 2 * 35e-6 + S * 1.125 / (0.9 * 270e9), "nvlstree", "simple"},
    {"NVLSTree, eight hosts", "nvlstree", "host.scale_up.link.nvls_efficiency=0.6", 8, 8, AR, S,
     24e-6 + 6 * 35e-6 + 2 * S / 400e9, "nvlstree", "simple"},
    {"PAT", "pat", NULL, 8, 1, AG, 8e3, 4e-6 + 3 * 5e-6 / 2 + 8e-6 + 7e3 / (0.75 * 50e9), "pat",
     "simple"},
    {"PAT wants one GPU a host", "pat", NULL, 1, 8, AG, S, 18e-6 + S / 8 * 7.5 / 450e9, "ring",
     "simple"},
    {"broadcast", "auto", NULL, 1, 8, COLLECTIVE_BROADCAST, S, 18e-6 + S * 7.5 / 7 / 450e9, "ring",
     "simple"},
    {"all-to-all", "auto", NULL, 1, 8, COLLECTIVE_ALL_TO_ALL, S, 6e-6 + S * 7 / 8 / 360e9, "ring",
     "simple"},
    /* half of what a rank sends leaves its host, through its own NIC */
    {"all-to-all, two hosts", "auto", NULL, 2, 8, COLLECTIVE_ALL_TO_ALL, S, 9e-6 + S / 2 / 40e9,
     "ring", "simple"},
    {"send and receive", "auto", NULL, 1, 8, COLLECTIVE_SEND_RECV, S, 6e-6 + S / 360e9, "ring",
     "simple"},
    {"send and receive across", "auto", NULL, 2, 8, COLLECTIVE_SEND_RECV, S, 9e-6 + S / 40e9,
     "ring", "simple"},
    /* LL: 1 + 7 x 1 us, a quarter of the rate */
    {"LL when short", "auto", "host.scale_up.link.ll={step_latency: 1 us, share: 0.25}", 1, 8, AG,
     8e3, 8e-6 + 1e3 * 7.5 / 112.5e9, "ring", "ll"},
    {"Simple when long", "auto", "host.scale_up.link.ll={step_latency: 1 us, share: 0.25}", 1, 8,
     AG, S, 18e-6 + S / 8 * 7.5 / 450e9, "ring", "simple"},
    /* a NIC that does not know LL */
    {"LL on every link or none", "auto", "host.scale_up.link.ll={step_latency: 1 us, share: 0.25}",
     2, 8, AG, 8e3, 4e-6 + 28e-6 + 5e-6 + 500 * 15.5 / 400e9, "ring", "simple"},
};

static void check_by_hand(const struct by_hand *row)
{
    const char *overrides[] = {LIBRARY, "collectives.base=null", NULL, row->also, NULL};
    struct cluster_fixture fixture;
    struct arena arena;
    arena_init(&arena);
    overrides[2] = arena_printf(&arena, "collectives.algorithm=%s", row->algorithm);
    fixture_init(&fixture, "ideal-64-two-level", overrides);
    if (CHECK_INT(fixture.status, STATUS_OK)) {
        const struct plan_options options = {0};
        struct layout layout = {0};
        struct plan plan = {0};
        CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, row->hosts, row->gpus, true,
                               &layout, &fixture.diag),
                  STATUS_OK);
        const struct group group = group_whole(&layout);
        CHECK_INT(plan_build(&fixture.arena, &layout, &group, (enum collective_op)row->op,
                             row->bytes, &options, &plan, &fixture.diag),
                  STATUS_OK);
        CHECK_NEAR(plan_alone_s(&layout, &plan), row->expected_s, 1e-9);
        CHECK_TEXT(algorithm_name(plan.algorithm), row->chosen);
        CHECK_TEXT(protocol_name(plan.protocol), row->protocol);
    } else {
        CHECK_TEXT(fixture_messages(&fixture), "");
    }
    fixture_release(&fixture);
    arena_release(&arena);
}

static void test_by_hand(void)
{
    for (size_t i = 0; i < sizeof(by_hand) / sizeof(by_hand[0]); i++) {
        check_context("%s", by_hand[i].what);
        check_by_hand(&by_hand[i]);
    }
    check_context(NULL);
}

static double bus_gb_per_s(const char *cluster, const char *override, int64_t hosts, int64_t gpus,
                           enum collective_op op, double bytes)
{
    const double time_s = alone_s(cluster, override, hosts, gpus, op, bytes);
    return collective_bus_bytes(op, hosts * gpus, bytes) / time_s / 1e9;
}

/* Over two hosts an all-reduce shows more than the NICs carry, a gather never (nccl-tests issues
   169, 309): 2 x 2 H100 with 2 x 50 GB/s a host 148, 2 x 8 with 8 469. Over four it does not. */
static void test_two_host_artefact(void)
{
    const double big = 8589934592.0;
    CHECK_NEAR(bus_gb_per_s("dgx-h100", NULL, 2, 2, COLLECTIVE_ALL_REDUCE, big), 148, 0.10);
    CHECK_NEAR(bus_gb_per_s("dgx-h100", NULL, 2, 8, COLLECTIVE_ALL_REDUCE, big), 469, 0.05);
    CHECK_TRUE(bus_gb_per_s("dgx-h100", NULL, 2, 8, COLLECTIVE_ALL_GATHER, big) < 400);
    CHECK_TRUE(bus_gb_per_s("dgx-h100", NULL, 4, 8, COLLECTIVE_ALL_REDUCE, big) < 400);
    CHECK_TRUE(bus_gb_per_s("dgx-h100", "collectives.algorithm=ring", 2, 8, COLLECTIVE_ALL_REDUCE,
                            big) < 400);
}

/* Averages of floats cannot be summed in the switch: a ring's 367, not 480 GB/s. */
static void test_averages_stay_on_rings(void)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", NULL);
    const struct layout layout = fixture_layout(&fixture, 1, true);
    const struct group group = group_whole(&layout);
    struct plan_options options = {0};
    struct plan plan = {0};
    CHECK_INT(plan_build(&fixture.arena, &layout, &group, COLLECTIVE_ALL_REDUCE, 1e9, &options,
                         &plan, &fixture.diag),
              STATUS_OK);
    CHECK_INT(plan.algorithm, ALGORITHM_NVLS);
    CHECK_INT(plan.channels, 16);
    options.is_average = true;
    CHECK_INT(plan_build(&fixture.arena, &layout, &group, COLLECTIVE_ALL_REDUCE, 1e9, &options,
                         &plan, &fixture.diag),
              STATUS_OK);
    CHECK_INT(plan.algorithm, ALGORITHM_RING);
    CHECK_INT(plan.channels, 24);
    fixture_release(&fixture);
}

/* SMs held: 2 for each NIC in use, no more than the rings of a host. */
static void test_channels(void)
{
    static const struct {
        int64_t hosts, nics, channels;
    } rows[] = {{1, 8, 24}, {4, 8, 16}, {4, 1, 2}, {4, 32, 24}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *overrides[] = {NULL, NULL};
        struct cluster_fixture fixture;
        struct arena arena;
        arena_init(&arena);
        overrides[0] = arena_printf(&arena, "host.nics.count=%d", (int)rows[i].nics);
        fixture_init(&fixture, "dgx-h100", overrides);
        const struct layout layout = fixture_layout(&fixture, rows[i].hosts, true);
        const struct group group = group_whole(&layout);
        const struct plan_options options = {0};
        struct plan plan = {0};
        CHECK_INT(plan_build(&fixture.arena, &layout, &group, COLLECTIVE_ALL_GATHER, 1e9, &options,
                             &plan, &fixture.diag),
                  STATUS_OK);
        CHECK_INT(plan.channels, rows[i].channels);
        fixture_release(&fixture);
        arena_release(&arena);
    }
}

const struct check_case algorithm_cases[] = {{"by hand", test_by_hand},
                                             {"two hosts", test_two_host_artefact},
                                             {"averages", test_averages_stay_on_rings},
                                             {"channels", test_channels},
                                             {0}};
