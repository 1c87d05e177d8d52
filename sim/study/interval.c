/* study/interval.c: see interval.h. */
#include "study/interval.h"

#include <math.h>

#include "base/strbuf.h"

static const double normal_p95 = 1.6448536269514722;

/* Seconds of a microbatch's kernels, one after another. */
struct kernel_times {
    const struct gpu *gpu;
    double gemm_s, gemm_squares; /* and the sum of the squares of each shape's time */
    double attention_s;
    double memory_s[KERNEL_KIND_COUNT];
};

static void add_list(struct kernel_times *times, const struct kernel_list *list, double count)
{
    for (int32_t i = 0; i < list->count; i++) {
        const struct kernel *kernel = &list->items[i];
        if (kernel->kind == KERNEL_GIVEN)
            continue;
        const double seconds = count * gpu_kernel_s(times->gpu, kernel, 1, NULL);
        if (kernel->kind == KERNEL_GEMM) {
            times->gemm_s += seconds;
            times->gemm_squares += seconds * seconds;
        } else if (kernel->kind == KERNEL_ATTENTION) {
            times->attention_s += seconds;
        } else {
            times->memory_s[kernel->kind] += seconds;
        }
    }
}

static void add_model(struct kernel_times *times, const struct model *model)
{
    for (int32_t k = 0; k < model->kind_count; k++) {
        const struct module_kind *kind = &model->kinds[k];
        double count = 0;
        for (int32_t i = 0; i < model->module_count; i++)
            count += model->modules[i].kind_idx == k;
        add_list(times, &kind->forward, count);
        add_list(times, &kind->backward, count);
        if (kind->is_recomputed)
            add_list(times, &kind->recompute, count);
    }
}

static double memory_bound_s(const struct kernel_times *times)
{
    double sum = 0;
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        sum += times->memory_s[kind];
    return sum;
}

/* What the hold-out says of the GPU; of parts that nobody measured, what their basis does. */
static double part_spread(const struct spreads *spreads, const struct gpu *gpu,
                          enum spread_part part, enum gpu_part basis)
{
    const double measured = spread_find(spreads, part, gpu->name);
    const double extra =
        gpu->basis[basis] == BASIS_MEASURED ? 0 : spreads->kernels[gpu->basis[basis]];
    return isnan(measured) ? extra : hypot(measured, extra);
}

/* Of the kernels' time. */
static void compute_spread(const struct spreads *spreads, const struct gpu *gpu,
                           const struct kernel_times *times, double *compute, double *clocked)
{
    const double total = times->gemm_s + times->attention_s + memory_bound_s(times);
    const double gemm = part_spread(spreads, gpu, SPREAD_GEMM, GPU_PART_GEMM);
    const double attention = part_spread(spreads, gpu, SPREAD_ATTENTION, GPU_PART_ATTENTION);
    const double memory = part_spread(spreads, gpu, SPREAD_MEMORY, GPU_PART_MEMORY);
    *compute = *clocked = 0;
    if (total <= 0)
        return;
    double squares = times->gemm_squares * gemm * gemm;
    squares += times->attention_s * times->attention_s * attention * attention;
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        squares += times->memory_s[kind] * times->memory_s[kind] * memory * memory;
    *compute = sqrt(squares) / total;
    *clocked = (times->gemm_s + times->attention_s) / total;
}

struct interval interval_of(const struct spreads *spreads, const struct experiment *experiment,
                            const struct outcome *outcome, bool is_network_assumed)
{
    struct interval interval = {.low_s = (double)NAN, .high_s = (double)NAN};
    struct kernel_times times = {.gpu = &experiment->cluster.gpu};
    const double step_s = outcome->step_time_s;
    double compute = 0, clocked = 0;
    if (!(step_s > 0) || !spreads->is_known)
        return interval;
    add_model(&times, experiment->model);
    compute_spread(spreads, times.gpu, &times, &compute, &clocked);

    const bool is_network = outcome_is_network_bound(outcome);
    const double compute_share =
        (is_network ? fmax(step_s - outcome->comm_s, 0) : outcome->compute_s) / step_s;
    const double comm_share = (is_network ? outcome->comm_s : outcome->exposed_comm_s) / step_s;
    const double comm =
        spread_find(spreads, outcome->n_nodes > 1 ? SPREAD_HOSTS : SPREAD_ONE_HOST, NULL);
    const double unstated =
        is_network_assumed && outcome->n_nodes > 1 ? spreads->network_unstated : 0;

    interval.parts.repeat = spreads->repeat;
    interval.parts.compute = compute_share * compute;
    interval.parts.clock =
        compute_share * clocked * spreads->clock[times.gpu->basis[GPU_PART_CLOCK]];
    interval.parts.comm = comm_share * hypot(isnan(comm) ? 0 : comm, unstated);
    interval.parts.host = outcome->idle_s / step_s * spreads->host;
    interval.spread = hypot(hypot(hypot(interval.parts.repeat, interval.parts.compute),
                                  hypot(interval.parts.clock, interval.parts.comm)),
                            interval.parts.host);
    interval.low_s = step_s * exp(-normal_p95 * interval.spread);
    interval.high_s = step_s * exp(normal_p95 * interval.spread);
    return interval;
}
