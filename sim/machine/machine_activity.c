/*
 * machine/machine_activity.c: activities under the solver: begin, change of rate, end.
 *
 *     work left (t) = work left (t0) − rate · (t − t0),  end = t0 + work left / rate, rounded up
 *
 * An activity whose rate never changes ends exactly at its start + work / rate; one that is
 * re-timed keeps its remaining work as a double and is complete when its event fires.
 */
#include "base/units.h"
#include "machine/machine_private.h"

void activity_init(struct activity *activity, uint16_t event_kind, void *owner, int32_t order)
{
    event_init(&activity->event, event_kind, owner);
    activity->order = order;
    activity->stretch = 1;
}

void activity_start(struct machine *machine, struct activity *activity)
{
    activity->work_left = activity->work;
    activity->rate = 0;
    activity->updated_ps = machine->engine.now_ps;
    machine->starting[machine->starting_count++] = activity;
    engine_request_instant_end(&machine->engine);
}

static void tell_used(const struct machine *machine, int32_t resource, double amount,
                      int64_t busy_ps)
{
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->resource_used != NULL)
            observer->resource_used(observer->context, machine->engine.now_ps, resource, amount,
                                    busy_ps);
    }
}

static void uses_begin(struct machine *machine, const struct activity *activity)
{
    for (int32_t i = 0; machine->uses != NULL && i < activity->demand_count; i++) {
        struct resource_use *use = &machine->uses[activity->demands[i].resource];
        if (use->active++ == 0)
            use->since_ps = machine->engine.now_ps;
    }
}

static void uses_end(struct machine *machine, const struct activity *activity)
{
    for (int32_t i = 0; machine->uses != NULL && i < activity->demand_count; i++) {
        const struct demand *demand = &activity->demands[i];
        struct resource_use *use = &machine->uses[demand->resource];
        const int64_t busy_ps = --use->active == 0 ? machine->engine.now_ps - use->since_ps : 0;
        tell_used(machine, demand->resource, activity->work / activity->stretch * demand->per_work,
                  busy_ps);
    }
}

void activity_end(struct machine *machine, struct activity *activity)
{
    activity->work_left = 0;
    activity->is_running = false;
    maxmin_remove(machine->solver, activity->solver_id);
    machine->by_solver_id[activity->solver_id] = NULL;
    uses_end(machine, activity);
    engine_request_instant_end(&machine->engine);
}

/* Nearly sorted: classes are served in order, but for permuted ties. */
static void sort_starting(struct machine *machine)
{
    struct activity **items = machine->starting;
    for (int32_t i = 1; i < machine->starting_count; i++) {
        struct activity *item = items[i];
        int32_t j = i;
        for (; j > 0 && items[j - 1]->order > item->order; j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

static void enter_starting(struct machine *machine)
{
    sort_starting(machine);
    for (int32_t i = 0; i < machine->starting_count; i++) {
        struct activity *activity = machine->starting[i];
        activity->solver_id =
            maxmin_add(machine->solver, activity->weight, contention_cap(machine, activity),
                       activity->demands, activity->demand_count);
        activity->is_running = true;
        machine->by_solver_id[activity->solver_id] = activity;
        uses_begin(machine, activity);
    }
    machine->starting_count = 0;
}

static void activity_set_rate(struct machine *machine, struct activity *activity, double rate)
{
    const int64_t now_ps = machine->engine.now_ps;
    activity->work_left -= activity->rate * s_from_ps(now_ps - activity->updated_ps);
    if (activity->work_left < 0)
        activity->work_left = 0;
    activity->updated_ps = now_ps;
    activity->rate = rate;
    if (!(rate > 0))
        BUG("an activity got no rate");
    engine_schedule(&machine->engine, &activity->event,
                    now_ps + ps_from_s(activity->work_left / rate));
}

void machine_solve(struct machine *machine)
{
    contention_update(machine);
    enter_starting(machine);
    const int32_t *changed = NULL;
    int32_t count = 0;
    maxmin_solve(machine->solver, &changed, &count);
    for (int32_t i = 0; i < count; i++)
        activity_set_rate(machine, machine->by_solver_id[changed[i]],
                          maxmin_rate(machine->solver, changed[i]));
}

static struct performance performance_of(const struct lane *lane, enum activity_kind kind)
{
    struct performance performance = {
        .op = lane->at->op, .step = lane->step, .kind = kind, .copy_frac = lane->copy_frac};
    switch (kind) {
    case ACTIVITY_COMPUTE: {
        const int64_t *sum_ps = lane->class->pace->segments[lane->at->op->index].sum_ps;
        performance.kernel = lane->kernel;
        performance.kernel_end = lane->batch_end;
        performance.sum_ps = sum_ps;
        performance.alone_ps = sum_ps[lane->batch_end] - sum_ps[lane->kernel];
        break;
    }
    case ACTIVITY_COMMUNICATION:
        performance.alone_ps = ps_from_s(lane->plan->alone_s);
        break;
    case ACTIVITY_MEMCPY:
        performance.alone_ps = ps_from_s(lane->activity.work / lane->activity.cap);
        break;
    case ACTIVITY_KIND_COUNT:
        break;
    }
    return performance;
}

static void tell_performance(const struct machine *machine, const struct lane *lane,
                             const struct observer *observer, enum activity_kind kind)
{
    const struct performance performance = performance_of(lane, kind);
    observer->performance_begin(observer->context, machine->engine.now_ps, lane->class->idx,
                                &performance);
}

void tell_begin(struct machine *machine, const struct lane *lane, enum activity_kind kind)
{
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->activity_begin != NULL)
            observer->activity_begin(observer->context, machine->engine.now_ps, lane->class->idx,
                                     kind, lane->at->op, lane->copy_frac);
        if (observer->performance_begin != NULL)
            tell_performance(machine, lane, observer, kind);
    }
}

void tell_end(struct machine *machine, const struct lane *lane, enum activity_kind kind)
{
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->activity_end != NULL)
            observer->activity_end(observer->context, machine->engine.now_ps, lane->class->idx,
                                   kind, lane->at->op, lane->copy_frac);
    }
}
