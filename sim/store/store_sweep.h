/*
 * store/store_sweep.h: sweeps in the results database: what was swept, and what became of each
 * point.
 *
 *   sweep        one row a definition (a file and what is swept of it): a rerun finds its own row
 *   sweep_point  one row a point: the values of the swept keys, the hash of the resolved
 *                configuration, its state, and the run that answers it
 *
 * A run is found by its config_hash: a point whose hash has a run, of whatever command, is done. A
 * batch is one transaction, so a killed writer leaves whole batches and nothing else; the look for
 * a run and its insertion stand in the same transaction, so two writers store no run twice.
 */
#ifndef FSDPSIM_STORE_STORE_SWEEP_H
#define FSDPSIM_STORE_STORE_SWEEP_H

#include "store/store.h"

enum point_state { POINT_PENDING, POINT_DONE, POINT_INVALID, POINT_FAILED };

struct store_sweep {
    const char *name; /* of the configuration */
    struct hash128 definition;
    const char *keys; /* a JSON array */
    int64_t point_count;
};

struct store_point {
    int64_t position;
    const char *settings; /* a JSON object */
    bool has_key;
    struct hash128 key; /* config_hash */
    enum point_state state;
    const char *reason;            /* NULL: none */
    const struct outcome *outcome; /* to store, unless a run with its hash is there; NULL: none */
    bool is_new_run;               /* store it all the same */
    bool has_detail;               /* with units, collectives, links, origins, … */
    int64_t run_id;                /* of the run it stands for, 0: none; set when one is stored */
};

/* Finds the sweep by its definition, or adds it. */
MUST_CHECK enum status store_sweep_begin(struct store *store, const struct store_sweep *sweep,
                                         int64_t *id, struct diag *diag);
/* Writes points, and the outcomes of those that have one, in one transaction. */
MUST_CHECK enum status store_sweep_write(struct store *store, int64_t sweep_id,
                                         struct store_point *points, int32_t count,
                                         struct diag *diag);
/* The last run with this hash; 0: none. */
MUST_CHECK enum status store_find_run(struct store *store, struct hash128 key, int64_t *id,
                                      struct diag *diag);
/* Whether a point of any sweep with this hash failed and none was answered since; `reason` in the
   arena. */
MUST_CHECK enum status store_find_failure(struct store *store, struct arena *arena,
                                          struct hash128 key, const char **reason,
                                          struct diag *diag);
/*
 * The runs and sweeps of the file at `path` into this one, in one transaction; `added`: how many
 * runs. A run whose config_hash and fingerprint are here is not copied again, so merging twice
 * changes nothing. The file may be of an older schema: what its runs lack is NULL here.
 */
MUST_CHECK enum status store_merge(struct store *store, const char *path, int64_t *added,
                                   struct diag *diag);

#endif
