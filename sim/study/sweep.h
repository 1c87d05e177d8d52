/*
 * study/sweep.h: plays the points of a plan by a pool of workers, and keeps them in the database.
 *
 *   resolve   workers load every point: its key (hash of the resolved configuration, seed and
 *             version of the physics), or why it is invalid
 *   store     all points as pending, done (a run with that key is there), invalid or failed
 *   play      each pending key once; this process alone writes, batches in one transaction
 *
 * So a sweep that was stopped or killed goes on where it was, two sweeps that share points play
 * them once, and what is stored does not depend on the number of workers. A point whose worker ends
 * is tried once more, then it is failed, with the reason, and the sweep goes on.
 *
 * A shard i of n has the points i - 1, i - 1 + n, …
 */
#ifndef FSDPSIM_STUDY_SWEEP_H
#define FSDPSIM_STUDY_SWEEP_H

#include "store/store_sweep.h"
#include "study/pool.h"
#include "study/sweep_plan.h"

struct sweep_progress {
    bool is_playing; /* false: resolving */
    int64_t done, total;
    double elapsed_s;
    double best; /* most tokens a second and GPU so far, of what fits; 0: none yet */
    int64_t best_position;
};

struct sweep_options {
    const char *db;
    int32_t workers;
    const struct pool_team *team; /* instead of processes of this one; NULL: none */
    bool is_rerun;                /* play what is stored again, and store it beside */
    bool retries_failed;          /* try what failed before again */
    bool has_detail;              /* store units, collectives, links, origins of every run */
    int64_t shard, shard_count;   /* 1 of 1: all */
    void *context;
    /* At least five times a second; may be NULL. False: stop. */
    bool (*goes_on)(void *context, const struct sweep_progress *progress);
};

struct sweep_point {
    struct hash128 key;
    const char *reason;
    int64_t run_id;
    int64_t owner; /* the first point with this key, which is played for all of them */
    enum point_state state;
    int32_t attempts;
    bool has_key;
};

struct sweep_counts {
    int64_t points, done, invalid, failed, pending; /* of the shard, when the sweep is over */
    int64_t stored_before, played, equal;           /* equal: same key as an earlier point, and
                                                       not counted as pending */
};

struct sweep {
    struct arena arena;
    const struct sweep_plan *plan;
    struct sweep_options options;
    struct sweep_point *points; /* of all shards; those of others stay zeroed */
    struct sweep_counts counts;
    bool is_stopped;
    double estimate_s; /* of a dry run */
    struct store *store;
};

/* Plays it all. The store stays open for sweep_load until sweep_release. */
MUST_CHECK enum status sweep_run(struct sweep *sweep, const struct sweep_plan *plan,
                                 const struct sweep_options *options, struct diag *diag);
/* Counts, and plays a few points to estimate how long the rest takes; stores nothing. */
MUST_CHECK enum status sweep_dry_run(struct sweep *sweep, const struct sweep_plan *plan,
                                     const struct sweep_options *options, struct diag *diag);
/* In a worker of a team: plays what its leader gives it. `trouble`: why there is no plan; NULL. */
void sweep_serve(const struct sweep_plan *plan, const struct sweep_options *options,
                 const char *trouble);
void sweep_release(struct sweep *sweep); /* accepts a zeroed one */

bool sweep_has(const struct sweep *sweep, int64_t position); /* in this shard */
/* The scalars of a point that is done. */
MUST_CHECK enum status sweep_load(struct sweep *sweep, int64_t position, struct arena *arena,
                                  struct outcome *outcome, struct diag *diag);

#endif
