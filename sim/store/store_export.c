/* store/store_export.c: see store_export.h. */
#include "store/store_export.h"

#include <inttypes.h>
#include <string.h>

#include "store/store_private.h"

struct store_rows {
    struct arena arena;
    struct store *store;
    sqlite3_stmt *statement;
    struct store_column *columns;
    int column_count;
};

static enum status no_such_table(struct store *store, const char *name, struct diag *diag)
{
    struct strbuf hint = {0};
    sqlite3_stmt *row = NULL;
    enum status status =
        store_prepare(store, "read",
                      "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT"
                      " LIKE 'sqlite%' ORDER BY type DESC, name",
                      &row, diag);
    while (status == STATUS_OK && sqlite3_step(row) == SQLITE_ROW)
        strbuf_printf(&hint, "%s%s", hint.length > 0 ? ", " : "tables and views: ",
                      (const char *)sqlite3_column_text(row, 0));
    if (status == STATUS_OK) {
        diag_add(diag, DIAG_ERROR, NO_PLACE, hint.text, "no table '%s' in '%s'%s", name,
                 store->path,
                 store->version < STORE_SCHEMA_VERSION ? ", which is of an older schema" : "");
        status = STATUS_INPUT;
    }
    sqlite3_finalize(row);
    strbuf_release(&hint);
    return status;
}

static enum status check_table(struct store *store, const char *name, struct diag *diag)
{
    sqlite3_stmt *row = NULL;
    enum status status =
        store_prepare(store, "read",
                      "SELECT 1 FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ? AND"
                      " name NOT LIKE 'sqlite%'",
                      &row, diag);
    if (status != STATUS_OK)
        return status;
    sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
    const bool is_there = sqlite3_step(row) == SQLITE_ROW;
    sqlite3_finalize(row);
    return is_there ? STATUS_OK : no_such_table(store, name, diag);
}

/* A range that holds no run is a mistake. */
static enum status check_ranges(struct store *store, const struct store_query *query,
                                struct diag *diag)
{
    sqlite3_stmt *row = NULL;
    enum status status = store_prepare(
        store, "read", "SELECT count(*) FROM run WHERE id BETWEEN ? AND ?", &row, diag);
    for (int32_t i = 0; i < query->range_count && status == STATUS_OK; i++) {
        const struct store_range *range = &query->ranges[i];
        sqlite3_bind_int64(row, 1, range->first);
        sqlite3_bind_int64(row, 2, range->last);
        const int code = sqlite3_step(row);
        if (code != SQLITE_ROW)
            status = store_fail(store, "read", code, diag);
        else if (sqlite3_column_int64(row, 0) == 0)
            status = store_no_such_run(store, range->first, diag);
        sqlite3_reset(row);
    }
    sqlite3_finalize(row);
    return status;
}

static enum status add_ranges(struct store *store, const struct store_query *query, const char *key,
                              struct strbuf *sql, struct diag *diag)
{
    if (key == NULL) {
        diag_add(diag, DIAG_ERROR, NO_PLACE, "leave the runs out, or choose another table",
                 "table '%s' has no runs to choose", query->table);
        return STATUS_INPUT;
    }
    for (int32_t i = 0; i < query->range_count; i++)
        strbuf_printf(sql, "%s%s BETWEEN %" PRId64 " AND %" PRId64, i == 0 ? " AND (" : " OR ", key,
                      query->ranges[i].first, query->ranges[i].last);
    strbuf_add(sql, ")");
    return check_ranges(store, query, diag);
}

/* An expression alone: SQLite would read on behind a ';', and take "name" for a text. */
static enum status prepare(struct store_rows *rows, const char *sql, const char *where,
                           struct diag *diag)
{
    struct store *store = rows->store;
    const char *rest = "";
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    const int code = sqlite3_prepare_v2(store->db, sql, -1, &rows->statement, &rest);
    const char *reason = code != SQLITE_OK ? sqlite3_errmsg(store->db)
                         : rest[0] != '\0' ? "something stands behind it"
                                           : NULL;
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DQS_DML, 1, NULL);
    if (reason == NULL)
        return STATUS_OK;
    if (where == NULL || (code & 0xff) != SQLITE_ERROR) {
        if (code != SQLITE_OK)
            return store_fail(store, "read", code, diag);
    }
    diag_add(diag, DIAG_ERROR, NO_PLACE,
             "an expression of SQLite over the columns, as: n_gpus >= 8 AND model = 'llama-3-70b'",
             "'%s' is not a condition: %s", where != NULL ? where : "", reason);
    return STATUS_INPUT;
}

static const char *copy_text(struct arena *arena, sqlite3_stmt *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    return text != NULL ? arena_strdup(arena, (const char *)text) : "";
}

/* What `meta` says of the columns. */
static enum status describe(struct store_rows *rows, const char *table, struct diag *diag)
{
    sqlite3_stmt *row = NULL;
    enum status status = store_prepare(
        rows->store, "read", "SELECT unit, help FROM meta WHERE table_name = ? AND column_name = ?",
        &row, diag);
    if (status != STATUS_OK)
        return status;
    rows->column_count = sqlite3_column_count(rows->statement);
    rows->columns = ARENA_ARRAY(&rows->arena, struct store_column, rows->column_count + 1);
    for (int i = 0; i < rows->column_count; i++) {
        struct store_column *column = &rows->columns[i];
        const char *type = sqlite3_column_decltype(rows->statement, i);
        *column = (struct store_column){
            .name = arena_strdup(&rows->arena, sqlite3_column_name(rows->statement, i)),
            .type = type != NULL ? arena_strdup(&rows->arena, type) : "",
            .unit = "",
            .help = ""};
        sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
        sqlite3_bind_text(row, 2, column->name, -1, SQLITE_STATIC);
        if (sqlite3_step(row) == SQLITE_ROW) {
            column->unit = copy_text(&rows->arena, row, 0);
            column->help = copy_text(&rows->arena, row, 1);
        }
        sqlite3_reset(row);
    }
    sqlite3_finalize(row);
    return STATUS_OK;
}

static enum status open_rows(struct store_rows *rows, const struct store_query *query,
                             struct diag *diag)
{
    struct store *store = rows->store;
    struct strbuf sql = {0};
    enum status status = check_table(store, query->table, diag);
    if (status != STATUS_OK)
        return status;
    const bool has_id = store_has_column(store, query->table, "id");
    const bool is_run = has_id && store_has_column(store, query->table, "n_gpus");
    const char *key = is_run                                            ? "id"
                      : store_has_column(store, query->table, "run_id") ? "run_id"
                                                                        : NULL;
    strbuf_printf(&sql, "SELECT * FROM %s WHERE true", query->table);
    if (query->range_count > 0)
        status = add_ranges(store, query, key, &sql, diag);
    /* The line ends a comment that the expression may end with. */
    if (query->where != NULL)
        strbuf_printf(&sql, " AND (%s\n)", query->where);
    strbuf_add(&sql, has_id && key != NULL && !store_has_column(store, query->table, "position")
                         ? " ORDER BY id"
                         : " ORDER BY 1, 2");
    if (status == STATUS_OK)
        status = prepare(rows, sql.text, query->where, diag);
    if (status == STATUS_OK)
        status = describe(rows, query->table, diag);
    strbuf_release(&sql);
    return status;
}

enum status store_rows_open(struct store *store, const struct store_query *query,
                            struct store_rows **rows, struct diag *diag)
{
    struct arena arena = {0};
    struct store_rows *opened = ARENA_NEW(&arena, struct store_rows);
    *opened = (struct store_rows){.arena = arena, .store = store};
    const enum status status = open_rows(opened, query, diag);
    if (status != STATUS_OK)
        store_rows_close(opened);
    *rows = status == STATUS_OK ? opened : NULL;
    return status;
}

bool store_rows_next(struct store_rows *rows, enum status *status, struct diag *diag)
{
    const int code = sqlite3_step(rows->statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        *status = store_fail(rows->store, "read", code, diag);
    return code == SQLITE_ROW;
}

int store_rows_column_count(const struct store_rows *rows)
{
    return rows->column_count;
}

const struct store_column *store_rows_column(const struct store_rows *rows, int column)
{
    return &rows->columns[column];
}

void store_rows_cell(const struct store_rows *rows, int column, struct store_cell *cell)
{
    sqlite3_stmt *row = rows->statement;
    *cell = (struct store_cell){.kind = CELL_NULL};
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
        cell->integer = sqlite3_column_int64(row, column);
        cell->kind = text_equal(rows->columns[column].unit, "bool") ? CELL_BOOL : CELL_INT;
        break;
    case SQLITE_FLOAT:
        cell->real = sqlite3_column_double(row, column);
        cell->kind = CELL_REAL;
        break;
    case SQLITE_NULL:
        break;
    default:
        cell->text = (const char *)sqlite3_column_text(row, column);
        cell->kind = CELL_TEXT;
        break;
    }
}

void store_rows_close(struct store_rows *rows)
{
    if (rows == NULL)
        return;
    sqlite3_finalize(rows->statement);
    struct arena arena = rows->arena;
    arena_release(&arena);
}
