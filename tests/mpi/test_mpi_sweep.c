/*
 * tests/mpi/test_mpi_sweep.c: fsdpsim-mpi under mpirun with three ranks: the table of fsdpsim, byte
 * for byte, also after ranks, their processes or the whole job were killed.
 *
 *   $FSDPSIM_KILLS  how many kills of a rank (default 3)
 *   $FSDPSIM_SEED   of the times and victims (default 1; printed)
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/philox.h"
#include "base/strbuf.h"
#include "check.h"
#include "sweep_site.h"

enum { POINTS = 1500, FEW = 60 };
static const char ranks_name[] = "fsdpsim-mpi";
static const char *const mpirun[] = {FSDPSIM_MPIRUN, "--oversubscribe", "-np", "3", NULL};
static const char *const recovering[] = {
    FSDPSIM_MPIRUN, "--oversubscribe", "--enable-recovery", "-np", "3", NULL};

static pid_t job_start(const struct site *job, const char *const *launcher, const char *const *more)
{
    return site_start(job, launcher, FSDPSIM_MPI_PROGRAM, job->db, job->csv, job->log, more);
}

static int job_run(const struct site *job, const char *const *launcher, const char *const *more)
{
    return process_finish(job_start(job, launcher, more));
}

/* Until so many runs are stored, or it has ended; false: the latter, or it takes too long. */
static bool wait_for_runs(const struct site *job, int64_t runs)
{
    const double end_s = site_now_s() + 60;
    struct stat about;
    while (site_now_s() < end_s) {
        if (stat(job->db, &about) == 0 && about.st_size > 0 &&
            sql_int(job->db, "SELECT count(*) FROM run") >= runs)
            return true;
        site_wait_s(0.01);
    }
    return false;
}

/* ---- the tests ---------------------------------------------------------------------------- */

/* With units, collectives and links; then again: nothing is played. */
static void test_same_table(void)
{
    static const char *const detail[] = {"--detail", NULL};
    struct site job;
    site_init(&job, FEW);
    CHECK_INT(job_run(&job, mpirun, detail), 0);
    site_check_complete(&job, job.db);
    CHECK_TRUE(sql_int(job.db, "SELECT count(DISTINCT run_id) FROM memory_unit") == FEW);
    site_check_said(&job, "60 points: 60 played, 0 stored before");
    CHECK_INT(job_run(&job, mpirun, NULL), 0);
    site_check_complete(&job, job.db);
    site_check_said(&job, "60 points: 0 played, 60 stored before");
    site_release(&job);
}

/* Without mpirun it is one rank, which plays by processes. */
static void test_alone(void)
{
    static const char *const two_jobs[] = {"-j", "2", NULL};
    struct site job;
    site_init(&job, FEW);
    CHECK_INT(job_run(&job, NULL, two_jobs), 0);
    site_check_complete(&job, job.db);
    site_release(&job);
}

/* What was stored stays as it is, and the rerun does the rest. */
static void check_rest(struct site *job)
{
    site_check_sound(job->db);
    const int64_t last = sql_int(job->db, "SELECT ifnull(max(id), 0) FROM run");
    const char *stored = site_runs_text(&job->arena, job->db, last);
    CHECK_INT(job_run(job, mpirun, NULL), 0);
    site_check_said(job, arena_printf(&job->arena,
                                      "1500 points: %" PRId64 " played, %" PRId64 " stored before",
                                      POINTS - last, last));
    site_check_complete(job, job->db);
    CHECK_TEXT(site_runs_text(&job->arena, job->db, last), stored);
}

/* mpirun ends all ranks when one is killed: rank 0 stores what it has. Whether there was one. */
static bool kill_rank(int64_t number, int victim, double share)
{
    struct site job;
    site_init(&job, POINTS);
    check_context("kill %" PRId64 ": rank %d after %.0f %%", number, victim, 100 * share);
    const pid_t pid = job_start(&job, mpirun, NULL);
    CHECK_TRUE(wait_for_runs(&job, 1 + (int64_t)(share * POINTS)));
    const pid_t rank = child_of(pid, ranks_name, victim);
    const bool is_sent = rank > 0 && kill(rank, SIGKILL) == 0;
    const int code = process_finish(pid);
    CHECK_TRUE(code == 0 || code == 128 + SIGKILL);
    check_rest(&job);
    site_release(&job);
    check_context(NULL);
    return is_sent;
}

static void test_kills(void)
{
    struct philox random;
    const int64_t kills = site_setting("FSDPSIM_KILLS", 3);
    const int64_t seed = site_setting("FSDPSIM_SEED", 1);
    philox_init(&random, (uint64_t)seed, 0, 0, 0);
    printf("%" PRId64 " kills, seed %" PRId64 "\n", kills, seed);
    /* Rank 0 among them. */
    int64_t hits = 0;
    for (int64_t i = 0; i < kills; i++)
        hits += kill_rank(i, (int)((i + 1) % 3), 0.5 * philox_unit(&random));
    CHECK_TRUE(hits > 0);
}

/* The process by which a rank plays is killed: the point is tried again, nothing else happens. */
static void test_player_killed(void)
{
    struct site job;
    site_init(&job, POINTS);
    const pid_t pid = job_start(&job, mpirun, NULL);
    CHECK_TRUE(wait_for_runs(&job, 10));
    const pid_t player = child_of(child_of(pid, ranks_name, 2), ranks_name, 0);
    CHECK_TRUE(player > 0 && kill(player, SIGKILL) == 0);
    CHECK_INT(process_finish(pid), 0);
    site_check_complete(&job, job.db);
    site_release(&job);
}

/* Where mpirun lets the job outlive a rank, the others play what it had: ended, or silent. */
static void outlive(int signal_number)
{
    struct site job;
    site_init(&job, POINTS);
    const pid_t pid = job_start(&job, recovering, NULL);
    CHECK_TRUE(wait_for_runs(&job, 10));
    const pid_t rank = child_of(pid, ranks_name, 1);
    CHECK_TRUE(rank > 0 && kill(rank, signal_number) == 0);
    (void)process_finish(pid);
    site_check_complete(&job, job.db);
    site_check_said(&job, "1500 points: 1500 played");
    site_release(&job);
}

static void test_outlives_a_rank(void)
{
    outlive(SIGKILL);
}

static void test_outlives_a_silent_rank(void)
{
    CHECK_INT(setenv("FSDPSIM_MPI_TIMEOUT", "2", 1), 0);
    outlive(SIGSTOP);
    CHECK_INT(unsetenv("FSDPSIM_MPI_TIMEOUT"), 0);
}

/* mpirun passes SIGUSR1 on: what is given out is finished, exit 75. */
static void test_asked_to_stop(void)
{
    struct site job;
    site_init(&job, POINTS);
    const pid_t pid = job_start(&job, mpirun, NULL);
    CHECK_TRUE(wait_for_runs(&job, 1));
    CHECK_INT(kill(pid, SIGUSR1), 0);
    CHECK_INT(process_finish(pid), 75);
    site_check_said(&job, "of 1500 points are done; the same command goes on from there");
    check_rest(&job);
    site_release(&job);
}

/* Said once, not by each rank. */
static void test_refusals(void)
{
    static const struct refusal {
        const char *more[3], *says;
    } refusals[] = {
        {{"-j", "2", NULL}, "error: '--jobs' does not go with several ranks"},
        {{"-s", "nodes=", NULL}, "nodes="},
        {{"--shard", "9/8", NULL}, "error: '--shard 9/8' is not a shard"},
        {{"--nonsense", NULL}, "error: unknown option '--nonsense'"},
    };
    struct site job;
    site_init(&job, FEW);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct diag diag;
        struct strbuf text = {0};
        CHECK_INT(job_run(&job, mpirun, refusals[i].more), 2);
        diag_init(&diag, &job.arena);
        CHECK_INT(strbuf_read_file(&text, job.log, 1 << 20, &diag), 0);
        CHECK_CONTAINS(text.text, refusals[i].says);
        const char *once = strstr(text.text, "error:");
        CHECK_TRUE(once != NULL && strstr(once + 1, "error:") == NULL);
        strbuf_release(&text);
    }
    site_release(&job);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        {"the table of fsdpsim", test_same_table},
        {"one rank", test_alone},
        {"ranks killed at random times", test_kills},
        {"a player killed", test_player_killed},
        {"outlives a rank", test_outlives_a_rank},
        {"outlives a silent rank", test_outlives_a_silent_rank},
        {"asked to stop", test_asked_to_stop},
        {"refusals", test_refusals},
        {0},
    };
    const struct check_suite suites[] = {{"mpi", cases}, {0}};
    /* In a container the user is root. */
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    return check_main(argc, argv, suites);
}
