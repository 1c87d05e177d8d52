/* tests/unit/engine/test_engine.c: toy events; each writes one letter when it runs. */
#include "engine/engine.h"

#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"

enum { KIND_LETTER = 7, KIND_RETIME, KIND_CANCEL, KIND_SPAWN, KIND_STOP, KIND_HOOK };

struct toy {
    struct arena arena;
    struct engine engine;
    char log[64];      /* letters in the order of dispatch; '|' for the end of an instant */
    int hook_events;   /* how many same-instant events the hook still schedules */
    struct event late; /* what the hook schedules */
    struct event *target;
    int64_t target_ps;
    int64_t hook_ps;
};

static void say(struct toy *toy, char letter)
{
    const size_t length = strlen(toy->log);
    if (length + 1 < sizeof(toy->log))
        toy->log[length] = letter;
}

static void dispatch(void *context, struct event *event)
{
    struct toy *toy = context;
    say(toy, (char)event->op);
    switch (event->kind) {
    case KIND_RETIME:
    case KIND_SPAWN:
        engine_schedule(&toy->engine, toy->target, toy->target_ps);
        break;
    case KIND_CANCEL:
        engine_cancel(&toy->engine, toy->target);
        break;
    case KIND_STOP:
        engine_stop(&toy->engine);
        break;
    case KIND_HOOK:
        engine_request_instant_end(&toy->engine);
        break;
    default:
        break;
    }
}

static void instant_end(void *context, int64_t now_ps)
{
    struct toy *toy = context;
    say(toy, '|');
    toy->hook_ps = now_ps;
    if (toy->hook_events-- > 0) {
        engine_schedule(&toy->engine, &toy->late, now_ps);
        engine_request_instant_end(&toy->engine);
    }
}

static void toy_init(struct toy *toy)
{
    memset(toy, 0, sizeof(*toy));
    const struct engine_handlers handlers = {dispatch, instant_end, toy};
    engine_init(&toy->engine, &toy->arena, handlers);
    event_init(&toy->late, KIND_LETTER, NULL);
    toy->late.op = '+';
}

static struct event *add(struct toy *toy, uint16_t kind, int32_t letter, int64_t time_ps)
{
    struct event *event = engine_event_new(&toy->engine, kind, NULL);
    event->op = letter;
    engine_schedule(&toy->engine, event, time_ps);
    return event;
}

static void test_time_then_sequence(void)
{
    struct toy toy;
    toy_init(&toy);
    add(&toy, KIND_LETTER, 'd', 2385);
    add(&toy, KIND_LETTER, 'b', 700);
    add(&toy, KIND_LETTER, 'e', 2385);
    add(&toy, KIND_LETTER, 'a', 0);
    add(&toy, KIND_LETTER, 'c', 700);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "abcde");
    CHECK_INT(toy.engine.now_ps, 2385);
    CHECK_INT(toy.engine.dispatched_count, 5);
    CHECK_INT(toy.engine.count, 0);
    arena_release(&toy.arena);
}

/* Re-timed to the same instant: behind those that were there, as if made now. */
static void test_retiming(void)
{
    struct toy toy;
    toy_init(&toy);
    struct event *a = add(&toy, KIND_LETTER, 'a', 50);
    add(&toy, KIND_LETTER, 'b', 50);
    struct event *c = add(&toy, KIND_LETTER, 'c', 90);
    engine_schedule(&toy.engine, a, 50);
    engine_schedule(&toy.engine, c, 20);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "cba");
    CHECK_TRUE(!event_is_queued(a));
    arena_release(&toy.arena);
}

/* While an event runs its slot is free: changes to others must not meet it. */
static void test_changes_while_running(void)
{
    struct toy toy;
    toy_init(&toy);
    toy.target_ps = 15;
    add(&toy, KIND_RETIME, 'r', 10);
    add(&toy, KIND_LETTER, 'x', 20);
    toy.target = add(&toy, KIND_LETTER, 'y', 30);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "ryx");
    toy.target = add(&toy, KIND_LETTER, 'z', 60);
    add(&toy, KIND_CANCEL, 'c', 40);
    add(&toy, KIND_LETTER, 'w', 70);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "ryxcw");
    CHECK_TRUE(!event_is_queued(toy.target));
    arena_release(&toy.arena);
}

static void test_cancelling(void)
{
    struct toy toy;
    toy_init(&toy);
    struct event *events[10];
    for (int i = 0; i < 10; i++)
        events[i] = add(&toy, KIND_LETTER, 'a' + i, 100 - 7 * i);
    engine_cancel(&toy.engine, events[0]);
    engine_cancel(&toy.engine, events[9]);
    engine_cancel(&toy.engine, events[4]);
    engine_cancel(&toy.engine, events[4]);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "ihgfdcb");
    arena_release(&toy.arena);
}

static void test_scheduling_itself_at_the_same_instant(void)
{
    struct toy toy;
    toy_init(&toy);
    struct event *spawned = engine_event_new(&toy.engine, KIND_LETTER, NULL);
    spawned->op = 's';
    toy.target = spawned;
    toy.target_ps = 33;
    add(&toy, KIND_SPAWN, 'a', 33);
    add(&toy, KIND_LETTER, 'b', 33);
    add(&toy, KIND_LETTER, 'c', 34);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "absc");
    arena_release(&toy.arena);
}

/* Once an instant however often asked, after all its events; what it schedules there runs. */
static void test_instant_end(void)
{
    struct toy toy;
    toy_init(&toy);
    add(&toy, KIND_HOOK, 'a', 5);
    add(&toy, KIND_HOOK, 'b', 5);
    add(&toy, KIND_LETTER, 'c', 5);
    add(&toy, KIND_LETTER, 'd', 9);
    add(&toy, KIND_HOOK, 'e', 11);
    toy.hook_events = 2;
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "abc|+|+|de|");
    CHECK_INT(toy.hook_ps, 11);
    arena_release(&toy.arena);
}

static void test_instant_end_before_the_first_event(void)
{
    struct toy toy;
    toy_init(&toy);
    engine_request_instant_end(&toy.engine);
    add(&toy, KIND_LETTER, 'a', 0);
    add(&toy, KIND_LETTER, 'b', 1);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "a|b");
    arena_release(&toy.arena);
    toy_init(&toy);
    toy.engine.handlers.instant_end = NULL;
    engine_request_instant_end(&toy.engine);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "");
    arena_release(&toy.arena);
}

static void test_stop_and_go_on(void)
{
    struct toy toy;
    toy_init(&toy);
    add(&toy, KIND_LETTER, 'a', 1);
    add(&toy, KIND_STOP, 'b', 2);
    add(&toy, KIND_LETTER, 'c', 2);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "ab");
    CHECK_INT(toy.engine.count, 1);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "abc");
    arena_release(&toy.arena);
}

static void test_free_list(void)
{
    struct toy toy;
    toy_init(&toy);
    struct event *first = add(&toy, KIND_LETTER, 'a', 10);
    add(&toy, KIND_LETTER, 'b', 20);
    engine_event_free(&toy.engine, first); /* queued: taken out */
    struct event *again = engine_event_new(&toy.engine, KIND_LETTER, &toy);
    CHECK_TRUE(again == first);
    CHECK_TRUE(again->owner == &toy);
    CHECK_INT(again->slot, EVENT_NOT_QUEUED);
    CHECK_INT(again->op, 0);
    engine_run(&toy.engine);
    CHECK_TEXT(toy.log, "b");
    arena_release(&toy.arena);
}

static uint64_t fingerprint_of(int64_t time_ps, uint16_t kind, int32_t op, uint16_t resource)
{
    struct toy toy;
    toy_init(&toy);
    add(&toy, kind, op, time_ps)->resource = resource;
    engine_run(&toy.engine);
    const uint64_t fingerprint = toy.engine.fingerprint;
    arena_release(&toy.arena);
    return fingerprint;
}

static void test_fingerprint(void)
{
    const uint64_t base = fingerprint_of(700, KIND_LETTER, 'a', 3);
    /* kind, resource and op side by side in one word. */
    const uint64_t what = 7 | UINT64_C(3) << 16 | UINT64_C(97) << 32;
    CHECK_U64(base, hash64_mix(hash64_mix(0, 700), what));
    CHECK_U64(fingerprint_of(700, KIND_LETTER, 'a', 3), base);
    CHECK_TRUE(fingerprint_of(701, KIND_LETTER, 'a', 3) != base);
    CHECK_TRUE(fingerprint_of(700, KIND_HOOK, 'a', 3) != base);
    CHECK_TRUE(fingerprint_of(700, KIND_LETTER, 'b', 3) != base);
    CHECK_TRUE(fingerprint_of(700, KIND_LETTER, 'a', 4) != base);
}

static const struct check_case engine_cases[] = {
    {"time, then sequence", test_time_then_sequence},
    {"re-timing", test_retiming},
    {"changes while an event runs", test_changes_while_running},
    {"cancelling", test_cancelling},
    {"scheduling at the same instant", test_scheduling_itself_at_the_same_instant},
    {"instant end", test_instant_end},
    {"instant end before the first event", test_instant_end_before_the_first_event},
    {"stop and go on", test_stop_and_go_on},
    {"free list", test_free_list},
    {"fingerprint", test_fingerprint},
    {0}};

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"engine", engine_cases}, {0}};
    return check_main(argc, argv, suites);
}
