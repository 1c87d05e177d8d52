/*
 * tests/bench/bench_flows.c: random flows on random links, all begun at once and played to their
 * end: the solver, and engine and solver together as the machine uses them; beside SimGrid on the
 * same systems, where it is installed (bench_simgrid.c).
 *
 *   small 8 links, 32 flows; medium 64, 512; large 512, 4,096; a flow crosses 1 to 4 of the links
 *
 * Max-min fair rates, no latency, no caps: in both, every end of a flow is followed by a new solve.
 * Times are of playing alone. The ends must agree: the largest difference is printed.
 */
#include "bench_flows.h"

#include <math.h>
#include <stdio.h>

#include "base/philox.h"
#include "base/units.h"
#include "bench.h"
#include "engine/engine.h"
#include "machine/maxmin.h"

static void system_draw(struct arena *arena, struct flow_system *system, int32_t links,
                        int32_t flows, uint32_t seed)
{
    struct philox random;
    philox_init(&random, seed, 0, 0, 0);
    *system = (struct flow_system){.link_count = links,
                                   .flow_count = flows,
                                   .capacity = ARENA_ARRAY(arena, int64_t, links),
                                   .flows = ARENA_ARRAY(arena, struct system_flow, flows)};
    for (int32_t i = 0; i < links; i++)
        system->capacity[i] = 100000000 + (int64_t)philox_below(&random, 900000000);
    for (int32_t i = 0; i < flows; i++) {
        struct system_flow *flow = &system->flows[i];
        flow->bytes = 1000000 + (int64_t)philox_below(&random, 999000000);
        const int32_t wanted = 1 + (int32_t)philox_below(&random, FLOW_LINKS);
        while (flow->link_count < wanted) {
            const int32_t link = (int32_t)philox_below(&random, (uint32_t)links);
            bool is_new = true;
            for (int32_t j = 0; j < flow->link_count; j++)
                is_new = is_new && flow->links[j] != link;
            if (is_new)
                flow->links[flow->link_count++] = link;
        }
    }
}

struct moving {
    struct event event;
    struct demand demands[FLOW_LINKS];
    double left, rate;
    int64_t updated_ps, end_ps;
    int32_t id;
};

struct player {
    struct engine engine;
    struct maxmin *solver;
    struct moving *flows, **by_id;
};

static void flow_ended(void *context, struct event *event)
{
    struct player *player = context;
    struct moving *flow = event->owner;
    flow->end_ps = player->engine.now_ps;
    maxmin_remove(player->solver, flow->id);
    engine_request_instant_end(&player->engine);
}

static void rates_changed(void *context, int64_t now_ps)
{
    struct player *player = context;
    const int32_t *changed = NULL;
    int32_t count = 0;
    maxmin_solve(player->solver, &changed, &count);
    for (int32_t i = 0; i < count; i++) {
        struct moving *flow = player->by_id[changed[i]];
        flow->left = fmax(0, flow->left - flow->rate * s_from_ps(now_ps - flow->updated_ps));
        flow->updated_ps = now_ps;
        flow->rate = maxmin_rate(player->solver, changed[i]);
        engine_schedule(&player->engine, &flow->event, now_ps + ps_from_s(flow->left / flow->rate));
    }
}

/* Seconds of our time; the ends of the flows go to `ends_s`. */
static double play(const struct flow_system *system, double *ends_s)
{
    struct arena arena = {0};
    struct player player = {.solver = maxmin_new(&arena),
                            .flows = ARENA_ARRAY(&arena, struct moving, system->flow_count),
                            .by_id = ARENA_ARRAY(&arena, struct moving *, system->flow_count)};
    engine_init(&player.engine, &arena,
                (struct engine_handlers){
                    .dispatch = flow_ended, .instant_end = rates_changed, .context = &player});
    for (int32_t i = 0; i < system->link_count; i++)
        (void)maxmin_add_resource(player.solver, (double)system->capacity[i]);
    const double start_s = bench_now_s();
    for (int32_t i = 0; i < system->flow_count; i++) {
        const struct system_flow *from = &system->flows[i];
        struct moving *flow = &player.flows[i];
        event_init(&flow->event, 1, flow);
        flow->left = (double)from->bytes;
        for (int32_t j = 0; j < from->link_count; j++)
            flow->demands[j] = (struct demand){from->links[j], 1};
        flow->id = maxmin_add(player.solver, 1, HUGE_VAL, flow->demands, from->link_count);
        player.by_id[flow->id] = flow;
    }
    rates_changed(&player, 0);
    engine_run(&player.engine);
    const double took_s = bench_now_s() - start_s;
    for (int32_t i = 0; i < system->flow_count; i++)
        ends_s[i] = s_from_ps(player.flows[i].end_ps);
    arena_release(&arena);
    return took_s;
}

/* One solve of all that begins together. */
static double solve_once(const struct flow_system *system)
{
    struct arena arena = {0};
    struct maxmin *solver = maxmin_new(&arena);
    struct demand(*demands)[FLOW_LINKS] =
        arena_alloc(&arena, sizeof(*demands) * (size_t)system->flow_count);
    for (int32_t i = 0; i < system->link_count; i++)
        (void)maxmin_add_resource(solver, (double)system->capacity[i]);
    for (int32_t i = 0; i < system->flow_count; i++) {
        for (int32_t j = 0; j < system->flows[i].link_count; j++)
            demands[i][j] = (struct demand){system->flows[i].links[j], 1};
        maxmin_add(solver, 1, HUGE_VAL, demands[i], system->flows[i].link_count);
    }
    const int32_t *changed = NULL;
    int32_t count = 0;
    const double start_s = bench_now_s();
    maxmin_solve(solver, &changed, &count);
    const double took_s = bench_now_s() - start_s;
    arena_release(&arena);
    return took_s;
}

static double largest_difference(const struct flow_system *system, const double *a, const double *b)
{
    double largest = 0;
    for (int32_t i = 0; i < system->flow_count; i++)
        largest = fmax(largest, fabs(a[i] / b[i] - 1));
    return largest;
}

static void bench_system(const char *name, int32_t links, int32_t flows, int32_t rounds)
{
    struct arena arena = {0};
    struct flow_system system;
    system_draw(&arena, &system, links, flows, (uint32_t)flows);
    double *ours_s = ARENA_ARRAY(&arena, double, flows);
    double *theirs_s = ARENA_ARRAY(&arena, double, flows);
    double solve_s[BENCH_ROUNDS], play_s[BENCH_ROUNDS], ratio[BENCH_ROUNDS], simgrid_s = 0;
    bool has_simgrid = true;
    for (int32_t round = 0; round < BENCH_ROUNDS; round++) {
        solve_s[round] = solve_once(&system);
        play_s[round] = play(&system, ours_s);
        /* Long ones once: they vary little. */
        if (has_simgrid && round < rounds)
            has_simgrid = bench_simgrid_play(&system, &simgrid_s, theirs_s);
        ratio[round] = simgrid_s / play_s[round];
    }
    const double solve = bench_median(solve_s), played = bench_median(play_s);
    printf("  %-8s %5d %6d %12.1f %12.3f", name, (int)links, (int)flows, solve * 1e6, played * 1e3);
    if (has_simgrid)
        printf(" %12.3f %8.1f %12.1e\n", simgrid_s * 1e3, bench_median(ratio),
               largest_difference(&system, ours_s, theirs_s));
    else
        printf(" %12s\n", "-");
    arena_release(&arena);
}

void bench_flows(void)
{
    printf("  %-8s %5s %6s %12s %12s %12s %8s %12s\n", "system", "links", "flows", "solve us",
           "play ms", "SimGrid ms", "ratio", "difference");
    bench_system("small", 8, 32, BENCH_ROUNDS);
    bench_system("medium", 64, 512, BENCH_ROUNDS);
    bench_system("large", 512, 4096, 1);
    if (!bench_has_simgrid)
        printf("  SimGrid is not there (Debian: libsimgrid-dev, then configure again)\n");
}
