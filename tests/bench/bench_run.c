/* tests/bench/bench_run.c: whole simulated runs: loading, and playing, in events a second. */
#include <stdio.h>

#include "bench.h"
#include "numeric/curve.h"
#include "run/experiment.h"

struct run_case {
    const char *name;
    const char *overrides[3];
    int32_t override_count;
    int32_t repeats;
};

static const struct run_case cases[] = {
    {"8B folded, 8 GPUs", {"nodes=1"}, 1, 50},
    {"8B folded, 8,192 GPUs", {"nodes=1024"}, 1, 50},
    {"8B unfolded, 64 GPUs", {"nodes=8", "simulate.fold=off"}, 2, 5},
    {"8B unfolded, 1,024 GPUs", {"nodes=128", "simulate.fold=off"}, 2, 1},
};

struct run_times {
    double load_s, play_s;
    int64_t events;
};

static bool run_once(const struct run_case *one, struct run_times *times)
{
    struct arena arena = {0};
    struct diag diag;
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    arena_init(&arena);
    diag_init(&diag, &arena);
    const double start_s = bench_now_s();
    enum status status = experiment_load(&experiment, "llama3-8b_dgx-h100", one->overrides,
                                         one->override_count, &diag);
    if (status == STATUS_OK)
        status = experiment_build(&experiment);
    const double loaded_s = bench_now_s();
    if (status == STATUS_OK)
        status = experiment_play(&experiment, &outcome);
    times->load_s = loaded_s - start_s;
    times->play_s = bench_now_s() - loaded_s;
    times->events = outcome.events;
    if (status != STATUS_OK)
        diag_write(&diag, stderr, false);
    experiment_release(&experiment);
    arena_release(&arena);
    return status == STATUS_OK;
}

void bench_run(void)
{
    numeric_init();
    printf("  %-24s %12s %12s %12s %14s\n", "case", "load ms", "play ms", "events", "events/s");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double load_s[BENCH_ROUNDS], play_s[BENCH_ROUNDS];
        struct run_times times = {0};
        for (int round = 0; round < BENCH_ROUNDS; round++) {
            load_s[round] = play_s[round] = 0;
            for (int32_t k = 0; k < cases[i].repeats; k++) {
                if (!run_once(&cases[i], &times))
                    return;
                load_s[round] += times.load_s / cases[i].repeats;
                play_s[round] += times.play_s / cases[i].repeats;
            }
        }
        const double play = bench_median(play_s);
        printf("  %-24s %12.3f %12.3f %12lld %14.0f\n", cases[i].name, bench_median(load_s) * 1e3,
               play * 1e3, (long long)times.events, (double)times.events / play);
    }
}
