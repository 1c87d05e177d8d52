/* study/pool_signals.c: requests to stop, and how many processors there are; see pool.h. */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "study/pool.h"

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
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
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
