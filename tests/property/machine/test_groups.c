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
#include <string.h>

#include "base/philox.h"
#include "check.h"
#include "machine_property.h"

enum { SEED = 60217, RUNS = 150, MARKS = 3, MAX_RANKS = 64, MAX_RESOURCES = 8192 };

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

static bool play(struct mesh *mesh, uint32_t run, bool is_folded, struct layout *layout,
                 struct seen *seen)
{
    struct philox random;
    struct toy toy;
    philox_init(&random, SEED, run, 0, 2);
    *seen = (struct seen){0};
    mesh_layout(mesh, is_folded, layout);
    toy_init(&toy, 2, true);
    toy.layout = *layout;
    toy.steps = 2;
    toy.network = philox_below(&random, 4) == 0 ? NETWORK_MESSAGES : NETWORK_FLOWS;
    toy.observers[0] =
        (struct observer){.context = seen, .mark_reached = see_mark, .resource_used = see_use};
    toy.observer_count = 1;
    mesh_step(mesh, &random, &toy, false);
    const bool is_good = toy_play(&toy).end_ps > 0;
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
        philox_init(&random, SEED, run, 0, 1);
        mesh_draw(&mesh, &random);
        check_context("seed %d, run %u: %s", SEED, run, mesh.text);
        if (CHECK_INT(mesh.cluster.status, STATUS_OK)) {
            struct layout folded, unfolded;
            static struct seen few, many;
            if (play(&mesh, run, true, &folded, &few) && play(&mesh, run, false, &unfolded, &many))
                compare(&folded, &few, &unfolded, &many);
            split += folded.class_count > 1 ? 1 : 0;
            saved += folded.class_count < folded.ranks ? 1 : 0;
        }
        mesh_release(&mesh);
    }
    check_context(NULL);
    /* Both happen often: classes that differ, and classes of several ranks. */
    CHECK_TRUE(split > RUNS / 4 && saved > RUNS / 2);
}

/* The order in which equal times are served changes nothing, nor does watching. */
static void test_ties(void)
{
    for (uint32_t run = 0; run < RUNS / 3; run++) {
        struct philox random;
        struct mesh mesh;
        struct toy toy;
        static struct seen first, other;
        philox_init(&random, SEED, run, 0, 3);
        mesh_draw(&mesh, &random);
        check_context("seed %d, run %u: %s", SEED, run, mesh.text);
        toy_init(&toy, 2, true);
        mesh_layout(&mesh, philox_below(&random, 2) == 0, &toy.layout);
        toy.steps = 2;
        mesh_step(&mesh, &random, &toy, false);
        const struct machine_result bare = toy_play(&toy);
        for (uint64_t tie = 0; tie < 3; tie++) {
            struct seen *seen = tie == 0 ? &first : &other;
            *seen = (struct seen){0};
            toy.tie_seed = tie * 7919;
            toy.observers[0] = (struct observer){
                .context = seen, .mark_reached = see_mark, .resource_used = see_use};
            toy.observer_count = 1;
            const struct machine_result watched = toy_play(&toy);
            CHECK_INT(watched.end_ps, bare.end_ps);
            if (tie == 0)
                CHECK_U64(watched.fingerprint, bare.fingerprint);
            CHECK_TRUE(memcmp(seen->mark_ps, first.mark_ps, sizeof(first.mark_ps)) == 0);
        }
        toy_release(&toy);
        mesh_release(&mesh);
    }
    check_context(NULL);
}

const struct check_case groups_cases[] = {
    {"folded or not", test_folded_or_not}, {"ties", test_ties}, {0}};
