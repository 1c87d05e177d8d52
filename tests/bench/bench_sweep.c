/*
 * tests/bench/bench_sweep.c: a sweep from the command to the database.
 *
 * CPU time is that of all processes, so that other work on the machine counts little: points a CPU
 * second are what one free core would do. `alone` is the CPU time of such a point by itself, with
 * nothing shared (read, built, played; no database), measured in the same run: the ratio to it
 * hardly depends on the machine. Of some rounds the quietest counts. Linear in cores: the same CPU
 * time a point for any workers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "numeric/curve.h"
#include "study/sweep.h"

static const char *const overrides[] = {
    "nodes=range(1,65,1)", "cluster.host.nics.bandwidth=range(100Gbps,900Gbps,25Gbps)"};

enum { POINTS_ALONE = 32, ROUNDS = 2 };

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* Of this process and of those that it waited for. */
static double cpu_s(void)
{
    double spent_s = 0;
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (int i = 0; i < 2; i++) {
        struct rusage usage;
        if (getrusage(whose[i], &usage) == 0)
            spent_s += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    }
    return spent_s;
}

/* CPU time of a point that shares nothing. */
static double alone_s(void)
{
    const double start_s = cpu_s();
    for (int i = 0; i < POINTS_ALONE; i++) {
        struct arena arena = {0};
        struct diag diag;
        struct experiment experiment;
        struct outcome outcome;
        char nodes[32];
        const char *settings[] = {nodes, "cluster.host.nics.bandwidth=300Gbps"};
        snprintf(nodes, sizeof(nodes), "nodes=%d", 1 + 2 * i);
        diag_init(&diag, &arena);
        enum status status = experiment_load(&experiment, "llama3-8b_dgx-h100", settings, 2, &diag);
        if (status == STATUS_OK)
            status = experiment_build(&experiment);
        if (status == STATUS_OK)
            status = experiment_play(&experiment, &outcome);
        if (status != STATUS_OK)
            diag_write(&diag, stderr, false);
        experiment_release(&experiment);
        arena_release(&arena);
    }
    return (cpu_s() - start_s) / POINTS_ALONE;
}

struct spent {
    double points, wall_s, cpu_s, bytes;
};

/* points 0: it failed. */
static struct spent sweep_once(int32_t workers, const char *db)
{
    struct arena arena = {0};
    struct diag diag;
    struct config_cache cache = {0};
    struct sweep_plan plan = {0};
    struct sweep sweep = {0};
    struct stat about = {0};
    struct spent spent = {0};
    const struct sweep_request request = {
        .path = "llama3-8b_dgx-h100", .overrides = overrides, .override_count = 2};
    const struct sweep_options options = {
        .db = db, .workers = workers, .shard = 1, .shard_count = 1};
    diag_init(&diag, &arena);
    const double start_s = bench_now_s(), start_cpu_s = cpu_s();
    enum status status = sweep_plan_make(&plan, &arena, &request, &cache, &diag);
    if (status == STATUS_OK)
        status = sweep_run(&sweep, &plan, &options, &diag);
    const double points = (double)sweep.counts.done;
    sweep_release(&sweep);
    if (status == STATUS_OK && stat(db, &about) == 0)
        spent = (struct spent){points, bench_now_s() - start_s, cpu_s() - start_cpu_s,
                               (double)about.st_size};
    else
        diag_write(&diag, stderr, false);
    (void)unlink(db);
    config_cache_release(&cache);
    arena_release(&arena);
    return spent;
}

/* The quietest of some rounds. */
static void sweep_rounds(int32_t workers, const char *db, double alone)
{
    struct spent best = {0};
    for (int round = 0; round < ROUNDS; round++) {
        const struct spent one = sweep_once(workers, db);
        if (one.points > 0 && (!(best.points > 0) || one.cpu_s < best.cpu_s))
            best = one;
    }
    if (best.points > 0)
        printf("  %-8d %8.0f %8.2f %10.0f %13.3f %14.0f %11.1f %12.0f\n", (int)workers, best.points,
               best.wall_s, best.points / best.wall_s, best.cpu_s / best.points * 1e3,
               best.points / best.cpu_s, alone * best.points / best.cpu_s,
               best.bytes / best.points);
}

void bench_sweep(void)
{
    char folder[] = "/tmp/fsdpsim_bench.XXXXXX";
    char db[64];
    numeric_init();
    if (mkdtemp(folder) == NULL)
        return;
    snprintf(db, sizeof(db), "%s/runs.db", folder);
    const double alone = alone_s();
    printf("  %-8s %8s %8s %10s %13s %14s %11s %12s\n", "workers", "points", "s", "points/s",
           "CPU ms/point", "points/CPU s", "alone/point", "bytes/point");
    for (int32_t workers = 1; workers <= 2; workers++) {
        sweep_rounds(workers, db, alone);
    }
    (void)rmdir(folder);
}
