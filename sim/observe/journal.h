/*
 * observe/journal.h: what every stream and host thread did and why it stood still, written down as
 * the machine tells it: for the timeline (report/trace.h) and the critical path (critical.h).
 *
 * The entries of a stream follow each other without a gap from time 0: it runs something, or it is
 * held. So at any instant the entry that ends there says what the stream waited for, and `by`
 * where that is written. Example, a stream of 25 ms of compute whose gather takes 10 ms:
 *
 *     gather   0 … 10 ms  all_gather(0)      10 … 20 ms  all_gather(1)
 *     compute  0 … 10 ms  held, HOLD_EVENT, by {gather stream, entry 1}     10 … 35 ms  forward(0)
 *
 * Entries: one an activity or hold, some tens of a unit and step; kernels are not expanded here, so
 * memory grows with units × steps × classes, not with kernels. Only a run that asks for it has one.
 */
#ifndef FSDPSIM_OBSERVE_JOURNAL_H
#define FSDPSIM_OBSERVE_JOURNAL_H

#include "machine/machine.h"

/* Before entry `entry` of a stream. */
struct journal_place {
    int32_t class_idx, stream, entry;
};

struct journal_entry {
    int64_t begin_ps, end_ps;
    bool is_held;
    /* Held: before what; why; by: past what ended there (HOLD_HOST: nothing). */
    const struct op *op;
    enum hold hold;
    /* Not held. A collective's transfer begins when all have arrived; by: before the collective of
       the class that arrived last. */
    struct performance performance;
    int64_t transfer_ps;
    struct journal_place by;
};

struct journal_stream {
    struct journal_entry *items;
    int32_t count, capacity;
};

/* The host enters an epoch: it goes on at now, and stood still since since_ps until `by`. */
struct journal_host_entry {
    int64_t since_ps, now_ps;
    bool is_held;
    struct journal_place by;
    int32_t first_issue;
};

struct journal_mark {
    int64_t now_ps;
    int32_t step;
    enum mark mark;
    int32_t stream, entry; /* where it stands on its stream */
};

struct journal_memory {
    int64_t time_ps;
    const struct tensor *tensor;
    int64_t delta_bytes;
    int64_t reserved_bytes; /* by the allocator, then */
};

/* The allocator's host waits for the GPU, then for the driver (memory_retry). */
struct journal_retry {
    int64_t begin_ps, end_ps;
};

struct journal_class {
    const struct program *program;
    struct journal_stream *streams;
    struct {
        struct journal_host_entry *items;
        int32_t count, capacity;
    } host;
    struct {
        struct issue *items;
        int32_t count, capacity;
    } issues;
    struct {
        struct journal_mark *items;
        int32_t count, capacity;
    } marks;
    struct {
        struct journal_memory *items;
        int32_t count, capacity;
    } memory;
    struct {
        struct journal_retry *items;
        int32_t count, capacity;
    } retries;
    int64_t opened_ps, closed_ps; /* the reported steps; after journal_close */
};

struct journal {
    struct arena *arena;
    const struct layout *layout;
    int32_t warmup, steps; /* of which the latter are reported */
    struct journal_class *classes;
    int32_t class_count;
    struct journal_place last_arrival; /* at a collective */
};

/* As facts_new. */
struct journal *journal_new(struct arena *arena, const struct layout *layout,
                            const struct program *const *programs, int32_t program_count,
                            int32_t warmup, int32_t steps);
struct observer journal_observer(struct journal *journal);
/* After playing. */
void journal_close(struct journal *journal);

/* The mark of a step, NULL: not reached. Of several microbatches the last one's. */
const struct journal_mark *journal_find_mark(const struct journal_class *class, int32_t step,
                                             enum mark mark);

#endif
