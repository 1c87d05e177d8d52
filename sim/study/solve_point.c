/* study/solve_point.c: the points that are played, and the spaces between them; see solve.h. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "study/solve_private.h"

/* ---- scales ------------------------------------------------------------------------------- */

double solve_scale(const struct solve *solve, double at)
{
    const struct knob *knob = solve->request.knob;
    return knob->kind == KNOB_CONTINUOUS && knob->is_logarithmic ? log(at) : at;
}

double solve_unscale(const struct solve *solve, double scaled)
{
    const struct knob *knob = solve->request.knob;
    return knob->kind == KNOB_CONTINUOUS && knob->is_logarithmic ? exp(scaled) : scaled;
}

double solve_scaled_tolerance(const struct solve *solve)
{
    const struct knob *knob = solve->request.knob;
    const double tolerance = solve->request.tolerance;
    if (knob->kind != KNOB_CONTINUOUS)
        return 1;
    if (knob->is_logarithmic)
        return log1p(tolerance);
    return tolerance * (knob->span.low > 0 ? knob->span.low : knob->span.high - knob->span.low);
}

/* Rounding moves a value by less than a tenth of the tolerance. */
static int digits_of(const struct solve *solve)
{
    const struct knob *knob = solve->request.knob;
    double share = solve->request.tolerance;
    if (knob->kind == KNOB_CONTINUOUS && knob->span.low <= 0)
        share *=
            (knob->span.high - knob->span.low) / fmax(fabs(knob->span.high), fabs(knob->span.low));
    const double digits = ceil(-log10(share)) + 2;
    return digits > 15 ? 15 : (int)digits;
}

/* ---- margins ------------------------------------------------------------------------------ */

/* How far the metric is from its bound, over the bound. */
static double distance(const struct condition *condition, const struct outcome *outcome,
                       double number)
{
    if (text_equal(condition->metric->name, "fits") && outcome->memory_capacity_bytes > 0)
        return fabs((double)(outcome->memory_capacity_bytes - outcome->peak_device_bytes)) /
               (double)outcome->memory_capacity_bytes;
    if (condition->metric->kind == METRIC_BOOL || isnan(number))
        return 1;
    const double bound = fabs(condition->value);
    return fabs(number - condition->value) / (bound > 0 ? bound : 1);
}

static void judge(const struct solve *solve, struct solve_point *point,
                  const struct outcome *outcome)
{
    const int32_t count = solve->request.condition_count;
    point->numbers = ARENA_ARRAY(solve->arena, double, count);
    point->texts = ARENA_ARRAY(solve->arena, const char *, count);
    point->margin = HUGE_VAL;
    point->meets = true;
    for (int32_t i = 0; i < count; i++) {
        const struct condition *condition = &solve->request.conditions[i];
        point->numbers[i] = (double)NAN;
        (void)outcome_number(outcome, condition->metric, &point->numbers[i]);
        point->texts[i] =
            arena_strdup(solve->arena, condition_obtained(solve->arena, condition, outcome));
        /* A sign always: of a bound that is met exactly, too. */
        double margin = fmax(distance(condition, outcome, point->numbers[i]), DBL_MIN);
        if (!condition_holds(condition, outcome)) {
            margin = -margin;
            point->meets = false;
        }
        point->margin = fmin(point->margin, margin);
    }
    point->step_time_s = outcome->step_time_s;
    point->peak_device_bytes = outcome->peak_device_bytes;
    point->fits = outcome->fits;
}

/* ---- playing ------------------------------------------------------------------------------ */

enum status solve_load(const struct solve *solve, const struct solve_point *point,
                       struct arena *scratch, struct experiment *experiment, struct diag *diag)
{
    const struct solve_request *request = &solve->request;
    const char **overrides = ARENA_ARRAY(scratch, const char *, request->override_count + 1);
    for (int32_t i = 0; i < request->override_count; i++)
        overrides[i] = request->overrides[i];
    overrides[request->override_count] =
        arena_printf(scratch, "%s=%s", request->knob->key, point->value);
    return experiment_load_cached(experiment, request->path, overrides, request->override_count + 1,
                                  request->cache, diag);
}

static const char *reason_of(const struct diag *diag, struct arena *arena)
{
    const struct diag_message *error = diag_first_error(diag);
    if (error == NULL)
        return "it cannot be simulated";
    return error->hint != NULL ? arena_printf(arena, "%s (%s)", error->text, error->hint)
                               : arena_strdup(arena, error->text);
}

/* STATUS_INPUT: the point is refused, with its reason. */
static enum status play_point(struct solve *solve, struct solve_point *point)
{
    struct arena scratch = {0};
    struct diag diag;
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    scratch.pool = &solve->request.cache->pool;
    diag_init(&diag, &scratch);
    enum status status = solve_load(solve, point, &scratch, &experiment, &diag);
    solve->has_sweep |= experiment.sweep != NULL;
    if (status == STATUS_OK)
        status = experiment_build(&experiment);
    if (status == STATUS_OK)
        status = experiment_play(&experiment, &outcome);
    if (status == STATUS_OK)
        judge(solve, point, &outcome);
    else
        point->reason = reason_of(&diag, solve->arena);
    if (status == STATUS_WORLD)
        diag_world(solve->diag, "%s", point->reason);
    experiment_release(&experiment);
    arena_release(&scratch);
    return status;
}

/* Where a point at `at` stands or would stand. */
static int32_t find_place(const struct solve *solve, double at)
{
    int32_t low = 0;
    int32_t high = solve->points.count;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (solve->points.items[middle].point->at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct solve_point *solve_play(struct solve *solve, double at)
{
    const char *value = knob_value(solve->request.knob, solve->arena, digits_of(solve), &at);
    const int32_t place = find_place(solve, at);
    if (place < solve->points.count && !(solve->points.items[place].point->at > at))
        return solve->points.items[place].point;
    struct solve_point *point = ARENA_NEW(solve->arena, struct solve_point);
    *point = (struct solve_point){.at = at, .value = value};
    if (play_point(solve, point) == STATUS_WORLD)
        return NULL;
    (void)ARENA_PUSH(solve->arena, &solve->points);
    memmove(&solve->points.items[place + 1], &solve->points.items[place],
            sizeof(solve->points.items[0]) * (size_t)(solve->points.count - 1 - place));
    solve->points.items[place].point = point;
    solve->valid_count += point->reason == NULL;
    if (solve->request.has_played != NULL)
        solve->request.has_played(solve->request.context, solve->points.count);
    return point;
}

/* ---- neighbours --------------------------------------------------------------------------- */

int32_t solve_next_valid(const struct solve *solve, int32_t index)
{
    for (int32_t i = index + 1; i < solve->points.count; i++) {
        if (solve->points.items[i].point->reason == NULL)
            return i;
    }
    return -1;
}

static const struct solve_point *valid_end(const struct solve *solve, bool is_last)
{
    for (int32_t i = 0; i < solve->points.count; i++) {
        const int32_t index = is_last ? solve->points.count - 1 - i : i;
        if (solve->points.items[index].point->reason == NULL)
            return solve->points.items[index].point;
    }
    return NULL;
}

const struct solve_point *solve_low(const struct solve *solve)
{
    return valid_end(solve, false);
}

const struct solve_point *solve_high(const struct solve *solve)
{
    return valid_end(solve, true);
}

bool solve_is_next(const struct solve *solve, const struct solve_point *a,
                   const struct solve_point *b)
{
    static const double slack = 1e-9; /* of sums of rounded values */
    if (solve->request.knob->kind == KNOB_CONTINUOUS)
        return solve_scale(solve, b->at) - solve_scale(solve, a->at) <=
               solve_scaled_tolerance(solve) * (1 + slack);
    const int32_t between = find_place(solve, b->at) - find_place(solve, a->at) - 1;
    return (double)between >= b->at - a->at - 1; /* all of them are refused */
}
