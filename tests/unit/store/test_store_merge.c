/* unit/store/test_store_merge.c: databases of every older schema (schema_*.sql), read, brought up
   and merged. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/store_sweep.h"
#include "store_fixture.h"

/* What its runs lack, as the schema's history says. */
static const struct old_file {
    const char *name, *lacking; /* a column of run that came later; NULL: none */
    double step_time_s;         /* of its second run, as sqlite3 shows it */
    int64_t peak_active_bytes;
} old_files[] = {
    {"schema_1_first", "host_memory_bytes", 3.2564226e-05, 252928},
    {"schema_1", "peak_time_s", 3.2564226e-05, 252928},
    {"schema_2", NULL, 3.2564226e-05, 242688},
    {"schema_3", NULL, 3.2564226e-05, 242688},
};
enum { OLD_FILE_COUNT = sizeof(old_files) / sizeof(old_files[0]) };

static const char *make_old(struct fixture *fixture, const struct old_file *old)
{
    const char *path = arena_printf(&fixture->arena, "%s/%s.db", fixture->folder, old->name);
    struct file_bytes sql = file_read(
        arena_printf(&fixture->arena, FSDPSIM_SOURCE_DIR "/tests/unit/store/%s.sql", old->name));
    CHECK_TRUE(sql.count > 0);
    sql.bytes[sql.count] = '\0';
    CHECK_INT(sql_run(path, sql.bytes), 0);
    free(sql.bytes);
    return path;
}

static int64_t merge(struct fixture *fixture, const char *path)
{
    int64_t added = -1;
    struct store *store = fixture_open(fixture, STORE_WRITE);
    if (!CHECK_INT(store_merge(store, path, &added, &fixture->diag), STATUS_OK))
        diag_write(&fixture->diag, stdout, false);
    store_close(store);
    return added;
}

static void check_whole(const char *path)
{
    CHECK_INT(sql_int(path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    CHECK_INT(sql_int(path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    CHECK_INT(sql_int(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    CHECK_INT(sql_int(path,
                      "SELECT count(*) FROM sqlite_schema AS t, pragma_table_info(t.name) AS c"
                      " LEFT JOIN meta ON table_name = t.name AND column_name = c.name"
                      " WHERE t.type IN ('table', 'view') AND meta.unit IS NULL"),
              0);
}

static void check_old_runs(struct fixture *fixture, const struct old_file *old)
{
    struct outcome outcome;
    struct store *store = fixture_open(fixture, STORE_READ);
    CHECK_INT(store_load(store, &fixture->arena, 2, &outcome, NULL, &fixture->diag), STATUS_OK);
    store_close(store);
    CHECK_NEAR(outcome.step_time_s, old->step_time_s, 0);
    CHECK_INT(outcome.peak_active_bytes, old->peak_active_bytes);
    CHECK_INT(outcome.micro_batch, 2);
    CHECK_INT(outcome.unit_count, 2);
    CHECK_INT(outcome.origin_count, 4);
    if (old->lacking != NULL)
        CHECK_INT(
            sql_int(fixture->path,
                    arena_printf(&fixture->arena, "SELECT count(*) FROM v_runs WHERE %s IS NULL",
                                 old->lacking)),
            2);
}

/* Into a new file; the old one stays as it is. */
static void test_merge_old(void)
{
    for (int i = 0; i < OLD_FILE_COUNT; i++) {
        struct fixture fixture;
        fixture_init(&fixture);
        check_context("%s", old_files[i].name);
        const char *path = make_old(&fixture, &old_files[i]);
        const struct file_bytes before = file_read(path);
        CHECK_INT(merge(&fixture, path), 2);
        CHECK_INT(merge(&fixture, path), 0);
        const struct file_bytes after = file_read(path);
        CHECK_TRUE(after.count == before.count &&
                   memcmp(after.bytes, before.bytes, before.count) == 0);
        check_whole(fixture.path);
        check_old_runs(&fixture, &old_files[i]);
        /* What new runs must have stays so. */
        CHECK_TRUE(sql_run(fixture.path, "UPDATE run SET step_time_s = NULL") != 0);
        struct store *store = fixture_open(&fixture, STORE_WRITE);
        CHECK_INT(fixture_add(&fixture, store, 1), STATUS_OK);
        store_close(store);
        CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), 3);
        free(before.bytes);
        free(after.bytes);
        fixture_release(&fixture);
    }
    check_context(NULL);
}

/* Brought up by writing to it, then merged: what is NULL there is NULL here. */
static void test_merge_upgraded(void)
{
    for (int i = 0; i < OLD_FILE_COUNT; i++) {
        struct fixture fixture;
        fixture_init(&fixture);
        check_context("%s", old_files[i].name);
        const char *new_path = fixture.path;
        fixture.path = make_old(&fixture, &old_files[i]);
        store_close(fixture_open(&fixture, STORE_WRITE));
        check_whole(fixture.path);
        check_old_runs(&fixture, &old_files[i]);
        const char *old_path = fixture.path;
        fixture.path = new_path;
        CHECK_INT(merge(&fixture, old_path), 2);
        check_whole(fixture.path);
        check_old_runs(&fixture, &old_files[i]);
        fixture_release(&fixture);
    }
    check_context(NULL);
}

/* All into one; the sweep of the last with its points. */
static void test_merge_all(void)
{
    struct fixture fixture;
    int64_t runs = 0;
    fixture_init(&fixture);
    for (int i = 0; i < OLD_FILE_COUNT; i++)
        runs += merge(&fixture, make_old(&fixture, &old_files[i]));
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), runs);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM sweep_point JOIN run ON run.id = run_id"
                                    " WHERE state = 'done'"),
              2);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM sweep_point WHERE state = 'invalid'"), 1);
    check_whole(fixture.path);
    fixture_release(&fixture);
}

/* From a folder in which nothing may be written: no lock, no file beside it. */
static void test_merge_read_only(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 2);
    const char *folder = arena_printf(&fixture.arena, "%s/odd ?#%%name", fixture.folder);
    const char *path = arena_printf(&fixture.arena, "%s/runs.db", folder);
    CHECK_INT(mkdir(folder, 0755), 0);
    CHECK_INT(rename(fixture.path, path), 0);
    CHECK_INT(chmod(folder, 0555), 0);
    CHECK_INT(merge(&fixture, path), 2);
    CHECK_INT(chmod(folder, 0755), 0);
    fixture_release(&fixture);
}

const struct check_case store_merge_cases[] = {
    {"files of older schemas", test_merge_old},
    {"files that were brought up", test_merge_upgraded},
    {"all into one", test_merge_all},
    {"from a folder that is read-only", test_merge_read_only},
    {0},
};
