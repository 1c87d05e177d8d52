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
 * Failures (`cost.failures`) come at random, mtbf of one GPU over n_gpus apart on average: M. A job
 * saves every T = interval step_time_s, of which the save is a part; a failure costs what was done
 * since the last save that is whole, and R = restart (and, of a save that is written behind the
 * steps, the time until it is there). Of the time so much remains (Daly 2006, equation 20):
 *
 *   goodput = T / (M e^(R/M) (e^(T/M) - 1))
 *
 * and all of the above takes 1/goodput as long. Example: 16,384 GPUs with an mtbf of 50,677 h
 * (419 interruptions in 54 days: "The Llama 3 Herd of Models", section 3.3.4): M = 3.09 h; a save
 * every 30 min, a restart of 10 min: goodput 87 %.
 *
 * A price is what the user pays: there is no default, since lists of the same month differ by a
 * factor of four for one GPU. Prices have no unit but a currency, which is a text and is never
 * converted.
 *
 * Source of the formula: J. T. Daly, "A higher order estimate of the optimum checkpoint interval
 * for restart dumps", Future Generation Computer Systems 22 (2006). Left out: storage, traffic,
 * staff, idle reservations, what a run that is repeated costs.
 */
#ifndef FSDPSIM_RUN_TRAINING_COST_H
#define FSDPSIM_RUN_TRAINING_COST_H

struct experiment;
struct outcome;

struct failure_config {
    double mtbf_s;    /* of one GPU with its share of the machine; 0: no failures */
    double restart_s; /* from a failure to the first step */
};

struct training_cost {
    double gpu_hour;      /* in `currency`; NaN: not given */
    const char *currency; /* NULL: not given */
    double tokens;        /* of a training; NaN: not given */
    struct failure_config failures;
};

/* After times and throughput: sets the metrics above, NaN where the configuration does not ask. */
void training_cost_fill(const struct experiment *experiment, struct outcome *outcome);

#endif
