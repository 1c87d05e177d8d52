/* tests/unit/worked/test_states.c: bytes a parameter: 7B-DDP, 7B-FULL, A, B, E, G. */
#include "worked_tests.h"

static bool estimated(struct played *played, const char *config, const char *overrides,
                      double budget_bytes, bool has_buckets, struct estimate *estimate)
{
    check_context("%s %s", config, overrides != NULL ? overrides : "");
    bool held = CHECK_INT(played_load(played, config, overrides), STATUS_OK);
    if (held)
        held = CHECK_INT(estimate_memory(&played->experiment, budget_bytes, has_buckets, estimate),
                         STATUS_OK);
    if (!held)
        printf("%s", played_messages(played));
    return held;
}

static void done(struct played *played)
{
    played_release(played);
    check_context(NULL);
}

static void test_7b_ddp(void)
{
    struct played played;
    struct estimate estimate;
    if (estimated(&played, "worked-examples/7b-ddp", NULL, 0, false, &estimate)) {
        const struct estimate_row *ddp = &estimate.rows[STAGE_DDP];
        CHECK_INT(estimate.parameters, 7000000000);
        CHECK_NEAR(ddp->parameter_bytes, 28e9, EXACT);
        CHECK_NEAR(ddp->gradient_bytes, 28e9, EXACT);
        CHECK_NEAR(ddp->optimizer_bytes, 56e9, EXACT);
        CHECK_NEAR(ddp->states_bytes, 112e9, EXACT);
        CHECK_NEAR(ddp->bytes_per_parameter, 16, EXACT);
        CHECK_NEAR(ddp->bucket_bytes, 0, EXACT);
        CHECK_NEAR(estimate.budget_bytes, 40e9, EXACT);
        CHECK_NEAR(ddp->states_bytes / estimate.budget_bytes, 2.8, EXACT);
        CHECK_TRUE(!ddp->fits);
        const char *text = played_memory(&played, &estimate);
        CHECK_CONTAINS(text, "28 GB");
        CHECK_CONTAINS(text, "56 GB");
        CHECK_CONTAINS(text, "112 GB");
        CHECK_CONTAINS(text, "ddp fails");
    }
    done(&played);
}

/* With buckets of their own the gradients are there twice: 28 + 28 + 28 + 56. */
static void test_7b_ddp_buckets(void)
{
    struct played played;
    struct estimate estimate;
    if (estimated(&played, "worked-examples/7b-ddp", NULL, 0, true, &estimate)) {
        CHECK_NEAR(estimate.rows[STAGE_DDP].bucket_bytes, 28e9, EXACT);
        CHECK_NEAR(estimate.rows[STAGE_DDP].states_bytes, 140e9, EXACT);
        CHECK_NEAR(estimate.rows[STAGE_ZERO3].states_bytes, 14e9, EXACT);
    }
    done(&played);
}

static void test_7b_full(void)
{
    struct played played;
    struct estimate estimate;
    if (estimated(&played, "worked-examples/7b-full", NULL, 0, false, &estimate)) {
        const struct estimate_row *full = &estimate.rows[STAGE_ZERO3];
        CHECK_INT(estimate.ranks, 8);
        CHECK_NEAR(full->parameter_bytes, 3.5e9, EXACT);
        CHECK_NEAR(full->gradient_bytes, 3.5e9, EXACT);
        CHECK_NEAR(full->optimizer_bytes, 7e9, EXACT);
        CHECK_NEAR(full->states_bytes, 14e9, EXACT);
        CHECK_NEAR(estimate.one_unit_gathered_bytes, 0.875e9, EXACT);
        CHECK_NEAR(estimate.textbook_peak_bytes, 14.875e9, EXACT);
        CHECK_TRUE(full->fits);
        const char *text = played_memory(&played, &estimate);
        CHECK_CONTAINS(text, "14 GB");
        CHECK_CONTAINS(text, "0.875 GB");
        CHECK_CONTAINS(text, "14.875 GB");
        CHECK_CONTAINS(text, "two gathered copies");
    }
    done(&played);
}

/*
 * What is alive at the end of the backward of the second unit, when 30 of 32 are reduced: shards of
 * all parameters and moments; sharded gradients of 30; parameters of this unit and the prefetched
 * buffer of the first; its gradients; the reduce-scatter input of the third:
 *   3.5 + 7 + 30/32 · 3.5 + 4 · 0.875 = 17.28125 GB
 * In the first unit's backward nothing is prefetched: 31/32 · 3.5 + 3 · 0.875 is 0.77 GB less.
 */
static void test_7b_full_peak(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/7b-full", NULL)) {
        const struct outcome *outcome = &played.outcome;
        const int64_t *parts = outcome->peak_composition;
        const int64_t shard = rounded_up(218750000 / 8 * 4), unit = rounded_up(218750000 * 4);
        CHECK_INT(parts[MEMORY_PARAMETERS], 32 * shard);
        CHECK_INT(parts[MEMORY_OPTIMIZER], 32 * 2 * shard);
        CHECK_INT(parts[MEMORY_GRADIENTS], 30 * shard);
        CHECK_INT(parts[MEMORY_UNSHARDED_PARAMETERS], 2 * unit);
        CHECK_INT(parts[MEMORY_UNSHARDED_GRADIENTS], unit);
        CHECK_INT(parts[MEMORY_REDUCE_BUFFERS], unit);
        CHECK_INT(outcome->peak_active_bytes, 126 * shard + 4 * unit);
        CHECK_NEAR((double)outcome->peak_active_bytes, 17.28125e9, ROUNDED);
        CHECK_TRUE((double)outcome->peak_active_bytes >= 14.875e9);
        CHECK_CONTAINS(outcome->peak_at, "units.1");
        /* Pools do not lend to one another, and each has its own highest moment: shards 10.5 and
           parameters, gradients, input of a backward 3 x 0.875; two gather buffers in forward 1.75;
           all sharded gradients 3.5: 18.375 GB. In segments: a shard of 104.3 MiB takes 106, a unit
           of 834.5 takes 836. At the end of the first step the three unit-sized segments of the
           compute stream are free, and 8 moments go into each; the second step asks for three
           more. */
        CHECK_INT(outcome->peak_reserved_bytes, (104 * 106 + 8 * 836) * (INT64_C(1) << 20));
        CHECK_NEAR((double)outcome->peak_reserved_bytes, 18.375e9, 0.011);
        /* The first step has no moments until its end: 3.5 + 3.5 + 7. */
        CHECK_NEAR((double)outcome->first_step_peak_active_bytes, 14e9, ROUNDED);
        CHECK_TRUE(outcome->fits);
    }
    played_release(&played);
}

static void test_a(void)
{
    static const struct {
        const char *overrides;
        int64_t ranks;
        double sharded_bytes;
    } rows[] = {{"gpus_per_node=1", 1, 112e9}, {NULL, 8, 14e9}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct estimate estimate;
        if (estimated(&played, "worked-examples/a", rows[i].overrides, 0, false, &estimate)) {
            CHECK_INT(estimate.ranks, rows[i].ranks);
            CHECK_NEAR(estimate.rows[STAGE_DDP].states_bytes, 112e9, EXACT);
            CHECK_NEAR(estimate.rows[STAGE_ZERO3].states_bytes, rows[i].sharded_bytes, EXACT);
            CHECK_NEAR(estimate.bytes_per_parameter[0], 4, EXACT);
            CHECK_NEAR(estimate.bytes_per_parameter[1], 4, EXACT);
            CHECK_NEAR(estimate.bytes_per_parameter[2], 8, EXACT);
        }
        done(&played);
    }
}

static void test_b(void)
{
    struct played played;
    struct estimate estimate;
    if (estimated(&played, "worked-examples/b", NULL, 0, false, &estimate)) {
        CHECK_INT(estimate.ranks, 64);
        CHECK_NEAR(estimate.bytes_per_parameter[0], 2, EXACT);
        CHECK_NEAR(estimate.bytes_per_parameter[1], 2, EXACT);
        CHECK_NEAR(estimate.bytes_per_parameter[2], 12, EXACT);
        CHECK_NEAR(estimate.rows[STAGE_DDP].bytes_per_parameter, 16, EXACT);
        CHECK_NEAR(estimate.rows[STAGE_ZERO3].states_bytes, 1.75e9, EXACT);
    }
    done(&played);
}

static void test_e(void)
{
    struct played played;
    struct estimate estimate;
    if (estimated(&played, "worked-examples/e", NULL, 0, false, &estimate)) {
        CHECK_INT(estimate.parameters, 1300000000);
        CHECK_NEAR(estimate.rows[STAGE_DDP].bytes_per_parameter, 24, EXACT);
        CHECK_NEAR(estimate.rows[STAGE_DDP].states_bytes, 31.2e9, EXACT);
        CHECK_NEAR(estimate.budget_bytes, 80e9, EXACT);
        CHECK_TRUE(estimate.rows[STAGE_DDP].fits);
        CHECK_INT(estimate.smallest_fitting, STAGE_DDP);
        CHECK_CONTAINS(played_memory(&played, &estimate), "31.2 GB");
    }
    done(&played);
}

static void test_g(void)
{
    static const struct {
        enum estimate_stage stage;
        double per_parameter, states_bytes;
        bool fits;
    } rows[] = {{STAGE_ZERO1, 5.5, 16.5e9, false},
                {STAGE_ZERO2, 3.75, 11.25e9, false},
                {STAGE_ZERO3, 2, 6e9, true}};
    struct played played;
    struct estimate estimate;
    if (estimated(&played, "worked-examples/g", NULL, 10e9, false, &estimate)) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const struct estimate_row *row = &estimate.rows[rows[i].stage];
            CHECK_NEAR(row->bytes_per_parameter, rows[i].per_parameter, EXACT);
            CHECK_NEAR(row->states_bytes, rows[i].states_bytes, EXACT);
            CHECK_INT(row->fits, rows[i].fits);
        }
        CHECK_INT(estimate.smallest_fitting, STAGE_ZERO3);
        const char *text = played_memory(&played, &estimate);
        CHECK_CONTAINS(text, "smallest stage that fits in 10 GB per GPU: zero3");
        CHECK_CONTAINS(text, "16.5 GB");
        CHECK_CONTAINS(text, "11.25 GB");
    }
    done(&played);
}

const struct check_case states_cases[] = {{"7B-DDP: 28 + 28 + 56 = 112 GB", test_7b_ddp},
                                          {"7B-DDP with buckets: 140 GB", test_7b_ddp_buckets},
                                          {"7B-FULL: 14 GB, 0.875, 14.875", test_7b_full},
                                          {"7B-FULL simulated: 17.28125 GB", test_7b_full_peak},
                                          {"A: one GPU saves nothing", test_a},
                                          {"B: mixed precision keeps 16 B a parameter", test_b},
                                          {"E: 31.2 GB fit without sharding", test_e},
                                          {"G: stage 3 is the smallest that fits", test_g},
                                          {0}};
