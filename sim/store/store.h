/*
 * store/store.h: the results database: one SQLite file, STRICT tables, units in `meta`.
 *
 * Tables: run (one row a run, a column per outcome metric), run_config (run, key, value, origin),
 * metric (name, value, unit of every number of a run), unit_time, collective, link_use,
 * memory_peak; sweep, sweep_point (store_sweep.h); validation, validation_row
 * (store_validation.h); view v_runs is what pandas wants: run and its
 * configuration flat. application_id and user_version are set; one transaction per batch; WAL on
 * local disks, a rollback journal otherwise; at close the file stands alone (no -wal left). A
 * killed process loses at most the batch in flight.
 *
 * Errors: a missing folder, a read-only file or folder (mode bits are honoured, for root too), a
 * locked, corrupt or foreign file, a newer schema: one clear line, STATUS_WORLD, the file
 * untouched.
 */
#ifndef FSDPSIM_STORE_STORE_H
#define FSDPSIM_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/diag.h"
#include "run/outcome.h"

/* 2: memory by unit. 3: sweeps. 4: money, validations, more views. An older file can be read, and
   is brought up when written to. */
enum { STORE_SCHEMA_VERSION = 4 };

struct store;

enum store_mode { STORE_READ, STORE_WRITE }; /* write creates the file when it is missing */

/* The judgement of store_open that needs no opening: whether it can be what is wanted. */
MUST_CHECK enum status store_check(const char *path, enum store_mode mode, struct diag *diag);
MUST_CHECK enum status store_open(const char *path, enum store_mode mode, struct store **store,
                                  struct diag *diag);
void store_close(struct store *store); /* NULL: nothing */
/* Many reads of one moment, without a lock for each; a failure shows in the first of them. Nothing
   may be written in between. */
void store_read_begin(struct store *store);
void store_read_end(struct store *store);
/* How long to wait for another process that writes (default: 5 s). */
void store_set_patience(struct store *store, int milliseconds);

/* Appends runs in one transaction; `ids` (may be NULL) receives their run ids. */
MUST_CHECK enum status store_add_runs(struct store *store, const struct outcome *const *outcomes,
                                      int32_t count, int64_t *ids, struct diag *diag);

struct store_run { /* a row for `db ls` */
    int64_t id;
    const char *created; /* UTC, ISO 8601 */
    const char *config_name, *model, *cluster, *policy;
    int64_t n_gpus;
    double step_time_s, tokens_per_s_per_gpu, mfu, exposed_comm_fraction; /* mfu NaN: none */
    int64_t peak_device_bytes;
    bool fits;
};
struct store_run_list {
    struct store_run *items;
    int32_t count, capacity;
};

MUST_CHECK enum status store_list(struct store *store, struct arena *arena,
                                  struct store_run_list *list, struct diag *diag);
/* Loads a stored run whole; no such id: an error that says which ids there are (STATUS_INPUT). */
MUST_CHECK enum status store_load(struct store *store, struct arena *arena, int64_t id,
                                  struct outcome *outcome, const char **created, struct diag *diag);

/* Only its row of `run`, without the lists. */
MUST_CHECK enum status store_load_row(struct store *store, struct arena *arena, int64_t id,
                                      struct outcome *outcome, struct diag *diag);

/* Where results go: `flag` if not NULL, $FSDPSIM_DB, results/fsdpsim.db where such a folder is,
   else the XDG data folder (created). */
const char *store_default_path(struct arena *arena, const char *flag);

#endif
