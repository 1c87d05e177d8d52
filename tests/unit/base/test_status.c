/* tests/unit/base/test_status.c: how a process ends that cannot go on, heard in a child. */
#include "base/status.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "suites.h"

static void say_bug(void)
{
    bug_at("machine.c", 217, "stream %d never ends", 3);
}

static void say_memory(void)
{
    out_of_memory(2385);
}

static void say_memory_of_no_size(void)
{
    out_of_memory(0);
}

/* A sanitizer's allocator ends the process on its own when it is asked for this much. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_OWN_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_OWN_ALLOCATOR 1
#endif
#endif

#ifndef HAS_OWN_ALLOCATOR
/* More than any address space has. */
static void ask_arena(void)
{
    struct arena arena = {0};
    arena_alloc(&arena, (size_t)1 << 62);
}

static void ask_strbuf(void)
{
    struct strbuf buf = {0};
    strbuf_add_bytes(&buf, "", (size_t)1 << 62);
}
#endif

/* How the process ends in which `say` is called, and what it said. */
static int wait_status_of(void (*say)(void), char *said, size_t said_bytes)
{
    int ends[2];
    int wait_status = 0;
    memset(said, 0, said_bytes);
    if (!CHECK_INT(pipe(ends), 0))
        return 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(ends[1], STDERR_FILENO);
        say();
        _exit(0);
    }
    close(ends[1]);
    CHECK_TRUE(read(ends[0], said, said_bytes - 1) > 0);
    close(ends[0]);
    waitpid(child, &wait_status, 0);
    return wait_status;
}

static void test_bug_says_where_and_aborts(void)
{
    char said[512];
    const int wait_status = wait_status_of(say_bug, said, sizeof(said));
    CHECK_TRUE(WIFSIGNALED(wait_status));
    CHECK_INT(WTERMSIG(wait_status), SIGABRT);
    CHECK_CONTAINS(said, "machine.c:217: bug: ");
}

static void test_out_of_memory_is_no_bug(void)
{
    static const struct {
        void (*say)(void);
        const char *said;
    } rows[] = {
        {say_memory, "error: out of memory (2385 bytes wanted)\n"},
        {say_memory_of_no_size, "error: out of memory\n"},
#ifndef HAS_OWN_ALLOCATOR
        {ask_arena, "error: out of memory (46116860184273"},
        {ask_strbuf, "error: out of memory (9223372036854775808 bytes wanted)\n"},
#endif
    };
    char said[512];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("row %d", (int)i);
        const int wait_status = wait_status_of(rows[i].say, said, sizeof(said));
        CHECK_TRUE(WIFEXITED(wait_status));
        CHECK_INT(WEXITSTATUS(wait_status), STATUS_WORLD);
        CHECK_CONTAINS(said, rows[i].said);
        CHECK_TRUE(strstr(said, "bug") == NULL);
    }
    check_context(NULL);
}

const struct check_case status_cases[] = {
    {"a bug says where and aborts", test_bug_says_where_and_aborts},
    {"out of memory is no bug", test_out_of_memory_is_no_bug},
    {0}};
