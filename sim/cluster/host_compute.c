/* cluster/host_compute.c: what a rank gets of its host; see host_compute.h. */
#include "cluster/host_compute.h"

#include <math.h>
#include <stddef.h>

#include "cluster/cluster_config.h"

struct host_compute host_compute_from(const struct host_config *from)
{
    const struct processor_config *processor = &from->cpu.processor;
    const double cpus = (double)from->cpus;
    const double numa = (double)from->numa.count * from->numa.memory_bytes_per_s;
    const double stated = from->memory_bytes_per_s > 0 ? from->memory_bytes_per_s : numa;
    return (struct host_compute){
        .cores = from->cores > 0 ? from->cores : from->cpus * processor->cores,
        .memory_bytes = from->memory_bytes,
        .memory_bytes_per_s = stated > 0 ? stated : cpus * processor->memory_bytes_per_s,
        .share = {[HOST_PASS_FUSED] = processor->fused_share,
                  [HOST_PASS_SEPARATE] = processor->passes_share},
        .core_bytes_per_s = processor->core_bytes_per_s};
}

double host_compute_bytes_per_s(const struct host_compute *host, enum host_pass pass, int64_t ranks,
                                int64_t threads)
{
    const double cores = (double)host->cores / (double)ranks;
    const double used = threads > 0 ? fmin((double)threads, cores) : cores;
    return fmin(host->share[pass] * host->memory_bytes_per_s / (double)ranks,
                host->core_bytes_per_s * used);
}

double host_compute_staging_bytes_per_s(const struct host_compute *host)
{
    return host->core_bytes_per_s / 2;
}

const char *host_compute_missing(const struct host_compute *host)
{
    return host->core_bytes_per_s > 0 ? NULL : "cpu.processor";
}
