/*
 * collective/plan_calibrate.h: what a measured table (cluster/calibration.h) says of a plan.
 *
 * The time of a plan, and of each of its parts, is multiplied by
 *
 *   factor(S) = measured(S) / spec(S)     both at the table's own collective and shape; outside
 *                                         the table's sizes that of the nearest size in it
 *
 * to the power w, so on the table itself (w = 1) the plan takes what was measured, and on a sibling
 * (another collective, other nodes, other GPUs a node) the measured loss goes along with the
 * model's ratio of the two, the less the less alike they are:
 *
 *   w = 1 / (1 + cost / 2)
 *   cost = |log2(nodes ratio)| + 2·|log2(GPUs a node ratio)| + 0.5 (all-gather for reduce-scatter)
 *          or 1.5 (all-reduce for one of these, or the reverse)
 *
 * Latency and rate caps carry the factor; capacities of links never do, so two collectives still
 * share a NIC as before. Where a link of the cluster is slower than what was measured, the plan
 * takes no less than that link does, and a warning says so.
 *
 * Which table: that of least cost, 0 being the same collective and shape.
 *
 * Tables of one host say nothing of several, and the reverse; nor does an all-reduce over exactly
 * 2 hosts of an all-gather or reduce-scatter, unless it ran on rings: a tree over two hosts sends
 * only half of what busbw counts through the NICs (nccl_tests issue 309). Using another than the
 * same is a warning; so is a size outside the table.
 *
 * Tables of more hosts or more GPUs a host than the cluster has are left out, with a warning where
 * one was the nearest: the model has no time there to compare with.
 *
 * Example: measured 120 us at 8 MiB where the model says 100: factor 1.2. A reduce-scatter that the
 * model gives 90 us costs 0.5, w = 0.8: it takes 90 · 1.2^0.8 = 104.1 us.
 */
#ifndef FSDPSIM_COLLECTIVE_PLAN_CALIBRATE_H
#define FSDPSIM_COLLECTIVE_PLAN_CALIBRATE_H

#include "cluster/calibration.h"
#include "collective/plan.h"

/* The table that speaks of (op, nodes, gpus_per_node), NULL: none does. `weight`: w above. */
const struct calibration_table *calibration_find(const struct calibration *calibration,
                                                 enum collective_op op, int64_t nodes,
                                                 int64_t gpus_per_node, double *weight);

/* Applies the calibration of the layout's cluster to a plan that plan_spec_build has made; does
   nothing where the cluster names none, or under `ideal: latency`. */
MUST_CHECK enum status plan_calibrate(struct arena *arena, const struct layout *layout,
                                      const struct group *group, enum collective_op op,
                                      double bytes, const struct plan_options *options,
                                      struct plan *plan, struct diag *diag);

#endif
