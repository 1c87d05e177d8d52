/* tests/unit/study/test_pool.c: worker processes: every task once, whatever becomes of workers. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "study/pool.h"
#include "study_tests.h"

enum { TASKS = 500, KIND = 7, CRASH_WITH_WORDS = 300, CRASH_SILENT };

struct tally {
    int64_t next, count;
    int64_t stop_after; /* answers; 0: never */
    int64_t answered;
    int32_t seen[TASKS], lost[TASKS];
    const char *reason;
    struct arena arena;
};

/* 3 bytes longer than the position says, so that answers differ in length; some end the worker. */
static void work(void *context, uint32_t kind, int64_t position, struct strbuf *answer)
{
    (void)context;
    if (kind != KIND)
        _exit(9);
    if (position == 41)
        _exit(3);
    if (position == CRASH_WITH_WORDS || position == CRASH_SILENT) {
        if (position == CRASH_WITH_WORDS)
            (void)dprintf(STDERR_FILENO, "\n==\nerror: out of patience\nmore\n");
        abort();
    }
    if (position == 170)
        (void)kill(getpid(), SIGKILL);
    for (int64_t i = 0; i < 3 + position; i++)
        strbuf_add(answer, "x");
}

static int64_t next(void *context)
{
    struct tally *tally = context;
    return tally->next < tally->count ? tally->next++ : -1;
}

static void answered(void *context, int64_t position, const char *bytes, size_t count)
{
    struct tally *tally = context;
    CHECK_INT(count, 3 + position);
    CHECK_TRUE(bytes[count - 1] == 'x');
    tally->seen[position]++;
    tally->answered++;
}

static void lost(void *context, int64_t position, const char *reason)
{
    struct tally *tally = context;
    tally->lost[position]++;
    tally->reason = arena_strdup(&tally->arena, reason);
}

static bool goes_on(void *context)
{
    const struct tally *tally = context;
    return tally->stop_after == 0 || tally->answered < tally->stop_after;
}

static void run(struct tally *tally, int32_t workers)
{
    struct arena arena = {0};
    struct diag diag;
    struct pool *pool = NULL;
    const struct pool_caller caller = {tally, next, answered, lost, goes_on};
    diag_init(&diag, &arena);
    if (CHECK_INT(pool_new(&arena, workers, work, NULL, &pool, &diag), STATUS_OK))
        CHECK_INT(pool_run(pool, KIND, &caller, &diag), STATUS_OK);
    pool_free(pool);
    arena_release(&arena);
}

static void test_every_task_once(void)
{
    for (int32_t workers = 1; workers <= 4; workers += 3) {
        struct tally tally = {.count = 40};
        run(&tally, workers);
        CHECK_INT(tally.answered, 40);
        for (int i = 0; i < 40; i++)
            CHECK_INT(tally.seen[i], 1);
        arena_release(&tally.arena);
    }
}

static void test_workers_that_end(void)
{
    for (int32_t workers = 1; workers <= 3; workers++) {
        struct tally tally = {.count = TASKS};
        run(&tally, workers);
        CHECK_INT(tally.answered, TASKS - 4);
        for (int i = 0; i < TASKS; i++) {
            const bool ends = i == 41 || i == 170 || i == CRASH_WITH_WORDS || i == CRASH_SILENT;
            CHECK_INT(tally.seen[i], !ends);
            CHECK_INT(tally.lost[i], ends);
        }
        arena_release(&tally.arena);
    }
}

static void test_reasons(void)
{
    struct tally tally = {.next = 41, .count = 42};
    run(&tally, 1);
    CHECK_TEXT(tally.reason, "the worker ended with exit code 3");
    tally = (struct tally){.next = 170, .count = 171, .arena = tally.arena};
    run(&tally, 1);
    CHECK_TEXT(tally.reason, "the worker was killed by signal 9 (Killed)");
    /* What it wrote to standard error, but nothing of the one before it. */
    tally = (struct tally){.next = CRASH_WITH_WORDS, .count = CRASH_SILENT, .arena = tally.arena};
    run(&tally, 1);
    CHECK_TEXT(tally.reason, "the worker was killed by signal 6 (Aborted): out of patience");
    tally =
        (struct tally){.next = CRASH_WITH_WORDS, .count = CRASH_SILENT + 1, .arena = tally.arena};
    run(&tally, 1);
    CHECK_TEXT(tally.reason, "the worker was killed by signal 6 (Aborted)");
    arena_release(&tally.arena);
}

/* What was given out is answered, and no more. */
static void test_stop(void)
{
    struct tally tally = {.count = 40, .stop_after = 1};
    run(&tally, 2);
    CHECK_TRUE(tally.answered >= 1 && tally.answered < 40);
    CHECK_INT(tally.answered, tally.next);
    arena_release(&tally.arena);
}

static void test_nothing(void)
{
    struct tally tally = {0};
    run(&tally, 2);
    CHECK_INT(tally.answered, 0);
}

const struct check_case pool_cases[] = {
    {"every task once", test_every_task_once}, {"workers that end", test_workers_that_end},
    {"why a worker ended", test_reasons},      {"stopped", test_stop},
    {"nothing to do", test_nothing},           {0},
};
