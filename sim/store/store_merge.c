/*
 * store/store_merge.c: the runs and sweeps of another database into this one, in one transaction.
 *
 * A run whose configuration and trajectory (config_hash, fingerprint) are here already is not
 * copied, so merging a file twice changes nothing. Sweeps meet by their definition; of a point the
 * better state stays: done, then failed or invalid, then pending.
 *
 * The other file may be older: columns are copied by name. What its runs lack is not known, so it
 * is NULL here, as in an older file that was brought up (store_upgrade).
 */
#include <inttypes.h>

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

static enum status query_int(struct store *store, const char *sql, int64_t *value,
                             struct diag *diag)
{
    sqlite3_stmt *row = NULL;
    enum status status = store_prepare(store, "read", sql, &row, diag);
    if (status == STATUS_OK && sqlite3_step(row) == SQLITE_ROW)
        *value = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return status;
}

/* ---- columns ------------------------------------------------------------------------------ */

struct column_facts {
    bool is_there, is_required; /* NOT NULL */
};

static struct column_facts find_column(struct store *store, const char *schema, const char *table,
                                       const char *column)
{
    struct column_facts facts = {0};
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(store->db,
                           "SELECT \"notnull\" FROM pragma_table_info(?, ?) WHERE name = ?", -1,
                           &row, NULL) != SQLITE_OK)
        return facts;
    sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 2, schema, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 3, column, -1, SQLITE_STATIC);
    if (sqlite3_step(row) == SQLITE_ROW)
        facts = (struct column_facts){true, sqlite3_column_int(row, 0) != 0};
    sqlite3_finalize(row);
    return facts;
}

/* Columns that every row here has and a row there may lack may be NULL here from now on. The text
   of a table may be changed so: sqlite.org, "ALTER TABLE", 7. */
static bool add_relaxed(struct store *store, struct strbuf *sql, const char *table,
                        const struct metric *columns)
{
    bool is_any = false;
    for (const struct metric *column = columns; column->name != NULL; column++) {
        const char *type = column->kind == METRIC_DOUBLE ? "REAL"
                           : column->kind == METRIC_TEXT ? "TEXT"
                                                         : "INTEGER";
        if (!find_column(store, "main", table, column->name).is_required ||
            find_column(store, "other", table, column->name).is_required)
            continue;
        strbuf_printf(sql,
                      "UPDATE main.sqlite_schema SET sql = replace(sql, ' %s %s NOT NULL', ' %s "
                      "%s') WHERE type = 'table' AND name = '%s';\n",
                      column->name, type, column->name, type, table);
        is_any = true;
    }
    return is_any;
}

static enum status relax_columns(struct store *store, struct diag *diag)
{
    struct strbuf sql = {0};
    int64_t version = 0;
    enum status status = query_int(store, "PRAGMA main.schema_version", &version, diag);
    strbuf_add(&sql, "PRAGMA writable_schema = ON;\n");
    bool is_any = add_relaxed(store, &sql, "run", store_run_columns);
    is_any |= add_relaxed(store, &sql, "run", outcome_metrics);
    for (int i = 0; i < STORE_TABLE_COUNT; i++)
        if (find_column(store, "other", store_tables[i].name, "run_id").is_there)
            is_any |= add_relaxed(store, &sql, store_tables[i].name, store_tables[i].columns);
    strbuf_printf(&sql,
                  "PRAGMA main.schema_version = %" PRId64 ";\nPRAGMA writable_schema = RESET;\n",
                  version + 1);
    if (status == STATUS_OK && is_any)
        status = store_exec(store, "write to", sql.text, diag);
    strbuf_release(&sql);
    return status;
}

/* ---- rows --------------------------------------------------------------------------------- */

/* The names of `columns` of `other`'s row; NULL for what it lacks. */
static void add_other(struct store *store, struct strbuf *sql, const char *table,
                      const struct metric *columns)
{
    for (const struct metric *column = columns; column->name != NULL; column++)
        if (find_column(store, "other", table, column->name).is_there)
            strbuf_printf(sql, ", o.%s", column->name);
        else
            strbuf_add(sql, ", NULL");
}

static void add_run_copy(struct store *store, struct strbuf *sql)
{
    strbuf_add(sql, "INSERT INTO main.run (id");
    store_add_names(sql, ", ", store_run_columns);
    store_add_names(sql, ", ", outcome_metrics);
    strbuf_add(sql, ") SELECT fresh.new");
    add_other(store, sql, "run", store_run_columns);
    add_other(store, sql, "run", outcome_metrics);
    strbuf_add(sql, " FROM other.run AS o JOIN fresh ON fresh.old = o.id ORDER BY fresh.new;\n");
}

static void add_rows_copy(struct store *store, struct strbuf *sql, const struct store_table *table)
{
    const bool is_list = table->row_bytes > 0;
    strbuf_printf(sql, "INSERT INTO main.%s (run_id%s", table->name, is_list ? ", position" : "");
    store_add_names(sql, ", ", table->columns);
    strbuf_printf(sql, ") SELECT fresh.new%s", is_list ? ", o.position" : "");
    add_other(store, sql, table->name, table->columns);
    strbuf_printf(sql, " FROM other.%s AS o JOIN fresh ON fresh.old = o.run_id;\n", table->name);
}

static enum status copy_all(struct store *store, struct diag *diag)
{
    struct strbuf sql = {0};
    strbuf_add(&sql, map_runs);
    add_run_copy(store, &sql);
    for (int i = 0; i < STORE_TABLE_COUNT; i++)
        if (find_column(store, "other", store_tables[i].name, "run_id").is_there)
            add_rows_copy(store, &sql, &store_tables[i]);
    if (find_column(store, "other", "sweep", "name").is_there)
        strbuf_add(&sql, copy_sweeps);
    strbuf_add(&sql, drop_maps);
    const enum status status = store_exec(store, "write to", sql.text, diag);
    strbuf_release(&sql);
    return status;
}

/* ---- the other file ----------------------------------------------------------------------- */

static enum status attach(struct store *store, const char *path, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    const char *name = store_name(&store->arena, path, STORE_READ, false);
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

enum status store_merge(struct store *store, const char *path, int64_t *added, struct diag *diag)
{
    struct store *other = NULL;
    int64_t before = 0;
    int64_t after = 0;
    *added = 0;
    /* Judged as any file that is read: it may be no database of ours, or a newer one. */
    enum status status = store_open(path, STORE_READ, &other, diag);
    store_close(other);
    if (status == STATUS_OK)
        status = attach(store, path, diag);
    if (status != STATUS_OK)
        return status;
    status = store_exec(store, "write to", "BEGIN IMMEDIATE", diag);
    if (status == STATUS_OK)
        status = query_int(store, "SELECT count(*) FROM main.run", &before, diag);
    if (status == STATUS_OK)
        status = relax_columns(store, diag);
    if (status == STATUS_OK)
        status = copy_all(store, diag);
    if (status == STATUS_OK)
        status = query_int(store, "SELECT count(*) FROM main.run", &after, diag);
    if (status == STATUS_OK)
        status = store_exec(store, "write to", "COMMIT", diag);
    if (status != STATUS_OK)
        store_rollback(store);
    sqlite3_exec(store->db, "DETACH other", NULL, NULL, NULL);
    *added = after - before;
    return status;
}
