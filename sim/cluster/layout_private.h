/*
 * cluster/layout_private.h: the graph whose colours are the classes of a layout.
 *
 * Hosts without overrides stand in it once, with a count: one representative. Node order: of each
 * representative the host, its GPUs, its NICs.
 */
#ifndef FSDPSIM_CLUSTER_LAYOUT_PRIVATE_H
#define FSDPSIM_CLUSTER_LAYOUT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cluster/layout.h"

struct host_sample {
    int64_t first_host, count;
};

struct layout_graph {
    int64_t gpus, nics; /* of a host, in use */
    struct host_sample *samples;
    int32_t sample_count;
    double *values;   /* of each node: GPU clock_frac, NIC nic_frac, host 1 */
    int32_t *colours; /* of each node */
    int32_t colour_count;
};

/* NIC nodes come after GPU nodes. */
static inline int32_t graph_node(const struct layout_graph *graph, int32_t sample, int64_t within)
{
    return (int32_t)(sample * (1 + graph->gpus + graph->nics) + within);
}

/* Index within a host of the first NIC of a GPU, and how many it has (shared ones count). */
int64_t gpu_first_nic(const struct cluster *cluster, int64_t gpu);
int64_t nics_in_use(const struct cluster *cluster, int64_t hosts, int64_t gpus_per_host);

void layout_graph_build(struct arena *arena, const struct cluster *cluster, int64_t hosts,
                        int64_t gpus_per_host, bool is_folded, struct layout_graph *graph);

#endif
