/* cluster/cluster.c: from the bound cluster file to `struct cluster`. */
#include "cluster/cluster.h"

#include <stddef.h>

#include "base/units.h"
#include "cluster/cluster_config.h"
#include "cluster/gemm_model.h"

static const char *const cost_names[HOST_COST_COUNT] = {
    [HOST_KERNEL] = "kernel",
    [HOST_KERNEL_COMPILED] = "kernel_compiled",
    [HOST_COMPILED_REGION] = "compiled_region",
    [HOST_KERNEL_BACKWARD] = "kernel_backward",
    [HOST_COLLECTIVE] = "collective",
    [HOST_STREAM_OP] = "stream_op",
    [HOST_HOOK] = "hook",
    [HOST_HOOK_PARAM] = "hook_param",
    [HOST_CHECKPOINT] = "checkpoint",
    [HOST_LIMITER_WAKE] = "limiter_wake",
    [HOST_SYNC_WAKE] = "sync_wake",
    [HOST_FLAT_VIEW] = "flat_view",
    [HOST_ORIG_PARAM] = "orig_param",
    [HOST_DDP_WALK] = "ddp_walk",
    [HOST_ZERO_GRAD] = "zero_grad",
    [HOST_ZERO_MODULE] = "zero_module",
    [HOST_ZERO_FETCH] = "zero_fetch",
    [HOST_STEP] = "step",
    [HOST_OPTIMIZER] = "optimizer",
    [HOST_OPTIMIZER_PARAM] = "optimizer_param",
    [HOST_DEVICE_MALLOC] = "device_malloc",
    [HOST_DEVICE_MALLOC_PAGE] = "device_malloc_page",
    [HOST_DEVICE_FREE] = "device_free",
    [HOST_DEVICE_FREE_PAGE] = "device_free_page",
};

const char *host_cost_name(enum host_cost cost)
{
    return cost_names[cost];
}

static char *path_join(struct arena *arena, const char *path, const char *key)
{
    return arena_printf(arena, "%s%s%s", path, path[0] ? "." : "", key);
}

/* A port's own latency may be zero, so only the config knows whether it was written. */
static struct link port_link(struct config *config, const char *path,
                             const struct port_config *port)
{
    struct link link = link_from(&port->link);
    if (port->bytes_per_s > 0)
        link.bytes_per_s = port->bytes_per_s;
    if (port->ring_efficiency > 0)
        link.ring_efficiency = port->ring_efficiency;
    if (config_is_set(config, path_join(config->arena, path, "step_latency")))
        link.step_latency_s = port->step_latency_s;
    return link;
}

static struct override *build_overrides(struct arena *arena, struct config *config,
                                        const char *path, const struct config_list *list)
{
    const struct override_config *from = list->items;
    struct override *overrides = ARENA_ARRAY(arena, struct override, list->count);
    for (int64_t i = 0; i < list->count; i++) {
        const char *key = arena_printf(config->arena, "overrides[%lld].host", (long long)i);
        overrides[i] =
            (struct override){.place = config_place(config, path_join(config->arena, path, key)),
                              .host = from[i].host,
                              .gpu = from[i].gpu,
                              .nic = from[i].nic,
                              .gpu_type = -1,
                              .clock_frac = from[i].clock_frac,
                              .hbm_frac = from[i].hbm_frac,
                              .scale_up_frac = from[i].scale_up_frac,
                              .pcie_frac = from[i].pcie_frac,
                              .nic_frac = from[i].nic_frac,
                              .nics = from[i].nics,
                              .step_latency_s = from[i].step_latency_s};
    }
    return overrides;
}

/* The GPUs that overrides name, each built once for each override. */
static enum status build_other_gpus(struct arena *arena, struct config *config, const char *path,
                                    const struct config_list *list, struct override *overrides,
                                    struct cluster *cluster)
{
    const struct override_config *from = list->items;
    cluster->other_gpus = ARENA_ARRAY(arena, struct gpu, list->count);
    for (int64_t i = 0; i < list->count; i++) {
        if (from[i].gpu_type.name == NULL)
            continue;
        const char *key = arena_printf(config->arena, "overrides[%lld].gpu_type", (long long)i);
        overrides[i].gpu_type = cluster->other_gpu_count++;
        const enum status status =
            gpu_build(arena, config, path_join(config->arena, path, key), &from[i].gpu_type,
                      &cluster->other_gpus[overrides[i].gpu_type]);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static struct fabric build_fabric(struct arena *arena, const struct fabric_config *from)
{
    struct fabric fabric = {.has_rails = from->has_rails,
                            .placement = (enum placement)from->placement,
                            .hop_latency_s = from->hop_latency_s,
                            .source = from->source};
    if (from->hosts_per_leaf == 0)
        return fabric;
    struct fabric_level *levels = ARENA_ARRAY(arena, struct fabric_level, from->levels.count + 1);
    levels[0] = (struct fabric_level){from->hosts_per_leaf, from->oversubscription};
    const struct level_config *above = from->levels.items;
    for (int64_t i = 0; i < from->levels.count; i++)
        levels[i + 1] = (struct fabric_level){above[i].hosts, above[i].oversubscription};
    fabric.levels = levels;
    fabric.level_count = (int32_t)from->levels.count + 1;
    return fabric;
}

/* Zero is a base of its own, so only the config knows whether one was written. */
static double base_s(struct config *config, const char *path, const struct cluster_config *from)
{
    const bool is_set = config_is_set(config, path_join(config->arena, path, "collectives.base"));
    return is_set || from->collectives.library.library.name == NULL ? from->collectives.base_s : -1;
}

enum status cluster_build(struct arena *arena, struct config *config, const char *path,
                          const void *bound, struct cluster *cluster)
{
    const struct cluster_config *from = bound;
    const struct host_config *host = &from->host;
    struct override *overrides = build_overrides(arena, config, path, &from->overrides);
    *cluster = (struct cluster){
        .name = from->name,
        .place = config_place(config, path[0] ? path : "name"),
        .gpus_per_host = host->gpus,
        .scale_up = host->scale_up.link.bytes_per_s > 0 ? (enum scale_up_kind)host->scale_up.kind
                                                        : SCALE_UP_NONE,
        .domain_hosts = host->scale_up.domain_hosts > 1 ? host->scale_up.domain_hosts : 1,
        .nic_count = host->nics.count,
        .fabric = build_fabric(arena, &from->fabric),
        .default_hosts = from->hosts.default_count,
        .max_hosts = from->hosts.max_count,
        .collective_base_s = base_s(config, path, from),
        .algorithm = (enum collective_algorithm)from->collectives.algorithm,
        .protocol = (enum protocol)from->collectives.protocol,
        .library = from->collectives.library.library,
        .channels_one_host = from->collectives.channels_one_host,
        .channels = from->collectives.channels,
        .hbm_bytes_per_bus_byte = from->collectives.hbm_bytes_per_bus_byte,
        .kernel_loss_per_hbm_share = from->collectives.kernel_loss_per_hbm_share,
        .comm_slowdown = from->collectives.comm_slowdown,
        .overrides = overrides,
        .override_count = from->overrides.count,
    };
    cluster->scale_up_link =
        port_link(config, path_join(config->arena, path, "host.scale_up"), &host->scale_up);
    cluster->nic_link = port_link(config, path_join(config->arena, path, "host.nics"), &host->nics);
    for (int i = 0; i < HOST_COST_COUNT; i++)
        cluster->host_cost_s[i] = host->cpu.cost[i].time_s;
    cluster->compute = host_compute_from(host);
    cluster->copy_link = link_from(&host->copy_link);
    cluster->storage = from->storage;
    enum status status =
        calibration_build(arena, config, path_join(config->arena, path, "collectives.calibration"),
                          &from->collectives.calibration, &cluster->calibration);
    if (status == STATUS_OK)
        status = host_tree_build(arena, config, path_join(config->arena, path, "host"), host,
                                 cluster->scale_up_link.bytes_per_s, &cluster->tree);
    if (status == STATUS_OK)
        status = gpu_build(arena, config, path_join(config->arena, path, "host.gpu"), &host->gpu,
                           &cluster->gpu);
    if (status == STATUS_OK)
        status = build_other_gpus(arena, config, path, &from->overrides, overrides, cluster);
    return status;
}

double cluster_base_s(const struct cluster *cluster, enum protocol protocol)
{
    const double base_s = cluster->collective_base_s;
    return base_s >= 0 ? base_s : cluster->library.base_s[protocol];
}

/* As many as NICs feed, no more than the rings of a host. */
int64_t cluster_channels(const struct cluster *cluster, int64_t nics)
{
    const int64_t stated = nics > 0 ? cluster->channels : cluster->channels_one_host;
    if (stated >= 0)
        return stated;
    const bool is_scale_up = cluster->scale_up != SCALE_UP_NONE;
    const int64_t in_host =
        is_scale_up ? cluster->scale_up_link.channels : cluster->tree.pcie.channels;
    if (nics == 0)
        return in_host;
    const int64_t across = cluster->library.channels_per_nic * nics;
    return in_host > 0 && in_host < across ? in_host : across;
}

static void hash_grid(const struct gpu *gpu, struct hash128 *hash)
{
    if (gpu->gemm == NULL)
        return;
    const struct hash128 content = gemm_model_content(gpu->gemm);
    hash128_u64(hash, content.high);
    hash128_u64(hash, content.low);
}

void cluster_hash_data(const struct cluster *cluster, struct hash128 *hash)
{
    hash_grid(&cluster->gpu, hash);
    for (int32_t i = 0; i < cluster->other_gpu_count; i++)
        hash_grid(&cluster->other_gpus[i], hash);
}

void cluster_release(struct cluster *cluster)
{
    calibration_release(&cluster->calibration);
    gpu_release(&cluster->gpu);
    for (int32_t i = 0; i < cluster->other_gpu_count; i++)
        gpu_release(&cluster->other_gpus[i]);
    *cluster = (struct cluster){0};
}

char *cluster_summary(struct arena *arena, const struct cluster *cluster)
{
    char rate[32];
    const char *scale_up = "";
    if (cluster->scale_up != SCALE_UP_NONE)
        scale_up =
            arena_printf(arena, ", %s %s", cluster->scale_up_link.name,
                         format_bandwidth(rate, sizeof(rate), cluster->scale_up_link.bytes_per_s));
    const char *nics = "";
    if (cluster->nic_count > 0)
        nics = arena_printf(arena, ", %lld x %s %s", (long long)cluster->nic_count,
                            cluster->nic_link.name,
                            format_bandwidth(rate, sizeof(rate), cluster->nic_link.bytes_per_s));
    const char *hosts = "1 host";
    if (cluster->max_hosts > 1)
        hosts = arena_printf(arena, "1 to %lld hosts", (long long)cluster->max_hosts);
    return arena_printf(arena, "%lld x %s%s%s, %s", (long long)cluster->gpus_per_host,
                        cluster->gpu.name, scale_up, nics, hosts);
}
