/* tests/unit/run/test_samples.c: many plays of one configuration, and what is said of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "run/samples.h"
#include "run_tests.h"

#define NOISE "simulate.jitter={kernels: 0.1, gpus: 0.05, network: 0.2}"

static double *step_times(const struct samples *samples)
{
    return samples->values[samples_find(samples, "step_time_s")];
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of 20 samples type 7 puts 5 % at 0.95 of the way from the first to the second, 50 % between the
   10th and the 11th. Shown is the 10th, and its parts add up. */
static void test_quantiles_and_middle(void)
{
    struct played played;
    struct arena arena = {0};
    struct samples samples;
    if (played_play(&played, "worked-examples/units-3", NOISE "; simulate.samples=20")) {
        CHECK_INT(samples_play(&played.experiment, 20, &arena, &samples), STATUS_OK);
        double *sorted = step_times(&samples);
        qsort(sorted, 20, sizeof(double), ascending);
        const struct outcome *outcome = &played.outcome;
        const struct outcome_interval *step = outcome_interval(outcome, "step_time_s");
        CHECK_INT(outcome->n_samples, 20);
        if (CHECK_TRUE(step != NULL)) {
            CHECK_NEAR(step->p05, sorted[0] + 0.95 * (sorted[1] - sorted[0]), 1e-12);
            CHECK_NEAR(step->p50, (sorted[9] + sorted[10]) / 2, 1e-12);
            CHECK_NEAR(step->p95, sorted[18] + 0.05 * (sorted[19] - sorted[18]), 1e-12);
            CHECK_TEXT(step->unit, "s");
        }
        CHECK_TRUE(sorted[19] > sorted[0]);
        CHECK_NEAR(outcome->step_time_s, sorted[9], 1e-12);
        CHECK_NEAR(outcome->compute_s + outcome->exposed_comm_s + outcome->idle_s,
                   outcome->step_time_s, 1e-12);
        CHECK_TRUE(outcome_interval(outcome, "peak_device_bytes") == NULL);
    }
    arena_release(&arena);
    played_release(&played);
}

/* Sample i is the same among 4 and among 9, and a run of its own when i = 0. */
static void test_more_samples_add(void)
{
    struct played few, plain;
    struct arena arena = {0};
    struct samples four, nine;
    if (played_build(&few, "worked-examples/units-3", NOISE)) {
        CHECK_INT(samples_play(&few.experiment, 4, &arena, &four), STATUS_OK);
        CHECK_INT(samples_play(&few.experiment, 9, &arena, &nine), STATUS_OK);
        for (int i = 0; i < 4; i++)
            CHECK_NEAR(step_times(&four)[i], step_times(&nine)[i], 0);
        CHECK_TRUE(step_times(&nine)[7] < step_times(&nine)[8] ||
                   step_times(&nine)[7] > step_times(&nine)[8]);
        if (played_play(&plain, "worked-examples/units-3", NOISE))
            CHECK_NEAR(plain.outcome.step_time_s, step_times(&four)[0], 0);
        played_release(&plain);
    }
    arena_release(&arena);
    played_release(&few);
}

/* Another seed, other numbers; what is asked of the samples is part of the key. */
static void test_key(void)
{
    static const char *const overrides[] = {
        NOISE, NOISE "; simulate.samples=5", NOISE "; simulate.samples=6",
        NOISE "; simulate.samples=5; simulate.seed=2", "simulate.samples=5"};
    enum { COUNT = sizeof(overrides) / sizeof(overrides[0]) };
    struct hash128 keys[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct played played;
        CHECK_INT(played_load(&played, "worked-examples/units-3", overrides[i]), STATUS_OK);
        keys[i] = experiment_key(&played.experiment);
        for (int k = 0; k < i; k++)
            CHECK_TRUE(keys[k].low != keys[i].low || keys[k].high != keys[i].high);
        played_release(&played);
    }
}

/* 85 + 160 ms in every sample, and the run says why. */
static void test_nothing_drawn(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-3", "simulate.samples=3")) {
        const struct outcome_interval *step = outcome_interval(&played.outcome, "step_time_s");
        CHECK_NEAR(step->p05, 0.245, 1e-12);
        CHECK_NEAR(step->p95, 0.245, 1e-12);
        bool is_said = false;
        for (int32_t i = 0; i < played.outcome.warning_count; i++)
            is_said |= strstr(played.outcome.warnings[i], "all samples are alike") != NULL;
        CHECK_TRUE(is_said);
    }
    played_release(&played);
}

/* |error| of 4.16 % at the median where sizes are left out and 0.1 % between repeats: 4.1612 % /
   0.67449. */
static void test_error_bars(void)
{
    CHECK_NEAR(calibration_error_sigma(0, 0.0416, 0.001), 0.061694, 1e-4);
    CHECK_NEAR(calibration_error_sigma(0.02, 0, 0), 0.02 / 0.6744898, 1e-6);
    CHECK_NEAR(calibration_error_sigma(0, 0, 0), 0, 0);
}

/* A network that is all there is: two gathers and a scatter of about the same time. The table of
   all-gathers on 2 hosts of 4 has errors of 2.02 % and 0.64 %: hypot(.0202, .0064) / .67449 =
   0.0314, drawn once for both. The scatter borrows the all-reduce's 4.55 %, 0.0682, with a weight
   of 1 / (1 + .5 / 2) = 0.8: 0.0546. So sqrt((2/3 · 0.0314)^2 + (1/3 · 0.0546)^2) = 0.0278; of 200
   draws +- 5 %. */
static void test_calibration(void)
{
    struct played played;
    struct arena arena = {0};
    struct samples samples;
    static const char overrides[] =
        "cluster=polaris; nodes=2; cluster.collectives.calibration=polaris-slingshot; "
        "simulate.ideal=[host, "
        "copies, contention, optimizer]; model.units=[{repeat: 1, parameters: 100000000, forward: "
        "1 us, backward: 1 us}]";
    if (played_build(&played, "worked-examples/units-3", overrides)) {
        enum { COUNT = 200 };
        double sum = 0, squares = 0;
        CHECK_INT(samples_play(&played.experiment, COUNT, &arena, &samples), STATUS_OK);
        for (int i = 0; i < COUNT; i++) {
            const double log_s = log(step_times(&samples)[i]);
            sum += log_s;
            squares += log_s * log_s;
        }
        const double deviation = sqrt(squares / COUNT - sum / COUNT * sum / COUNT);
        check_context("deviation %g", deviation);
        CHECK_NEAR(deviation, 0.0278, 0.15);
        check_context(NULL);
    }
    arena_release(&arena);
    played_release(&played);
}

const struct check_case samples_cases[] = {
    {"quantiles, and the one shown", test_quantiles_and_middle},
    {"more samples add to fewer", test_more_samples_add},
    {"key", test_key},
    {"nothing drawn", test_nothing_drawn},
    {"error bars of a calibration", test_error_bars},
    {"calibration of a network", test_calibration},
    {0}};
