/* study/solve.c: scan, narrow, look; see solve.h. */
#include "study/solve.h"

#include <math.h>

#include "base/strbuf.h"
#include "numeric/root.h"
#include "study/solve_private.h"

const double solve_default_tolerance = 1e-3;

enum {
    SCAN_POINTS = 17,    /* over the range */
    SCAN_ALL = 33,       /* values: as few are all played */
    NEIGHBOURS_MAX = 16, /* tried beside a value that is refused, either side */
    LOOK_POINTS = 8,     /* around the point that is nearest to the bound */
    LOOK_ROUNDS = 12,
    POINTS_MAX = 20000, /* loaded in all: most of them refused */
};

/* ---- scan --------------------------------------------------------------------------------- */

/* Of whole numbers: even steps of their logarithm, where the range is wide. */
static double scan_place(const struct solve *solve, int32_t i, int32_t count)
{
    const struct knob *knob = solve->request.knob;
    const double share = (double)i / (count - 1);
    const double low = knob_low(knob);
    const double high = knob_high(knob);
    if (i == 0 || i == count - 1)
        return i == 0 ? low : high;
    if (knob->kind == KNOB_STEPS && knob->is_logarithmic) {
        const double value = knob->span.low * pow(knob->span.high / knob->span.low, share);
        return (value - knob->span.low) / knob->span.step;
    }
    const double from = solve_scale(solve, low);
    return solve_unscale(solve, from + share * (solve_scale(solve, high) - from));
}

/* Plays `at`, or the nearest value of a list or of whole numbers that is not refused. */
static enum status scan_one(struct solve *solve, double at)
{
    const struct solve_point *point = solve_play(solve, at);
    if (point == NULL)
        return STATUS_WORLD;
    const bool is_lone = solve->request.knob->kind == KNOB_CONTINUOUS;
    const double place = point->at;
    for (int32_t i = 1; i <= NEIGHBOURS_MAX && point->reason != NULL && !is_lone; i++) {
        point = solve_play(solve, place + i);
        if (point != NULL && point->reason != NULL)
            point = solve_play(solve, place - i);
        if (point == NULL)
            return STATUS_WORLD;
    }
    return STATUS_OK;
}

static enum status scan(struct solve *solve)
{
    const int64_t values = solve->request.knob->count;
    int32_t count = SCAN_POINTS;
    if (values > 0 && values <= SCAN_ALL)
        count = (int32_t)values;
    for (int32_t i = 0; i < count; i++) {
        const enum status status = scan_one(solve, scan_place(solve, i, count));
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* Nothing can be played: what is wrong with the first value, in full. */
static enum status refuse_all(struct solve *solve)
{
    const struct solve_point *first = solve->points.items[0].point;
    struct outcome outcome = {0};
    enum status status = solve_load(solve, first, solve->arena, &solve->refused, solve->diag);
    if (status == STATUS_OK)
        status = experiment_build(&solve->refused);
    if (status == STATUS_OK)
        status = experiment_play(&solve->refused, &outcome);
    if (status == STATUS_OK)
        status = STATUS_INPUT;
    if (solve->points.count > 1)
        diag_add(
            solve->diag, DIAG_NOTE, NO_PLACE, NULL,
            "none of the %d values of '%s' that were tried can be simulated; this is the first",
            (int)solve->points.count, solve->request.knob->key);
    return status;
}

/* ---- narrow ------------------------------------------------------------------------------- */

struct narrowing {
    struct solve *solve;
    bool has_failed;
};

/* The margin; of a value that is refused: not met. */
static double margin_at(double scaled, void *context)
{
    struct narrowing *narrowing = context;
    const struct solve *solve = narrowing->solve;
    if (narrowing->has_failed)
        return -1;
    const struct solve_point *point = solve_play(narrowing->solve, solve_unscale(solve, scaled));
    narrowing->has_failed = point == NULL;
    return point == NULL || point->reason != NULL ? -1 : point->margin;
}

static enum status narrow_continuous(struct solve *solve, struct solve_point *a,
                                     struct solve_point *b)
{
    struct narrowing narrowing = {.solve = solve};
    struct root_bracket bracket = {solve_scale(solve, a->at), solve_scale(solve, b->at), a->margin,
                                   b->margin};
    /* Rounded values may lie further apart than what was asked for. */
    static const double rounding_share = 0.8;
    (void)root_narrow(margin_at, &narrowing, &bracket,
                      rounding_share * solve_scaled_tolerance(solve));
    return narrowing.has_failed ? STATUS_WORLD : STATUS_OK;
}

/* The value nearest to the middle that can be played; NULL in `found`: none. */
static enum status play_between(struct solve *solve, const struct solve_point *a,
                                const struct solve_point *b, struct solve_point **found)
{
    const double middle = floor((a->at + b->at) / 2);
    *found = NULL;
    for (double i = 0; *found == NULL; i++) {
        const double places[2] = {middle - i, middle + i};
        bool is_inside = false;
        for (int k = 0; k < 2 && *found == NULL; k++) {
            if (!(places[k] > a->at && places[k] < b->at))
                continue;
            is_inside = true;
            struct solve_point *point = solve_play(solve, places[k]);
            if (point == NULL)
                return STATUS_WORLD;
            if (point->reason == NULL)
                *found = point;
        }
        solve->is_cut |= solve->points.count > POINTS_MAX;
        if (!is_inside || solve->is_cut)
            return STATUS_OK;
    }
    return STATUS_OK;
}

static enum status narrow_discrete(struct solve *solve, struct solve_point *a,
                                   struct solve_point *b)
{
    while (!solve_is_next(solve, a, b)) {
        struct solve_point *middle = NULL;
        const enum status status = play_between(solve, a, b, &middle);
        if (status != STATUS_OK || middle == NULL)
            return status;
        if (middle->meets == a->meets)
            a = middle;
        else
            b = middle;
    }
    return STATUS_OK;
}

enum status solve_narrow(struct solve *solve, struct solve_point *a, struct solve_point *b)
{
    return solve->request.knob->kind == KNOB_CONTINUOUS ? narrow_continuous(solve, a, b)
                                                        : narrow_discrete(solve, a, b);
}

/* The first neighbours of which one meets the conditions, and which may lie nearer together. */
static bool find_crossing(const struct solve *solve, struct solve_point **a, struct solve_point **b)
{
    int32_t at = solve_next_valid(solve, -1);
    for (int32_t next = solve_next_valid(solve, at); at >= 0 && next >= 0;
         at = next, next = solve_next_valid(solve, at)) {
        *a = solve->points.items[at].point;
        *b = solve->points.items[next].point;
        if ((*a)->meets != (*b)->meets && !(*a)->is_settled && !solve_is_next(solve, *a, *b))
            return true;
    }
    return false;
}

static enum status narrow_all(struct solve *solve)
{
    struct solve_point *a = NULL;
    struct solve_point *b = NULL;
    while (find_crossing(solve, &a, &b)) {
        const int32_t before = solve->points.count;
        const enum status status = solve_narrow(solve, a, b);
        if (status != STATUS_OK)
            return status;
        a->is_settled = solve->points.count == before;
    }
    return STATUS_OK;
}

/* ---- look --------------------------------------------------------------------------------- */

/* The point with the largest margin (sign 1) or the least (-1), and its neighbours; false: it is an
   end of the range. */
static bool find_extreme(const struct solve *solve, double sign, const struct solve_point **before,
                         const struct solve_point **after)
{
    const struct solve_point *best = NULL;
    const struct solve_point *last = NULL;
    *before = NULL;
    *after = NULL;
    for (int32_t i = solve_next_valid(solve, -1); i >= 0; i = solve_next_valid(solve, i)) {
        const struct solve_point *point = solve->points.items[i].point;
        if (best == NULL || sign * point->margin > sign * best->margin) {
            best = point;
            *before = last;
            *after = NULL;
        } else if (*after == NULL) {
            *after = point;
        }
        last = point;
    }
    return *before != NULL && *after != NULL;
}

static bool all_agree(const struct solve *solve, bool *meets)
{
    int32_t at = solve_next_valid(solve, -1);
    *meets = solve->points.items[at].point->meets;
    for (; at >= 0; at = solve_next_valid(solve, at)) {
        if (solve->points.items[at].point->meets != *meets)
            return false;
    }
    return true;
}

/* Where all points agree: whether they still do around the one nearest to the bound. */
static enum status look(struct solve *solve)
{
    bool meets = false;
    for (int32_t round = 0; round < LOOK_ROUNDS && all_agree(solve, &meets); round++) {
        const struct solve_point *before = NULL;
        const struct solve_point *after = NULL;
        if (!find_extreme(solve, meets ? -1 : 1, &before, &after))
            return STATUS_OK;
        const int32_t count = solve->points.count;
        const double from = solve_scale(solve, before->at);
        const double step = (solve_scale(solve, after->at) - from) / (LOOK_POINTS + 1);
        if (step < 0.5 * solve_scaled_tolerance(solve))
            return STATUS_OK;
        for (int32_t i = 1; i <= LOOK_POINTS; i++) {
            if (solve_play(solve, solve_unscale(solve, from + i * step)) == NULL)
                return STATUS_WORLD;
        }
        if (solve->points.count == count)
            return STATUS_OK;
    }
    return STATUS_OK;
}

enum status solve_run(struct solve *solve, struct arena *arena, const struct solve_request *request,
                      struct diag *diag)
{
    *solve = (struct solve){.arena = arena, .request = *request, .diag = diag};
    solve->metrics = ARENA_ARRAY(arena, struct solve_metric, request->condition_count);
    enum status status = scan(solve);
    if (status == STATUS_OK && solve->valid_count == 0)
        return refuse_all(solve);
    if (status == STATUS_OK)
        status = look(solve);
    if (status == STATUS_OK)
        status = narrow_all(solve);
    if (status == STATUS_OK)
        solve_judge(solve);
    return status;
}

void solve_release(struct solve *solve)
{
    experiment_release(&solve->refused);
}
