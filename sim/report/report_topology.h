/*
 * report/report_topology.h: a cluster's picture: tree and matrix for the terminal, Graphviz, JSON.
 *
 * All rates are of one direction, raw, as the YAML says. `links` names the files of link kinds:
 * see report_topology_links.
 */
#ifndef FSDPSIM_REPORT_REPORT_TOPOLOGY_H
#define FSDPSIM_REPORT_REPORT_TOPOLOGY_H

#include <stdio.h>

#include "base/arena.h"
#include "cluster/cluster.h"
#include "cluster/host_graph.h"

struct topology_link { /* one kind of link of a cluster */
    const char *role;  /* "scale-up", "NIC", "PCIe slot", … */
    const struct link *link;
    const char *file; /* "topologies/links/nvlink4.yaml"; NULL: written in the cluster's file */
};

struct topology {
    const struct cluster *cluster;
    struct host_graph graph;
    const bool *attached; /* host_graph_attach: which NICs are a GPU's own */
    struct topology_link links[6];
    int32_t link_count;
};

/* `data_folders`: where link files are looked for. */
void topology_init(struct arena *arena, const struct cluster *cluster,
                   const char *const *data_folders, struct topology *topology);
void report_topology(const struct topology *topology, FILE *file);
void report_topology_dot(const struct topology *topology, FILE *file);
void report_topology_json(const struct topology *topology, FILE *file);

#endif
