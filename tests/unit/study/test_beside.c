/* tests/unit/study/test_beside.c: distances, the closest run and intervals, by hand. */
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "study/beside.h"
#include "study_tests.h"

static const struct run_traits plain = {.label = "A-1",
                                        .model = "llama",
                                        .gpu = "h100",
                                        .policy = "fsdp2",
                                        .checkpointing = "full",
                                        .parameters = 8030261248,
                                        .seq_len = 8192,
                                        .micro_batch = 1,
                                        .n_gpus = 8,
                                        .n_nodes = 1,
                                        .peak_flop_per_s = 989e12,
                                        .hbm_bytes_per_s = 3.35e12,
                                        .is_compiled = true,
                                        .measured_s = 1.3,
                                        .predicted_s = 1.2};

static void test_distance(void)
{
    struct arena arena = {0};
    struct run_traits other = plain;
    CHECK_NEAR(run_distance(&plain, &other), 0, 1e-12);
    CHECK_TEXT(run_difference(&arena, &plain, &other), "nothing");
    /* 32 GPUs over hosts: two octaves and a word; the network has nothing to be compared with. */
    other.n_gpus = 32;
    other.n_nodes = 4;
    other.network_bytes_per_s = 50e9;
    CHECK_NEAR(run_distance(&plain, &other), 3, 1e-12);
    CHECK_NEAR(run_distance(&other, &plain), 3, 1e-12);
    CHECK_TEXT(run_difference(&arena, &other, &plain), "GPUs 32 not 8, hosts 4 not 1");
    /* Half the network of another run over hosts: one octave. */
    struct run_traits slow = other;
    slow.network_bytes_per_s = 25e9;
    CHECK_NEAR(run_distance(&slow, &other), 1, 1e-12);
    CHECK_TEXT(run_difference(&arena, &slow, &other), "network a GPU 25 GB/s not 50 GB/s");
    /* Other words: one each. */
    other = plain;
    other.policy = "zero3";
    other.checkpointing = "none";
    other.is_compiled = false;
    other.is_float8 = true;
    other.is_lora = true;
    CHECK_NEAR(run_distance(&plain, &other), 5, 1e-12);
    /* log2(3072 / 8192) = -1.415037 */
    other = plain;
    other.seq_len = 3072;
    CHECK_NEAR(run_distance(&plain, &other), 1.4150374992788437, 1e-12);
    arena_release(&arena);
}

static void test_closest(void)
{
    struct run_traits runs[] = {plain, plain, plain};
    const struct run_index index = {.items = runs, .count = 3};
    struct run_traits run = plain;
    runs[0].seq_len = 2048; /* 2 from 8,192; 1 from 4,096 */
    runs[1].n_gpus = 16;
    runs[2].n_gpus = 16;
    runs[1].label = "B-1";
    runs[2].label = "C-1";
    CHECK_TEXT(run_closest(&index, &run)->label, "B-1"); /* of equals the first */
    run.seq_len = 2048;
    CHECK_TEXT(run_closest(&index, &run)->label, "A-1");
    CHECK_TRUE(run_closest(&(struct run_index){0}, &run) == NULL);
}

/* What is written is what is read; the file that ships can be read. */
static void test_index(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct besides besides;
    diag_init(&diag, &arena);
    if (CHECK_INT(besides_load(&arena, &besides, &diag), STATUS_OK)) {
        CHECK_TRUE(besides.index.count > 300);
        CHECK_TRUE(besides.spreads.is_known);
        for (int32_t k = 0; k < besides.index.count; k++) {
            const struct run_traits *run = &besides.index.items[k];
            CHECK_TRUE(run->measured_s > 0 && run->predicted_s > 0 && run->n_gpus >= run->n_nodes &&
                       run->parameters > 0);
            CHECK_TEXT(run_closest(&besides.index, run)->gpu, run->gpu);
        }
    }
    arena_release(&arena);
}

/* By hand: see docs/intervals.md. A spread of a tenth is exp(1.6449 x 0.1) = 1.1788 upwards. */
static void test_interval(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    struct spreads spreads = {.is_known = true, .repeat = 0.1};
    static const char *const settings[] = {"nodes=1", "train.compile=true"};
    diag_init(&diag, &arena);
    if (!CHECK_INT(experiment_load(&experiment, "llama3-8b_dgx-h100", settings, 2, &diag),
                   STATUS_OK) ||
        !CHECK_INT(experiment_build(&experiment), STATUS_OK) ||
        !CHECK_INT(experiment_play(&experiment, &outcome), STATUS_OK))
        goto out;
    struct interval interval = interval_of(&spreads, &experiment, &outcome, false);
    CHECK_NEAR(interval.spread, 0.1, 1e-9);
    CHECK_NEAR(interval.high_s / outcome.step_time_s, 1.1788, 1e-4);
    CHECK_NEAR(interval.low_s * interval.high_s, outcome.step_time_s * outcome.step_time_s, 1e-9);

    /* Exposed communication alone: 0.2 of it, one host. */
    struct spread_row row = {SPREAD_ONE_HOST, "any", 100, 0.2};
    spreads = (struct spreads){.is_known = true, .rows = {&row, 1, 1}};
    interval = interval_of(&spreads, &experiment, &outcome, true);
    CHECK_NEAR(interval.spread, 0.2 * outcome.exposed_comm_fraction, 1e-9);

    /* Attention as a whole weighs more than the same share of many GEMM shapes; together they are
       less than the kernels' whole time. */
    row = (struct spread_row){SPREAD_GEMM, "any", 100, 0.1};
    interval = interval_of(&spreads, &experiment, &outcome, false);
    const double gemm = interval.spread;
    row = (struct spread_row){SPREAD_ATTENTION, experiment.cluster.gpu.name, 100, 0.1};
    interval = interval_of(&spreads, &experiment, &outcome, false);
    CHECK_TRUE(gemm > 0.005 && gemm < 0.05 && interval.spread > 0.005 && interval.spread < 0.05);

    /* One that waits for its data, of which a tenth of a second in 4 is exposed: 0.2 x 0.025,
       whatever of its 0.5 s of communication is hidden; one that the network bounds: with all. */
    row = (struct spread_row){SPREAD_ONE_HOST, "any", 100, 0.2};
    struct outcome given = outcome;
    given.step_time_s = 4;
    given.compute_s = 1.2;
    given.comm_s = 0.5;
    given.exposed_comm_s = 0.1;
    given.idle_s = 2.7;
    given.bottleneck = "data loader";
    CHECK_NEAR(interval_of(&spreads, &experiment, &given, false).spread, 0.2 * 0.1 / 4, 1e-9);
    given.bottleneck = "checkpoint";
    CHECK_NEAR(interval_of(&spreads, &experiment, &given, false).spread, 0.2 * 0.1 / 4, 1e-9);
    given.idle_s = 0;
    given.comm_s = 3;
    given.exposed_comm_s = 2.8;
    given.bottleneck = "NIC out";
    CHECK_NEAR(interval_of(&spreads, &experiment, &given, false).spread, 0.2 * 3 / 4, 1e-9);

    spreads.is_known = false;
    CHECK_TRUE(isnan(interval_of(&spreads, &experiment, &outcome, false).low_s));
out:
    experiment_release(&experiment);
    arena_release(&arena);
}

const struct check_case beside_cases[] = {{"distance by hand", test_distance},
                                          {"closest run", test_closest},
                                          {"index that ships", test_index},
                                          {"interval by hand", test_interval},
                                          {NULL, NULL}};
