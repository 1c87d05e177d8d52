/*
 * observe/breakdown.c: where the time of a class goes, and of its units.
 *
 * Between two tellings nothing changes, so each such stretch of reported time belongs to one case:
 * compute runs, or else communication does (exposed), or else the class is idle.
 */
#include <math.h>

#include "observe/facts_private.h"

static void times_advance(struct time_watch *watch, int64_t now_ps)
{
    const int64_t stretch_ps = now_ps - watch->last_ps;
    watch->last_ps = now_ps;
    if (stretch_ps == 0 || watch->window.state != WINDOW_OPEN)
        return;
    struct breakdown *sums = &watch->sums;
    const bool has_comm = watch->counts[ACTIVITY_COMMUNICATION] > 0;
    if (has_comm)
        sums->comm_ps += stretch_ps;
    if (watch->waiting_count > 0)
        sums->comm_wait_ps += stretch_ps;
    if (watch->counts[ACTIVITY_COMPUTE] > 0) {
        sums->compute_ps += stretch_ps;
        watch->copy_sum_ps += watch->copy_frac * (double)stretch_ps;
        return;
    }
    watch->bare_ps += stretch_ps;
    if (has_comm) {
        sums->exposed_ps += stretch_ps;
        return;
    }
    sums->idle_ps += stretch_ps;
    if (watch->counts[ACTIVITY_MEMCPY] > 0)
        sums->memcpy_ps += stretch_ps;
}

/* Summed afresh, so that nothing is left over when nothing runs. */
static void copy_frac_update(struct time_watch *watch)
{
    watch->copy_frac = 0;
    for (int32_t i = 0; i < watch->stream_count; i++) {
        const struct running *running = &watch->running[i];
        if (running->is_running && running->kind == ACTIVITY_COMPUTE)
            watch->copy_frac += running->copy_frac;
    }
    if (watch->copy_frac > 1)
        watch->copy_frac = 1;
}

void times_activity_begin(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                          const struct op *op, double copy_frac)
{
    struct facts *facts = context;
    struct time_watch *watch = &facts->times[class_idx];
    times_advance(watch, now_ps);
    watch->counts[kind]++;
    watch->waiting_count += kind == ACTIVITY_COMMUNICATION;
    watch->running[op->stream] =
        (struct running){.is_running = true,
                         .is_waiting = kind == ACTIVITY_COMMUNICATION,
                         .kind = kind,
                         .copy_frac = copy_frac,
                         .begin_clock_ps = window_clock(&watch->window, now_ps),
                         .begin_bare_ps = watch->bare_ps};
    copy_frac_update(watch);
}

void times_transfer_begin(void *context, int64_t now_ps, int32_t class_idx, const struct op *op)
{
    struct facts *facts = context;
    struct time_watch *watch = &facts->times[class_idx];
    times_advance(watch, now_ps);
    struct running *running = &watch->running[op->stream];
    watch->waiting_count -= running->is_waiting;
    running->is_waiting = false;
}

static void unit_add_collective(struct unit_facts *unit, const struct collective *collective,
                                int64_t length_ps, bool is_counted)
{
    if (collective->op == COLLECTIVE_ALL_GATHER) {
        unit->all_gather_ps += length_ps;
        unit->all_gather_count += is_counted;
        unit->all_gather_bytes += is_counted ? collective->bytes : 0;
    } else if (collective->op == COLLECTIVE_REDUCE_SCATTER) {
        unit->reduce_scatter_ps += length_ps;
        unit->reduce_scatter_count += is_counted;
        unit->reduce_scatter_bytes += is_counted ? collective->bytes : 0;
    }
}

/* A unit gets the reported part of what ran for it; the collective counts where it ends. */
static void unit_add(struct time_watch *watch, const struct program *program, const struct op *op,
                     const struct running *running, int64_t now_ps)
{
    if (op->unit < 0)
        return;
    struct unit_facts *unit = &watch->units[op->unit];
    const int64_t length_ps = window_clock(&watch->window, now_ps) - running->begin_clock_ps;
    if (op->kind == OP_SEGMENT) {
        /* By phase, not by kernel: a backward with checkpointing begins with forward kernels. */
        *(watch->is_backward ? &unit->backward_ps : &unit->forward_ps) += length_ps;
    } else if (op->kind == OP_COLLECTIVE) {
        unit->exposed_ps += watch->bare_ps - running->begin_bare_ps;
        unit_add_collective(unit, &program->collectives.items[op->index], length_ps,
                            watch->window.state == WINDOW_OPEN);
    }
}

void times_activity_end(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                        const struct op *op, double copy_frac)
{
    (void)copy_frac;
    struct facts *facts = context;
    struct time_watch *watch = &facts->times[class_idx];
    times_advance(watch, now_ps);
    struct running *running = &watch->running[op->stream];
    unit_add(watch, facts_program(facts, class_idx), op, running, now_ps);
    watch->counts[kind]--;
    watch->quiet_ps = now_ps;
    watch->waiting_count -= running->is_waiting;
    *running = (struct running){0};
    copy_frac_update(watch);
}

/* The host waited for a batch: until then nothing new was issued, so that what the GPU had to do
   was done some time before, and it stood still from then on. */
void times_host_enters(void *context, int64_t since_ps, int64_t now_ps, int32_t class_idx,
                       int32_t by)
{
    struct facts *facts = context;
    struct time_watch *watch = &facts->times[class_idx];
    const struct program *program = facts_program(facts, class_idx);
    if (by < 0 || program->streams.items[by].role != STREAM_DATA_LOADER)
        return;
    times_advance(watch, now_ps);
    for (int kind = 0; kind < ACTIVITY_KIND_COUNT; kind++)
        if (watch->counts[kind] > 0)
            return;
    int64_t begin_ps = since_ps > watch->quiet_ps ? since_ps : watch->quiet_ps;
    if (watch->window.state == WINDOW_OPEN) {
        begin_ps = begin_ps > watch->window.opened_ps ? begin_ps : watch->window.opened_ps;
        watch->sums.data_wait_ps += now_ps - begin_ps;
    }
}

static void phase_reached(struct time_watch *watch, int64_t now_ps, enum mark mark)
{
    const int64_t length_ps = now_ps - watch->mark_ps;
    watch->mark_ps = now_ps;
    watch->is_backward = mark == MARK_FORWARD_END || mark == MARK_BACKWARD_END;
    if (watch->window.state != WINDOW_OPEN)
        return;
    switch (mark) {
    case MARK_FORWARD_END:
        watch->sums.forward_ps += length_ps;
        return;
    case MARK_BACKWARD_END:
        watch->sums.backward_ps += length_ps;
        return;
    case MARK_STEP_END:
        watch->sums.optimizer_ps += length_ps;
        return;
    case MARK_STEP_BEGIN:
    case MARK_FORWARD_BEGIN:
    case MARK_COUNT:
        return;
    }
}

void times_mark_reached(void *context, int64_t now_ps, int32_t class_idx, int32_t step,
                        enum mark mark)
{
    struct facts *facts = context;
    struct time_watch *watch = &facts->times[class_idx];
    struct window *window = &watch->window;
    times_advance(watch, now_ps);
    phase_reached(watch, now_ps, mark);
    const bool is_opening = facts->warmup == 0 ? step == 0 && mark == MARK_STEP_BEGIN
                                               : step == facts->warmup - 1 && mark == MARK_STEP_END;
    if (is_opening && window->state == WINDOW_BEFORE) {
        window->state = WINDOW_OPEN;
        window->opened_ps = now_ps;
    }
    if (mark == MARK_STEP_END && step == facts->warmup + facts->steps - 1 &&
        window->state == WINDOW_OPEN) {
        window->state = WINDOW_CLOSED;
        window->closed_ps = now_ps;
    }
}

void times_close(struct time_watch *watch)
{
    watch->sums.step_ps = window_clock(&watch->window, watch->last_ps);
    watch->sums.copy_ps = (int64_t)llround(watch->copy_sum_ps);
}
