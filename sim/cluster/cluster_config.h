/* cluster/cluster_config.h: a cluster file as bound, before anything is derived from it. */
#ifndef FSDPSIM_CLUSTER_CLUSTER_CONFIG_H
#define FSDPSIM_CLUSTER_CLUSTER_CONFIG_H

#include <stdint.h>

#include "cluster/calibration_config.h"
#include "cluster/cluster.h"
#include "cluster/gpu_config.h"
#include "cluster/library.h"

struct link_sources {
    const char *bandwidth, *step_latency, *ring_efficiency, *copy_efficiency;
    const char *protocols, *pipelined_latency, *tree_efficiency, *nvls_efficiency, *congestion,
        *channels;
};

struct link_config { /* topologies/links/NAME.yaml */
    int64_t version;
    const char *name;
    double bytes_per_s, step_latency_s, ring_efficiency, copy_efficiency;
    struct link_protocol ll, ll128;
    double pipelined_latency_s, tree_efficiency, nvls_efficiency;
    struct congestion congestion;
    int64_t channels;
    struct link_sources sources;
};

struct direct_config {       /* GPUs joined directly */
    struct config_list gpus; /* const char *: two */
    int64_t count;
    double bytes_per_s; /* 0: by count */
};

struct port_config { /* scale_up and nics: a link, and what differs from it */
    int kind;        /* enum scale_up_kind; unused by nics */
    int64_t count;   /* NICs; unused by scale_up */
    struct link_config link;
    double bytes_per_s, step_latency_s, ring_efficiency;
    struct config_list links; /* struct direct_config; unused by nics */
    int64_t domain_hosts;     /* unused by nics */
};

struct hanging_config { /* GPUs and NICs behind a PCIe switch or on root ports */
    const char *name, *parent;
    struct config_list gpus, nics; /* const char *: "3" or "0-1" */
    int64_t numa;
    int64_t gpu_lanes, nic_lanes, uplink_lanes;
    double uplink_bytes_per_s; /* 0: by lanes */
};

struct pcie_config {
    struct link_config link, gpu_link, staged;
    int p2p;                            /* enum p2p */
    struct config_list switches, roots; /* struct hanging_config */
};

struct numa_config {
    int64_t count;
    struct link_config link;
    double memory_bytes_per_s; /* 0: no bottleneck */
};

struct cost_config {
    double time_s;
    const char *source;
};

struct processor_config { /* zeroed: nothing is said */
    int64_t cores;
    double memory_bytes_per_s, core_bytes_per_s, fused_share, passes_share;
    const char *source;
};

struct cpu_config { /* topologies/cpus/NAME.yaml */
    int64_t version;
    const char *name;
    struct cost_config cost[HOST_COST_COUNT];
    struct processor_config processor;
};

struct host_config {
    struct gpu_config gpu;
    int64_t gpus;
    struct port_config scale_up, nics;
    struct pcie_config pcie;
    struct numa_config numa;
    struct cpu_config cpu;
    int64_t cpus, cores;                     /* cores 0: those of the processors */
    double memory_bytes, memory_bytes_per_s; /* 0: not known; that of the processors */
    struct link_config copy_link;
    const char *source; /* of cores and memory */
};

struct hosts_config {
    int64_t default_count, max_count;
};

struct level_config {
    int64_t hosts;
    double oversubscription;
};

struct fabric_config {
    bool has_rails;
    int64_t hosts_per_leaf; /* 0: one switch */
    double oversubscription;
    struct config_list levels; /* struct level_config */
    double hop_latency_s;
    int placement; /* enum placement */
    const char *source;
};

struct collectives_config {
    int algorithm; /* enum collective_algorithm */
    int protocol;  /* enum protocol */
    struct library_config library;
    double base_s;
    int64_t channels_one_host, channels; /* -1: by the links and the library */
    double hbm_bytes_per_bus_byte, kernel_loss_per_hbm_share, comm_slowdown;
    struct calibration_config calibration;
    const char *source;
};

struct override_config {
    int64_t host, gpu, nic;
    struct gpu_config gpu_type;
    double clock_frac, hbm_frac, scale_up_frac, pcie_frac, nic_frac;
    int64_t nics; /* 0: all */
    double step_latency_s;
};

struct cluster_config {
    int64_t version;
    const char *name;
    const char *summary, *source;
    struct host_config host;
    struct hosts_config hosts;
    struct fabric_config fabric;
    struct collectives_config collectives;
    struct storage storage;
    struct config_list overrides; /* struct override_config */
};

#endif
