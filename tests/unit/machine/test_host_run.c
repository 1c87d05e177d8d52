/*
 * tests/unit/machine/test_host_run.c: a small model on a host that gets slower (pytorch 163153):
 * once issuing takes longer than computing, gathers lie exposed between layers.
 */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "played.h"
#include "suites.h"

static bool play(struct played *played, const char *cost)
{
    char overrides[512];
    (void)snprintf(overrides, sizeof(overrides),
                   "model=llama-3.2-1b; train.compile=false; train.seq_len=1024; "
                   "simulate.ideal=[contention]; cluster.host.cpu.kernel.time=%s; "
                   "cluster.host.cpu.kernel_backward.time=%s",
                   cost, cost);
    return played_play(played, "llama3-8b_dgx-h100", overrides);
}

static void test_small_model_becomes_host_bound(void)
{
    static const char *const costs[] = {"1 us", "100 us", "200 us"};
    double exposed_s[3] = {0};
    double step_s[3] = {0};
    for (int32_t i = 0; i < 3; i++) {
        struct played played;
        if (play(&played, costs[i])) {
            exposed_s[i] = played.outcome.exposed_comm_s;
            step_s[i] = played.outcome.step_time_s;
            check_context("%s", costs[i]);
            CHECK_INT(strcmp(played.outcome.bottleneck, "host") == 0, i > 0);
            check_context(NULL);
        }
        played_release(&played);
    }
    CHECK_TRUE(exposed_s[1] > 2 * exposed_s[0]);
    /* Host bound: twice the cost of a kernel, twice the step, but for what does not depend on it.
     */
    CHECK_TRUE(step_s[2] > 1.7 * step_s[1] && step_s[2] < 2 * step_s[1]);
}

const struct check_case host_run_cases[] = {
    {"small model becomes host bound", test_small_model_becomes_host_bound},
    {0},
};
