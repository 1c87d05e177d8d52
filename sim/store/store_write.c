/* store/store_write.c: outcomes into the database, a batch in one transaction. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "store/store_private.h"

static int column_count(const struct metric *columns)
{
    int count = 0;
    while (columns[count].name != NULL)
        count++;
    return count;
}

static void add_parameters(struct strbuf *sql, int count)
{
    for (int i = 0; i < count; i++)
        strbuf_add(sql, i == 0 ? "?" : ",?");
    strbuf_add(sql, ")");
}

enum status store_prepare_inserts(struct store *store, struct diag *diag)
{
    struct strbuf sql = {0};
    enum status status = STATUS_OK;
    if (store->insert_run != NULL)
        goto out;
    strbuf_add(&sql, "INSERT INTO run (id");
    store_add_names(&sql, ",", store_run_columns);
    store_add_names(&sql, ",", outcome_metrics);
    strbuf_add(&sql, ") VALUES (");
    add_parameters(&sql, 1 + column_count(store_run_columns) + column_count(outcome_metrics));
    for (int i = 0; i < STORE_TABLE_COUNT; i++) {
        const struct store_table *table = &store_tables[i];
        struct strbuf insert = {0};
        const bool is_list = table->row_bytes > 0;
        strbuf_printf(&insert, "INSERT INTO %s (run_id%s", table->name, is_list ? ",position" : "");
        store_add_names(&insert, ",", table->columns);
        strbuf_add(&insert, ") VALUES (");
        add_parameters(&insert, (is_list ? 2 : 1) + column_count(table->columns));
        status = store_prepare(store, "write to", insert.text, &store->insert_rows[i], diag);
        strbuf_release(&insert);
        if (status != STATUS_OK)
            goto out;
    }
    status = store_prepare(store, "write to", sql.text, &store->insert_run, diag);
out:
    strbuf_release(&sql);
    return status;
}

int store_insert_bound(sqlite3_stmt *statement, int code)
{
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
        code = code == SQLITE_DONE ? SQLITE_OK : code;
    }
    sqlite3_reset(statement);
    return code;
}

void store_now_utc(char *text, size_t size)
{
    const time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts) == NULL || strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        snprintf(text, size, "1970-01-01T00:00:00Z");
}

static int insert_run(struct store *store, const struct outcome *outcome, int64_t *id)
{
    sqlite3_stmt *insert = store->insert_run;
    char created[32], config_hash[33], fingerprint[17];
    store_now_utc(created, sizeof(created));
    hash128_format(outcome->config_hash, config_hash);
    snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, outcome->fingerprint);

    /* In the order of store_run_columns; the id is left to SQLite. */
    int code = sqlite3_bind_null(insert, 1);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(insert, 2, created, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(insert, 3, FSDPSIM_VERSION, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int(insert, 4, OUTCOME_MODEL_VERSION);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(insert, 5, config_hash, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(insert, 6, fingerprint, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = store_bind_fields(insert, 2 + column_count(store_run_columns), outcome,
                                 outcome_metrics);
    code = store_insert_bound(insert, code);
    *id = sqlite3_last_insert_rowid(store->db);
    /* The texts above end with this function. */
    sqlite3_clear_bindings(insert);
    return code;
}

/* "step_time_s.p05" and so on. */
static int insert_interval(sqlite3_stmt *insert, const struct outcome_interval *interval,
                           int64_t id)
{
    const struct {
        const char *name;
        double value;
    } points[] = {{"p05", interval->p05}, {"p50", interval->p50}, {"p95", interval->p95}};
    int code = SQLITE_OK;
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]) && code == SQLITE_OK; i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s.%s", interval->metric, points[i].name);
        code = sqlite3_bind_int64(insert, 1, id);
        if (code == SQLITE_OK)
            code = sqlite3_bind_text(insert, 2, name, -1, SQLITE_TRANSIENT);
        if (code == SQLITE_OK)
            code = sqlite3_bind_double(insert, 3, points[i].value);
        if (code == SQLITE_OK)
            code = sqlite3_bind_text(insert, 4, interval->unit, -1, SQLITE_STATIC);
        code = store_insert_bound(insert, code);
    }
    return code;
}

static int insert_metrics(struct store *store, const struct outcome *outcome, int64_t id)
{
    sqlite3_stmt *insert = store->insert_rows[STORE_TABLE_METRIC];
    int code = SQLITE_OK;
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++) {
        double value = 0;
        if (!outcome_number(outcome, metric, &value))
            continue;
        code = sqlite3_bind_int64(insert, 1, id);
        if (code == SQLITE_OK)
            code = sqlite3_bind_text(insert, 2, metric->name, -1, SQLITE_STATIC);
        if (code == SQLITE_OK)
            code = sqlite3_bind_double(insert, 3, value);
        if (code == SQLITE_OK)
            code = sqlite3_bind_text(insert, 4, metric->unit, -1, SQLITE_STATIC);
        code = store_insert_bound(insert, code);
        if (code != SQLITE_OK)
            break;
    }
    for (int32_t i = 0; i < outcome->interval_count && code == SQLITE_OK; i++)
        code = insert_interval(insert, &outcome->intervals[i], id);
    return code;
}

static int insert_composition(struct store *store, const struct outcome *outcome, int64_t id)
{
    sqlite3_stmt *insert = store->insert_rows[STORE_TABLE_MEMORY_PEAK];
    int code = SQLITE_OK;
    for (int i = 0; i < MEMORY_CATEGORY_COUNT && code == SQLITE_OK; i++) {
        const char *name = memory_category_name((enum memory_category)i);
        code = sqlite3_bind_int64(insert, 1, id);
        if (code == SQLITE_OK)
            code = sqlite3_bind_text(insert, 2, name, -1, SQLITE_STATIC);
        if (code == SQLITE_OK)
            code = sqlite3_bind_int64(insert, 3, outcome->peak_composition[i]);
        code = store_insert_bound(insert, code);
    }
    return code;
}

static int insert_list(sqlite3_stmt *insert, const struct store_table *table,
                       const struct outcome *outcome, int64_t id)
{
    const char *base = (const char *)outcome;
    const char *rows = NULL;
    int32_t count = 0;
    int code = SQLITE_OK;
    memcpy(&rows, base + table->rows_offset, sizeof(rows));
    memcpy(&count, base + table->count_offset, sizeof(count));
    for (int32_t i = 0; i < count && code == SQLITE_OK; i++) {
        code = sqlite3_bind_int64(insert, 1, id);
        if (code == SQLITE_OK)
            code = sqlite3_bind_int(insert, 2, i);
        if (code == SQLITE_OK)
            code =
                store_bind_fields(insert, 3, rows + (size_t)i * table->row_bytes, table->columns);
        code = store_insert_bound(insert, code);
    }
    return code;
}

int store_insert_outcome(struct store *store, const struct outcome *outcome, bool has_detail,
                         int64_t *id)
{
    int code = insert_run(store, outcome, id);
    if (!has_detail) {
        const int interval = STORE_TABLE_INTERVAL;
        return code != SQLITE_OK ? code
                                 : insert_list(store->insert_rows[interval],
                                               &store_tables[interval], outcome, *id);
    }
    if (code == SQLITE_OK)
        code = insert_metrics(store, outcome, *id);
    if (code == SQLITE_OK)
        code = insert_composition(store, outcome, *id);
    for (int i = 0; i < STORE_TABLE_COUNT && code == SQLITE_OK; i++) {
        if (store_tables[i].row_bytes > 0)
            code = insert_list(store->insert_rows[i], &store_tables[i], outcome, *id);
    }
    return code;
}

void store_rollback(struct store *store)
{
    /* After some errors (a full disk) SQLite has rolled back by itself. */
    if (sqlite3_get_autocommit(store->db) == 0)
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

enum status store_add_runs(struct store *store, const struct outcome *const *outcomes,
                           int32_t count, int64_t *ids, struct diag *diag)
{
    enum status status = store_prepare_inserts(store, diag);
    if (status != STATUS_OK)
        goto out;
    status = store_exec(store, "write to", "BEGIN IMMEDIATE", diag);
    if (status != STATUS_OK)
        goto out;
    for (int32_t i = 0; i < count; i++) {
        int64_t id = 0;
        const int code = store_insert_outcome(store, outcomes[i], true, &id);
        if (code != SQLITE_OK) {
            status = store_fail(store, "write to", code, diag);
            goto out;
        }
        if (ids != NULL)
            ids[i] = id;
    }
    status = store_exec(store, "write to", "COMMIT", diag);
out:
    if (status != STATUS_OK)
        store_rollback(store);
    return status;
}
