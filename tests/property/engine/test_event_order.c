/*
 * tests/property/engine/test_event_order.c: random scheduling, re-timing and cancelling, from
 * outside and from within handlers, against a plain array that is searched for its least.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "check.h"
#include "engine/engine.h"

enum { SEED = 20262, RUNS = 400, EVENTS = 200, CHANGES = 3000 };

struct model {
    struct arena arena;
    struct engine engine;
    struct philox random;
    struct event events[EVENTS];
    bool is_pending[EVENTS];
    int64_t due_ps[EVENTS];
    uint64_t made[EVENTS]; /* order in which it was scheduled */
    uint64_t made_count;
    int32_t changes_left;
    bool is_in_order;
    bool has_ties_permuted;
    int64_t sum_of_times_ps;
};

static void change(struct model *model)
{
    const int32_t i = (int32_t)philox_below(&model->random, EVENTS);
    if (philox_below(&model->random, 4) == 0) {
        engine_cancel(&model->engine, &model->events[i]);
        model->is_pending[i] = false;
    } else {
        /* Few distinct times: many ties. */
        model->due_ps[i] = model->engine.now_ps + philox_below(&model->random, 12);
        model->is_pending[i] = true;
        model->made[i] = model->made_count++;
        engine_schedule(&model->engine, &model->events[i], model->due_ps[i]);
    }
    model->is_in_order =
        model->is_in_order && event_is_queued(&model->events[i]) == model->is_pending[i];
}

static bool is_least(const struct model *model, int32_t i)
{
    for (int32_t j = 0; j < EVENTS; j++) {
        if (!model->is_pending[j] || j == i)
            continue;
        if (model->due_ps[j] < model->due_ps[i])
            return false;
        if (!model->has_ties_permuted && model->due_ps[j] == model->due_ps[i] &&
            model->made[j] < model->made[i])
            return false;
    }
    return model->is_pending[i];
}

static void dispatch(void *context, struct event *event)
{
    struct model *model = context;
    const int32_t i = event->op;
    model->is_in_order = model->is_in_order && model->engine.now_ps == model->due_ps[i] &&
                         is_least(model, i) && !event_is_queued(event);
    model->is_pending[i] = false;
    model->sum_of_times_ps += model->engine.now_ps;
    for (uint32_t left = philox_below(&model->random, 4); left > 0; left--) {
        if (model->changes_left-- > 0)
            change(model);
    }
}

static void play(struct model *model, uint32_t run, uint64_t tie_seed)
{
    memset(model, 0, sizeof(*model));
    const struct engine_handlers handlers = {.dispatch = dispatch, .context = model};
    engine_init(&model->engine, &model->arena, handlers);
    philox_init(&model->random, SEED, run, 0, 0);
    model->engine.tie_seed = tie_seed;
    model->has_ties_permuted = tie_seed != 0;
    model->is_in_order = true;
    model->changes_left = CHANGES;
    for (int32_t i = 0; i < EVENTS; i++) {
        event_init(&model->events[i], (uint16_t)(i % 5), NULL);
        model->events[i].op = i;
    }
    for (int32_t n = 0; n < EVENTS; n++)
        change(model);
    engine_run(&model->engine);
    for (int32_t i = 0; i < EVENTS; i++)
        model->is_in_order = model->is_in_order && !model->is_pending[i];
    arena_release(&model->arena);
}

static void test_order(void)
{
    static struct model first, second;
    printf("seed %d, %d runs ", SEED, RUNS);
    for (uint32_t run = 0; run < RUNS; run++) {
        check_context("seed %d, run %u", SEED, (unsigned)run);
        play(&first, run, 0);
        CHECK_TRUE(first.is_in_order);
        if (run % 10 != 0)
            continue;
        play(&second, run, 0);
        CHECK_U64(first.engine.fingerprint, second.engine.fingerprint);
        CHECK_INT(first.engine.dispatched_count, second.engine.dispatched_count);
    }
    check_context(NULL);
}

static void test_permuted_ties_keep_the_order_of_times(void)
{
    static struct model model;
    for (uint32_t run = 0; run < 50; run++) {
        check_context("seed %d, run %u", SEED, (unsigned)run);
        play(&model, run, UINT64_C(0x9e3779b97f4a7c15) + run);
        CHECK_TRUE(model.is_in_order);
    }
    check_context(NULL);
}

/* Events that do nothing: another order of ties, the same set of times, another fingerprint. */
static void test_permuted_ties_change_nothing_else(void)
{
    static struct model model;
    uint64_t fingerprints[2] = {0};
    int64_t sums_ps[2] = {0};
    for (int n = 0; n < 2; n++) {
        memset(&model, 0, sizeof(model));
        const struct engine_handlers handlers = {.dispatch = dispatch, .context = &model};
        engine_init(&model.engine, &model.arena, handlers);
        model.engine.tie_seed = n == 0 ? 0 : 77;
        for (int32_t i = 0; i < EVENTS; i++) {
            event_init(&model.events[i], 1, NULL);
            model.events[i].op = i;
            engine_schedule(&model.engine, &model.events[i], 100 + i % 3);
        }
        engine_run(&model.engine);
        fingerprints[n] = model.engine.fingerprint;
        sums_ps[n] = model.sum_of_times_ps;
        CHECK_INT(model.engine.dispatched_count, EVENTS);
        arena_release(&model.arena);
    }
    CHECK_INT(sums_ps[0], sums_ps[1]);
    CHECK_TRUE(fingerprints[0] != fingerprints[1]);
}

static const struct check_case order_cases[] = {
    {"events run in order", test_order},
    {"permuted ties keep the order of times", test_permuted_ties_keep_the_order_of_times},
    {"permuted ties change nothing else", test_permuted_ties_change_nothing_else},
    {0}};

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"event order", order_cases}, {0}};
    return check_main(argc, argv, suites);
}
