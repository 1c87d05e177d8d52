/* store/store_validation.c: see store_validation.h. */
#include "store/store_validation.h"

#include "store/store_private.h"

#define COLUMN(type, field, column, in, what, may_lack, explains)                                  \
    {                                                                                              \
        .name = (column), .unit = (in), .kind = (what), .is_optional = (may_lack),                 \
        .offset = offsetof(type, field), .help = (explains)                                        \
    }
#define OF_ALL(field, in, what, explains)                                                          \
    COLUMN(struct store_validation, field, #field, in, what, false, explains)
#define TEXT(field, column, explains)                                                              \
    COLUMN(struct store_validation_row, field, column, "text", METRIC_TEXT, false, explains)
#define COUNT(field, explains)                                                                     \
    COLUMN(struct store_validation_row, field, #field, "count", METRIC_INT, false, explains)
#define FLAG(field, column, explains)                                                              \
    COLUMN(struct store_validation_row, field, column, "0 or 1", METRIC_BOOL, false, explains)
#define FIGURE(field, in, explains)                                                                \
    COLUMN(struct store_validation_row, field, #field, in, METRIC_DOUBLE, true, explains)

static const struct metric validation_columns[] = {
    OF_ALL(csv, "text", METRIC_TEXT, "the table of runs"),
    OF_ALL(overrides, "text", METRIC_TEXT, "settings over those of every row"),
    OF_ALL(rows, "count", METRIC_INT, "runs of the table"),
    OF_ALL(in_scope, "count", METRIC_INT, "of them, what could be simulated"),
    {.name = NULL},
};

static const struct metric row_columns[] = {
    COUNT(line, "in the table"),
    TEXT(label, "id", "of the measured run"),
    TEXT(source, "source", "where it was published"),
    TEXT(model, "model", "as the source names it"),
    TEXT(gpu, "gpu", "as the source names it"),
    COUNT(n_gpus, "GPUs"),
    TEXT(trust, "trust", "A, B, C or nothing"),
    TEXT(regime, "regime", "hosts and what bounds the step; empty: not simulated"),
    FLAG(in_scope, "in_scope", "all that it states can be simulated"),
    TEXT(reason, "reason", "why it is out of scope"),
    FLAG(is_scored, "scored", "it counts: trust A or B, no repeat"),
    FLAG(is_assumed, "assumed", "a setting in force is assumed"),
    FIGURE(measured_step_time_s, "s", "published, or from the published tokens per second"),
    FIGURE(predicted_step_time_s, "s", "simulated"),
    FIGURE(step_time_error, "1", "predicted / measured - 1"),
    FIGURE(step_time_p5_s, "s", "5th percentile of the prediction"),
    FIGURE(step_time_p95_s, "s", "95th percentile of the prediction"),
    TEXT(memory_kind, "memory_kind", "which peak the source states"),
    FIGURE(measured_memory_bytes, "bytes", "published"),
    FIGURE(predicted_memory_bytes, "bytes", "simulated, of that kind"),
    FIGURE(memory_error, "1", "predicted / measured - 1"),
    TEXT(mfu_convention, "mfu_convention", "how the source counts FLOPs; empty: not compared"),
    FIGURE(measured_mfu, "1", "published"),
    FIGURE(predicted_mfu, "1", "simulated, by that convention"),
    FIGURE(mfu_error, "1", "predicted - measured"),
    {.name = NULL},
};

void store_add_validation_tables(struct strbuf *sql)
{
    strbuf_add(sql, "CREATE TABLE validation (\n id INTEGER NOT NULL PRIMARY KEY,\n"
                    " created_utc TEXT NOT NULL,\n fsdpsim_version TEXT NOT NULL,\n"
                    " model_version INTEGER NOT NULL");
    store_add_definitions(sql, validation_columns);
    strbuf_add(sql, "\n) STRICT;\nCREATE TABLE validation_row (\n validation_id INTEGER NOT NULL"
                    " REFERENCES validation (id) ON DELETE CASCADE,\n position INTEGER NOT NULL");
    store_add_definitions(sql, row_columns);
    strbuf_add(sql, ",\n PRIMARY KEY (validation_id, position)\n) STRICT, WITHOUT ROWID;\n");
}

void store_add_validation_meta(struct meta_writer *meta)
{
    store_add_meta(meta, "validation", "id", "count", "number of the validation in this file");
    store_add_meta(meta, "validation", "created_utc", "text", "when it was stored");
    store_add_meta(meta, "validation", "fsdpsim_version", "text", "program version");
    store_add_meta(meta, "validation", "model_version", "count", "as in run");
    store_add_meta_columns(meta, "validation", validation_columns);
    store_add_meta(meta, "validation_row", "validation_id", "count", "validation.id");
    store_add_meta(meta, "validation_row", "position", "count", "order of the rows, from 0");
    store_add_meta_columns(meta, "validation_row", row_columns);
}

static int column_count(const struct metric *columns)
{
    int count = 0;
    while (columns[count].name != NULL)
        count++;
    return count;
}

static enum status prepare(struct store *store, const char *head, int parameters,
                           const struct metric *columns, sqlite3_stmt **insert, struct diag *diag)
{
    struct strbuf sql = {0};
    strbuf_add(&sql, head);
    store_add_names(&sql, ", ", columns);
    strbuf_add(&sql, ") VALUES (?");
    for (int i = 1; i < parameters + column_count(columns); i++)
        strbuf_add(&sql, ", ?");
    strbuf_add(&sql, ")");
    const enum status status = store_prepare(store, "write to", sql.text, insert, diag);
    strbuf_release(&sql);
    return status;
}

static int insert_validation(struct store *store, sqlite3_stmt *insert,
                             const struct store_validation *validation, int64_t *id)
{
    char created[32];
    store_now_utc(created, sizeof(created));
    int code = sqlite3_bind_text(insert, 1, created, -1, SQLITE_TRANSIENT);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(insert, 2, FSDPSIM_VERSION, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int(insert, 3, OUTCOME_MODEL_VERSION);
    if (code == SQLITE_OK)
        code = store_bind_fields(insert, 4, validation, validation_columns);
    code = store_insert_bound(insert, code);
    *id = sqlite3_last_insert_rowid(store->db);
    return code;
}

static int insert_rows(sqlite3_stmt *insert, int64_t id, const struct store_validation_row *rows,
                       int32_t count)
{
    int code = SQLITE_OK;
    for (int32_t i = 0; i < count && code == SQLITE_OK; i++) {
        code = sqlite3_bind_int64(insert, 1, id);
        if (code == SQLITE_OK)
            code = sqlite3_bind_int(insert, 2, i);
        if (code == SQLITE_OK)
            code = store_bind_fields(insert, 3, &rows[i], row_columns);
        code = store_insert_bound(insert, code);
    }
    return code;
}

enum status store_add_validation(struct store *store, const struct store_validation *validation,
                                 const struct store_validation_row *rows, int32_t count,
                                 int64_t *id, struct diag *diag)
{
    sqlite3_stmt *insert = NULL, *insert_row = NULL;
    enum status status =
        prepare(store, "INSERT INTO validation (created_utc, fsdpsim_version, model_version", 3,
                validation_columns, &insert, diag);
    if (status == STATUS_OK)
        status = prepare(store, "INSERT INTO validation_row (validation_id, position", 2,
                         row_columns, &insert_row, diag);
    if (status == STATUS_OK)
        status = store_exec(store, "write to", "BEGIN IMMEDIATE", diag);
    if (status == STATUS_OK) {
        int code = insert_validation(store, insert, validation, id);
        if (code == SQLITE_OK)
            code = insert_rows(insert_row, *id, rows, count);
        status = code == SQLITE_OK ? store_exec(store, "write to", "COMMIT", diag)
                                   : store_fail(store, "write to", code, diag);
        if (status != STATUS_OK)
            store_rollback(store);
    }
    sqlite3_finalize(insert);
    sqlite3_finalize(insert_row);
    return status;
}
