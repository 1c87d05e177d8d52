/* study/solve_judge.c: from points to intervals, trends and the answer; see solve.h. */
#include <math.h>

#include "study/solve_private.h"

/* A turn that is less than this share of a metric's range is rounding (of times to picoseconds, of
   memory to blocks), not a turn. */
static const double turn_share = 1e-3;

/* ---- intervals ---------------------------------------------------------------------------- */

static void find_intervals(struct solve *solve)
{
    const struct solve_point *last = NULL;
    for (int32_t i = solve_next_valid(solve, -1); i >= 0; i = solve_next_valid(solve, i)) {
        const struct solve_point *point = solve->points.items[i].point;
        const bool met = last != NULL && last->meets;
        if (point->meets && !met)
            *ARENA_PUSH(solve->arena, &solve->intervals) =
                (struct solve_interval){.first = point, .before = last};
        if (point->meets)
            solve->intervals.items[solve->intervals.count - 1].last = point;
        else if (met)
            solve->intervals.items[solve->intervals.count - 1].after = point;
        last = point;
    }
}

/* ---- trends ------------------------------------------------------------------------------- */

struct walk { /* over the points of one metric */
    struct solve *solve;
    struct solve_metric *metric;
    int32_t condition;
    double least_turn;
    int direction;
    const struct solve_point *extreme;
};

static void keep_turn(struct walk *walk, const struct solve_point *point)
{
    ARENA_PUSH(walk->solve->arena, &walk->metric->turns)->point = point;
}

static void step_to(struct walk *walk, const struct solve_point *point)
{
    const double value = point->numbers[walk->condition];
    if (walk->extreme == NULL) {
        walk->extreme = point;
        keep_turn(walk, point);
        return;
    }
    const double change = value - walk->extreme->numbers[walk->condition];
    const int direction = change > 0 ? 1 : -1;
    if (walk->direction == direction) {
        walk->extreme = point;
    } else if (fabs(change) > walk->least_turn) {
        if (walk->direction != 0)
            keep_turn(walk, walk->extreme);
        walk->direction = direction;
        walk->extreme = point;
    }
}

static void find_trend(struct solve *solve, int32_t condition)
{
    double least = HUGE_VAL;
    double most = -HUGE_VAL;
    const struct solve_point *last = NULL;
    struct walk walk = {
        .solve = solve, .metric = &solve->metrics[condition], .condition = condition};
    for (int32_t i = solve_next_valid(solve, -1); i >= 0; i = solve_next_valid(solve, i)) {
        const double value = solve->points.items[i].point->numbers[condition];
        if (isnan(value))
            continue;
        least = fmin(least, value);
        most = fmax(most, value);
    }
    if (!(least <= most) || solve->valid_count < 2)
        return; /* never defined, or a text */
    walk.least_turn = turn_share * (most - least);
    for (int32_t i = solve_next_valid(solve, -1); i >= 0; i = solve_next_valid(solve, i)) {
        const struct solve_point *point = solve->points.items[i].point;
        if (isnan(point->numbers[condition]))
            continue;
        step_to(&walk, point);
        last = point;
    }
    keep_turn(&walk, last);
    if (walk.metric->turns.count > 2)
        walk.metric->trend = TREND_TURNS;
    else
        walk.metric->trend = walk.direction == 0  ? TREND_FLAT
                             : walk.direction > 0 ? TREND_RISES
                                                  : TREND_FALLS;
}

/* ---- the answer --------------------------------------------------------------------------- */

static void answer_first(struct solve *solve, const struct solve_interval *interval)
{
    solve->wanted = SOLVE_SMALLEST;
    solve->answer = interval->first;
    solve->outside = interval->before;
}

static void answer_last(struct solve *solve, const struct solve_interval *interval)
{
    solve->wanted = SOLVE_LARGEST;
    solve->answer = interval->last;
    solve->outside = interval->after;
}

static void answer_closest(struct solve *solve)
{
    solve->result = SOLVE_NOTHING;
    for (int32_t i = solve_next_valid(solve, -1); i >= 0; i = solve_next_valid(solve, i)) {
        const struct solve_point *point = solve->points.items[i].point;
        if (solve->answer == NULL || point->margin > solve->answer->margin)
            solve->answer = point;
    }
}

/* Which end, when nobody forces one. */
static void answer_derived(struct solve *solve, const struct solve_interval *first,
                           const struct solve_interval *last)
{
    const bool grows = solve_high(solve)->margin >= solve_low(solve)->margin;
    const bool holds_low = first->before == NULL;
    const bool holds_high = last->after == NULL;
    if (!holds_low)
        answer_first(solve, first);
    else if (!holds_high)
        answer_last(solve, last);
    else if (grows)
        answer_first(solve, last); /* all of the range, where they are the same */
    else
        answer_last(solve, first);
}

void solve_judge(struct solve *solve)
{
    find_intervals(solve);
    for (int32_t i = 0; i < solve->request.condition_count; i++)
        find_trend(solve, i);
    solve->wanted = solve->request.wanted;
    if (solve->intervals.count == 0) {
        answer_closest(solve);
        return;
    }
    const struct solve_interval *first = &solve->intervals.items[0];
    const struct solve_interval *last = &solve->intervals.items[solve->intervals.count - 1];
    if (first == last && first->before == NULL && last->after == NULL)
        solve->result = SOLVE_EVERYTHING;
    if (solve->wanted == SOLVE_SMALLEST)
        answer_first(solve, first);
    else if (solve->wanted == SOLVE_LARGEST)
        answer_last(solve, last);
    else
        answer_derived(solve, first, last);
}
