/* tests/unit/run/test_training_cost.c: GPU-hours and money of a budget of tokens, by hand. */
#include <math.h>
#include <string.h>

#include "run_tests.h"

/* units-3: 2 GPUs, a token each in 245 ms: 0.1225 s a token. A million tokens take 122,500 s. */
static void test_budget(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-3",
                    "cost.gpu_hour=3.6; cost.currency=CHF; cost.tokens=1M")) {
        const struct outcome *outcome = &played.outcome;
        CHECK_NEAR(outcome->tokens_per_day, 86400 / 0.1225, 1e-12);
        CHECK_NEAR(outcome->budget_tokens, 1e6, 0);
        CHECK_NEAR(outcome->budget_days, 122500 / 86400.0, 1e-12);
        CHECK_NEAR(outcome->budget_gpu_hours, 2 * 122500 / 3600.0, 1e-12);
        CHECK_NEAR(outcome->cost_per_gpu_hour, 3.6, 0);
        CHECK_NEAR(outcome->budget_cost, 245, 1e-12);
        CHECK_NEAR(outcome->cost_per_billion_tokens, 245000, 1e-12);
        CHECK_TEXT(outcome->currency, "CHF");
    }
    played_release(&played);
}

/* Nothing is invented: what the configuration does not give is not defined. */
static void test_absent(void)
{
    struct played played;
    double value = 0;
    if (played_play(&played, "worked-examples/units-3", NULL)) {
        static const char *const undefined[] = {"cost_per_gpu_hour", "cost_per_billion_tokens",
                                                "budget_tokens",     "budget_days",
                                                "budget_gpu_hours",  "budget_cost"};
        for (size_t i = 0; i < sizeof(undefined) / sizeof(undefined[0]); i++)
            CHECK_TRUE(!outcome_number(&played.outcome, outcome_metric(undefined[i]), &value));
        CHECK_TRUE(played.outcome.currency == NULL);
        CHECK_NEAR(played.outcome.tokens_per_day, 86400 / 0.1225, 1e-12);
        CHECK_TRUE(strstr(played_json(&played), "\"budget_cost\": null") != NULL);
    }
    played_release(&played);
    if (played_play(&played, "worked-examples/units-3", "cost.tokens=7k")) {
        CHECK_NEAR(played.outcome.budget_gpu_hours, 2 * 7000 * 0.1225 / 3600, 1e-12);
        CHECK_TRUE(isnan(played.outcome.budget_cost));
    }
    played_release(&played);
}

/* A price is part of what a stored point is about. */
static void test_key(void)
{
    struct played plain, priced;
    CHECK_INT(played_load(&plain, "worked-examples/units-3", NULL), STATUS_OK);
    CHECK_INT(played_load(&priced, "worked-examples/units-3", "cost.gpu_hour=3; cost.currency=USD"),
              STATUS_OK);
    const struct hash128 a = experiment_key(&plain.experiment);
    const struct hash128 b = experiment_key(&priced.experiment);
    CHECK_TRUE(a.high != b.high && a.low != b.low);
    played_release(&plain);
    played_release(&priced);
}

static void test_mistakes(void)
{
    static const struct mistake rows[] = {
        {"worked-examples/units-3",
         "cost.gpu_hour=3",
         {"'gpu_hour' is a price, and 'cost' lacks 'currency'"}},
        {"worked-examples/units-3",
         "cost.currency=USD",
         {"'currency' means nothing without 'gpu_hour'"}},
        {"worked-examples/units-3",
         "cost.gpu_hour=-1; cost.currency=USD",
         {"'gpu_hour' must be a number from 0 to 1000000000"}},
        {"worked-examples/units-3",
         "cost.gpu_hour=3 USD; cost.currency=USD",
         {"'gpu_hour' must be a number"}},
        {"worked-examples/units-3", "cost.tokens=15TB", {"unit 'TB' does not fit 'tokens'"}},
        {"worked-examples/units-3", "cost.tokens=15X", {"unknown unit 'X' for 'tokens'"}},
        {"worked-examples/units-3", "cost.tokens=0", {"'tokens' must be a number of tokens"}},
    };
    check_mistakes(rows, sizeof(rows) / sizeof(rows[0]));
}

const struct check_case training_cost_cases[] = {
    {"days, GPU-hours, cost of a budget", test_budget},
    {"what is not given is not defined", test_absent},
    {"a price is part of the key", test_key},
    {"mistakes", test_mistakes},
    {0},
};
