/* unit/store/test_store_full.c: a full disk loses no earlier run. */
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "store_fixture.h"

static void check_intact(struct fixture *fixture, int64_t run_count)
{
    CHECK_INT(sql_int(fixture->path, "SELECT count(*) FROM run"), run_count);
    CHECK_INT(sql_int(fixture->path, "SELECT quick_check = 'ok' FROM pragma_quick_check"), 1);
    CHECK_INT(sql_int(fixture->path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

static void test_page_limit(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 2);
    struct store *store = fixture_open(&fixture, STORE_WRITE);
    /* SQLite answers with the present size when that is larger: no page can be added. */
    CHECK_INT(sqlite3_exec(store->db, "PRAGMA max_page_count = 1", NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(fixture_add(&fixture, store, 50), STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "cannot write to '");
    CHECK_CONTAINS(fixture_message(&fixture), "the disk is full; earlier runs are intact");
    check_intact(&fixture, 2);
    CHECK_INT(sqlite3_exec(store->db, "PRAGMA max_page_count = 100000", NULL, NULL, NULL),
              SQLITE_OK);
    CHECK_INT(fixture_add(&fixture, store, 50), STATUS_OK);
    store_close(store);
    check_intact(&fixture, 52);
    fixture_release(&fixture);
}

/* As many bytes as there is room for. */
static void fill_disk(const char *path)
{
    static const char block[512];
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return;
    setvbuf(file, NULL, _IONBF, 0);
    while (fwrite(block, 1, sizeof(block), file) == sizeof(block))
        continue;
    fclose(file);
}

static void test_small_disk(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    if (mount("tmpfs", fixture.folder, "tmpfs", 0, "size=1m,mode=0755") != 0) {
        printf("skipped: no right to mount a tmpfs\n");
        CHECK_TRUE(true);
        fixture_release(&fixture);
        return;
    }
    const char *filler = arena_printf(&fixture.arena, "%s/filler", fixture.folder);

    /* Full from the start: no file, or an empty one, and a clear message. */
    struct store *store = NULL;
    fill_disk(filler);
    CHECK_INT(store_open(fixture.path, STORE_WRITE, &store, &fixture.diag), STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "the disk is full");
    CHECK_INT(unlink(filler), 0);

    /* Full, and nobody writes: reading needs no room and leaves nothing behind. */
    fixture_fill(&fixture, 2);
    fill_disk(filler);
    struct store_run_list list = {0};
    store = fixture_open(&fixture, STORE_READ);
    if (store != NULL)
        CHECK_INT(store_list(store, &fixture.arena, &list, &fixture.diag), STATUS_OK);
    CHECK_INT(list.count, 2);
    store_close(store);
    CHECK_INT(unlink(filler), 0);

    /* Full between two batches of an open store. */
    fixture_fill(&fixture, 2);
    store = fixture_open(&fixture, STORE_WRITE);
    CHECK_INT(fixture_add(&fixture, store, 1), STATUS_OK);
    fill_disk(filler);
    CHECK_INT(fixture_add(&fixture, store, 60), STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "the disk is full; earlier runs are intact");
    store_close(store);

    /* Still full: opening or writing says so; the runs are there. */
    if (store_open(fixture.path, STORE_WRITE, &store, &fixture.diag) == STATUS_OK) {
        CHECK_INT(fixture_add(&fixture, store, 60), STATUS_WORLD);
        store_close(store);
    }
    CHECK_CONTAINS(fixture_message(&fixture), "the disk is full");
    CHECK_INT(unlink(filler), 0);
    check_intact(&fixture, 5);
    fixture_fill(&fixture, 1);
    check_intact(&fixture, 6);
    CHECK_INT(umount(fixture.folder), 0);
    fixture_release(&fixture);
}

const struct check_case store_full_cases[] = {
    {"page limit", test_page_limit}, {"small tmpfs", test_small_disk}, {0}};
