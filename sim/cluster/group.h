/*
 * cluster/group.h: groups of ranks with one communicator, and how they fold.
 *
 * A communicator stands for one dimension of the mesh, or several in a row: its groups tile the
 * ranks. With `ranks` members, `stride` apart,
 *
 *     place(r) = ⌊r / stride⌋ mod ranks
 *     group(r) = ⌊r / (stride · ranks)⌋ · stride + r mod stride
 *
 * Example: 32 GPUs on 4 hosts, dp_replicate 2 × dp_shard 16: shard groups {16, stride 1}: two of
 * them, on two hosts each; replica groups {2, stride 16}: 16 of them, one GPU a host, on two hosts.
 *
 * Groups that look alike are one group class with a number of instances: group_split_build says
 * which, what one group sees of the machine (its `view`: a layout whose ranks are the members), and
 * how many groups of the class use one instance of a resource: 8 replica groups over one NIC each
 * send through it, so a byte of each is 8 bytes there. With I groups that use n instances each of a
 * resource that has N, these are I · n / N.
 *
 * Which ranks stand in a group must not change what a rank class is: layout_build_for_groups
 * (group_layout.h) folds so.
 *
 * Left out: dimensions that are not neighbours in the mesh order (two strides); groups that do not
 * tile hosts (12 consecutive ranks on hosts of 8) are refused.
 */
#ifndef FSDPSIM_CLUSTER_GROUP_H
#define FSDPSIM_CLUSTER_GROUP_H

#include "cluster/layout.h"

enum group_order {
    GROUP_UNORDERED, /* its members are alike: collectives only */
    GROUP_RING,      /* point to point with the neighbours, the last one's is the first */
    GROUP_STAGES,    /* the same, and what a member does depends on its place */
};

struct group {
    int64_t ranks, hosts, ranks_per_host;
    int64_t stride; /* from member to member; 0 is read as 1 */
    enum group_order order;
};

/* False when groups of `ranks` members `stride` apart do not tile the hosts. */
MUST_CHECK bool group_along(const struct layout *layout, int64_t ranks, int64_t stride,
                            struct group *group);

static inline int64_t group_stride(const struct group *group)
{
    return group->stride > 1 ? group->stride : 1;
}
static inline int64_t group_place(const struct group *group, int64_t rank)
{
    return rank / group_stride(group) % group->ranks;
}
/* Which group, and its member at place 0. */
static inline int64_t group_of_rank(const struct group *group, int64_t rank)
{
    const int64_t stride = group_stride(group);
    return rank / (stride * group->ranks) * stride + rank % stride;
}
static inline int64_t group_first_rank(const struct group *group, int64_t index)
{
    const int64_t stride = group_stride(group);
    return index / stride * stride * group->ranks + index % stride;
}
/* The member `hop` places on (back: negative) in the same group, the first behind the last. */
static inline int64_t group_neighbour(const struct group *group, int64_t rank, int64_t hop)
{
    const int64_t place = group_place(group, rank);
    const int64_t other = ((place + hop) % group->ranks + group->ranks) % group->ranks;
    return rank + (other - place) * group_stride(group);
}

struct group_share { /* what is not listed is used by one group of the class */
    int32_t resource;
    double groups; /* of the class that use one instance of it */
};

struct group_class {
    int64_t instances;
    int64_t first_rank; /* of the first of them */
    /* What one group sees: counts are of one group, resources those of the whole layout. */
    const struct layout *view;
    const int32_t *classes; /* of the layout: view->classes[i] is the group's part of classes[i] */
    struct group_share *shares;
    int32_t share_count;
};

struct group_split {
    struct group group;
    struct group_class *items;
    int32_t count;
    int32_t *item_of; /* by rank class: its group class … */
    int32_t *seat_of; /* … and its index in that one's `classes` */
};

/* All ranks of a view as one group. */
struct group group_whole(const struct layout *view);

/* The layout must be built for the group, unless that spans all ranks. */
void group_split_build(struct arena *arena, const struct layout *layout, const struct group *group,
                       struct group_split *split);
/* What a group of this shape sees whose first member is `first_rank`; it need not be one of those
   that tile the ranks. The layout must be built for groups. */
const struct layout *group_view(struct arena *arena, const struct layout *layout,
                                const struct group *group, int64_t first_rank);

#endif
