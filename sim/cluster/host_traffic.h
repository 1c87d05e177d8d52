/*
 * cluster/host_traffic.h: what a host's wires carry while groups of its GPUs communicate.
 *
 * All groups of one shape communicate at the same time, each rank sending one byte in all:
 *
 * ring: of r members in a host each passes its byte on to the next. A ring that leaves the host
 *   does so once: r − 1 of r hops stay in it (behind a switch and on links each hop gives up its
 *   part, since NCCL's rings leave from every GPU in turn; a ring over PCIe is cut at the NIC), and
 *   the byte goes out and in through the NICs of the members, in equal parts.
 * star: each member sends its byte to the scale-up switch and gets one back (NVLS).
 * all to all: each rank sends 1/(n − 1) to every other; what leaves the host goes through the NICs
 *   of the sender.
 *
 * A scale-up switch that joins d hosts makes them one: r·d members, left once.
 */
#ifndef FSDPSIM_CLUSTER_HOST_TRAFFIC_H
#define FSDPSIM_CLUSTER_HOST_TRAFFIC_H

#include "cluster/host_ring.h"

enum traffic_pattern { TRAFFIC_RING, TRAFFIC_STAR, TRAFFIC_ALL_TO_ALL };

struct host_shape {
    enum traffic_pattern pattern;
    int32_t first_gpu, gpu_step, gpu_count; /* the GPUs that communicate, all of them in groups */
    int32_t ranks_per_host;                 /* of a group, … */
    int32_t gpu_stride;                     /* … every so manyth of those */
    int64_t domain_hosts; /* hosts of the group that one scale-up switch joins; 1: none */
    int64_t ranks;        /* of the group */
    bool is_leaving;      /* it goes on beyond the host (the domain) */
};

/* Adds to `loads`; `hops` are those of one group in this host, in the mean of the group's hosts.
   `attached`: host_graph_attach. */
void host_traffic_add(const struct host_graph *graph, const bool *attached,
                      const struct host_shape *shape, const struct wire_loads *loads,
                      struct hop_counts *hops);

#endif
