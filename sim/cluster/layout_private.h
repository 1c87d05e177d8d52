/*
 * cluster/layout_private.h: the graph whose colours are the classes of a layout.
 *
 * Hosts without overrides stand in it once, with a count: one representative (two where a scale-up
 * domain is not full). Node order: of each representative the host, its GPUs, its NICs, the wires
 * that are nobody's port.
 */
#ifndef FSDPSIM_CLUSTER_LAYOUT_PRIVATE_H
#define FSDPSIM_CLUSTER_LAYOUT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cluster/host_traffic.h"
#include "cluster/layout.h"
#include "cluster/traffic.h"

struct host_variant {           /* hosts that differ in more than rates */
    int32_t nics;               /* NICs that are there */
    int64_t domain_hosts;       /* hosts of its scale-up domain that are in use */
    const bool *attached;       /* host_graph_attach */
    const bool *has_nic;        /* by NIC: there, and of a GPU in use */
    const uint64_t *signatures; /* by wire: what it carries under every shape; NULL: not needed */
    const uint64_t *ways;       /* by GPU: the wires that it alone loads; with signatures */
};

struct gpu_shares {
    double clock, hbm, scale_up, pcie;
    int32_t type; /* of the cluster's other_gpus, -1: the host type's */
    uint64_t load;
};

struct host_sample {
    int64_t first_host, count;
    int32_t variant;
    struct gpu_shares *gpus; /* what overrides say; shared by samples without any */
    double *nics;
    double step_latency_s;
};

struct layout_graph {
    const struct cluster *cluster;
    int64_t hosts, gpus, nics; /* of a host: in use, and of its type (0 on one host) */
    struct host_graph host;
    int32_t *loose; /* wires that are nobody's port */
    int32_t loose_count;
    struct host_variant *variants;
    int32_t variant_count;
    struct host_sample *samples; /* folded: the overridden ones first, sorted */
    int32_t sample_count, overridden_count;
    int32_t *colours; /* of each node */
    int32_t colour_count;
};

struct traffic_entry {
    enum traffic_pattern pattern;
    struct group group;
    struct traffic traffic;
    struct traffic_entry *next;
};

struct layout_parts {
    struct arena *arena;
    const struct layout_graph *graph;
    const int32_t *wire_resources; /* by sample · wires + wire; -1: not there */
    int32_t fabric_first;          /* of the graph's layout: uplinks (layout_fabric.c), -1: none */
    struct traffic_entry *entries;
    struct traffic **copies; /* by 2 · class + is_to_gpu, NULL: not found yet */
    /* Where the graph's hosts are unfolded and its resources numbered otherwise: a layout folded
       for groups, and the views of it. The layout's host i is the graph's first_host + i ·
       host_step. */
    const int32_t *resource_of; /* by resource of the graph's layout; NULL: the same */
    int64_t first_host, host_step, first_gpu, gpu_step;
};

static inline int64_t graph_nodes_per_host(const struct layout_graph *graph)
{
    return 1 + graph->gpus + graph->nics + graph->loose_count;
}

/* `within`: 0 the host, then GPUs, NICs, loose wires. */
static inline int32_t graph_node(const struct layout_graph *graph, int32_t sample, int64_t within)
{
    return (int32_t)(sample * graph_nodes_per_host(graph) + within);
}

static inline bool sample_has_nic(const struct layout_graph *graph, int32_t sample, int64_t nic)
{
    return graph->variants[graph->samples[sample].variant].has_nic[nic];
}

void layout_graph_build(struct arena *arena, const struct cluster *cluster, int64_t hosts,
                        int64_t gpus_per_host, bool is_folded, struct layout_graph *graph);

/* Capacity of a wire on a representative host, overrides counted. */
double sample_wire_capacity(const struct layout_graph *graph, int32_t sample, int32_t wire);

/* Parts of a layout that is folded otherwise than its graph: starts as all of the unfolded layout.
 */
struct layout_parts *layout_parts_renumbered(struct arena *arena, const struct layout *unfolded,
                                             const int32_t *resource_of, int32_t class_count);
/* Makes `view` (layout_parts_renumbered of the same) see the members of one group. */
void layout_parts_view(const struct layout *unfolded, const struct group *group, int64_t first_rank,
                       struct layout_parts *view);
/* Adds to used[resource_of[r]] the instances of r that a ring over all of the view touches. */
void layout_view_used(const struct layout *view, const struct layout *unfolded, int64_t *used);

/* A group's stride as one of hosts, or of GPUs in a host. */
static inline int64_t group_host_stride(const struct layout *layout, const struct group *group)
{
    const int64_t stride = group_stride(group);
    return stride > layout->gpus_per_host ? stride / layout->gpus_per_host : 1;
}
static inline int64_t group_gpu_stride(const struct layout *layout, const struct group *group)
{
    return group_stride(group) < layout->gpus_per_host ? group_stride(group) : 1;
}

/* layout_fabric.c: resources of uplinks, and what a group loads them with. */
int32_t fabric_resource_most(const struct cluster *cluster);
void fabric_add_resources(struct layout *layout);

struct fabric_load {  /* the most that the uplinks of a level carry, each way */
    int32_t resource; /* of the graph's layout; down is the next */
    double up, down;
};
/* Returns how many; adds switches to `hops`. `loads`: level_count of the fabric. */
int32_t fabric_traffic(const struct layout *layout, const struct group *group,
                       enum traffic_pattern pattern, struct fabric_load *loads,
                       struct hop_counts *hops);

#endif
