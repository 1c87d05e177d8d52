/*
 * study/sweep_plan.h: what is swept: a configuration, overrides that hold everywhere, keys with
 * many values; and the overrides of each point.
 *
 * From `-s key=VALUE`, where VALUE is an axis (sweep_axis.h), and from `sweep:` of the file:
 *
 *   sweep:
 *     nodes: log2(1, 128)
 *     cluster.host.nics.bandwidth: [100Gbps, 400Gbps]
 *     train: {micro_batch: [1, 2]}      # the same as train.micro_batch
 *     zip: false                        # true: the k-th values of all keys together
 *     scaling: weak                     # or strong
 *
 * Points are the Cartesian product, the last key fastest, or the zip. The keys of the file come
 * first; -s takes a key over. A point's overrides are the base's with one value of each key, in the
 * order given, and what the scaling adds:
 *
 *   strong   train.global_batch of the first point; the microbatches of a step follow
 *   weak     train.grad_accum of the first point; global_batch grows with the GPUs
 */
#ifndef FSDPSIM_STUDY_SWEEP_PLAN_H
#define FSDPSIM_STUDY_SWEEP_PLAN_H

#include "run/experiment.h"
#include "study/sweep_axis.h"

enum { SWEEP_MAX_POINTS = 4000000 };

enum scaling { SCALING_NONE, SCALING_STRONG, SCALING_WEAK };

struct sweep_setting { /* an override: fixed, or an axis */
    const char *fixed; /* "key=value", NULL: of `axis` */
    int32_t axis;
};

struct sweep_plan {
    struct arena *arena;
    struct diag *diag;
    struct config_cache *cache;
    const char *path, *name; /* as given; its stem */
    struct {
        struct sweep_axis *items;
        int32_t count, capacity;
    } axes;
    struct {
        struct sweep_setting *items;
        int32_t count, capacity;
    } settings;
    struct {
        const char **items;
        int32_t count, capacity;
    } added;                    /* by the scaling */
    bool is_zip, is_one_by_one; /* the latter: each key alone, the first point is the base */
    int64_t sobol;              /* points of Sobol's sequence, 0: none */
    enum scaling scaling;
    int64_t point_count;
    struct hash128 definition; /* of the file's text and of all that is asked of it */
};

struct sweep_request {
    const char *path;
    const char *const *overrides; /* of -s */
    int32_t override_count;
    bool is_zip;
    bool is_one_by_one;  /* sweep_knobs.h */
    int64_t sobol;       /* the same; 0: no */
    const char *scaling; /* "strong", "weak", NULL: as the file says */
};

/* All lives in `arena`; every mistake is in `diag`. */
MUST_CHECK enum status sweep_plan_make(struct sweep_plan *plan, struct arena *arena,
                                       const struct sweep_request *request,
                                       struct config_cache *cache, struct diag *diag);
/* The mistakes of what a file says under `sweep`, for `check`. */
MUST_CHECK enum status sweep_plan_check(const struct node *sweep, struct arena *arena,
                                        struct diag *diag);
/* Whether the key is at the base there (one by one). */
bool sweep_plan_is_base(const struct sweep_plan *plan, int64_t position, int32_t axis);
/* The value of axis `axis` at a point; "base". */
const char *sweep_plan_value(const struct sweep_plan *plan, int64_t position, int32_t axis);
/* {"nodes": "4", …}: the values of the swept keys. */
const char *sweep_plan_settings(const struct sweep_plan *plan, int64_t position,
                                struct arena *arena);
/* ["nodes", …] */
const char *sweep_plan_keys(const struct sweep_plan *plan, struct arena *arena);
/* Loads the experiment of a point; as experiment_load. */
MUST_CHECK enum status sweep_plan_load(const struct sweep_plan *plan, int64_t position,
                                       struct arena *scratch, struct experiment *experiment,
                                       struct diag *diag);

#endif
