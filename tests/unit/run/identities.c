/* tests/unit/run/identities.c: see identities.h. */
#include "identities.h"

#include <math.h>

#include "check.h"

/* Seconds of a mean over steps are picoseconds / steps: back to whole ones before comparing. */
static int64_t ps_of(const struct played *played, double seconds)
{
    return (int64_t)llround(seconds * 1e12 * (double)played->experiment.simulate.steps);
}

static void check_times(const struct played *played)
{
    const struct outcome *outcome = &played->outcome;
    CHECK_TRUE(outcome->step_time_s > 0);
    CHECK_INT(ps_of(played, outcome->compute_s) + ps_of(played, outcome->exposed_comm_s) +
                  ps_of(played, outcome->idle_s),
              ps_of(played, outcome->step_time_s));
    CHECK_TRUE(outcome->exposed_comm_s >= 0 && outcome->exposed_comm_s <= outcome->comm_s);
    CHECK_TRUE(outcome->comm_wait_s >= 0 && outcome->comm_wait_s <= outcome->comm_s);
    CHECK_TRUE(outcome->copy_s >= 0 && outcome->copy_s <= outcome->compute_s * (1 + 1e-9));
    CHECK_TRUE(outcome->memcpy_s >= 0 && outcome->memcpy_s <= outcome->idle_s);
    CHECK_TRUE(outcome->comm_s <= outcome->step_time_s);
    CHECK_TRUE(outcome->forward_s + outcome->backward_s + outcome->optimizer_s <=
               outcome->step_time_s * (1 + 1e-12));
    CHECK_NEAR(outcome->exposed_comm_fraction * outcome->step_time_s + 1,
               outcome->exposed_comm_s + 1, 1e-12);
    if (outcome->comm_s > 0)
        CHECK_NEAR((1 - outcome->overlap_fraction) * outcome->comm_s + 1,
                   outcome->exposed_comm_s + 1, 1e-12);
    else
        CHECK_NEAR(outcome->overlap_fraction + 1, 1, 1e-15);
}

static void check_memory(const struct outcome *outcome)
{
    int64_t sum = 0;
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++) {
        CHECK_TRUE(outcome->peak_composition[i] >= 0);
        sum += outcome->peak_composition[i];
    }
    CHECK_INT(sum, outcome->peak_device_bytes);
    CHECK_TRUE(outcome->peak_allocated_bytes <= outcome->peak_active_bytes);
    CHECK_TRUE(outcome->peak_active_bytes <= outcome->peak_reserved_bytes);
    CHECK_TRUE(outcome->peak_reserved_bytes <= outcome->peak_device_bytes);
    CHECK_INT(sum - outcome->peak_composition[MEMORY_CACHED] -
                  outcome->peak_composition[MEMORY_CONTEXT] -
                  outcome->peak_composition[MEMORY_COMMUNICATORS],
              outcome->peak_active_bytes);
    const int64_t over = outcome->peak_device_bytes - outcome->memory_capacity_bytes;
    const bool fits_host =
        outcome->host_memory_bytes == 0 || outcome->peak_host_bytes <= outcome->host_memory_bytes;
    CHECK_INT(outcome->fits, over <= 0 && fits_host);
    CHECK_INT(outcome->memory_over_bytes, over > 0 ? over : 0);
}

/* A communicator of some ranks only. */
static bool has_parts(const struct program *program, int64_t ranks)
{
    for (int32_t i = 0; i < program->communicators.count; i++)
        if (program->communicators.items[i].group.ranks != ranks)
            return true;
    return false;
}

/* Each gather or scatter of S bytes sends (n − 1)/n S from every GPU, an all-reduce twice that. */
static void check_volumes(const struct played *played)
{
    const struct outcome *outcome = &played->outcome;
    const double n = (double)outcome->n_gpus;
    double sent_bytes = 0;
    for (int32_t i = 0; i < outcome->collective_count; i++) {
        const struct outcome_collective *row = &outcome->collectives[i];
        const double passes = row->op[4] == 'r' ? 2 : 1; /* all_reduce, all_gather */
        sent_bytes += (double)row->count * row->bytes * (n - 1) / n * passes;
    }
    if (has_parts(played->experiment.program, outcome->n_gpus))
        CHECK_TRUE(outcome->comm_bytes_per_gpu <= sent_bytes);
    else
        CHECK_NEAR(outcome->comm_bytes_per_gpu, sent_bytes, 1e-9);
    /* No link carries more than it can in the time in which it was used. */
    double busy_frac = 0, excess_frac = 0;
    for (int32_t i = 0; i < outcome->link_count; i++) {
        const struct outcome_link *link = &outcome->links[i];
        busy_frac = fmax(busy_frac, link->busy_frac);
        excess_frac = fmax(excess_frac, link->utilisation - link->busy_frac);
    }
    CHECK_TRUE(busy_frac <= 1 + 1e-9);
    CHECK_TRUE(excess_frac <= 1e-9);
}

static void check_counts(const struct played *played)
{
    const struct outcome *outcome = &played->outcome;
    int64_t parameters = 0;
    for (int32_t i = 0; i < outcome->unit_count; i++)
        parameters += outcome->units[i].parameters;
    /* Units are those of one rank of tensor parallelism, and a microbatch is that of all of them.
     */
    const int64_t tensor_ranks = played->experiment.mesh.tp;
    if (tensor_ranks == 1)
        CHECK_INT(parameters, outcome->parameters);
    else
        CHECK_TRUE(parameters < outcome->parameters &&
                   parameters * tensor_ranks >= outcome->parameters);
    CHECK_INT(outcome->n_gpus, outcome->n_nodes * outcome->gpus_per_node);
    CHECK_INT(outcome->tokens_per_step * tensor_ranks,
              outcome->n_gpus * outcome->micro_batch * outcome->seq_len * outcome->grad_accum);
    CHECK_NEAR(outcome->tokens_per_s * outcome->step_time_s, (double)outcome->tokens_per_step,
               1e-12);
    CHECK_NEAR(outcome->tokens_per_s_per_gpu * (double)outcome->n_gpus, outcome->tokens_per_s,
               1e-12);
    CHECK_TRUE(outcome->events > 0);
    CHECK_TRUE(outcome->bottleneck != NULL && outcome->bottleneck[0] != '\0');
}

void check_identities(const struct played *played)
{
    check_times(played);
    check_memory(&played->outcome);
    check_volumes(played);
    check_counts(played);
}
