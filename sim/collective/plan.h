/*
 * collective/plan.h: (collective, group, bytes, layout) → a plan of phases, without events.
 *
 * Ring all-gather or reduce-scatter of S bytes over n ranks on k hosts of g (nccl_model.md 5.3.3):
 *   time = base + (n − k)·a_in_host + (k − 1)·a_across + S·(n − 1)/n / min over links of its rate
 * (k > 1: the step that leaves a host costs a_across; one host: (n − 1)·a_in_host). NCCL runs
 * rotated rings, one per channel, so that all NICs of a host carry an equal part: every host sends
 * S·(n−1)/n bytes out through its NICs together, and every GPU (g − 1)/g of that (all of it on one
 * host) through its scale-up port. All-reduce is both in a row: 2·(n − 1) steps, twice the bytes.
 *
 * `two_level_ring` plays in two phases: all-gather first across hosts among equal local indices
 * (S/g each), then inside the host (S); reduce-scatter the other way round.
 *
 * S is the nccl-tests size: all-gather the gathered output, reduce-scatter the input, all-reduce
 * the buffer. A phase has `rounds` ring steps (each `latency` long on average, in total latency_s)
 * and `bytes` of bus traffic per rank; it loads resource r with bytes·loads[r].per_byte per
 * instance. cap_bytes_per_s is the rate a ring reaches alone (link efficiency), never a lower
 * capacity.
 *
 * With classes that differ each loads its own resources with the same bytes, so the slowest link
 * bounds the ring. HBM carries hbm_bytes_per_bus_byte times the bytes.
 *
 * While kernels run on a member, its copy loops share caches and issue slots with them: over the
 * scale-up port a ring then reaches 1/comm_slowdown of its rate. A NIC that bounds the ring below
 * that bounds it still.
 *
 * Source: NVIDIA nccl src/graph/tuning.cc (ring steps); P. Patarasuk, X. Yuan, J. Parallel Distrib.
 * Comput. 69, 117 (2009). Left out: tree, NVLS, PAT; the choice of protocol, so below about 32 MB
 * the figures are optimistic; the loss of ring efficiency with the number of hosts.
 *
 * Example: 404.75 MB, 8 ranks, 400 GB/s, 5 µs a step: 7·5 µs + 354.16 MB / 400 GB/s = 0.9204 ms.
 */
#ifndef FSDPSIM_COLLECTIVE_PLAN_H
#define FSDPSIM_COLLECTIVE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cluster/collective_op.h"
#include "cluster/group.h"

struct load {
    int32_t resource;
    double per_byte; /* bytes through one instance of the resource per byte of phase work */
};

struct phase {
    int64_t rounds;
    double latency_s;              /* of all rounds together, before and between the bytes */
    double bytes;                  /* bus bytes per rank: the work */
    double cap_bytes_per_s;        /* alone, at most: a link's share that a ring reaches */
    double cap_beside_bytes_per_s; /* the same while kernels run on a member */
    struct load *loads;
    int32_t load_count;
};

struct plan {
    struct phase *phases;
    int32_t phase_count;
    double base_s;         /* once per collective */
    double bytes_per_rank; /* sent by each rank, all phases */
    int64_t channels;      /* SMs of every member, held while the kernel runs */
};

/* How much of the physics to leave out (`simulate.ideal`). */
struct plan_options {
    bool is_latency_free;    /* ideal: latency */
    bool is_contention_free; /* ideal: contention: no SMs, no HBM traffic */
};

/* The group is all of `layout`: a part of the ranks is seen through a view (cluster/group.h). One
   rank or no bytes: an empty plan that takes no time. What the cluster's calibration says comes
   on top of the model (plan_calibrate.h). */
MUST_CHECK enum status plan_build(struct arena *arena, const struct layout *layout,
                                  const struct group *group, enum collective_op op, double bytes,
                                  const struct plan_options *options, struct plan *plan,
                                  struct diag *diag);
/* The model alone, no calibration. */
MUST_CHECK enum status plan_spec_build(struct arena *arena, const struct layout *layout,
                                       const struct group *group, enum collective_op op,
                                       double bytes, const struct plan_options *options,
                                       struct plan *plan, struct diag *diag);

/* The time of a plan alone on an idle machine: the closed form. */
double plan_alone_s(const struct layout *layout, const struct plan *plan);
/* What bounds the phase that carries bytes the longest: index into layout->resources, -1: none. */
int32_t plan_bottleneck(const struct layout *layout, const struct plan *plan);

#endif
