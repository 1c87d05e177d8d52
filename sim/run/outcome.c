/* run/outcome.c: the tables of what a run reports; see outcome.h. */
#include "run/outcome.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"

#define FIELD(name) offsetof(struct outcome, name)
#define TEXT(field, explains)                                                                      \
    {                                                                                              \
        .name = #field, .unit = "text", .kind = METRIC_TEXT, .offset = FIELD(field),               \
        .help = (explains)                                                                         \
    }
#define INT(field, in, explains)                                                                   \
    {                                                                                              \
        .name = #field, .unit = (in), .kind = METRIC_INT, .offset = FIELD(field),                  \
        .help = (explains)                                                                         \
    }
#define REAL(field, in, explains)                                                                  \
    {                                                                                              \
        .name = #field, .unit = (in), .kind = METRIC_DOUBLE, .offset = FIELD(field),               \
        .help = (explains)                                                                         \
    }
#define REAL_OR_NULL(field, in, explains)                                                          \
    {                                                                                              \
        .name = #field, .unit = (in), .kind = METRIC_DOUBLE, .is_optional = true,                  \
        .offset = FIELD(field), .help = (explains)                                                 \
    }

const struct metric outcome_metrics[] = {
    TEXT(model, "network architecture"),
    TEXT(cluster, "cluster the step was simulated on"),
    INT(n_gpus, "count", "GPUs of the job"),
    REAL(step_time_s, "s", "end of one optimizer step to the end of the next, slowest rank class"),
    REAL(tokens_per_s, "tokens/s", "tokens of the whole job per second"),
    REAL(tokens_per_s_per_gpu, "tokens/s", "tokens per second and GPU"),
    REAL_OR_NULL(mfu, "1", "model FLOP/s over dense peak, by mfu_convention"),
    REAL_OR_NULL(hfu, "1", "the same with recomputed FLOPs counted"),
    REAL_OR_NULL(tflops_per_gpu, "TFLOP/s", "model FLOPs per second and GPU, 1e12"),
    REAL(compute_s, "s", "compute kernels run (union of intervals)"),
    REAL(comm_s, "s", "collective kernels run, waiting included (union of intervals)"),
    REAL(comm_wait_s, "s", "part of comm_s spent waiting for other ranks"),
    REAL(copy_s, "s", "part of compute_s that is FSDP's own copies and casts"),
    REAL(exposed_comm_s, "s", "communication runs and no compute does"),
    REAL(idle_s, "s", "neither compute nor communication runs"),
    REAL(memcpy_s, "s", "part of idle_s in which only host-device copies run"),
    REAL(exposed_comm_fraction, "1", "exposed_comm_s / step_time_s"),
    REAL(overlap_fraction, "1", "1 - exposed_comm_s / comm_s; 0 without communication"),
    INT(peak_active_bytes, "bytes", "most that the program holds allocated"),
    INT(peak_reserved_bytes, "bytes", "most that the caching allocator holds of the driver"),
    INT(peak_device_bytes, "bytes", "reserved, context, communicators and workspaces"),
    INT(memory_capacity_bytes, "bytes", "memory of one GPU as the driver reports it"),
    {.name = "fits",
     .unit = "bool",
     .kind = METRIC_BOOL,
     .offset = FIELD(fits),
     .help = "the device peak is within the capacity, and peak_host_bytes within the host's"},
    REAL(comm_bytes_per_gpu, "bytes", "sent by each GPU in a step"),
    TEXT(bottleneck, "what bounds the step: compute, a link, host, checkpoint, ..."),
    INT(events, "count", "events played by the simulator"),
    TEXT(config_name, "name of the configuration"),
    TEXT(policy, "how the training state is sharded: fsdp2, ..."),
    TEXT(gpu, "kind of GPU"),
    INT(n_nodes, "count", "hosts of the job"),
    INT(gpus_per_node, "count", "GPUs used on each host"),
    INT(parameters, "count", "parameters of the model"),
    INT(seq_len, "tokens", "tokens of a sequence"),
    INT(micro_batch, "count", "sequences per GPU and microbatch"),
    INT(grad_accum, "count", "microbatches of a step"),
    INT(tokens_per_step, "tokens", "tokens of the whole job in a step"),
    TEXT(mfu_convention, "how model FLOPs are counted for mfu"),
    REAL(forward_s, "s", "forward phase"),
    REAL(backward_s, "s", "backward phase"),
    REAL(optimizer_s, "s", "optimizer phase"),
    INT(first_step_peak_active_bytes, "bytes", "peak_active_bytes of the very first step"),
    INT(peak_allocated_bytes, "bytes",
        "as max_memory_allocated: what is freed counts no longer, though a stream may still use "
        "it"),
    INT(first_step_peak_reserved_bytes, "bytes", "peak_reserved_bytes of the very first step"),
    REAL(alloc_retries, "1",
         "times a step that the driver had no memory left: cached segments are given back, and the "
         "request is tried again"),
    REAL(alloc_retry_s, "s", "of the host in alloc_retries, waiting for the GPU included"),
    INT(memory_over_bytes, "bytes", "by how much the device peak exceeds the capacity; 0: it fits"),
    INT(peak_host_bytes, "bytes",
        "training states that offload keeps, and checkpoints that are staged, in the memory of one "
        "host"),
    INT(host_memory_bytes, "bytes", "memory of one host; 0: the cluster does not say"),
    TEXT(peak_at, "what was allocated when the active peak was reached"),
    TEXT(peak_phase, "phase of the step in which that is"),
    TEXT(peak_unit, "FSDP unit whose operations those are"),
    TEXT(peak_operation, "kernels or collective that the allocation is for"),
    REAL(peak_time_s, "s", "when, after the host began the step"),
    REAL(data_wait_s, "s", "part of idle_s: the host waits for a batch, nothing at all runs"),
    REAL(checkpoint_s, "s", "part of idle_s: training stands still to save, over the interval"),
    REAL(checkpoint_bytes, "bytes", "of a checkpoint, all hosts; 0: none is saved"),
    REAL(checkpoint_block_s, "s", "training stands still at each save"),
    REAL(checkpoint_write_s, "s", "writing a checkpoint takes"),
    REAL_OR_NULL(tokens_per_day, "tokens/day", "86,400 x tokens_per_s x goodput (1: no failures)"),
    REAL_OR_NULL(goodput, "1", "share of the time that failures leave for steps"),
    REAL_OR_NULL(cost_per_gpu_hour, "currency/h", "cost.gpu_hour"),
    REAL_OR_NULL(cost_per_billion_tokens, "currency", "of 1e9 tokens, at cost_per_gpu_hour"),
    REAL_OR_NULL(budget_tokens, "tokens", "cost.tokens"),
    REAL_OR_NULL(budget_days, "days", "wall clock for budget_tokens"),
    REAL_OR_NULL(budget_gpu_hours, "GPU h", "of all GPUs for budget_tokens"),
    REAL_OR_NULL(budget_cost, "currency", "budget_gpu_hours x cost_per_gpu_hour"),
    TEXT(currency, "of the costs"),
    INT(n_samples, "count", "runs with other numbers drawn each; 0: one run as configured"),
    {.name = NULL},
};

#undef FIELD
#define FIELD(name) offsetof(struct outcome_unit, name)
const struct metric outcome_unit_fields[] = {
    TEXT(name, "FSDP unit"),
    INT(parameters, "count", "parameters of the unit"),
    REAL(forward_s, "s", "its forward kernels, per step"),
    REAL(backward_s, "s", "its backward kernels, per step"),
    REAL(all_gather_s, "s", "its all-gathers, per step"),
    REAL(reduce_scatter_s, "s", "its reduce-scatters, per step"),
    REAL(exposed_s, "s", "its communication with no compute running, per step"),
    {.name = NULL},
};

#undef FIELD
#define FIELD(name) offsetof(struct outcome_collective, name)
const struct metric outcome_collective_fields[] = {
    TEXT(op, "operation"),
    TEXT(communicator, "communicator"),
    INT(count, "count", "how often in a step"),
    REAL(bytes, "bytes", "size of each, as nccl-tests counts it"),
    REAL(alone_s, "s", "time of each on an otherwise idle machine"),
    REAL(busbw_bytes_per_s, "bytes/s", "bus bandwidth alone, as nccl-tests counts it"),
    {.name = NULL},
};

#undef FIELD
#define FIELD(name) offsetof(struct outcome_link, name)
const struct metric outcome_link_fields[] = {
    TEXT(name, "class of equal links, one direction"),
    REAL(capacity_bytes_per_s, "bytes/s", "capacity of one"),
    INT(instances, "count", "how many there are"),
    REAL(bytes, "bytes", "through one, per step"),
    REAL(busy_frac, "1", "share of the step in which it was used"),
    REAL(utilisation, "1", "bytes / (capacity x step)"),
    {.name = NULL},
};

#undef FIELD
#define FIELD(name) offsetof(struct outcome_memory_unit, name)
const struct metric outcome_memory_unit_fields[] = {
    TEXT(name, "FSDP unit; outside units: loss, optimizer's temporaries, workspace"),
    INT(bytes, "bytes", "what it holds at the instant of the active peak"),
    {.name = NULL},
};

#undef FIELD
#define FIELD(name) offsetof(struct outcome_interval, name)
const struct metric outcome_interval_fields[] = {
    TEXT(metric, "which number of a run"),
    TEXT(unit, "its unit, and that of what follows"),
    REAL(p05, "unit", "5 % of the samples lie below"),
    REAL(p50, "unit", "median"),
    REAL(p95, "unit", "5 % of the samples lie above"),
    {.name = NULL},
};

const struct outcome_interval *outcome_interval(const struct outcome *outcome, const char *metric)
{
    for (int32_t i = 0; i < outcome->interval_count; i++) {
        if (text_equal(outcome->intervals[i].metric, metric))
            return &outcome->intervals[i];
    }
    return NULL;
}

const struct metric *outcome_metric(const char *name)
{
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++) {
        if (text_equal(metric->name, name))
            return metric;
    }
    return NULL;
}

bool outcome_number(const struct outcome *outcome, const struct metric *metric, double *value)
{
    switch (metric->kind) {
    case METRIC_DOUBLE:
        *value = metric_double(outcome, metric);
        return !isnan(*value);
    case METRIC_INT:
        *value = (double)metric_int(outcome, metric);
        return true;
    case METRIC_BOOL:
        *value = metric_bool(outcome, metric) ? 1.0 : 0.0;
        return true;
    case METRIC_TEXT:
        break;
    }
    return false;
}

bool outcome_is_network_bound(const struct outcome *outcome)
{
    const double compute_s = outcome->step_time_s - outcome->comm_s - outcome->idle_s;
    return outcome->exposed_comm_s > compute_s && outcome->exposed_comm_s >= outcome->idle_s;
}

/* ---- units -------------------------------------------------------------------------------- */

/* Two units whose times differ by less than this are the same to a reader of four digits. */
static const double same_time_frac = 1e-4;

static const char digits[] = "0123456789";

/* Where the number begins in which two names differ; all before it is the same. */
static size_t number_place(const char *a, const char *b)
{
    size_t place = 0;
    while (a[place] != '\0' && a[place] == b[place])
        place++;
    while (place > 0 && strchr(digits, a[place - 1]) != NULL)
        place--;
    return place;
}

static uint64_t number_at(const char *text)
{
    uint64_t number = 0;
    for (size_t i = strspn(text, digits); i > 0; i--)
        number = number * 10 + (uint64_t)(*text++ - '0');
    return number;
}

bool outcome_names_are_alike(const char *a, const char *b)
{
    const size_t place = number_place(a, b);
    const size_t a_digits = strspn(a + place, digits), b_digits = strspn(b + place, digits);
    return a_digits > 0 && b_digits > 0 && text_equal(a + place + a_digits, b + place + b_digits);
}

bool outcome_name_is_next(const char *name, const char *next)
{
    const size_t place = number_place(name, next);
    return outcome_names_are_alike(name, next) &&
           number_at(next + place) == number_at(name + place) + 1;
}

bool outcome_units_are_alike(const struct outcome_unit *a, const struct outcome_unit *b)
{
    const double least_s = same_time_frac * (a->forward_s + a->backward_s + a->exposed_s);
    return a->parameters == b->parameters && outcome_names_are_alike(a->name, b->name) &&
           fabs(a->forward_s - b->forward_s) <= least_s &&
           fabs(a->backward_s - b->backward_s) <= least_s &&
           fabs(a->all_gather_s - b->all_gather_s) <= least_s &&
           fabs(a->reduce_scatter_s - b->reduce_scatter_s) <= least_s &&
           fabs(a->exposed_s - b->exposed_s) <= least_s;
}
