/*
 * collective/calibrate.h: measured tables of one collective on one shape → a fitted curve of time
 * over size, its errors, and what looks wrong in the measurement.
 *
 * All rows of the tables of a group (collective, algorithm, protocol, nodes, GPUs a node) are
 * pooled: the time of a size is the median of its out-of-place times (in-place where there are
 * none), its error bar the range of all that was measured of it: repeats, in-place, percentiles.
 *
 * Two models are tried, the one that predicts left-out sizes better is taken:
 *   linear    one or two straight pieces, by relative error (numeric/fit.h)
 *   log_log   through the points in log time over log bytes, made monotone first
 * leave-one-out: each size but the ends predicted by a fit to the others; median |error|. Of a
 * table of powers of two that is an interpolation over a factor of four in size. With fewer than 6
 * sizes: log_log.
 *
 * The floor is the least time measured: nothing is faster.
 *
 * Marks on points: `is_outlier`, a time more than 25 % off what the others say (leave-one-out), and
 * more than its neighbours are; `is_falling`, a time below that of the size before, which is no
 * outlier, by more than 10 %.
 *
 * Example: 1 MiB in 100 us, 2 MiB in 250, 4 MiB in 200, 8 MiB in 400 (50 us a MiB): without it,
 * 2 MiB would take 141 us by log-log; it is an outlier. 300, 300, 200, 200 falls at the third.
 */
#ifndef FSDPSIM_COLLECTIVE_CALIBRATE_H
#define FSDPSIM_COLLECTIVE_CALIBRATE_H

#include "cluster/calibration.h"
#include "collective/nccl_log.h"
#include "numeric/fit.h"

enum { CALIBRATE_MAX_POINTS = 512 }; /* more sizes: near ones are pooled */

struct calibrate_point {
    double bytes;
    double time_s, low_s, high_s; /* median; range of all that was measured */
    int64_t measured_count;
    struct place place; /* of the row of its time */
    double fit_s;
    double left_out_s; /* predicted by a fit to the others; NaN at the ends */
    bool is_outlier, is_falling;
};

struct calibrate_fit {
    struct calibration_table table; /* curve owned: calibrate_release */
    struct calibrate_point *points;
    int32_t point_count;
    int32_t source_count;                     /* tables pooled */
    double median_err, p90_err, max_err;      /* of the fit, relative */
    double linear_left_out, log_log_left_out; /* median |error|; NaN: too few sizes */
    double repeat_err;                        /* median half width of the error bars, relative */
    double best_busbw_bytes_per_s, best_at_bytes;
    int32_t outlier_count, falling_count;
    int64_t wrong_count;                     /* rows whose results were found wrong */
    struct pieces pieces;                    /* of a linear fit */
    const struct nccl_table *const *sources; /* tables pooled */
};

struct calibrate_set {
    struct calibrate_fit *items;
    int32_t count;
};

/* Whether two tables are of one group. */
bool calibrate_is_alike(const struct nccl_table *a, const struct nccl_table *b);
/* `tables`: of one group, at least one. False: no size with a time above 0. */
bool calibrate_fit_tables(struct arena *arena, const struct nccl_table *const *tables,
                          int32_t count, struct calibrate_fit *fit);
void calibrate_release(struct calibrate_fit *fit);

/* One fit for each group of tables of a log, in the order of the first of each. False: a table has
   no time. */
bool calibrate_log(struct arena *arena, const struct nccl_log *log, struct calibrate_set *set,
                   struct diag *diag);
void calibrate_set_release(struct calibrate_set *set);

/* Out-of-place time of a row, else in-place; NaN: neither. */
double nccl_row_s(const struct nccl_row *row);

#endif
