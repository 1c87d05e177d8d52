/*
 * machine/machine_host.c: the host thread of a class, epoch by epoch, and its memory.
 *
 * The host enters an epoch, takes the epoch's length to issue what is in it, and blocks at its end
 * when a host wait stands there whose record has not been passed. Memory changes of an epoch are
 * told when it is entered, each with its own time; in programs with timed frees, when their time
 * comes, behind all that happens in the same instant.
 */
#include "machine/machine_private.h"

/* All ranks of the host at once. */
double host_compute_s(const struct layout *layout, const struct op *op)
{
    return (double)op->bytes / host_compute_bytes_per_s(&layout->cluster->compute,
                                                        (enum host_pass)op->index,
                                                        layout->gpus_per_host, op->count);
}

void memory_tell(struct machine *machine, const struct class_state *class, int64_t time_ps,
                 int32_t step, const struct tensor *tensor, int64_t delta_bytes)
{
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->memory_changed != NULL)
            observer->memory_changed(observer->context, time_ps, class->idx, step, tensor,
                                     delta_bytes);
    }
}

static void epoch_tell_memory(struct machine *machine, const struct class_state *class,
                              const struct tape *tape)
{
    const int32_t begin =
        class->host_epoch > 0 ? tape->epochs.items[class->host_epoch - 1].memory_end : 0;
    const int32_t end = tape->epochs.items[class->host_epoch].memory_end;
    for (int32_t i = begin; i < end; i++) {
        const struct tape_memory *item = &tape->memory.items[i];
        memory_tell(machine, class, machine->engine.now_ps + item->issue_ps, class->host_step,
                    item->tensor, item->delta_bytes);
    }
}

static const struct tape *host_tape(const struct class_state *class)
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
    if (class->score->has_timed_frees)
        memory_list_due(machine, class);
    else if (machine->is_memory_watched)
        epoch_tell_memory(machine, class, host_tape(class));
    for (int32_t i = 0; i < class->lane_count; i++) {
        if (class->lanes[i].state == LANE_AWAITS_HOST)
            lane_release(machine, &class->lanes[i], HOLD_HOST, -1);
    }
}

static bool is_passed(const struct class_state *class, struct binding binding, int32_t step)
{
    return binding.site < 0 || class->passed_step[binding.site] >= binding_step(binding, step);
}

/* False when the program is over. */
static bool host_next_epoch(struct machine *machine, struct class_state *class)
{
    if (++class->host_epoch < host_tape(class)->epochs.count)
        return true;
    class->host_epoch = 0;
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

static void host_run(struct machine *machine, struct class_state *class, int32_t by)
{
    do {
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
    if (host_leave_epoch(machine, class))
        host_run(machine, class, -1);
}

static void pending_frees_check(struct machine *machine, struct class_state *class)
{
    struct pending_free **link = &class->pending;
    while (*link != NULL) {
        struct pending_free *item = *link;
        if (!is_passed(class, item->after, item->step)) {
            link = &item->next;
            continue;
        }
        memory_tell(machine, class, machine->engine.now_ps, item->step, item->tensor,
                    item->delta_bytes);
        *link = item->next;
        item->next = class->free_list;
        class->free_list = item;
    }
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

static void pending_add(struct machine *machine, struct class_state *class,
                        const struct tape_memory *from)
{
    struct pending_free *item = class->free_list;
    if (item != NULL)
        class->free_list = item->next;
    else
        item = ARENA_NEW(machine->arena, struct pending_free);
    *item = (struct pending_free){.tensor = from->tensor,
                                  .after = from->after,
                                  .delta_bytes = from->delta_bytes,
                                  .step = class->memory_step};
    struct pending_free **link = &class->pending;
    while (*link != NULL)
        link = &(*link)->next;
    *link = item;
}

void memory_list_due(struct machine *machine, struct class_state *class)
{
    if (class->is_memory_due)
        return;
    class->is_memory_due = true;
    machine->memory_list[machine->memory_count++] = class;
    engine_request_instant_end(&machine->engine);
}

/* The host's next change, or NULL when it is in an epoch that has not begun, or there is none. */
static const struct tape_memory *memory_next(const struct machine *machine,
                                             struct class_state *class, int64_t *time_ps)
{
    for (; class->memory_step < machine->setup->steps; class->memory_step++) {
        const struct tape *tape = &class->score->tapes[tape_of_step(class->memory_step)];
        if (class->memory_idx == tape->memory.count) {
            class->memory_idx = 0;
            continue;
        }
        const struct tape_memory *item = &tape->memory.items[class->memory_idx];
        const int64_t epoch = score_epochs_before(class->score, class->memory_step) + item->epoch;
        if (epoch >= class->epoch_start_ps.count)
            return NULL;
        *time_ps = class->epoch_start_ps.items[epoch] + item->issue_ps;
        return item;
    }
    return NULL;
}

static void class_play_memory(struct machine *machine, struct class_state *class)
{
    int64_t time_ps = 0;
    for (;;) {
        const struct tape_memory *item = memory_next(machine, class, &time_ps);
        if (item == NULL)
            return;
        if (time_ps > machine->engine.now_ps) {
            engine_schedule(&machine->engine, &class->memory, time_ps);
            return;
        }
        if (is_passed(class, item->after, class->memory_step))
            memory_tell(machine, class, machine->engine.now_ps, class->memory_step, item->tensor,
                        item->delta_bytes);
        else
            pending_add(machine, class, item);
        class->memory_idx++;
    }
}

void memory_play_due(struct machine *machine)
{
    for (int32_t i = 0; i < machine->memory_count; i++) {
        machine->memory_list[i]->is_memory_due = false;
        class_play_memory(machine, machine->memory_list[i]);
    }
    machine->memory_count = 0;
}
