/*
 * cluster/host_tree.h: what hangs where inside a host.
 *
 * A tree of PCIe switches under the root ports of NUMA nodes, GPUs and NICs as its leaves, and the
 * pairs of GPUs that are joined directly. From `host.pcie`, `host.numa` and `host.scale_up.links`:
 *
 *   pcie:
 *     link: pcie4                    # 16 lanes; a slot of 8 has half of it
 *     p2p: host                      # GeForce: through host memory
 *     switches:
 *       - {name: plx0, gpus: 0-3, numa: 0}
 *     roots:
 *       - {gpus: 4-7, nics: 0, numa: 1}
 *   numa: {count: 2, link: upi-skylake}
 *
 * GPUs and NICs that are named nowhere are spread evenly over the root ports of the NUMA nodes.
 * With another count of them on the command line (-s host.nics.count=2) the NICs of a file's tree
 * are dealt out: NIC j beside GPU ⌊j·g/n⌋.
 */
#ifndef FSDPSIM_CLUSTER_HOST_TREE_H
#define FSDPSIM_CLUSTER_HOST_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cluster/link.h"
#include "config/config.h"

enum p2p { P2P_DIRECT, P2P_SWITCH, P2P_HOST };

struct pci_switch {
    const char *name;
    int32_t parent; /* index of the switch above, -1: a root port */
    int32_t numa;
    double uplink_bytes_per_s; /* raw, one direction */
};

struct pci_slot {
    int32_t on; /* switch, -1: a root port */
    int32_t numa;
    double bytes_per_s; /* raw, one direction */
};

struct direct_link { /* a pair of GPUs */
    int32_t a, b;
    double bytes_per_s; /* raw, one direction, all links between the two */
};

struct host_tree {
    bool has_pcie; /* otherwise PCIe is no bottleneck, and only `direct` and `numa_count` count */
    enum p2p p2p;
    struct link pcie;            /* a slot of 16 lanes */
    struct link gpu_slot;        /* of GPUs: as `pcie` unless said otherwise */
    struct link staged;          /* latency and ring efficiency of copies through host memory */
    struct pci_switch *switches; /* parents before children */
    int32_t switch_count;
    struct pci_slot *gpus, *nics;
    bool is_dealt; /* NICs are shared out over the GPUs, whatever is nearest */
    int32_t numa_count;
    struct link socket;         /* between each pair of NUMA nodes */
    double memory_bytes_per_s;  /* of one NUMA node's memory; 0: no bottleneck */
    struct direct_link *direct; /* scale-up of kinds mesh and links */
    int32_t direct_count;
};

struct host_config;
struct link_config;

struct link link_from(const struct link_config *from);

/* `port_bytes_per_s`: of one GPU's scale-up port. STATUS_INPUT with messages on what hangs twice,
   on unknown parents and pairs. `path` is that of the host. */
MUST_CHECK enum status host_tree_build(struct arena *arena, struct config *config, const char *path,
                                       const struct host_config *host, double port_bytes_per_s,
                                       struct host_tree *tree);

#endif
