/*
 * store/store_merge.c: the runs and sweeps of another database into this one, in one transaction.
 *
 * A run whose configuration and trajectory (config_hash, fingerprint) are here already is not
 * copied, so merging a file twice changes nothing. Sweeps meet by their definition; of a point the
 * better state stays: done, then failed or invalid, then pending.
 */
#include "store/store_private.h"
#include "store/store_sweep.h"

static const char map_runs[] =
    "CREATE TEMP TABLE merged (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);"
    "INSERT INTO merged SELECT o.id, min(r.id) FROM other.run AS o JOIN main.run AS r ON"
    " r.config_hash = o.config_hash AND r.fingerprint = o.fingerprint GROUP BY o.id;"
    "CREATE TEMP TABLE fresh AS SELECT o.id AS old, (SELECT ifnull(max(id), 0) FROM main.run) +"
    " row_number() OVER (ORDER BY o.id) AS new FROM other.run AS o WHERE o.id NOT IN"
    " (SELECT old FROM merged);"
    "INSERT INTO merged SELECT old, new FROM fresh;";

static const char copy_sweeps[] =
    "INSERT INTO main.sweep (created_utc, fsdpsim_version, name, definition_hash, keys,"
    " point_count) SELECT created_utc, fsdpsim_version, name, definition_hash, keys, point_count"
    " FROM other.sweep WHERE true ON CONFLICT (definition_hash) DO NOTHING;"
    "INSERT INTO main.sweep_point (sweep_id, position, settings, config_hash, state, reason,"
    " run_id) SELECT here.id, p.position, p.settings, p.config_hash, p.state, p.reason, m.new FROM"
    " other.sweep_point AS p JOIN other.sweep AS there ON there.id = p.sweep_id JOIN main.sweep AS"
    " here ON here.definition_hash = there.definition_hash LEFT JOIN merged AS m ON m.old ="
    " p.run_id WHERE true ON CONFLICT (sweep_id, position) DO UPDATE SET settings ="
    " excluded.settings, config_hash = excluded.config_hash, state = excluded.state, reason ="
    " excluded.reason, run_id = excluded.run_id WHERE state = 'pending' OR (state <> 'done' AND"
    " excluded.state = 'done');";

static const char drop_maps[] = "DROP TABLE merged; DROP TABLE fresh;";

static void add_run_copy(struct strbuf *sql)
{
    strbuf_add(sql, "INSERT INTO main.run (id");
    store_add_names(sql, ", ", store_run_columns);
    store_add_names(sql, ", ", outcome_metrics);
    strbuf_add(sql, ") SELECT fresh.new");
    store_add_names(sql, ", o.", store_run_columns);
    store_add_names(sql, ", o.", outcome_metrics);
    strbuf_add(sql, " FROM other.run AS o JOIN fresh ON fresh.old = o.id ORDER BY fresh.new;\n");
}

static void add_rows_copy(struct strbuf *sql, const struct store_table *table)
{
    const bool is_list = table->row_bytes > 0;
    strbuf_printf(sql, "INSERT INTO main.%s (run_id%s", table->name, is_list ? ", position" : "");
    store_add_names(sql, ", ", table->columns);
    strbuf_printf(sql, ") SELECT fresh.new%s", is_list ? ", o.position" : "");
    store_add_names(sql, ", o.", table->columns);
    strbuf_printf(sql, " FROM other.%s AS o JOIN fresh ON fresh.old = o.run_id;\n", table->name);
}

static enum status copy_all(struct store *store, struct diag *diag)
{
    struct strbuf sql = {0};
    strbuf_add(&sql, map_runs);
    add_run_copy(&sql);
    for (int i = 0; i < STORE_TABLE_COUNT; i++)
        add_rows_copy(&sql, &store_tables[i]);
    strbuf_add(&sql, copy_sweeps);
    strbuf_add(&sql, drop_maps);
    const enum status status = store_exec(store, "write to", sql.text, diag);
    strbuf_release(&sql);
    return status;
}

static enum status attach(struct store *store, const char *path, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    const char *name = path[0] == '/' ? path : arena_printf(&store->arena, "./%s", path);
    enum status status = store_prepare(store, "read", "ATTACH ? AS other", &statement, diag);
    if (status != STATUS_OK)
        return status;
    int code = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    code = store_insert_bound(statement, code);
    if (code != SQLITE_OK)
        status = store_fail(store, "read", code, diag);
    sqlite3_finalize(statement);
    return status;
}

static enum status count_runs(struct store *store, int64_t *count, struct diag *diag)
{
    sqlite3_stmt *row = NULL;
    enum status status = store_prepare(store, "read", "SELECT count(*) FROM main.run", &row, diag);
    if (status == STATUS_OK && sqlite3_step(row) == SQLITE_ROW)
        *count = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return status;
}

enum status store_merge(struct store *store, const char *path, int64_t *added, struct diag *diag)
{
    struct store *other = NULL;
    int64_t before = 0;
    int64_t after = 0;
    *added = 0;
    /* Judged as any file that is read: it may be no database of ours, or a newer one. */
    enum status status = store_open(path, STORE_READ, &other, diag);
    if (status == STATUS_OK && other->version < STORE_SCHEMA_VERSION) {
        diag_world(diag,
                   "cannot merge '%s': its schema %d is older than this fsdpsim's (%d), and its "
                   "runs lack what later ones have; play them again",
                   path, (int)other->version, (int)STORE_SCHEMA_VERSION);
        status = STATUS_WORLD;
    }
    store_close(other);
    if (status == STATUS_OK)
        status = attach(store, path, diag);
    if (status != STATUS_OK)
        return status;
    status = store_exec(store, "write to", "BEGIN IMMEDIATE", diag);
    if (status == STATUS_OK)
        status = count_runs(store, &before, diag);
    if (status == STATUS_OK)
        status = copy_all(store, diag);
    if (status == STATUS_OK)
        status = count_runs(store, &after, diag);
    if (status == STATUS_OK)
        status = store_exec(store, "write to", "COMMIT", diag);
    if (status != STATUS_OK)
        store_rollback(store);
    sqlite3_exec(store->db, "DETACH other", NULL, NULL, NULL);
    *added = after - before;
    return status;
}
