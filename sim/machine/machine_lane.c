/*
 * machine/machine_lane.c: a stream of one rank class runs down its tape.
 *
 * A segment starts its kernels that will not have to wait for the host, as one activity: kernel m
 * may follow kernel i begun at t without a pause when issue_m <= t + (time alone of i … m − 1),
 * since sharing only makes kernels longer. When the activity ends, the rest is looked at again.
 * A kernel that needs all SMs (cooperative launch) is an activity of its own and begins when
 * collectives hold none, or no more than its margin; one that waits comes before a collective that
 * arrives in the instant in which they are given back. Left out: a collective waits for it, too.
 *
 * Without contention the segment ends at max over i (issue_i + Σ_{j>=i} t_j), and at begin + Σ t.
 */
#include "base/units.h"
#include "machine/machine_private.h"

void lane_push(struct machine *machine, struct lane *lane)
{
    if (lane->state == LANE_DONE)
        return;
    lane->state = LANE_READY;
    if (lane->is_pushed)
        return;
    lane->is_pushed = true;
    machine->ready[machine->ready_count++] = lane;
}

static void tell_held(const struct machine *machine, const struct lane *lane, enum hold hold,
                      int32_t by)
{
    const int64_t now_ps = machine->engine.now_ps;
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->stream_held != NULL)
            observer->stream_held(observer->context, lane->held_since_ps, now_ps, lane->class->idx,
                                  lane->idx, lane->at->op, hold, by);
    }
}

void lane_release(struct machine *machine, struct lane *lane, enum hold hold, int32_t by)
{
    if (machine->are_holds_watched && lane->held_since_ps < machine->engine.now_ps)
        tell_held(machine, lane, hold, by);
    lane->held_since_ps = machine->engine.now_ps;
    lane_push(machine, lane);
}

/* At the first operation of the tape of `step`, or of the next tape that has one. */
void lane_enter_tape(struct machine *machine, struct lane *lane, int32_t step)
{
    const struct score *score = lane->class->score;
    for (lane->step = step; lane->step < machine->setup->steps; lane->step++) {
        const struct tape_ops *ops = &score->tapes[tape_of_step(lane->step)].streams[lane->idx];
        if (ops->count == 0)
            continue;
        lane->at = ops->items;
        lane->end = ops->items + ops->count;
        lane->kernel = 0;
        lane->first_epoch = score_epochs_before(score, lane->step);
        return;
    }
    lane->state = LANE_DONE;
}

void lane_advance(struct machine *machine, struct lane *lane)
{
    lane->kernel = 0;
    if (++lane->at == lane->end)
        lane_enter_tape(machine, lane, lane->step + 1);
}

int64_t lane_issue_ps(const struct lane *lane)
{
    const int64_t epoch = lane->first_epoch + lane->at->epoch;
    return lane->class->epoch_start_ps.items[epoch] + lane->at->issue_ps;
}

void lane_sleep(struct machine *machine, struct lane *lane, int64_t until_ps)
{
    lane->state = LANE_SLEEPS;
    lane->wake.op = lane->at->op->index;
    engine_schedule(&machine->engine, &lane->wake, until_ps);
}

/* True when the next operation is issued; otherwise the lane sleeps until it is. */
static bool lane_is_issued(struct machine *machine, struct lane *lane)
{
    const int64_t issue_ps = lane_issue_ps(lane);
    if (issue_ps <= machine->engine.now_ps) {
        jitter_hold(lane, issue_ps);
        return true;
    }
    lane_sleep(machine, lane, issue_ps);
    return false;
}

void lane_start_activity(struct machine *machine, struct lane *lane, enum activity_kind kind)
{
    lane->state = LANE_BUSY;
    lane->activity.event.op = lane->at->op->index;
    tell_begin(machine, lane, kind);
    activity_start(machine, &lane->activity);
}

static bool needs_all_sms(const struct lane *lane, const struct segment_times *times)
{
    return times->next_full != NULL && times->next_full[lane->kernel] == lane->kernel;
}

/* A kernel that needs all SMs is an activity of its own. */
static int32_t find_batch_limit(const struct lane *lane, const struct segment_times *times)
{
    if (times->next_full == NULL)
        return times->kernel_count;
    return needs_all_sms(lane, times) ? lane->kernel + 1 : times->next_full[lane->kernel];
}

void lanes_give_sms(struct machine *machine, struct class_state *class, int32_t by)
{
    for (int32_t i = 0; i < class->lane_count; i++) {
        struct lane *lane = &class->lanes[i];
        if (lane->state != LANE_AWAITS_SMS ||
            class->sms_held > class->pace->segments[lane->at->op->index].sm_margin)
            continue;
        lane->has_sms = true;
        lane_release(machine, lane, HOLD_TURN, by);
    }
}

/* The kernels up to which the lane runs without waiting for the host, from `lane->kernel` at now.
 */
static int32_t find_batch_end(const struct lane *lane, const struct segment_times *times,
                              int64_t now_ps, int64_t first_issue_ps)
{
    const int32_t limit = find_batch_limit(lane, times);
    if (lane->kernel == 0 && now_ps >= first_issue_ps + times->lead_ps)
        return limit;
    const int64_t base_ps = now_ps - times->sum_ps[lane->kernel];
    int32_t end = lane->kernel + 1;
    while (end < limit &&
           first_issue_ps + end * times->issue_gap_ps <= base_ps + times->sum_ps[end])
        end++;
    return end;
}

/* Of the microbatch in which the segment runs. */
static double microbatch_cost(const struct machine *machine, const struct lane *lane)
{
    const struct machine_setup *setup = machine->setup;
    const struct op *op = lane->at->op;
    if (setup->microbatch_costs == NULL || op->count < 1 || op->count > setup->microbatch_count)
        return 1;
    return setup->microbatch_costs[lane->class->idx * setup->microbatch_count + op->count - 1];
}

static void segment_start_batch(struct machine *machine, struct lane *lane,
                                const struct segment_times *times, int64_t alone_ps,
                                int64_t issue_ps)
{
    const struct rank_class *rank_class = lane->class->rank_class;
    struct activity *activity = &lane->activity;
    const int64_t copy_ps = times->copy_sum_ps[lane->batch_end] - times->copy_sum_ps[lane->kernel];
    lane->copy_frac = (double)copy_ps / (double)alone_ps;
    activity->work = s_from_ps(alone_ps) * microbatch_cost(machine, lane) *
                     jitter_begin_segment(machine, lane, issue_ps);
    activity->weight = 1;
    activity->cap = 1;
    activity->demands = lane->demands;
    activity->demand_count = 0;
    if (rank_class->sm >= 0)
        lane->demands[activity->demand_count++] = (struct demand){rank_class->sm, 1};
    double bytes_per_s =
        (times->sum_bytes[lane->batch_end] - times->sum_bytes[lane->kernel]) / activity->work;
    if (rank_class->hbm >= 0 && bytes_per_s > 0) {
        /* Rounding must not make kernels at the limit of the memory slower than alone. */
        const double most = machine->setup->layout->resources[rank_class->hbm].capacity;
        if (bytes_per_s > most)
            bytes_per_s = most;
        lane->demands[activity->demand_count++] = (struct demand){rank_class->hbm, bytes_per_s};
    }
    contention_count_compute(machine, lane->class, 1);
    lane_start_activity(machine, lane, ACTIVITY_COMPUTE);
}

/* True when the segment has ended. */
static bool segment_continue(struct machine *machine, struct lane *lane)
{
    const struct segment_times *times = &lane->class->pace->segments[lane->at->op->index];
    const int64_t now_ps = machine->engine.now_ps;
    const int64_t first_issue_ps =
        lane_issue_ps(lane) - (times->kernel_count - 1) * times->issue_gap_ps;
    while (lane->kernel < times->kernel_count) {
        const int64_t issue_ps = first_issue_ps + lane->kernel * times->issue_gap_ps;
        if (issue_ps > now_ps) {
            lane_sleep(machine, lane, issue_ps);
            return false;
        }
        if (needs_all_sms(lane, times) && !lane->has_sms &&
            lane->class->sms_held > times->sm_margin) {
            lane->state = LANE_AWAITS_SMS;
            return false;
        }
        if (lane->has_sms)
            jitter_hold(lane, now_ps);
        lane->has_sms = false;
        lane->batch_end = find_batch_end(lane, times, now_ps, first_issue_ps);
        const int64_t alone_ps = times->sum_ps[lane->batch_end] - times->sum_ps[lane->kernel];
        if (alone_ps > 0) {
            segment_start_batch(machine, lane, times, alone_ps, issue_ps);
            return false;
        }
        lane->kernel = lane->batch_end;
    }
    return true;
}

static void mark_tell(struct machine *machine, const struct lane *lane)
{
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->mark_reached != NULL)
            observer->mark_reached(observer->context, machine->engine.now_ps, lane->class->idx,
                                   lane->step, (enum mark)lane->at->op->index);
    }
}

/* The tensor is free when its last stream has passed. */
static void release_pass(struct machine *machine, struct lane *lane)
{
    struct class_state *class = lane->class;
    const struct tape_op *at = lane->at;
    class->passed_step[at->site + lane->idx] = lane->step;
    for (int32_t i = 0; i < class->lane_count; i++) {
        if (((uint32_t)at->value >> i & 1) != 0 && class->passed_step[at->site + i] < lane->step)
            return;
    }
    memory_free(machine, class, machine->engine.now_ps, lane->step, at->op);
}

static bool wait_is_over(struct lane *lane)
{
    const struct tape_op *at = lane->at;
    const struct binding binding = {at->site, at->value, at->is_relative};
    if (lane->class->passed_step[at->site] >= binding_step(binding, lane->step))
        return true;
    lane->state = LANE_AWAITS_EVENT;
    return false;
}

/* A batch takes its time once it is asked for; it uses nothing that others share. */
static bool load_is_over(struct machine *machine, struct lane *lane)
{
    if (!lane_is_issued(machine, lane))
        return false;
    const int64_t load_ps = ps_from_s(machine->setup->batch_s);
    if (lane->kernel > 0 || load_ps == 0)
        return true;
    lane->kernel = 1;
    lane_sleep(machine, lane, machine->engine.now_ps + load_ps);
    return false;
}

/* True when the operation is over and the next one may be looked at. */
static bool lane_play(struct machine *machine, struct lane *lane)
{
    switch ((enum tape_kind)lane->at->kind) {
    case TAPE_SEGMENT:
        return segment_continue(machine, lane);
    case TAPE_COLLECTIVE:
    case TAPE_TRANSFER:
        if (lane_is_issued(machine, lane))
            lane_arrive(machine, lane);
        return false;
    case TAPE_COPY:
        return lane_is_issued(machine, lane) && copy_start(machine, lane);
    case TAPE_LOAD:
        return load_is_over(machine, lane);
    case TAPE_RECORD:
        jitter_record(lane, lane->at->site);
        class_record_passed(machine, lane->class, lane->idx, lane->at->site, lane->step);
        return true;
    case TAPE_WAIT:
        if (!wait_is_over(lane))
            return false;
        jitter_wait(lane, lane->at->site);
        return true;
    case TAPE_MARK:
        if (!lane_is_issued(machine, lane))
            return false;
        mark_tell(machine, lane);
        return true;
    case TAPE_RELEASE:
        if (!lane_is_issued(machine, lane))
            return false;
        release_pass(machine, lane);
        return true;
    }
    BUG("no such operation on a tape: %d", lane->at->kind);
}

static void lane_run(struct machine *machine, struct lane *lane)
{
    const struct class_state *class = lane->class;
    lane->held_since_ps = machine->engine.now_ps;
    while (lane->state == LANE_READY) {
        if (lane->first_epoch + lane->at->epoch >= class->epoch_start_ps.count) {
            lane->state = LANE_AWAITS_HOST;
            return;
        }
        if (!lane_play(machine, lane))
            return;
        lane_advance(machine, lane);
    }
}

void lanes_drain(struct machine *machine)
{
    while (machine->ready_count > 0 && !machine->has_failed) {
        struct lane *lane = machine->ready[--machine->ready_count];
        lane->is_pushed = false;
        lane_run(machine, lane);
    }
}

void lane_activity_ended(struct machine *machine, struct lane *lane)
{
    const bool is_segment = lane->at->kind == TAPE_SEGMENT;
    activity_end(machine, &lane->activity);
    jitter_end(machine, lane, is_segment);
    tell_end(machine, lane, is_segment ? ACTIVITY_COMPUTE : ACTIVITY_MEMCPY);
    if (is_segment) {
        lane->kernel = lane->batch_end;
        contention_count_compute(machine, lane->class, -1);
    } else {
        lane_advance(machine, lane);
    }
    lane_push(machine, lane);
}
