/*
 * machine/maxmin.c: progressive filling, see maxmin.h.
 *
 * All rates of a component grow as w_j · t. The next stop is the smallest of the cap levels b_j /
 * w_j and of the levels t_i = R_i / W_i at which resource i is full, R_i being what the activities
 * that stopped have left of it and W_i = Σ a_ij · w_j of the others. Taking away an activity that
 * stopped at a lower level only raises t_i, so one heap of stops serves, whose resource keys are
 * brought up to date when they come to the top.
 */
#include "machine/maxmin.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "machine/sum_private.h"

/*
 * A cap is met first when a resource fills at the same level, and "the same" must outlive the
 * rounding of a few hundred products and sums (2^-53 each): the activity then runs at its cap
 * exactly. Resources go over capacity by no more than this fraction.
 */
static const double cap_first = 1 - 0x1p-40;

/*
 * A resource is loose when all demands at their caps leave this fraction of it. Far above
 * cap_first and rounding, so that a loose resource cannot fill; the exact size is of no matter,
 * since a resource that is not loose and does not fill changes no rate.
 */
static const double loose_frac = 1e-9;

/* fmin and fmax look for NaN, of which there is none here, and are calls. */
static inline double least(double a, double b)
{
    return b < a ? b : a;
}

static inline double most(double a, double b)
{
    return a < b ? b : a;
}

struct member {
    double per_work;
    int32_t activity;
};

struct resource {
    double capacity;
    struct sum bound; /* Σ a · (the most the activity could ever run at) */
    struct {          /* by activity id */
        struct member *items;
        int32_t count, capacity;
    } members;
    bool is_marked;
    /* While a component is filled: */
    int64_t visit;
    struct sum left, load; /* R_i, W_i */
    int32_t open_count;    /* members that still grow */
};

struct activity {
    double weight, cap, rate;
    double bound; /* min(cap, capacity / a of each of its resources) */
    const struct demand *demands;
    int32_t demand_count;
    bool is_live, is_open;
    int64_t visit;
};

/* A level at which something stops: activity `id` at its cap, or resource ~`id` full. */
struct stop {
    double level;
    int32_t id;
};

struct id_list {
    int32_t *items;
    int32_t count, capacity;
};

struct maxmin {
    struct arena *arena;
    struct {
        struct resource *items;
        int32_t count, capacity;
    } resources;
    struct {
        struct activity *items;
        int32_t count, capacity;
    } activities;
    struct id_list free_ids; /* a binary heap, smallest first */
    struct id_list marked_resources, marked_activities;
    /* Of the component at work, and of the last solve: */
    struct id_list component, component_resources, changed;
    struct {
        struct stop *items;
        int32_t count, capacity;
    } stops;
    struct {
        uint64_t *items;
        int32_t count, capacity;
    } bits;
    int64_t visit;
    int64_t visited;
};

struct maxmin *maxmin_new(struct arena *arena)
{
    struct maxmin *system = ARENA_NEW(arena, struct maxmin);
    system->arena = arena;
    return system;
}

static void push_id(struct maxmin *system, struct id_list *list, int32_t id)
{
    *ARENA_PUSH(system->arena, list) = id;
}

int32_t maxmin_add_resource(struct maxmin *system, double capacity)
{
    BUG_IF(!(capacity > 0) || !isfinite(capacity));
    ARENA_PUSH(system->arena, &system->resources)->capacity = capacity;
    return system->resources.count - 1;
}

static bool is_loose(const struct resource *resource)
{
    return sum_value(&resource->bound) <= resource->capacity * (1 - loose_frac);
}

static void mark_resource(struct maxmin *system, int32_t idx)
{
    struct resource *resource = &system->resources.items[idx];
    if (resource->is_marked)
        return;
    resource->is_marked = true;
    push_id(system, &system->marked_resources, idx);
}

/* ---- ids and members ---------------------------------------------------------------------- */

static void free_id_push(struct maxmin *system, int32_t id)
{
    struct id_list *heap = &system->free_ids;
    push_id(system, heap, id);
    int32_t at = heap->count - 1;
    while (at > 0 && heap->items[(at - 1) / 2] > id) {
        heap->items[at] = heap->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->items[at] = id;
}

static int32_t free_id_pop(struct maxmin *system)
{
    struct id_list *heap = &system->free_ids;
    const int32_t least = heap->items[0];
    const int32_t last = heap->items[--heap->count];
    int32_t at = 0;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child + 1 < heap->count && heap->items[child + 1] < heap->items[child])
            child++;
        if (child >= heap->count || heap->items[child] >= last)
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = last;
    return least;
}

/* Where in the members the first id above (`is_after`) or not below `activity` stands. */
static int32_t member_position(const struct resource *resource, int32_t activity)
{
    int32_t low = 0, high = resource->members.count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (resource->members.items[middle].activity < activity)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void member_insert(struct maxmin *system, struct resource *resource, int32_t activity,
                          double per_work)
{
    const int32_t at = member_position(resource, activity);
    (void)ARENA_PUSH(system->arena, &resource->members);
    struct member *place = &resource->members.items[at];
    memmove(place + 1, place, sizeof(*place) * (size_t)(resource->members.count - 1 - at));
    *place = (struct member){.per_work = per_work, .activity = activity};
}

static void member_remove(struct resource *resource, int32_t activity)
{
    const int32_t at = member_position(resource, activity);
    BUG_IF(at == resource->members.count || resource->members.items[at].activity != activity);
    struct member *place = &resource->members.items[at];
    resource->members.count--;
    memmove(place, place + 1, sizeof(*place) * (size_t)(resource->members.count - at));
}

/* The most that the activity could ever run at. */
static double bound_of(const struct maxmin *system, double cap, const struct demand *demands,
                       int32_t demand_count)
{
    double bound = cap;
    for (int32_t d = 0; d < demand_count; d++)
        bound = least(bound,
                      system->resources.items[demands[d].resource].capacity / demands[d].per_work);
    return bound;
}

int32_t maxmin_add(struct maxmin *system, double weight, double cap, const struct demand *demands,
                   int32_t demand_count)
{
    BUG_IF(!(weight > 0) || !(cap > 0) || demand_count < 0);
    BUG_IF(!isfinite(cap) && demand_count == 0);
    int32_t id = system->activities.count;
    if (system->free_ids.count > 0)
        id = free_id_pop(system);
    else
        (void)ARENA_PUSH(system->arena, &system->activities);

    for (int32_t d = 0; d < demand_count; d++) {
        BUG_IF(demands[d].resource < 0 || demands[d].resource >= system->resources.count);
        BUG_IF(!(demands[d].per_work > 0));
    }
    const double bound = bound_of(system, cap, demands, demand_count);
    for (int32_t d = 0; d < demand_count; d++) {
        struct resource *resource = &system->resources.items[demands[d].resource];
        member_insert(system, resource, id, demands[d].per_work);
        sum_add(&resource->bound, demands[d].per_work * bound);
    }
    /* A rate of -1 differs from any: what is new is reported as changed. */
    system->activities.items[id] = (struct activity){.weight = weight,
                                                     .cap = cap,
                                                     .rate = -1,
                                                     .bound = bound,
                                                     .demands = demands,
                                                     .demand_count = demand_count,
                                                     .is_live = true};
    push_id(system, &system->marked_activities, id);
    return id;
}

static struct activity *live_activity(const struct maxmin *system, int32_t id)
{
    BUG_IF(id < 0 || id >= system->activities.count || !system->activities.items[id].is_live);
    return &system->activities.items[id];
}

void maxmin_remove(struct maxmin *system, int32_t activity)
{
    struct activity *one = live_activity(system, activity);
    for (int32_t d = 0; d < one->demand_count; d++) {
        struct resource *resource = &system->resources.items[one->demands[d].resource];
        if (!is_loose(resource))
            mark_resource(system, one->demands[d].resource);
        sum_add(&resource->bound, -(one->demands[d].per_work * one->bound));
        member_remove(resource, activity);
        if (resource->members.count == 0)
            resource->bound = (struct sum){0};
    }
    one->is_live = false;
    free_id_push(system, activity);
}

void maxmin_set_cap(struct maxmin *system, int32_t activity, double cap)
{
    struct activity *one = live_activity(system, activity);
    BUG_IF(!(cap > 0) || (!isfinite(cap) && one->demand_count == 0));
    const double bound = bound_of(system, cap, one->demands, one->demand_count);
    for (int32_t d = 0; d < one->demand_count; d++) {
        struct resource *resource = &system->resources.items[one->demands[d].resource];
        if (!is_loose(resource))
            mark_resource(system, one->demands[d].resource);
        sum_add(&resource->bound, -(one->demands[d].per_work * one->bound));
        sum_add(&resource->bound, one->demands[d].per_work * bound);
    }
    one->cap = cap;
    one->bound = bound;
    push_id(system, &system->marked_activities, activity);
}

/* ---- the heap of stops -------------------------------------------------------------------- */

/* Caps before resources (whose ids are negative), then by id. */
static bool is_before(const struct stop *a, const struct stop *b)
{
    if (a->level != b->level)
        return a->level < b->level;
    return a->id > b->id;
}

static void stop_sift_down(struct maxmin *system, int32_t at, struct stop stop)
{
    struct stop *heap = system->stops.items;
    const int32_t count = system->stops.count;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (child >= count || !is_before(&heap[child], &stop))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = stop;
}

static void stop_drop_top(struct maxmin *system)
{
    const struct stop last = system->stops.items[--system->stops.count];
    if (system->stops.count > 0)
        stop_sift_down(system, 0, last);
}

/* ---- one component ------------------------------------------------------------------------ */

static void reach(struct maxmin *system, int32_t id)
{
    struct activity *activity = &system->activities.items[id];
    if (activity->visit == system->visit)
        return;
    activity->visit = system->visit;
    push_id(system, &system->component, id);
}

/* Everything that resources which could fill connect with `seed`. */
static void collect(struct maxmin *system, int32_t seed)
{
    system->component.count = 0;
    system->component_resources.count = 0;
    reach(system, seed);
    for (int32_t at = 0; at < system->component.count; at++) {
        const struct activity *activity = &system->activities.items[system->component.items[at]];
        for (int32_t d = 0; d < activity->demand_count; d++) {
            const int32_t idx = activity->demands[d].resource;
            struct resource *resource = &system->resources.items[idx];
            if (resource->visit == system->visit || is_loose(resource))
                continue;
            resource->visit = system->visit;
            push_id(system, &system->component_resources, idx);
            for (int32_t m = 0; m < resource->members.count; m++)
                reach(system, resource->members.items[m].activity);
        }
    }
}

/* Ids in ascending order: by insertion when few, through a set of bits when many. */
static void sort_ids(struct maxmin *system, struct id_list *list)
{
    enum { FEW = 24 };
    if (list->count <= FEW) {
        for (int32_t i = 1; i < list->count; i++) {
            const int32_t id = list->items[i];
            int32_t at = i;
            for (; at > 0 && list->items[at - 1] > id; at--)
                list->items[at] = list->items[at - 1];
            list->items[at] = id;
        }
        return;
    }
    while (system->bits.count <= system->activities.count / 64)
        (void)ARENA_PUSH(system->arena, &system->bits);
    uint64_t *bits = system->bits.items;
    memset(bits, 0, sizeof(*bits) * (size_t)system->bits.count);
    for (int32_t i = 0; i < list->count; i++)
        bits[list->items[i] / 64] |= UINT64_C(1) << (list->items[i] % 64);
    int32_t used = 0;
    for (int32_t word = 0; word < system->bits.count; word++) {
        for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1)
            list->items[used++] = word * 64 + __builtin_ctzll(rest);
    }
}

static bool is_filled_here(const struct maxmin *system, const struct resource *resource)
{
    return resource->visit == system->visit;
}

/* Sets R_i, W_i and the heap of stops. */
static void begin_fill(struct maxmin *system)
{
    system->stops.count = 0;
    for (int32_t r = 0; r < system->component_resources.count; r++) {
        struct resource *resource = &system->resources.items[system->component_resources.items[r]];
        resource->left = (struct sum){.high = resource->capacity};
        resource->load = (struct sum){0};
        resource->open_count = resource->members.count;
    }
    for (int32_t c = 0; c < system->component.count; c++) {
        const int32_t id = system->component.items[c];
        struct activity *activity = &system->activities.items[id];
        activity->is_open = true;
        for (int32_t d = 0; d < activity->demand_count; d++) {
            const struct demand *demand = &activity->demands[d];
            struct resource *resource = &system->resources.items[demand->resource];
            if (is_filled_here(system, resource))
                sum_add(&resource->load, demand->per_work * activity->weight);
        }
        if (isfinite(activity->cap))
            *ARENA_PUSH(system->arena, &system->stops) =
                (struct stop){.level = activity->cap / activity->weight * cap_first, .id = id};
    }
    for (int32_t r = 0; r < system->component_resources.count; r++) {
        const int32_t idx = system->component_resources.items[r];
        const struct resource *resource = &system->resources.items[idx];
        *ARENA_PUSH(system->arena, &system->stops) = (struct stop){
            .level = sum_value(&resource->left) / sum_value(&resource->load), .id = ~idx};
    }
    for (int32_t at = system->stops.count / 2 - 1; at >= 0; at--)
        stop_sift_down(system, at, system->stops.items[at]);
}

static void set_rate(struct maxmin *system, int32_t id, double rate)
{
    struct activity *activity = &system->activities.items[id];
    if (rate == activity->rate)
        return;
    activity->rate = rate;
    push_id(system, &system->changed, id);
}

/* The activity stops growing at `rate`. */
static void settle(struct maxmin *system, int32_t id, double rate)
{
    struct activity *activity = &system->activities.items[id];
    activity->is_open = false;
    for (int32_t d = 0; d < activity->demand_count; d++) {
        const struct demand *demand = &activity->demands[d];
        struct resource *resource = &system->resources.items[demand->resource];
        if (!is_filled_here(system, resource))
            continue;
        sum_add(&resource->left, -(demand->per_work * rate));
        sum_add(&resource->load, -(demand->per_work * activity->weight));
        resource->open_count--;
    }
    set_rate(system, id, rate);
}

/* Resource `idx` is full at `level`: what still grows on it stops. Returns how many. */
static int32_t settle_members(struct maxmin *system, int32_t idx, double level)
{
    int32_t settled = 0;
    const struct resource *resource = &system->resources.items[idx];
    for (int32_t m = 0; m < resource->members.count && resource->open_count > 0; m++) {
        const int32_t id = resource->members.items[m].activity;
        const struct activity *activity = &system->activities.items[id];
        if (!activity->is_open)
            continue;
        settle(system, id, least(activity->cap, activity->weight * level));
        settled++;
    }
    return settled;
}

/* A component of one activity needs no heap: false where a resource has it twice. */
static bool fill_one(struct maxmin *system)
{
    const int32_t id = system->component.items[0];
    const struct activity *activity = &system->activities.items[id];
    double full = HUGE_VAL;
    for (int32_t d = 0; d < activity->demand_count; d++) {
        const struct demand *demand = &activity->demands[d];
        const struct resource *resource = &system->resources.items[demand->resource];
        if (!is_filled_here(system, resource))
            continue;
        if (resource->members.count > 1)
            return false;
        full = least(full, resource->capacity / (demand->per_work * activity->weight));
    }
    const bool is_capped =
        isfinite(activity->cap) && activity->cap / activity->weight * cap_first <= full;
    const double rate = is_capped ? activity->cap : least(activity->cap, activity->weight * full);
    set_rate(system, id, rate);
    system->visited++;
    return true;
}

static void fill(struct maxmin *system)
{
    if (system->component.count == 1 && fill_one(system))
        return;
    sort_ids(system, &system->component);
    begin_fill(system);
    int32_t open_count = system->component.count;
    double level = 0;
    while (open_count > 0) {
        BUG_IF(system->stops.count == 0);
        const struct stop top = system->stops.items[0];
        if (top.id >= 0) {
            stop_drop_top(system);
            if (!system->activities.items[top.id].is_open)
                continue;
            level = most(level, top.level);
            settle(system, top.id, system->activities.items[top.id].cap);
            open_count--;
            continue;
        }
        const struct resource *resource = &system->resources.items[~top.id];
        if (resource->open_count == 0) {
            stop_drop_top(system);
            continue;
        }
        const double now = sum_value(&resource->left) / sum_value(&resource->load);
        if (now > top.level) {
            stop_sift_down(system, 0, (struct stop){.level = now, .id = top.id});
            continue;
        }
        stop_drop_top(system);
        /* Exactly, levels never fall; rounding must not take a rate below those before it. */
        level = most(level, now);
        open_count -= settle_members(system, ~top.id, level);
    }
    system->visited += system->component.count;
}

static void solve_from(struct maxmin *system, int32_t seed)
{
    const struct activity *activity = &system->activities.items[seed];
    if (!activity->is_live || activity->visit == system->visit)
        return;
    collect(system, seed);
    fill(system);
}

void maxmin_solve(struct maxmin *system, const int32_t **changed, int32_t *count)
{
    /* One visit number a solve: no component of it reaches into another. */
    system->visit++;
    system->changed.count = 0;
    for (int32_t i = 0; i < system->marked_activities.count; i++)
        solve_from(system, system->marked_activities.items[i]);
    for (int32_t i = 0; i < system->marked_resources.count; i++) {
        struct resource *resource = &system->resources.items[system->marked_resources.items[i]];
        resource->is_marked = false;
        for (int32_t m = 0; m < resource->members.count; m++)
            solve_from(system, resource->members.items[m].activity);
    }
    system->marked_activities.count = 0;
    system->marked_resources.count = 0;
    sort_ids(system, &system->changed);
    *changed = system->changed.items;
    *count = system->changed.count;
}

void maxmin_solve_full(struct maxmin *system)
{
    const int32_t *changed = NULL;
    int32_t count = 0;
    for (int32_t id = 0; id < system->activities.count; id++) {
        if (system->activities.items[id].is_live)
            push_id(system, &system->marked_activities, id);
    }
    maxmin_solve(system, &changed, &count);
}

double maxmin_rate(const struct maxmin *system, int32_t activity)
{
    return live_activity(system, activity)->rate;
}

double maxmin_usage(const struct maxmin *system, int32_t resource)
{
    BUG_IF(resource < 0 || resource >= system->resources.count);
    struct sum usage = {0};
    const struct resource *one = &system->resources.items[resource];
    for (int32_t m = 0; m < one->members.count; m++) {
        const struct member *member = &one->members.items[m];
        sum_add(&usage, member->per_work * system->activities.items[member->activity].rate);
    }
    return sum_value(&usage);
}

int64_t maxmin_visited(const struct maxmin *system)
{
    return system->visited;
}
