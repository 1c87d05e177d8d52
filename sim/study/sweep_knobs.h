/*
 * study/sweep_knobs.h: points of a sweep that are no product of values: many keys at once.
 *
 *   sobol     K points, the k-th of each key from the k-th point of Sobol's sequence
 *             (numeric/sobol.h): u in [0, 1) becomes
 *                 low:high        low + u (high - low), low (high/low)^u where high >= 10 low > 0;
 *                                 a whole number where both ends are whole
 *                 low:high:step   one of low, low + step, …
 *                 v1, v2, …       the floor(u n)-th of n
 *   one by one  a base, and each key alone at each of its values, the others at the base, which is
 *             what the file says: low:high stands for its two ends
 *
 * Example: -s nodes=1:4 -s cluster.host.nics.bandwidth=25Gbps:400Gbps, two points: nodes 3 and 4,
 * 100Gbps and 50Gbps (u = (1/2, 1/2), (3/4, 1/4)). One by one there are five: the base, nodes 1 and
 * 4, 25 and 400 Gb/s.
 *
 * Left out: keys that go together (a NIC and its price); ends that a key cannot have are points
 * that are invalid, as anywhere in a sweep.
 */
#ifndef FSDPSIM_STUDY_SWEEP_KNOBS_H
#define FSDPSIM_STUDY_SWEEP_KNOBS_H

#include "study/sweep_plan.h"

/* Whether a text reads as low:high. */
bool knob_is_span(const char *text);
/* Takes low:high as the span of the axis. */
MUST_CHECK enum status knob_read(struct sweep_plan *plan, struct sweep_axis *axis, const char *text,
                                 struct place place);
/* All axes are read: gives each its values, and the plan its number of points. */
MUST_CHECK enum status knobs_sobol(struct sweep_plan *plan, int64_t count);
MUST_CHECK enum status knobs_one_by_one(struct sweep_plan *plan);

#endif
