/*
 * observe/ledger.c: what a class holds allocated, in the order of its host thread; peaks.
 *
 * The steady peak is that of steps 1, 2, …; it begins with what the first step left allocated.
 */
#include <string.h>

#include "observe/facts_private.h"

static void peak_take(const struct memory_watch *watch, struct memory_peak *peak)
{
    int64_t *by_unit = peak->by_unit;
    *peak = watch->now;
    peak->by_unit = by_unit;
    memcpy(by_unit, watch->now.by_unit, sizeof(*by_unit) * (size_t)(watch->unit_count + 1));
}

/* What was taken as the peak so far is that of the first step. */
static void first_step_over(struct memory_watch *watch)
{
    struct memory_facts *facts = &watch->facts;
    const struct memory_peak first = facts->peak;
    facts->peak = facts->first_peak;
    facts->first_peak = first;
    facts->first_peak_reserved_bytes = facts->peak_reserved_bytes;
    facts->peak_reserved_bytes = watch->reserved_bytes;
    watch->is_steady = true;
    watch->now.op = NULL;
    watch->now.tensor = NULL;
    watch->now.step_ps = 0;
    watch->now.step = watch->now.change = 0;
    peak_take(watch, &facts->peak);
}

void ledger_changed(void *context, const struct memory_change *change)
{
    struct facts *facts = context;
    struct memory_watch *watch = &facts->memories[change->class_idx];
    if (change->step > 0 && !watch->is_steady)
        first_step_over(watch);
    const int32_t unit = change->tensor->unit;
    const bool has_unit = unit >= 0 && unit < watch->unit_count;
    watch->now.active_bytes += change->delta_bytes;
    watch->now.by_category[change->tensor->category] += change->delta_bytes;
    watch->now.by_unit[has_unit ? unit : watch->unit_count] += change->delta_bytes;
    watch->reserved_bytes = change->reserved_bytes;
    if (change->delta_bytes <= 0)
        return;
    if (watch->reserved_bytes > watch->facts.peak_reserved_bytes)
        watch->facts.peak_reserved_bytes = watch->reserved_bytes;
    watch->now.op = change->op;
    watch->now.tensor = change->tensor;
    watch->now.step_ps = change->step_ps;
    watch->now.step = change->step;
    watch->now.change = change->change;
    if (watch->now.active_bytes > watch->facts.peak.active_bytes)
        peak_take(watch, &watch->facts.peak);
}

void ledger_retried(void *context, const struct memory_retry *retry)
{
    struct facts *facts = context;
    if (retry->step < facts->warmup)
        return;
    /* The host may have begun to wait while the GPU was in a step that is not reported. */
    const int64_t opened_ps = facts->times[retry->class_idx].window.opened_ps;
    const int64_t begin_ps = retry->begin_ps > opened_ps ? retry->begin_ps : opened_ps;
    struct memory_facts *memory = &facts->memories[retry->class_idx].facts;
    memory->retry_count++;
    memory->retry_ps += retry->end_ps - begin_ps;
}

/* A single step is its own steady state; later ones that change nothing hold what it left. */
void ledger_close(struct memory_watch *watch, int32_t steps)
{
    if (watch->is_steady)
        return;
    if (steps > 1) {
        first_step_over(watch);
        return;
    }
    struct memory_facts *facts = &watch->facts;
    int64_t *by_unit = facts->first_peak.by_unit;
    facts->first_peak = facts->peak;
    facts->first_peak.by_unit = by_unit;
    memcpy(by_unit, facts->peak.by_unit, sizeof(*by_unit) * (size_t)(watch->unit_count + 1));
    facts->first_peak_reserved_bytes = facts->peak_reserved_bytes;
}
