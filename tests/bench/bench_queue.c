/*
 * tests/bench/bench_queue.c: the hold model (pop the least, put it back at a random later time) on
 * the engine, dispatch and fingerprint included, and on a bare 4-ary heap of (time, sequence,
 * pointer) in an array, the least that any event queue does. Rounds alternate; the ratio is the
 * median of the rounds' ratios, engine rate over bare rate.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/philox.h"
#include "bench.h"
#include "engine/engine.h"

enum { HOLDS = 1000000, DELAYS = 4096 };

struct bare_item {
    int64_t time_ps;
    uint64_t sequence;
    void *owner;
};

struct bare_heap {
    struct bare_item *items;
    int32_t count;
    uint64_t next_sequence;
};

static inline int is_bare_before(const struct bare_item *a, const struct bare_item *b)
{
    return a->time_ps != b->time_ps ? a->time_ps < b->time_ps : a->sequence < b->sequence;
}

static void bare_push(struct bare_heap *heap, int64_t time_ps, void *owner)
{
    const struct bare_item item = {time_ps, heap->next_sequence++, owner};
    int32_t at = heap->count++;
    while (at > 0 && is_bare_before(&item, &heap->items[(at - 1) / 4])) {
        heap->items[at] = heap->items[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    heap->items[at] = item;
}

static struct bare_item bare_pop(struct bare_heap *heap)
{
    const struct bare_item top = heap->items[0];
    const struct bare_item last = heap->items[--heap->count];
    const int32_t count = heap->count;
    int32_t at = 0;
    for (int32_t first = 1; first < count; first = 4 * at + 1) {
        const int32_t end = first + 4 < count ? first + 4 : count;
        int32_t least = first;
        for (int32_t child = first + 1; child < end; child++) {
            if (is_bare_before(&heap->items[child], &heap->items[least]))
                least = child;
        }
        if (!is_bare_before(&heap->items[least], &last))
            break;
        heap->items[at] = heap->items[least];
        at = least;
    }
    heap->items[at] = last;
    return top;
}

struct delays {
    int64_t ps[DELAYS];
};

/* Exponential would need log; uniform times leave the heap as busy. */
static void draw_delays(struct delays *delays)
{
    struct philox random;
    philox_init(&random, 1, 0, 0, 0);
    for (int i = 0; i < DELAYS; i++)
        delays->ps[i] = 1 + philox_below(&random, 1000000);
}

static double hold_bare_s(const struct delays *delays, int32_t pending)
{
    struct arena arena = {0};
    struct bare_heap heap = {.items = ARENA_ARRAY(&arena, struct bare_item, pending + 1)};
    int *owners = ARENA_ARRAY(&arena, int, pending);
    for (int32_t i = 0; i < pending; i++)
        bare_push(&heap, delays->ps[i % DELAYS], &owners[i]);
    const double start_s = bench_now_s();
    for (uint32_t n = 0; n < HOLDS; n++) {
        const struct bare_item top = bare_pop(&heap);
        bare_push(&heap, top.time_ps + delays->ps[n % DELAYS], top.owner);
    }
    const double took_s = bench_now_s() - start_s;
    arena_release(&arena);
    return took_s;
}

struct hold {
    struct engine engine;
    const struct delays *delays;
    uint32_t done;
};

static void on_event(void *context, struct event *event)
{
    struct hold *hold = context;
    const uint32_t n = hold->done++;
    engine_schedule(&hold->engine, event, hold->engine.now_ps + hold->delays->ps[n % DELAYS]);
    if (hold->done == HOLDS)
        engine_stop(&hold->engine);
}

static double hold_engine_s(const struct delays *delays, int32_t pending)
{
    struct arena arena = {0};
    struct hold hold = {.delays = delays};
    engine_init(&hold.engine, &arena,
                (struct engine_handlers){.dispatch = on_event, .context = &hold});
    struct event *events = ARENA_ARRAY(&arena, struct event, pending);
    for (int32_t i = 0; i < pending; i++) {
        event_init(&events[i], 1, NULL);
        engine_schedule(&hold.engine, &events[i], delays->ps[i % DELAYS]);
    }
    const double start_s = bench_now_s();
    engine_run(&hold.engine);
    const double took_s = bench_now_s() - start_s;
    arena_release(&arena);
    return took_s;
}

void bench_queue(void)
{
    static const int32_t pending[] = {16, 256, 4096, 65536};
    struct delays delays;
    draw_delays(&delays);
    printf("  %8s  %14s  %14s  %s\n", "pending", "engine ev/s", "bare heap ev/s", "ratio");
    for (size_t p = 0; p < sizeof(pending) / sizeof(pending[0]); p++) {
        double engine_s[BENCH_ROUNDS], bare_s[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
        for (int round = 0; round < BENCH_ROUNDS; round++) {
            bare_s[round] = hold_bare_s(&delays, pending[p]);
            engine_s[round] = hold_engine_s(&delays, pending[p]);
            ratio[round] = bare_s[round] / engine_s[round];
        }
        printf("  %8d  %14.0f  %14.0f  %.2f\n", (int)pending[p], HOLDS / bench_median(engine_s),
               HOLDS / bench_median(bare_s), bench_median(ratio));
    }
}
