/* run/saving.c: see saving.h. */
#include "run/saving.h"

#include <math.h>

#include "run/estimate.h"
#include "run/experiment_private.h"

static const struct choice async_choices[] = {
    {"disabled", ASYNC_DISABLED, "training stands still until all is written (dcp.save)"},
    {"async", ASYNC_PAGEABLE,
     "until all is copied to memory of the host that is not pinned (dcp.async_save)"},
    {"async_with_pinned_mem", ASYNC_PINNED,
     "copied to pinned memory beside the next forward and backward (torchtitan)"},
    {0}};

static const struct field saving_fields[] = {
    {.key = "interval",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct saving_config, interval),
     .is_required = true,
     .min = 1,
     .max = 1e9,
     .help = "steps from one checkpoint to the next"},
    {.key = "async_mode",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct saving_config, async_mode),
     .default_text = "disabled",
     .choices = async_choices,
     .help = "what training waits for"},
    {.key = "exclude_frozen_parameters",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct saving_config, exclude_frozen_parameters),
     .default_text = "false",
     .help = "save only what is trained: adapters without their base"},
    {0}};

const struct field_table saving_table = {.name = "checkpoint",
                                         .help = "saving of checkpoints",
                                         .fields = saving_fields,
                                         .struct_bytes = sizeof(struct saving_config)};

static bool is_zero(const struct experiment *experiment)
{
    const int api = experiment->fsdp.api;
    return api == API_ZERO1 || api == API_ZERO2 || api == API_ZERO3;
}

/* Whether the state lies in the memory of the host anyway. */
static bool is_on_host(const struct experiment *experiment)
{
    const struct policy_settings settings = {.fsdp = experiment->fsdp, .zero = experiment->zero};
    return policy_offloads_params(&settings);
}

void saving_check(struct experiment *experiment)
{
    const struct saving_config *config = &experiment->train.saving;
    const struct cluster *cluster = &experiment->cluster;
    if (config->interval == 0)
        return;
    if (!(cluster->storage.write > 0) && !(cluster->storage.shared_write > 0))
        config_error(&experiment->config, "train.checkpoint",
                     "'cluster.storage.write: 2 GB/s' of a host, 'cluster.storage.shared_write' of "
                     "a file system that hosts share, or both",
                     "where checkpoints go, and how fast, cluster '%s' does not say",
                     cluster->name);
    if (config->async_mode != ASYNC_DISABLED && is_zero(experiment))
        config_error(&experiment->config, "train.checkpoint.async_mode", "'async_mode: disabled'",
                     "DeepSpeed saves with torch.save: 'async_mode' belongs to FSDP and DDP");
    if (config->async_mode == ASYNC_PAGEABLE &&
        !(host_compute_staging_bytes_per_s(&cluster->compute) > 0))
        config_error(&experiment->config, "cluster", "topologies/cpus/ has examples",
                     "checkpoints are staged by a core, and cluster '%s' lacks "
                     "'host.cpu.processor'",
                     cluster->name);
    /* What the host has is written from there; all else crosses a link first, blocking or not. */
    if ((config->async_mode == ASYNC_DISABLED && is_on_host(experiment)) ||
        cluster->tree.has_pcie || cluster->copy_link.bytes_per_s > 0)
        return;
    config_error(&experiment->config, "cluster", "'copy_link: pcie4', for example, or 'pcie'",
                 "checkpoints are copied to the host, and cluster '%s' lacks 'host.copy_link'",
                 cluster->name);
}

static double copy_s(const struct experiment *experiment, double bytes)
{
    const bool is_pinned = experiment->train.saving.async_mode == ASYNC_PINNED;
    if (is_on_host(experiment)) {
        const double rate = host_compute_staging_bytes_per_s(&experiment->cluster.compute);
        return rate > 0 ? bytes / rate : 0;
    }
    const double seconds = machine_copies_alone_s(&experiment->layout,
                                                  is_pinned ? COPY_D2H : COPY_D2H_PAGEABLE, bytes);
    return isnan(seconds) ? 0 : seconds;
}

struct saving saving_of(const struct experiment *experiment)
{
    const struct storage *storage = &experiment->cluster.storage;
    const double hosts = (double)experiment->nodes;
    const bool has_whole = experiment->fsdp.api == API_ZERO1 || experiment->fsdp.api == API_ZERO2;
    double state[3];
    estimate_state_bytes(experiment, state);
    const double parameters =
        experiment->train.saving.exclude_frozen_parameters ? state[1] : state[0];
    struct saving saving = {.bytes = parameters + state[2]};
    saving.host_bytes = has_whole ? parameters + state[2] / hosts : (parameters + state[2]) / hosts;
    if (experiment->train.saving.async_mode != ASYNC_DISABLED)
        saving.staged_bytes = saving.host_bytes;
    saving.copy_s = copy_s(experiment, saving.host_bytes / (double)experiment->gpus_per_node);
    if (storage->write > 0)
        saving.write_s = saving.host_bytes / storage->write;
    if (storage->shared_write > 0)
        saving.write_s = fmax(saving.write_s, saving.bytes / storage->shared_write);
    return saving;
}

static double positive(double seconds)
{
    return fmax(seconds, 0);
}

/* How long training stands still at each save. */
static double block_s(const struct saving_config *config, const struct saving *saving,
                      const struct outcome *outcome)
{
    const double between_s = (double)config->interval * outcome->step_time_s;
    switch ((enum async_mode)config->async_mode) {
    case ASYNC_DISABLED:
        break;
    case ASYNC_PAGEABLE:
        return saving->copy_s + positive(saving->write_s - between_s);
    case ASYNC_PINNED:
        return positive(saving->copy_s - outcome->forward_s - outcome->backward_s) +
               positive(saving->copy_s + saving->write_s - between_s);
    }
    return fmax(saving->copy_s, saving->write_s);
}

void saving_fill(const struct experiment *experiment, struct outcome *outcome)
{
    const struct saving_config *config = &experiment->train.saving;
    if (config->interval == 0)
        return;
    const struct saving saving = saving_of(experiment);
    outcome->checkpoint_bytes = saving.bytes;
    outcome->checkpoint_write_s = saving.write_s;
    outcome->checkpoint_block_s = block_s(config, &saving, outcome);
    outcome->checkpoint_s = outcome->checkpoint_block_s / (double)config->interval;
    outcome->idle_s += outcome->checkpoint_s;
    outcome->step_time_s += outcome->checkpoint_s;
    outcome->exposed_comm_fraction =
        outcome->step_time_s > 0 ? outcome->exposed_comm_s / outcome->step_time_s : 0;
}
