/*
 * tests/property/machine/test_groups.c: communicators over a part of ranks that differ: ranks
 * played once for all that are alike against every rank on its own.
 *
 * Random hybrid-sharded steps (dp_replicate × dp_shard on one cluster): units gathered and reduced
 * in the shard group, then all-reduced in the replica group, beside kernels; a slow GPU, slow NICs,
 * or both; NICs of one's own or shared. Every rank must reach every mark at the time at which its
 * class does, and every resource must carry the same bytes. Times are sums of rounded picoseconds
 * over shares that are added up in another order: they agree to 1e-9.
 */
#include <math.h>

#include "base/philox.h"
#include "check.h"
#include "cluster/group_layout.h"
#include "cluster_fixture.h"
#include "groups_tests.h"
#include "toy.h"

enum { SEED = 60217, RUNS = 150, MARKS = 3, MAX_RANKS = 64, MAX_RESOURCES = 1024, UNITS = 4 };

struct seen {
    int64_t mark_ps[MAX_RANKS][MARKS]; /* by class: the last step's */
    double amount[MAX_RESOURCES];
};

static void see_mark(void *context, int64_t now_ps, int32_t class_idx, int32_t step, enum mark mark)
{
    (void)step;
    struct seen *seen = context;
    seen->mark_ps[class_idx][mark % MARKS] = now_ps;
}

static void see_use(void *context, int64_t now_ps, int32_t resource, double amount, int64_t busy_ps)
{
    (void)now_ps;
    (void)busy_ps;
    struct seen *seen = context;
    seen->amount[resource] += amount;
}

struct mesh {
    int64_t hosts, gpus, nics, shard, replicas;
    struct group groups[2];
};

static int64_t pick(struct philox *random, const int64_t *from, uint32_t count)
{
    return from[philox_below(random, count)];
}

static void random_mesh(struct philox *random, struct mesh *mesh)
{
    static const int64_t hosts[] = {2, 4, 4, 8}, gpus[] = {2, 4, 8}, nics[] = {1, 2, 4, 8, 16};
    mesh->hosts = pick(random, hosts, 4);
    mesh->gpus = pick(random, gpus, 3);
    mesh->nics = pick(random, nics, 5);
    const int64_t ranks = mesh->hosts * mesh->gpus;
    do
        mesh->shard = INT64_C(1) << philox_below(random, 7);
    while (mesh->shard > ranks);
    mesh->replicas = ranks / mesh->shard;
}

static const char *random_overrides(struct arena *arena, struct philox *random,
                                    const struct mesh *mesh)
{
    const char *text = "overrides=[";
    for (uint32_t left = philox_below(random, 3); left > 0; left--) {
        const int host = (int)philox_below(random, (uint32_t)mesh->hosts);
        const double frac = 0.5 + 0.1 * philox_below(random, 5);
        if (philox_below(random, 2) == 0)
            text = arena_printf(arena, "%s{host: %d, gpu: %d, clock_frac: %g},", text, host,
                                (int)philox_below(random, (uint32_t)mesh->gpus), frac);
        else
            text = arena_printf(arena, "%s{host: %d, nic_frac: %g},", text, host, frac);
    }
    return arena_printf(arena, "%s]", text);
}

static int32_t add_collective(struct toy *toy, enum collective_op op, int32_t comm, double bytes)
{
    struct collective *collective = ARENA_PUSH(&toy->arena, &toy->program->collectives);
    *collective = (struct collective){op, comm, bytes};
    return toy->program->collectives.count - 1;
}

/* Gather, compute; back again: compute, reduce-scatter behind it, all-reduce behind that. */
static void random_step(struct philox *random, struct toy *toy, const struct mesh *mesh)
{
    toy->program->communicators.items[0].group = mesh->groups[0];
    const int32_t replicas = toy_communicator(toy, "dp_replicate");
    toy->program->communicators.items[replicas].group = mesh->groups[1];
    const int32_t computed = toy_event(toy, "computed");
    const int32_t gathered = toy_event(toy, "gathered");
    toy_op(toy, OP_MARK, TOY_COMPUTE, 0);
    for (int32_t i = 0; i < 2 * UNITS; i++) {
        const double bytes = 1e8 * (0.5 + philox_unit(random));
        const double ms = 4 * philox_unit(random);
        struct kernel *kernel = ARENA_NEW(&toy->arena, struct kernel);
        *kernel = toy_kernel(ms, ms * 1e9 * philox_unit(random));
        toy_op(toy, OP_COLLECTIVE, TOY_GATHER,
               add_collective(toy, COLLECTIVE_ALL_GATHER, 0, bytes));
        toy_op(toy, OP_RECORD, TOY_GATHER, gathered);
        toy_op(toy, OP_WAIT, TOY_COMPUTE, gathered);
        toy_op(toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(toy, kernel, 1));
        if (i < UNITS)
            continue;
        toy_op(toy, OP_RECORD, TOY_COMPUTE, computed);
        toy_op(toy, OP_WAIT, TOY_SCATTER, computed);
        if (philox_below(random, 2) == 0)
            toy_op(toy, OP_COLLECTIVE, TOY_SCATTER,
                   add_collective(toy, COLLECTIVE_REDUCE_SCATTER, 0, bytes));
        toy_op(toy, OP_COLLECTIVE, TOY_SCATTER,
               add_collective(toy, COLLECTIVE_ALL_REDUCE, replicas, bytes / (double)mesh->shard));
    }
    toy_op(toy, OP_MARK, TOY_COMPUTE, 1);
    toy_op(toy, OP_MARK, TOY_SCATTER, 2);
}

static bool play(struct cluster_fixture *fixture, const struct mesh *mesh, uint32_t run,
                 bool is_folded, struct layout *layout, struct seen *seen)
{
    struct philox random;
    struct toy toy;
    philox_init(&random, SEED, run, 0, 2);
    *seen = (struct seen){0};
    bool is_good = CHECK_INT(layout_build_for_groups(&fixture->arena, &fixture->cluster,
                                                     mesh->hosts, mesh->gpus, is_folded,
                                                     mesh->groups, 2, layout, &fixture->diag),
                             STATUS_OK);
    toy_init(&toy, 2, true);
    toy.layout = *layout;
    toy.steps = 2;
    toy.network = philox_below(&random, 4) == 0 ? NETWORK_MESSAGES : NETWORK_FLOWS;
    toy.observers[0] =
        (struct observer){.context = seen, .mark_reached = see_mark, .resource_used = see_use};
    toy.observer_count = 1;
    random_step(&random, &toy, mesh);
    is_good = is_good && toy_play(&toy).end_ps > 0;
    toy_release(&toy);
    return is_good;
}

/* Ranks of the unfolded layout against their classes; resources through the first rank of each. */
static void compare(const struct layout *folded, const struct seen *few,
                    const struct layout *unfolded, const struct seen *many)
{
    for (int64_t i = 0; i < folded->ranks; i++) {
        const int32_t class = folded->each != NULL ? folded->each->class_of[i] : -1;
        for (int32_t mark = 0; mark < MARKS && class >= 0; mark++)
            CHECK_NEAR((double)few->mark_ps[class][mark], (double)many->mark_ps[i][mark], 1e-9);
    }
    for (int32_t i = 0; i < unfolded->resource_count && folded->each != NULL; i++)
        CHECK_NEAR(few->amount[folded->each->resource_of[i]], many->amount[i], 1e-9);
}

static void test_folded_or_not(void)
{
    int32_t split = 0, saved = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        struct philox random;
        struct mesh mesh;
        struct arena texts = {0};
        philox_init(&random, SEED, run, 0, 1);
        random_mesh(&random, &mesh);
        const char *const overrides[] = {random_overrides(&texts, &random, &mesh),
                                         arena_printf(&texts, "host.nics.count=%d", (int)mesh.nics),
                                         arena_printf(&texts, "host.gpus=%d", (int)mesh.gpus),
                                         philox_below(&random, 2)
                                             ? "collectives.algorithm=ring"
                                             : "collectives.algorithm=two_level_ring",
                                         NULL};
        check_context("seed %d, run %u: %d x %d GPUs, %d NICs, shard %d, %s", SEED, run,
                      (int)mesh.hosts, (int)mesh.gpus, (int)mesh.nics, (int)mesh.shard,
                      overrides[0]);
        struct cluster_fixture fixture;
        fixture_init(&fixture, "dgx-h100", overrides);
        const struct layout size = {.gpus_per_host = mesh.gpus, .ranks = mesh.hosts * mesh.gpus};
        if (CHECK_INT(fixture.status, STATUS_OK) &&
            CHECK_TRUE(group_along(&size, mesh.shard, 1, &mesh.groups[0])) &&
            CHECK_TRUE(group_along(&size, mesh.replicas, mesh.shard, &mesh.groups[1]))) {
            struct layout folded, unfolded;
            static struct seen few, many;
            if (play(&fixture, &mesh, run, true, &folded, &few) &&
                play(&fixture, &mesh, run, false, &unfolded, &many))
                compare(&folded, &few, &unfolded, &many);
            split += folded.class_count > 1 ? 1 : 0;
            saved += folded.class_count < folded.ranks ? 1 : 0;
        }
        fixture_release(&fixture);
        arena_release(&texts);
    }
    check_context(NULL);
    /* Both happen often: classes that differ, and classes of several ranks. */
    CHECK_TRUE(split > RUNS / 4 && saved > RUNS / 2);
}

const struct check_case groups_cases[] = {{"folded or not", test_folded_or_not}, {0}};
