/*
 * observe/ledger.c: what a class holds allocated, in the order of its host thread; peaks.
 *
 * The steady peak is that of steps 1, 2, …; it begins with what the first step left allocated.
 */
#include <string.h>

#include "observe/facts_private.h"

static void peak_take(struct memory_watch *watch)
{
    struct memory_facts *facts = &watch->facts;
    facts->peak_active_bytes = watch->active_bytes;
    memcpy(facts->peak_composition, watch->active_by_category, sizeof(facts->peak_composition));
    facts->peak_unit = watch->last_tensor != NULL ? watch->last_tensor->unit : -1;
    facts->peak_tensor = watch->last_tensor != NULL ? watch->last_tensor->name : NULL;
}

static void first_step_over(struct memory_watch *watch)
{
    watch->is_steady = true;
    watch->facts.first_step_peak_active_bytes = watch->facts.peak_active_bytes;
    peak_take(watch);
}

void ledger_changed(void *context, int64_t time_ps, int32_t class_idx, int32_t step,
                    const struct tensor *tensor, int64_t delta_bytes)
{
    (void)time_ps;
    struct facts *facts = context;
    struct memory_watch *watch = &facts->memories[class_idx];
    if (step > 0 && !watch->is_steady)
        first_step_over(watch);
    watch->active_bytes += delta_bytes;
    watch->active_by_category[tensor->category] += delta_bytes;
    int64_t *pool = &watch->pool_bytes[tensor->stream];
    int64_t *pool_peak = &watch->facts.pool_peak_bytes[tensor->stream];
    *pool += delta_bytes;
    if (*pool > *pool_peak) {
        watch->facts.peak_reserved_bytes += *pool - *pool_peak;
        *pool_peak = *pool;
    }
    if (delta_bytes <= 0)
        return;
    watch->last_tensor = tensor;
    if (watch->active_bytes > watch->facts.peak_active_bytes)
        peak_take(watch);
}

/* A single step is its own steady state; later ones that change nothing hold what it left. */
void ledger_close(struct memory_watch *watch, int32_t steps)
{
    if (watch->is_steady)
        return;
    if (steps > 1)
        first_step_over(watch);
    else
        watch->facts.first_step_peak_active_bytes = watch->facts.peak_active_bytes;
}
