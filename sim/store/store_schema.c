/* store/store_schema.c: tables, view and `meta`, all from the tables of columns. */
#include <string.h>

#include "store/store_private.h"

#define STRUCT_FIELD(type, field, in, what, explains)                                              \
    {                                                                                              \
        .name = #field, .unit = (in), .kind = (what), .offset = offsetof(struct type, field),      \
        .help = (explains)                                                                         \
    }

const struct metric store_run_columns[] = {
    {.name = "created_utc", .unit = "text", .kind = METRIC_TEXT, .help = "when it was stored"},
    {.name = "fsdpsim_version", .unit = "text", .kind = METRIC_TEXT, .help = "program version"},
    {.name = "model_version",
     .unit = "count",
     .kind = METRIC_INT,
     .help = "moves when the same input gives other numbers"},
    {.name = "config_hash",
     .unit = "text",
     .kind = METRIC_TEXT,
     .help = "128-bit hash of the resolved content, the seed and model_version"},
    {.name = "fingerprint",
     .unit = "text",
     .kind = METRIC_TEXT,
     .help = "64-bit hash of the trajectory of events"},
    {.name = NULL},
};

static const struct metric config_columns[] = {
    {.name = "key",
     .unit = "text",
     .kind = METRIC_TEXT,
     .offset = offsetof(struct outcome_origin, path),
     .help = "dotted path in the configuration"},
    STRUCT_FIELD(outcome_origin, value, "text", METRIC_TEXT, "value in force, with its unit"),
    STRUCT_FIELD(outcome_origin, origin, "text", METRIC_TEXT, "file, command line or default"),
    {.name = NULL},
};

static const struct metric metric_columns[] = {
    {.name = "name", .unit = "text", .kind = METRIC_TEXT, .help = "column of run"},
    {.name = "value",
     .unit = "see unit",
     .kind = METRIC_DOUBLE,
     .help = "the number; an undefined one has no row"},
    {.name = "unit", .unit = "text", .kind = METRIC_TEXT, .help = "its unit; 1: a fraction"},
    {.name = NULL},
};

static const struct metric memory_columns[] = {
    {.name = "category", .unit = "text", .kind = METRIC_TEXT, .help = "what the memory holds"},
    {.name = "bytes",
     .unit = "bytes",
     .kind = METRIC_INT,
     .help = "at the instant of the device peak"},
    {.name = NULL},
};

static const struct metric warning_columns[] = {
    {.name = "message", .unit = "text", .kind = METRIC_TEXT, .help = "what the run warned of"},
    {.name = NULL},
};

#define COLUMN(column, in, what, explains)                                                         \
    {                                                                                              \
        .name = (column), .unit = (in), .kind = (what), .help = (explains)                         \
    }

static const struct metric sweep_columns[] = {
    COLUMN("created_utc", "text", METRIC_TEXT, "when it was begun"),
    COLUMN("fsdpsim_version", "text", METRIC_TEXT, "program version that began it"),
    COLUMN("name", "text", METRIC_TEXT, "name of the configuration"),
    COLUMN("definition_hash", "text", METRIC_TEXT, "128-bit hash of the file and of what is swept"),
    COLUMN("keys", "text", METRIC_TEXT, "swept keys, a JSON array"),
    COLUMN("point_count", "count", METRIC_INT, "points of all shards"),
    {.name = NULL},
};

static const struct metric point_columns[] = {
    COLUMN("settings", "text", METRIC_TEXT, "values of the swept keys, a JSON object of texts"),
    COLUMN("config_hash", "text", METRIC_TEXT, "as in run; empty: invalid before it had one"),
    COLUMN("state", "text", METRIC_TEXT,
           "pending, done, invalid (configuration) or failed (crash)"),
    COLUMN("reason", "text", METRIC_TEXT, "why it is invalid or failed; else empty"),
    {.name = NULL},
};

#define ROWS(list, number, type)                                                                   \
    .rows_offset = offsetof(struct outcome, list),                                                 \
    .count_offset = offsetof(struct outcome, number), .row_bytes = sizeof(type)

const struct store_table store_tables[STORE_TABLE_COUNT] = {
    [STORE_TABLE_METRIC] = {.name = "metric",
                            .help = "every number of a run",
                            .columns = metric_columns,
                            .key = "name"},
    [STORE_TABLE_MEMORY_PEAK] = {.name = "memory_peak",
                                 .help = "composition of the device peak",
                                 .columns = memory_columns,
                                 .key = "category"},
    [STORE_TABLE_INTERVAL] = {.name = "sample_interval",
                              .help = "what the samples of a run say",
                              .columns = outcome_interval_fields,
                              .key = "position",
                              ROWS(intervals, interval_count, struct outcome_interval)},
    {.name = "run_config",
     .help = "configuration in force",
     .columns = config_columns,
     .key = "key",
     ROWS(origins, origin_count, struct outcome_origin)},
    {.name = "unit_time",
     .help = "FSDP units",
     .columns = outcome_unit_fields,
     .key = "position",
     ROWS(units, unit_count, struct outcome_unit)},
    {.name = "collective",
     .help = "kinds of collective",
     .columns = outcome_collective_fields,
     .key = "position",
     ROWS(collectives, collective_count, struct outcome_collective)},
    {.name = "link_use",
     .help = "classes of links",
     .columns = outcome_link_fields,
     .key = "position",
     ROWS(links, link_count, struct outcome_link)},
    {.name = "memory_unit",
     .help = "composition of the active peak by FSDP unit",
     .columns = outcome_memory_unit_fields,
     .key = "position",
     ROWS(memory_units, memory_unit_count, struct outcome_memory_unit)},
    {.name = "warning",
     .help = "warnings of a run",
     .columns = warning_columns,
     .key = "position",
     ROWS(warnings, warning_count, const char *)},
};

/* Name, type and checks. NaN is NULL to SQLite, so NOT NULL refuses it; infinity is refused here.
 */
static void add_column(struct strbuf *sql, const struct metric *column)
{
    const char *null = column->is_optional ? "" : " NOT NULL";
    switch (column->kind) {
    case METRIC_DOUBLE:
        strbuf_printf(sql,
                      ",\n %s REAL%s CONSTRAINT \"%s is finite\""
                      " CHECK (abs(%s) <= 1.7976931348623157e308)",
                      column->name, null, column->name, column->name);
        break;
    case METRIC_INT:
        strbuf_printf(sql, ",\n %s INTEGER%s", column->name, null);
        break;
    case METRIC_BOOL:
        strbuf_printf(sql, ",\n %s INTEGER%s CONSTRAINT \"%s is 0 or 1\" CHECK (%s IN (0, 1))",
                      column->name, null, column->name, column->name);
        break;
    case METRIC_TEXT:
        strbuf_printf(sql, ",\n %s TEXT%s", column->name, null);
        break;
    }
}

void store_add_definitions(struct strbuf *sql, const struct metric *columns)
{
    for (const struct metric *column = columns; column->name != NULL; column++)
        add_column(sql, column);
}

static bool is_list(const struct store_table *table)
{
    return table->row_bytes > 0;
}

static void add_child_table(struct strbuf *sql, const struct store_table *table)
{
    strbuf_printf(sql,
                  "CREATE TABLE %s (\n run_id INTEGER NOT NULL REFERENCES run (id)"
                  " ON DELETE CASCADE",
                  table->name);
    if (is_list(table))
        strbuf_add(sql, ",\n position INTEGER NOT NULL");
    store_add_definitions(sql, table->columns);
    strbuf_printf(sql, ",\n PRIMARY KEY (run_id, %s)\n) STRICT, WITHOUT ROWID;\n", table->key);
}

static void add_sweep_tables(struct strbuf *sql)
{
    strbuf_add(sql, "CREATE TABLE sweep (\n id INTEGER NOT NULL PRIMARY KEY");
    store_add_definitions(sql, sweep_columns);
    strbuf_add(sql, ",\n UNIQUE (definition_hash)\n) STRICT;\n"
                    "CREATE TABLE sweep_point (\n sweep_id INTEGER NOT NULL REFERENCES sweep (id)"
                    " ON DELETE CASCADE,\n position INTEGER NOT NULL");
    store_add_definitions(sql, point_columns);
    /* The one reference that may be missing: of a point without a run. */
    strbuf_add(sql,
               ",\n run_id INTEGER REFERENCES run (id) ON DELETE SET NULL,\n"
               " CONSTRAINT \"state is known\" CHECK (state IN ('pending', 'done', 'invalid',"
               " 'failed')),\n PRIMARY KEY (sweep_id, position)\n) STRICT, WITHOUT ROWID;\n"
               "CREATE INDEX point_failed ON sweep_point (config_hash) WHERE state = 'failed';\n");
}

void store_add_meta(struct meta_writer *meta, const char *table, const char *column,
                    const char *unit, const char *help)
{
    const char *const values[] = {table, column, unit, help};
    for (int i = 0; i < 4 && meta->code == SQLITE_OK; i++)
        meta->code = sqlite3_bind_text(meta->insert, i + 1, values[i], -1, SQLITE_STATIC);
    if (meta->code != SQLITE_OK)
        return;
    const int code = sqlite3_step(meta->insert);
    const int reset_code = sqlite3_reset(meta->insert);
    meta->code = code == SQLITE_DONE ? SQLITE_OK : reset_code;
}

void store_add_meta_columns(struct meta_writer *meta, const char *table,
                            const struct metric *columns)
{
    for (const struct metric *column = columns; column->name != NULL; column++)
        store_add_meta(meta, table, column->name, column->unit, column->help);
}

static void add_meta_run(struct meta_writer *meta, const char *table)
{
    store_add_meta(meta, table, "id", "count", "number of the run in this file");
    store_add_meta_columns(meta, table, store_run_columns);
    store_add_meta_columns(meta, table, outcome_metrics);
}

static void add_meta_point(struct meta_writer *meta, const char *table)
{
    store_add_meta(meta, table, "sweep_id", "count", "sweep.id");
    store_add_meta(meta, table, "position", "count", "order of the points of a sweep, from 0");
    for (const struct metric *column = point_columns; column->name != NULL; column++)
        if (!text_equal(column->name, "config_hash"))
            store_add_meta(meta, table, column->name, column->unit, column->help);
}

static int write_meta(sqlite3_stmt *insert)
{
    struct meta_writer meta = {.insert = insert, .code = SQLITE_OK};
    store_add_meta(&meta, "meta", "table_name", "text", "table or view");
    store_add_meta(&meta, "meta", "column_name", "text", "its column");
    store_add_meta(&meta, "meta", "unit", "text", "SI unit; 1: a fraction");
    store_add_meta(&meta, "meta", "help", "text", "what it means");
    add_meta_run(&meta, "run");
    for (int i = 0; i < STORE_TABLE_COUNT; i++) {
        const struct store_table *table = &store_tables[i];
        store_add_meta(&meta, table->name, "run_id", "count", "run.id");
        if (is_list(table))
            store_add_meta(&meta, table->name, "position", "count",
                           "order of the rows of a run, from 0");
        store_add_meta_columns(&meta, table->name, table->columns);
    }
    store_add_meta(&meta, "sweep", "id", "count", "number of the sweep in this file");
    store_add_meta_columns(&meta, "sweep", sweep_columns);
    add_meta_point(&meta, "sweep_point");
    store_add_meta(&meta, "sweep_point", "config_hash", "text",
                   "as in run; empty: it never had one");
    store_add_meta(&meta, "sweep_point", "run_id", "count", "run.id; NULL: not played");
    store_add_validation_meta(&meta);
    add_meta_point(&meta, "v_sweep");
    add_meta_run(&meta, "v_sweep");
    add_meta_run(&meta, "v_runs");
    store_add_view_meta(&meta);
    return meta.code;
}

static enum status fill_meta(struct store *store, const char *doing, struct diag *diag)
{
    sqlite3_stmt *insert = NULL;
    enum status status =
        store_prepare(store, doing, "INSERT INTO meta VALUES (?, ?, ?, ?)", &insert, diag);
    if (status != STATUS_OK)
        return status;
    const int code = write_meta(insert);
    if (code != SQLITE_OK)
        status = store_fail(store, doing, code, diag);
    sqlite3_finalize(insert);
    return status;
}

enum status store_create_schema(struct store *store, struct diag *diag)
{
    struct strbuf sql = {0};
    strbuf_printf(&sql, "PRAGMA application_id = %d;\nPRAGMA user_version = %d;\n",
                  STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
    strbuf_add(&sql,
               "CREATE TABLE meta (\n table_name TEXT NOT NULL,\n column_name TEXT NOT NULL,\n"
               " unit TEXT NOT NULL,\n help TEXT NOT NULL,\n"
               " PRIMARY KEY (table_name, column_name)\n) STRICT, WITHOUT ROWID;\n"
               "CREATE TABLE run (\n id INTEGER NOT NULL PRIMARY KEY");
    store_add_definitions(&sql, store_run_columns);
    store_add_definitions(&sql, outcome_metrics);
    strbuf_add(&sql, "\n) STRICT;\nCREATE INDEX run_by_config ON run (config_hash);\n");
    for (int i = 0; i < STORE_TABLE_COUNT; i++)
        add_child_table(&sql, &store_tables[i]);
    add_sweep_tables(&sql);
    store_add_validation_tables(&sql);
    store_add_views(&sql);
    enum status status = store_exec(store, "create", sql.text, diag);
    if (status == STATUS_OK)
        status = fill_meta(store, "create", diag);
    strbuf_release(&sql);
    return status;
}

/* Columns that the table of an older file lacks; what its runs have in them is not known: NULL. */
static void add_missing_columns(struct store *store, struct strbuf *sql, const char *table,
                                const struct metric *columns)
{
    for (const struct metric *column = columns; column->name != NULL; column++) {
        struct strbuf definition = {0};
        struct metric optional = *column;
        optional.is_optional = true;
        if (store_has_column(store, table, column->name))
            continue;
        add_column(&definition, &optional);
        strbuf_printf(sql, "ALTER TABLE %s ADD COLUMN %s;\n", table,
                      definition.text + strspn(definition.text, ",\n "));
        strbuf_release(&definition);
    }
}

static void add_upgrade(struct store *store, struct strbuf *sql)
{
    add_missing_columns(store, sql, "run", outcome_metrics);
    for (int i = 0; i < STORE_TABLE_COUNT; i++) {
        const struct store_table *table = &store_tables[i];
        if (store_has_column(store, table->name, "run_id"))
            add_missing_columns(store, sql, table->name, table->columns);
        else
            add_child_table(sql, table);
    }
    if (!store_has_column(store, "sweep", "id"))
        add_sweep_tables(sql);
    if (!store_has_column(store, "validation", "id"))
        store_add_validation_tables(sql);
    store_drop_views(sql);
    strbuf_add(sql, "DELETE FROM meta;\n");
    store_add_views(sql);
    strbuf_printf(sql, "PRAGMA user_version = %d;\n", STORE_SCHEMA_VERSION);
}

enum status store_upgrade(struct store *store, struct diag *diag)
{
    struct strbuf sql = {0};
    enum status status = store_exec(store, "write to", "BEGIN IMMEDIATE", diag);
    if (status != STATUS_OK)
        return status;
    /* Another process may have been faster. */
    status = store_read_version(store, diag);
    if (status == STATUS_OK && store->version < STORE_SCHEMA_VERSION) {
        add_upgrade(store, &sql);
        status = store_exec(store, "write to", sql.text, diag);
        if (status == STATUS_OK)
            status = fill_meta(store, "write to", diag);
    }
    if (status == STATUS_OK)
        status = store_exec(store, "write to", "COMMIT", diag);
    if (status == STATUS_OK)
        store->version = STORE_SCHEMA_VERSION;
    else
        store_rollback(store);
    strbuf_release(&sql);
    return status;
}
