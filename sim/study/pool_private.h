/*
 * study/pool_private.h: what the pool asks of its workers, whatever they are: processes
 * (pool_process.c), or ranks of a job (mpi_leader.c).
 */
#ifndef FSDPSIM_STUDY_POOL_PRIVATE_H
#define FSDPSIM_STUDY_POOL_PRIVATE_H

#include "study/pool.h"

enum { AHEAD_MAX = 256 };

struct task {
    uint32_t kind;
    int64_t position;
};

/* What a worker says, in this order: a frame and its bytes. */
enum frame_kind {
    FRAME_ANSWER = 1,
    FRAME_LOST, /* who plays for it ended with this task; the bytes say how */
};
struct frame {
    uint32_t kind;
    int64_t position;
    uint64_t bytes; /* that follow */
};

struct worker {
    bool is_up;
    int64_t ahead[AHEAD_MAX]; /* positions given out, the oldest first */
    int32_t ahead_count;
    struct strbuf answers; /* what was read and is no whole frame yet */
};

struct pool_round; /* one pool_run */

/*
 * Tasks given to a worker that it has not answered (ahead_min to ahead_max): enough that it need
 * not wait for more, but no more than it does in ahead_s, so that the last tasks spread over all
 * workers and a request to stop is soon obeyed.
 */
struct pool_kind {
    double ahead_s;
    int32_t ahead_min, ahead_max; /* up to AHEAD_MAX */
    /* Worker `number` comes up; one that cannot come again stays down, which is no error. */
    enum status (*start)(struct pool *pool, int32_t number, struct diag *diag);
    /* Gives it a task; that it has ended shows in listen. */
    void (*give)(struct pool *pool, int32_t number, const struct task *task);
    /* Waits at most `timeout_ms` for what workers say: pool_hear and pool_bury. */
    void (*listen)(struct pool_round *round, struct pool *pool, int timeout_ms);
    void (*end)(struct pool *pool);
};

struct pool {
    const struct pool_kind *kind;
    void *own; /* of the kind */
    struct worker *workers;
    int32_t count;
    struct { /* of workers that ended: to give out again */
        int64_t *items;
        int32_t count, capacity;
    } again;
    struct arena *arena;
};

struct pool *pool_make(struct arena *arena, const struct pool_kind *kind, void *own,
                       int32_t worker_count);
void pool_hear(struct pool_round *round, int32_t number, const char *bytes, size_t count);
/* It has ended: its oldest task is what it ended of, the rest goes to others. */
void pool_bury(struct pool_round *round, int32_t number, const char *reason);
double pool_now_s(void);

#endif
