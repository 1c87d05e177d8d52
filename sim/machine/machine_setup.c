/*
 * machine/machine_setup.c: before playing: programs checked and laid out, kernel times, plans.
 *
 * Times depend on (program, GPU, its clock) only, so a cluster of a thousand classes with one
 * slow GPU has two sets. A kernel takes gpu_kernel_s plus the launch gap behind it (a given
 * duration is taken as it is); integer sums make a segment's time the same however it is cut into
 * parts.
 */
#include <math.h>

#include "base/units.h"
#include "machine/machine_private.h"

static enum status check_ops(const struct machine *machine, const struct op_list *ops)
{
    const struct cluster *cluster = machine->setup->layout->cluster;
    const char *missing = host_compute_missing(&cluster->compute);
    for (int32_t i = 0; missing != NULL && i < ops->count; i++) {
        if (ops->items[i].kind != OP_HOST_COMPUTE)
            continue;
        diag_add(machine->diag, DIAG_ERROR, cluster->place, "topologies/cpus/ has examples",
                 "computing on the host: cluster '%s' lacks 'host.%s'", cluster->name, missing);
        return STATUS_INPUT;
    }
    return STATUS_OK;
}

static enum status check_program(const struct machine *machine, const struct program *program)
{
    BUG_IF(program->streams.count > MACHINE_MAX_STREAMS);
    BUG_IF(program->communicators.count != machine->communicator_count);
    if (check_ops(machine, &program->prologue) != STATUS_OK)
        return STATUS_INPUT;
    return check_ops(machine, &program->step);
}

static int64_t kernel_ps(const struct machine *machine, const struct segment *segment,
                         const struct kernel *kernel, const struct rank_class *class,
                         bool *is_memory_bound)
{
    const struct ideal *ideal = &machine->setup->ideal;
    if ((ideal->optimizer && segment->is_optimizer) ||
        (ideal->copies && kernel_is_copy(kernel->kind)))
        return 0;
    const struct gpu *gpu = class->gpu;
    double seconds = gpu_kernel_s(gpu, kernel, class->clock_frac, is_memory_bound);
    if (!ideal->latency && kernel->kind != KERNEL_GIVEN)
        seconds += gpu->launch_gap_s;
    return ps_from_s(seconds);
}

static void find_full_kernels(const struct machine *machine, const struct segment *segment,
                              struct segment_times *times)
{
    int32_t *next = NULL;
    for (int32_t i = segment->kernel_count - 1; i >= 0; i--) {
        const struct kernel *kernel = &segment->kernels[i];
        if (kernel->needs_all_sms && next == NULL) {
            next = ARENA_ARRAY(machine->arena, int32_t, segment->kernel_count + 1);
            for (int32_t k = 0; k <= segment->kernel_count; k++)
                next[k] = segment->kernel_count;
        }
        if (next != NULL)
            next[i] = kernel->needs_all_sms ? i : next[i + 1];
        if (kernel->needs_all_sms)
            times->sm_margin = kernel->sm_margin;
    }
    times->next_full = next;
}

static void segment_set_up(const struct machine *machine, const struct segment *segment,
                           const struct rank_class *class, struct segment_times *times)
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
    find_full_kernels(machine, segment, times);
    for (int32_t i = 0; i < count; i++) {
        const struct kernel *kernel = &segment->kernels[i];
        const int64_t alone_ps =
            kernel_ps(machine, segment, kernel, class, &times->is_memory_bound[i]);
        times->sum_ps[i + 1] = times->sum_ps[i] + alone_ps;
        times->copy_sum_ps[i + 1] =
            times->copy_sum_ps[i] + (kernel_is_copy(kernel->kind) ? alone_ps : 0);
        times->sum_bytes[i + 1] = times->sum_bytes[i] + (alone_ps > 0 ? kernel->bytes : 0);
        const int64_t lead_ps = i * times->issue_gap_ps - times->sum_ps[i];
        times->lead_ps = lead_ps > times->lead_ps ? lead_ps : times->lead_ps;
    }
}

struct score *score_find(const struct machine *machine, const struct program *program)
{
    for (int32_t i = 0; i < machine->score_count; i++) {
        if (machine->scores[i]->program == program)
            return machine->scores[i];
    }
    return NULL;
}

static struct pace *pace_find(struct machine *machine, const struct score *score,
                              const struct rank_class *class)
{
    for (int32_t i = 0; i < machine->pace_count; i++) {
        struct pace *pace = &machine->paces[i];
        if (pace->score == score && pace->gpu == class->gpu &&
            pace->clock_frac >= class->clock_frac && pace->clock_frac <= class->clock_frac)
            return pace;
    }
    struct pace *pace = &machine->paces[machine->pace_count++];
    pace->score = score;
    pace->gpu = class->gpu;
    pace->clock_frac = class->clock_frac;
    const struct program *program = score->program;
    pace->segments = ARENA_ARRAY(machine->arena, struct segment_times, program->segments.count);
    for (int32_t i = 0; i < program->segments.count; i++)
        segment_set_up(machine, &program->segments.items[i], class, &pace->segments[i]);
    return pace;
}

/* What only few programs hold. */
static void note_ops(struct score *score, const struct op_list *ops)
{
    for (int32_t i = 0; i < ops->count; i++) {
        const struct op *op = &ops->items[i];
        if (op->kind == OP_COPY)
            score->has_copies[op->index] = true;
        else if (op->kind == OP_SEND)
            score->has_sends[transfer_channel(&score->program->transfers.items[op->index])] = true;
    }
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
        machine->scores[machine->score_count] = score;
        score->idx = machine->score_count++;
        if (score_recall(machine, setup->programs[i], score))
            continue;
        score->program = setup->programs[i];
        score->has_sends = ARENA_ARRAY(machine->arena, bool, 2 * machine->communicator_count);
        note_ops(score, &score->program->prologue);
        note_ops(score, &score->program->step);
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
    class->seats = &machine->seats[(ptrdiff_t)idx * machine->communicator_count];
    class->pace = pace_find(machine, class->score, class->rank_class);
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

/* The lists that an instant fills, none longer than what it lists. */
static void lists_set_up(struct machine *machine, int32_t lanes, int32_t activities)
{
    struct arena *arena = machine->arena;
    machine->ready = ARENA_ARRAY(arena, struct lane *, lanes);
    machine->starting = ARENA_ARRAY(arena, struct activity *, activities);
    machine->by_solver_id = ARENA_ARRAY(arena, struct activity *, activities);
    machine->level_list = ARENA_ARRAY(arena, struct class_state *, machine->class_count);
    machine->memory_list = ARENA_ARRAY(arena, struct class_state *, machine->class_count);
    machine->computing_list = ARENA_ARRAY(arena, struct comm_state *, machine->comm_count);
}

static void observers_set_up(struct machine *machine)
{
    const struct machine_setup *setup = machine->setup;
    for (int32_t i = 0; i < setup->observer_count; i++) {
        if (setup->observers[i].resource_used != NULL && machine->uses == NULL)
            machine->uses =
                ARENA_ARRAY(machine->arena, struct resource_use, setup->layout->resource_count);
        machine->is_memory_watched |= setup->observers[i].memory_changed != NULL ||
                                      setup->observers[i].memory_retried != NULL;
        machine->are_holds_watched |= setup->observers[i].stream_held != NULL;
    }
}

enum status machine_set_up(struct machine *machine)
{
    const struct machine_setup *setup = machine->setup;
    const struct layout *layout = setup->layout;
    struct arena *arena = machine->arena;
    BUG_IF(setup->program_count != 1 && setup->program_count != layout->class_count);
    machine->class_count = layout->class_count;
    machine->communicator_count = setup->programs[0]->communicators.count;
    for (int32_t i = 0; i < setup->observer_count; i++)
        machine->is_host_watched |=
            setup->observers[i].host_issues != NULL || setup->observers[i].host_enters != NULL;
    enum status status = scores_set_up(machine);
    if (status == STATUS_OK)
        status = comms_set_up(machine);
    if (status == STATUS_OK)
        status = machine_check_length(machine);
    if (status != STATUS_OK)
        return status;

    for (int32_t i = 0; i < machine->score_count; i++)
        if (!machine->scores[i]->is_laid_out)
            score_lay_out(machine, machine->scores[i]);
    machine->solver = maxmin_new(arena);
    for (int32_t i = 0; i < layout->resource_count; i++)
        (void)maxmin_add_resource(machine->solver, layout->resources[i].capacity);
    machine->classes = ARENA_ARRAY(arena, struct class_state, machine->class_count);
    machine->paces = ARENA_ARRAY(arena, struct pace, machine->score_count * machine->class_count);
    int32_t lanes = 0;
    for (int32_t i = 0; i < machine->class_count; i++)
        lanes = class_set_up(machine, i, lanes);
    jitter_set_up(machine);
    lists_set_up(machine, lanes, comms_order(machine, lanes));
    observers_set_up(machine);
    for (int32_t i = 0; i < machine->class_count; i++)
        class_memory_set_up(machine, &machine->classes[i]);
    return copies_set_up(machine);
}
