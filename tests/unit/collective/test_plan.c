/* tests/unit/collective/test_plan.c: plans against closed forms. */
#include "cluster_fixture.h"
#include "numeric/curve.h"
#include "plan_tests.h"

static const struct plan_options all_physics = {0};

static struct group whole(const struct layout *layout)
{
    return (struct group){
        .ranks = layout->ranks, .hosts = layout->hosts, .ranks_per_host = layout->gpus_per_host};
}

double alone_s(const char *cluster, const char *override, int64_t hosts, int64_t gpus_per_host,
               enum collective_op op, double bytes)
{
    const char *const overrides[] = {override, NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, cluster, overrides);
    struct layout layout = {0};
    struct plan plan = {0};
    if (!CHECK_INT(fixture.status, STATUS_OK) ||
        !CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, hosts, gpus_per_host, true,
                                &layout, &fixture.diag),
                   STATUS_OK)) {
        CHECK_TEXT(fixture_messages(&fixture), "");
        fixture_release(&fixture);
        return -1;
    }
    struct group group = whole(&layout);
    CHECK_INT(
        plan_build(&fixture.arena, &layout, &group, op, bytes, &all_physics, &plan, &fixture.diag),
        STATUS_OK);
    double time_s = plan_alone_s(&layout, &plan);
    fixture_release(&fixture);
    return time_s;
}

enum { AG = COLLECTIVE_ALL_GATHER, RS = COLLECTIVE_REDUCE_SCATTER, AR = COLLECTIVE_ALL_REDUCE };

/* A block of Llama-2-7B in bf16: the unit of the cross-check step. */
#define S 404750336.0

static const struct closed_form {
    const char *what, *cluster, *override;
    int64_t hosts, gpus;
    int op;
    double bytes, expected_s;
} closed_forms[] = {
    {"20 MB over two at 1 GB/s", "ideal-2x1gbs", NULL, 1, 2, AG, 20e6, 10e-3},
    {"2.385 MB over two", "ideal-2x1gbs", NULL, 1, 2, RS, 2.385e6, 1.1925e-3},
    {"700 MB all-reduce at 10 Gb/s", "ideal-10gbps", NULL, 2, 1, AR, 700e6, 0.560},
    {"1.4 GB all-gather at 10 Gb/s", "ideal-10gbps", NULL, 2, 1, AG, 1.4e9, 0.560},
    {"700 MB reduce-scatter at 10 Gb/s", "ideal-10gbps", NULL, 2, 1, RS, 700e6, 0.280},
    {"one of three GPUs a host", "ideal-10gbps", NULL, 3, 1, AG, 300e6, 0.160},
    {"8 behind a switch", "ideal-8x400", NULL, 1, 8, AG, S, 35e-6 + S * 7 / 8 / 400e9},
    {"8 behind a switch, all-reduce", "ideal-8x400", NULL, 1, 8, AR, S, 70e-6 + S * 7 / 4 / 400e9},
    {"5 of 8", "ideal-8x400", NULL, 1, 5, RS, S, 20e-6 + S * 4 / 5 / 400e9},
    {"64 in two levels", "ideal-64-two-level", NULL, 8, 8, AG, S,
     35e-6 + S / 8 * 7 / 8 / 50e9 + 14e-6 + S * 7 / 8 / 450e9},
    {"512 in two levels", "ideal-64-two-level", NULL, 64, 8, RS, S,
     315e-6 + S / 8 * 63 / 64 / 50e9 + 14e-6 + S * 7 / 8 / 450e9},
    {"64 in two levels, all-reduce", "ideal-64-two-level", NULL, 8, 8, AR, S,
     2 * (35e-6 + S / 8 * 7 / 8 / 50e9 + 14e-6 + S * 7 / 8 / 450e9)},
    {"64, 400 GB/s everywhere", "ideal-64-400", NULL, 8, 8, AG, S, 70e-6 + S * 63 / 64 / 400e9},
    {"two levels on one host is a ring", "ideal-64-400", NULL, 1, 8, AG, S,
     35e-6 + S * 7 / 8 / 400e9},
    /* one ring of 64 over 8 hosts: the host's NICs carry 8 x 50 GB/s */
    {"one ring of 64", "ideal-64-two-level", "collectives.algorithm=ring", 8, 8, AG, S,
     56 * 2e-6 + 7 * 5e-6 + S * 63 / 64 / 400e9},
    /* 7/8 of the bytes stay inside, at 50 GB/s: 57.1 GB/s in all; the NICs carry 400 */
    {"one ring, bound inside", "ideal-400", "host.scale_up.bandwidth=50 GB/s", 8, 8, AG, 6.4e9,
     6.3e9 * 7 / 8 / 50e9},
    /* NVLink: 0.837 of 450 GB/s reach a ring; base 13.7 us, 7 steps of 3.8 us, 0.55 parts more */
    {"H100 host", "dgx-h100", NULL, 1, 8, AG, 1073741824,
     13.7e-6 + 7 * 3.8e-6 + 1073741824 / 8.0 * 7.55 / (0.837 * 450e9)},
    /* one 25 Gb/s NIC carries all that leaves a host; four hosts, all NICs in use: 1/1.05 of the
       rate and 16 us a step more; 3 x 6.9 us of each are hidden */
    {"25 GbE", "dgx-h100-25gbe", NULL, 4, 8, RS, 436207616,
     13.7e-6 + 28 * 3.8e-6 + 3 * 23.7e-6 + 436207616 / 32.0 * 31.55 / (0.91 * 3.125e9 / 1.05)},
    {"four hosts, 8 x 400 Gb/s", "dgx-h100", NULL, 4, 8, AG, 436207616,
     13.7e-6 + 28 * 3.8e-6 + 3 * 23.7e-6 + 436207616 / 32.0 * 31.55 / (0.975 * 400e9 / 1.05)},
    {"100 Gb/s NICs", "dgx-h100", "host.nics.bandwidth=100Gbps", 4, 8, AG, 436207616,
     13.7e-6 + 28 * 3.8e-6 + 3 * 23.7e-6 + 436207616 / 32.0 * 31.55 / (0.975 * 100e9 / 1.05)},
    /* the slowest host bounds the ring */
    {"one host's NICs at half", "dgx-h100", "overrides=[{host: 2, nic_frac: 0.5}]", 4, 8, AG,
     436207616,
     13.7e-6 + 28 * 3.8e-6 + 3 * 23.7e-6 + 436207616 / 32.0 * 31.55 / (0.975 * 200e9 / 1.05)},
    {"a slow GPU does not slow links", "dgx-h100", "overrides=[{host: 2, gpu: 1, clock_frac: 0.5}]",
     4, 8, AG, 436207616,
     13.7e-6 + 28 * 3.8e-6 + 3 * 23.7e-6 + 436207616 / 32.0 * 31.55 / (0.975 * 400e9 / 1.05)},
    {"three NICs for eight GPUs", "dgx-h100", "host.nics.count=3", 4, 8, AG, 436207616,
     13.7e-6 + 28 * 3.8e-6 + 3 * 23.7e-6 + 436207616 / 32.0 * 31.55 / (0.975 * 150e9 / 1.05)},
    {"one rank", "ideal-10gbps", NULL, 1, 1, AG, 700e6, 0},
    {"no bytes", "dgx-h100", NULL, 4, 8, AG, 0, 0},
};

static void test_closed_forms(void)
{
    for (size_t i = 0; i < sizeof(closed_forms) / sizeof(closed_forms[0]); i++) {
        check_context("%s", closed_forms[i].what);
        double time_s = alone_s(closed_forms[i].cluster, closed_forms[i].override,
                                closed_forms[i].hosts, closed_forms[i].gpus,
                                (enum collective_op)closed_forms[i].op, closed_forms[i].bytes);
        CHECK_NEAR(time_s, closed_forms[i].expected_s, 1e-9);
    }
    check_context(NULL);
}

static void test_phases(void)
{
    static const char *const overrides[] = {"collectives.algorithm=ring", NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", overrides);
    struct layout layout = fixture_layout(&fixture, 4, true);
    struct group group = whole(&layout);
    struct plan plan;
    CHECK_INT(plan_build(&fixture.arena, &layout, &group, COLLECTIVE_ALL_REDUCE, 2.385e9,
                         &all_physics, &plan, &fixture.diag),
              STATUS_OK);
    CHECK_INT(plan.phase_count, 1);
    CHECK_INT(plan.phases[0].rounds, 62);
    CHECK_NEAR(plan.bytes_per_rank, 2 * 2.385e9 * 31 / 32, 1e-12);
    CHECK_INT(plan.channels, 16);
    const struct phase *phase = &plan.phases[0];
    CHECK_INT(phase->load_count, 9); /* with the slots of GPU and NIC, both ways */
    for (int32_t i = 0; i < phase->load_count; i++) {
        const struct resource *resource = &layout.resources[phase->loads[i].resource];
        double expected = resource->kind == RESOURCE_HBM ? 2.5 : 0.125;
        if (resource->kind == RESOURCE_SCALE_UP_OUT || resource->kind == RESOURCE_SCALE_UP_IN)
            expected = 0.875;
        CHECK_NEAR(phase->loads[i].per_byte, expected, 1e-12);
    }
    int32_t slowest = plan_bottleneck(&layout, &plan);
    CHECK_INT(layout.resources[slowest].kind, RESOURCE_NIC_OUT);
    fixture_release(&fixture);
}

static void test_ideal_options(void)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", NULL);
    struct layout layout = fixture_layout(&fixture, 1, true);
    struct group group = whole(&layout);
    const struct plan_options options = {.is_latency_free = true, .is_contention_free = true};
    struct plan plan;
    CHECK_INT(plan_build(&fixture.arena, &layout, &group, COLLECTIVE_ALL_GATHER, 2.385e9, &options,
                         &plan, &fixture.diag),
              STATUS_OK);
    CHECK_NEAR(plan_alone_s(&layout, &plan), 2.385e9 / 8 * 7.55 / (0.837 * 450e9), 1e-12);
    CHECK_INT(plan.channels, 0);
    CHECK_NEAR(plan.phases[0].cap_beside_bytes_per_s, 0.837 * 450e9 * 7 / 7.55, 1e-12);
    CHECK_INT(plan.phases[0].load_count, 2);
    CHECK_INT(plan.phases[0].rounds, 7);
    fixture_release(&fixture);
}

static double cap_beside(const char *cluster, int64_t hosts, double *alone)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, cluster, NULL);
    struct layout layout = fixture_layout(&fixture, hosts, true);
    struct group group = whole(&layout);
    struct plan plan;
    CHECK_INT(plan_build(&fixture.arena, &layout, &group, COLLECTIVE_ALL_GATHER, 2.385e9,
                         &all_physics, &plan, &fixture.diag),
              STATUS_OK);
    double beside = plan.phases[0].cap_beside_bytes_per_s;
    *alone = plan.phases[0].cap_bytes_per_s;
    fixture_release(&fixture);
    return beside;
}

/* Beside kernels: 0.837 x 450 GB/s x 7/7.55 / 1.56 in a host; across, 7/8 of the bytes go over the
   scale-up port; a slow NIC bounds the ring as before. */
static void test_beside_kernels(void)
{
    double alone = 0;
    CHECK_NEAR(cap_beside("dgx-h100", 1, &alone), 223.8538e9, 1e-6);
    CHECK_NEAR(alone, 349.2119e9, 1e-6);
    CHECK_NEAR(cap_beside("dgx-h100", 4, &alone), 0.837 * 450e9 / 0.875 / 1.56 * 31 / 31.55, 1e-9);
    double slow = cap_beside("dgx-h100-25gbe", 4, &alone);
    CHECK_NEAR(slow, alone, 1e-12);
}

/* Groups of 2 hosts x 4 GPUs tile 4 hosts of 8. A group has the NICs of its own GPUs: 4 x 50 GB/s.
 */
static void test_part_of_the_ranks(void)
{
    static const char *const overrides[] = {"collectives.algorithm=ring", NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "ideal-64-two-level", overrides);
    struct layout layout = fixture_layout(&fixture, 4, true);
    const struct group group = {.ranks = 8, .hosts = 2, .ranks_per_host = 4};
    struct plan plan;
    CHECK_INT(plan_build(&fixture.arena, &layout, &group, COLLECTIVE_ALL_GATHER, 800e6,
                         &all_physics, &plan, &fixture.diag),
              STATUS_OK);
    CHECK_NEAR(plan_alone_s(&layout, &plan), 6 * 2e-6 + 5e-6 + 700e6 / 200e9, 1e-12);
    const struct group across = {.ranks = 4, .hosts = 4, .ranks_per_host = 1};
    CHECK_INT(plan_build(&fixture.arena, &layout, &across, COLLECTIVE_ALL_REDUCE, 100e6,
                         &all_physics, &plan, &fixture.diag),
              STATUS_OK);
    CHECK_NEAR(plan_alone_s(&layout, &plan), 6 * 5e-6 + 150e6 / 50e9, 1e-12);
    fixture_release(&fixture);
}

static void test_names(void)
{
    CHECK_TEXT(collective_op_name(COLLECTIVE_REDUCE_SCATTER), "reduce_scatter");
    const struct layout layout = {0};
    const struct plan empty = {0};
    CHECK_INT(plan_bottleneck(&layout, &empty), -1);
    CHECK_NEAR(plan_alone_s(&layout, &empty), 0, 0);
}

static const struct check_case plan_cases[] = {{"closed forms", test_closed_forms},
                                               {"phases", test_phases},
                                               {"ideal options", test_ideal_options},
                                               {"beside kernels", test_beside_kernels},
                                               {"part of the ranks", test_part_of_the_ranks},
                                               {"names", test_names},
                                               {0}};

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {
        {"plan", plan_cases},           {"algorithms", algorithm_cases},
        {"published", published_cases}, {"calibrate", calibrate_cases},
        {"nccl log", nccl_log_cases},   {0}};
    numeric_init();
    return check_main(argc, argv, suites);
}
