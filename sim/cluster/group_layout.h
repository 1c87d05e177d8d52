/*
 * cluster/group_layout.h: the layout folded so that communicators over a part of the ranks fold
 * too.
 *
 * Ranks that are alike by themselves may stand in unlike groups: beside a slow GPU, or not. Colour
 * refinement goes over ranks, hosts, resources, groups and the part of a group on one host
 * together: in each round a shared thing's colour is made of its members' colours, and a rank's of
 * those of all it belongs to, until no class splits. In the result all ranks of a class belong to
 * groups of one class, in which each rank class has the same number of members; max-min rates are
 * exact on that quotient (layout.h). Groups with an order (group.h) add the neighbours, and whether
 * they are on the same host; stages also the place.
 *
 * Example: 4 hosts of 8, dp_replicate 2 × dp_shard 16, GPU 2 of host 3 slow: {it}, {its host}, {its
 * shard group's other host}, {its replica, rank 10}, {the rest of host 1}, {host 0}: 6 classes for
 * 32 ranks, and more where NICs are shared.
 *
 * Colours are 64-bit hashes; of n things two are confused with probability n² / 2^65.
 *
 * Cost: every rank is looked at, so O(ranks) a round: 16,384 ranks take milliseconds. Only where a
 * group spans a part of the ranks; else it is layout_build. fold: off gives every rank its own
 * class; a test says that both give the same times.
 */
#ifndef FSDPSIM_CLUSTER_GROUP_LAYOUT_H
#define FSDPSIM_CLUSTER_GROUP_LAYOUT_H

#include "cluster/group.h"

MUST_CHECK enum status layout_build_for_groups(struct arena *arena, const struct cluster *cluster,
                                               int64_t hosts, int64_t gpus_per_host, bool is_folded,
                                               const struct group *groups, int32_t group_count,
                                               struct layout *layout, struct diag *diag);

#endif
