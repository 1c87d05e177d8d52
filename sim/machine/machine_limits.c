/*
 * machine/machine_limits.c: refuses what would run the clock over its end.
 *
 * The clock counts picoseconds in 64 bits: 9.2 million seconds. Sharing slows an activity by at
 * most 1 / MAXMIN_MIN_FRAC = 100, so whatever takes MACHINE_MAX_S = 90,000 s (25 hours) with
 * everything alone and one thing after the other stays below it. Sums are in double, so that they
 * cannot overflow.
 */
#include <math.h>

#include "machine/machine_private.h"

#define MACHINE_MAX_S 90000.0

static double segment_s(const struct cluster *cluster, const struct segment *segment,
                        const struct rank_class *class)
{
    double seconds = segment->kernel_count * cluster->host_cost_s[segment->host_cost];
    if (segment->is_compiled)
        seconds += cluster->host_cost_s[HOST_COMPILED_REGION];
    for (int32_t i = 0; i < segment->kernel_count; i++)
        seconds += gpu_kernel_s(class->gpu, &segment->kernels[i], class->clock_frac, NULL) +
                   class->gpu->launch_gap_s;
    return seconds;
}

/* On the slowest class; classes of one kind of GPU and clock are looked at once. */
static double slowest_segment_s(const struct layout *layout, const struct segment *segment)
{
    double slowest_s = 0;
    for (int32_t i = 0; i < layout->class_count; i++) {
        const struct rank_class *class = &layout->classes[i];
        const struct rank_class *before = i > 0 ? &layout->classes[i - 1] : NULL;
        const bool is_known =
            before != NULL && before->gpu == class->gpu && before->clock_frac <= class->clock_frac;
        if (!is_known)
            slowest_s = fmax(slowest_s, segment_s(layout->cluster, segment, class));
    }
    return slowest_s;
}

/* Seconds of each segment and collective of a program, everything alone. */
struct alone {
    double *segments, *collectives, *transfers;
};

static struct alone measure_alone(const struct machine *machine, const struct score *score)
{
    const struct layout *layout = machine->setup->layout;
    const struct program *program = score->program;
    struct alone alone = {
        .segments = ARENA_ARRAY(machine->arena, double, program->segments.count),
        .collectives = ARENA_ARRAY(machine->arena, double, program->collectives.count),
        .transfers = ARENA_ARRAY(machine->arena, double, program->transfers.count)};
    for (int32_t i = 0; i < program->segments.count; i++)
        alone.segments[i] = slowest_segment_s(layout, &program->segments.items[i]);
    const double host_s = layout->cluster->host_cost_s[HOST_COLLECTIVE];
    for (int32_t i = 0; i < machine->comm_count; i++) {
        const struct comm_state *comm = &machine->comms[i];
        const struct flow_plan *plans = comm->plans[score->idx];
        const int32_t count = comm->is_pair ? program->transfers.count : program->collectives.count;
        double *seconds = comm->is_pair ? alone.transfers : alone.collectives;
        for (int32_t j = 0; plans != NULL && j < count; j++)
            seconds[j] = fmax(seconds[j], plans[j].alone_s + host_s);
    }
    return alone;
}

/* Bytes/s; a cluster that does not say is refused elsewhere. */
static double slowest_copy(const struct layout *layout, enum copy_kind kind)
{
    double slowest = layout->cluster->gpu.hbm_bytes_per_s / 2;
    for (int32_t i = 0; i < layout->class_count; i++) {
        const double rate = copy_rate(layout, &layout->classes[i], kind);
        if (rate > 0)
            slowest = fmin(slowest, rate);
    }
    return slowest;
}

static double ops_s(const struct machine_setup *setup, const struct op_list *ops,
                    const struct alone *alone)
{
    const struct cluster *cluster = setup->layout->cluster;
    double seconds = 0;
    for (int32_t i = 0; i < ops->count; i++) {
        const struct op *op = &ops->items[i];
        if (op->kind == OP_SEGMENT)
            seconds += alone->segments[op->index];
        else if (op->kind == OP_COLLECTIVE)
            seconds += alone->collectives[op->index];
        else if (op->kind == OP_SEND || op->kind == OP_RECV)
            seconds += alone->transfers[op->index];
        else if (op->kind == OP_HOST_WORK)
            seconds += op->count * cluster->host_cost_s[op->index];
        else if (op->kind == OP_HOST_COMPUTE)
            seconds += host_compute_s(setup->layout, op);
        else if (op->kind == OP_LOAD)
            seconds += setup->batch_s;
        else if (op->kind == OP_COPY)
            seconds += (double)op->bytes / slowest_copy(setup->layout, (enum copy_kind)op->index);
        else
            seconds += cluster->host_cost_s[HOST_STREAM_OP];
    }
    return seconds;
}

enum status machine_check_length(const struct machine *machine)
{
    const struct machine_setup *setup = machine->setup;
    for (int32_t i = 0; i < machine->score_count; i++) {
        const struct program *program = machine->scores[i]->program;
        const struct alone alone = measure_alone(machine, machine->scores[i]);
        const double step_s = ops_s(setup, &program->step, &alone);
        const double seconds = (ops_s(setup, &program->prologue, &alone) + setup->steps * step_s) *
                               jitter_limit(setup->jitter);
        if (seconds <= MACHINE_MAX_S)
            continue;
        char hint[128];
        snprintf(hint, sizeof(hint), "at most %.0f s over all %d steps; check units and rates",
                 MACHINE_MAX_S, (int)setup->steps);
        diag_add(machine->diag, DIAG_ERROR, NO_PLACE, hint,
                 "a step holds %.3g s of work one after the other: too long to simulate", step_s);
        return STATUS_INPUT;
    }
    return STATUS_OK;
}
