/*
 * machine/machine_private.h: the parts of a machine at work.
 *
 * Without host waits the host's timeline does not depend on the GPU, so nothing is queued: a
 * program is laid out once as *tapes* (prologue, first step, second step, later steps): for each
 * stream its operations in order, each with the time at which the host has issued it, counted from
 * the start of its *epoch*. A new epoch begins with each tape and behind each OP_HOST_WAIT. At
 * play, a rank class keeps when each epoch began, and each stream a place on its tape: memory does
 * not grow with how far the host runs ahead, and all classes share the tapes.
 *
 * Events (record, wait) are bound when the tape is laid out: every RECORD is a *site*, a class
 * keeps the last step in which each site was passed (sites are passed in step order), and a WAIT
 * names site and step. A RECORD may be passed and a WAIT looked at before the host has issued them:
 * what follows a WAIT on its stream is issued later than both, and starts no earlier than that.
 *
 * Instants: completions and wake-ups push streams on a stack that is drained after each event.
 * Activities begun and contention changed in an instant enter the solver at its end, in a fixed
 * order, so that the order of ties cannot change a rate.
 */
#ifndef FSDPSIM_MACHINE_MACHINE_PRIVATE_H
#define FSDPSIM_MACHINE_MACHINE_PRIVATE_H

#include "base/philox.h"
#include "engine/engine.h"
#include "machine/machine.h"
#include "machine/maxmin.h"

enum { MACHINE_MAX_STREAMS = 31, STEP_NEVER = INT32_MIN, STEP_PROLOGUE = -1 };

enum machine_event {
    EVENT_START,
    EVENT_HOST,            /* a host thread has issued all of its epoch */
    EVENT_WAKE,            /* the next operation of a sleeping stream is issued now */
    EVENT_STREAM_ACTIVITY, /* a stream's kernels or copy are done */
    EVENT_COMM_DELAY,      /* a collective's latency has passed */
    EVENT_COMM_ACTIVITY,   /* a collective's bytes have arrived */
    EVENT_MEMORY,          /* the host's next allocation or free, in programs with timed frees */
};

/* The site and step of a RECORD: `step` counts back from the reader's when is_relative. */
struct binding {
    int32_t site; /* -1: nothing to wait for */
    int32_t step;
    bool is_relative;
};

static inline int32_t binding_step(struct binding binding, int32_t step)
{
    return binding.is_relative ? step - binding.step : binding.step;
}

enum tape_kind {
    TAPE_SEGMENT,
    TAPE_COLLECTIVE,
    TAPE_TRANSFER,
    TAPE_COPY,
    TAPE_LOAD,
    TAPE_RECORD,
    TAPE_WAIT,
    TAPE_MARK,
    TAPE_RELEASE, /* a freed tensor's last use on another stream (record_stream) */
};

struct tape_op {
    const struct op *op;
    int64_t issue_ps; /* since the epoch began; segment: its last kernel */
    int32_t epoch;    /* of the tape */
    int32_t site;     /* RECORD, WAIT; RELEASE: of stream 0 */
    int32_t value; /* WAIT: binding step; COLLECTIVE, TRANSFER: its turn in its queue in the tape;
                      RELEASE: the streams that must pass, a bit each */
    uint8_t kind;
    bool is_relative; /* WAIT: of the binding */
};

struct tape_ops {
    struct tape_op *items;
    int32_t count, capacity;
};

struct tape_memory {
    const struct op *op;
    int64_t issue_ps;
    int32_t epoch;
    bool is_free;
    struct binding after; /* the change waits for this record */
};

struct tape_issue { /* for an observer: what the host is busy with, since the epoch began */
    const struct op *op;
    int64_t begin_ps, end_ps, gap_ps;
};

struct tape_epoch {
    int64_t length_ps;
    struct binding until; /* the host wait at its end */
    int32_t memory_end;   /* memory changes up to this one belong to it and to earlier epochs */
    int32_t issue_end;    /* the same of issues */
};

struct tape {
    struct tape_ops *streams;
    struct {
        struct tape_memory *items;
        int32_t count, capacity;
    } memory;
    struct {
        struct tape_issue *items; /* only where is_host_watched */
        int32_t count, capacity;
    } issues;
    struct {
        struct tape_epoch *items;
        int32_t count, capacity;
    } epochs;
    int64_t *turn_counts; /* by queue (op_queue) */
};

enum tape_idx { TAPE_PROLOGUE, TAPE_FIRST, TAPE_SECOND, TAPE_LATER, TAPE_COUNT };

/* What one activity of a phase moves over. */
struct flow {
    double weight, cap, cap_beside; /* beside: while kernels run */
    struct demand *demands;
    int32_t demand_count;
};

struct flow_phase {
    int64_t rounds;
    double latency_s, bytes;
    struct flow *flows; /* each moves the bytes; network: flows has one */
    int32_t flow_count;
};

struct flow_plan {
    struct flow_phase *phases;
    int32_t phase_count;
    double base_s, alone_s;
    int64_t channels;
    int64_t hbm_percent; /* of the memory bandwidth, on average while it is under way */
    int64_t table;       /* of the calibration that its time comes from, from 1; 0: none */
    double error_sigma;  /* how well that is known */
};

/* How a tensor is allocated. */
struct tensor_shape {
    struct tensor_part whole; /* where the tensor has no parts of its own */
    const struct tensor_part *parts;
    int32_t part_count, piece_count;
    int64_t rounded_bytes; /* in all, each piece rounded up to 512 B */
};

/* A program made ready: shared by all classes that play it. */
struct score {
    const struct program *program;
    int32_t idx;
    struct tape tapes[TAPE_COUNT];
    struct tensor_shape *shapes; /* by tensor */
    int32_t site_count;
    bool is_laid_out, has_timed_frees;
    bool has_copies[COPY_KIND_COUNT];
    bool *has_sends; /* by channel (transfer_channel) */
};

/* Kernels of a segment on one GPU variant; arrays of kernel_count + 1 sums. */
struct segment_times {
    int32_t kernel_count;
    int64_t *sum_ps, *copy_sum_ps;
    double *sum_bytes;
    bool *is_memory_bound; /* by kernel */
    int64_t issue_gap_ps;  /* host time from kernel to kernel */
    /* From each kernel on, the first that needs all SMs (kernel_count: none); NULL: none at all. */
    const int32_t *next_full;
    int32_t sm_margin; /* that it leaves to others */
    /* Begun this long after its first kernel is issued, or later, the segment never starves. */
    int64_t lead_ps;
};

/* Seconds that a segment loses to collectives: sums over its kernels, kernel_count + 1. */
struct lost {
    double *sum_s; /* NULL: not needed yet */
};

/* What collectives take from the kernels of a class. */
struct level {
    int64_t sms_held;
    int64_t hbm_percent; /* of the memory bandwidth, used by transfers */
    struct lost *lost;   /* by segment */
    struct level *next;
};

struct pace {
    const struct score *score;
    const struct gpu *gpu;
    double clock_frac;
    struct segment_times *segments;
    struct level *levels; /* met so far */
};

struct activity {
    struct event event;
    double work, work_left;
    double stretch;           /* the work takes so many times as long as it does alone */
    double weight, cap, rate; /* cap: alone */
    bool is_running;          /* in the solver */
    int64_t updated_ps;       /* work_left as of then */
    const struct demand *demands;
    int32_t demand_count;
    int32_t solver_id;
    int32_t order; /* among activities that begin in one instant */
};

enum lane_state {
    LANE_READY,
    LANE_BUSY,        /* an activity runs */
    LANE_SLEEPS,      /* until the host has issued the next operation */
    LANE_AWAITS_HOST, /* which has not entered the epoch */
    LANE_AWAITS_EVENT,
    LANE_AWAITS_TURN, /* of its communicator */
    LANE_AWAITS_SMS,  /* that collectives hold, for a kernel that needs all of them */
    LANE_IN_COLLECTIVE,
    LANE_DONE,
};

struct class_state;
struct comm_state;
struct comm_seat;

/* A stream of one rank class. */
struct lane {
    struct class_state *class;
    int32_t idx;
    enum lane_state state;
    bool is_pushed;
    int32_t step;
    const struct tape_op *at, *end; /* on the tape of `step` */
    int64_t first_epoch;            /* of that tape */
    int32_t kernel, batch_end;      /* in a segment */
    bool has_sms;                   /* the kernel that waited for all SMs may begin */
    double copy_frac;
    int64_t held_since_ps;        /* not ready since then */
    struct comm_state *comm;      /* of the collective at which it waits or takes part */
    const struct flow_plan *plan; /* … in which it takes part */
    struct event wake;
    struct activity activity;
    struct demand demands[2]; /* of a segment */
    /* Jitter (machine_jitter.c): NULL without. */
    int64_t *members_ps; /* by member of the class, from [1] on: when it stands here */
    double *factors;     /* by member: of the segment `factors_of` in `factors_step` */
    const struct tape_op *factors_of;
    int32_t factors_step;
    int64_t begun_ps;    /* what it does now */
    double done_s;       /* work of segments that ended */
    int64_t computed_ps; /* a collective: for how long its class had computed when it arrived … */
    double computed_s;   /* … and how much */
    double held_frac, moved_frac; /* what kernels lose beside one that waits, moves bytes */
};

struct pending_free {
    const struct op *op;
    struct binding after; /* absolute */
    int32_t step;
    struct pending_free *next;
};

/* A tensor allocated, and not freed yet: several when it is allocated again before. */
struct memory_instance {
    struct memory_block **blocks; /* by piece */
    int32_t count;                /* of them there so far */
    struct memory_instance *next;
};

struct tensor_memory {
    struct memory_instance *first, *last, *spare;
    int32_t owed_frees; /* that were due in the instant of the allocation, but before it */
};

/* The caching allocator of a class at work. */
struct class_memory {
    struct allocator allocator;
    struct tensor_memory *tensors;
    bool has_retried;
};

/* What a copy of one kind loads, by the byte. */
struct copy_path {
    double rate; /* alone */
    struct demand *demands;
    int32_t demand_count;
};

struct class_state {
    const struct rank_class *rank_class;
    int32_t idx;
    const struct score *score;
    struct pace *pace;
    struct lane *lanes;
    int32_t lane_count;
    int32_t *passed_step; /* by site */
    struct {
        int64_t *items; /* when each epoch began */
        int32_t count, capacity;
    } epoch_start_ps;
    struct event host; /* end of the epoch */
    int32_t host_step, host_epoch;
    bool is_host_blocked, is_host_done;
    int64_t host_blocked_since_ps;
    struct class_memory *held; /* NULL: nobody asks */
    int32_t change;            /* of the epoch's that are played at once; -1: not so */
    struct crowd *crowd;       /* its members; NULL: without jitter all are the same */
    /* Memory in programs with timed frees. */
    struct event memory;
    int32_t memory_step, memory_idx;
    bool is_memory_due;
    struct pending_free *pending, *free_list;
    /* With limited memory: changes of the host's tape that are made, and why it does not go on. */
    int32_t settled_count;
    bool is_settling;      /* the driver works */
    bool is_synchronising; /* until the GPU has done all it was given */
    int64_t synchronising_ps;
    const struct comm_seat *seats; /* by communicator */
    struct copy_path copies[COPY_KIND_COUNT];
    int32_t computing_count; /* segments that run */
    int64_t computed_ps;     /* for how long some did; less the time at which it began again */
    int64_t sms_held;        /* by collectives */
    int64_t moving_percent;  /* of the GPU's memory bandwidth, by transfers */
    struct level *level;     /* as the solver knows it; NULL: none */
    bool is_level_listed;
};

/* What members must agree in. */
struct meeting_call {
    const char *name;
    double bytes;
};

enum comm_stage { COMM_IDLE, COMM_GATHER, COMM_DELAY, COMM_BYTES, COMM_PIECE_DONE };

/* A flow of a collective under way. */
struct comm_flow {
    struct activity activity;
    struct comm_state *comm;
    const struct flow *flow;
};

/* A meeting: one class of a communicator's groups, which do the same at the same time, or the pairs
   of two classes that send and receive. */
struct comm_state {
    int32_t communicator;
    bool is_pair;
    const struct group_class *group; /* NULL: a pair */
    struct flow_plan **plans; /* by score, then by collective or transfer; NULL: no member's */
    int64_t done_count;
    int32_t arrived, seat_count;
    struct lane **members;    /* by seat: one for each rank class of the group; sender, receiver */
    struct meeting_call call; /* of the first to arrive */
    const struct flow_plan *plan;
    enum comm_stage stage;
    struct gathering *gathering; /* of members; NULL: without jitter, of pairs */
    double stretch;              /* this one takes so many times as long */
    int32_t phase;
    int64_t round;
    struct event delay;
    struct comm_flow *flows;
    int32_t flow_max, flows_left;
    int32_t computing_count; /* members that run kernels */
    bool is_computing;       /* as the solver knows it */
    bool is_listed;          /* of which it may have to be told otherwise */
};

struct comm_seat {
    struct comm_state *comm;
    int32_t seat;
};

struct resource_use {
    int32_t active;
    int64_t since_ps;
};

struct machine {
    struct arena *arena;
    const struct machine_setup *setup;
    struct diag *diag;
    struct engine engine;
    struct maxmin *solver;
    struct class_state *classes;
    int32_t class_count;
    struct comm_state *comms;
    int32_t comm_count, communicator_count;
    struct comm_seat *seats;      /* by class, then communicator */
    struct comm_seat *pair_seats; /* pair_seat */
    bool has_pairs;
    struct score **scores; /* distinct programs */
    int32_t score_count;
    struct pace *paces;
    int32_t pace_count;
    struct lane **ready;
    int32_t ready_count;
    struct activity **starting, **by_solver_id;
    int32_t starting_count;
    /* Changed in this instant: */
    struct class_state **level_list, **memory_list;
    int32_t level_count, memory_count;
    struct comm_state **computing_list;
    int32_t computing_count;
    struct resource_use *uses; /* NULL: nobody asks */
    bool is_memory_watched, is_host_watched, are_holds_watched;
    int32_t synchronising_count; /* classes */
    bool is_out_of_memory;
    bool has_failed;
    struct event start;
};

/* machine_tape.c */
void score_lay_out(struct machine *machine, struct score *score);
/* As an earlier play laid it out; false: none did. */
bool score_recall(const struct machine *machine, const struct program *program,
                  struct score *score);
static inline enum tape_idx tape_of_step(int32_t step)
{
    return step < 0 ? TAPE_PROLOGUE : step < 2 ? (enum tape_idx)(TAPE_FIRST + step) : TAPE_LATER;
}
/* Epochs before `step`; turns in a queue before it. */
int64_t score_epochs_before(const struct score *score, int32_t step);
int64_t score_turns_before(const struct score *score, int32_t step, int32_t queue);

/* machine_setup.c */
MUST_CHECK enum status machine_set_up(struct machine *machine);
struct score *score_find(const struct machine *machine, const struct program *program);

/* machine_host.c */
void host_start(struct machine *machine, struct class_state *class);
/* Its next epochs, from the one it stands at; `by`: the stream it waited for, -1: none. */
void host_run(struct machine *machine, struct class_state *class, int32_t by);
const struct tape *host_tape(const struct class_state *class);
bool is_passed(const struct class_state *class, struct binding binding, int32_t step);
void host_epoch_ended(struct machine *machine, struct class_state *class);
/* Stream `by` passed a RECORD: wakes who waits for it, returns memory. */
void class_record_passed(struct machine *machine, struct class_state *class, int32_t by,
                         int32_t site, int32_t step);

/* machine_memory.c */
void shapes_set_up(struct arena *arena, struct score *score);
void class_memory_set_up(struct machine *machine, struct class_state *class);
/* Changes of the host's epoch, all at once, each with its own time. */
void epoch_play_memory(struct machine *machine, struct class_state *class);
void change_times_fill(struct machine *machine);
/* The tensor of op is free now. */
void memory_free(struct machine *machine, struct class_state *class, int64_t time_ps, int32_t step,
                 const struct op *op);
/* True when it is done; false: the limit is reached, and it may be tried again. */
bool memory_allocate(struct machine *machine, struct class_state *class, int64_t time_ps,
                     int32_t step, const struct op *op);
/* Frees at once, or when the record has been passed. */
void memory_free_after(struct machine *machine, struct class_state *class, int64_t time_ps,
                       int32_t step, const struct tape_memory *item);
void pending_frees_check(struct machine *machine, struct class_state *class);
void memory_list_due(struct machine *machine, struct class_state *class);
void memory_play_due(struct machine *machine);

/* machine_retry.c */
/* Makes the changes of the epoch that the host is to enter; false: it does not enter it yet. */
bool memory_settle(struct machine *machine, struct class_state *class);
/* Hosts that wait for an idle GPU go on where theirs is. */
void memory_retry_idle(struct machine *machine);

/* machine_lane.c */
/* To be run when the current event is done; nothing when the lane has ended. */
void lane_push(struct machine *machine, struct lane *lane);
/* The same for one that stands still: `by` ended that, a stream (-1: the host). */
void lane_release(struct machine *machine, struct lane *lane, enum hold hold, int32_t by);
void lanes_drain(struct machine *machine);
void lane_enter_tape(struct machine *machine, struct lane *lane, int32_t step);
void lane_advance(struct machine *machine, struct lane *lane);
void lane_activity_ended(struct machine *machine, struct lane *lane);
/* When the host issues (has issued) the operation at which the stream is. */
int64_t lane_issue_ps(const struct lane *lane);
/* Collectives gave SMs back: kernels of the class that need all of them may begin. */
void lanes_give_sms(struct machine *machine, struct class_state *class, int32_t by);
void lane_sleep(struct machine *machine, struct lane *lane, int64_t until_ps);

void lane_start_activity(struct machine *machine, struct lane *lane, enum activity_kind kind);

/* machine_copy.c */
MUST_CHECK enum status copies_set_up(struct machine *machine);
/* Bytes/s alone; 0: the cluster does not say. */
double copy_rate(const struct layout *layout, const struct rank_class *rank_class,
                 enum copy_kind kind);
/* True when there is nothing to copy. */
bool copy_start(struct machine *machine, struct lane *lane);

/* machine_collective.c */
void lane_arrive(struct machine *machine, struct lane *lane);
void comm_continue(struct machine *machine, struct comm_state *comm);
void comm_flow_ended(struct machine *machine, struct comm_flow *flow);

/* machine_comms.c: the classes of groups of all communicators, and their plans. */
MUST_CHECK enum status comms_set_up(struct machine *machine);
struct score *class_score(const struct machine *machine, int32_t class);
/* Their activities take places from `order` on; returns the next free one. */
int32_t comms_order(struct machine *machine, int32_t order);

/* machine_transfer.c */
/* Of a communicator, one a direction. */
static inline int32_t transfer_channel(const struct transfer *transfer)
{
    BUG_IF(transfer->hop != 1 && transfer->hop != -1);
    return 2 * transfer->communicator + (transfer->hop < 0 ? 1 : 0);
}
static inline struct comm_seat *pair_seat(const struct machine *machine, int32_t class,
                                          int32_t channel, bool is_receiver)
{
    const int32_t row = 2 * machine->communicator_count * class + channel;
    return &machine->pair_seats[2 * row + (is_receiver ? 1 : 0)];
}
/* Where an OP_COLLECTIVE, OP_SEND or OP_RECV takes its turn: one queue a communicator, and one for
   sending and one for receiving on each channel. */
static inline int32_t op_queue(const struct program *program, const struct op *op)
{
    if (op->kind == OP_COLLECTIVE)
        return program->collectives.items[op->index].communicator;
    const int32_t channel = transfer_channel(&program->transfers.items[op->index]);
    return program->communicators.count + 2 * channel + (op->kind == OP_RECV ? 1 : 0);
}
int32_t pairs_count(const struct machine *machine);
/* `comms`: as many as were counted. */
void pairs_set_up(struct machine *machine, struct comm_state *comms);

/* machine_host.c */
double host_compute_s(const struct layout *layout, const struct op *op);

/* machine_jitter.c: draws, and the members of classes. Without jitter each of these does nothing.
 */
void jitter_set_up(struct machine *machine);
/* At most so many times as long, as good as always. */
double jitter_limit(const struct jitter *jitter);
/* Members stand here no earlier than that. */
void jitter_hold(struct lane *lane, int64_t until_ps);
/* The lane begins something that is issued at issue_ps; of a segment: the factor of its time. */
void jitter_begin(const struct machine *machine, struct lane *lane, int64_t issue_ps);
double jitter_begin_segment(const struct machine *machine, struct lane *lane, int64_t issue_ps);
void jitter_end(const struct machine *machine, struct lane *lane, bool is_segment);
void jitter_record(const struct lane *lane, int32_t site);
void jitter_wait(struct lane *lane, int32_t site);
void jitter_arrive(const struct machine *machine, struct lane *lane, int32_t seat);
/* All seats have arrived: when the last member has. */
int64_t jitter_gather(const struct machine *machine, struct comm_state *comm);
/* It does now. */
void jitter_start(const struct machine *machine, const struct comm_state *comm);
void jitter_disperse(const struct machine *machine, struct comm_state *comm);

/* machine_activity.c */
void activity_init(struct activity *activity, uint16_t event_kind, void *owner, int32_t order);
/* work, weight, cap and demands are set. */
void activity_start(struct machine *machine, struct activity *activity);
void activity_end(struct machine *machine, struct activity *activity);
void machine_solve(struct machine *machine);
void tell_begin(struct machine *machine, const struct lane *lane, enum activity_kind kind);
void tell_end(struct machine *machine, const struct lane *lane, enum activity_kind kind);

/* machine_contention.c */
/* `channels` negative: gives back. */
void class_hold_sms(struct machine *machine, struct class_state *class, int64_t channels);
/* Segments of the class that run. */
void contention_count_compute(struct machine *machine, struct class_state *class, int32_t change);
/* The collective's bytes are under way at all its members (negative: no longer). */
void contention_count_transfer(struct machine *machine, const struct comm_state *comm,
                               int64_t percent);
/* Applies what changed in this instant to the activities that run. */
void contention_update(struct machine *machine);
/* The fastest the activity may run now. */
double contention_cap(struct machine *machine, const struct activity *activity);

/* machine_deadlock.c */
MUST_CHECK enum status machine_check_finished(struct machine *machine);

/* machine_limits.c: STATUS_INPUT when the clock could run over its end. */
MUST_CHECK enum status machine_check_length(const struct machine *machine);

#endif
