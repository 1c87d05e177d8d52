/*
 * tests/property/layout/test_traffic_fold.c: what groups load, on the folded layout and on every
 * wire for itself.
 *
 * Hosts of every kind (switch, mesh, cube mesh, bridges, PCIe trees, domains over hosts), leaves
 * and pods, and random overrides of all that can differ. For every shape of group the slowest
 * resource, the bytes over all instances of each kind and the hops must be the same; bytes that go
 * out of NICs come in through others; every member's copies load the same.
 */
#include <math.h>
#include <stdio.h>

#include "base/philox.h"
#include "cluster/traffic.h"
#include "cluster_fixture.h"
#include "layout_property.h"

#include "check.h"

enum { SEED = 90210, CLUSTER_COUNT = 240, MAX_HOSTS = 12 };

static const char *const hosts_of_kinds[] = {
    "host={gpu: h100-sxm5-80gb, gpus: 8, scale_up: {kind: nvswitch, link: nvlink4}, cpu: "
    "xeon-8480c, numa: {count: 2, link: pcie5, memory_bandwidth: 300 GB/s}, nics: {count: 8, link: "
    "ndr400}, pcie: {link: pcie5, switches: [{gpus: 0-1, nics: 0-1}, {gpus: 2-3, nics: 2-3}, "
    "{gpus: 4-5, nics: 4-5, numa: 1}, {gpus: 6-7, nics: 6-7, numa: 1}]}}",
    "host={gpu: rtx-4090, gpus: 8, cpu: epyc-7742, numa: {count: 2, link: pcie4, memory_bandwidth: "
    "100 GB/s}, nics: {count: 1, link: ethernet10}, pcie: {link: pcie4-host, p2p: host, switches: "
    "[{gpus: 0-3, nics: 0}], roots: [{gpus: 4-7, numa: 1}]}}",
    "host={gpu: rtx-4090, gpus: 8, cpu: epyc-7742, numa: {count: 2, link: pcie4}, nics: {count: 3, "
    "link: ethernet25}, pcie: {link: pcie4, p2p: switch, switches: [{name: a, gpus: 0-1}, {name: "
    "b, "
    "parent: a, gpus: 2-3, nics: 0-1, gpu_lanes: 8}, {gpus: 4-6, numa: 1}]}}",
    "host={gpu: v100-sxm2-32gb, gpus: 8, cpu: xeon-8168, numa: {count: 2, link: pcie3-host}, nics: "
    "{count: 4, link: edr100}, scale_up: {kind: links, link: nvlink2, links: [{gpus: 0-1}, {gpus: "
    "[0, 2]}, {gpus: [0, 3], count: 2}, {gpus: [0, 4], count: 2}, {gpus: [1, 2], count: 2}, {gpus: "
    "[1, 3]}, {gpus: [1, 5], count: 2}, {gpus: [2, 3], count: 2}, {gpus: [2, 6]}, {gpus: [3, 7]}, "
    "{gpus: [4, 5]}, {gpus: [4, 6]}, {gpus: [4, 7], count: 2}, {gpus: [5, 6], count: 2}, {gpus: "
    "[5, 7]}, {gpus: [6, 7], count: 2}]}, pcie: {link: pcie3-host, switches: [{gpus: 0-1, nics: "
    "0}, "
    "{gpus: 2-3, nics: 1}, {gpus: 4-5, nics: 2, numa: 1}, {gpus: 6-7, nics: 3, numa: 1}]}}",
    "host={gpu: mi300x, gpus: 8, cpu: epyc-7742, scale_up: {kind: mesh, link: xgmi-mi300x}, nics: "
    "{count: 8, link: ndr400}}",
    "host={gpu: a40, gpus: 4, cpu: epyc-7742, scale_up: {kind: links, link: nvlink3, links: "
    "[{gpus: "
    "0-1}, {gpus: 2-3}]}, pcie: {link: pcie4}, nics: {count: 2, link: hdr200}}",
    "host={gpu: a40, gpus: 4, cpu: epyc-7742, scale_up: {kind: links, link: nvlink3, links: "
    "[{gpus: "
    "0-1}, {gpus: 1-2}, {gpus: 2-3}, {gpus: [3, 0]}, {gpus: [0, 2]}]}, nics: {count: 2, link: "
    "hdr200}}", /* a chord that no ring takes */
    "host={gpu: gb200, gpus: 4, cpu: xeon-8480c, scale_up: {kind: nvswitch, link: nvlink5, "
    "domain_hosts: 3}, nics: {count: 4, link: ndr400}}",
};

static const char *const fabrics[] = {
    "fabric={}", "fabric={hosts_per_leaf: 3, oversubscription: 2, hop_latency: 1 us}",
    ("fabric={hosts_per_leaf: 2, oversubscription: 4, placement: spread, levels: [{hosts: 4, "
     "oversubscription: 2}]}")};

static const char *random_override(struct arena *arena, struct philox *random)
{
    static const double fracs[] = {0.5, 0.8, 1};
    const unsigned host = philox_below(random, MAX_HOSTS);
    const unsigned one = philox_below(random, 4);
    const double frac = fracs[philox_below(random, 3)];
    switch (philox_below(random, 8)) {
    case 0:
        return arena_printf(arena, "{host: %u, gpu: %u, scale_up_frac: %g}", host, one, frac);
    case 1:
        return arena_printf(arena, "{host: %u, gpu: %u, pcie_frac: %g}", host, one, frac);
    case 2:
        return arena_printf(arena, "{host: %u, nic: 0, nic_frac: %g}", host, frac < 1 ? frac : 0.9);
    case 3:
        return arena_printf(arena, "{host: %u, nics: 1}", host);
    case 4:
        return arena_printf(arena, "{host: %u, step_latency: %u us}", host, one);
    case 5:
        return arena_printf(arena, "{host: %u, gpu: %u, gpu_type: l40s}", host, one);
    case 6:
        return arena_printf(arena, "{host: %u, gpu: %u, hbm_frac: %g}", host, one, frac);
    default:
        return arena_printf(arena, "{host: %u, clock_frac: %g, nic_frac: %g}", host, frac, frac);
    }
}

static const char *random_overrides(struct arena *arena, struct philox *random)
{
    const char *text = "overrides=[";
    for (uint32_t count = philox_below(random, 5); count > 0; count--)
        text = arena_printf(arena, "%s%s, ", text, random_override(arena, random));
    return arena_printf(arena, "%s]", text);
}

static double slowest(const struct layout *layout, const struct traffic *traffic)
{
    double rate = HUGE_VAL;
    for (int32_t i = 0; i < traffic->load_count; i++)
        rate = fmin(rate, layout->resources[traffic->loads[i].resource].capacity /
                              traffic->loads[i].effort);
    return rate;
}

static double bytes_over(const struct layout *layout, const struct traffic *traffic,
                         enum resource_kind kind)
{
    double sum = 0;
    for (int32_t i = 0; i < traffic->load_count; i++) {
        const struct resource *resource = &layout->resources[traffic->loads[i].resource];
        if (resource->kind == kind)
            sum += traffic->loads[i].per_byte * (double)resource->instances;
    }
    return sum;
}

static void check_hops(const struct hop_counts *a, const struct hop_counts *b)
{
    CHECK_NEAR(a->scale_up, b->scale_up, 1e-9);
    CHECK_NEAR(a->pcie, b->pcie, 1e-9);
    CHECK_NEAR(a->host_memory, b->host_memory, 1e-9);
    CHECK_NEAR(a->socket, b->socket, 1e-9);
    CHECK_NEAR(a->network, b->network, 1e-9);
    CHECK_NEAR(a->fabric_switches, b->fabric_switches, 1e-9);
}

/* Uplinks that are not full stand for those that are (traffic.h): their bytes are no sum. */
static void check_traffic(const struct layout *folded, const struct layout *unfolded,
                          const struct traffic *few, const struct traffic *many)
{
    CHECK_NEAR(slowest(folded, few), slowest(unfolded, many), 1e-12);
    CHECK_NEAR(few->extra_latency_s, many->extra_latency_s, 1e-12);
    check_hops(&few->hops, &many->hops);
    for (int kind = 0; kind < RESOURCE_FABRIC_UP; kind++)
        CHECK_NEAR(bytes_over(folded, few, (enum resource_kind)kind),
                   bytes_over(unfolded, many, (enum resource_kind)kind), 1e-9);
    CHECK_NEAR(bytes_over(folded, few, RESOURCE_NIC_OUT), bytes_over(folded, few, RESOURCE_NIC_IN),
               1e-9);
    CHECK_NEAR(bytes_over(folded, few, RESOURCE_SCALE_UP_OUT),
               bytes_over(folded, few, RESOURCE_SCALE_UP_IN), 1e-9);
}

static void check_shapes(const struct layout *folded, const struct layout *unfolded)
{
    const int64_t gpus = folded->gpus_per_host;
    for (int64_t ranks = 1; ranks <= gpus; ranks++) {
        for (int64_t stride = 1; stride * ranks <= gpus; stride++) {
            if (gpus % (stride * ranks) != 0)
                continue;
            const struct group in_host = {
                .ranks = ranks, .hosts = 1, .ranks_per_host = ranks, .stride = stride};
            if (ranks > 1)
                check_traffic(folded, unfolded, layout_ring(folded, &in_host),
                              layout_ring(unfolded, &in_host));
            const struct group across = {.ranks = ranks * folded->hosts,
                                         .hosts = folded->hosts,
                                         .ranks_per_host = ranks,
                                         .stride = ranks > 1 ? stride : gpus};
            if (folded->hosts > 1 && stride * ranks == gpus)
                check_traffic(folded, unfolded, layout_ring(folded, &across),
                              layout_ring(unfolded, &across));
        }
    }
    const struct group all = group_whole(folded);
    if (folded->ranks > 1)
        check_traffic(folded, unfolded, layout_all_to_all(folded, &all),
                      layout_all_to_all(unfolded, &all));
}

static void check_members(const struct layout *folded, const struct layout *unfolded)
{
    int64_t covered = 0;
    for (int32_t i = 0; i < folded->class_count; i++) {
        const struct rank_class *class = &folded->classes[i];
        const struct rank_class *first = &unfolded->classes[class->first_rank];
        CHECK_TEXT(class->gpu->name, first->gpu->name);
        CHECK_NEAR(class->gpu->hbm_bytes_per_s, first->gpu->hbm_bytes_per_s, 0);
        CHECK_NEAR(class->clock_frac, first->clock_frac, 0);
        covered += class->count;
    }
    CHECK_INT(covered, folded->ranks);
    for (int kind = 0; kind < RESOURCE_KIND_COUNT; kind++) {
        int64_t few = 0;
        int64_t many = 0;
        for (int32_t i = 0; i < folded->resource_count; i++)
            few += folded->resources[i].kind == (enum resource_kind)kind
                       ? folded->resources[i].instances
                       : 0;
        for (int32_t i = 0; i < unfolded->resource_count; i++)
            many += unfolded->resources[i].kind == (enum resource_kind)kind
                        ? unfolded->resources[i].instances
                        : 0;
        CHECK_INT(few, many);
    }
}

/* Copies of all ranks together: bytes over each kind of wire. */
static void check_copies(const struct layout *folded, const struct layout *unfolded)
{
    for (int kind = RESOURCE_PCIE_UP; kind <= RESOURCE_HOST_MEMORY; kind++) {
        double few = 0;
        double many = 0;
        for (int32_t i = 0; i < folded->class_count; i++)
            few += bytes_over(folded, layout_copy(folded, i, true), (enum resource_kind)kind);
        for (int32_t i = 0; i < unfolded->class_count; i++)
            many += bytes_over(unfolded, layout_copy(unfolded, i, true), (enum resource_kind)kind);
        CHECK_NEAR(few, many, 1e-9);
    }
}

static void test_traffic(void)
{
    struct philox random;
    philox_init(&random, SEED, 0, 0, 0);
    printf("seed %d\n", SEED);
    for (int i = 0; i < CLUSTER_COUNT; i++) {
        struct arena texts = {0};
        const size_t kinds = sizeof(hosts_of_kinds) / sizeof(hosts_of_kinds[0]);
        const char *const overrides[] = {hosts_of_kinds[(size_t)i % kinds],
                                         fabrics[philox_below(&random, 3)],
                                         random_overrides(&texts, &random), NULL};
        const int64_t hosts = 1 + philox_below(&random, MAX_HOSTS);
        check_context("%d hosts, %s, %s, %s", (int)hosts, overrides[0], overrides[1], overrides[2]);
        struct cluster_fixture fixture;
        fixture_init(&fixture, "dgx-h100", overrides);
        CHECK_INT(fixture.status, STATUS_OK);
        const int64_t gpus = fixture.cluster.gpus_per_host;
        struct layout folded = {0};
        struct layout unfolded = {0};
        CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, hosts, gpus, true, &folded,
                               &fixture.diag),
                  STATUS_OK);
        CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, hosts, gpus, false, &unfolded,
                               &fixture.diag),
                  STATUS_OK);
        check_members(&folded, &unfolded);
        check_shapes(&folded, &unfolded);
        check_copies(&folded, &unfolded);
        fixture_release(&fixture);
        arena_release(&texts);
    }
    check_context(NULL);
}

const struct check_case traffic_fold_cases[] = {{"folded as expanded", test_traffic}, {0}};
