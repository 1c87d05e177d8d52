/*
 * cluster/traffic.h: what groups of ranks load the resources of a layout with.
 *
 * Every rank of the layout is in one group of the shape that is asked for (the whole layout, the
 * members on each host, those of equal index across hosts, …); all communicate at the same time,
 * and each rank sends one byte in all. A load is bytes through one instance of a resource; a rate
 * is bounded by capacity / effort, which counts the share of a link that a ring reaches. In a view
 * of a layout (group.h) the ranks are the members of one group.
 *
 * Fabric: hosts share leaves, leaves pods (fabric.levels), in the order of ranks (packed) or dealt
 * out (spread). A ring that goes from a leaf to another loads the uplinks of both, as one resource
 * a leaf and direction. Of instances of a resource the one that carries most stands for all.
 *
 * Left out: groups that do not tile the hosts of a scale-up domain count as if they did; traffic
 * between rails (NCCL moves it to the right rail inside the host).
 */
#ifndef FSDPSIM_CLUSTER_TRAFFIC_H
#define FSDPSIM_CLUSTER_TRAFFIC_H

#include "cluster/group.h"

struct traffic_load {
    int32_t resource;
    double per_byte; /* bytes through one instance */
    double effort;   /* the same over the share of the link that is reached */
};

struct traffic {
    struct traffic_load *loads;
    int32_t load_count;
    struct hop_counts hops; /* of a ring: the n − 1 hops that a byte makes, dearest left out */
    double extra_latency_s; /* step_latency of overridden hosts on the way */
};

/* Each is found once and kept with the layout. A ring inside hosts: hosts 1. */
const struct traffic *layout_ring(const struct layout *layout, const struct group *group);
/* Every rank to the scale-up switch and back (NVLS). */
const struct traffic *layout_star(const struct layout *layout, const struct group *group);
const struct traffic *layout_all_to_all(const struct layout *layout, const struct group *group);
/* Every member of a class copies a byte from the memory of its NUMA node, or to it. */
const struct traffic *layout_copy(const struct layout *layout, int32_t class_idx, bool is_to_gpu);
/* A byte from one rank to another, of an unfolded layout, one way: bytes through one instance. */
void layout_transfer(struct arena *arena, const struct layout *unfolded, int64_t from, int64_t to,
                     struct traffic *traffic);

#endif
