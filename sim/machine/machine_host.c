/*
 * machine/machine_host.c: the host thread of a class, epoch by epoch.
 *
 * The host enters an epoch, takes the epoch's length to issue what is in it, and blocks at its end
 * when a host wait stands there whose record has not been passed.
 */
#include "machine/machine_private.h"

/* All ranks of the host at once. */
double host_compute_s(const struct layout *layout, const struct op *op)
{
    return (double)op->bytes / host_compute_bytes_per_s(&layout->cluster->compute,
                                                        (enum host_pass)op->index,
                                                        layout->gpus_per_host, op->count);
}

const struct tape *host_tape(const struct class_state *class)
{
    return &class->score->tapes[tape_of_step(class->host_step)];
}

static void issue_tell(const struct machine *machine, const struct class_state *class,
                       const struct tape_issue *item)
{
    const int64_t now_ps = machine->engine.now_ps;
    const struct issue issue = {.op = item->op,
                                .step = class->host_step,
                                .begin_ps = now_ps + item->begin_ps,
                                .end_ps = now_ps + item->end_ps,
                                .gap_ps = item->gap_ps};
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->host_issues != NULL)
            observer->host_issues(observer->context, class->idx, &issue);
    }
}

/* `by`: the stream that ended the host's wait, -1: there was none. */
static void epoch_tell_host(const struct machine *machine, const struct class_state *class,
                            int32_t by)
{
    const int64_t now_ps = machine->engine.now_ps;
    const int64_t since_ps = by >= 0 ? class->host_blocked_since_ps : now_ps;
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->host_enters != NULL)
            observer->host_enters(observer->context, since_ps, now_ps, class->idx, by);
    }
    const struct tape *tape = host_tape(class);
    const int32_t begin =
        class->host_epoch > 0 ? tape->epochs.items[class->host_epoch - 1].issue_end : 0;
    for (int32_t i = begin; i < tape->epochs.items[class->host_epoch].issue_end; i++)
        issue_tell(machine, class, &tape->issues.items[i]);
}

static void epoch_enter(struct machine *machine, struct class_state *class, int32_t by)
{
    *ARENA_PUSH(machine->arena, &class->epoch_start_ps) = machine->engine.now_ps;
    if (machine->is_host_watched)
        epoch_tell_host(machine, class, by);
    if (!machine->setup->limits_memory) {
        if (class->score->has_timed_frees)
            memory_list_due(machine, class);
        else if (class->held != NULL)
            epoch_play_memory(machine, class);
    }
    for (int32_t i = 0; i < class->lane_count; i++) {
        if (class->lanes[i].state == LANE_AWAITS_HOST)
            lane_release(machine, &class->lanes[i], HOLD_HOST, -1);
    }
}

bool is_passed(const struct class_state *class, struct binding binding, int32_t step)
{
    return binding.site < 0 || class->passed_step[binding.site] >= binding_step(binding, step);
}

/* False when the program is over. */
static bool host_next_epoch(struct machine *machine, struct class_state *class)
{
    if (++class->host_epoch < host_tape(class)->epochs.count)
        return true;
    class->host_epoch = 0;
    class->settled_count = 0;
    class->is_host_done = ++class->host_step >= machine->setup->steps;
    return !class->is_host_done;
}

/* Leaves the epoch, which is all issued, for the next; false: blocked, or the program is over. */
static bool host_leave_epoch(struct machine *machine, struct class_state *class)
{
    const struct tape_epoch *epoch = &host_tape(class)->epochs.items[class->host_epoch];
    if (!class->is_host_blocked)
        class->host_blocked_since_ps = machine->engine.now_ps;
    class->is_host_blocked = !is_passed(class, epoch->until, class->host_step);
    return !class->is_host_blocked && host_next_epoch(machine, class);
}

void host_run(struct machine *machine, struct class_state *class, int32_t by)
{
    do {
        if (machine->setup->limits_memory && !memory_settle(machine, class))
            return;
        epoch_enter(machine, class, by);
        by = -1;
        const int64_t length_ps = host_tape(class)->epochs.items[class->host_epoch].length_ps;
        if (length_ps > 0) {
            class->host.op = class->host_epoch;
            engine_schedule(&machine->engine, &class->host, machine->engine.now_ps + length_ps);
            return;
        }
    } while (host_leave_epoch(machine, class));
}

void host_start(struct machine *machine, struct class_state *class)
{
    class->host_step = class->memory_step = STEP_PROLOGUE;
    host_run(machine, class, -1);
}

void host_epoch_ended(struct machine *machine, struct class_state *class)
{
    if (class->is_settling) {
        class->is_settling = false;
        host_run(machine, class, -1);
        return;
    }
    if (host_leave_epoch(machine, class))
        host_run(machine, class, -1);
}

void class_record_passed(struct machine *machine, struct class_state *class, int32_t by,
                         int32_t site, int32_t step)
{
    class->passed_step[site] = step;
    for (int32_t i = 0; i < class->lane_count; i++) {
        struct lane *lane = &class->lanes[i];
        if (lane->state == LANE_AWAITS_EVENT && lane->at->site == site)
            lane_release(machine, lane, HOLD_EVENT, by);
    }
    if (class->is_host_blocked && host_leave_epoch(machine, class))
        host_run(machine, class, by);
    if (class->pending != NULL)
        pending_frees_check(machine, class);
}
