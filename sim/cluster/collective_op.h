/* cluster/collective_op.h: the collectives, by the names that NCCL gives them. */
#ifndef FSDPSIM_CLUSTER_COLLECTIVE_OP_H
#define FSDPSIM_CLUSTER_COLLECTIVE_OP_H

enum collective_op {
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_SEND_RECV, /* each rank to the next of the group, and from the one before */
    COLLECTIVE_OP_COUNT
};
const char *collective_op_name(enum collective_op op); /* "all_gather" */

#endif
