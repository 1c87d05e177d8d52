/* run/training_cost.c: see training_cost.h. */
#include "run/training_cost.h"

#include <math.h>

#include "run/experiment_private.h"

static const double seconds_an_hour = 3600;
static const double seconds_a_day = 86400;

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
}

void training_cost_fill(const struct training_cost *cost, struct outcome *outcome)
{
    const double gpu_hours_a_token =
        (double)outcome->n_gpus / (seconds_an_hour * outcome->tokens_per_s);
    outcome->tokens_per_day = seconds_a_day * outcome->tokens_per_s;
    outcome->currency = cost->currency;
    outcome->cost_per_gpu_hour = cost->gpu_hour;
    outcome->cost_per_billion_tokens = cost->gpu_hour * gpu_hours_a_token * 1e9;
    outcome->budget_tokens = cost->tokens;
    outcome->budget_days = cost->tokens / outcome->tokens_per_day;
    outcome->budget_gpu_hours = cost->tokens * gpu_hours_a_token;
    outcome->budget_cost = cost->gpu_hour * outcome->budget_gpu_hours;
}
