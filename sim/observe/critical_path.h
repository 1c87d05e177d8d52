/*
 * observe/critical_path.h: what the step waited for: the critical path, found in a journal.
 *
 * From the end of the last reported step backwards: the entry of the stream that ends there is
 * either an activity, which the path then follows to its begin, or a hold, from which the path
 * jumps to what ended it: the stream that passed the record, the collective before on the
 * communicator, the host. At a collective it jumps to the class that arrived last, where the
 * transfer begins. The host is followed to the begin of its epoch and from there to what it stood
 * still for. So the path is without a gap, and
 *
 *     Σ over causes and units = length of the reported steps, to the picosecond.
 *
 * An activity that took longer than alone is split: its time alone under its own cause, the rest
 * under contention (kernels) or sharing (collectives, copies).
 *
 * Example, units-3 (gather, scatter 10 ms, forward 25, backward 50): gather(0) 10, forward 3 · 25,
 * backward 3 · 50, scatter(0) 10: compute 225, all-gather 10, reduce-scatter 10 of 245 ms.
 *
 * Waits: when the compute stream stood still, for whom (of which unit and phase is what comes
 * next), for what, and why that was late. Σ waits + its activities = length, too.
 *
 * Ties: what ends in the instant in which it is waited for was not waited for, and is not on the
 * path unless the stream itself ran it.
 *
 * Left out: slack of what is not on the path; that a shorter path may uncover another (the settings
 * tried by simulation, study/advice.h, say what really helps).
 */
#ifndef FSDPSIM_OBSERVE_CRITICAL_PATH_H
#define FSDPSIM_OBSERVE_CRITICAL_PATH_H

#include "observe/journal.h"

enum path_cause {
    PATH_COMPUTE,    /* kernels, as long as they take alone */
    PATH_FSDP_COPY,  /* FSDP's own copy and cast kernels, the same */
    PATH_CONTENTION, /* what kernels took longer: beside collectives, for memory bandwidth */
    PATH_ALL_GATHER, /* collectives, as long as they take alone */
    PATH_REDUCE_SCATTER,
    PATH_ALL_REDUCE,
    PATH_OTHER_COLLECTIVE, /* send, receive too */
    PATH_SHARING,          /* what collectives and copies took longer: shared links, kernels */
    PATH_MEMCPY,           /* between host and device, as long as they take alone */
    PATH_HOST,             /* the host thread: issues, hooks, Python */
    PATH_HOST_COMPUTE,     /* … computes: an optimizer on the host */
    PATH_RETRY, /* … waits for the GPU and the driver: the allocator ran out of memory */
    PATH_CAUSE_COUNT
};
const char *path_cause_name(enum path_cause cause); /* "all_gather": keys of JSON */

enum path_phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_COUNT };
const char *path_phase_name(enum path_phase phase); /* "forward" */

/* Why what was waited for was late. */
enum path_late {
    LATE_LONG,       /* it was not: it began as soon as its stream was free at the window's begin */
    LATE_HOST,       /* the host issued it late */
    LATE_EVENT,      /* it waited for another stream's work */
    LATE_TURN,       /* … for the collective before on its communicator */
    LATE_STREAM,     /* … for what ran before on its stream */
    LATE_RENDEZVOUS, /* … for another class of ranks */
    LATE_COUNT
};
const char *path_late_name(enum path_late late); /* "communicator order" */

struct path_share { /* of the path */
    enum path_cause cause;
    int32_t unit; /* -1: none */
    int64_t ps;
};

struct path_wait { /* of the compute stream; equal ones are added up */
    int32_t unit;  /* that waited; -1: none */
    enum path_phase phase;
    enum path_cause for_cause;
    int32_t for_unit;
    enum path_late late;
    enum path_cause late_cause; /* LATE_EVENT, LATE_TURN, LATE_STREAM */
    int32_t late_unit;
    int64_t late_rank; /* LATE_RENDEZVOUS: the lowest of the class, else -1 */
    int64_t count;
    int64_t ps;
};

struct critical_path {
    int32_t class_idx;
    const struct program *program;
    int64_t length_ps;
    int64_t by_cause_ps[PATH_CAUSE_COUNT];
    int64_t elsewhere_ps; /* of it on other classes */
    struct {
        struct path_share *items; /* the largest first */
        int32_t count, capacity;
    } shares;
    struct {
        struct path_wait *items; /* the same */
        int32_t count, capacity;
    } waits;
    int64_t held_ps; /* Σ of them */
};

/* Of a closed journal, for the steps that it reports; lives in `arena`. */
struct critical_path *critical_path_find(struct arena *arena, const struct journal *journal,
                                         int32_t class_idx);

#endif
