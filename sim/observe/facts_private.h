/* observe/facts_private.h: the observers behind `struct facts`; their common state. */
#ifndef FSDPSIM_OBSERVE_FACTS_PRIVATE_H
#define FSDPSIM_OBSERVE_FACTS_PRIVATE_H

#include "observe/observe.h"

enum window_state { WINDOW_BEFORE, WINDOW_OPEN, WINDOW_CLOSED };

/* The reported time of a class. */
struct window {
    enum window_state state;
    int64_t opened_ps, closed_ps;
};

/* Reported time until now_ps. */
static inline int64_t window_clock(const struct window *window, int64_t now_ps)
{
    switch (window->state) {
    case WINDOW_BEFORE:
        return 0;
    case WINDOW_OPEN:
        return now_ps - window->opened_ps;
    case WINDOW_CLOSED:
        return window->closed_ps - window->opened_ps;
    }
    return 0;
}

/* What runs on a stream of a class: at most one activity. */
struct running {
    bool is_running, is_waiting; /* waiting: for other ranks */
    enum activity_kind kind;
    double copy_frac;
    int64_t begin_clock_ps; /* reported time when it began */
    int64_t begin_bare_ps;  /* reported time without compute when it began */
};

struct time_watch { /* of one class */
    struct window window;
    int64_t last_ps;         /* sums are up to date until then */
    struct running *running; /* by stream */
    int32_t stream_count;
    int32_t counts[ACTIVITY_KIND_COUNT], waiting_count;
    double copy_frac;   /* of what runs, at most 1 */
    double copy_sum_ps; /* shares of picoseconds */
    int64_t quiet_ps;   /* since when no activity of any kind runs */
    int64_t bare_ps;    /* reported time in which no compute ran */
    int64_t mark_ps;    /* when the last mark of a phase was reached */
    bool is_backward;   /* after the end of forward, until the next step or forward begins */
    struct breakdown sums;
    struct unit_facts *units;
};

struct memory_watch {       /* of one class */
    struct memory_peak now; /* what is held; op: allocated last */
    int32_t unit_count;
    int64_t reserved_bytes;
    bool is_steady, is_known; /* known: from elsewhere */
    struct memory_facts facts;
};

struct facts {
    const struct layout *layout;
    const struct program *const *programs;
    int32_t program_count, class_count;
    int32_t warmup, steps;
    struct time_watch *times;
    struct memory_watch *memories;
    struct resource_facts *resources;
};

static inline const struct program *facts_program(const struct facts *facts, int32_t class_idx)
{
    return facts->programs[facts->program_count == 1 ? 0 : class_idx];
}

/* breakdown.c */
void times_host_enters(void *context, int64_t since_ps, int64_t now_ps, int32_t class_idx,
                       int32_t by);
void times_activity_begin(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                          const struct op *op, double copy_frac);
void times_activity_end(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                        const struct op *op, double copy_frac);
void times_transfer_begin(void *context, int64_t now_ps, int32_t class_idx, const struct op *op);
void times_mark_reached(void *context, int64_t now_ps, int32_t class_idx, int32_t step,
                        enum mark mark);
void times_close(struct time_watch *watch);

/* ledger.c */
void ledger_changed(void *context, const struct memory_change *change);
void ledger_retried(void *context, const struct memory_retry *retry);
/* `steps`: all that were played. */
void ledger_close(struct memory_watch *watch, int32_t steps);

#endif
