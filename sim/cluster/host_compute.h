/*
 * cluster/host_compute.h: what a rank gets of its host when optimizers run there (offload).
 *
 * An element-wise pass moves operands between memory and cores. The ranks of a host do it at the
 * same time, in equal parts:
 *
 *   bytes/s of a rank = min(share · memory bandwidth / ranks,  core bandwidth · threads)
 *   threads = min(those of the rank, cores / ranks)
 *
 * The share depends on how it is written: `fused` is one pass (DeepSpeed's CPUAdam, torch's fused
 * Adam), `passes` one after the other over whole tensors with a temporary that is allocated anew
 * (torch's for-loop and foreach Adam). A processor's figures stand in topologies/cpus/NAME.yaml;
 * `host.cores` and `host.memory_bandwidth` say what a host, or a job on it, really has.
 *
 * Example, two Xeon 8168 (48 cores, 256 GB/s), one rank: fused 0.5 · 256 = 128 GB/s, so 28 B for
 * each of 1e9 parameters take 0.22 s; passes 0.22 · 256 = 56 GB/s, 80 B: 1.42 s. Eight ranks on one
 * core of 22 GB/s: 2.75 GB/s each.
 *
 * Left out: ranks that come at different times, NUMA, caches, arithmetic (an Adam update has less
 * than one FLOP a byte), other work of the host.
 */
#ifndef FSDPSIM_CLUSTER_HOST_COMPUTE_H
#define FSDPSIM_CLUSTER_HOST_COMPUTE_H

#include <stdint.h>

enum host_pass { HOST_PASS_FUSED, HOST_PASS_SEPARATE, HOST_PASS_COUNT };

struct host_compute {          /* of one host; 0: not known */
    int64_t cores;             /* physical */
    double memory_bytes;       /* how large its memory is */
    double memory_bytes_per_s; /* raw */
    double share[HOST_PASS_COUNT];
    double core_bytes_per_s;
};

struct host_config;
struct host_compute host_compute_from(const struct host_config *from);

/* Of one of `ranks` on the host; threads 0: as many as there are cores. 0: not known. */
double host_compute_bytes_per_s(const struct host_compute *host, enum host_pass pass, int64_t ranks,
                                int64_t threads);
/* One core copies between pageable and pinned memory: it reads and writes every byte. */
double host_compute_staging_bytes_per_s(const struct host_compute *host);
/* The key that a cluster lacks, below "host"; NULL: none. */
const char *host_compute_missing(const struct host_compute *host);

#endif
