/*
 * run/experiment_costs.c: microbatches of unlike cost (`train.microbatch_costs`).
 *
 * Sequences of unlike length, packed or not, make some microbatches take longer on some GPUs:
 *
 *     train:
 *       grad_accum: 2
 *       microbatch_costs: [{host: 0, microbatch: 1, cost: 3}, {host: 1, microbatch: 0, cost: 3}]
 *
 * The time of the network's kernels, forward, recomputed and backward, in that microbatch on those
 * GPUs is multiplied; several that name the same multiply. Where every microbatch is reduced over
 * all GPUs a step is the sum of the slowest; what meets in the last one only is averaged (HSDP with
 * `defer_all_reduce`; pytorch/torchtitan issue 1929).
 *
 * GPUs of unlike cost are of unlike classes of ranks: each entry's set of (microbatch, cost) is a
 * colour that the layout starts from, and equal ones fold.
 *
 * Left out: activations and host work of a longer microbatch; `cost` is about time alone.
 */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "run/experiment_private.h"

static const struct field microbatch_cost_fields[] = {
    {.key = "host",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct microbatch_cost, host),
     .default_text = "-1",
     .min = -1,
     .max = 1 << 20,
     .help = "from 0; -1: every host"},
    {.key = "gpu",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct microbatch_cost, gpu),
     .default_text = "-1",
     .min = -1,
     .max = 1023,
     .help = "of the host, from 0; -1: every GPU of it"},
    {.key = "microbatch",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct microbatch_cost, microbatch),
     .default_text = "-1",
     .min = -1,
     .max = 4095,
     .help = "of a step, from 0; -1: every one"},
    {.key = "cost",
     .kind = FIELD_REAL,
     .offset = offsetof(struct microbatch_cost, cost),
     .is_required = true,
     .min = 0.001,
     .max = 1000,
     .help = "the network's kernels take so many times as long"},
    {0}};

const struct field_table microbatch_cost_table = {.name = "microbatch_costs",
                                                  .fields = microbatch_cost_fields,
                                                  .struct_bytes = sizeof(struct microbatch_cost)};

static const struct microbatch_cost *costs_of(const struct experiment *experiment)
{
    return experiment->train.microbatch_costs.items;
}

static void refuse(struct experiment *experiment, int64_t idx, const char *key, int64_t value,
                   const char *what, int64_t count)
{
    config_error(
        &experiment->config,
        arena_printf(&experiment->arena, "train.microbatch_costs[%" PRId64 "].%s", idx, key),
        arena_printf(&experiment->arena, "%s count from 0 to %" PRId64, what, count - 1),
        "cost of %s %" PRId64 ", which this run does not have", key, value);
}

void microbatch_costs_check(struct experiment *experiment)
{
    for (int64_t i = 0; i < experiment->train.microbatch_costs.count; i++) {
        const struct microbatch_cost *one = &costs_of(experiment)[i];
        if (one->host >= experiment->nodes)
            refuse(experiment, i, "host", one->host, "hosts", experiment->nodes);
        if (one->gpu >= experiment->gpus_per_node)
            refuse(experiment, i, "gpu", one->gpu, "GPUs of a host", experiment->gpus_per_node);
        if (one->microbatch >= experiment->train.grad_accum)
            refuse(experiment, i, "microbatch", one->microbatch, "microbatches of a step",
                   experiment->train.grad_accum);
        if (one->host < 0 && one->gpu >= 0 && experiment->nodes > 1)
            config_error(
                &experiment->config,
                arena_printf(&experiment->arena, "train.microbatch_costs[%" PRId64 "].gpu", i),
                "say its host", "a GPU of no host");
    }
}

struct cluster microbatch_costs_cluster(struct experiment *experiment)
{
    struct cluster cluster = experiment->cluster;
    const int64_t count = experiment->train.microbatch_costs.count;
    struct override *overrides =
        ARENA_ARRAY(&experiment->arena, struct override, cluster.override_count + count + 1);
    for (int64_t i = 0; i < cluster.override_count; i++)
        overrides[i] = cluster.overrides[i];
    for (int64_t i = 0; i < count; i++) {
        const struct microbatch_cost *one = &costs_of(experiment)[i];
        uint64_t bits;
        memcpy(&bits, &one->cost, sizeof(bits));
        if (one->host >= 0 || one->gpu >= 0)
            overrides[cluster.override_count++] =
                (struct override){.host = one->host < 0 ? 0 : one->host,
                                  .gpu = one->gpu,
                                  .nic = -1,
                                  .gpu_type = -1,
                                  .clock_frac = 1,
                                  .hbm_frac = 1,
                                  .scale_up_frac = 1,
                                  .pcie_frac = 1,
                                  .nic_frac = 1,
                                  .load = hash64_mix((uint64_t)one->microbatch, bits) | 1};
    }
    cluster.overrides = overrides;
    return cluster;
}

static bool is_of(const struct microbatch_cost *one, int64_t host, int64_t gpu, int64_t microbatch)
{
    return (one->host < 0 || one->host == host) && (one->gpu < 0 || one->gpu == gpu) &&
           (one->microbatch < 0 || one->microbatch == microbatch);
}

void microbatch_costs_build(struct experiment *experiment)
{
    const struct layout *layout = &experiment->layout;
    const int64_t entries = experiment->train.microbatch_costs.count;
    const int64_t accum = experiment->train.grad_accum;
    if (entries == 0)
        return;
    experiment->microbatch_costs =
        ARENA_ARRAY(&experiment->arena, double, layout->class_count *accum);
    for (int64_t i = 0; i < layout->class_count * accum; i++) {
        const int64_t rank = layout->classes[i / accum].first_rank;
        double *cost = &experiment->microbatch_costs[i];
        *cost = 1;
        for (int64_t k = 0; k < entries; k++) {
            const struct microbatch_cost *one = &costs_of(experiment)[k];
            if (is_of(one, rank / experiment->gpus_per_node, rank % experiment->gpus_per_node,
                      i % accum))
                *cost *= one->cost;
        }
    }
}
