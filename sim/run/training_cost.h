/*
 * run/training_cost.h: what a step costs in money, and a training of so many tokens in time and
 * money.
 *
 *   tokens_per_day          = 86,400 tokens_per_s
 *   budget_days             = tokens / tokens_per_day
 *   budget_gpu_hours        = n_gpus tokens / (3,600 tokens_per_s)
 *   budget_cost             = gpu_hour budget_gpu_hours
 *   cost_per_billion_tokens = gpu_hour n_gpus 1e9 / (3,600 tokens_per_s)
 *
 * Example: 1,024 GPUs at 7,000 tokens/s each are 7.168e6 tokens/s; 15T tokens take 24.22 days and
 * 595,238 GPU-hours, at 2.50 a GPU-hour 1,488,095 in all and 99.21 a billion.
 *
 * A price is what the user pays: there is no default, since lists of the same month differ by a
 * factor of four for one GPU. Prices have no unit but a currency, which is a text and is never
 * converted.
 *
 * Left out: storage, traffic, staff, idle reservations, what a run that is repeated costs.
 */
#ifndef FSDPSIM_RUN_TRAINING_COST_H
#define FSDPSIM_RUN_TRAINING_COST_H

struct outcome;

struct training_cost {
    double gpu_hour;      /* in `currency`; NaN: not given */
    const char *currency; /* NULL: not given */
    double tokens;        /* of a training; NaN: not given */
};

/* After times and throughput: sets the metrics above, NaN where the configuration does not ask. */
void training_cost_fill(const struct training_cost *cost, struct outcome *outcome);

#endif
