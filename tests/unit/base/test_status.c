/* tests/unit/base/test_status.c: the third voice, heard in a child process. */
#include "base/status.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suites.h"

static void test_bug_says_where_and_aborts(void)
{
    int ends[2];
    char said[512] = "";
    int wait_status = 0;
    if (!CHECK_INT(pipe(ends), 0))
        return;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(ends[1], STDERR_FILENO);
        bug_at("machine.c", 217, "stream %d never ends", 3);
    }
    close(ends[1]);
    CHECK_TRUE(read(ends[0], said, sizeof(said) - 1) > 0);
    close(ends[0]);
    waitpid(child, &wait_status, 0);
    CHECK_TRUE(WIFSIGNALED(wait_status));
    CHECK_INT(WTERMSIG(wait_status), SIGABRT);
    CHECK_CONTAINS(said, "machine.c:217: bug: ");
}

const struct check_case status_cases[] = {
    {"a bug says where and aborts", test_bug_says_where_and_aborts}, {0}};
