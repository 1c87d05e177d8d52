/*
 * machine/machine_setup.c: before playing: programs checked and laid out, kernel times, plans.
 *
 * Times depend on (program, clock of the GPU) only, so a cluster of a thousand classes with one
 * slow GPU has two sets. A kernel takes gpu_kernel_s plus the launch gap behind it (a given
 * duration is taken as it is); integer sums make a segment's time the same however it is cut into
 * parts.
 */
#include <math.h>

#include "base/units.h"
#include "machine/machine_private.h"

/* What the grammar has and the machine does not play yet: said, never ignored. */
static const char *missing_feature(const struct op *op)
{
    switch ((enum op_kind)op->kind) {
    case OP_SEND:
    case OP_RECV:
        return "point-to-point transfers";
    case OP_HOST_COMPUTE:
        return "computing on the host";
    case OP_COPY:
        return op->index == COPY_D2D ? NULL : "copies between host and device";
    case OP_SEGMENT:
    case OP_COLLECTIVE:
    case OP_RECORD:
    case OP_WAIT:
    case OP_HOST_WAIT:
    case OP_HOST_WORK:
    case OP_ALLOC:
    case OP_FREE:
    case OP_RECORD_STREAM:
    case OP_FREE_AFTER:
    case OP_MARK:
    case OP_KIND_COUNT:
        return NULL;
    }
    return NULL;
}

static enum status check_ops(const struct op_list *ops, struct diag *diag)
{
    for (int32_t i = 0; i < ops->count; i++) {
        const char *missing = missing_feature(&ops->items[i]);
        if (missing == NULL)
            continue;
        diag_add(diag, DIAG_ERROR, NO_PLACE, NULL, "%s cannot be simulated yet", missing);
        return STATUS_INPUT;
    }
    return STATUS_OK;
}

static enum status check_program(const struct machine *machine, const struct program *program)
{
    const struct layout *layout = machine->setup->layout;
    BUG_IF(program->streams.count > MACHINE_MAX_STREAMS);
    BUG_IF(program->communicators.count != machine->comm_count);
    for (int32_t i = 0; i < program->communicators.count; i++) {
        const struct communicator *comm = &program->communicators.items[i];
        if (layout->class_count == 1 || comm->group.ranks == layout->ranks)
            continue;
        diag_add(machine->diag, DIAG_ERROR, NO_PLACE,
                 "all GPUs and NICs must be alike, or the group must span all ranks",
                 "group '%s' spans a part of the ranks, which differ: this cannot be simulated yet",
                 comm->name);
        return STATUS_INPUT;
    }
    if (check_ops(&program->prologue, machine->diag) != STATUS_OK)
        return STATUS_INPUT;
    return check_ops(&program->step, machine->diag);
}

/* Weight: the rate alone, so that all that shares a resource slows by the same factor. Loads of
   nothing are left out: the solver wants positive demands. */
static void phase_set_up(struct machine *machine, const struct phase *from, struct flow_phase *to)
{
    const struct layout *layout = machine->setup->layout;
    to->rounds = from->rounds > 1 ? from->rounds : 1;
    to->latency_s = machine->setup->ideal.latency ? 0 : from->latency_s;
    to->bytes = from->bytes;
    to->demands = ARENA_ARRAY(machine->arena, struct demand, from->load_count);
    double alone = from->cap_bytes_per_s;
    for (int32_t i = 0; i < from->load_count; i++) {
        const struct load *load = &from->loads[i];
        if (!(load->per_byte > 0))
            continue;
        to->demands[to->demand_count++] = (struct demand){load->resource, load->per_byte};
        alone = fmin(alone, layout->resources[load->resource].capacity / load->per_byte);
    }
    to->cap = from->cap_bytes_per_s;
    to->cap_beside = from->cap_beside_bytes_per_s;
    to->weight = alone;
    if (to->bytes > 0 && !(alone > 0 && isfinite(alone)))
        BUG("a collective's phase has no finite rate");
}

/* Whole percents: few levels of contention (machine_contention.c). */
static int64_t hbm_percent(const struct layout *layout, const struct plan *plan)
{
    const struct cluster *cluster = layout->cluster;
    if (!(plan->bytes_per_rank > 0))
        return 0;
    const double bytes = plan->bytes_per_rank * cluster->hbm_bytes_per_bus_byte;
    return llround(100 * bytes / (plan_alone_s(layout, plan) * cluster->gpu.hbm_bytes_per_s));
}

static enum status plans_set_up(struct machine *machine, struct score *score)
{
    const struct program *program = score->program;
    const struct machine_setup *setup = machine->setup;
    const struct plan_options options = {setup->ideal.latency, setup->ideal.contention};
    score->plans = ARENA_ARRAY(machine->arena, struct flow_plan, program->collectives.count);
    for (int32_t i = 0; i < program->collectives.count; i++) {
        const struct collective *collective = &program->collectives.items[i];
        const struct group *group = &program->communicators.items[collective->communicator].group;
        struct plan plan = {0};
        const enum status status = plan_build(machine->arena, setup->layout, group, collective->op,
                                              collective->bytes, &options, &plan, machine->diag);
        if (status != STATUS_OK)
            return status;
        struct flow_plan *flow = &score->plans[i];
        flow->base_s = setup->ideal.latency ? 0 : plan.base_s;
        flow->channels = plan.channels;
        if (!setup->ideal.contention)
            flow->hbm_percent = hbm_percent(setup->layout, &plan);
        flow->phase_count = plan.phase_count;
        flow->phases = ARENA_ARRAY(machine->arena, struct flow_phase, plan.phase_count);
        for (int32_t j = 0; j < plan.phase_count; j++)
            phase_set_up(machine, &plan.phases[j], &flow->phases[j]);
    }
    return STATUS_OK;
}

static int64_t kernel_ps(const struct machine *machine, const struct segment *segment,
                         const struct kernel *kernel, double clock_frac, bool *is_memory_bound)
{
    const struct ideal *ideal = &machine->setup->ideal;
    if ((ideal->optimizer && segment->is_optimizer) ||
        (ideal->copies && kernel_is_copy(kernel->kind)))
        return 0;
    const struct gpu *gpu = &machine->setup->layout->cluster->gpu;
    double seconds = gpu_kernel_s(gpu, kernel, clock_frac, is_memory_bound);
    if (!ideal->latency && kernel->kind != KERNEL_GIVEN)
        seconds += gpu->launch_gap_s;
    return ps_from_s(seconds);
}

static void segment_set_up(const struct machine *machine, const struct segment *segment,
                           double clock_frac, struct segment_times *times)
{
    const int32_t count = segment->kernel_count;
    times->kernel_count = count;
    times->sum_ps = ARENA_ARRAY(machine->arena, int64_t, count + 1);
    times->copy_sum_ps = ARENA_ARRAY(machine->arena, int64_t, count + 1);
    times->sum_bytes = ARENA_ARRAY(machine->arena, double, count + 1);
    times->is_memory_bound = ARENA_ARRAY(machine->arena, bool, count);
    if (!machine->setup->ideal.host)
        times->issue_gap_ps =
            ps_from_s(machine->setup->layout->cluster->host_cost_s[segment->host_cost]);
    for (int32_t i = 0; i < count; i++) {
        const struct kernel *kernel = &segment->kernels[i];
        const int64_t alone_ps =
            kernel_ps(machine, segment, kernel, clock_frac, &times->is_memory_bound[i]);
        times->sum_ps[i + 1] = times->sum_ps[i] + alone_ps;
        times->copy_sum_ps[i + 1] =
            times->copy_sum_ps[i] + (kernel_is_copy(kernel->kind) ? alone_ps : 0);
        times->sum_bytes[i + 1] = times->sum_bytes[i] + (alone_ps > 0 ? kernel->bytes : 0);
        const int64_t lead_ps = i * times->issue_gap_ps - times->sum_ps[i];
        times->lead_ps = lead_ps > times->lead_ps ? lead_ps : times->lead_ps;
    }
}

static struct score *score_find(struct machine *machine, const struct program *program)
{
    for (int32_t i = 0; i < machine->score_count; i++) {
        if (machine->scores[i]->program == program)
            return machine->scores[i];
    }
    return NULL;
}

static struct pace *pace_find(struct machine *machine, const struct score *score, double clock_frac)
{
    for (int32_t i = 0; i < machine->pace_count; i++) {
        struct pace *pace = &machine->paces[i];
        if (pace->score == score && pace->clock_frac >= clock_frac &&
            pace->clock_frac <= clock_frac)
            return pace;
    }
    struct pace *pace = &machine->paces[machine->pace_count++];
    pace->score = score;
    pace->clock_frac = clock_frac;
    const struct program *program = score->program;
    pace->segments = ARENA_ARRAY(machine->arena, struct segment_times, program->segments.count);
    for (int32_t i = 0; i < program->segments.count; i++)
        segment_set_up(machine, &program->segments.items[i], clock_frac, &pace->segments[i]);
    return pace;
}

static enum status scores_set_up(struct machine *machine)
{
    const struct machine_setup *setup = machine->setup;
    machine->scores = ARENA_ARRAY(machine->arena, struct score *, setup->program_count);
    for (int32_t i = 0; i < setup->program_count; i++) {
        if (score_find(machine, setup->programs[i]) != NULL)
            continue;
        if (check_program(machine, setup->programs[i]) != STATUS_OK)
            return STATUS_INPUT;
        struct score *score = ARENA_NEW(machine->arena, struct score);
        score->program = setup->programs[i];
        score_lay_out(machine, score);
        const enum status status = plans_set_up(machine, score);
        if (status != STATUS_OK)
            return status;
        machine->scores[machine->score_count++] = score;
    }
    return STATUS_OK;
}

static void lane_set_up(struct class_state *class, int32_t idx, int32_t order)
{
    struct lane *lane = &class->lanes[idx];
    lane->class = class;
    lane->idx = idx;
    event_init(&lane->wake, EVENT_WAKE, lane);
    lane->wake.resource = (uint16_t) class->idx;
    activity_init(&lane->activity, EVENT_STREAM_ACTIVITY, lane, order);
    lane->activity.event.resource = (uint16_t) class->idx;
    lane->activity.demands = lane->demands;
}

/* Returns the next free place in the order of activities. */
static int32_t class_set_up(struct machine *machine, int32_t idx, int32_t order)
{
    const struct machine_setup *setup = machine->setup;
    struct class_state *class = &machine->classes[idx];
    const struct program *program = setup->programs[setup->program_count == 1 ? 0 : idx];
    class->rank_class = &setup->layout->classes[idx];
    class->idx = idx;
    class->score = score_find(machine, program);
    class->pace = pace_find(machine, class->score, class->rank_class->clock_frac);
    class->passed_step = ARENA_ARRAY(machine->arena, int32_t, class->score->site_count);
    for (int32_t i = 0; i < class->score->site_count; i++)
        class->passed_step[i] = STEP_NEVER;
    event_init(&class->host, EVENT_HOST, class);
    event_init(&class->memory, EVENT_MEMORY, class);
    class->host.resource = class->memory.resource = (uint16_t)idx;
    class->lane_count = program->streams.count;
    class->lanes = ARENA_ARRAY(machine->arena, struct lane, class->lane_count);
    for (int32_t i = 0; i < class->lane_count; i++)
        lane_set_up(class, i, order++);
    return order;
}

static void comms_set_up(struct machine *machine, int32_t order)
{
    machine->comms = ARENA_ARRAY(machine->arena, struct comm_state, machine->comm_count);
    for (int32_t i = 0; i < machine->comm_count; i++) {
        struct comm_state *comm = &machine->comms[i];
        comm->idx = i;
        comm->members = ARENA_ARRAY(machine->arena, struct lane *, machine->class_count);
        event_init(&comm->delay, EVENT_COMM_DELAY, comm);
        activity_init(&comm->activity, EVENT_COMM_ACTIVITY, comm, order + i);
        comm->delay.resource = comm->activity.event.resource = (uint16_t)i;
    }
}

enum status machine_set_up(struct machine *machine)
{
    const struct machine_setup *setup = machine->setup;
    const struct layout *layout = setup->layout;
    struct arena *arena = machine->arena;
    BUG_IF(setup->program_count != 1 && setup->program_count != layout->class_count);
    machine->class_count = layout->class_count;
    machine->comm_count = setup->programs[0]->communicators.count;
    enum status status = machine_check_length(arena, setup, machine->diag);
    if (status == STATUS_OK)
        status = scores_set_up(machine);
    if (status != STATUS_OK)
        return status;

    machine->solver = maxmin_new(arena);
    for (int32_t i = 0; i < layout->resource_count; i++)
        (void)maxmin_add_resource(machine->solver, layout->resources[i].capacity);
    machine->classes = ARENA_ARRAY(arena, struct class_state, machine->class_count);
    machine->paces = ARENA_ARRAY(arena, struct pace, machine->score_count * machine->class_count);
    int32_t order = 0;
    for (int32_t i = 0; i < machine->class_count; i++)
        order = class_set_up(machine, i, order);
    comms_set_up(machine, order);
    const int32_t activities = order + machine->comm_count;
    machine->ready = ARENA_ARRAY(arena, struct lane *, order);
    machine->starting = ARENA_ARRAY(arena, struct activity *, activities);
    machine->by_solver_id = ARENA_ARRAY(arena, struct activity *, activities);
    machine->hold_list = ARENA_ARRAY(arena, struct class_state *, machine->class_count);
    machine->memory_list = ARENA_ARRAY(arena, struct class_state *, machine->class_count);
    for (int32_t i = 0; i < setup->observer_count; i++) {
        if (setup->observers[i].resource_used != NULL && machine->uses == NULL)
            machine->uses = ARENA_ARRAY(arena, struct resource_use, layout->resource_count);
        machine->is_memory_watched |= setup->observers[i].memory_changed != NULL;
    }
    return STATUS_OK;
}
