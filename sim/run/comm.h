/*
 * run/comm.h: one collective on a cluster, alone: what nccl-tests measures.
 *
 * A program of one collective on one stream is played through the machine with a host that costs
 * nothing: nccl-tests issues many in a row without waiting, so that the host is never what it
 * measures. The time is that from its start to its end on every rank.
 *
 *   struct comm_machine machine = {0};
 *   comm_machine_load(&machine, "dgx-h100", NULL, 0, &diag)   the cluster with `-s` overrides
 *   comm_machine_shape(&machine, 2, 8)                        2 hosts with 8 GPUs each
 *   comm_play(&machine, COLLECTIVE_ALL_GATHER, 1e9, NETWORK_FLOWS, &time_s)
 */
#ifndef FSDPSIM_RUN_COMM_H
#define FSDPSIM_RUN_COMM_H

#include "base/arena.h"
#include "base/diag.h"
#include "cluster/cluster.h"
#include "cluster/layout.h"
#include "config/config.h"
#include "machine/machine.h"

struct comm_machine {
    struct arena arena;
    struct config config;
    struct diag *diag;
    struct cluster cluster;
    struct layout layout; /* after comm_machine_shape */
};

/* `name`: a shipped cluster (topologies/NAME.yaml) or a path. Whatever the status, release it. */
MUST_CHECK enum status comm_machine_load(struct comm_machine *machine, const char *name,
                                         const char *const *overrides, int32_t override_count,
                                         struct diag *diag);
/* 0: the cluster's default number of hosts, all GPUs of a host. */
MUST_CHECK enum status comm_machine_shape(struct comm_machine *machine, int64_t nodes,
                                          int64_t gpus_per_node);
/* `bytes` as nccl-tests counts them (collective/plan.h). */
MUST_CHECK enum status comm_play(struct comm_machine *machine, enum collective_op op, double bytes,
                                 enum network_mode network, double *time_s);
void comm_machine_release(struct comm_machine *machine);

#endif
