/*
 * store/store_private.h: what the files of this room share.
 *
 * A child table of `run` is described once (struct store_table): its rows' place in struct outcome
 * and its columns as metrics. From that come CREATE TABLE, the rows of `meta`, INSERT and SELECT.
 */
#ifndef FSDPSIM_STORE_STORE_PRIVATE_H
#define FSDPSIM_STORE_STORE_PRIVATE_H

#include <sqlite3.h>

#include "base/strbuf.h"
#include "store/store.h"

enum {
    STORE_APPLICATION_ID = 0x66736470, /* "fsdp", bytes 68 to 71 of the file */
    STORE_VERSION_SWEEPS = 3,          /* the first with sweeps */
    STORE_BUSY_MS = 5000,
    STORE_TABLE_COUNT = 9,
};

struct store_table {
    const char *name, *help;
    const struct metric *columns; /* after run_id and position; ends with name NULL */
    const char *key;              /* with run_id the primary key; "position": rows are a list */
    size_t rows_offset, count_offset, row_bytes; /* in struct outcome; row_bytes 0: derived rows */
};
extern const struct store_table store_tables[STORE_TABLE_COUNT];
/* The derived ones; what is stored and read with the row of its run, without detail. */
enum { STORE_TABLE_METRIC = 0, STORE_TABLE_MEMORY_PEAK = 1, STORE_TABLE_INTERVAL = 2 };

/* Columns of `run` that are not metrics of the outcome, in order, after `id`. */
extern const struct metric store_run_columns[];

struct store {
    struct arena arena;
    const char *path; /* as the user gave it */
    enum store_mode mode;
    int64_t version; /* of the file's schema */
    sqlite3 *db;
    sqlite3_stmt *insert_run;
    sqlite3_stmt *insert_rows[STORE_TABLE_COUNT];
    sqlite3_stmt *find_run, *load_row, *put_point, *find_failure; /* of sweeps */
};

/* store_open with another patience, for tests of a locked file. */
MUST_CHECK enum status store_open_within(const char *path, enum store_mode mode, int busy_ms,
                                         struct store **store, struct diag *diag);

/* Columns as they are defined, each after a comma; the tables of validations. */
void store_add_definitions(struct strbuf *sql, const struct metric *columns);
void store_add_validation_tables(struct strbuf *sql);

/* Creates all tables of an empty database, inside the caller's transaction. */
MUST_CHECK enum status store_create_schema(struct store *store, struct diag *diag);

/* Statements that make the views, and that drop those which are there (store_views.c). */
void store_add_views(struct strbuf *sql);
void store_drop_views(struct strbuf *sql);
struct meta_writer {
    sqlite3_stmt *insert;
    int code; /* the first failure */
};
/* Rows of `meta`: of one column, of several, of what views have and no table. */
void store_add_meta(struct meta_writer *meta, const char *table, const char *column,
                    const char *unit, const char *help);
void store_add_meta_columns(struct meta_writer *meta, const char *table,
                            const struct metric *columns);
void store_add_view_meta(struct meta_writer *meta);
void store_add_validation_meta(struct meta_writer *meta);

/* An error that says which runs there are. */
enum status store_no_such_run(struct store *store, int64_t id, struct diag *diag);
/* Sets `version` to that of the file. */
MUST_CHECK enum status store_read_version(struct store *store, struct diag *diag);
/* Brings an older file up to this schema, in a transaction of its own. */
MUST_CHECK enum status store_upgrade(struct store *store, struct diag *diag);

/* What SQLite is to open, with SQLITE_OPEN_URI: a file that nobody can write, or that is not to be
   (`is_fixed`), is read without a lock and without files beside it. */
const char *store_name(struct arena *arena, const char *path, enum store_mode mode, bool is_fixed);

/* Judges the file before SQLite sees it: kind, mode bits, header. `is_new`: missing or empty. */
MUST_CHECK enum status store_check_file(const char *path, enum store_mode mode, bool *is_new,
                                        struct diag *diag);
/* Whether its file system has the shared memory and locks that WAL needs. */
bool store_is_local(const char *path);
/* Some write bit is set and we may write: for root too, mode 0444 is read-only. */
bool store_is_writable(const char *path);
/* The folder of a file, links followed; "." for a bare name. */
const char *store_folder(struct arena *arena, const char *path);
/* Whether a write-ahead log with something in it lies beside the file. */
bool store_has_log(struct arena *arena, const char *path);

/* Adds a message for a failed SQLite call; `doing`: "open", "write to", "read". */
MUST_CHECK enum status store_fail(const struct store *store, const char *doing, int code,
                                  struct diag *diag);
MUST_CHECK enum status store_exec(struct store *store, const char *doing, const char *sql,
                                  struct diag *diag);
MUST_CHECK enum status store_prepare(struct store *store, const char *doing, const char *sql,
                                     sqlite3_stmt **statement, struct diag *diag);
/* Binds the fields of `item` to the parameters from `first` on; returns the SQLite code. */
int store_bind_fields(sqlite3_stmt *statement, int first, const void *item,
                      const struct metric *fields);
/* Text of the names of `fields`, each after `separator`. */
void store_add_names(struct strbuf *sql, const char *separator, const struct metric *fields);
/* The same for a SELECT from `table`: NULL for a column that the file, an older one, lacks. */
void store_add_columns(struct store *store, struct strbuf *sql, const char *table,
                       const struct metric *fields);
bool store_has_column(struct store *store, const char *table, const char *column);

/* Prepares what store_insert_outcome needs, once. */
MUST_CHECK enum status store_prepare_inserts(struct store *store, struct diag *diag);
/* Inside a transaction; returns the SQLite code. Without `has_detail` only the row of `run`. */
int store_insert_outcome(struct store *store, const struct outcome *outcome, bool has_detail,
                         int64_t *id);
/* Runs a bound insert; `code` is what binding gave. Returns SQLITE_OK or the failure. */
int store_insert_bound(sqlite3_stmt *statement, int code);
/* "2026-01-31T12:00:00Z" */
void store_now_utc(char *text, size_t size);
void store_rollback(struct store *store);

#endif
