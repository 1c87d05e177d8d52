/*
 * collective/plan.h: (collective, group, bytes, layout) → a plan of phases, without events.
 *
 * How a collective runs is chosen among ring, tree, NVLS, NVLSTree, PAT and the protocols Simple,
 * LL128, LL (choice.h); each has its closed form in its header. A plan is what came out, as phases:
 *
 *   alone: time = base + sum over phases of (latency + bytes / min(cap, link capacity / per_byte))
 *
 * S is the size of nccl-tests: all-gather the gathered output, reduce-scatter the input, all-reduce
 * and broadcast the buffer, all-to-all and send-receive what a rank sends. A phase has `rounds`
 * steps (in total latency_s) and `bytes` that each rank sends; it loads resource r with
 * bytes·loads[r].per_byte per instance. cap_bytes_per_s is the rate that it reaches alone (what
 * software loses), never a lower capacity: two collectives at a time can fill a link.
 *
 * With classes that differ each loads its own resources with the same bytes, so the slowest link
 * bounds all. HBM carries hbm_bytes_per_bus_byte times the bytes.
 *
 * While kernels run on a member, its copy loops share caches and issue slots with them: over the
 * scale-up port a collective then reaches 1/comm_slowdown of its rate. A NIC that bounds it below
 * that bounds it still.
 *
 * Left out: parts that are not a multiple of 16 bytes, which NCCL copies several times slower
 * (pytorch issue 195450): FSDP pads its shards. CollNet (switches of the network that reduce).
 *
 * Example: 404.75 MB, 8 ranks, 400 GB/s, 5 µs a step, no library: 7·5 µs + 354.16 MB / 400 GB/s =
 * 0.9204 ms.
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
    int32_t bottleneck; /* the resource that a ring's share of bounds it, alone; -1: none */
};

struct plan {
    struct phase *phases;
    int32_t phase_count;
    enum collective_algorithm algorithm;
    enum protocol protocol;
    double base_s;         /* once per collective */
    double bytes_per_rank; /* sent by each rank, all phases */
    double bus_bytes;      /* what nccl-tests counts: busbw = bus_bytes / time */
    int64_t channels;      /* SMs of every member, held while the kernel runs */
    int64_t table;      /* of the cluster's calibration that the time comes from, from 1; 0: none */
    double error_sigma; /* of the logarithm of that time, from the table's error bars */
};

/* How much of the physics to leave out (`simulate.ideal`). */
struct plan_options {
    bool is_latency_free;    /* ideal: latency */
    bool is_contention_free; /* ideal: contention: no SMs, no HBM traffic */
    bool is_average;         /* reductions are averages of floats, as of gradients: no NVLS */
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

/* all-gather, reduce-scatter, all-to-all (n − 1)/n of the bytes, all-reduce twice that, the others
   all of them. */
double collective_bus_bytes(enum collective_op op, int64_t ranks, double bytes);
const char *algorithm_name(enum collective_algorithm algorithm); /* "nvlstree" */

/* The time of a plan alone on an idle machine: the closed form. */
double plan_alone_s(const struct layout *layout, const struct plan *plan);
/* What bounds the phase that carries bytes the longest: index into layout->resources, -1: none. */
int32_t plan_bottleneck(const struct layout *layout, const struct plan *plan);

#endif
