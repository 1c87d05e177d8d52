/*
 * study/pool.h: worker processes that do numbered tasks and answer with bytes.
 *
 *   parent ── task {kind, position} ──> worker      a pipe each way
 *   parent <── frame {bytes, position} answer ──
 *
 * Workers are forked copies of the caller: they see what it had when it made the pool. Each does
 * its tasks in the order given, some of them ahead in its pipe. When a worker ends (a signal, an
 * abort, no memory), the oldest task it had not answered is what it died of: that one is told as
 * lost, the others go to another worker, and a new worker takes its place. When the parent ends,
 * however it does, its pipes close and the workers leave.
 *
 * Signals that ask the process group to stop (SIGINT, SIGTERM, SIGHUP, and SIGUSR1, which batch
 * systems send before time is up) are for the parent; workers ignore them.
 */
#ifndef FSDPSIM_STUDY_POOL_H
#define FSDPSIM_STUDY_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/strbuf.h"

struct pool;

/* In the worker: adds the answer of a task to `answer`, which is empty. */
typedef void pool_work(void *context, uint32_t kind, int64_t position, struct strbuf *answer);

struct pool_caller {
    void *context;
    /* The next task to give out; -1: none now. */
    int64_t (*next)(void *context);
    /* The answer of a task; valid during the call. */
    void (*answered)(void *context, int64_t position, const char *bytes, size_t count);
    /* The worker ended with this task; `reason`: "the worker was killed by signal 9 (Killed)", and
       the first line of what it wrote to standard error: ": out of memory (…)". */
    void (*lost)(void *context, int64_t position, const char *reason);
    /* Now and then, at least five times a second. False: give out nothing more. */
    bool (*goes_on)(void *context);
};

MUST_CHECK enum status pool_new(struct arena *arena, int32_t worker_count, pool_work *work,
                                void *context, struct pool **pool, struct diag *diag);

/* Workers that are there already: the ranks of a job (mpi_team.h). */
struct pool_team {
    void *context;
    bool is_worker; /* this process is one of them */
    /* In the leader. `identity` says what is to be played: workers that have another one, or that
       are in trouble, are told of in `diag`. */
    enum status (*lead)(void *context, struct arena *arena, struct hash128 identity,
                        struct pool **pool, struct diag *diag);
    /* In a worker: plays what it is given until it may leave. `trouble`: why it cannot; NULL. */
    void (*serve)(void *context, struct hash128 identity, const char *trouble, pool_work *work,
                  void *work_context);
};

/* Until `next` has nothing more and all is answered; or until all that was given out is, after
   `goes_on` said no. */
MUST_CHECK enum status pool_run(struct pool *pool, uint32_t kind, const struct pool_caller *caller,
                                struct diag *diag);
/* Lets the workers go and waits for them. NULL: nothing. */
void pool_free(struct pool *pool);

/* Processors that are online. */
int32_t pool_default_workers(void);
/* From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 (where they are not ignored) are counted; the
   second leaves the process at once with `exit_code`. */
void pool_catch_signals(int exit_code);
int pool_signals_caught(void);

#endif
