/*
 * engine/engine.h: clock, event queue, run loop, fingerprint. It has never heard of a GPU.
 *
 * Time is int64 picoseconds. Events are ordered by (time_ps, sequence): sequence numbers are handed
 * out when an event is scheduled, so ties run in the order they were made. The queue is an
 * intrusive 4-ary heap: an event knows its slot, so re-timing is one sift, O(log n). Its slots hold
 * the keys beside the pointers, so a sift reads no events. The top slot of a dispatched event stays
 * free until the first event is scheduled again, which saves one sift of the two. Events are
 * embedded in the objects they belong to; engine_event_new/free keep a free list for those that are
 * not.
 *
 * Every dispatched event feeds the fingerprint (time, kind, op, resource). After all events of one
 * instant, `instant_end` runs once if engine_request_instant_end was called: this is where rates
 * are solved again, once an instant however many activities began or ended. It may schedule events
 * at the same instant; they run, and the hook again.
 *
 * `tie_seed` != 0 permutes ties (sequence numbers are hashed with it): a test tool.
 */
#ifndef FSDPSIM_ENGINE_ENGINE_H
#define FSDPSIM_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { EVENT_NOT_QUEUED = -1 };

struct event {
    int64_t time_ps;
    uint64_t sequence;
    int32_t slot;      /* in the heap, EVENT_NOT_QUEUED: not queued */
    uint16_t kind;     /* meaning is the owner's */
    uint16_t resource; /* for the fingerprint */
    int32_t op;        /* for the fingerprint */
    void *owner;
};

struct engine_handlers {
    void (*dispatch)(void *context, struct event *event);
    void (*instant_end)(void *context, int64_t now_ps); /* may be NULL */
    void *context;
};

struct heap_slot {
    int64_t time_ps;
    uint64_t sequence;
    struct event *event;
};

struct engine {
    struct arena *arena;
    struct engine_handlers handlers;
    struct heap_slot *heap;
    int32_t count, capacity; /* slots in use, a free top included */
    bool is_top_free;
    int64_t now_ps;
    uint64_t next_sequence;
    uint64_t tie_seed;
    uint64_t fingerprint;
    int64_t dispatched_count;
    bool is_instant_end_requested;
    bool is_stopped;
    struct event *free_events;
};

void engine_init(struct engine *engine, struct arena *arena, struct engine_handlers handlers);

/* An event must be initialised once before it is scheduled. */
void event_init(struct event *event, uint16_t kind, void *owner);
/* At time_ps >= now (BUG otherwise); queued already: re-timed, with a new sequence number. */
void engine_schedule(struct engine *engine, struct event *event, int64_t time_ps);
void engine_cancel(struct engine *engine, struct event *event); /* not queued: nothing */
static inline bool event_is_queued(const struct event *event)
{
    return event->slot >= 0;
}

struct event *engine_event_new(struct engine *engine, uint16_t kind, void *owner);
void engine_event_free(struct engine *engine, struct event *event);

void engine_request_instant_end(struct engine *engine);
/* Until the queue is empty or engine_stop was called. */
void engine_run(struct engine *engine);
void engine_stop(struct engine *engine);

#endif
