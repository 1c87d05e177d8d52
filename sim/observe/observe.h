/*
 * observe/observe.h: observers that turn what the machine tells into facts.
 *
 * The reported time of a class runs from the MARK_STEP_END of its last warm-up step (without
 * warm-up: from the MARK_STEP_BEGIN of its first step) to its last MARK_STEP_END, so the host's gap
 * between steps counts. Memory is watched from the prologue on.
 *
 * breakdown: per rank class, interval unions (never sums of durations):
 *   step = compute + exposed_comm + idle, comm = union of collective kernels, comm_wait the part of
 *   it in which a kernel waited for other ranks, copy the part of compute that is FSDP's own
 * copies, memcpy the part of idle in which only memory copies run. Example: a gather runs 0-10,
 * kernels 4-30, the step ends at 32: compute 26, comm 10, exposed 4, idle 2. ledger: per rank
 * class, active bytes in host order, peak and its composition by category and by unit, where in the
 * step; what the caching allocator reserved at most, and its retries. Of classes that hold the same
 * (machine.h) the first. units: per unit, compute / all-gather / reduce-scatter time and how
 * long communication was exposed. links: bytes and busy time of each resource class, in the
 * reported time of class 0.
 */
#ifndef FSDPSIM_OBSERVE_OBSERVE_H
#define FSDPSIM_OBSERVE_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "machine/machine.h"

struct breakdown {   /* of one class, picoseconds, summed over the reported steps */
    int64_t step_ps; /* period: end of step to end of step, summed */
    int64_t compute_ps, comm_ps, comm_wait_ps, copy_ps, exposed_ps, idle_ps, memcpy_ps;
    int64_t data_wait_ps; /* part of idle: the host waits for a batch, nothing at all runs */
    int64_t forward_ps, backward_ps, optimizer_ps; /* between marks of the step */
};

struct unit_facts { /* of one class, per reported step on average is the caller's division */
    int64_t forward_ps, backward_ps;          /* its segments running (sum), by phase of the step */
    int64_t all_gather_ps, reduce_scatter_ps; /* its collective kernels running (sum) */
    int64_t exposed_ps; /* part of its collectives' time in which no compute ran */
    int64_t all_gather_count, reduce_scatter_count;
    double all_gather_bytes, reduce_scatter_bytes;
};

struct memory_peak {
    int64_t active_bytes, by_category[MEMORY_CATEGORY_COUNT];
    int64_t *by_unit;            /* by unit, the last one: of no unit */
    const struct op *op;         /* the allocation that made the peak; NULL: held from the beginning
                                    of the step */
    const struct tensor *tensor; /* of op */
    int64_t step_ps;             /* since the host began the step */
    int32_t step, change;        /* of op, as of memory_change */
};

struct memory_facts {        /* of one class */
    struct memory_peak peak; /* steady: steps 1, 2, …; of the only step when one is played */
    struct memory_peak first_peak; /* prologue and first step */
    int64_t peak_reserved_bytes, first_peak_reserved_bytes;
    int64_t retry_count, retry_ps; /* in the reported steps; ps: of the host */
};

struct resource_facts {
    double amount;   /* through one instance, reported steps */
    int64_t busy_ps; /* some activity used it */
};

struct facts;

/* The first `warmup` steps are watched for memory but not for time; `steps` follow that are
   reported: the machine plays warmup + steps. One program for all classes (program_count 1), or one
   each. */
struct facts *facts_new(struct arena *arena, const struct layout *layout,
                        const struct program *const *programs, int32_t program_count,
                        int32_t warmup, int32_t steps);
/* The observer to give to the machine. */
struct observer facts_observer(struct facts *facts);
/* What a class holds is known from elsewhere, whatever the machine tells. */
void facts_know_memory(struct facts *facts, int32_t class_idx, const struct memory_facts *memory);
/* After playing. */
void facts_close(struct facts *facts);

const struct breakdown *facts_breakdown(const struct facts *facts, int32_t class_idx);
const struct unit_facts *facts_unit(const struct facts *facts, int32_t class_idx, int32_t unit);
const struct memory_facts *facts_memory(const struct facts *facts, int32_t class_idx);
const struct resource_facts *facts_resource(const struct facts *facts, int32_t resource);

#endif
