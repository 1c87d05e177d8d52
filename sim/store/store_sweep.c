/* store/store_sweep.c: see store_sweep.h. */
#include "store/store_sweep.h"

#include <stdio.h>

#include "store/store_private.h"

static const char *const state_names[] = {"pending", "done", "invalid", "failed"};

static int bind_hash(sqlite3_stmt *statement, int at, struct hash128 hash)
{
    char text[33];
    hash128_format(hash, text);
    return sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

static enum status insert_sweep(struct store *store, const struct store_sweep *sweep,
                                struct diag *diag)
{
    static const char sql[] = "INSERT INTO sweep (created_utc, fsdpsim_version, name,"
                              " definition_hash, keys, point_count) VALUES (?, ?, ?, ?, ?, ?)"
                              " ON CONFLICT (definition_hash) DO NOTHING";
    char created[32];
    sqlite3_stmt *insert = NULL;
    enum status status = store_prepare(store, "write to", sql, &insert, diag);
    if (status != STATUS_OK)
        return status;
    store_now_utc(created, sizeof(created));
    int code = sqlite3_bind_text(insert, 1, created, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(insert, 2, FSDPSIM_VERSION, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(insert, 3, sweep->name, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = bind_hash(insert, 4, sweep->definition);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(insert, 5, sweep->keys, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(insert, 6, sweep->point_count);
    code = store_insert_bound(insert, code);
    if (code != SQLITE_OK)
        status = store_fail(store, "write to", code, diag);
    sqlite3_finalize(insert);
    return status;
}

/* The first integer of the first row, 0 without one; the SQLite code. */
static int step_id(sqlite3_stmt *row, int64_t *id)
{
    const int code = sqlite3_step(row);
    *id = code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
    sqlite3_reset(row);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

enum status store_sweep_begin(struct store *store, const struct store_sweep *sweep, int64_t *id,
                              struct diag *diag)
{
    sqlite3_stmt *row = NULL;
    enum status status = insert_sweep(store, sweep, diag);
    if (status == STATUS_OK)
        status = store_prepare(store, "read", "SELECT id FROM sweep WHERE definition_hash = ?",
                               &row, diag);
    if (status != STATUS_OK)
        return status;
    int code = bind_hash(row, 1, sweep->definition);
    if (code == SQLITE_OK)
        code = step_id(row, id);
    if (code != SQLITE_OK)
        status = store_fail(store, "read", code, diag);
    sqlite3_finalize(row);
    return status;
}

static enum status prepare(struct store *store, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (store->find_run == NULL)
        status = store_prepare(store, "read", "SELECT max(id) FROM run WHERE config_hash = ?",
                               &store->find_run, diag);
    if (status == STATUS_OK && store->mode == STORE_WRITE && store->put_point == NULL)
        status = store_prepare(
            store, "write to",
            "INSERT INTO sweep_point (sweep_id, position, settings, config_hash, state, reason,"
            " run_id) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (sweep_id, position) DO UPDATE SET"
            " settings = excluded.settings, config_hash = excluded.config_hash,"
            " state = excluded.state, reason = excluded.reason, run_id = excluded.run_id",
            &store->put_point, diag);
    return status;
}

static int find_run(struct store *store, struct hash128 key, int64_t *id)
{
    const int code = bind_hash(store->find_run, 1, key);
    return code == SQLITE_OK ? step_id(store->find_run, id) : code;
}

enum status store_find_run(struct store *store, struct hash128 key, int64_t *id, struct diag *diag)
{
    *id = 0;
    const enum status status = prepare(store, diag);
    if (status != STATUS_OK)
        return status;
    const int code = find_run(store, key, id);
    return code == SQLITE_OK ? STATUS_OK : store_fail(store, "read", code, diag);
}

enum status store_find_failure(struct store *store, struct arena *arena, struct hash128 key,
                               const char **reason, struct diag *diag)
{
    static const char sql[] =
        "SELECT reason FROM sweep_point WHERE state = 'failed' AND config_hash = ?"
        " ORDER BY sweep_id, position LIMIT 1";
    enum status status = STATUS_OK;
    *reason = NULL;
    if (store->version < STORE_VERSION_SWEEPS)
        return STATUS_OK;
    if (store->find_failure == NULL)
        status = store_prepare(store, "read", sql, &store->find_failure, diag);
    if (status != STATUS_OK)
        return status;
    sqlite3_stmt *row = store->find_failure;
    int code = bind_hash(row, 1, key);
    if (code == SQLITE_OK)
        code = sqlite3_step(row);
    if (code == SQLITE_ROW)
        *reason = arena_strdup(arena, (const char *)sqlite3_column_text(row, 0));
    else if (code != SQLITE_DONE)
        status = store_fail(store, "read", code, diag);
    sqlite3_reset(row);
    return status;
}

static int put_point(struct store *store, int64_t sweep_id, const struct store_point *point)
{
    sqlite3_stmt *put = store->put_point;
    int code = sqlite3_bind_int64(put, 1, sweep_id);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(put, 2, point->position);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(put, 3, point->settings, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = point->has_key ? bind_hash(put, 4, point->key)
                              : sqlite3_bind_text(put, 4, "", -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(put, 5, state_names[point->state], -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(put, 6, point->reason != NULL ? point->reason : "", -1,
                                 SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = point->run_id > 0 ? sqlite3_bind_int64(put, 7, point->run_id)
                                 : sqlite3_bind_null(put, 7);
    code = store_insert_bound(put, code);
    /* The texts belong to the caller. */
    sqlite3_clear_bindings(put);
    return code;
}

static int write_point(struct store *store, int64_t sweep_id, struct store_point *point)
{
    int code = SQLITE_OK;
    if (point->outcome != NULL) {
        if (!point->is_new_run)
            code = find_run(store, point->key, &point->run_id);
        if (code == SQLITE_OK && (point->is_new_run || point->run_id == 0))
            code = store_insert_outcome(store, point->outcome, point->has_detail, &point->run_id);
    }
    return code == SQLITE_OK ? put_point(store, sweep_id, point) : code;
}

enum status store_sweep_write(struct store *store, int64_t sweep_id, struct store_point *points,
                              int32_t count, struct diag *diag)
{
    enum status status = prepare(store, diag);
    if (status == STATUS_OK)
        status = store_prepare_inserts(store, diag);
    if (status == STATUS_OK)
        status = store_exec(store, "write to", "BEGIN IMMEDIATE", diag);
    if (status != STATUS_OK)
        return status;
    for (int32_t i = 0; i < count && status == STATUS_OK; i++) {
        const int code = write_point(store, sweep_id, &points[i]);
        if (code != SQLITE_OK)
            status = store_fail(store, "write to", code, diag);
    }
    if (status == STATUS_OK)
        status = store_exec(store, "write to", "COMMIT", diag);
    if (status != STATUS_OK)
        store_rollback(store);
    return status;
}
