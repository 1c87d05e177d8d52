/* store/store_error.c: SQLite's codes as one line that says what to do. */
#include <errno.h>
#include <string.h>

#include "store/store_private.h"

/* What to say instead of SQLite's own words; NULL: those. */
static const char *explanation(int code, int system_error)
{
    const bool is_full = system_error == ENOSPC || system_error == EDQUOT;
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "it is locked by another process; try again when that has finished, or choose "
               "another file with --db";
    case SQLITE_FULL:
        return "the disk is full; earlier runs are intact: free some space and run again, or "
               "choose another file with --db";
    case SQLITE_IOERR:
        if (is_full)
            return explanation(SQLITE_FULL, 0);
        return system_error != 0 ? strerror(system_error) : NULL;
    case SQLITE_CORRUPT:
        return "it is corrupt and was left as it is; restore a copy, try 'sqlite3 FILE .recover', "
               "or choose another file with --db";
    case SQLITE_NOTADB:
        return "it is not a database";
    case SQLITE_READONLY:
        return "it is read-only";
    case SQLITE_CANTOPEN:
        return system_error != 0 ? strerror(system_error) : NULL;
    default:
        return NULL;
    }
}

enum status store_fail(const struct store *store, const char *doing, int code, struct diag *diag)
{
    const char *why = NULL;
    if (store->db != NULL)
        why = explanation(code, sqlite3_system_errno(store->db));
    if (why == NULL)
        why = store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(code);
    diag_world(diag, "cannot %s '%s': %s", doing, store->path, why);
    return STATUS_WORLD;
}

enum status store_exec(struct store *store, const char *doing, const char *sql, struct diag *diag)
{
    const int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? STATUS_OK : store_fail(store, doing, code, diag);
}

enum status store_prepare(struct store *store, const char *doing, const char *sql,
                          sqlite3_stmt **statement, struct diag *diag)
{
    const int code =
        sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    return code == SQLITE_OK ? STATUS_OK : store_fail(store, doing, code, diag);
}

int store_bind_fields(sqlite3_stmt *statement, int first, const void *item,
                      const struct metric *fields)
{
    int code = SQLITE_OK;
    for (const struct metric *field = fields; field->name != NULL && code == SQLITE_OK; field++) {
        const int at = first + (int)(field - fields);
        switch (field->kind) {
        case METRIC_DOUBLE:
            code = sqlite3_bind_double(statement, at, metric_double(item, field));
            break;
        case METRIC_INT:
            code = sqlite3_bind_int64(statement, at, metric_int(item, field));
            break;
        case METRIC_BOOL:
            code = sqlite3_bind_int(statement, at, metric_bool(item, field) ? 1 : 0);
            break;
        case METRIC_TEXT: {
            /* No text is stored as the empty one and comes back as NULL. */
            const char *text = metric_text(item, field);
            code = sqlite3_bind_text(statement, at, text != NULL ? text : "", -1, SQLITE_STATIC);
            break;
        }
        }
    }
    return code;
}

void store_add_names(struct strbuf *sql, const char *separator, const struct metric *fields)
{
    for (const struct metric *field = fields; field->name != NULL; field++)
        strbuf_printf(sql, "%s%s", separator, field->name);
}

bool store_has_column(struct store *store, const char *table, const char *column)
{
    sqlite3_stmt *row = NULL;
    bool is_found = false;
    if (sqlite3_prepare_v2(store->db, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?", -1, &row,
                           NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 2, column, -1, SQLITE_STATIC);
    is_found = sqlite3_step(row) == SQLITE_ROW;
    sqlite3_finalize(row);
    return is_found;
}

void store_add_columns(struct store *store, struct strbuf *sql, const char *table,
                       const struct metric *fields)
{
    const bool is_old = store->version < STORE_SCHEMA_VERSION;
    for (const struct metric *field = fields; field->name != NULL; field++)
        strbuf_printf(sql, ",%s",
                      is_old && !store_has_column(store, table, field->name) ? "NULL"
                                                                             : field->name);
}
