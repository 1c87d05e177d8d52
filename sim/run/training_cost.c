/* run/training_cost.c: see training_cost.h. */
#include "run/training_cost.h"

#include <math.h>

#include "run/experiment_private.h"

static const double seconds_an_hour = 3600;
static const double seconds_a_day = 86400;

static const struct field failure_fields[] = {
    {.key = "mtbf",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct failure_config, mtbf_s),
     .is_required = true,
     .min = 1,
     .max = 1e15,
     .help = "mean time between failures of one GPU with its share of the machine; a job of n GPUs "
             "fails n times as often"},
    {.key = "restart",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct failure_config, restart_s),
     .is_required = true,
     .min = 0,
     .max = 1e9,
     .help = "from a failure until the job steps again from its last checkpoint"},
    {0}};

static const struct field_table failure_table = {.name = "failures",
                                                 .help = "time lost to failures",
                                                 .fields = failure_fields,
                                                 .struct_bytes = sizeof(struct failure_config)};

static const struct field cost_fields[] = {
    {.key = "gpu_hour",
     .kind = FIELD_REAL,
     .offset = offsetof(struct training_cost, gpu_hour),
     .min = 0,
     .max = 1e9,
     .help = "price of one GPU for an hour, in 'currency'"},
    {.key = "currency",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct training_cost, currency),
     .is_line = true,
     .help = "of the price, as USD; never converted"},
    {.key = "tokens",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TOKENS,
     .offset = offsetof(struct training_cost, tokens),
     .min = 1,
     .max = 1e21,
     .help = "of the whole training, as 15T: gives days, GPU-hours and cost"},
    {.key = "failures",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct training_cost, failures),
     .table = &failure_table,
     .help = "what failures cost, with 'train.checkpoint'"},
    {0}};

const struct field_table training_cost_table = {
    .name = "cost",
    .help = "what the GPUs cost, and how long they are needed",
    .fields = cost_fields,
    .struct_bytes = sizeof(struct training_cost)};

void training_cost_check(struct experiment *experiment)
{
    struct config *config = &experiment->config;
    struct training_cost *cost = &experiment->cost;
    const bool has_price = config_is_set(config, "cost.gpu_hour");
    if (has_price && cost->currency == NULL)
        config_error(config, "cost.gpu_hour", "'currency: USD', for example",
                     "'gpu_hour' is a price, and 'cost' lacks 'currency'");
    if (!has_price && cost->currency != NULL)
        config_error(config, "cost.currency", "'gpu_hour: 2.50', for example",
                     "'currency' means nothing without 'gpu_hour'");
    if (!has_price)
        cost->gpu_hour = (double)NAN;
    if (!config_is_set(config, "cost.tokens"))
        cost->tokens = (double)NAN;
    if (cost->failures.mtbf_s > 0 && experiment->train.saving.interval == 0)
        config_error(config, "cost.failures", "'train.checkpoint: {interval: 500}', for example",
                     "a failure without 'train.checkpoint' loses the whole training");
}

/* Share of the time that remains for steps; 1 without failures. */
static double goodput_of(const struct experiment *experiment, const struct outcome *outcome)
{
    const struct failure_config *failures = &experiment->cost.failures;
    const struct saving_config *saving = &experiment->train.saving;
    if (!(failures->mtbf_s > 0))
        return 1;
    const double mean_s = failures->mtbf_s / (double)experiment->n_gpus;
    const double period_s = (double)saving->interval * outcome->step_time_s;
    const double behind_s = saving->async_mode == ASYNC_DISABLED ? 0 : outcome->checkpoint_write_s;
    return period_s /
           (mean_s * exp((failures->restart_s + behind_s) / mean_s) * expm1(period_s / mean_s));
}

void training_cost_fill(const struct experiment *experiment, struct outcome *outcome)
{
    /* Less than this and a training never ends: nothing of it is worth a number. */
    static const double least_goodput = 1e-9;
    const struct training_cost *cost = &experiment->cost;
    double goodput = goodput_of(experiment, outcome);
    if (!(goodput >= least_goodput))
        goodput = (double)NAN;
    const double tokens_per_s = goodput * outcome->tokens_per_s;
    const double gpu_hours_a_token = (double)outcome->n_gpus / (seconds_an_hour * tokens_per_s);
    outcome->goodput = cost->failures.mtbf_s > 0 ? goodput : (double)NAN;
    outcome->tokens_per_day = seconds_a_day * tokens_per_s;
    outcome->currency = cost->currency;
    outcome->cost_per_gpu_hour = cost->gpu_hour;
    outcome->cost_per_billion_tokens = cost->gpu_hour * gpu_hours_a_token * 1e9;
    outcome->budget_tokens = cost->tokens;
    outcome->budget_days = cost->tokens / outcome->tokens_per_day;
    outcome->budget_gpu_hours = cost->tokens * gpu_hours_a_token;
    outcome->budget_cost = cost->gpu_hour * outcome->budget_gpu_hours;
}
