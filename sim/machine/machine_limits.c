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

static double slowest_clock(const struct layout *layout)
{
    double slowest = 1;
    for (int32_t i = 0; i < layout->class_count; i++)
        slowest = fmin(slowest, layout->classes[i].clock_frac);
    return slowest;
}

static double segment_s(const struct cluster *cluster, const struct segment *segment,
                        double clock_frac)
{
    double seconds = segment->kernel_count * cluster->host_cost_s[segment->host_cost];
    if (segment->is_compiled)
        seconds += cluster->host_cost_s[HOST_COMPILED_REGION];
    for (int32_t i = 0; i < segment->kernel_count; i++)
        seconds += gpu_kernel_s(&cluster->gpu, &segment->kernels[i], clock_frac, NULL) +
                   cluster->gpu.launch_gap_s;
    return seconds;
}

/* Seconds of each segment and collective of a program, everything alone. */
struct alone {
    double *segments, *collectives;
};

static enum status measure_alone(struct arena *arena, const struct machine_setup *setup,
                                 const struct program *program, struct alone *alone,
                                 struct diag *diag)
{
    const struct layout *layout = setup->layout;
    const struct plan_options options = {setup->ideal.latency, setup->ideal.contention};
    const double clock_frac = slowest_clock(layout);
    alone->segments = ARENA_ARRAY(arena, double, program->segments.count);
    alone->collectives = ARENA_ARRAY(arena, double, program->collectives.count);
    for (int32_t i = 0; i < program->segments.count; i++)
        alone->segments[i] = segment_s(layout->cluster, &program->segments.items[i], clock_frac);
    for (int32_t i = 0; i < program->collectives.count; i++) {
        const struct collective *collective = &program->collectives.items[i];
        struct plan plan = {0};
        const enum status status =
            plan_build(arena, layout, &program->communicators.items[collective->communicator].group,
                       collective->op, collective->bytes, &options, &plan, diag);
        if (status != STATUS_OK)
            return status;
        alone->collectives[i] =
            plan_alone_s(layout, &plan) + layout->cluster->host_cost_s[HOST_COLLECTIVE];
    }
    return STATUS_OK;
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
        else if (op->kind == OP_HOST_WORK)
            seconds += op->count * cluster->host_cost_s[op->index];
        else if (op->kind == OP_COPY)
            seconds += (double)op->bytes / cluster->gpu.hbm_bytes_per_s;
        else
            seconds += cluster->host_cost_s[HOST_STREAM_OP];
    }
    return seconds;
}

enum status machine_check_length(struct arena *arena, const struct machine_setup *setup,
                                 struct diag *diag)
{
    for (int32_t i = 0; i < setup->program_count; i++) {
        const struct program *program = setup->programs[i];
        struct alone alone = {0};
        const enum status status = measure_alone(arena, setup, program, &alone, diag);
        if (status != STATUS_OK)
            return status;
        const double step_s = ops_s(setup, &program->step, &alone);
        const double seconds = ops_s(setup, &program->prologue, &alone) + setup->steps * step_s;
        if (seconds <= MACHINE_MAX_S)
            continue;
        char hint[128];
        snprintf(hint, sizeof(hint), "at most %.0f s over all %d steps; check units and rates",
                 MACHINE_MAX_S, (int)setup->steps);
        diag_add(diag, DIAG_ERROR, NO_PLACE, hint,
                 "a step holds %.3g s of work one after the other: too long to simulate", step_s);
        return STATUS_INPUT;
    }
    return STATUS_OK;
}
