/*
 * tests/property/maxmin/test_maxmin.c: random systems against the definition of max-min fairness,
 * and incremental solves against full ones, bit for bit.
 */
#include "machine/maxmin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "check.h"

enum {
    SEED = 20260,
    SYSTEM_COUNT = 20000,
    SEQUENCE_COUNT = 1500,
    STEP_COUNT = 40,
    RESOURCE_MAX = 12,
    ACTIVITY_MAX = 24,
    DEMAND_MAX = 5,
};

/* Rounding of a few dozen operations; far below the differences that the definition is about. */
static const double tolerance = 1e-9;

struct twin_activity { /* what the test knows of an activity */
    bool is_live;
    double weight, cap;
    struct demand demands[DEMAND_MAX];
    int32_t demand_count;
};

struct twin {
    struct arena arena;
    struct maxmin *system;
    int32_t resource_count;
    double capacity[RESOURCE_MAX];
    struct twin_activity activities[ACTIVITY_MAX];
};

static double between(struct philox *random, double low, double high)
{
    return low + (high - low) * philox_unit(random);
}

/* Often a round number, so that caps and resources meet at equal levels. */
static double amount(struct philox *random, double low, double high)
{
    const double value = between(random, low, high);
    return philox_below(random, 2) == 0 ? fmax(1, floor(value)) : value;
}

static void twin_init(struct twin *twin, struct philox *random)
{
    memset(twin, 0, sizeof(*twin));
    twin->system = maxmin_new(&twin->arena);
    twin->resource_count = 1 + (int32_t)philox_below(random, RESOURCE_MAX);
    for (int32_t i = 0; i < twin->resource_count; i++) {
        twin->capacity[i] = amount(random, 0.5, 20);
        maxmin_add_resource(twin->system, twin->capacity[i]);
    }
}

static int32_t twin_add(struct twin *twin, struct philox *random)
{
    struct twin_activity made = {.is_live = true};
    made.weight = philox_below(random, 2) == 0 ? 1 : amount(random, 0.2, 4);
    made.demand_count = (int32_t)philox_below(random, DEMAND_MAX + 1);
    for (int32_t d = 0; d < made.demand_count; d++) {
        made.demands[d].resource = (int32_t)philox_below(random, (uint32_t)twin->resource_count);
        made.demands[d].per_work = amount(random, 0.1, 3);
    }
    made.cap = HUGE_VAL;
    if (made.demand_count == 0 || philox_below(random, 3) > 0)
        made.cap = amount(random, 0.1, 6);
    int32_t slot = 0;
    while (slot < ACTIVITY_MAX && twin->activities[slot].is_live)
        slot++;
    if (slot == ACTIVITY_MAX)
        return -1;
    struct twin_activity *kept = &twin->activities[slot];
    *kept = made;
    const int32_t id =
        maxmin_add(twin->system, kept->weight, kept->cap, kept->demands, kept->demand_count);
    CHECK_INT(id, slot);
    return id;
}

/* Of an activity that is there, if the one chosen is. */
static void twin_set_cap(struct twin *twin, struct philox *random)
{
    const int32_t id = (int32_t)philox_below(random, ACTIVITY_MAX);
    struct twin_activity *one = &twin->activities[id];
    if (!one->is_live)
        return;
    one->cap = amount(random, 0.1, 6);
    if (one->demand_count > 0 && philox_below(random, 4) == 0)
        one->cap = HUGE_VAL;
    maxmin_set_cap(twin->system, id, one->cap);
}

/* Σ a·x and the highest level x/w on a resource, by the test's own sums. */
static void look_at(const struct twin *twin, int32_t i, double *usage, double *highest)
{
    *usage = 0;
    *highest = 0;
    for (int32_t j = 0; j < ACTIVITY_MAX; j++) {
        const struct twin_activity *one = &twin->activities[j];
        for (int32_t d = 0; one->is_live && d < one->demand_count; d++) {
            if (one->demands[d].resource != i)
                continue;
            *usage += one->demands[d].per_work * maxmin_rate(twin->system, j);
            *highest = fmax(*highest, maxmin_rate(twin->system, j) / one->weight);
        }
    }
}

/* NULL, or which part of the definition does not hold. */
static const char *broken_rule(const struct twin *twin)
{
    double usage[RESOURCE_MAX], highest[RESOURCE_MAX];
    for (int32_t i = 0; i < twin->resource_count; i++) {
        look_at(twin, i, &usage[i], &highest[i]);
        if (usage[i] > twin->capacity[i] * (1 + tolerance))
            return "a resource is over its capacity";
        if (fabs(maxmin_usage(twin->system, i) - usage[i]) > tolerance * twin->capacity[i])
            return "usage is not the sum of the rates";
    }
    for (int32_t j = 0; j < ACTIVITY_MAX; j++) {
        const struct twin_activity *one = &twin->activities[j];
        if (!one->is_live)
            continue;
        const double rate = maxmin_rate(twin->system, j);
        if (!(rate > 0) || rate > one->cap)
            return "a rate is not in (0, cap]";
        bool is_stopped = rate == one->cap;
        for (int32_t d = 0; d < one->demand_count && !is_stopped; d++) {
            const int32_t i = one->demands[d].resource;
            is_stopped = usage[i] >= twin->capacity[i] * (1 - tolerance) &&
                         highest[i] <= rate / one->weight * (1 + tolerance);
        }
        if (!is_stopped)
            return "an activity could run faster";
    }
    return NULL;
}

static void test_definition(void)
{
    printf("seed %d, %d systems ", SEED, SYSTEM_COUNT);
    for (int32_t n = 0; n < SYSTEM_COUNT; n++) {
        struct philox random;
        struct twin twin;
        const int32_t *changed = NULL;
        int32_t count = 0;
        philox_init(&random, SEED, (uint32_t)n, 0, 1);
        twin_init(&twin, &random);
        for (uint32_t left = philox_below(&random, ACTIVITY_MAX + 1); left > 0; left--)
            twin_add(&twin, &random);
        for (uint32_t left = philox_below(&random, 3); left > 0; left--)
            twin_set_cap(&twin, &random);
        maxmin_solve(twin.system, &changed, &count);
        check_context("seed %d, system %d", SEED, (int)n);
        CHECK_TEXT(broken_rule(&twin), NULL);
        arena_release(&twin.arena);
    }
    check_context(NULL);
}

static bool are_same_bits(double a, double b)
{
    uint64_t bits[2];
    memcpy(&bits[0], &a, sizeof(a));
    memcpy(&bits[1], &b, sizeof(b));
    return bits[0] == bits[1];
}

/* `changed` is ascending and names exactly the activities whose rate is another than before. */
static bool is_change_list(const struct twin *twin, const double *before, const int32_t *changed,
                           int32_t count)
{
    int32_t at = 0;
    for (int32_t j = 0; j < ACTIVITY_MAX; j++) {
        if (!twin->activities[j].is_live)
            continue;
        const bool is_listed = at < count && changed[at] == j;
        at += is_listed ? 1 : 0;
        if (is_listed != !are_same_bits(before[j], maxmin_rate(twin->system, j)))
            return false;
    }
    return at == count;
}

/* A new system with the same activities, added in the order of ids, never changed. */
static bool is_equal_to_fresh(const struct twin *twin)
{
    struct arena arena = {0};
    struct maxmin *fresh = maxmin_new(&arena);
    const int32_t *changed = NULL;
    int32_t count = 0;
    bool is_equal = true;
    for (int32_t i = 0; i < twin->resource_count; i++)
        maxmin_add_resource(fresh, twin->capacity[i]);
    for (int32_t j = 0; j < ACTIVITY_MAX; j++) {
        const struct twin_activity *one = &twin->activities[j];
        if (one->is_live)
            maxmin_add(fresh, one->weight, one->cap, one->demands, one->demand_count);
    }
    maxmin_solve(fresh, &changed, &count);
    int32_t id = 0;
    for (int32_t j = 0; j < ACTIVITY_MAX; j++) {
        if (twin->activities[j].is_live)
            is_equal =
                are_same_bits(maxmin_rate(fresh, id++), maxmin_rate(twin->system, j)) && is_equal;
    }
    arena_release(&arena);
    return is_equal;
}

static void change_something(struct twin *twin, struct philox *random, double *before)
{
    const uint32_t what = philox_below(random, 5);
    if (what < 2) {
        const int32_t id = twin_add(twin, random);
        if (id >= 0)
            before[id] = -1;
    } else if (what < 4) {
        const int32_t id = (int32_t)philox_below(random, ACTIVITY_MAX);
        if (twin->activities[id].is_live) {
            maxmin_remove(twin->system, id);
            twin->activities[id].is_live = false;
        }
    } else {
        twin_set_cap(twin, random);
    }
}

static void play_sequence(struct twin *twin, struct philox *random)
{
    double before[ACTIVITY_MAX] = {0};
    for (int32_t step = 0; step < STEP_COUNT; step++) {
        const int32_t *changed = NULL;
        int32_t count = 0;
        for (int32_t j = 0; j < ACTIVITY_MAX; j++)
            before[j] = twin->activities[j].is_live ? maxmin_rate(twin->system, j) : -1;
        for (uint32_t left = 1 + philox_below(random, 3); left > 0; left--)
            change_something(twin, random, before);
        maxmin_solve(twin->system, &changed, &count);
        CHECK_TRUE(is_change_list(twin, before, changed, count));

        double incremental[ACTIVITY_MAX] = {0};
        for (int32_t j = 0; j < ACTIVITY_MAX; j++)
            incremental[j] = twin->activities[j].is_live ? maxmin_rate(twin->system, j) : 0;
        maxmin_solve_full(twin->system);
        bool is_same = true;
        for (int32_t j = 0; j < ACTIVITY_MAX; j++)
            is_same = is_same && (!twin->activities[j].is_live ||
                                  are_same_bits(incremental[j], maxmin_rate(twin->system, j)));
        CHECK_TRUE(is_same);
        CHECK_TRUE(is_equal_to_fresh(twin));
        CHECK_TEXT(broken_rule(twin), NULL);
    }
}

static void test_incremental(void)
{
    printf("seed %d, %d sequences of %d steps ", SEED, SEQUENCE_COUNT, STEP_COUNT);
    for (int32_t n = 0; n < SEQUENCE_COUNT; n++) {
        struct philox random;
        struct twin twin;
        philox_init(&random, SEED, (uint32_t)n, 0, 2);
        check_context("seed %d, sequence %d", SEED, (int)n);
        twin_init(&twin, &random);
        play_sequence(&twin, &random);
        arena_release(&twin.arena);
    }
    check_context(NULL);
}

/* ---- worked by hand ----------------------------------------------------------------------- */

static void test_cap_and_rest(void)
{
    struct arena arena = {0};
    struct maxmin *system = maxmin_new(&arena);
    const int32_t *changed = NULL;
    int32_t count = 0;
    const struct demand link[] = {{maxmin_add_resource(system, 10), 1}};
    maxmin_add(system, 1, HUGE_VAL, link, 1);
    maxmin_add(system, 1, 3, link, 1);
    maxmin_solve(system, &changed, &count);
    CHECK_INT(count, 2);
    CHECK_NEAR(maxmin_rate(system, 0), 7, 0);
    CHECK_NEAR(maxmin_rate(system, 1), 3, 0);
    maxmin_remove(system, 0);
    maxmin_solve(system, &changed, &count);
    CHECK_INT(count, 0);
    CHECK_NEAR(maxmin_usage(system, 0), 3, 0);
    arena_release(&arena);
}

/*
 * Bertsekas and Gallager's chain: a long flow over links of 2.5, 1.7 and 4.1 and a short one on
 * each. The second link fills first at 0.85 each; the short flows take the rest: 1.65 and 3.25.
 */
static void test_chain(void)
{
    struct arena arena = {0};
    struct maxmin *system = maxmin_new(&arena);
    const int32_t *changed = NULL;
    int32_t count = 0;
    const struct demand links[] = {{maxmin_add_resource(system, 2.5), 1},
                                   {maxmin_add_resource(system, 1.7), 1},
                                   {maxmin_add_resource(system, 4.1), 1}};
    maxmin_add(system, 1, HUGE_VAL, links, 3);
    for (int32_t i = 0; i < 3; i++)
        maxmin_add(system, 1, HUGE_VAL, &links[i], 1);
    maxmin_solve(system, &changed, &count);
    CHECK_NEAR(maxmin_rate(system, 0), 0.85, 1e-15);
    CHECK_NEAR(maxmin_rate(system, 1), 1.65, 1e-15);
    CHECK_NEAR(maxmin_rate(system, 2), 0.85, 1e-15);
    CHECK_NEAR(maxmin_rate(system, 3), 3.25, 1e-15);
    arena_release(&arena);
}

/* Weights 1 and 2.5 on 7: 2 and 5; the second capped at 3: 4 and 3; then at 6.5: as before. */
static void test_weights_and_caps(void)
{
    struct arena arena = {0};
    struct maxmin *system = maxmin_new(&arena);
    const int32_t *changed = NULL;
    int32_t count = 0;
    const struct demand link[] = {{maxmin_add_resource(system, 7), 1}};
    maxmin_add(system, 1, HUGE_VAL, link, 1);
    maxmin_add(system, 2.5, 6.5, link, 1);
    maxmin_solve(system, &changed, &count);
    CHECK_NEAR(maxmin_rate(system, 0), 2, 1e-15);
    CHECK_NEAR(maxmin_rate(system, 1), 5, 1e-15);
    maxmin_set_cap(system, 1, 3);
    maxmin_solve(system, &changed, &count);
    CHECK_INT(count, 2);
    CHECK_NEAR(maxmin_rate(system, 0), 4, 1e-15);
    CHECK_NEAR(maxmin_rate(system, 1), 3, 1e-15);
    maxmin_set_cap(system, 0, 3.5);
    maxmin_solve(system, &changed, &count);
    CHECK_INT(count, 1);
    CHECK_NEAR(maxmin_rate(system, 0), 3.5, 1e-15);
    maxmin_set_cap(system, 0, HUGE_VAL);
    maxmin_set_cap(system, 1, 6.5);
    maxmin_solve(system, &changed, &count);
    CHECK_NEAR(maxmin_rate(system, 0), 2, 1e-15);
    arena_release(&arena);
}

/* One collective over all GPUs, a kernel on each; what one kernel costs when it comes and goes. */
static void test_kernel_beside_collective_is_cheap(void)
{
    enum { GPUS = 4096 };
    struct arena arena = {0};
    struct maxmin *system = maxmin_new(&arena);
    const int32_t *changed = NULL;
    int32_t count = 0;
    struct demand *all = ARENA_ARRAY(&arena, struct demand, 2 * GPUS);
    for (int32_t i = 0; i < GPUS; i++) {
        all[i] = (struct demand){maxmin_add_resource(system, 3.35e12), 2};         /* memory */
        all[GPUS + i] = (struct demand){maxmin_add_resource(system, 50e9), 0.875}; /* link */
    }
    const int32_t collective = maxmin_add(system, 1, HUGE_VAL, all, 2 * GPUS);
    struct demand *kernels = ARENA_ARRAY(&arena, struct demand, GPUS);
    for (int32_t i = 0; i < GPUS; i++) {
        kernels[i] = (struct demand){all[i].resource, 1.2e12};
        maxmin_add(system, 1, 1, &kernels[i], 1);
    }
    maxmin_solve(system, &changed, &count);
    CHECK_INT(count, GPUS + 1);
    CHECK_NEAR(maxmin_rate(system, collective), 50e9 / 0.875, 1e-15);
    const int64_t before = maxmin_visited(system);
    maxmin_remove(system, 7);
    CHECK_INT(maxmin_add(system, 1, 1, &kernels[6], 1), 7);
    maxmin_solve(system, &changed, &count);
    CHECK_INT(count, 1);
    CHECK_INT(maxmin_visited(system) - before, 1);
    CHECK_NEAR(maxmin_rate(system, 7), 1, 0);
    arena_release(&arena);
}

/* Many activities that stop at levels of their own, all on one resource: not a square of time. */
static void test_many_caps_on_one_resource(void)
{
    enum { COUNT = 50000 };
    struct arena arena = {0};
    struct maxmin *system = maxmin_new(&arena);
    const int32_t *changed = NULL;
    int32_t count = 0;
    /* Caps 1.5, 2.5, … : the first half (sum h²/2 + h, h = 25,000) at their caps, the rest level.
     */
    const double half = COUNT / 2.0;
    const double level = half + 1;
    const double capacity = half * half / 2 + half + half * level;
    const struct demand link[] = {{maxmin_add_resource(system, capacity), 1}};
    for (int32_t j = 0; j < COUNT; j++)
        maxmin_add(system, 1, j + 1.5, link, 1);
    maxmin_solve(system, &changed, &count);
    CHECK_INT(count, COUNT);
    CHECK_NEAR(maxmin_rate(system, 0), 1.5, 0);
    CHECK_NEAR(maxmin_rate(system, COUNT / 2 - 1), half + 0.5, 0);
    CHECK_NEAR(maxmin_rate(system, COUNT / 2), level, 1e-12);
    CHECK_NEAR(maxmin_rate(system, COUNT - 1), level, 1e-12);
    arena_release(&arena);
}

static const struct check_case hand_cases[] = {
    {"a cap leaves the rest", test_cap_and_rest},
    {"a chain of links", test_chain},
    {"weights and caps", test_weights_and_caps},
    {"a kernel beside a collective is cheap", test_kernel_beside_collective_is_cheap},
    {"many caps on one resource", test_many_caps_on_one_resource},
    {0}};

static const struct check_case random_cases[] = {{"rates are max-min fair", test_definition},
                                                 {"incremental equals full", test_incremental},
                                                 {0}};

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {
        {"maxmin by hand", hand_cases}, {"maxmin at random", random_cases}, {0}};
    return check_main(argc, argv, suites);
}
