/* engine/engine.c: see engine.h. */
#include "engine/engine.h"

#include <stddef.h>

#include "base/hash.h"
#include "base/status.h"

/* Four children share a cache line and a half, and the tree is half as deep as a binary one. */
enum { ARITY = 4 };

void engine_init(struct engine *engine, struct arena *arena, struct engine_handlers handlers)
{
    *engine = (struct engine){.arena = arena, .handlers = handlers};
}

void event_init(struct event *event, uint16_t kind, void *owner)
{
    *event = (struct event){.slot = EVENT_NOT_QUEUED, .kind = kind, .owner = owner};
}

static inline bool is_before(const struct heap_slot *a, const struct heap_slot *b)
{
    if (a->time_ps != b->time_ps)
        return a->time_ps < b->time_ps;
    return a->sequence < b->sequence;
}

static inline void put(struct heap_slot *heap, int32_t at, struct heap_slot slot)
{
    heap[at] = slot;
    slot.event->slot = at;
}

/* Writes `slot` at `at` or above. */
static void sift_up(struct heap_slot *heap, int32_t at, struct heap_slot slot)
{
    while (at > 0) {
        const int32_t parent = (at - 1) / ARITY;
        if (!is_before(&slot, &heap[parent]))
            break;
        put(heap, at, heap[parent]);
        at = parent;
    }
    put(heap, at, slot);
}

static inline const struct heap_slot *earlier(const struct heap_slot *a, const struct heap_slot *b)
{
    return is_before(b, a) ? b : a;
}

/* Writes `slot` at `at` or below. */
static void sift_down(struct heap_slot *heap, int32_t count, int32_t at, struct heap_slot slot)
{
    for (;;) {
        /* 64 bits: four times the largest slot. */
        const int64_t first = (int64_t)at * ARITY + 1;
        const struct heap_slot *child = &heap[first];
        const struct heap_slot *least = child;
        if (first + ARITY <= count) {
            least = earlier(earlier(child, child + 1), earlier(child + 2, child + 3));
        } else {
            if (first >= count)
                break;
            for (child++; child < heap + count; child++)
                least = earlier(least, child);
        }
        if (!is_before(least, &slot))
            break;
        put(heap, at, *least);
        at = (int32_t)(least - heap);
    }
    put(heap, at, slot);
}

/* Fills the free top with the last slot. */
static void fill_top(struct engine *engine)
{
    if (!engine->is_top_free)
        return;
    engine->is_top_free = false;
    engine->count--;
    if (engine->count > 0)
        sift_down(engine->heap, engine->count, 0, engine->heap[engine->count]);
}

static void insert(struct engine *engine, struct heap_slot slot)
{
    if (engine->is_top_free) {
        engine->is_top_free = false;
        sift_down(engine->heap, engine->count, 0, slot);
        return;
    }
    if (engine->count == engine->capacity)
        engine->heap =
            arena_grow(engine->arena, engine->heap, sizeof(*engine->heap), &engine->capacity);
    engine->count++;
    sift_up(engine->heap, engine->count - 1, slot);
}

/* `slot` replaces what stands at `at`, up or down as its key wants. */
static void replace(struct engine *engine, int32_t at, struct heap_slot slot)
{
    if (at > 0 && is_before(&slot, &engine->heap[(at - 1) / ARITY]))
        sift_up(engine->heap, at, slot);
    else
        sift_down(engine->heap, engine->count, at, slot);
}

void engine_schedule(struct engine *engine, struct event *event, int64_t time_ps)
{
    if (time_ps < engine->now_ps)
        BUG("event of kind %u at %lld ps, before now (%lld ps)", (unsigned)event->kind,
            (long long)time_ps, (long long)engine->now_ps);
    event->time_ps = time_ps;
    event->sequence = engine->next_sequence++;
    /* For a given seed the mix is a bijection: keys stay unique. */
    if (engine->tie_seed != 0)
        event->sequence = hash64_mix(engine->tie_seed, event->sequence);
    const struct heap_slot slot = {time_ps, event->sequence, event};
    if (event_is_queued(event)) {
        fill_top(engine);
        replace(engine, event->slot, slot);
    } else {
        insert(engine, slot);
    }
}

void engine_cancel(struct engine *engine, struct event *event)
{
    if (!event_is_queued(event))
        return;
    fill_top(engine);
    const int32_t at = event->slot;
    event->slot = EVENT_NOT_QUEUED;
    engine->count--;
    if (at < engine->count)
        replace(engine, at, engine->heap[engine->count]);
}

struct event *engine_event_new(struct engine *engine, uint16_t kind, void *owner)
{
    struct event *event = engine->free_events;
    if (event != NULL)
        engine->free_events = event->owner;
    else
        event = ARENA_NEW(engine->arena, struct event);
    event_init(event, kind, owner);
    return event;
}

void engine_event_free(struct engine *engine, struct event *event)
{
    engine_cancel(engine, event);
    event->owner = engine->free_events;
    engine->free_events = event;
}

void engine_request_instant_end(struct engine *engine)
{
    engine->is_instant_end_requested = true;
}

static void dispatch_top(struct engine *engine)
{
    struct event *event = engine->heap[0].event;
    event->slot = EVENT_NOT_QUEUED;
    engine->is_top_free = true;
    engine->dispatched_count++;
    const uint64_t what = (uint64_t)event->kind | (uint64_t)event->resource << 16 |
                          (uint64_t)(uint32_t)event->op << 32;
    engine->fingerprint =
        hash64_mix(hash64_mix(engine->fingerprint, (uint64_t)engine->now_ps), what);
    engine->handlers.dispatch(engine->handlers.context, event);
}

void engine_run(struct engine *engine)
{
    engine->is_stopped = false;
    while (!engine->is_stopped) {
        fill_top(engine);
        const bool is_instant_over = engine->count == 0 || engine->heap[0].time_ps > engine->now_ps;
        if (is_instant_over && engine->is_instant_end_requested) {
            engine->is_instant_end_requested = false;
            if (engine->handlers.instant_end != NULL)
                engine->handlers.instant_end(engine->handlers.context, engine->now_ps);
            continue;
        }
        if (engine->count == 0)
            break;
        engine->now_ps = engine->heap[0].time_ps;
        dispatch_top(engine);
    }
    fill_top(engine);
}

void engine_stop(struct engine *engine)
{
    engine->is_stopped = true;
}
