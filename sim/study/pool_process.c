/* study/pool_process.c: workers that are forked copies of the caller, a pipe each way; see pool.h.
   The parent never blocks on one: the tasks ahead of it fit into a pipe, and it reads only what
   poll says is there. */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "study/pool_private.h"

enum { READ_BYTES = 1 << 16 };

struct process {
    pid_t pid;    /* 0: none */
    int tasks_fd; /* the parent's end, as the other */
    int answers_fd;
    FILE *words; /* what it writes to standard error; NULL: that goes where ours goes */
};

struct processes {
    struct process *items;
    struct pollfd *polls;
    pool_work *work;
    void *context;
};

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
__attribute__((noreturn)) static void worker_live(const struct pool *pool, FILE *words,
                                                  int tasks_fd, int answers_fd)
{
    const struct processes *processes = pool->own;
    if (words != NULL)
        (void)dup2(fileno(words), STDERR_FILENO);
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        (void)signal(ignored[i], SIG_IGN);
    /* A pipe is at its end only when every copy of its other end is closed. */
    for (int32_t i = 0; i < pool->count; i++) {
        if (processes->items[i].pid == 0)
            continue;
        (void)close(processes->items[i].tasks_fd);
        (void)close(processes->items[i].answers_fd);
    }
    struct task task;
    struct strbuf answer = {0};
    while (read_all(tasks_fd, &task, sizeof(task))) {
        answer.length = 0;
        processes->work(processes->context, task.kind, task.position, &answer);
        const struct frame frame = {FRAME_ANSWER, task.position, answer.length};
        if (!write_all(answers_fd, &frame, sizeof(frame)) ||
            !write_all(answers_fd, answer.text, answer.length))
            break;
    }
    _exit(0);
}

/* ---- in the parent ------------------------------------------------------------------------ */

/* The file for a worker's words, empty. */
static FILE *renew_words(FILE *words)
{
    if (words == NULL)
        return tmpfile();
    rewind(words);
    if (ftruncate(fileno(words), 0) == 0)
        return words;
    (void)fclose(words);
    return tmpfile();
}

static enum status process_start(struct pool *pool, int32_t number, struct diag *diag)
{
    struct processes *processes = pool->own;
    int tasks[2];
    int answers[2] = {-1, -1};
    if (pipe(tasks) != 0) {
        diag_world(diag, "cannot make a pipe to a worker: %s", strerror(errno));
        return STATUS_WORLD;
    }
    struct process *process = &processes->items[number];
    process->words = renew_words(process->words);
    const bool has_pipes = pipe(answers) == 0;
    const pid_t pid = has_pipes ? fork() : -1;
    if (pid == 0) {
        (void)close(tasks[1]);
        (void)close(answers[0]);
        worker_live(pool, process->words, tasks[0], answers[1]);
    }
    const int error = errno;
    (void)close(tasks[0]);
    if (has_pipes)
        (void)close(answers[1]);
    if (pid > 0) {
        *process = (struct process){pid, tasks[1], answers[0], process->words};
        pool->workers[number].is_up = true;
        return STATUS_OK;
    }
    (void)close(tasks[1]);
    if (has_pipes)
        (void)close(answers[0]);
    diag_world(diag, "cannot start a worker: %s", strerror(error));
    return STATUS_WORLD;
}

/* Closes the pipes and waits; what it ended with. */
static int process_end(struct process *process)
{
    int how = 0;
    (void)close(process->tasks_fd);
    (void)close(process->answers_fd);
    while (waitpid(process->pid, &how, 0) < 0 && errno == EINTR)
        continue;
    process->pid = 0;
    return how;
}

/* The first line that says something, without its "error: ": what it found out of memory, or which
   assumption of ours broke; empty: nothing was said. */
static const char *last_words(struct arena *arena, FILE *words)
{
    static const char prefix[] = "error: ";
    char text[1024];
    if (words == NULL)
        return "";
    rewind(words);
    text[fread(text, 1, sizeof(text) - 1, words)] = '\0';
    const char *line = text;
    while (*line != '\0' && isalnum((unsigned char)*line) == 0 && *line != '.' && *line != '/')
        line++;
    if (strncmp(line, prefix, sizeof(prefix) - 1) == 0)
        line += sizeof(prefix) - 1;
    return *line == '\0' ? "" : arena_printf(arena, ": %.*s", (int)strcspn(line, "\n"), line);
}

static const char *describe_end(struct arena *arena, int how, FILE *words)
{
    const char *said = last_words(arena, words);
    if (WIFSIGNALED(how))
        return arena_printf(arena, "the worker was killed by signal %d (%s)%s", WTERMSIG(how),
                            strsignal(WTERMSIG(how)), said);
    return arena_printf(arena, "the worker ended with exit code %d%s",
                        WIFEXITED(how) ? WEXITSTATUS(how) : -1, said);
}

static void process_give(struct pool *pool, int32_t number, const struct task *task)
{
    const struct processes *processes = pool->own;
    (void)write_all(processes->items[number].tasks_fd, task, sizeof(*task));
}

static void process_end_all(struct pool *pool)
{
    struct processes *processes = pool->own;
    for (int32_t i = 0; i < pool->count; i++) {
        if (processes->items[i].pid > 0)
            (void)process_end(&processes->items[i]);
        if (processes->items[i].words != NULL)
            (void)fclose(processes->items[i].words);
    }
}

static void listen_to(struct pool_round *round, struct pool *pool, int32_t number)
{
    struct process *process = &((struct processes *)pool->own)->items[number];
    struct arena scratch = {0};
    char bytes[READ_BYTES];
    const ssize_t got = read(process->answers_fd, bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR)
        return;
    if (got > 0) {
        pool_hear(round, number, bytes, (size_t)got);
        return;
    }
    const int how = process_end(process);
    pool_bury(round, number, describe_end(&scratch, how, process->words));
    arena_release(&scratch);
}

static void process_listen(struct pool_round *round, struct pool *pool, int timeout_ms)
{
    const struct processes *processes = pool->own;
    for (int32_t i = 0; i < pool->count; i++)
        processes->polls[i] =
            (struct pollfd){.fd = processes->items[i].pid > 0 ? processes->items[i].answers_fd : -1,
                            .events = POLLIN};
    if (poll(processes->polls, (nfds_t)pool->count, timeout_ms) <= 0)
        return;
    for (int32_t i = 0; i < pool->count; i++)
        if (processes->polls[i].fd >= 0 && processes->polls[i].revents != 0)
            listen_to(round, pool, i);
}

/* What is ahead fits into a pipe. */
static const struct pool_kind process_kind = {.ahead_s = 0.05,
                                              .ahead_min = 2,
                                              .ahead_max = 32,
                                              .start = process_start,
                                              .give = process_give,
                                              .listen = process_listen,
                                              .end = process_end_all};

enum status pool_new(struct arena *arena, int32_t worker_count, pool_work *work, void *context,
                     struct pool **out, struct diag *diag)
{
    struct processes *processes = ARENA_NEW(arena, struct processes);
    *processes = (struct processes){.items = ARENA_ARRAY(arena, struct process, worker_count),
                                    .polls = ARENA_ARRAY(arena, struct pollfd, worker_count),
                                    .work = work,
                                    .context = context};
    struct pool *pool = pool_make(arena, &process_kind, processes, worker_count);
    *out = pool;
    /* A pipe to a worker that has ended is then an error of write, not the end of this process. */
    (void)signal(SIGPIPE, SIG_IGN);
    enum status status = STATUS_OK;
    for (int32_t i = 0; i < worker_count && status == STATUS_OK; i++)
        status = process_start(pool, i, diag);
    return status;
}
