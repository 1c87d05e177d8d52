/*
 * collective/tree.h: all-reduce over trees, as NCCL runs them: in each host a chain, across hosts
 * two binary trees that carry half of the bytes each, up and down at the same time.
 *
 *   time = base + 2·((g − 1)·a_in + floor(log2 k)·(a_across + pipelined))
 *          + 2·S / min(port rate, NIC rate)           NICs over exactly two hosts: S
 *
 * A rank sends 2·S·(n−1)/n bytes on average: every edge of a tree over n ranks carries S up and S
 * down. The busiest GPU of a chain passes S up and S down. The busiest host is inside one tree,
 * with two hosts below it, and a leaf of the other: S/2·(1 + 2 + 1) = 2·S. Over two hosts it is S,
 * half of what a ring sends: there an all-reduce shows a bus bandwidth above that of the NICs,
 * which no all-gather or reduce-scatter ever reaches (nccl-tests issues 309, 169).
 *
 * Example: two hosts of two H100 with a 400 Gb/s NIC each, 1 GiB: 1.074 GB / (0.96·0.98·100 GB/s)
 * = 11.4 ms, bus bandwidth 141 GB/s out of 100 GB/s.
 *
 * Sources: NVIDIA nccl src/graph/tuning.cc, trees.cc; efficiencies as topologies/libraries say.
 */
#ifndef FSDPSIM_COLLECTIVE_TREE_H
#define FSDPSIM_COLLECTIVE_TREE_H

#include "collective/scene.h"

struct way tree_way(const struct scene *scene, enum protocol protocol);

/* Levels of a binary tree over the hosts: floor(log2 k). */
int64_t tree_levels(int64_t hosts);

#endif
