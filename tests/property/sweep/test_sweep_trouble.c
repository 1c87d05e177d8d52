/* property/sweep/test_sweep_trouble.c: points that crash their worker, and no room on the disk. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sweep_site.h"
#include "sweep_tests.h"

enum { CRASH_POINTS = 4, FULL_POINTS = 600 };

/* 1,500 microbatches need some 75 MB, a few of them 6 MB. */
static const char crash_swept[] = "train.grad_accum=1,2,1500,4";
static const char *const little_memory[] = {"sh", "-c", "ulimit -v 60000; exec \"$@\"", "sh", NULL};

static int run_logged(const struct site *site, const char *const *launcher, const char *const *more)
{
    return process_finish(
        site_start(site, launcher, FSDPSIM_PROGRAM, site->db, site->csv, site->log, more));
}

/* The point that crashes is tried twice, then put aside; the others complete, and it is left alone
   until it is asked for. */
static void test_crashing_point(void)
{
    static const char *const retry[] = {"--retry-failed", NULL};
    struct site site;
    if (SITE_HAS_SANITIZER) {
        printf("skipped: a sanitizer needs more memory than the limit of this test\n");
        CHECK_TRUE(true);
        return;
    }
    site_init_swept(&site, crash_swept, CRASH_POINTS);
    CHECK_INT(run_logged(&site, little_memory, NULL), 4);
    site_check_said(&site, "4 points: 3 played, 0 stored before, 1 failed");
    site_check_sound(site.db);
    CHECK_INT(sql_int(site.db, "SELECT count(*) FROM run"), CRASH_POINTS - 1);
    CHECK_INT(sql_int(site.db,
                      "SELECT count(*) FROM sweep_point WHERE state = 'failed' AND position"
                      " = 2 AND run_id IS NULL AND reason LIKE 'the worker ended with exit"
                      " code 1: out of memory (% bytes wanted)'"),
              1);
    CHECK_INT(sql_int(site.db, "SELECT count(*) FROM sweep_point WHERE state = 'done'"),
              CRASH_POINTS - 1);

    CHECK_INT(run_logged(&site, NULL, NULL), 4);
    site_check_said(&site, "4 points: 0 played, 3 stored before, 1 failed");
    CHECK_INT(run_logged(&site, NULL, retry), 0);
    site_check_said(&site, "4 points: 1 played, 3 stored before");
    site_check_complete(&site, site.db);
    CHECK_INT(run_logged(&site, NULL, NULL), 0);
    site_release(&site);
}

/* With the log beside it, which a full disk left. */
static void copy_db(struct site *site, const char *from)
{
    const char *command = arena_printf(&site->arena, "cp %s* %s", from, site->folder);
    const char *const words[] = {"sh", "-c", command, NULL};
    CHECK_INT(process_finish(words_start(words)), 0);
}

/* On a small disk of its own: a clear message, exit 1, what was stored stays, and with room the
   rerun completes. */
static void test_small_disk(void)
{
    static const char *const first[] = {"--shard", "1/6", NULL};
    struct site site;
    site_init(&site, FULL_POINTS);
    const char *disk = arena_printf(&site.arena, "%s/disk", site.folder);
    const char *small = arena_printf(&site.arena, "%s/runs.db", disk);
    const char *roomy = site.db;
    CHECK_INT(mkdir(disk, 0755), 0);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=384k,mode=0755") != 0) {
        printf("skipped: no right to mount a tmpfs (%s)\n", strerror(errno));
    } else {
        site.db = small;
        CHECK_INT(run_logged(&site, NULL, first), 0);
        const int64_t last = sql_int(small, "SELECT max(id) FROM run");
        const char *stored = site_runs_text(&site.arena, small, last);
        CHECK_INT(last, FULL_POINTS / 6);
        CHECK_INT(run_logged(&site, NULL, NULL), 1);
        site_check_said(&site, "the disk is full; earlier runs are intact");
        copy_db(&site, small);
        CHECK_INT(umount(disk), 0);
        site.db = roomy;
        site_check_sound(roomy);
        CHECK_TRUE(sql_int(roomy, "SELECT count(*) FROM run") >= last);
        CHECK_TEXT(site_runs_text(&site.arena, roomy, last), stored);
        CHECK_INT(run_logged(&site, NULL, NULL), 0);
        site_check_complete(&site, roomy);
    }
    CHECK_INT(rmdir(disk), 0);
    site_release(&site);
}

const struct check_case sweep_trouble_cases[] = {
    {"a point that crashes its worker", test_crashing_point},
    {"a small disk", test_small_disk},
    {0},
};
