/*
 * collective/ring.h: rings, as NCCL runs them.
 *
 * All-gather or reduce-scatter of S bytes over n ranks on k hosts of g: n − 1 steps, of which
 * k − 1 leave a host; all-reduce is both in a row, broadcast passes all bytes on.
 *
 *   time = base + steps_in_host·a_in + steps_across·a_across + shown
 *          + S/n·(steps + fill) / min(rate of a port, rate of the NICs)
 *
 * NCCL runs rotated rings, one per channel, so that all NICs of a host carry an equal part: every
 * host sends S·(n−1)/n bytes out through its NICs together, and every GPU (g − 1)/g of that (all of
 * it on one host) through its scale-up port.
 *
 * fill: a rank copies its own part and fills the pipe before the first bytes come, which takes the
 * time of `fill_chunks` parts of S/n more. It is a third of the time of a ring of two, little of a
 * long one: 258, 318, 335 GB/s of 379 on 2, 4, 8 H100 (all-gather of 512 MiB).
 *
 * shown: where a step over a link is long because of a handshake (`pipelined_latency`: libfabric's
 * rendezvous takes 0.1 ms), up to eight chunks are under way at a time. Half of the bytes' time
 * hides it: shown = max(0, steps·pipelined − transfer/2).
 *
 * Two-level rings play one after the other: all-gather first across hosts among equal local indices
 * (S/g each), then inside the host (S); reduce-scatter the other way round.
 *
 * Example: dgx-h100, 1 GiB over 8, protocol Simple: rate 379 GB/s, fill 0.55: 0.94 GB·(7.55/7)/379
 * GB/s = 2.674 ms, base and seven steps 0.041 ms.
 *
 * Sources: NVIDIA nccl src/graph/tuning.cc (steps); P. Patarasuk, X. Yuan, J. Parallel Distrib.
 * Comput. 69, 117 (2009); fill and shown: fitted to nccl-tests tables, as topologies/libraries and
 * topologies/links say. Left out: channels that carry unequal parts; jitter.
 */
#ifndef FSDPSIM_COLLECTIVE_RING_H
#define FSDPSIM_COLLECTIVE_RING_H

#include "collective/scene.h"

struct way ring_way(const struct scene *scene, enum protocol protocol);
struct way two_level_ring_way(const struct scene *scene, enum protocol protocol);

#endif
