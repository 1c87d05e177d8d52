/* cluster/collective_op.c: see collective_op.h. */
#include "cluster/collective_op.h"

static const char *const op_names[COLLECTIVE_OP_COUNT] = {
    [COLLECTIVE_ALL_GATHER] = "all_gather", [COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
    [COLLECTIVE_ALL_REDUCE] = "all_reduce", [COLLECTIVE_BROADCAST] = "broadcast",
    [COLLECTIVE_ALL_TO_ALL] = "all_to_all", [COLLECTIVE_SEND_RECV] = "send_recv",
};

const char *collective_op_name(enum collective_op op)
{
    return op_names[op];
}
