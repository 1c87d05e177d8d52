/*
 * tests/property/sweep/test_sweep_kill.c: sweeps that are killed at random times, or that share a
 * database, end with the table of an undisturbed one.
 *
 *   $FSDPSIM_KILLS  how many kills (default 5)
 *   $FSDPSIM_SEED   of the times and victims (default 1; printed)
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/philox.h"
#include "sweep_site.h"
#include "sweep_tests.h"

enum { POINTS = 240 };

static const char *const one_job[] = {"-j", "1", NULL};
static const char *const two_jobs[] = {"-j", "2", NULL};

/* ---- the tests ---------------------------------------------------------------------------- */

enum victim { WORKER, PARENT, GROUP, VICTIM_COUNT };
static const char *const victim_names[] = {"a worker", "the parent", "the process group"};

/* Whether there was one to kill. */
static bool kill_victim(pid_t parent, enum victim victim)
{
    const pid_t pid = victim == GROUP    ? -parent
                      : victim == PARENT ? parent
                                         : child_of(parent, NULL, 0);
    return pid != 0 && pid != -1 && kill(pid, SIGKILL) == 0;
}

/* Killed after a share of what the whole takes; what was stored then stays as it is. Whether the
   kill came before the end. */
static bool kill_once(struct site *site, enum victim victim, double share)
{
    struct stat about;
    const char *stored = NULL;
    int64_t last = 0;
    check_context("%s after %.0f %%", victim_names[victim], 100 * share);
    const pid_t pid = sweep_start(site, site->db, site->csv, two_jobs);
    site_wait_s(share * site->undisturbed_s);
    const bool is_sent = kill_victim(pid, victim);
    const int code = process_finish(pid);
    CHECK_TRUE(code == 0 || (victim != WORKER && code == 128 + SIGKILL));
    if (stat(site->db, &about) == 0 && about.st_size > 0) {
        site_check_sound(site->db);
        last = sql_int(site->db, "SELECT ifnull(max(id), 0) FROM run");
        stored = site_runs_text(&site->arena, site->db, last);
    }
    CHECK_INT(sweep_run_in(site, site->db, site->csv, two_jobs), 0);
    site_check_complete(site, site->db);
    if (last > 0)
        CHECK_TEXT(site_runs_text(&site->arena, site->db, last), stored);
    site_remove_db(site->db);
    check_context(NULL);
    return is_sent && (victim == WORKER || code == 128 + SIGKILL);
}

static void test_kills(void)
{
    struct site site;
    struct philox random;
    const int64_t kills = site_setting("FSDPSIM_KILLS", 5);
    const int64_t seed = site_setting("FSDPSIM_SEED", 1);
    site_init(&site, POINTS);
    philox_init(&random, (uint64_t)seed, 0, 0, 0);
    printf("%" PRId64 " kills, seed %" PRId64 ", %.2f s undisturbed\n", kills, seed,
           site.undisturbed_s);
    int64_t hits = 0;
    for (int64_t i = 0; i < kills; i++)
        hits += kill_once(&site, (enum victim)(i % VICTIM_COUNT), 0.6 * philox_unit(&random));
    CHECK_TRUE(hits > 0);
    site_release(&site);
}

/* Two that begin together, with all points in common: each point is stored once. */
static void test_two_at_once(void)
{
    struct site site;
    site_init(&site, POINTS);
    const char *other = arena_printf(&site.arena, "%s/other.csv", site.folder);
    const pid_t first = sweep_start(&site, site.db, site.csv, two_jobs);
    const pid_t second = sweep_start(&site, site.db, other, one_job);
    CHECK_INT(process_finish(first), 0);
    CHECK_INT(process_finish(second), 0);
    site_check_complete(&site, site.db);
    CHECK_TRUE(is_same_text(other, site.expected));
    (void)unlink(other);
    site_release(&site);
}

/* However the work is cut: the table of the whole is the same. */
static void test_same_table(void)
{
    static const char *const shards[][5] = {{"--shard", "1/3", "-j", "1", NULL},
                                            {"--shard", "2/3", "-j", "2", NULL},
                                            {"--shard", "3/3", "-j", "3", NULL}};
    struct site site;
    site_init(&site, POINTS);
    CHECK_INT(sweep_run_in(&site, site.db, site.csv, two_jobs), 0);
    site_check_complete(&site, site.db);
    site_remove_db(site.db);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(sweep_run_in(&site, site.db, site.csv, shards[i]), 0);
        CHECK_INT(sql_int(site.db, "SELECT count(*) FROM run"), (i + 1) * POINTS / 3);
    }
    CHECK_INT(sweep_run_in(&site, site.db, site.csv, NULL), 0);
    site_check_complete(&site, site.db);
    site_release(&site);
}

/* Asked to stop: what was given out is stored, exit 75; the rerun does the rest. */
static void ask_to_stop(int signal_number)
{
    struct site site;
    site_init(&site, POINTS);
    const pid_t pid = sweep_start(&site, site.db, site.csv, two_jobs);
    site_wait_s(0.6 * site.undisturbed_s);
    (void)kill(-pid, signal_number);
    const int code = process_finish(pid);
    CHECK_TRUE(code == 75 || code == 0);
    const int64_t stored = code == 75 ? sql_int(site.db, "SELECT count(*) FROM run") : POINTS;
    CHECK_INT(sweep_run_in(&site, site.db, site.csv, two_jobs), 0);
    site_check_complete(&site, site.db);
    CHECK_TRUE(stored <= POINTS);
    site_release(&site);
}

static void test_asked_to_stop(void)
{
    ask_to_stop(SIGINT);
    ask_to_stop(SIGUSR1);
}

/* No file, the log of the database among them, may grow past a few pages: the first half stays. */
static void test_no_room(void)
{
    static const char *const half[] = {"--shard", "1/2", NULL};
    struct site site;
    struct rlimit before;
    site_init(&site, POINTS);
    CHECK_INT(sweep_run_in(&site, site.db, site.csv, half), 0);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {40960, before.rlim_max};
    /* The limit is met as an error of write, not as a signal: ignored ones are inherited. */
    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int code = sweep_run_in(&site, site.db, site.csv, two_jobs);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_INT(code, 1);
    site_check_sound(site.db);
    CHECK_TRUE(sql_int(site.db, "SELECT count(*) FROM run") >= POINTS / 2);
    CHECK_INT(sweep_run_in(&site, site.db, site.csv, two_jobs), 0);
    site_check_complete(&site, site.db);
    site_release(&site);
}

const struct check_case sweep_kill_cases[] = {
    {"killed at random times", test_kills},
    {"two sweeps at once", test_two_at_once},
    {"any workers, shards, resumes", test_same_table},
    {"asked to stop", test_asked_to_stop},
    {"no room in the file", test_no_room},
    {0},
};
