/* unit/report/test_outcome.c: the table of metrics. */
#include <math.h>
#include <string.h>

#include "outcome_fixture.h"
#include "report_tests.h"

/* The keys that the JSON of a run must hold, in this order (docs: `run --json`). */
static const char *const promised[] = {"model",
                                       "cluster",
                                       "n_gpus",
                                       "step_time_s",
                                       "tokens_per_s",
                                       "tokens_per_s_per_gpu",
                                       "mfu",
                                       "hfu",
                                       "tflops_per_gpu",
                                       "compute_s",
                                       "comm_s",
                                       "comm_wait_s",
                                       "copy_s",
                                       "exposed_comm_s",
                                       "idle_s",
                                       "memcpy_s",
                                       "exposed_comm_fraction",
                                       "overlap_fraction",
                                       "peak_active_bytes",
                                       "peak_reserved_bytes",
                                       "peak_device_bytes",
                                       "memory_capacity_bytes",
                                       "fits",
                                       "comm_bytes_per_gpu",
                                       "bottleneck",
                                       "events"};

static void test_promised_order(void)
{
    for (size_t i = 0; i < sizeof(promised) / sizeof(promised[0]); i++)
        CHECK_TEXT(outcome_metrics[i].name, promised[i]);
}

static void test_table_is_complete(void)
{
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++) {
        check_context("%s", metric->name);
        CHECK_TRUE(metric->unit != NULL && metric->unit[0] != '\0');
        CHECK_TRUE(metric->help != NULL && metric->help[0] != '\0');
        CHECK_TRUE(outcome_metric(metric->name) == metric); /* no name twice */
        CHECK_TRUE((metric->kind == METRIC_TEXT) == (strcmp(metric->unit, "text") == 0));
        const size_t length = strlen(metric->name);
        if (length > 6 && strcmp(metric->name + length - 6, "_bytes") == 0)
            CHECK_TEXT(metric->unit, "bytes");
    }
    check_context(NULL);
    CHECK_TRUE(outcome_metric("step_time") == NULL);
}

static void test_numbers(void)
{
    struct arena arena = {0};
    struct outcome outcome;
    double value = -1;
    outcome_fixture(&arena, &outcome);
    CHECK_TRUE(outcome_number(&outcome, outcome_metric("step_time_s"), &value));
    CHECK_NEAR(value, 2.385, 0);
    CHECK_TRUE(outcome_number(&outcome, outcome_metric("peak_device_bytes"), &value));
    CHECK_NEAR(value, 71.25 * 1073741824.0, 0);
    CHECK_TRUE(outcome_number(&outcome, outcome_metric("fits"), &value));
    CHECK_NEAR(value, 1, 0);
    CHECK_TRUE(!outcome_number(&outcome, outcome_metric("hfu"), &value)); /* NaN */
    CHECK_TRUE(!outcome_number(&outcome, outcome_metric("bottleneck"), &value));
    arena_release(&arena);
}

const struct check_case outcome_cases[] = {{"promised keys come first", test_promised_order},
                                           {"table is complete", test_table_is_complete},
                                           {"numbers", test_numbers},
                                           {0}};
