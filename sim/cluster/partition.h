/*
 * cluster/partition.h: the coarsest equitable partition of a coloured graph, by colour refinement.
 *
 * Nodes get a new colour from (old colour, multiset of (edge label, colour of the neighbour)) until
 * the number of colours stops growing. In the result every node of one colour has, over edges of a
 * label, the same number of neighbours of every other colour; no coarser partition that respects
 * the initial colours does (H. L. Corneil, C. C. Gotlieb, J. ACM 17, 51 (1970)).
 *
 * Example: the path a-b-c with equal colours: {a, c}, {b}.
 */
#ifndef FSDPSIM_CLUSTER_PARTITION_H
#define FSDPSIM_CLUSTER_PARTITION_H

#include <stdint.h>

#include "base/arena.h"

struct partition_edge { /* undirected */
    int32_t a, b;
    int32_t label;
};

/*
 * `colours`: in: the initial colours (any integers); out: the refined ones, 0 … count − 1, numbered
 * by first appearance. Returns the count. Working memory comes from `scratch`.
 */
int32_t partition_refine(struct arena *scratch, int32_t node_count,
                         const struct partition_edge *edges, int32_t edge_count, int32_t *colours);

#endif
