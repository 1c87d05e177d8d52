/*
 * cluster/calibration.h: measured times of collectives on a machine: what a YAML under
 * topologies/calibrations/ says. `fsdpsim calibrate nccl` writes such files from logs of
 * nccl-tests.
 *
 *   version: 1
 *   tables:
 *     - op: all_gather
 *       nodes: 2
 *       gpus_per_node: 8
 *       fit: log_log                    # or linear
 *       floor: 21.6 us                  # no collective is faster
 *       points:
 *         - {bytes: 1 MiB, time: 61.2 us}
 *         - {bytes: 1 GiB, time: 2.81 ms}
 *       source: where it was measured
 *
 * bytes is the size of nccl-tests: all-gather the gathered output, reduce-scatter the input,
 * all-reduce the buffer. Between points time(bytes) is linear (`linear`: a fit of one or two
 * straight pieces is two or three points) or Steffen's curve of log time over log bytes
 * (`log_log`: numeric/curve.h). Outside the points the nearest one holds: what lies there is for
 * the model to say (collective/plan_calibrate.h).
 *
 * Example: points (1 MiB, 50 us), (1 GiB, 3 ms), linear: 512.5 MiB, half way, takes 1.525 ms.
 *
 * What a table says of another size of machine or another collective: collective/calibration.h.
 */
#ifndef FSDPSIM_CLUSTER_CALIBRATION_H
#define FSDPSIM_CLUSTER_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/collective_op.h"
#include "config/config.h"

struct curve;

/* What a file may say, and so what a fit may write. */
#define CALIBRATION_BYTES_MAX 1e18
#define CALIBRATION_TIME_MIN_S 1e-9
#define CALIBRATION_TIME_MAX_S 1e5
#define CALIBRATION_NODES_MAX 1000000000
#define CALIBRATION_GPUS_PER_NODE_MAX 1024

enum calibration_fit { CALIBRATION_LINEAR, CALIBRATION_LOG_LOG };
const char *calibration_fit_name(enum calibration_fit fit); /* "log_log" */

struct calibration_point {
    double bytes, time_s;
};

struct calibration_table {
    enum collective_op op;
    int64_t nodes, gpus_per_node;
    const char *algorithm, *protocol; /* as NCCL was told to use; NULL: its own choice */
    enum calibration_fit fit;
    double floor_s;
    const struct calibration_point *points; /* bytes increase, times do not fall */
    int64_t point_count;                    /* at least 1 */
    const char *source;
    int64_t number;     /* in its file, from 1 */
    double error_sigma; /* of the logarithm of its times: calibration_error_sigma */
    struct place place;
    struct curve *curve; /* log time over bytes */
};

struct calibration {
    const char *name; /* NULL: the cluster names none */
    struct calibration_table *tables;
    int64_t table_count;
};

struct calibration_config; /* as bound: calibration_config.h */
extern const struct field_table calibration_config_table;
/* For `schema calibration`; NULL-ended. */
extern const struct field_table *const calibration_tables[];

/* `bound`: filled through calibration_config_table; `path`: where it hangs, "" for a root file. */
MUST_CHECK enum status calibration_build(struct arena *arena, struct config *config,
                                         const char *path, const void *bound,
                                         struct calibration *calibration);
void calibration_release(struct calibration *calibration);

/* One table alone, for who has just made one (a fit): derives the curve from the points.
   STATUS_INPUT when they do not increase. calibration_release, or the caller, frees the curve. */
MUST_CHECK enum status calibration_table_derive(struct calibration_table *table);

/*
 * What the error bars of a table say of the spread of its times: the medians of |relative error| of
 * sizes left out of the fit and of repeats of a measurement, as standard deviations of a normal law
 * (median |z| = Phi^-1(3/4) = 0.6745):
 *
 *     sigma = sqrt(leave_one_out^2 + repeat^2) / 0.6745
 *
 * with the median error of the fit where nothing was left out. Example: 4.1 % and 1 %: 6.3 %.
 */
double calibration_error_sigma(double median, double leave_one_out, double repeat);

/* The time that the table gives to a collective of `bytes`. */
double calibration_table_s(const struct calibration_table *table, double bytes);
/* The size within the points that is nearest to `bytes`. */
double calibration_clamp(const struct calibration_table *table, double bytes);
/* Whether `bytes` lies outside the points. */
bool calibration_is_outside(const struct calibration_table *table, double bytes);

#endif
