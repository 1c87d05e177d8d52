/* study/pool.c: who gets which task, and what becomes of those of a worker that ended; see pool.h.
 */
#include "study/pool.h"

#include <string.h>
#include <time.h>

#include "study/pool_private.h"

enum { LISTEN_MS = 200 };

struct pool_round {
    struct pool *pool;
    const struct pool_caller *caller;
    struct diag *diag;
    uint32_t kind;
    bool goes_on;
    bool is_drained; /* `next` had nothing */
    int64_t given;   /* out and not answered */
    int64_t answered_count;
    double start_s;
};

double pool_now_s(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The C library gives freed memory back to the system beyond a threshold, and takes it again, page
   by page, for the next task: half of the time of a short one. glibc's threshold follows the
   largest block that was freed (mallopt(3), M_MMAP_THRESHOLD); elsewhere this does nothing. */
static void keep_freed_memory(void)
{
    enum { LARGE_BYTES = 16 << 20 };
    struct arena large = {0};
    (void)arena_alloc(&large, LARGE_BYTES);
    arena_release(&large);
}

struct pool *pool_make(struct arena *arena, const struct pool_kind *kind, void *own,
                       int32_t worker_count)
{
    struct pool *pool = ARENA_NEW(arena, struct pool);
    *pool = (struct pool){.kind = kind,
                          .own = own,
                          .workers = ARENA_ARRAY(arena, struct worker, worker_count),
                          .count = worker_count,
                          .arena = arena};
    keep_freed_memory();
    return pool;
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    pool->kind->end(pool);
    for (int32_t i = 0; i < pool->count; i++)
        strbuf_release(&pool->workers[i].answers);
}

/* ---- giving out --------------------------------------------------------------------------- */

static int32_t ahead_limit(const struct pool_round *round)
{
    const struct pool_kind *kind = round->pool->kind;
    const double spent_s = (pool_now_s() - round->start_s) * (double)round->pool->count;
    if (round->answered_count < round->pool->count || !(spent_s > 0))
        return kind->ahead_min;
    const double limit = kind->ahead_s * (double)round->answered_count / spent_s;
    return limit >= (double)kind->ahead_max   ? kind->ahead_max
           : limit <= (double)kind->ahead_min ? kind->ahead_min
                                              : (int32_t)limit;
}

static int64_t next_task(struct pool_round *round)
{
    struct pool *pool = round->pool;
    if (!round->goes_on)
        return -1;
    if (pool->again.count > 0)
        return pool->again.items[--pool->again.count];
    const int64_t position = round->caller->next(round->caller->context);
    round->is_drained = position < 0;
    return position;
}

/* One task to the worker; false: there is none. */
static bool give(struct pool_round *round, int32_t number)
{
    struct worker *worker = &round->pool->workers[number];
    const int64_t position = next_task(round);
    if (position < 0)
        return false;
    const struct task task = {round->kind, position};
    worker->ahead[worker->ahead_count++] = position;
    round->given++;
    round->pool->kind->give(round->pool, number, &task);
    return true;
}

/* Around and around, so that few tasks spread over all workers. */
static enum status give_out(struct pool_round *round)
{
    struct pool *pool = round->pool;
    const int32_t limit = ahead_limit(round);
    for (int32_t depth = 1; depth <= limit; depth++) {
        for (int32_t i = 0; i < pool->count; i++) {
            struct worker *worker = &pool->workers[i];
            if (worker->ahead_count >= depth)
                continue;
            if (!worker->is_up) {
                const enum status status = pool->kind->start(pool, i, round->diag);
                if (status != STATUS_OK)
                    return status;
            }
            if (worker->is_up && !give(round, i))
                return STATUS_OK;
        }
    }
    return STATUS_OK;
}

/* ---- listening ---------------------------------------------------------------------------- */

static void take_frame(struct pool_round *round, struct worker *worker, const struct frame *frame,
                       const char *bytes)
{
    const struct pool_caller *caller = round->caller;
    BUG_IF(worker->ahead_count == 0 || worker->ahead[0] != frame->position);
    worker->ahead_count--;
    memmove(worker->ahead, worker->ahead + 1, sizeof(int64_t) * (size_t)worker->ahead_count);
    round->given--;
    round->answered_count++;
    if (frame->kind == FRAME_ANSWER) {
        caller->answered(caller->context, frame->position, bytes, frame->bytes);
        return;
    }
    struct arena scratch = {0};
    caller->lost(caller->context, frame->position, arena_strndup(&scratch, bytes, frame->bytes));
    arena_release(&scratch);
    /* What was lost may be given out again. */
    round->is_drained = false;
}

void pool_hear(struct pool_round *round, int32_t number, const char *bytes, size_t count)
{
    struct worker *worker = &round->pool->workers[number];
    struct strbuf *answers = &worker->answers;
    strbuf_add_bytes(answers, bytes, count);
    size_t at = 0;
    struct frame frame;
    while (answers->length - at >= sizeof(frame)) {
        memcpy(&frame, answers->text + at, sizeof(frame));
        if (answers->length - at - sizeof(frame) < frame.bytes)
            break;
        take_frame(round, worker, &frame, answers->text + at + sizeof(frame));
        at += sizeof(frame) + frame.bytes;
    }
    memmove(answers->text, answers->text + at, answers->length - at);
    answers->length -= at;
}

void pool_bury(struct pool_round *round, int32_t number, const char *reason)
{
    struct worker *worker = &round->pool->workers[number];
    for (int32_t i = worker->ahead_count - 1; i > 0; i--)
        *ARENA_PUSH(round->pool->arena, &round->pool->again) = worker->ahead[i];
    round->given -= worker->ahead_count;
    if (worker->ahead_count > 0)
        round->caller->lost(round->caller->context, worker->ahead[0], reason);
    worker->ahead_count = 0;
    worker->answers.length = 0;
    worker->is_up = false;
    round->is_drained = false;
}

/* ---- a round ------------------------------------------------------------------------------ */

static bool is_any_up(const struct pool *pool)
{
    for (int32_t i = 0; i < pool->count; i++)
        if (pool->workers[i].is_up)
            return true;
    return false;
}

enum status pool_run(struct pool *pool, uint32_t kind, const struct pool_caller *caller,
                     struct diag *diag)
{
    struct pool_round round = {.pool = pool,
                               .caller = caller,
                               .diag = diag,
                               .kind = kind,
                               .goes_on = true,
                               .start_s = pool_now_s()};
    for (;;) {
        round.goes_on = round.goes_on && caller->goes_on(caller->context);
        const enum status status = give_out(&round);
        if (status != STATUS_OK)
            return status;
        if (round.given == 0 && (!round.goes_on || (round.is_drained && pool->again.count == 0)))
            return STATUS_OK;
        if (!is_any_up(pool)) {
            diag_world(diag, "all workers have ended");
            return STATUS_WORLD;
        }
        pool->kind->listen(&round, pool, LISTEN_MS);
    }
}
