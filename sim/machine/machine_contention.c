/*
 * machine/machine_contention.c: kernels beside collectives, and collectives beside kernels.
 *
 * The SMs that collectives hold and the memory bandwidth that they use are a *level* of a class.
 * Beside it a part of a segment takes Σ t_i · slowdown_i (cluster/contention.h) instead of Σ t_i,
 * kernel by kernel; the sums are found when a level first meets a segment. The part's activity then
 * runs at no more than the ratio of the two, from the instant the level begins until it ends:
 *
 *     cap = Σ t_i / (Σ t_i + lost),  lost = Σ (slowdown_i − 1) · t_i
 *
 * Example: 6 ms of matrix products and 2 ms of norms, 1.40 and 1.13 times as long beside an
 * all-gather: 10.66 ms if it lasted all along, so cap = 8 / 10.66 = 0.750.
 *
 * A collective beside kernels runs at no more than cap_beside of its phase. Memory bandwidth is
 * shared on top of both caps (maxmin.h).
 */
#include "base/units.h"
#include "cluster/contention.h"
#include "machine/machine_private.h"

void class_hold_sms(struct machine *machine, struct class_state *class, int64_t channels)
{
    if (channels == 0)
        return;
    class->sms_held += channels;
    if (!class->is_hold_listed) {
        class->is_hold_listed = true;
        machine->hold_list[machine->hold_count++] = class;
    }
    engine_request_instant_end(&machine->engine);
}

void contention_count_compute(struct machine *machine, int32_t change)
{
    machine->computing_count += change;
    engine_request_instant_end(&machine->engine);
}

void contention_count_transfer(struct machine *machine, int64_t percent)
{
    machine->moving_percent += percent;
    engine_request_instant_end(&machine->engine);
}

static struct level *level_find(const struct machine *machine, struct pace *pace, int64_t sms_held)
{
    const double loss = machine->setup->layout->cluster->kernel_loss_per_hbm_share;
    int64_t percent = loss > 0 ? machine->known_percent : 0;
    if (percent > 100)
        percent = 100;
    if (sms_held == 0 && percent == 0)
        return NULL;
    for (struct level *level = pace->levels; level != NULL; level = level->next) {
        if (level->sms_held == sms_held && level->hbm_percent == percent)
            return level;
    }
    const int32_t segment_count = pace->score->program->segments.count;
    struct level *level = ARENA_NEW(machine->arena, struct level);
    *level = (struct level){.sms_held = sms_held,
                            .hbm_percent = percent,
                            .lost = ARENA_ARRAY(machine->arena, struct lost, segment_count),
                            .next = pace->levels};
    pace->levels = level;
    return level;
}

/* The gap behind a kernel is no longer beside a collective. */
static double *find_lost(const struct machine *machine, const struct level *level,
                         const struct segment *segment, const struct segment_times *times)
{
    const struct cluster *cluster = machine->setup->layout->cluster;
    const struct gpu *gpu = &cluster->gpu;
    const struct contention contention = {
        level->sms_held, 1 + cluster->kernel_loss_per_hbm_share * (double)level->hbm_percent / 100};
    double *lost_s = ARENA_ARRAY(machine->arena, double, times->kernel_count + 1);
    for (int32_t i = 0; i < times->kernel_count; i++) {
        const struct kernel *kernel = &segment->kernels[i];
        double alone_s = s_from_ps(times->sum_ps[i + 1] - times->sum_ps[i]);
        if (!machine->setup->ideal.latency && kernel->kind != KERNEL_GIVEN)
            alone_s -= gpu->launch_gap_s;
        const double slowdown =
            contention_slowdown(&contention, gpu->sm_count, kernel, times->is_memory_bound[i]);
        lost_s[i + 1] = lost_s[i] + (alone_s > 0 ? alone_s * (slowdown - 1) : 0);
    }
    return lost_s;
}

static double segment_cap(struct machine *machine, const struct lane *lane)
{
    const struct pace *pace = lane->class->pace;
    const struct level *level = lane->class->level;
    if (level == NULL)
        return 1;
    const int32_t idx = lane->at->op->index;
    const struct segment_times *times = &pace->segments[idx];
    if (level->lost[idx].sum_s == NULL)
        level->lost[idx].sum_s =
            find_lost(machine, level, &pace->score->program->segments.items[idx], times);
    const double *sum_s = level->lost[idx].sum_s;
    const double alone_s = s_from_ps(times->sum_ps[lane->batch_end] - times->sum_ps[lane->kernel]);
    const double lost_s = sum_s[lane->batch_end] - sum_s[lane->kernel];
    return alone_s / (alone_s + lost_s);
}

static bool is_segment(const struct lane *lane)
{
    return lane->at->kind == TAPE_SEGMENT;
}

double contention_cap(struct machine *machine, const struct activity *activity)
{
    if (activity->event.kind == EVENT_COMM_ACTIVITY) {
        const struct comm_state *comm = activity->event.owner;
        const struct flow_phase *phase = &comm->plan->phases[comm->phase];
        return machine->is_computing ? phase->cap_beside : phase->cap;
    }
    const struct lane *lane = activity->event.owner;
    return is_segment(lane) ? segment_cap(machine, lane) : activity->cap;
}

static void recap(struct machine *machine, const struct activity *activity)
{
    if (activity->is_running)
        maxmin_set_cap(machine->solver, activity->solver_id, contention_cap(machine, activity));
}

static void class_update(struct machine *machine, struct class_state *class)
{
    struct level *level = level_find(machine, class->pace, class->sms_held);
    if (level == class->level)
        return;
    class->level = level;
    for (int32_t i = 0; i < class->lane_count; i++) {
        if (class->lanes[i].state == LANE_BUSY)
            recap(machine, &class->lanes[i].activity);
    }
}

void contention_update(struct machine *machine)
{
    if (machine->moving_percent != machine->known_percent) {
        machine->known_percent = machine->moving_percent;
        for (int32_t i = 0; i < machine->class_count; i++)
            class_update(machine, &machine->classes[i]);
    }
    for (int32_t i = 0; i < machine->hold_count; i++) {
        machine->hold_list[i]->is_hold_listed = false;
        class_update(machine, machine->hold_list[i]);
    }
    machine->hold_count = 0;
    if ((machine->computing_count > 0) == machine->is_computing)
        return;
    machine->is_computing = machine->computing_count > 0;
    for (int32_t i = 0; i < machine->comm_count; i++)
        recap(machine, &machine->comms[i].activity);
}
