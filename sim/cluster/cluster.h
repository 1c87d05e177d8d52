/*
 * cluster/cluster.h: hosts, links, fabric: what a YAML under topologies/ says.
 *
 * A host type × a count × a fabric: generative, never expanded. Bandwidths are per direction and
 * raw (what the wire carries); what a ring reaches of it (`ring_efficiency`) enters collectives as
 * a rate cap, never as a lower capacity.
 *
 *   version: 1
 *   host:
 *     gpu: h100-sxm5-80gb            # topologies/gpus/
 *     gpus: 8
 *     scale_up: {kind: nvswitch, link: nvlink4}   # link: topologies/links/NAME.yaml
 *     pcie: {link: pcie5, switches: [{gpus: 0, nics: 0, numa: 0}, ...]}   # host_tree.h
 *     numa: {count: 2, link: upi-sapphire-rapids}
 *     nics: {count: 8, link: ndr400}
 *     cpu: xeon-8480c                # topologies/cpus/NAME.yaml: what the host thread costs
 *   hosts: {default: 1, max: 4096}
 *   fabric: {rails: true, hosts_per_leaf: 32, oversubscription: 1, hop_latency: 0.3 us}
 *   collectives: {library: nccl, ...}              # topologies/libraries/NAME.yaml: library.h
 *   overrides: [{host: 3, gpu: 2, clock_frac: 0.8}, {host: 5, nic: 0, nic_frac: 0.5}]
 *
 * `scale_up` and `nics` may give bandwidth, step_latency and ring_efficiency beside `link`; then
 * these stand in for the link's. The latency of switches and cables up to the first switch is part
 * of a link's step latency. Only `gpu`, `gpus`, `cpu`, and `scale_up` or `pcie` where there is more
 * than one GPU, must be there: without `pcie` PCIe is no bottleneck, without `nics` there is one
 * host, without `fabric` one switch joins all hosts without loss.
 */
#ifndef FSDPSIM_CLUSTER_CLUSTER_H
#define FSDPSIM_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cluster/calibration.h"
#include "cluster/gpu.h"
#include "cluster/host_compute.h"
#include "cluster/host_tree.h"
#include "cluster/library.h"
#include "config/config.h"

/* What the host thread is asked to do; its cost stands in the cluster's `host.cpu` (seconds each).
 */
enum host_cost {
    HOST_KERNEL,          /* issue one kernel of an eager op: dispatch, autograd, launch */
    HOST_KERNEL_COMPILED, /* one kernel inside a compiled region */
    HOST_COMPILED_REGION, /* entering one compiled region: guards */
    HOST_KERNEL_BACKWARD, /* one kernel from an eager backward node */
    HOST_COLLECTIVE,      /* one c10d collective */
    HOST_STREAM_OP,       /* event record or stream wait */
    HOST_HOOK,            /* FSDP pre/post hook of one unit */
    HOST_HOOK_PARAM,      /* … and per parameter of the unit */
    HOST_CHECKPOINT,      /* entering a checkpointed region, in forward and again in backward */
    HOST_LIMITER_WAKE,    /* FSDP1: from the event the limiter waits for to the next all-gather */
    HOST_SYNC_WAKE,       /* from when the GPU has written what the host waits for: copy, wake */
    HOST_FLAT_VIEW,       /* FSDP1: one parameter as a view of the gathered flat one */
    HOST_ORIG_PARAM,      /* … and with use_orig_params, what a gather and free of it add */
    HOST_DDP_WALK,        /* DDP, find_unused_parameters: one node of the autograd graph */
    HOST_ZERO_GRAD,       /* DeepSpeed: the hook of one parameter's gradient, and its share of the
                             bucket's reduction */
    HOST_ZERO_MODULE,     /* ZeRO-3: hooks before and behind one submodule, in one direction */
    HOST_ZERO_FETCH,      /* ZeRO-3: gather, wait for and release one parameter */
    HOST_STEP,            /* Python between steps: data loader, logging, zero_grad */
    HOST_OPTIMIZER,       /* optimizer.step() of one parameter group, fused */
    HOST_OPTIMIZER_PARAM, /* … and per parameter tensor */
    HOST_DEVICE_MALLOC,   /* one cudaMalloc */
    HOST_DEVICE_MALLOC_PAGE, /* … and per 2 MiB of it */
    HOST_DEVICE_FREE,        /* one cudaFree, the GPU being idle */
    HOST_DEVICE_FREE_PAGE,   /* … and per 2 MiB of it */
    HOST_COST_COUNT
};
const char *host_cost_name(enum host_cost cost);

enum scale_up_kind {
    SCALE_UP_NONE,   /* one GPU a host, or PCIe only */
    SCALE_UP_SWITCH, /* every GPU reaches every other at the rate of its port */
    SCALE_UP_MESH,   /* each pair is joined, a port is shared equally by all peers */
    SCALE_UP_LINKS   /* some pairs are joined: host_tree.direct */
};

enum placement { PLACEMENT_PACKED, PLACEMENT_SPREAD };

struct fabric_level { /* a group of hosts below one leaf (group of leaves), pod, … */
    int64_t hosts;    /* that share its uplinks */
    double oversubscription;
};

struct fabric {
    bool has_rails;
    enum placement placement;
    double hop_latency_s;              /* of one switch more than the first */
    const struct fabric_level *levels; /* leaves first; none: one switch for all */
    int32_t level_count;
    const char *source;
};

enum collective_algorithm {
    ALGORITHM_AUTO, /* the fastest that the library has; without one: ring */
    ALGORITHM_RING,
    ALGORITHM_TREE,
    ALGORITHM_NVLS,
    ALGORITHM_NVLS_TREE,
    ALGORITHM_PAT,
    ALGORITHM_TWO_LEVEL_RING
};

struct override { /* a GPU, NIC or host that differs; several on one multiply */
    struct place place;
    int64_t host;      /* 0 … */
    int64_t gpu;       /* local index, -1: every GPU of the host */
    int64_t nic;       /* the same, for nic_frac */
    int32_t gpu_type;  /* index into other_gpus, -1: the host type's */
    double clock_frac; /* compute-bound kernels; 1: none, as of all shares */
    double hbm_frac, scale_up_frac, pcie_frac;
    double nic_frac;       /* NICs at this share of their rate */
    int64_t nics;          /* the host has only its first so many; 0: all */
    double step_latency_s; /* added to each step that leaves the host */
    uint64_t load;         /* of the work done there: what is not equal is not alike; 0: none */
};

/* What the hosts read data from and write checkpoints to, in bytes/s; 0: not said. */
struct storage {
    double read, write;               /* of one host */
    double shared_read, shared_write; /* of all hosts together */
};

struct cluster {
    const char *name;
    struct place place; /* where it was written, for messages */
    struct gpu gpu;
    int64_t gpus_per_host;
    enum scale_up_kind scale_up;
    struct link scale_up_link; /* one GPU's whole port */
    int64_t domain_hosts;      /* hosts in a row that one scale-up switch joins; 1: none */
    struct host_tree tree;
    int64_t nic_count; /* 0: no network, one host only */
    struct link nic_link;
    struct fabric fabric;
    double host_cost_s[HOST_COST_COUNT];
    struct host_compute compute;
    struct link copy_link; /* a GPU's to the host's memory, where there is no PCIe tree */
    struct storage storage;
    int64_t default_hosts, max_hosts;
    enum collective_algorithm algorithm;
    enum protocol protocol;
    struct collective_library library;
    double collective_base_s;            /* once a collective; below 0: the library's */
    int64_t channels_one_host, channels; /* SMs a collective kernel holds; -1: by links, library */
    double hbm_bytes_per_bus_byte;       /* HBM traffic per byte moved on the bus */
    double kernel_loss_per_hbm_share;    /* beside a transfer: contention.h */
    double comm_slowdown;                /* of a transfer beside kernels (plan.h); 1: none */
    struct calibration calibration;      /* no tables: the model alone */
    struct gpu *other_gpus;              /* that overrides put in place of `gpu` */
    int32_t other_gpu_count;
    const struct override *overrides;
    int64_t override_count;
};

/* Before the first step of a collective, and the SMs that it holds over so many NICs a host in use
   (0: inside one host). */
double cluster_base_s(const struct cluster *cluster, enum protocol protocol);
int64_t cluster_channels(const struct cluster *cluster, int64_t nics);

struct cluster_config;                         /* as bound: cluster_config.h */
extern const struct field_table cluster_table; /* struct_bytes: the bound struct */

/* For `schema cluster`; NULL-ended. */
extern const struct field_table *const cluster_tables[];

/* Derives `struct cluster` from the bound struct (GPU curves, links); checks what one field cannot
   see. `bound` is the struct filled through cluster_table. cluster_release frees the curves. */
MUST_CHECK enum status cluster_build(struct arena *arena, struct config *config, const char *path,
                                     const void *bound, struct cluster *cluster);
/* Of the data that the cluster's YAML only names: the grids of its GPUs. */
void cluster_hash_data(const struct cluster *cluster, struct hash128 *hash);
void cluster_release(struct cluster *cluster);

/* "8 x h100-sxm5-80gb, nvlink4 450 GB/s, 8 x ndr400 50 GB/s, 1 to 4096 hosts": for `list clusters`.
 */
char *cluster_summary(struct arena *arena, const struct cluster *cluster);

#endif
