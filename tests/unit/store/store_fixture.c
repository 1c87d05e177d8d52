/* unit/store/store_fixture.c: see store_fixture.h. */
#include "store_fixture.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void fixture_init(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    diag_init(&fixture->diag, &fixture->arena);
    outcome_fixture(&fixture->arena, &fixture->outcome);
    const char *root = getenv("TMPDIR");
    char *folder =
        arena_printf(&fixture->arena, "%s/unit_store.XXXXXX", root != NULL ? root : "/tmp");
    CHECK_TRUE(mkdtemp(folder) != NULL);
    fixture->folder = folder;
    fixture->path = arena_printf(&fixture->arena, "%s/runs.db", folder);
}

static void remove_tree(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return;
    (void)chmod(path, 0700);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char name[1024];
        struct stat facts;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (lstat(name, &facts) == 0 && S_ISDIR(facts.st_mode))
            remove_tree(name);
        else
            unlink(name);
    }
    closedir(folder);
    rmdir(path);
}

void fixture_release(struct fixture *fixture)
{
    remove_tree(fixture->folder);
    struct arena arena = fixture->arena;
    arena_release(&arena);
}

struct store *fixture_open(struct fixture *fixture, enum store_mode mode)
{
    struct store *store = NULL;
    const enum status status = store_open(fixture->path, mode, &store, &fixture->diag);
    if (!CHECK_INT(status, STATUS_OK))
        diag_write(&fixture->diag, stdout, false);
    return store;
}

enum status fixture_add(struct fixture *fixture, struct store *store, int32_t count)
{
    const struct outcome **list = ARENA_ARRAY(&fixture->arena, const struct outcome *, count);
    for (int32_t i = 0; i < count; i++)
        list[i] = &fixture->outcome;
    return store_add_runs(store, list, count, NULL, &fixture->diag);
}

void fixture_fill(struct fixture *fixture, int32_t count)
{
    struct store *store = fixture_open(fixture, STORE_WRITE);
    if (store != NULL)
        CHECK_INT(fixture_add(fixture, store, count), STATUS_OK);
    store_close(store);
}

const char *fixture_message(const struct fixture *fixture)
{
    const struct diag *diag = &fixture->diag;
    return diag->count > 0 ? diag->items[diag->count - 1].text : "";
}

void fixture_expect_refusal(struct fixture *fixture, enum store_mode mode, const char *part)
{
    struct store *store = NULL;
    const struct file_bytes before = file_read(fixture->path);
    CHECK_INT(store_open(fixture->path, mode, &store, &fixture->diag), STATUS_WORLD);
    CHECK_TRUE(store == NULL);
    CHECK_CONTAINS(fixture_message(fixture), part);
    CHECK_CONTAINS(fixture_message(fixture), fixture->path);
    store_close(store);

    const struct file_bytes after = file_read(fixture->path);
    CHECK_INT(after.count, before.count);
    if (after.count == before.count && before.count > 0)
        CHECK_TRUE(memcmp(after.bytes, before.bytes, before.count) == 0);
    CHECK_TRUE((after.bytes == NULL) == (before.bytes == NULL));
    free(before.bytes);
    free(after.bytes);
}

struct file_bytes file_read(const char *path)
{
    struct file_bytes file = {0};
    struct stat facts;
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return file;
    if (fstat(fileno(stream), &facts) == 0 && S_ISREG(facts.st_mode))
        file.count = (size_t)facts.st_size;
    file.bytes = malloc(file.count + 1);
    if (file.bytes == NULL || fread(file.bytes, 1, file.count, stream) != file.count)
        file.count = 0;
    fclose(stream);
    return file;
}

void file_write(const char *path, const void *bytes, size_t count)
{
    FILE *stream = fopen(path, "wb");
    CHECK_TRUE(stream != NULL && fwrite(bytes, 1, count, stream) == count);
    if (stream != NULL)
        fclose(stream);
}

int64_t sql_int(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    int64_t value = -1;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        value = sqlite3_column_int64(row, 0);
    else
        printf("%s: %s\n", sql, sqlite3_errmsg(db));
    sqlite3_finalize(row);
    sqlite3_close(db);
    return value;
}

int sql_run(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open(path, &db);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_close(db);
    return code;
}
