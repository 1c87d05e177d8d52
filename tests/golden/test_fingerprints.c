/*
 * tests/golden/test_fingerprints.c: fingerprint, step time and memory of known runs.
 *
 * A row that moved is printed with its old and new figures. Whether the new ones are truer is a
 * decision, and belongs into the commit and the change log; FSDPSIM_ACCEPT=1 then writes them.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "csv.h"
#include "played.h"

/* Across C libraries the last bits of load-time arithmetic may differ, never more. */
static const double tolerance = 1e-9;

static bool is_accepting(void)
{
    const char *accept = getenv("FSDPSIM_ACCEPT");
    return accept != NULL && strcmp(accept, "1") == 0;
}

static struct golden_row play_row(struct arena *arena, const struct golden_row *row)
{
    struct golden_row now = {
        .config = row->config, .overrides = row->overrides, .fingerprint = "refused"};
    struct played played;
    if (played_try(&played, row->config, row->overrides) == STATUS_OK) {
        now.fingerprint = arena_printf(arena, "%016" PRIx64, played.outcome.fingerprint);
        now.step_time_s = played.outcome.step_time_s;
        now.peak_device_bytes = played.outcome.peak_device_bytes;
    } else if (strcmp(row->fingerprint, "refused") != 0) {
        printf("%s", played_messages(&played));
    }
    played_release(&played);
    return now;
}

static void compare(const struct golden_row *old, const struct golden_row *now)
{
    check_context("%s %s", old->config, old->overrides);
    bool held = CHECK_TEXT(now->fingerprint, old->fingerprint);
    held = CHECK_NEAR(now->step_time_s, old->step_time_s, tolerance) && held;
    held = CHECK_INT(now->peak_device_bytes, old->peak_device_bytes) && held;
    if (!held)
        printf("moved: %s %s: step %.9g -> %.9g s (%+.4f %%), peak %lld -> %lld B\n", old->config,
               old->overrides, old->step_time_s, now->step_time_s,
               old->step_time_s > 0 ? (now->step_time_s / old->step_time_s - 1) * 100 : 0.0,
               old->peak_device_bytes, now->peak_device_bytes);
    check_context(NULL);
}

static void test_rows(void)
{
    struct arena arena = {0};
    struct golden golden;
    const char *head;
    const char *path = FSDPSIM_SOURCE_DIR "/tests/golden/fingerprints.csv";
    if (CHECK_TRUE(golden_read(&arena, path, &golden, &head)) && CHECK_TRUE(golden.count > 0)) {
        for (int32_t i = 0; i < golden.count; i++) {
            const struct golden_row now = play_row(&arena, &golden.items[i]);
            if (!is_accepting())
                compare(&golden.items[i], &now);
            golden.items[i] = now;
        }
        if (is_accepting()) {
            CHECK_TRUE(golden_write(path, &golden, head));
            printf("wrote %s\n", path);
        }
    }
    arena_release(&arena);
}

static bool has_row(const struct golden *golden, const char *config)
{
    for (int32_t i = 0; i < golden->count; i++)
        if (strcmp(golden->items[i].config, config) == 0)
            return true;
    return false;
}

/* `folder` below configs/, "" for itself. */
static void check_folder(struct arena *arena, const struct golden *golden, const char *folder)
{
    DIR *files = opendir(arena_printf(arena, FSDPSIM_SOURCE_DIR "/configs/%s", folder));
    if (!CHECK_TRUE(files != NULL))
        return;
    int32_t found = 0;
    const struct dirent *file;
    while ((file = readdir(files)) != NULL) {
        const char *end = strstr(file->d_name, ".yaml");
        if (end == NULL)
            continue;
        const char *config =
            arena_printf(arena, "%s%.*s", folder, (int)(end - file->d_name), file->d_name);
        check_context("a row for %s in fingerprints.csv", config);
        CHECK_TRUE(has_row(golden, config));
        found++;
    }
    closedir(files);
    check_context("%s", folder);
    CHECK_TRUE(found > 0);
    check_context(NULL);
}

static void test_all_shipped(void)
{
    struct arena arena = {0};
    struct golden golden;
    const char *head;
    if (CHECK_TRUE(golden_read(&arena, FSDPSIM_SOURCE_DIR "/tests/golden/fingerprints.csv", &golden,
                               &head))) {
        check_folder(&arena, &golden, "");
        check_folder(&arena, &golden, "worked-examples/");
    }
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        {"every row", test_rows}, {"a row for every shipped config", test_all_shipped}, {0}};
    const struct check_suite suites[] = {{"fingerprints", cases}, {0}};
    return check_main(argc, argv, suites);
}
