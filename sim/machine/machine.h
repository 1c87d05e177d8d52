/*
 * machine/machine.h: plays programs: host threads, streams, events, communicators, activities.
 *
 * Each rank class has a host thread (serial; every issued operation costs it time), FIFO streams
 * and a memory ledger in host order. What runs on the GPU or on the wire is an activity: remaining
 * work, a rate cap and demands on resources shared max-min fairly (maxmin.h).
 *
 * Segment: kernels in a row on a stream. When the stream reaches it, the kernels that the host has
 * issued by then are played as one activity (their sums); if the host is still issuing, the rest
 * follows as it is issued, so a slow host starves the GPU exactly kernel by kernel, and a fast one
 * costs one event a segment. Work is seconds alone; demand SM 1, HBM bytes / seconds alone.
 *
 * Collective: at the head of its stream *and* of its communicator, its kernel starts for that rank
 * class and holds an SM a channel; when the last class of its group has arrived the transfer
 * begins: base + latency of a phase, then its bytes as one activity (`network: flows`). comm time
 * counts the kernel, as a profiler would; the waiting part is also counted apart. Groups of a
 * communicator that are alike are one class of groups and meet once (cluster/group.h); each class
 * of groups has its own turns, rendezvous and activity.
 *
 * `network: messages`: a phase's rounds one after the other, each its latency, then its bytes with
 * one flow for each rate that a link has; a round ends with its slowest flow. Alone that takes as
 * long as `flows`. Beside others it differs, since the wire is free between two rounds, and a link
 * faster than the ring's slowest is used in bursts. Example: two rings on one wire of 1 GB/s, 3
 * rounds of 1 ms and 3 MB each, begun 2 ms apart: as flows they end at 19 and 21 ms, as messages,
 * of which one's bytes fill the other's latency, at 17 and 19. Left out of messages: a rank's next
 * step that begins before all of the ring has done the last one, slices of a step that are
 * forwarded while the rest of it arrives, ranks of one class out of step.
 *
 * Contention: while collectives hold SMs and move bytes, a part of a segment runs at no more than
 * (its time alone) / (its time beside them), kernel by kernel from cluster/contention.h; while
 * kernels run, a ring inside a host runs at no more than 1/comm_slowdown of its rate. On top, two
 * activities that want more of a resource than there is are slowed by the same factor. Example: HBM
 * of 4 GB/s, a kernel that alone uses 3 and a gather that alone uses 2: both run at 4/5.
 *
 * Left out of contention: inside a part of a segment its kernels count on average, not one after
 * the other; kernels of two streams share the SMs as if collectives held none.
 *
 * Memory: each class that is watched plays PyTorch's caching allocator (allocator.h), a pool for
 * each stream, in the order of its host thread; a tensor that other streams use (record_stream), or
 * that an event frees, returns to its pool when the GPU has passed them, as PyTorch sees it at its
 * next request. With limits_memory what the driver can give is the GPU's memory less context and
 * communicators. Where that is used up the host waits until the GPU has done all it was given,
 * gives cached segments back, and tries again: a retry, which costs the host `device_free` and
 * `device_malloc` for each call of the driver and 2 MiB page, as do all requests behind it that
 * reach the driver. (Before the first retry they are warm-up and cost nothing.)
 *
 * Left out of the host: the limit of launches that wait on the GPU (1,024). The host is ahead by
 * that much when it would block, so it never starves the GPU.
 *
 * Computing on the host (offloaded optimizers) takes the host thread as long as
 * cluster/host_compute.h says; what it issues behind comes later by that much.
 *
 * Jitter: kernels, GPUs and collectives whose time is drawn (struct jitter). A collective starts
 * when the last rank of its group arrives, members of a folded class included.
 *
 * The machine knows nothing of breakdowns or tables: observers are told (observe/observe.h).
 */
#ifndef FSDPSIM_MACHINE_MACHINE_H
#define FSDPSIM_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cluster/layout.h"
#include "machine/allocator.h"
#include "schedule/program.h"

enum network_mode { NETWORK_FLOWS, NETWORK_MESSAGES };

/* `simulate.ideal`: losses turned off. */
struct ideal {
    bool host;       /* every host cost is zero */
    bool copies;     /* FSDP's own copy, cast kernels take no time */
    bool contention; /* collectives hold no SMs and use no HBM bandwidth */
    bool optimizer;  /* optimizer and gradient norm take no time */
    bool latency;    /* no base and step latency of collectives, no launch gaps */
};

/* What runs, as a profiler sorts it (Holistic Trace Analysis). */
enum activity_kind {
    ACTIVITY_COMPUTE,
    ACTIVITY_COMMUNICATION,
    ACTIVITY_MEMCPY,
    ACTIVITY_KIND_COUNT
};

/* What begins on a stream: an operation of a step, or of a segment the kernels from `kernel` up to
   before `kernel_end`. */
struct performance {
    const struct op *op;
    int32_t step;
    enum activity_kind kind;
    int32_t kernel, kernel_end; /* of a segment; else 0, 0 */
    const int64_t *sum_ps; /* of a segment: time alone of all kernels before each, and in all */
    int64_t alone_ps;      /* with nothing beside it; a collective's without waiting */
    double copy_frac;
};

/* What the host issues: from begin_ps to end_ps it is busy with the operation; the n kernels of a
   segment are issued at end_ps − (n − 1 … 0) · gap_ps. */
struct issue {
    const struct op *op;
    int32_t step;
    int64_t begin_ps, end_ps, gap_ps;
};

/* Why a stream stood still: its next operation was not issued, the record that it waits for not
   passed, another collective of the communicator not over. */
enum hold { HOLD_HOST, HOLD_EVENT, HOLD_TURN };

struct memory_change {
    int64_t time_ps, step_ps;    /* step_ps: since the host began the step */
    int32_t class_idx, step;     /* step of the program; -1: prologue */
    int32_t change;              /* its place among the changes of the step; -1: timed */
    const struct op *op;         /* what made it, in the program */
    const struct tensor *tensor; /* of op */
    int64_t delta_bytes;         /* each piece rounded up to 512 B */
    int64_t reserved_bytes;      /* by the caching allocator, now */
};

/* When the host comes to a change of memory that is known: for who knows a program's changes and
   needs not be told of all again. Not in programs with timed frees, not with limited memory. */
struct change_time {
    int32_t class_idx, step, change;
    int64_t step_ps; /* out: as of memory_change */
};

struct memory_retry {
    int64_t begin_ps, end_ps; /* the host waited for the GPU, then for the driver */
    int32_t class_idx, step;
    const struct op *op; /* OP_ALLOC */
    int64_t freed_bytes; /* given back */
};

/*
 * Pointers are const: an observer only looks. `class_idx` is the rank class. All may be NULL. Told
 * in simulated-time order, except memory_changed: in the order of the class's host thread, which
 * may be ahead (programs with timed frees, OP_FREE_AFTER or OP_RECORD_STREAM: in time order as
 * well).
 */
struct observer {
    void *context;
    /* A GPU activity of a class starts or stops running at now. A segment may run in several parts,
       when the host starves it; one that takes no time is not told. `copy_frac`: the share of this
       part's time alone that is FSDP's own copies (0…1). */
    void (*activity_begin)(void *context, int64_t now_ps, int32_t class_idx,
                           enum activity_kind kind, const struct op *op, double copy_frac);
    void (*activity_end)(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                         const struct op *op, double copy_frac);
    /* A collective's transfer begins (all have arrived): until then the class's kernel waited. */
    void (*transfer_begin)(void *context, int64_t now_ps, int32_t class_idx, const struct op *op);
    /* An activity that used a resource ended: `amount` went through one instance, and some activity
       had used it for busy_ps until now without a pause (0 while another still does). */
    void (*resource_used)(void *context, int64_t now_ps, int32_t resource, double amount,
                          int64_t busy_ps);
    /* The class's host executed an allocation or free, or a timed free happened. Classes that play
       the same program without timed frees on the same kind of GPU hold the same: the first of them
       is told. */
    void (*memory_changed)(void *context, const struct memory_change *change);
    /* The driver had no more memory; cached segments were given back. */
    void (*memory_retried)(void *context, const struct memory_retry *retry);
    void (*mark_reached)(void *context, int64_t now_ps, int32_t class_idx, int32_t step,
                         enum mark mark);
    /* With activity_begin, and told of all that it is. Of a group's members the last to arrive is
       told last, then the transfer. */
    void (*performance_begin)(void *context, int64_t now_ps, int32_t class_idx,
                              const struct performance *performance);
    /* A stream that stood still before `op` from since_ps to now goes on: stream `by` passed the
       record or ended the collective (HOLD_HOST: -1). What stands still for no time is not told. */
    void (*stream_held)(void *context, int64_t since_ps, int64_t now_ps, int32_t class_idx,
                        int32_t stream, const struct op *op, enum hold hold, int32_t by);
    /* The host enters an epoch now; it stood still since since_ps until stream `by` passed a record
       (by -1: it did not stand still). Told before the issues of the epoch. */
    void (*host_enters)(void *context, int64_t since_ps, int64_t now_ps, int32_t class_idx,
                        int32_t by);
    /* In the order of the host thread, which may be ahead. */
    void (*host_issues)(void *context, int32_t class_idx, const struct issue *issue);
};

/*
 * `simulate.jitter`: times that differ from rank to rank and from time to time. Factors are
 * lognormal with mean 1, exp(sigma z - sigma^2/2); all 0: none. How it is drawn, and what folded
 * classes do: machine_jitter.c.
 */
struct jitter {
    double kernel_sigma;  /* of each segment of kernels, on each rank, each time */
    double rank_sigma;    /* of a GPU's speed, the same all along */
    double network_sigma; /* of each collective */
    double straggler_probability, straggler_slowdown; /* of a rank in a step */
    bool draws_knowledge; /* one more factor for all that comes from one calibrated table */
    uint64_t seed;
    uint32_t sample;
};

/* Programs as earlier plays laid them out (machine_tape.c), found by all that this follows from.
   Give the same one to every play of a program: what it keeps lives in `arena`, as long as it. */
struct score_shelf {
    struct arena *arena;
    struct shelved_score *first;
};

struct machine_setup {
    const struct layout *layout;
    /* One program per rank class, or one for all (program_count 1). */
    const struct program *const *programs;
    int32_t program_count;
    enum network_mode network;
    struct ideal ideal;
    struct allocator_settings allocator;
    bool limits_memory; /* to that of each GPU; otherwise it is unlimited */
    /* Time of the network's kernels as a multiple: by rank class, then microbatch of a step, so
       many each; NULL: 1. */
    const double *microbatch_costs;
    double batch_s; /* of a data loader for each OP_LOAD */
    int32_t microbatch_count;
    const struct jitter *jitter; /* NULL: none */
    int32_t steps;               /* all steps played, warm-up included; 0: the prologue only */
    uint64_t tie_seed;           /* 0 in real runs */
    const struct observer *observers;
    int32_t observer_count;
    struct score_shelf *scores;       /* NULL: nothing is kept */
    struct change_time *change_times; /* filled when all is played */
    int32_t change_time_count;
};

struct machine_result {
    int64_t end_ps;
    uint64_t fingerprint;
    int64_t events;        /* dispatched */
    bool is_out_of_memory; /* with limits_memory: stopped where no retry helped */
};

/* How long it takes when every rank copies so many bytes at once and nothing else runs; NaN: the
   cluster does not say (its PCIe; for pageable memory its processor). */
double machine_copies_alone_s(const struct layout *layout, enum copy_kind kind, double bytes);

/* STATUS_INPUT with a message when the program cannot be played to its end (a deadlock: which class
   waits for what); STATUS_OK otherwise. Everything it allocates lives in `arena`. */
MUST_CHECK enum status machine_play(struct arena *arena, const struct machine_setup *setup,
                                    struct machine_result *result, struct diag *diag);

#endif
