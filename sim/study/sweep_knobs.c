/* study/sweep_knobs.c: see sweep_knobs.h. */
#include "study/sweep_knobs.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "numeric/sobol.h"

static enum status wrong(struct sweep_plan *plan, struct place place, const char *hint,
                         const char *what, const char *name)
{
    diag_add(plan->diag, DIAG_ERROR, place, hint, "%s '%s'", what, name);
    return STATUS_INPUT;
}

bool knob_is_span(const char *text)
{
    return strchr(text, ':') != NULL && strpbrk(text, "[]{}()'\",") == NULL;
}

enum status knob_read(struct sweep_plan *plan, struct sweep_axis *axis, const char *text,
                      struct place place)
{
    const enum status status = axis_span_read(plan->arena, text, place, &axis->span, plan->diag);
    if (status != STATUS_OK)
        return status;
    axis->has_span = true;
    if (!(axis->span.high > axis->span.low))
        return wrong(plan, place, "low:high, the smaller end first",
                     "nothing lies between the ends of", text);
    if (axis->span.has_step && !(axis->span.step > 0))
        return wrong(plan, place, "low:high:step", "no step above 0 in", text);
    return STATUS_OK;
}

static void push(struct sweep_plan *plan, struct sweep_axis *axis, const char *text)
{
    *ARENA_PUSH(plan->arena, &axis->values) = text;
}

static double span_value(const struct axis_span *span, double u)
{
    /* A decade or more: as likely from 10 to 20 as from 100 to 200. */
    static const double log_ratio = 10;
    const bool is_log = span->low > 0 && span->high >= log_ratio * span->low;
    if (span->has_step)
        return span->low + span->step * floor(u * (axis_span_steps(span) + 1));
    if (is_log) {
        const double value = span->low * pow(span->high / span->low, u);
        return span->is_whole ? round(value) : value;
    }
    if (span->is_whole)
        return span->low + floor(u * (span->high - span->low + 1));
    return span->low + u * (span->high - span->low);
}

/* `items`: of a list. */
static void choose(struct sweep_plan *plan, struct sweep_axis *axis, const char *const *items,
                   int32_t item_count, int64_t position, double u)
{
    if (axis->has_span) {
        axis->numbers[position] = span_value(&axis->span, u);
        push(plan, axis,
             arena_printf(plan->arena, axis->span.is_whole ? "%.0f%s" : "%.9g%s",
                          axis->numbers[position], axis->span.unit));
        return;
    }
    const int32_t place = (int32_t)(u * item_count);
    axis->numbers[position] = place;
    push(plan, axis, items[place]);
}

enum status knobs_sobol(struct sweep_plan *plan, int64_t count)
{
    const int32_t axes = plan->axes.count;
    double point[SOBOL_MAX_DIMENSIONS];
    struct {
        const char **items;
        int32_t count;
    } given[SOBOL_MAX_DIMENSIONS];
    if (axes > SOBOL_MAX_DIMENSIONS)
        return wrong(plan, plan->axes.items[SOBOL_MAX_DIMENSIONS].place, "at most 40 keys",
                     "too many keys for --sobol:", plan->axes.items[SOBOL_MAX_DIMENSIONS].key);
    for (int32_t i = 0; i < axes; i++) {
        struct sweep_axis *axis = &plan->axes.items[i];
        given[i].items = axis->values.items;
        given[i].count = axis->values.count;
        axis->numbers = ARENA_ARRAY(plan->arena, double, count);
        axis->values.items = NULL;
        axis->values.count = axis->values.capacity = 0;
    }
    struct sobol *sobol = sobol_new(axes);
    for (int64_t k = 0; k < count; k++) {
        sobol_next(sobol, point);
        for (int32_t i = 0; i < axes; i++) {
            struct sweep_axis *axis = &plan->axes.items[i];
            choose(plan, axis, given[i].items, given[i].count, k, point[i]);
        }
    }
    sobol_free(sobol);
    plan->is_zip = true;
    plan->point_count = count;
    return STATUS_OK;
}

enum status knobs_one_by_one(struct sweep_plan *plan)
{
    plan->is_one_by_one = true;
    plan->point_count = 1;
    for (int32_t i = 0; i < plan->axes.count; i++) {
        struct sweep_axis *axis = &plan->axes.items[i];
        if (axis->has_span) {
            push(plan, axis, axis->span.low_text);
            push(plan, axis, axis->span.high_text);
        }
        plan->point_count += axis->values.count;
    }
    return STATUS_OK;
}
