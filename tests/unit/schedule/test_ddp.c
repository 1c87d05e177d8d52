/*
 * tests/unit/schedule/test_ddp.c: DDP: buckets, order of issue, volume, time and memory by hand.
 * Numbers in comments: statements of docs/ddp.md.
 *
 * Two GPUs, 1 GB/s a ring: an all-reduce of S bytes takes S ns. A unit of 15,000,000 bf16
 * parameters is 30 MB, more than 25 MiB, so a bucket of its own of 30 ms.
 */
#include <string.h>

#include "program_balance.h"
#include "schedule_tests.h"

#define UNITS_32 "worked-examples/units-32"
#define BF16 "fsdp.api=ddp; train.precision.storage_dtype=bf16"
#define FOUR_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 15000000, forward: 10 ms, "          \
    "backward: 20 ms}]}; " BF16
#define SLOW_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 15000000, forward: 10 ms, "          \
    "backward: 40 ms}]}; " BF16
#define SMALL_UNITS                                                                                \
    "model={family: abstract, units: [{repeat: 32, parameters: 2000000, forward: 10 ms, "          \
    "backward: 20 ms}]}; fsdp.api=ddp; train.precision.reduce_dtype=fp32"

/*
 * 89: 8 MB of fp32 a unit. The last unit fills the first bucket (1 MiB); then four units are 32 MB,
 * the first sum to reach 26,214,400 B; seven such buckets and the three units left: 24 MB.
 */
static void test_buckets(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32, SMALL_UNITS)) {
        static const char *const wanted[] = {"all-reduce: all_reduce bytes=8000000 on dp",
                                             "all-reduce: all_reduce bytes=32000000 on dp",
                                             "all-reduce: all_reduce bytes=24000000 on dp", NULL};
        program_text_check_order(&text, 0, wanted);
        CHECK_INT(program_text_count(&text, "all-reduce: all_reduce"), 9);
        CHECK_INT(program_text_count(&text, "all-reduce: all_reduce bytes=32000000"), 7);
    }
    played_release(&played);
    /* 100 MiB: one unit, then 14 (112 MB), 14, 3. */
    if (program_text_read(&text, &played, UNITS_32, SMALL_UNITS "; ddp.bucket_cap_mb=100")) {
        CHECK_INT(program_text_count(&text, "all-reduce: all_reduce"), 4);
        CHECK_INT(program_text_count(&text, "all-reduce: all_reduce bytes=112000000"), 2);
    }
    played_release(&played);
}

/* 90: behind the backward that filled it, and compute waits for none before the end. */
static void test_order(void)
{
    static const char *const wanted[] = {"compute: segment units.0.backward",
                                         "compute: record ready(bucket.0)",
                                         "all-reduce: wait ready(bucket.0)",
                                         "all-reduce: all_reduce bytes=30000000 on dp",
                                         "compute: segment units.0.backward",
                                         "compute: record ready(bucket.1)",
                                         "compute: segment units.0.backward",
                                         "compute: segment units.0.backward",
                                         "all-reduce: all_reduce bytes=30000000 on dp",
                                         "compute: wait reduced(bucket.0)",
                                         "compute: wait reduced(bucket.3)",
                                         "compute: mark backward_end",
                                         NULL};
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32, FOUR_UNITS)) {
        program_text_check_order(&text, 0, wanted);
        CHECK_INT(program_text_count(&text, "compute: wait"), 4);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
}

/*
 * B = 20: reductions from 20 to 140, one behind the other: 140 ms. B = 40: the last one, from 160
 * to 190, is exposed. Forward waits for nothing: 40 ms.
 */
static void test_times(void)
{
    static const struct {
        const char *overrides;
        double backward_s, exposed_s;
    } rows[] = {{FOUR_UNITS, 0.140, 0.060}, {SLOW_UNITS, 0.190, 0.030}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("row %zu", i);
        if (played_play(&played, UNITS_32, rows[i].overrides)) {
            const struct outcome *outcome = &played.outcome;
            CHECK_NEAR(outcome->forward_s, 0.040, 1e-12);
            CHECK_NEAR(outcome->backward_s, rows[i].backward_s, 1e-12);
            CHECK_NEAR(outcome->exposed_comm_s, rows[i].exposed_s, 1e-12);
            CHECK_NEAR(outcome->compute_s + outcome->exposed_comm_s + outcome->idle_s,
                       outcome->step_time_s, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 2·P·(n-1)/n of 4 B gradients; 7e9 parameters on 8 GPUs: 49 GB. bf16 hook: half. Three
   microbatches: three times, or once under no_sync. */
static void test_volume(void)
{
    static const struct {
        const char *overrides;
        double bytes;
    } rows[] = {
        {NULL, 49e9},
        {"train.precision.reduce_dtype=bf16", 24.5e9},
        {"train.grad_accum=3", 147e9},
        {"train.grad_accum=3; ddp.no_sync=true", 49e9},
        {"gpus_per_node=1", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("row %zu", i);
        if (played_play(&played, "worked-examples/7b-ddp", rows[i].overrides)) {
            CHECK_NEAR(played.outcome.comm_bytes_per_gpu, rows[i].bytes, 1e-9);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 91, 94: 28 GB each of parameters, gradients, buckets and 56 of moments: 20 B a parameter; views
   save the gradients beside the buckets: 112 GB, the textbook's figure, and the 0.875 GB of one
   unit that autograd has just made. */
static void test_memory(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/7b-ddp", NULL)) {
        CHECK_NEAR((double)played.outcome.peak_active_bytes, 140e9, 1e-6);
        CHECK_NEAR((double)played.outcome.peak_composition[MEMORY_REDUCE_BUFFERS], 28e9, 1e-6);
    }
    played_release(&played);
    if (played_play(&played, "worked-examples/7b-ddp", "ddp.gradient_as_bucket_view=true")) {
        CHECK_NEAR((double)played.outcome.peak_active_bytes, 112.875e9, 1e-6);
        CHECK_INT(played.outcome.peak_composition[MEMORY_REDUCE_BUFFERS], 0);
        CHECK_NEAR((double)played.outcome.peak_composition[MEMORY_GRADIENTS], 28e9, 1e-6);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
}

/* Example E, 1.3e9 parameters: fp16 2 + 2, master 4, moments 16: 31.2 GB, and 2.6 GB of buckets. */
static void test_master(void)
{
    struct played played;
    if (played_build(&played, "worked-examples/e", NULL)) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program_kept_bytes(program, MEMORY_PARAMETERS), 2600000000);
        CHECK_INT(program_kept_bytes(program, MEMORY_GRADIENTS), 2600000000);
        CHECK_INT(program_kept_bytes(program, MEMORY_OPTIMIZER), 26000000000);
        CHECK_INT(program_kept_bytes(program, MEMORY_REDUCE_BUFFERS), 2600000000);
        program_check_balance(program);
    }
    played_release(&played);
}

/* 93: the map of used parameters is one more small reduction, for which the host waits; a static
   graph asks in no later step. */
static void test_unused(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32,
                          FOUR_UNITS "; ddp.find_unused_parameters=true")) {
        CHECK_INT(program_text_count(&text, "all-reduce: all_reduce bytes=16 on dp"), 1);
        CHECK_INT(program_text_count(&text, "host: host_wait reduced(used_parameters)"), 1);
    }
    played_release(&played);
    if (program_text_read(&text, &played, UNITS_32,
                          FOUR_UNITS "; ddp.find_unused_parameters=true; ddp.static_graph=true"))
        CHECK_INT(program_text_count(&text, "host: host_wait"), 0);
    played_release(&played);
}

/*
 * A block's backward is cut where its gradients are made. Two blocks of h = 4096 would have buckets
 * of single weights; here every bucket but the first is larger than a weight, and no kernel is
 * lost: the backward of a block takes as long as in one piece.
 */
static void test_cut(void)
{
    static const char cap[] =
        "fsdp={api: ddp}; ddp.bucket_cap_mb=1048576; ddp.gradient_as_bucket_view="
        "true; simulate.ideal=[host, copies, contention, optimizer, latency]; "
        "train.precision.param_dtype=fp32; train.precision.reduce_dtype=fp32";
    static const char whole[] =
        "fsdp={api: fsdp2}; simulate.ideal=[host, copies, contention, optimizer, latency]; "
        "train.precision.param_dtype=fp32; train.precision.reduce_dtype=fp32";
    struct played played, other;
    if (played_play(&played, TWO_BLOCKS, cap) && played_play(&other, TWO_BLOCKS, whole))
        CHECK_NEAR(played.outcome.compute_s, other.outcome.compute_s, 1e-9);
    played_release(&played);
    played_release(&other);
}

const struct check_case ddp_cases[] = {{"buckets", test_buckets},
                                       {"order", test_order},
                                       {"times", test_times},
                                       {"volume", test_volume},
                                       {"memory", test_memory},
                                       {"master copy", test_master},
                                       {"unused parameters", test_unused},
                                       {"backward is cut, not changed", test_cut},
                                       {0}};
