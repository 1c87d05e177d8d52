/*
 * tests/property/layout/test_layout_fold.c: folding against the same cluster expanded.
 *
 * Random overrides on random hosts. The classes must be those that naive refinement by hashes finds
 * on the unfolded layout, every resource must be there once, and plans must take the same time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/philox.h"
#include "cluster/partition.h"
#include "cluster_fixture.h"
#include "collective/plan.h"
#include "layout_property.h"
#include "numeric/curve.h"

#include "check.h"

enum { SEED = 2385, CLUSTER_COUNT = 400, GRAPH_COUNT = 400, MAX_HOSTS = 20, ROUNDS = 8 };

struct expanded { /* one hash for each rank of an unfolded layout, refined */
    uint64_t *ranks, *nics, *hosts;
    uint64_t *next_nics, *next_hosts;
};

static uint64_t hash_real(uint64_t hash, double value)
{
    return hash64_mix(hash, (uint64_t)(value * 1e6));
}

/* Sums of hashes stand for multisets: order does not matter. */
static void refine_round(const struct layout *layout, struct expanded *all)
{
    for (int32_t i = 0; i < layout->resource_count; i++)
        all->next_nics[i] = hash64_mix(all->nics[i], 7);
    for (int64_t i = 0; i < layout->hosts; i++)
        all->next_hosts[i] = hash64_mix(all->hosts[i], 9);
    for (int64_t i = 0; i < layout->ranks; i++) {
        const int32_t nic = layout->classes[i].nic_out;
        const int64_t host = i / layout->gpus_per_host;
        all->next_hosts[host] += hash64_mix(all->ranks[i], 11);
        if (nic >= 0)
            all->next_nics[nic] += hash64_mix(all->ranks[i], 13);
        all->ranks[i] =
            hash64_mix(hash64_mix(all->ranks[i], all->hosts[host]), nic < 0 ? 0 : all->nics[nic]);
    }
    for (int32_t i = 0; i < layout->resource_count; i++)
        all->nics[i] = all->next_nics[i];
    for (int64_t i = 0; i < layout->hosts; i++)
        all->hosts[i] = all->next_hosts[i];
}

static struct expanded expand(struct arena *arena, const struct layout *layout)
{
    struct expanded all = {.ranks = ARENA_ARRAY(arena, uint64_t, layout->ranks),
                           .nics = ARENA_ARRAY(arena, uint64_t, layout->resource_count),
                           .hosts = ARENA_ARRAY(arena, uint64_t, layout->hosts),
                           .next_nics = ARENA_ARRAY(arena, uint64_t, layout->resource_count),
                           .next_hosts = ARENA_ARRAY(arena, uint64_t, layout->hosts)};
    for (int64_t i = 0; i < layout->ranks; i++)
        all.ranks[i] = hash_real(1, layout->classes[i].clock_frac);
    for (int32_t i = 0; i < layout->resource_count; i++)
        all.nics[i] = hash_real((uint64_t)layout->resources[i].instances,
                                layout->resources[i].capacity * 1e-9);
    for (int round = 0; round < ROUNDS; round++)
        refine_round(layout, &all);
    return all;
}

static void check_classes(struct arena *arena, const struct layout *folded,
                          const struct layout *unfolded)
{
    struct expanded all = expand(arena, unfolded);
    int64_t covered = 0;
    for (int32_t i = 0; i < folded->class_count; i++) {
        const struct rank_class *class = &folded->classes[i];
        int64_t alike = 0;
        int64_t on_first_host = 0;
        for (int64_t rank = 0; rank < unfolded->ranks; rank++) {
            if (all.ranks[rank] != all.ranks[class->first_rank])
                continue;
            alike++;
            CHECK_TRUE(rank >= class->first_rank);
            on_first_host +=
                rank / folded->gpus_per_host == class->first_rank / folded->gpus_per_host ? 1 : 0;
        }
        const struct rank_class *first = &unfolded->classes[class->first_rank];
        CHECK_INT(class->count, alike);
        CHECK_INT(class->per_host, on_first_host);
        CHECK_INT(class->hosts * class->per_host, class->count);
        CHECK_NEAR(class->clock_frac, first->clock_frac, 0);
        if (class->nic_out >= 0)
            CHECK_NEAR(folded->resources[class->nic_out].capacity,
                       unfolded->resources[first->nic_out].capacity, 0);
        covered += alike;
    }
    CHECK_INT(covered, unfolded->ranks);
}

static int64_t instances(const struct layout *layout, enum resource_kind kind)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < layout->resource_count; i++)
        sum += layout->resources[i].kind == kind ? layout->resources[i].instances : 0;
    return sum;
}

/* Bytes over all instances of a kind for each byte that a rank sends. */
static double traffic(const struct layout *layout, const struct phase *phase,
                      enum resource_kind kind)
{
    double sum = 0;
    for (int32_t i = 0; i < phase->load_count; i++) {
        const struct resource *resource = &layout->resources[phase->loads[i].resource];
        if (resource->kind == kind)
            sum += phase->loads[i].per_byte * (double)resource->instances;
    }
    return sum;
}

static void check_plans(struct cluster_fixture *fixture, const struct layout *folded,
                        const struct layout *unfolded)
{
    const struct group group = {
        .ranks = folded->ranks, .hosts = folded->hosts, .ranks_per_host = folded->gpus_per_host};
    const struct plan_options options = {0};
    for (int op = 0; op < COLLECTIVE_OP_COUNT; op++) {
        struct plan few;
        struct plan many;
        CHECK_INT(plan_build(&fixture->arena, folded, &group, (enum collective_op)op, 23.85e6,
                             &options, &few, &fixture->diag),
                  STATUS_OK);
        CHECK_INT(plan_build(&fixture->arena, unfolded, &group, (enum collective_op)op, 23.85e6,
                             &options, &many, &fixture->diag),
                  STATUS_OK);
        CHECK_NEAR(plan_alone_s(folded, &few), plan_alone_s(unfolded, &many), 1e-14);
        for (int32_t i = 0; i < few.phase_count; i++) {
            for (int kind = 0; kind < RESOURCE_KIND_COUNT; kind++)
                CHECK_NEAR(traffic(folded, &few.phases[i], (enum resource_kind)kind),
                           traffic(unfolded, &many.phases[i], (enum resource_kind)kind), 1e-12);
        }
        if (few.algorithm == ALGORITHM_RING && op <= COLLECTIVE_ALL_REDUCE && few.phase_count > 0)
            CHECK_NEAR(traffic(folded, &few.phases[0], RESOURCE_NIC_OUT),
                       folded->hosts > 1 ? (double)folded->hosts : 0, 1e-12);
    }
}

static const char *random_overrides(struct arena *arena, struct philox *random)
{
    static const double fracs[] = {0.5, 0.8, 1};
    uint32_t count = philox_below(random, 6);
    const char *text = "overrides=[";
    for (uint32_t i = 0; i < count; i++) {
        unsigned host = philox_below(random, MAX_HOSTS);
        double clock_frac = fracs[philox_below(random, 3)];
        if (philox_below(random, 2) == 0)
            text = arena_printf(arena, "%s{host: %u, gpu: %u, clock_frac: %g},", text, host,
                                (unsigned)philox_below(random, 8), clock_frac);
        else
            text = arena_printf(arena, "%s{host: %u, clock_frac: %g, nic_frac: %g},", text, host,
                                clock_frac, fracs[philox_below(random, 3)]);
    }
    return arena_printf(arena, "%s]", text);
}

static void test_fold(void)
{
    static const unsigned nics[] = {1, 2, 3, 5, 8, 11, 16, 24};
    struct philox random;
    philox_init(&random, SEED, 0, 0, 0);
    printf("seed %d\n", SEED);
    for (int i = 0; i < CLUSTER_COUNT; i++) {
        struct arena texts = {0};
        const char *const overrides[] = {
            random_overrides(&texts, &random),
            arena_printf(&texts, "host.nics.count=%u", nics[philox_below(&random, 8)]),
            philox_below(&random, 2) ? "collectives.algorithm=ring"
                                     : "collectives.algorithm=two_level_ring",
            NULL};
        int64_t hosts = 1 + philox_below(&random, MAX_HOSTS);
        check_context("%d hosts, %s, %s", (int)hosts, overrides[0], overrides[1]);
        struct cluster_fixture fixture;
        fixture_init(&fixture, "grand-teton-h100-96gb", overrides); /* no tree: NICs alone */
        fixture.cluster.gpus_per_host = 8;
        int64_t gpus = 1 + philox_below(&random, 8);
        struct layout folded = {0};
        struct layout unfolded = {0};
        CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, hosts, gpus, true, &folded,
                               &fixture.diag),
                  STATUS_OK);
        CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, hosts, gpus, false, &unfolded,
                               &fixture.diag),
                  STATUS_OK);
        CHECK_INT(unfolded.class_count, unfolded.ranks);
        check_classes(&fixture.arena, &folded, &unfolded);
        for (int kind = 0; kind < RESOURCE_KIND_COUNT; kind++)
            CHECK_INT(instances(&folded, (enum resource_kind)kind),
                      instances(&unfolded, (enum resource_kind)kind));
        check_plans(&fixture, &folded, &unfolded);
        fixture_release(&fixture);
        arena_release(&texts);
    }
    check_context(NULL);
}

enum { NODES = 14, EDGES = 18, COPIES = 3, LABELS = 2 };

static int32_t neighbours(const struct partition_edge *edges, int32_t count, int32_t node,
                          int32_t label, const int32_t *colours, int32_t colour)
{
    int32_t found = 0;
    for (int32_t i = 0; i < count; i++) {
        if (edges[i].label != label)
            continue;
        found += edges[i].a == node && colours[edges[i].b] == colour ? 1 : 0;
        found += edges[i].b == node && colours[edges[i].a] == colour ? 1 : 0;
    }
    return found;
}

static bool is_equitable(const struct partition_edge *edges, const int32_t *seeds,
                         const int32_t *colours, int32_t a, int32_t b)
{
    if (seeds[a] != seeds[b])
        return false;
    for (int32_t label = 0; label < LABELS; label++) {
        for (int32_t colour = 0; colour < NODES; colour++) {
            if (neighbours(edges, EDGES, a, label, colours, colour) !=
                neighbours(edges, EDGES, b, label, colours, colour))
                return false;
        }
    }
    return true;
}

/* A random graph, and copies of it behind it. */
static void random_graph(struct philox *random, struct partition_edge *edges, int32_t *seeds)
{
    for (int32_t e = 0; e < EDGES; e++) {
        edges[e] = (struct partition_edge){(int32_t)philox_below(random, NODES),
                                           (int32_t)philox_below(random, NODES),
                                           (int32_t)philox_below(random, LABELS)};
        for (int32_t copy = 1; copy < COPIES; copy++)
            edges[copy * EDGES + e] = (struct partition_edge){
                edges[e].a + copy * NODES, edges[e].b + copy * NODES, edges[e].label};
    }
    for (int32_t n = 0; n < NODES * COPIES; n++)
        seeds[n] = n < NODES ? (int32_t)philox_below(random, 2) : seeds[n - NODES];
}

static void check_equitable(const struct partition_edge *edges, const int32_t *seeds,
                            const int32_t *colours)
{
    for (int32_t a = 0; a < NODES; a++) {
        for (int32_t b = 0; b < a; b++) {
            if (colours[a] == colours[b])
                CHECK_TRUE(is_equitable(edges, seeds, colours, a, b));
        }
    }
}

/* Equitable by its definition; coarsest: copies of a graph need no colours of their own. */
static void test_refinement(void)
{
    struct philox random;
    philox_init(&random, SEED, 1, 0, 0);
    for (int i = 0; i < GRAPH_COUNT; i++) {
        check_context("seed %d, graph %d", SEED, i);
        struct partition_edge edges[EDGES * COPIES];
        int32_t seeds[NODES * COPIES];
        int32_t colours[NODES * COPIES];
        random_graph(&random, edges, seeds);
        struct arena scratch = {0};
        for (int32_t n = 0; n < NODES; n++)
            colours[n] = seeds[n];
        int32_t count = partition_refine(&scratch, NODES, edges, EDGES, colours);
        check_equitable(edges, seeds, colours);
        for (int32_t n = 0; n < NODES * COPIES; n++)
            colours[n] = seeds[n];
        CHECK_INT(partition_refine(&scratch, NODES * COPIES, edges, EDGES * COPIES, colours),
                  count);
        arena_release(&scratch);
    }
    check_context(NULL);
}

static const struct check_case layout_fold_cases[] = {
    {"folded as expanded", test_fold}, {"refinement", test_refinement}, {0}};

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {
        {"layout fold", layout_fold_cases}, {"traffic fold", traffic_fold_cases}, {0}};
    numeric_init();
    return check_main(argc, argv, suites);
}
