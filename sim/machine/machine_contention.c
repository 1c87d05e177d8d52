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

static void list_level(struct machine *machine, struct class_state *class)
{
    if (!class->is_level_listed) {
        class->is_level_listed = true;
        machine->level_list[machine->level_count++] = class;
    }
    engine_request_instant_end(&machine->engine);
}

void class_hold_sms(struct machine *machine, struct class_state *class, int64_t channels)
{
    if (channels == 0)
        return;
    class->sms_held += channels;
    list_level(machine, class);
}

static void comm_count_compute(struct machine *machine, struct comm_state *comm, int32_t change)
{
    comm->computing_count += change;
    if (comm->is_listed)
        return;
    comm->is_listed = true;
    machine->computing_list[machine->computing_count++] = comm;
}

void contention_count_compute(struct machine *machine, struct class_state *class, int32_t change)
{
    const bool was_computing = class->computing_count > 0;
    class->computing_count += change;
    engine_request_instant_end(&machine->engine);
    if (was_computing == (class->computing_count > 0))
        return;
    class->computed_ps += was_computing ? machine->engine.now_ps : -machine->engine.now_ps;
    for (int32_t i = 0; i < machine->communicator_count; i++)
        comm_count_compute(machine, class->seats[i].comm, was_computing ? -1 : 1);
    const struct comm_seat *pairs = pair_seat(machine, class->idx, 0, false);
    for (int32_t i = 0; machine->has_pairs && i < 4 * machine->communicator_count; i++) {
        if (pairs[i].comm != NULL)
            comm_count_compute(machine, pairs[i].comm, was_computing ? -1 : 1);
    }
}

void contention_count_transfer(struct machine *machine, const struct comm_state *comm,
                               int64_t percent)
{
    if (percent == 0)
        return;
    for (int32_t i = 0; i < comm->seat_count; i++) {
        struct class_state *class = comm->members[i]->class;
        class->moving_percent += percent;
        list_level(machine, class);
    }
}

static struct level *level_find(const struct machine *machine, struct class_state *class)
{
    struct pace *pace = class->pace;
    const double loss = machine->setup->layout->cluster->kernel_loss_per_hbm_share;
    const int64_t sms_held = class->sms_held;
    int64_t percent = loss > 0 ? class->moving_percent : 0;
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
static double *find_lost(const struct machine *machine, const struct gpu *gpu,
                         const struct level *level, const struct segment *segment,
                         const struct segment_times *times)
{
    const struct cluster *cluster = machine->setup->layout->cluster;
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
            find_lost(machine, pace->gpu, level, &pace->score->program->segments.items[idx], times);
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
        const struct comm_flow *flow = activity->event.owner;
        return flow->comm->is_computing ? flow->flow->cap_beside : flow->flow->cap;
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
    struct level *level = level_find(machine, class);
    if (level == class->level)
        return;
    class->level = level;
    for (int32_t i = 0; i < class->lane_count; i++) {
        if (class->lanes[i].state == LANE_BUSY)
            recap(machine, &class->lanes[i].activity);
    }
}

static void comm_update(struct machine *machine, struct comm_state *comm)
{
    comm->is_listed = false;
    const bool is_computing = comm->computing_count > 0;
    if (is_computing == comm->is_computing)
        return;
    comm->is_computing = is_computing;
    for (int32_t i = 0; i < comm->flow_max; i++)
        recap(machine, &comm->flows[i].activity);
}

void contention_update(struct machine *machine)
{
    for (int32_t i = 0; i < machine->level_count; i++) {
        machine->level_list[i]->is_level_listed = false;
        class_update(machine, machine->level_list[i]);
    }
    machine->level_count = 0;
    for (int32_t i = 0; i < machine->computing_count; i++)
        comm_update(machine, machine->computing_list[i]);
    machine->computing_count = 0;
}
