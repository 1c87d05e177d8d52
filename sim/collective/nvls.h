/*
 * collective/nvls.h: all-reduce in the switches (NVLink SHARP): NVLS on one host, NVLSTree across.
 *
 * Each GPU reduces its part of S/g by reading it through the switch, which adds up what the GPUs
 * hold, and stores the sum to all of them: S + S/g bytes leave its port, as many come in.
 *
 *   one host:  time = base + latency + S·(1 + 1/g) / (port·nvls_efficiency)
 *   k hosts:   time = base + latency + 2·floor(log2 k)·(level + a_across + pipelined)
 *              + max(S·(1 + 1/g) / (port·nvls_efficiency·nvls_tree_efficiency),
 *                    2·S / NIC rate)                       over exactly two hosts: S (tree.h)
 *
 * Sums only: an average of floats is a sum of multiplied parts, which the switch cannot do, so the
 * gradients of FSDP (ReduceOp.AVG) stay on rings and trees. All-gather and reduce-scatter are kept
 * on rings: no published table shows a gain (nccl issue 1047: ring is faster).
 *
 * Example: 8 H100, 1 GiB: 14 us + 45 us + 1.208 GB / (0.66·450 GB/s) = 4.13 ms,
 * bus bandwidth 455 GB/s.
 *
 * Sources: NVIDIA nccl src/graph/tuning.cc; rates: topologies/links, latencies:
 * topologies/libraries.
 */
#ifndef FSDPSIM_COLLECTIVE_NVLS_H
#define FSDPSIM_COLLECTIVE_NVLS_H

#include "collective/scene.h"

struct way nvls_way(const struct scene *scene, enum protocol protocol);

#endif
