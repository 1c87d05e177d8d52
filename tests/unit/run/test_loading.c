/* tests/unit/run/test_loading.c: a step is no faster than its batches come, by hand. */
#include <string.h>

#include "run_tests.h"

/* units-3: 2 GPUs of a host with 20 cores, 245 ms; three microbatches 735 ms and two additions. */
static void test_pace(void)
{
    static const struct {
        const char *overrides;
        double step_s; /* 0: as without a loader */
    } rows[] = {
        {"num_workers: 1, sample_time: 240 ms", 0},
        {"num_workers: 1, sample_time: 300 ms", 0.3},
        {"num_workers: 2, sample_time: 300 ms", 0},
        {"num_workers: 2, sample_time: 700 ms, prefetch_factor: 1", 0.35},
        {"num_workers: 0, sample_time: 300 ms", 0.3},
        /* 30 MB for each of two ranks at 200 MB/s */
        {"num_workers: 4, sample_bytes: 30MB", 0.3},
        {"num_workers: 4, sample_bytes: 30MB, sample_time: 1.5 s", (1.5 + 0.3) / 4},
        {"num_workers: 0, sample_bytes: 30MB, sample_time: 100 ms", 0.4},
        /* 40 workers on 2 x 10 cores take twice as long */
        {"num_workers: 20, sample_time: 4 s", 4 * 2 / 20.0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int accum = 1; accum <= 3; accum += 2) {
            struct played plain, loaded;
            char overrides[256];
            snprintf(overrides, sizeof(overrides), "train.grad_accum=%d", accum);
            check_context("%s, %s", rows[i].overrides, overrides);
            const bool is_played = played_play(&plain, "worked-examples/units-3", overrides);
            snprintf(overrides, sizeof(overrides),
                     "train.grad_accum=%d; cluster.storage.read=200MB/s; train.data_loader={%s}",
                     accum, rows[i].overrides);
            if (is_played && played_play(&loaded, "worked-examples/units-3", overrides)) {
                const struct outcome *outcome = &loaded.outcome;
                const double expected =
                    rows[i].step_s > 0 ? accum * rows[i].step_s : plain.outcome.step_time_s;
                CHECK_NEAR(outcome->step_time_s, expected, 1e-9);
                CHECK_NEAR(1 + outcome->data_wait_s, 1 + expected - plain.outcome.step_time_s,
                           1e-9);
                CHECK_NEAR(1 + outcome->idle_s, 1 + outcome->data_wait_s, 1e-9);
                CHECK_NEAR(outcome->compute_s, plain.outcome.compute_s, 1e-9);
            }
            played_release(&loaded);
            played_release(&plain);
        }
    }
    check_context(NULL);
}

/* A shared file system of 100 MB/s, 12.5 MB a sequence for all 2 GPUs: 250 ms; twice as much for a
   batch of two. */
static void test_shared(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-3",
                    "cluster.storage={read: 10GB/s, shared_read: 100MB/s}; train.micro_batch=2;"
                    "train.data_loader={num_workers: 8, sample_bytes: 12.5MB}")) {
        CHECK_NEAR(played.outcome.step_time_s, 0.5, 1e-9);
        CHECK_NEAR(played.outcome.data_wait_s, 0.255, 1e-9);
        CHECK_TEXT(played.outcome.bottleneck, "data loader");
    }
    played_release(&played);
}

/* Every policy takes its batches. */
static void test_policies(void)
{
    static const char *const apis[] = {"fsdp2", "fsdp1", "ddp", "zero1", "zero2", "zero3"};
    for (size_t i = 0; i < sizeof(apis) / sizeof(apis[0]); i++) {
        struct played played;
        char overrides[256];
        check_context("%s", apis[i]);
        snprintf(overrides, sizeof(overrides),
                 "fsdp={api: %s}; train.precision={param_dtype: bf16}; train.grad_accum=2;"
                 "train.data_loader={num_workers: 1, sample_time: 1.5 s}",
                 apis[i]);
        if (played_play(&played, "worked-examples/units-3", overrides)) {
            CHECK_NEAR(played.outcome.step_time_s, 3, 1e-9);
            CHECK_TEXT(played.outcome.bottleneck, "data loader");
            CHECK_CONTAINS(played_dump(&played), "host_wait batch(1)");
            CHECK_CONTAINS(played_dump(&played), "load");
        }
        played_release(&played);
    }
    check_context(NULL);
}

static void test_mistakes(void)
{
    static const struct mistake rows[] = {
        {"worked-examples/units-3",
         "train.data_loader={num_workers: 2}",
         {"how long a sequence takes"}},
        {"worked-examples/units-3",
         "train.data_loader={sample_time: 1 ms}",
         {"'num_workers' is missing in"}},
        {"worked-examples/units-3",
         "train.data_loader={num_workers: 2, sample_bytes: 1MB}",
         {"how fast data is read"}},
        {"worked-examples/units-3",
         "train.data_loader={num_workers: 0, sample_time: 1 ms, prefetch_factor: 4}",
         {"'prefetch_factor' means nothing without workers"}},
        {"worked-examples/units-3",
         "train.data_loader={num_workers: -1, sample_time: 1 ms}",
         {"'num_workers' must be"}},
        {"worked-examples/units-3",
         "train.data_loader={num_workers: 1, sample_time: 1}",
         {"'sample_time' needs a unit"}},
    };
    check_mistakes(rows, sizeof(rows) / sizeof(rows[0]));
}

const struct check_case loading_cases[] = {
    {"pace of workers, storage, cores", test_pace},
    {"a shared file system", test_shared},
    {"every policy", test_policies},
    {"mistakes", test_mistakes},
    {0},
};
