/* tests/bench/bench_sweep.c: a sweep from the command to the database, in points a second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "numeric/curve.h"
#include "study/sweep.h"

static const char *const overrides[] = {
    "nodes=range(1,65,1)", "cluster.host.nics.bandwidth=range(100Gbps,900Gbps,100Gbps)"};

static void sweep_once(int32_t workers, const char *db)
{
    struct arena arena = {0};
    struct diag diag;
    struct config_cache cache = {0};
    struct sweep_plan plan = {0};
    struct sweep sweep = {0};
    struct stat about = {0};
    const struct sweep_request request = {
        .path = "llama3-8b_dgx-h100", .overrides = overrides, .override_count = 2};
    const struct sweep_options options = {
        .db = db, .workers = workers, .shard = 1, .shard_count = 1};
    diag_init(&diag, &arena);
    const double start_s = bench_now_s();
    enum status status = sweep_plan_make(&plan, &arena, &request, &cache, &diag);
    if (status == STATUS_OK)
        status = sweep_run(&sweep, &plan, &options, &diag);
    const double spent_s = bench_now_s() - start_s;
    const double points = (double)sweep.counts.done;
    sweep_release(&sweep);
    if (status == STATUS_OK && stat(db, &about) == 0)
        printf("  %-12d %12.0f %12.2f %14.0f %14.0f\n", (int)workers, points, spent_s,
               points / spent_s, (double)about.st_size / points);
    else
        diag_write(&diag, stderr, false);
    config_cache_release(&cache);
    arena_release(&arena);
}

void bench_sweep(void)
{
    char folder[] = "/tmp/fsdpsim_bench.XXXXXX";
    char db[64];
    numeric_init();
    if (mkdtemp(folder) == NULL)
        return;
    snprintf(db, sizeof(db), "%s/runs.db", folder);
    printf("  %-12s %12s %12s %14s %14s\n", "workers", "points", "s", "points/s", "bytes/point");
    for (int32_t workers = 1; workers <= 2; workers++) {
        sweep_once(workers, db);
        (void)unlink(db);
    }
    (void)rmdir(folder);
}
