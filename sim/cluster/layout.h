/*
 * cluster/layout.h: the cluster at a given size, folded: rank classes and resource classes.
 *
 * Ranks that behave alike are one class with a multiplicity; so are resources (a GPU's SMs, its
 * HBM, each wire of a host, the uplinks of leaves). Classes are the coarsest equitable partition of
 * the graph {hosts, GPUs, NICs, wires that GPUs share}, found by colour refinement. It is seeded by
 * overrides and by what every wire would carry under every shape of group, so wires of a class
 * always carry the same: every rank of a class sees the same number of members of every other
 * class, and max-min rates are exact on the quotient. Hosts without overrides are one host class,
 * never expanded: a homogeneous cluster of any size has one rank class.
 *
 * Example: dgx-h100 × 4: one rank class of 32, resources sm, hbm, scale-up out/in, nic out/in, 32
 * instances each. With one slow GPU: {the GPU: 1}, {its host's others: 7}, {the rest: 24}.
 *
 * Only the NICs of GPUs in use are there. On one host there are none, and nothing is split by them.
 *
 * `fold: off` gives every rank and every wire its own class; both give the same step time (a test
 * says so).
 */
#ifndef FSDPSIM_CLUSTER_LAYOUT_H
#define FSDPSIM_CLUSTER_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cluster/cluster.h"
#include "cluster/host_graph.h"

struct resource {
    enum resource_kind kind;
    const char *name;  /* "scale-up out (nvlink4)" */
    double capacity;   /* of one instance, per second */
    int64_t instances; /* how many such there are */
};

struct rank_class {
    int64_t count;      /* ranks in it */
    int64_t first_rank; /* lowest global rank, for names */
    int64_t hosts;      /* hosts that hold members */
    int64_t per_host;   /* members on each of those hosts */
    int32_t host_class;
    const struct gpu *gpu; /* the cluster's, or with memory of another rate */
    double clock_frac;
    uint64_t load; /* of the work it does: equal in all members */
    int32_t sm, hbm, copy_engine_h2d, copy_engine_d2h; /* resource indices */
    int32_t scale_up_out, scale_up_in;                 /* -1: none, as of all that follow */
    int32_t pcie_up, pcie_down;                        /* of the GPU's slot */
    int32_t nic_out, nic_in;                           /* of its first NIC */
    double ranks_per_nic; /* its members on a host / NICs of its class there: 8 sharing one: 8;
                             one with two of its own: 0.5 */
    double nics_per_host; /* NIC instances of its class on one host */
};

/* Where each rank of a layout is in it: kept where groups of a part of the ranks need it. */
struct layout_ranks {
    const struct layout *unfolded; /* the same cluster, each rank its own class */
    const int32_t *class_of;       /* by rank */
    const int32_t *resource_of;    /* by resource of the unfolded layout */
};

struct layout {
    const struct cluster *cluster;
    int64_t hosts, gpus_per_host, ranks;
    int64_t nics_per_host; /* in use: those of the GPUs in use; 0 on one host */
    int64_t domain_hosts; /* hosts that one scale-up switch joins: 1, or fewer than the cluster's */
    struct rank_class *classes;
    int32_t class_count;
    struct resource *resources;
    int32_t resource_count;
    const struct layout_ranks *each; /* NULL: not kept (group_layout.h) */
    struct layout_parts *parts;      /* of traffic.h */
};

/* The resources that a rank uses, as members of its class: -1 where there is none. */
enum { RANK_RESOURCE_COUNT = 10, RANK_OWN_RESOURCES = 4 /* the first: no wires */ };
int32_t *rank_class_resource(struct rank_class *class, int32_t which);

enum { LAYOUT_MAX_UNFOLDED_RANKS = 1 << 20 };

MUST_CHECK enum status layout_build(struct arena *arena, const struct cluster *cluster,
                                    int64_t hosts, int64_t gpus_per_host, bool is_folded,
                                    struct layout *layout, struct diag *diag);

#endif
