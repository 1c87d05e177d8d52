/*
 * study/validate_collectives.h: predicted times of collectives beside measured tables.
 *
 * A table is what nccl-tests printed, or the 11-column form of results/collectives/ (collective/
 * nccl_log.h). What it ran on follows from what the table states of itself (GPU, links, nodes)
 * through rules in YAML (results/collectives/machines.yaml: patterns on those words → a cluster
 * file and settings); a table that no rule covers is out of scope, with the reason. No rule knows a
 * time. Each size is played alone on that machine (run/comm.h) three times:
 *
 *   spec       the cluster file as it is, without any calibration
 *   itself     calibrated on the table itself (collective/calibrate.h)
 *   sibling    calibrated on another healthy table of the same machine (the same cluster file and
 *              settings): of those the nearest by the rule of plan_calibrate.h (same shape and the
 *              other of all-gather and reduce-scatter 0.5, all-reduce 1.5, a factor of two in nodes
 *              1 and in GPUs a node 2; a table of one host says nothing of several). Where no
 *              other table is, none.
 *
 *   error = predicted / measured - 1, of the out-of-place time (in-place where there is none)
 *
 * Bands by size: 64 KiB to 1 MiB, to 32 MiB, to 1 GiB, from 1 GiB; smaller sizes are not scored.
 * Totals are over the healthy tables in scope, sizes of 1 MiB and more: the median |error| of all
 * points, and the bias (median of the signed error).
 *
 * A degraded table is one whose header or source says so. It is not in the totals; instead the
 * one override is searched that explains it best (validate_explain.c).
 */
#ifndef FSDPSIM_STUDY_VALIDATE_COLLECTIVES_H
#define FSDPSIM_STUDY_VALIDATE_COLLECTIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "collective/nccl_log.h"
#include "study/validate.h"

enum collective_basis { ON_SPEC, ON_ITSELF, ON_SIBLING, COLLECTIVE_BASIS_COUNT };
const char *collective_basis_name(enum collective_basis basis); /* "spec" */

enum size_band { BAND_64K, BAND_1M, BAND_32M, BAND_1G, SIZE_BAND_COUNT };
const char *size_band_name(enum size_band band); /* "64K-1M" */
enum size_band size_band_of(double bytes);       /* SIZE_BAND_COUNT: below 64 KiB */

struct collective_point {
    double bytes, measured_s;
    double predicted_s[COLLECTIVE_BASIS_COUNT]; /* NaN: none */
};

struct collective_score {
    int64_t n;
    double median_abs_err, max_abs_err, bias; /* NaN when n is 0 */
};

/* An override of the cluster that may explain a degraded table. */
struct collective_explanation {
    const char *name;    /* "NIC rate" */
    const char *setting; /* "overrides=[{host: 0, nic_frac: 0.238}]", the best value */
    double error_after;  /* median |error| from 1 MiB with it */
};

struct collective_result {
    const struct nccl_table *log;
    const char *name;   /* file without folder and ending */
    const char *reason; /* why it is out of scope, NULL: in scope */
    bool is_in_place;   /* its in-place times count, as the source advises */
    bool is_degraded;
    const char *because; /* the reason of that, or what the source says of the run */
    const char *cluster, *fabric, *launch;
    int64_t nodes, gpus_per_node; /* as played */
    const char **settings;
    int32_t setting_count;
    struct collective_point *points;
    int32_t point_count;
    const char *sibling; /* the table calibrated on; NULL: none */
    struct collective_score bands[COLLECTIVE_BASIS_COUNT][SIZE_BAND_COUNT];
    struct collective_score from_1m[COLLECTIVE_BASIS_COUNT];
    struct collective_explanation *explanations; /* of a degraded table, the best first */
    int32_t explanation_count;
};

struct collective_group { /* by fabric, collective or basis */
    const char *name;
    int32_t tables;
    struct collective_score from_1m[COLLECTIVE_BASIS_COUNT];
};

struct collective_groups {
    struct collective_group *items;
    int32_t count, capacity;
};

struct collective_validation {
    struct nccl_log log;
    struct collective_result *results; /* worst first, then degraded, then out of scope */
    int32_t result_count, in_scope, degraded, out_of_scope;
    struct collective_score from_1m[COLLECTIVE_BASIS_COUNT];
    struct collective_score bands[COLLECTIVE_BASIS_COUNT][SIZE_BAND_COUNT];
    struct collective_groups by_fabric, by_op;
};

struct collective_request {
    const char *const *paths; /* files and folders (*.txt, *.log, *.out, *.json); none: those that
                                 ship */
    int32_t path_count;
    const char *const *rules_paths; /* read after the rules that ship */
    int32_t rules_count;
    const char *const *overrides; /* `-s`, for every machine, last */
    int32_t override_count;
    struct nccl_request said; /* what the texts do not say */
};

MUST_CHECK enum status collective_validation_run(struct arena *arena,
                                                 const struct collective_request *request,
                                                 struct collective_validation *validation,
                                                 struct diag *diag);

#endif
