/* store/store_read.c: stored runs back into outcomes. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "store/store_private.h"

static double column_double(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? (double)NAN
                                                           : sqlite3_column_double(row, column);
}

/* NULL for the empty text. */
static const char *column_text(struct arena *arena, sqlite3_stmt *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    if (text == NULL || text[0] == '\0')
        return NULL;
    return arena_strdup(arena, (const char *)text);
}

/* The columns from `first` on into the fields of `item`. */
static void read_fields(struct arena *arena, sqlite3_stmt *row, int first, void *item,
                        const struct metric *fields)
{
    for (const struct metric *field = fields; field->name != NULL; field++) {
        const int column = first + (int)(field - fields);
        void *target = (char *)item + field->offset;
        switch (field->kind) {
        case METRIC_DOUBLE:
            *(double *)target = column_double(row, column);
            break;
        case METRIC_INT:
            *(int64_t *)target = sqlite3_column_int64(row, column);
            break;
        case METRIC_BOOL:
            *(bool *)target = sqlite3_column_int(row, column) != 0;
            break;
        case METRIC_TEXT:
            *(const char **)target = column_text(arena, row, column);
            break;
        }
    }
}

/* Up to 16 hexadecimal digits; others are skipped (the writer has none). */
static uint64_t hex_value(const char *text, size_t digits)
{
    static const char alphabet[] = "0123456789abcdef";
    uint64_t value = 0;
    for (size_t i = 0; i < digits && text[i] != '\0'; i++) {
        const char *found = strchr(alphabet, text[i]);
        if (found != NULL)
            value = value << 4 | (uint64_t)(found - alphabet);
    }
    return value;
}

enum status store_list(struct store *store, struct arena *arena, struct store_run_list *list,
                       struct diag *diag)
{
    static const char sql[] = "SELECT id, created_utc, config_name, model, cluster, policy, n_gpus,"
                              " step_time_s, tokens_per_s_per_gpu, mfu, exposed_comm_fraction,"
                              " peak_device_bytes, fits FROM run ORDER BY id";
    sqlite3_stmt *row = NULL;
    int code = SQLITE_DONE;
    *list = (struct store_run_list){0};
    enum status status = store_prepare(store, "read", sql, &row, diag);
    if (status != STATUS_OK)
        goto out;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_run *run = ARENA_PUSH(arena, list);
        run->id = sqlite3_column_int64(row, 0);
        run->created = column_text(arena, row, 1);
        run->config_name = column_text(arena, row, 2);
        run->model = column_text(arena, row, 3);
        run->cluster = column_text(arena, row, 4);
        run->policy = column_text(arena, row, 5);
        run->n_gpus = sqlite3_column_int64(row, 6);
        run->step_time_s = column_double(row, 7);
        run->tokens_per_s_per_gpu = column_double(row, 8);
        run->mfu = column_double(row, 9);
        run->exposed_comm_fraction = column_double(row, 10);
        run->peak_device_bytes = sqlite3_column_int64(row, 11);
        run->fits = sqlite3_column_int(row, 12) != 0;
    }
    if (code != SQLITE_DONE)
        status = store_fail(store, "read", code, diag);
out:
    sqlite3_finalize(row);
    return status;
}

/* "no run 7": says which ids there are. */
enum status store_no_such_run(struct store *store, int64_t id, struct diag *diag)
{
    enum { SHOWN_MAX = 20 };
    struct strbuf hint = {0};
    sqlite3_stmt *row = NULL;
    int64_t count = 0, last = 0;
    enum status status =
        store_prepare(store, "read", "SELECT count(*), max(id) FROM run", &row, diag);
    if (status != STATUS_OK)
        goto out;
    if (sqlite3_step(row) == SQLITE_ROW) {
        count = sqlite3_column_int64(row, 0);
        last = sqlite3_column_int64(row, 1);
    }
    sqlite3_finalize(row);
    row = NULL;
    if (count > 0 && count == last) {
        strbuf_printf(&hint, "runs are numbered 1 to %" PRId64, last);
    } else if (count > 0) {
        status = store_prepare(store, "read", "SELECT id FROM run ORDER BY id", &row, diag);
        if (status != STATUS_OK)
            goto out;
        strbuf_add(&hint, "runs:");
        for (int i = 0; i < SHOWN_MAX && sqlite3_step(row) == SQLITE_ROW; i++)
            strbuf_printf(&hint, "%s %" PRId64, i > 0 ? "," : "",
                          (int64_t)sqlite3_column_int64(row, 0));
        if (count > SHOWN_MAX)
            strbuf_printf(&hint, " and %" PRId64 " more, up to %" PRId64, count - SHOWN_MAX, last);
    } else {
        strbuf_add(&hint, "it holds no runs yet");
    }
    diag_add(diag, DIAG_ERROR, NO_PLACE, hint.text, "no run %" PRId64 " in '%s'", id, store->path);
    status = STATUS_INPUT;
out:
    sqlite3_finalize(row);
    strbuf_release(&hint);
    return status;
}

static enum status read_run(struct store *store, struct arena *arena, int64_t id,
                            struct outcome *outcome, const char **created, struct diag *diag)
{
    struct strbuf sql = {0};
    enum status status = STATUS_OK;
    if (store->load_row == NULL) {
        strbuf_add(&sql, "SELECT created_utc, config_hash, fingerprint");
        store_add_columns(store, &sql, "run", outcome_metrics);
        strbuf_add(&sql, " FROM run WHERE id = ?");
        status = store_prepare(store, "read", sql.text, &store->load_row, diag);
        if (status != STATUS_OK)
            goto out;
    }
    sqlite3_stmt *row = store->load_row;
    sqlite3_bind_int64(row, 1, id);
    const int code = sqlite3_step(row);
    if (code == SQLITE_DONE) {
        status = store_no_such_run(store, id, diag);
        goto out;
    }
    if (code != SQLITE_ROW) {
        status = store_fail(store, "read", code, diag);
        goto out;
    }
    const char *time_text = column_text(arena, row, 0);
    const char *config_hash = column_text(arena, row, 1);
    const char *fingerprint = column_text(arena, row, 2);
    if (created != NULL)
        *created = time_text;
    if (config_hash != NULL && strlen(config_hash) == 32) {
        outcome->config_hash.high = hex_value(config_hash, 16);
        outcome->config_hash.low = hex_value(config_hash + 16, 16);
    }
    outcome->fingerprint = fingerprint != NULL ? hex_value(fingerprint, 16) : 0;
    read_fields(arena, row, 3, outcome, outcome_metrics);
out:
    sqlite3_reset(store->load_row);
    strbuf_release(&sql);
    return status;
}

struct row_list {
    char *items;
    int32_t count, capacity;
};

static enum status read_list(struct store *store, struct arena *arena, int64_t id,
                             const struct store_table *table, struct outcome *outcome,
                             struct diag *diag)
{
    struct strbuf sql = {0};
    sqlite3_stmt *row = NULL;
    struct row_list list = {0};
    int code = SQLITE_DONE;
    /* A table that came later. */
    if (store->version < STORE_SCHEMA_VERSION && !store_has_column(store, table->name, "run_id"))
        return STATUS_OK;
    strbuf_add(&sql, "SELECT position");
    store_add_columns(store, &sql, table->name, table->columns);
    strbuf_printf(&sql, " FROM %s WHERE run_id = ? ORDER BY position", table->name);
    enum status status = store_prepare(store, "read", sql.text, &row, diag);
    if (status != STATUS_OK)
        goto out;
    sqlite3_bind_int64(row, 1, id);
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        if (list.count == list.capacity)
            list.items = arena_grow(arena, list.items, table->row_bytes, &list.capacity);
        void *item = list.items + (size_t)list.count++ * table->row_bytes;
        memset(item, 0, table->row_bytes);
        read_fields(arena, row, 1, item, table->columns);
    }
    if (code != SQLITE_DONE) {
        status = store_fail(store, "read", code, diag);
        goto out;
    }
    memcpy((char *)outcome + table->rows_offset, &list.items, sizeof(list.items));
    memcpy((char *)outcome + table->count_offset, &list.count, sizeof(list.count));
out:
    sqlite3_finalize(row);
    strbuf_release(&sql);
    return status;
}

static enum status read_composition(struct store *store, int64_t id, struct outcome *outcome,
                                    struct diag *diag)
{
    sqlite3_stmt *row = NULL;
    int code = SQLITE_DONE;
    enum status status = store_prepare(
        store, "read", "SELECT category, bytes FROM memory_peak WHERE run_id = ?", &row, diag);
    if (status != STATUS_OK)
        goto out;
    sqlite3_bind_int64(row, 1, id);
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(row, 0);
        for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++) {
            if (text_equal(name, memory_category_name((enum memory_category)i)))
                outcome->peak_composition[i] = sqlite3_column_int64(row, 1);
        }
    }
    if (code != SQLITE_DONE)
        status = store_fail(store, "read", code, diag);
out:
    sqlite3_finalize(row);
    return status;
}

enum status store_load_row(struct store *store, struct arena *arena, int64_t id,
                           struct outcome *outcome, struct diag *diag)
{
    *outcome = (struct outcome){0};
    enum status status = read_run(store, arena, id, outcome, NULL, diag);
    if (status == STATUS_OK && outcome->n_samples > 0)
        status = read_list(store, arena, id, &store_tables[STORE_TABLE_INTERVAL], outcome, diag);
    return status;
}

enum status store_load(struct store *store, struct arena *arena, int64_t id,
                       struct outcome *outcome, const char **created, struct diag *diag)
{
    *outcome = (struct outcome){0};
    /* One transaction: the tables are read as of one moment. */
    enum status status = store_exec(store, "read", "BEGIN", diag);
    if (status != STATUS_OK)
        return status;
    status = read_run(store, arena, id, outcome, created, diag);
    if (status == STATUS_OK)
        status = read_composition(store, id, outcome, diag);
    for (int i = 0; i < STORE_TABLE_COUNT && status == STATUS_OK; i++) {
        if (store_tables[i].row_bytes > 0)
            status = read_list(store, arena, id, &store_tables[i], outcome, diag);
    }
    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
