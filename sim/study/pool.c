/* study/pool.c: see pool.h. The parent never blocks on a worker: the tasks ahead of one fit into a
   pipe, and it reads only what poll says is there. */
#include "study/pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * Tasks given to a worker that it has not answered: enough that it need not wait for the parent,
 * but no more than it does in ahead_s, so that the last tasks spread over all workers and a request
 * to stop is soon obeyed.
 */
enum { AHEAD_MIN = 2, AHEAD_MAX = 32, POLL_MS = 200, READ_BYTES = 1 << 16 };
static const double ahead_s = 0.05;

struct task {
    uint32_t kind;
    int64_t position;
};

struct frame {
    uint64_t bytes; /* that follow */
    int64_t position;
};

struct worker {
    pid_t pid;    /* 0: none */
    int tasks_fd; /* the parent's end, as the other */
    int answers_fd;
    int64_t ahead[AHEAD_MAX]; /* positions given out, the oldest first */
    int32_t ahead_count;
    struct strbuf answers; /* what was read and is no whole frame yet */
};

struct pool {
    struct worker *workers;
    int32_t count;
    pool_work *work;
    void *context;
    struct { /* of workers that ended: to give out again */
        int64_t *items;
        int32_t count, capacity;
    } again;
    struct arena *arena;
    struct pollfd *polls;
};

/* ---- signals ------------------------------------------------------------------------------ */

static volatile sig_atomic_t signals_caught;
static volatile sig_atomic_t leaving_code;

static void catch_signal(int number)
{
    (void)number;
    signals_caught++;
    if (signals_caught > 1)
        _exit(leaving_code);
}

void pool_catch_signals(int exit_code)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = catch_signal};
    leaving_code = exit_code;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction present;
        if (sigaction(numbers[i], NULL, &present) == 0 && present.sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &action, NULL);
    }
}

int pool_signals_caught(void)
{
    return (int)signals_caught;
}

int32_t pool_default_workers(void)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < 4096 ? (int32_t)online : 1;
}

/* ---- in the worker ------------------------------------------------------------------------ */

/* False at the end of the pipe, or when it broke. */
static bool read_all(int fd, void *bytes, size_t count)
{
    char *at = bytes;
    while (count > 0) {
        const ssize_t got = read(fd, at, count);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        count -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *bytes, size_t count)
{
    const char *at = bytes;
    while (count > 0) {
        const ssize_t put = write(fd, at, count);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        count -= (size_t)put;
    }
    return true;
}

/* Never returns, and leaves nothing of the parent's behind: no stream is flushed twice. */
__attribute__((noreturn)) static void worker_live(const struct pool *pool, int tasks_fd,
                                                  int answers_fd)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        (void)signal(ignored[i], SIG_IGN);
    /* A pipe is at its end only when every copy of its other end is closed. */
    for (int32_t i = 0; i < pool->count; i++) {
        if (pool->workers[i].pid == 0)
            continue;
        (void)close(pool->workers[i].tasks_fd);
        (void)close(pool->workers[i].answers_fd);
    }
    struct task task;
    struct strbuf answer = {0};
    while (read_all(tasks_fd, &task, sizeof(task))) {
        answer.length = 0;
        pool->work(pool->context, task.kind, task.position, &answer);
        const struct frame frame = {answer.length, task.position};
        if (!write_all(answers_fd, &frame, sizeof(frame)) ||
            !write_all(answers_fd, answer.text, answer.length))
            break;
    }
    _exit(0);
}

/* ---- workers ------------------------------------------------------------------------------ */

static enum status worker_start(const struct pool *pool, struct worker *worker, struct diag *diag)
{
    int tasks[2];
    int answers[2] = {-1, -1};
    if (pipe(tasks) != 0) {
        diag_world(diag, "cannot make a pipe to a worker: %s", strerror(errno));
        return STATUS_WORLD;
    }
    const bool has_pipes = pipe(answers) == 0;
    const pid_t pid = has_pipes ? fork() : -1;
    if (pid == 0) {
        (void)close(tasks[1]);
        (void)close(answers[0]);
        worker_live(pool, tasks[0], answers[1]);
    }
    const int error = errno;
    (void)close(tasks[0]);
    if (has_pipes)
        (void)close(answers[1]);
    if (pid > 0) {
        worker->pid = pid;
        worker->tasks_fd = tasks[1];
        worker->answers_fd = answers[0];
        worker->ahead_count = 0;
        worker->answers.length = 0;
        return STATUS_OK;
    }
    (void)close(tasks[1]);
    if (has_pipes)
        (void)close(answers[0]);
    diag_world(diag, "cannot start a worker: %s", strerror(error));
    return STATUS_WORLD;
}

/* Closes the pipes and waits; what it ended with. */
static int worker_end(struct worker *worker)
{
    int how = 0;
    (void)close(worker->tasks_fd);
    (void)close(worker->answers_fd);
    while (waitpid(worker->pid, &how, 0) < 0 && errno == EINTR)
        continue;
    worker->pid = 0;
    return how;
}

static const char *describe_end(struct arena *arena, int how)
{
    if (WIFSIGNALED(how))
        return arena_printf(arena, "the worker was killed by signal %d (%s)", WTERMSIG(how),
                            strsignal(WTERMSIG(how)));
    return arena_printf(arena, "the worker ended with exit code %d",
                        WIFEXITED(how) ? WEXITSTATUS(how) : -1);
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

enum status pool_new(struct arena *arena, int32_t worker_count, pool_work *work, void *context,
                     struct pool **out, struct diag *diag)
{
    struct pool *pool = ARENA_NEW(arena, struct pool);
    *out = pool;
    *pool = (struct pool){.work = work, .context = context, .count = worker_count, .arena = arena};
    /* A pipe to a worker that has ended is then an error of write, not the end of this process. */
    (void)signal(SIGPIPE, SIG_IGN);
    keep_freed_memory();
    pool->workers = ARENA_ARRAY(arena, struct worker, worker_count);
    pool->polls = ARENA_ARRAY(arena, struct pollfd, worker_count);
    enum status status = STATUS_OK;
    for (int32_t i = 0; i < worker_count && status == STATUS_OK; i++)
        status = worker_start(pool, &pool->workers[i], diag);
    return status;
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    for (int32_t i = 0; i < pool->count; i++) {
        if (pool->workers[i].pid > 0)
            (void)worker_end(&pool->workers[i]);
        strbuf_release(&pool->workers[i].answers);
    }
}

/* ---- running ------------------------------------------------------------------------------ */

struct round { /* one pool_run */
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

static double now_s(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int32_t ahead_limit(const struct round *round)
{
    const double spent_s = (now_s() - round->start_s) * (double)round->pool->count;
    if (round->answered_count < round->pool->count || !(spent_s > 0))
        return AHEAD_MIN;
    const double limit = ahead_s * (double)round->answered_count / spent_s;
    return limit >= AHEAD_MAX ? AHEAD_MAX : limit <= AHEAD_MIN ? AHEAD_MIN : (int32_t)limit;
}

static int64_t next_task(struct round *round)
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

/* One task to the worker; false: there is none, or it cannot take it. */
static bool give(struct round *round, struct worker *worker)
{
    const int64_t position = next_task(round);
    if (position < 0)
        return false;
    const struct task task = {round->kind, position};
    worker->ahead[worker->ahead_count++] = position;
    round->given++;
    /* A worker that has ended shows in its answers. */
    return write_all(worker->tasks_fd, &task, sizeof(task));
}

/* Around and around, so that few tasks spread over all workers. */
static enum status give_out(struct round *round)
{
    struct pool *pool = round->pool;
    const int32_t limit = ahead_limit(round);
    for (int32_t depth = 1; depth <= limit; depth++) {
        for (int32_t i = 0; i < pool->count; i++) {
            struct worker *worker = &pool->workers[i];
            if (worker->ahead_count >= depth)
                continue;
            if (worker->pid == 0) {
                const enum status status = worker_start(pool, worker, round->diag);
                if (status != STATUS_OK)
                    return status;
            }
            if (!give(round, worker) && (round->is_drained || !round->goes_on))
                return STATUS_OK;
        }
    }
    return STATUS_OK;
}

static void take_answer(struct round *round, struct worker *worker, const struct frame *frame,
                        const char *bytes)
{
    BUG_IF(worker->ahead_count == 0 || worker->ahead[0] != frame->position);
    worker->ahead_count--;
    memmove(worker->ahead, worker->ahead + 1, sizeof(int64_t) * (size_t)worker->ahead_count);
    round->given--;
    round->answered_count++;
    round->caller->answered(round->caller->context, frame->position, bytes, frame->bytes);
}

static void take_frames(struct round *round, struct worker *worker)
{
    struct strbuf *answers = &worker->answers;
    size_t at = 0;
    struct frame frame;
    while (answers->length - at >= sizeof(frame)) {
        memcpy(&frame, answers->text + at, sizeof(frame));
        if (answers->length - at - sizeof(frame) < frame.bytes)
            break;
        take_answer(round, worker, &frame, answers->text + at + sizeof(frame));
        at += sizeof(frame) + frame.bytes;
    }
    memmove(answers->text, answers->text + at, answers->length - at);
    answers->length -= at;
}

/* Its oldest task is what it ended of; the rest goes to others. */
static void bury(struct round *round, struct worker *worker)
{
    struct arena scratch = {0};
    const int how = worker_end(worker);
    for (int32_t i = worker->ahead_count - 1; i > 0; i--)
        *ARENA_PUSH(round->pool->arena, &round->pool->again) = worker->ahead[i];
    round->given -= worker->ahead_count;
    if (worker->ahead_count > 0)
        round->caller->lost(round->caller->context, worker->ahead[0], describe_end(&scratch, how));
    worker->ahead_count = 0;
    /* What was lost may be given out again. */
    round->is_drained = false;
    arena_release(&scratch);
}

static void listen_to(struct round *round, struct worker *worker)
{
    char bytes[READ_BYTES];
    const ssize_t got = read(worker->answers_fd, bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR)
        return;
    if (got <= 0) {
        bury(round, worker);
        return;
    }
    strbuf_add_bytes(&worker->answers, bytes, (size_t)got);
    take_frames(round, worker);
}

static void listen_all(struct round *round)
{
    struct pool *pool = round->pool;
    for (int32_t i = 0; i < pool->count; i++)
        pool->polls[i] = (struct pollfd){
            .fd = pool->workers[i].pid > 0 ? pool->workers[i].answers_fd : -1, .events = POLLIN};
    if (poll(pool->polls, (nfds_t)pool->count, POLL_MS) <= 0)
        return;
    for (int32_t i = 0; i < pool->count; i++)
        if (pool->polls[i].fd >= 0 && pool->polls[i].revents != 0)
            listen_to(round, &pool->workers[i]);
}

enum status pool_run(struct pool *pool, uint32_t kind, const struct pool_caller *caller,
                     struct diag *diag)
{
    struct round round = {.pool = pool,
                          .caller = caller,
                          .diag = diag,
                          .kind = kind,
                          .goes_on = true,
                          .start_s = now_s()};
    for (;;) {
        round.goes_on = round.goes_on && caller->goes_on(caller->context);
        const enum status status = give_out(&round);
        if (status != STATUS_OK)
            return status;
        if (round.given == 0 && (!round.goes_on || (round.is_drained && pool->again.count == 0)))
            return STATUS_OK;
        listen_all(&round);
    }
}
