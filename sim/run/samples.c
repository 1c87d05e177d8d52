/* run/samples.c: see samples.h. */
#include "run/samples.h"

#include <math.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "numeric/distribution.h"
#include "run/experiment_private.h"

static const char *const sampled_metrics[] = {"step_time_s",
                                              "tokens_per_s",
                                              "tokens_per_s_per_gpu",
                                              "mfu",
                                              "compute_s",
                                              "comm_wait_s",
                                              "exposed_comm_s",
                                              "exposed_comm_fraction",
                                              "idle_s",
                                              "forward_s",
                                              "backward_s",
                                              "optimizer_s",
                                              "tokens_per_day",
                                              "budget_days",
                                              "cost_per_billion_tokens",
                                              "budget_cost"};
enum { SAMPLED_COUNT = sizeof(sampled_metrics) / sizeof(sampled_metrics[0]) };

int32_t samples_find(const struct samples *samples, const char *metric)
{
    for (int32_t i = 0; i < samples->metric_count; i++)
        if (text_equal(samples->metrics[i]->name, metric))
            return i;
    return -1;
}

/* In an arena of its own, and with messages only where they are wanted: the same ones come with
   every sample. */
static enum status play_one(struct experiment *experiment, int64_t sample, bool is_heard,
                            struct samples *samples)
{
    struct arena arena = {.pool = experiment->arena.pool};
    struct diag *diag = experiment->diag, unheard;
    struct outcome outcome = {0};
    experiment->play_arena = &arena;
    diag_init(&unheard, &arena);
    if (!is_heard)
        experiment->diag = &unheard;
    experiment->sample = sample;
    const enum status status = experiment_play_once(experiment, &outcome);
    for (int32_t i = 0; i < samples->metric_count && status == STATUS_OK; i++)
        if (!outcome_number(&outcome, samples->metrics[i], &samples->values[i][sample]))
            samples->values[i][sample] = (double)NAN;
    experiment->diag = diag;
    experiment->journal = NULL;
    experiment->play_arena = NULL;
    arena_release(&arena);
    return status;
}

enum status samples_play(struct experiment *experiment, int64_t count, struct arena *arena,
                         struct samples *samples)
{
    const int64_t sample = experiment->sample;
    const bool is_sampled = experiment->is_sampled, keeps_journal = experiment->keeps_journal;
    enum status status = STATUS_OK;
    *samples = (struct samples){.count = count,
                                .metrics = ARENA_ARRAY(arena, const struct metric *, SAMPLED_COUNT),
                                .metric_count = SAMPLED_COUNT,
                                .values = ARENA_ARRAY(arena, double *, SAMPLED_COUNT)};
    for (int32_t i = 0; i < SAMPLED_COUNT; i++) {
        samples->metrics[i] = outcome_metric(sampled_metrics[i]);
        BUG_IF(samples->metrics[i] == NULL);
        samples->values[i] = ARENA_ARRAY(arena, double, count);
    }
    experiment->is_sampled = true;
    experiment->keeps_journal = false;
    for (int64_t i = 0; i < count && status == STATUS_OK; i++)
        status = play_one(experiment, i, i == 0, samples);
    experiment->sample = sample;
    experiment->is_sampled = is_sampled;
    experiment->keeps_journal = keeps_journal;
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The sample in the middle: of equal ones the first. */
static int64_t find_middle(const double *values, const double *sorted, int64_t count)
{
    const double middle = sorted[(count - 1) / 2];
    for (int64_t i = 0; i < count; i++)
        if (values[i] >= middle && values[i] <= middle)
            return i;
    BUG("a median of samples is one of them");
}

/* Where it is defined in every sample. */
static void add_interval(struct outcome *outcome, const struct metric *metric, const double *sorted,
                         int64_t count)
{
    enum { P05 = 5, P50 = 50, P95 = 95 };
    outcome->intervals[outcome->interval_count++] =
        (struct outcome_interval){.metric = metric->name,
                                  .unit = metric->unit,
                                  .p05 = sample_quantile(sorted, (size_t)count, P05 / 100.0),
                                  .p50 = sample_quantile(sorted, (size_t)count, P50 / 100.0),
                                  .p95 = sample_quantile(sorted, (size_t)count, P95 / 100.0)};
}

static bool sort_defined(const double *values, int64_t count, double *sorted)
{
    for (int64_t i = 0; i < count; i++) {
        if (isnan(values[i]))
            return false;
        sorted[i] = values[i];
    }
    qsort(sorted, (size_t)count, sizeof(double), compare_doubles);
    return true;
}

static void warn_if_nothing_is_drawn(struct experiment *experiment, struct outcome *outcome)
{
    const struct experiment plain = {.simulate = experiment->simulate};
    if (experiment_is_drawn(&plain) || experiment->cluster.calibration.table_count > 0)
        return;
    const char **warnings =
        ARENA_ARRAY(&experiment->arena, const char *, outcome->warning_count + 1);
    for (int32_t i = 0; i < outcome->warning_count; i++)
        warnings[i] = outcome->warnings[i];
    warnings[outcome->warning_count++] =
        "all samples are alike: 'simulate.jitter' is 0 and no calibration is in force";
    outcome->warnings = warnings;
}

enum status samples_outcome(struct experiment *experiment, struct outcome *outcome)
{
    const int64_t count = experiment->simulate.samples;
    struct arena scratch = {0};
    struct samples samples;
    enum status status = samples_play(experiment, count, &scratch, &samples);
    if (status != STATUS_OK)
        goto out;
    double *sorted = ARENA_ARRAY(&scratch, double, count);
    const double *steps_s = samples.values[samples_find(&samples, "step_time_s")];
    BUG_IF(!sort_defined(steps_s, count, sorted));
    struct diag unheard;
    struct diag *diag = experiment->diag;
    diag_init(&unheard, &scratch);
    experiment->diag = &unheard;
    experiment->sample = find_middle(steps_s, sorted, count);
    experiment->is_sampled = true;
    status = experiment_play_once(experiment, outcome);
    experiment->diag = diag;
    BUG_IF(status != STATUS_OK);
    outcome->n_samples = count;
    outcome->intervals =
        ARENA_ARRAY(&experiment->arena, struct outcome_interval, samples.metric_count);
    for (int32_t i = 0; i < samples.metric_count; i++)
        if (sort_defined(samples.values[i], count, sorted))
            add_interval(outcome, samples.metrics[i], sorted, count);
    warn_if_nothing_is_drawn(experiment, outcome);
out:
    arena_release(&scratch);
    return status;
}
