/*
 * cluster/host_ring.h: rings over some GPUs of a host, as NCCL searches them.
 *
 * Behind a switch any order will do. On links that join pairs, rings are packed: the cycle through
 * all members whose narrowest link is widest, both ways round, then the next over what is left,
 * until no cycle is left; each carries bytes by its width. A mesh is used evenly, each pair
 * 1/(r − 1) of the bytes (the mean over all cycles). Where no cycle of links exists, one ring
 * passes over PCIe: of the members' order as given and the order that always goes to the nearest,
 * the one that is faster.
 *
 * Example, DGX-1V: the cycle of double links 0-3-2-1-5-6-7-4 twice as wide as 0-1-3-7-5-4-6-2 of
 * single ones: 2·(2 + 1) links of 25 GB/s each way, 150 GB/s, every link full.
 *
 * Source: NVIDIA nccl src/graph/search.cc (rings found by search, added until links are used up).
 * Left out: rings of the two directions over different links.
 */
#ifndef FSDPSIM_CLUSTER_HOST_RING_H
#define FSDPSIM_CLUSTER_HOST_RING_H

#include "cluster/host_graph.h"

struct host_ring {
    int32_t count;        /* members */
    const int32_t *order; /* of the one ring over PCIe; NULL: `share` stands */
    const double *share;  /* by place · count + place: of a member's bytes, those to that member */
};

/* `members`: local GPU indices, at least 2. */
void host_ring_find(struct arena *arena, const struct host_graph *graph, const int32_t *members,
                    int32_t count, struct host_ring *ring);

#endif
