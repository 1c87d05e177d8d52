/* cluster/cluster_config.h: a cluster file as bound, before anything is derived from it. */
#ifndef FSDPSIM_CLUSTER_CLUSTER_CONFIG_H
#define FSDPSIM_CLUSTER_CLUSTER_CONFIG_H

#include <stdint.h>

#include "cluster/calibration_config.h"
#include "cluster/cluster.h"
#include "cluster/gpu_config.h"

struct link_sources {
    const char *bandwidth, *step_latency, *ring_efficiency;
};

struct link_config { /* topologies/links/NAME.yaml */
    int64_t version;
    const char *name;
    double bytes_per_s, step_latency_s, ring_efficiency;
    struct link_sources sources;
};

struct port_config { /* scale_up and nics: a link, and what differs from it */
    int kind;        /* enum scale_up_kind; unused by nics */
    int64_t count;   /* NICs; unused by scale_up */
    struct link_config link;
    double bytes_per_s, step_latency_s, ring_efficiency;
};

struct cost_config {
    double time_s;
    const char *source;
};

struct cpu_config { /* topologies/cpus/NAME.yaml */
    int64_t version;
    const char *name;
    struct cost_config cost[HOST_COST_COUNT];
};

struct host_config {
    struct gpu_config gpu;
    int64_t gpus;
    struct port_config scale_up, nics;
    struct cpu_config cpu;
};

struct hosts_config {
    int64_t default_count, max_count;
};

struct fabric_config {
    double oversubscription;
};

struct collectives_config {
    int algorithm; /* enum collective_algorithm */
    double base_s;
    int64_t channels_one_host, channels;
    double hbm_bytes_per_bus_byte, kernel_loss_per_hbm_share, comm_slowdown;
    struct calibration_config calibration;
    const char *source;
};

struct override_config {
    int64_t host, gpu;
    double clock_frac, nic_frac;
};

struct cluster_config {
    int64_t version;
    const char *name;
    const char *summary;
    struct host_config host;
    struct hosts_config hosts;
    struct fabric_config fabric;
    struct collectives_config collectives;
    struct config_list overrides; /* struct override_config */
};

#endif
