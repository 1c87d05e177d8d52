/*
 * cluster/host_graph.h: a host as wires, and the way of bytes over them.
 *
 * A wire is one direction of one link (or the memory of a NUMA node): what can be full. A copy from
 * one GPU to another goes
 *   over the scale-up switch or the link that joins the two, where there is one; else
 *   over PCIe: up to the lowest common switch and down again, or up to the root, over the socket
 *   link where the NUMA nodes differ, and down; else (no PCIe given) over GPUs between.
 * Where peer to peer is not allowed, the bytes are written to the memory of the receiver's NUMA
 * node and read again, and every wire up to the root carries them: two cards below one switch load
 * its uplink twice.
 *
 * A GPU reaches a NIC over PCIe; where that way would cross sockets and a GPU near the NIC can be
 * reached over scale-up links, through that GPU (NCCL: PXN).
 *
 * Example: two 4090s below one switch, each sends 1 byte to the other: GPU up 1, GPU down 1, uplink
 * up 2, uplink down 2, memory 4. On two sockets: up 1, down 1, the socket link 1 each way.
 *
 * NICs hang on the GPUs nearest to them in the PCIe tree; alike ones (and all, without a tree)
 * proportionally: with n NICs and g GPUs, n >= g gives NIC j to GPU floor(j·g/n), n < g gives GPU i
 * the NIC floor(i·n/g).
 */
#ifndef FSDPSIM_CLUSTER_HOST_GRAPH_H
#define FSDPSIM_CLUSTER_HOST_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cluster/cluster.h"

enum resource_kind {
    RESOURCE_SM,            /* capacity 1: the whole GPU */
    RESOURCE_HBM,           /* bytes/s */
    RESOURCE_COPY_ENGINE,   /* capacity 1, one per direction: H2D and D2H */
    RESOURCE_SCALE_UP_OUT,  /* bytes/s, as all that follow: a GPU's port to its switch */
    RESOURCE_SCALE_UP_IN,   /* … and from it */
    RESOURCE_SCALE_UP_LINK, /* from one GPU to another directly */
    RESOURCE_PCIE_UP,       /* towards the root */
    RESOURCE_PCIE_DOWN,
    RESOURCE_SOCKET,      /* from one NUMA node to another */
    RESOURCE_HOST_MEMORY, /* of a NUMA node, reads and writes together */
    RESOURCE_NIC_OUT,
    RESOURCE_NIC_IN,
    RESOURCE_FABRIC_UP, /* uplinks of a leaf or pod together */
    RESOURCE_FABRIC_DOWN,
    RESOURCE_KIND_COUNT
};
const char *resource_kind_name(enum resource_kind kind);

struct wire {
    enum resource_kind kind;
    const char *name; /* "PCIe up, switch (pcie4)" */
    double capacity;  /* PCIe: payload, raw · copy_efficiency; others raw */
    double copy_efficiency;
    int32_t gpu, nic; /* whose port it is; -1: nobody's. A direct link: from GPU … */
    int32_t peer;     /* … to this one; -1 otherwise */
};

struct host_graph {
    const struct cluster *cluster;
    int32_t gpus; /* in use: the first so many */
    int32_t nics; /* of the host type; 0 when only one host is in use */
    struct wire *wires;
    int32_t wire_count;
    /* First wire of each group, -1: there is none. */
    int32_t scale_up_out, scale_up_in;          /* by GPU */
    int32_t gpu_up, gpu_down, nic_up, nic_down; /* by GPU, by NIC */
    int32_t switch_up, switch_down;             /* by switch */
    int32_t socket;                             /* by from · NUMA nodes + to */
    int32_t memory;                             /* by NUMA node */
    int32_t nic_out, nic_in;                    /* by NIC */
    int32_t *direct;                            /* by a · gpus + b, -1: not joined; NULL: none */
};

/* Bytes over each wire, and the same over the share of the wire that is reached: a rate of `r`
   needs r·per_byte <= capacity, and alone reaches capacity / effort. */
struct wire_loads {
    double *per_byte, *effort;
};

struct hop_counts {
    double scale_up;        /* over scale-up links */
    double pcie;            /* peer to peer over PCIe */
    double host_memory;     /* through host memory */
    double socket;          /* of the last two, those that cross sockets */
    double network;         /* from host to host (from domain to domain) */
    double fabric_switches; /* switches beyond the first on these */
};

void host_graph_build(struct arena *arena, const struct cluster *cluster, int64_t hosts,
                      int64_t gpus, struct host_graph *graph);
struct wire_loads wire_loads_new(struct arena *arena, const struct host_graph *graph);

/* Which of the first `nics` NICs are a GPU's own: by gpu · graph->nics + nic. Every NIC is some
   GPU's, over all GPUs of the host type. */
bool *host_graph_attach(struct arena *arena, const struct host_graph *graph, int32_t nics);

/* `amount` bytes from GPU a to GPU b; returns which hop it is in `hops` (one hop, amount or not).
 */
void host_graph_hop(const struct host_graph *graph, int32_t a, int32_t b, double amount,
                    const struct wire_loads *loads, struct hop_counts *hops);
/* `amount` bytes from a GPU out through a NIC, or in. */
void host_graph_network(const struct host_graph *graph, int32_t gpu, int32_t nic, double amount,
                        bool is_out, const struct wire_loads *loads);
/* `amount` bytes between a GPU and the memory of its NUMA node. */
void host_graph_copy(const struct host_graph *graph, int32_t gpu, double amount, bool is_to_gpu,
                     const struct wire_loads *loads);
/* How far apart two GPUs are for a ring: 0 scale-up, then by PCIe switches, then sockets. */
int32_t host_graph_distance(const struct host_graph *graph, int32_t a, int32_t b);

#endif
