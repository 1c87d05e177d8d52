/* unit/store/test_store_failures.c: files that are missing, locked, read-only, foreign, damaged. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_fixture.h"

static void test_missing(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_expect_refusal(&fixture, STORE_READ, "No such file or directory");
    const char *folder = fixture.folder;
    fixture.path = arena_printf(&fixture.arena, "%s/nowhere/runs.db", folder);
    fixture_expect_refusal(&fixture, STORE_WRITE, "/nowhere'");
    fixture.path = folder;
    fixture_expect_refusal(&fixture, STORE_WRITE, "it is a folder");
    fixture_expect_refusal(&fixture, STORE_READ, "it is a folder");
    fixture.path = "/dev/null";
    fixture_expect_refusal(&fixture, STORE_WRITE, "not a regular file");
    fixture.path = "";
    fixture_expect_refusal(&fixture, STORE_WRITE, "name of the database is empty");
    fixture_release(&fixture);
}

/* Names that mean something else to SQLite are names of files to us. */
static void test_odd_names(void)
{
    static const char *const names[] = {":memory:", "file:a?mode=memory", "with space %41#.db",
                                        "lämna.db"};
    struct fixture fixture;
    char *before = getcwd(NULL, 0);
    fixture_init(&fixture);
    CHECK_INT(chdir(fixture.folder), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        check_context("%s", names[i]);
        fixture.path = names[i];
        fixture_fill(&fixture, 1);
        CHECK_INT(access(names[i], F_OK), 0);
        CHECK_INT(chmod(names[i], 0444), 0); /* read as one that cannot change */
        struct store *store = fixture_open(&fixture, STORE_READ);
        struct store_run_list list = {0};
        if (store != NULL)
            CHECK_INT(store_list(store, &fixture.arena, &list, &fixture.diag), STATUS_OK);
        CHECK_INT(list.count, 1);
        store_close(store);
    }
    check_context(NULL);
    CHECK_INT(chdir(before), 0);
    free(before);
    fixture_release(&fixture);
}

static void test_empty_file(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    file_write(fixture.path, "", 0);
    fixture_expect_refusal(&fixture, STORE_READ, "it is empty");
    fixture_fill(&fixture, 2);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), 2);
    fixture_release(&fixture);
}

/* A database without tables and without an owner is as good as an empty file. */
static void test_blank_database(void)
{
    static const struct {
        const char *sql;
        bool is_blank;
    } rows[] = {
        {"CREATE TABLE t (x); DROP TABLE t", true},
        {"CREATE TABLE t (x); DROP TABLE t; VACUUM", true},
        {"PRAGMA page_size = 1024; PRAGMA auto_vacuum = FULL; CREATE TABLE t (x); DROP TABLE t",
         true},
        {"PRAGMA journal_mode = WAL; CREATE TABLE t (x); DROP TABLE t", true},
        {"CREATE TABLE t (x)", false},
        {"CREATE VIEW v AS SELECT 1", false},
        {"PRAGMA user_version = 7", false},
        {"PRAGMA application_id = 7", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        check_context("%s", rows[i].sql);
        fixture_init(&fixture);
        CHECK_INT(sql_run(fixture.path, rows[i].sql), 0);
        if (rows[i].is_blank) {
            fixture_expect_refusal(&fixture, STORE_READ, "it is empty");
            fixture_fill(&fixture, 2);
            CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), 2);
        } else {
            fixture_expect_refusal(&fixture, STORE_WRITE, "it is the database of another program");
            fixture_expect_refusal(&fixture, STORE_READ, "it is the database of another program");
        }
        fixture_release(&fixture);
    }
    check_context(NULL);
}

static void test_read_only(void)
{
    struct fixture fixture;
    struct store_run_list list = {0};
    fixture_init(&fixture);
    CHECK_INT(chmod(fixture.folder, 0555), 0);
    fixture_expect_refusal(&fixture, STORE_WRITE, "is read-only (mode 0555)");
    CHECK_INT(chmod(fixture.folder, 0755), 0);
    fixture_fill(&fixture, 1);

    CHECK_INT(chmod(fixture.path, 0444), 0);
    fixture_expect_refusal(&fixture, STORE_WRITE, "it is read-only (mode 0444)");
    CHECK_INT(chmod(fixture.path, 0000), 0);
    struct store *store = NULL;
    CHECK_INT(store_open(fixture.path, STORE_READ, &store, &fixture.diag), STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "not readable (mode 0000)");
    CHECK_INT(chmod(fixture.path, 0644), 0);
    CHECK_INT(chmod(fixture.folder, 0555), 0);
    fixture_expect_refusal(&fixture, STORE_WRITE, "is read-only (mode 0555)");

    /* Reading works, and leaves nothing in the folder. */
    store = fixture_open(&fixture, STORE_READ);
    CHECK_INT(store_list(store, &fixture.arena, &list, &fixture.diag), STATUS_OK);
    CHECK_INT(list.count, 1);
    CHECK_INT(fixture_add(&fixture, store, 1), STATUS_WORLD);
    store_close(store);
    CHECK_TRUE(access(arena_printf(&fixture.arena, "%s-shm", fixture.path), F_OK) != 0);
    CHECK_INT(chmod(fixture.folder, 0755), 0);
    fixture_release(&fixture);
}

/* A reader may not write, even where the file could be written. */
static void test_reader_cannot_write(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 1);
    struct store *store = fixture_open(&fixture, STORE_READ);
    CHECK_INT(fixture_add(&fixture, store, 1), STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "read");
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), 1);
    fixture_release(&fixture);
}

static void test_foreign(void)
{
    struct fixture fixture;
    static const char text[] = "step_time_s,2.385\n";
    char long_text[4096];
    fixture_init(&fixture);
    file_write(fixture.path, text, sizeof(text) - 1);
    fixture_expect_refusal(&fixture, STORE_WRITE, "it is not a database");
    memset(long_text, 'x', sizeof(long_text));
    file_write(fixture.path, long_text, sizeof(long_text));
    fixture_expect_refusal(&fixture, STORE_READ, "it is not a database");
    CHECK_INT(unlink(fixture.path), 0);

    CHECK_INT(sql_run(fixture.path, "CREATE TABLE run (x); INSERT INTO run VALUES (2.385)"), 0);
    fixture_expect_refusal(&fixture, STORE_WRITE, "it is the database of another program");
    CHECK_INT(sql_run(fixture.path, "PRAGMA application_id = 252006675; PRAGMA user_version = 1"),
              0);
    fixture_expect_refusal(&fixture, STORE_WRITE, "it is the database of another program");
    fixture_expect_refusal(&fixture, STORE_READ, "it is the database of another program");
    fixture_release(&fixture);
}

static void test_other_versions(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 1);
    CHECK_INT(sql_run(fixture.path, "PRAGMA user_version = 5"), 0);
    fixture_expect_refusal(&fixture, STORE_WRITE, "written by a newer fsdpsim (schema 5");
    fixture_expect_refusal(&fixture, STORE_READ, "written by a newer fsdpsim (schema 5");
    CHECK_INT(sql_run(fixture.path, "PRAGMA user_version = 0"), 0);
    fixture_expect_refusal(&fixture, STORE_WRITE, "its schema 0 is older");
    fixture_release(&fixture);
}

static void test_damaged(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 40);
    const struct file_bytes whole = file_read(fixture.path);
    char *damaged = malloc(whole.count);
    CHECK_TRUE(damaged != NULL && whole.count > 80000);
    if (damaged != NULL && whole.bytes != NULL) {
        /* Every page but the first, one at a time: its head overwritten. */
        for (size_t page = 1; page < whole.count / 4096; page++) {
            check_context("page %zu", page + 1);
            memcpy(damaged, whole.bytes, whole.count);
            memset(damaged + page * 4096, 0xa5, 64);
            file_write(fixture.path, damaged, whole.count);
            fixture_expect_refusal(&fixture, page % 2 ? STORE_WRITE : STORE_READ, "it is corrupt");
        }
        check_context("cut");
        file_write(fixture.path, whole.bytes, whole.count / 2 + 100);
        fixture_expect_refusal(&fixture, STORE_WRITE, "it is corrupt");
        check_context("header only");
        file_write(fixture.path, whole.bytes, 100);
        fixture_expect_refusal(&fixture, STORE_WRITE, "cannot open");
    }
    check_context(NULL);
    free(damaged);
    free(whole.bytes);
    fixture_release(&fixture);
}

/* Damage in a file too large to be checked when opened: met while writing, and nothing is stored.
 */
static void test_damaged_large(void)
{
    enum { RUNS = 300, PAGE = 4096, TABLES_END = 60, CHECKED = 512 << 10 };
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, RUNS);
    const struct file_bytes whole = file_read(fixture.path);
    CHECK_TRUE(whole.count > CHECKED);
    if (whole.bytes != NULL && whole.count > CHECKED) {
        /* The schema, in the first pages, stays. */
        for (size_t page = TABLES_END; page < whole.count / PAGE; page++)
            memset(whole.bytes + page * PAGE, 0xa5, 64);
        file_write(fixture.path, whole.bytes, whole.count);
        struct store *store = fixture_open(&fixture, STORE_WRITE);
        CHECK_INT(fixture_add(&fixture, store, 1), STATUS_WORLD);
        CHECK_CONTAINS(fixture_message(&fixture), "it is corrupt and was left as it is");
        store_close(store);
        fixture_expect_refusal(&fixture, STORE_READ, "it is corrupt");
        const struct file_bytes after = file_read(fixture.path);
        CHECK_INT(after.count, whole.count);
        CHECK_TRUE(after.count == whole.count &&
                   memcmp(after.bytes, whole.bytes, whole.count) == 0);
        free(after.bytes);
    }
    free(whole.bytes);
    fixture_release(&fixture);
}

static void test_locked(void)
{
    enum { PATIENCE_MS = 60 };
    struct fixture fixture;
    sqlite3 *other = NULL;
    struct store *store = NULL;
    fixture_init(&fixture);
    fixture_fill(&fixture, 1);
    CHECK_INT(sqlite3_open(fixture.path, &other), SQLITE_OK);

    /* Another writer: we can open and read, not write. */
    CHECK_INT(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(store_open_within(fixture.path, STORE_WRITE, PATIENCE_MS, &store, &fixture.diag),
              STATUS_OK);
    CHECK_INT(fixture_add(&fixture, store, 1), STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "is locked by another process; try again when");
    CHECK_INT(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(fixture_add(&fixture, store, 1), STATUS_OK);
    store_close(store);

    /* An exclusive lock, as a rollback journal knows it: opening fails. */
    CHECK_INT(
        sqlite3_exec(other, "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE", NULL, NULL, NULL),
        SQLITE_OK);
    CHECK_INT(store_open_within(fixture.path, STORE_WRITE, PATIENCE_MS, &store, &fixture.diag),
              STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "is locked by another process");
    CHECK_INT(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    fixture_fill(&fixture, 1);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), 3);
    fixture_release(&fixture);
}

static int child_status(pid_t child)
{
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

/* Killed after a batch and inside the next: the first is there, and the next open says nothing. */
static void test_killed(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 1);
    fflush(stdout); /* or the child says it again */
    const pid_t child = fork();
    if (child == 0) {
        struct store *store = NULL;
        if (store_open(fixture.path, STORE_WRITE, &store, &fixture.diag) == STATUS_OK &&
            fixture_add(&fixture, store, 2) == STATUS_OK &&
            sqlite3_exec(store->db,
                         "BEGIN IMMEDIATE; DELETE FROM run; PRAGMA cache_size = 1;"
                         "UPDATE metric SET value = 0",
                         NULL, NULL, NULL) == SQLITE_OK)
            raise(SIGKILL);
        _exit(1);
    }
    const int status = child_status(child);
    CHECK_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const int32_t message_count = fixture.diag.count;
    fixture_fill(&fixture, 1);
    CHECK_INT(fixture.diag.count, message_count);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), 4);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM metric WHERE name = 'step_time_s' AND"
                                    " value = 2.385"),
              4);
    fixture_release(&fixture);
}

/* Several processes meet a file that is not there yet. */
static void test_created_at_once(void)
{
    enum { PROCESSES = 4, RUNS = 3 };
    struct fixture fixture;
    pid_t children[PROCESSES];
    fixture_init(&fixture);
    fflush(stdout);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] != 0)
            continue;
        struct store *store = NULL;
        enum status status = store_open(fixture.path, STORE_WRITE, &store, &fixture.diag);
        for (int k = 0; k < RUNS && status == STATUS_OK; k++)
            status = fixture_add(&fixture, store, 1);
        store_close(store);
        if (status != STATUS_OK)
            diag_write(&fixture.diag, stdout, false);
        fflush(stdout);
        _exit((int)status);
    }
    for (int i = 0; i < PROCESSES; i++)
        CHECK_INT(child_status(children[i]), 0);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), PROCESSES * RUNS);
    fixture_release(&fixture);
}

const struct check_case store_failure_cases[] = {
    {"missing file or folder", test_missing},
    {"odd names", test_odd_names},
    {"empty file is a new one", test_empty_file},
    {"blank database", test_blank_database},
    {"read-only bits", test_read_only},
    {"reader cannot write", test_reader_cannot_write},
    {"not ours", test_foreign},
    {"newer and older schema", test_other_versions},
    {"damaged", test_damaged},
    {"damaged and large", test_damaged_large},
    {"locked", test_locked},
    {"killed", test_killed},
    {"created by several at once", test_created_at_once},
    {0}};
