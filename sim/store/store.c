/* store/store.c: opening and closing; see store.h. */
#include "store/store.h"

#include <string.h>
#include <sys/stat.h>

#include "store/store_private.h"

/*
 * Files up to these sizes are checked whole when they are opened (about 3 ms a MiB); damage in a
 * larger one shows when the damaged page is met. A run is to cost a few milliseconds in all, so a
 * writer checks less than a reader.
 */
enum { CHECKED_BYTES_WRITE = 512 << 10, CHECKED_BYTES_READ = 16 << 20 };

static enum status pragma_int(struct store *store, const char *sql, int64_t *value,
                              struct diag *diag)
{
    sqlite3_stmt *row = NULL;
    enum status status = store_prepare(store, "open", sql, &row, diag);
    if (status != STATUS_OK)
        goto out;
    const int code = sqlite3_step(row);
    if (code == SQLITE_ROW)
        *value = sqlite3_column_int64(row, 0);
    else
        status = store_fail(store, "open", code, diag);
out:
    sqlite3_finalize(row);
    return status;
}

enum status store_read_version(struct store *store, struct diag *diag)
{
    return pragma_int(store, "PRAGMA user_version", &store->version, diag);
}

/* Two processes may meet an empty file: the one that gets the lock second finds the tables made. */
static enum status create_if_empty(struct store *store, struct diag *diag)
{
    int64_t object_count = 0;
    enum status status = store_exec(store, "create", "BEGIN IMMEDIATE", diag);
    if (status != STATUS_OK)
        return status;
    status = pragma_int(store, "SELECT count(*) FROM sqlite_schema", &object_count, diag);
    if (status == STATUS_OK && object_count == 0)
        status = store_create_schema(store, diag);
    if (status == STATUS_OK)
        status = store_exec(store, "create", "COMMIT", diag);
    if (status != STATUS_OK && sqlite3_get_autocommit(store->db) == 0)
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* The header of the file may be older than what a write-ahead log beside it holds: ask SQLite. */
static enum status check_version(struct store *store, struct diag *diag)
{
    enum status status = store_read_version(store, diag);
    if (status != STATUS_OK || store->version == STORE_SCHEMA_VERSION)
        return status;
    if (store->version >= 1 && store->version < STORE_SCHEMA_VERSION)
        return store->mode == STORE_WRITE ? store_upgrade(store, diag) : STATUS_OK;
    if (store->version < 1)
        diag_world(diag,
                   "cannot open '%s': its schema %d is older than this fsdpsim reads (1); choose "
                   "another file with --db",
                   store->path, (int)store->version);
    else
        diag_world(diag,
                   "cannot open '%s': written by a newer fsdpsim (schema %d, this one knows up to "
                   "%d); update fsdpsim or choose another file with --db",
                   store->path, (int)store->version, (int)STORE_SCHEMA_VERSION);
    return STATUS_WORLD;
}

static enum status check_content(struct store *store, struct diag *diag)
{
    struct stat facts;
    sqlite3_stmt *row = NULL;
    const off_t limit = store->mode == STORE_WRITE ? CHECKED_BYTES_WRITE : CHECKED_BYTES_READ;
    if (stat(store->path, &facts) != 0 || facts.st_size > limit)
        return STATUS_OK;
    enum status status = store_prepare(store, "open", "PRAGMA quick_check(1)", &row, diag);
    if (status != STATUS_OK)
        goto out;
    const int code = sqlite3_step(row);
    if (code != SQLITE_ROW)
        status = store_fail(store, "open", code, diag);
    else if (!text_equal((const char *)sqlite3_column_text(row, 0), "ok"))
        status = store_fail(store, "open", SQLITE_CORRUPT, diag);
out:
    sqlite3_finalize(row);
    return status;
}

/* WAL is faster and lets readers in, but needs shared memory; without it every commit is synced. */
static enum status choose_journal(struct store *store, struct diag *diag)
{
    const bool is_local = store_is_local(store->path);
    sqlite3_stmt *row = NULL;
    enum status status = store_prepare(
        store, "open", is_local ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE",
        &row, diag);
    if (status != STATUS_OK)
        return status;
    const int code = sqlite3_step(row);
    const bool is_wal =
        code == SQLITE_ROW && text_equal((const char *)sqlite3_column_text(row, 0), "wal");
    /* Busy: another connection uses the file in its present mode, and so can we. */
    if (code != SQLITE_ROW && (code & 0xff) != SQLITE_BUSY)
        status = store_fail(store, "open", code, diag);
    sqlite3_finalize(row);
    if (status != STATUS_OK)
        return status;
    return store_exec(store, "open",
                      is_wal ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL", diag);
}

/* "file:/a%20b.db?immutable=1" */
static const char *immutable_uri(struct arena *arena, const char *path)
{
    struct strbuf uri = {0};
    strbuf_add(&uri, "file:");
    for (; *path != '\0'; path++) {
        if (strchr("%?# ", *path) != NULL)
            strbuf_printf(&uri, "%%%02X", (unsigned)(unsigned char)*path);
        else
            strbuf_add_bytes(&uri, path, 1);
    }
    strbuf_add(&uri, "?immutable=1");
    const char *copy = arena_strdup(arena, uri.text);
    strbuf_release(&uri);
    return copy;
}

/* Where nothing may be written, a file that stands alone is read as one that cannot change. */
static bool is_unwritable(struct arena *arena, const char *path)
{
    return !store_is_writable(path) || !store_is_writable(store_folder(arena, path));
}

const char *store_name(struct arena *arena, const char *path, enum store_mode mode, bool is_fixed)
{
    /* "./" keeps SQLite from reading a name like ":memory:" or "file:x" as something else. */
    const char *name = path[0] == '/' ? path : arena_printf(arena, "./%s", path);
    const bool is_read = mode == STORE_READ && (is_fixed || is_unwritable(arena, path));
    return is_read && !store_has_log(arena, path) ? immutable_uri(arena, name) : name;
}

static enum status open_connection(struct store *store, bool is_new, bool is_fixed, int busy_ms,
                                   struct diag *diag)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI;
    const char *name = store_name(&store->arena, store->path, store->mode, is_fixed);
    /* A reader that may write closes cleanly: a read-only one leaves -wal and -shm behind. */
    if (store->mode == STORE_READ && (is_fixed || is_unwritable(&store->arena, store->path)))
        flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    if (is_new)
        flags |= SQLITE_OPEN_CREATE;
    const int code = sqlite3_open_v2(name, &store->db,
                                     flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (code != SQLITE_OK)
        return store_fail(store, "open", code, diag);
    sqlite3_busy_timeout(store->db, busy_ms);
    return store_exec(store, "open",
                      store->mode == STORE_READ
                          ? "PRAGMA query_only = ON; PRAGMA cell_size_check = ON"
                          : "PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON",
                      diag);
}

/* Opens the file as it is and judges what it holds. */
static enum status open_and_check(struct store *store, bool is_new, bool is_fixed, int busy_ms,
                                  struct diag *diag)
{
    enum status status = open_connection(store, is_new, is_fixed, busy_ms, diag);
    if (status == STATUS_OK && is_new)
        status = create_if_empty(store, diag);
    if (status == STATUS_OK && !is_new)
        status = check_content(store, diag);
    if (status == STATUS_OK)
        status = check_version(store, diag);
    return status;
}

/* A reader shares memory with writers through a file beside the database, and found no room for it.
 */
static bool lacks_room(struct store *store)
{
    const int code = sqlite3_errcode(store->db) & 0xff;
    return code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
}

/* On a full disk nobody writes either: a file without a log can be read as one that cannot change.
 */
static enum status open_reader(struct store *store, int busy_ms, struct diag *diag)
{
    struct diag first_try;
    diag_init(&first_try, &store->arena);
    enum status status = open_and_check(store, false, false, busy_ms, &first_try);
    if (status == STATUS_OK)
        return status;
    if (lacks_room(store) && !store_has_log(&store->arena, store->path)) {
        sqlite3_close(store->db);
        store->db = NULL;
        return open_and_check(store, false, true, busy_ms, diag);
    }
    for (int32_t i = 0; i < first_try.count; i++)
        diag_world(diag, "%s", first_try.items[i].text);
    return status;
}

enum status store_open_within(const char *path, enum store_mode mode, int busy_ms,
                              struct store **store, struct diag *diag)
{
    struct arena arena = {0};
    struct store *opened = NULL;
    bool is_new = false;
    *store = NULL;
    enum status status = store_check_file(path, mode, &is_new, diag);
    if (status != STATUS_OK)
        goto out;
    opened = ARENA_NEW(&arena, struct store);
    opened->arena = arena;
    opened->path = arena_strdup(&opened->arena, path);
    opened->mode = mode;
    if (mode == STORE_READ)
        status = open_reader(opened, busy_ms, diag);
    else
        status = open_and_check(opened, is_new, false, busy_ms, diag);
    if (status == STATUS_OK && mode == STORE_WRITE)
        status = choose_journal(opened, diag);
out:
    if (status != STATUS_OK)
        store_close(opened);
    else
        *store = opened;
    return status;
}

enum status store_check(const char *path, enum store_mode mode, struct diag *diag)
{
    bool is_new = false;
    return store_check_file(path, mode, &is_new, diag);
}

enum status store_open(const char *path, enum store_mode mode, struct store **store,
                       struct diag *diag)
{
    return store_open_within(path, mode, STORE_BUSY_MS, store, diag);
}

void store_read_begin(struct store *store)
{
    sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL);
}

void store_read_end(struct store *store)
{
    store_rollback(store);
}

void store_set_patience(struct store *store, int milliseconds)
{
    sqlite3_busy_timeout(store->db, milliseconds);
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    sqlite3_finalize(store->insert_run);
    sqlite3_finalize(store->find_run);
    sqlite3_finalize(store->load_row);
    sqlite3_finalize(store->put_point);
    sqlite3_finalize(store->find_failure);
    for (int i = 0; i < STORE_TABLE_COUNT; i++)
        sqlite3_finalize(store->insert_rows[i]);
    /* The last connection to close copies the log into the file and removes it. */
    sqlite3_close(store->db);
    struct arena arena = store->arena;
    arena_release(&arena);
}
