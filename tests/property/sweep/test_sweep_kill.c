/*
 * tests/property/sweep/test_sweep_kill.c: sweeps that are killed at random times, or that share a
 * database, end with the table of an undisturbed one.
 *
 *   $FSDPSIM_KILLS  how many kills (default 5)
 *   $FSDPSIM_SEED   of the times and victims (default 1; printed)
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/philox.h"
#include "base/strbuf.h"
#include "check.h"

enum { POINTS = 240 };
#define SWEPT "train.seq_len=range(1,241,1)"

static const char configuration[] = FSDPSIM_SOURCE_DIR "/tests/golden/two-blocks.yaml";
static const char *const one_job[] = {"-j", "1", NULL};
static const char *const two_jobs[] = {"-j", "2", NULL};

struct site { /* a folder of its own */
    struct arena arena;
    char folder[64];
    const char *db, *csv, *expected;
    double undisturbed_s;
};

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void wait_s(double seconds)
{
    struct timespec time = {(time_t)seconds, 0};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    (void)nanosleep(&time, NULL);
}

/* ---- the program -------------------------------------------------------------------------- */

/* In a process group of its own; stdout to `csv`. */
static pid_t start(const char *db, const char *csv, const char *const *more)
{
    const char *arguments[24] = {FSDPSIM_PROGRAM, "sweep", configuration, "-s", SWEPT,
                                 "--csv",         "-q",    "--db",        db};
    int count = 9;
    for (int i = 0; more != NULL && more[i] != NULL; i++)
        arguments[count++] = more[i];
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    (void)setpgid(0, 0);
    const int out = open(csv, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(99);
    /* execv changes none of them; its type is older than const. */
    char *argv[24];
    memcpy(argv, arguments, sizeof(arguments));
    execv(FSDPSIM_PROGRAM, argv);
    _exit(99);
}

/* The exit code; 128 + the signal. */
static int finish(pid_t pid)
{
    int how = 0;
    if (waitpid(pid, &how, 0) != pid)
        return -1;
    return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}

static int run(const char *db, const char *csv, const char *const *more)
{
    return finish(start(db, csv, more));
}

static pid_t parent_of(const char *pid)
{
    char path[300];
    char text[512] = "";
    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    const int file = open(path, O_RDONLY);
    if (file < 0)
        return -1;
    const ssize_t got = read(file, text, sizeof(text) - 1);
    (void)close(file);
    const char *state = got > 0 ? strrchr(text, ')') : NULL;
    int64_t parent = -1;
    if (state == NULL || strlen(state) < 5)
        return -1;
    char number[16] = "";
    snprintf(number, sizeof(number), "%.*s", (int)strcspn(state + 4, " "), state + 4);
    return text_to_int64(number, &parent) ? (pid_t)parent : -1;
}

/* A child of `pid`; 0: none now. */
static pid_t worker_of(pid_t pid)
{
    pid_t found = 0;
    DIR *folder = opendir("/proc");
    if (folder == NULL)
        return 0;
    for (struct dirent *entry = readdir(folder); entry != NULL && found == 0;
         entry = readdir(folder)) {
        int64_t number = 0;
        if (text_to_int64(entry->d_name, &number) && parent_of(entry->d_name) == pid)
            found = (pid_t)number;
    }
    (void)closedir(folder);
    return found;
}

/* ---- what it left ------------------------------------------------------------------------- */

static int64_t sql_int(const char *db, const char *sql)
{
    sqlite3 *connection = NULL;
    sqlite3_stmt *row = NULL;
    int64_t value = -1;
    if (sqlite3_open(db, &connection) == SQLITE_OK) {
        sqlite3_busy_timeout(connection, 10000);
        if (sqlite3_prepare_v2(connection, sql, -1, &row, NULL) == SQLITE_OK &&
            sqlite3_step(row) == SQLITE_ROW)
            value = sqlite3_column_int64(row, 0);
    }
    sqlite3_finalize(row);
    sqlite3_close(connection);
    return value;
}

static const char *sql_text(struct arena *arena, const char *db, const char *sql)
{
    sqlite3 *connection = NULL;
    sqlite3_stmt *row = NULL;
    const char *text = "";
    if (sqlite3_open(db, &connection) == SQLITE_OK &&
        sqlite3_prepare_v2(connection, sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW && sqlite3_column_text(row, 0) != NULL)
        text = arena_strdup(arena, (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    sqlite3_close(connection);
    return text;
}

static bool is_same_text(const char *a, const char *b)
{
    struct arena arena = {0};
    struct diag diag;
    struct strbuf texts[2] = {{0}, {0}};
    diag_init(&diag, &arena);
    const bool are_read = strbuf_read_file(&texts[0], a, 64 << 20, &diag) == STATUS_OK &&
                          strbuf_read_file(&texts[1], b, 64 << 20, &diag) == STATUS_OK;
    const bool is_same = are_read && texts[0].length > 0 && texts[0].length == texts[1].length &&
                         memcmp(texts[0].text, texts[1].text, texts[0].length) == 0;
    strbuf_release(&texts[0]);
    strbuf_release(&texts[1]);
    arena_release(&arena);
    return is_same;
}

static void check_sound(const char *db)
{
    CHECK_INT(sql_int(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    CHECK_INT(sql_int(db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    /* Killed while the tables were made, it has none yet. */
    if (sql_int(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'run'") == 1)
        CHECK_INT(sql_int(db, "SELECT count(*) - count(DISTINCT config_hash) FROM run"), 0);
}

static void check_complete(const struct site *site, const char *db)
{
    check_sound(db);
    CHECK_INT(sql_int(db, "SELECT count(*) FROM run"), POINTS);
    CHECK_INT(sql_int(db, "SELECT count(*) FROM sweep_point WHERE state = 'done'"), POINTS);
    CHECK_TRUE(is_same_text(site->csv, site->expected));
}

static void remove_db(const char *db)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", db, ends[i]);
        (void)unlink(path);
    }
}

static void site_init(struct site *site)
{
    *site = (struct site){.folder = "/tmp/fsdpsim_sweep.XXXXXX"};
    CHECK_TRUE(mkdtemp(site->folder) != NULL);
    site->db = arena_printf(&site->arena, "%s/runs.db", site->folder);
    site->csv = arena_printf(&site->arena, "%s/table.csv", site->folder);
    site->expected = arena_printf(&site->arena, "%s/expected.csv", site->folder);
    const double start_s = now_s();
    CHECK_INT(run(site->db, site->expected, one_job), 0);
    site->undisturbed_s = now_s() - start_s;
    CHECK_INT(sql_int(site->db, "SELECT count(*) FROM run"), POINTS);
    remove_db(site->db);
}

static void site_release(struct site *site)
{
    remove_db(site->db);
    (void)unlink(site->csv);
    (void)unlink(site->expected);
    CHECK_INT(rmdir(site->folder), 0);
    arena_release(&site->arena);
}

/* ---- the tests ---------------------------------------------------------------------------- */

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    int64_t value = otherwise;
    return text != NULL && text_to_int64(text, &value) ? value : otherwise;
}

enum victim { WORKER, PARENT, GROUP, VICTIM_COUNT };
static const char *const victim_names[] = {"a worker", "the parent", "the process group"};

static void kill_victim(pid_t parent, enum victim victim)
{
    if (victim == GROUP) {
        (void)kill(-parent, SIGKILL);
        return;
    }
    const pid_t pid = victim == PARENT ? parent : worker_of(parent);
    if (pid > 0)
        (void)kill(pid, SIGKILL);
}

/* The runs up to the `last` one, all of what names them. */
static const char *runs_text(struct arena *arena, const char *db, int64_t last)
{
    return sql_text(arena, db,
                    arena_printf(arena,
                                 "SELECT group_concat(id || config_hash || fingerprint || "
                                 "created_utc) FROM (SELECT * FROM run WHERE id <= %" PRId64
                                 " ORDER BY id)",
                                 last));
}

/* Killed after a share of what the whole takes; what was stored then stays as it is. */
static void kill_once(struct site *site, enum victim victim, double share)
{
    struct stat about;
    const char *stored = NULL;
    int64_t last = 0;
    check_context("%s after %.0f %%", victim_names[victim], 100 * share);
    const pid_t pid = start(site->db, site->csv, two_jobs);
    wait_s(share * site->undisturbed_s);
    kill_victim(pid, victim);
    const int code = finish(pid);
    CHECK_TRUE(code == 0 || (victim != WORKER && code == 128 + SIGKILL));
    if (stat(site->db, &about) == 0 && about.st_size > 0) {
        check_sound(site->db);
        last = sql_int(site->db, "SELECT ifnull(max(id), 0) FROM run");
        stored = runs_text(&site->arena, site->db, last);
    }
    CHECK_INT(run(site->db, site->csv, two_jobs), 0);
    check_complete(site, site->db);
    if (last > 0)
        CHECK_TEXT(runs_text(&site->arena, site->db, last), stored);
    remove_db(site->db);
    check_context(NULL);
}

static void test_kills(void)
{
    struct site site;
    struct philox random;
    const int64_t kills = setting("FSDPSIM_KILLS", 5);
    const int64_t seed = setting("FSDPSIM_SEED", 1);
    site_init(&site);
    philox_init(&random, (uint64_t)seed, 0, 0, 0);
    printf("%" PRId64 " kills, seed %" PRId64 ", %.2f s undisturbed\n", kills, seed,
           site.undisturbed_s);
    for (int64_t i = 0; i < kills; i++)
        kill_once(&site, (enum victim)(i % VICTIM_COUNT), 0.6 * philox_unit(&random));
    site_release(&site);
}

/* Two that begin together, with all points in common: each point is stored once. */
static void test_two_at_once(void)
{
    struct site site;
    site_init(&site);
    const char *other = arena_printf(&site.arena, "%s/other.csv", site.folder);
    const pid_t first = start(site.db, site.csv, two_jobs);
    const pid_t second = start(site.db, other, one_job);
    CHECK_INT(finish(first), 0);
    CHECK_INT(finish(second), 0);
    check_complete(&site, site.db);
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
    site_init(&site);
    CHECK_INT(run(site.db, site.csv, two_jobs), 0);
    check_complete(&site, site.db);
    remove_db(site.db);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(run(site.db, site.csv, shards[i]), 0);
        CHECK_INT(sql_int(site.db, "SELECT count(*) FROM run"), (i + 1) * POINTS / 3);
    }
    CHECK_INT(run(site.db, site.csv, NULL), 0);
    check_complete(&site, site.db);
    site_release(&site);
}

/* Asked to stop: what was given out is stored, exit 75; the rerun does the rest. */
static void test_asked_to_stop(void)
{
    struct site site;
    site_init(&site);
    const pid_t pid = start(site.db, site.csv, two_jobs);
    wait_s(0.6 * site.undisturbed_s);
    (void)kill(-pid, SIGINT);
    const int code = finish(pid);
    CHECK_TRUE(code == 75 || code == 0);
    const int64_t stored = code == 75 ? sql_int(site.db, "SELECT count(*) FROM run") : POINTS;
    CHECK_INT(run(site.db, site.csv, two_jobs), 0);
    check_complete(&site, site.db);
    CHECK_TRUE(stored <= POINTS);
    site_release(&site);
}

/* No file, the log of the database among them, may grow past a few pages: the first half stays. */
static void test_no_room(void)
{
    static const char *const half[] = {"--shard", "1/2", NULL};
    struct site site;
    struct rlimit before;
    site_init(&site);
    CHECK_INT(run(site.db, site.csv, half), 0);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {40960, before.rlim_max};
    /* The limit is met as an error of write, not as a signal: ignored ones are inherited. */
    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int code = run(site.db, site.csv, two_jobs);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_INT(code, 1);
    check_sound(site.db);
    CHECK_TRUE(sql_int(site.db, "SELECT count(*) FROM run") >= POINTS / 2);
    CHECK_INT(run(site.db, site.csv, two_jobs), 0);
    check_complete(&site, site.db);
    site_release(&site);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        {"killed at random times", test_kills},
        {"two sweeps at once", test_two_at_once},
        {"any workers, shards, resumes", test_same_table},
        {"asked to stop", test_asked_to_stop},
        {"no room in the file", test_no_room},
        {0},
    };
    const struct check_suite suites[] = {{"sweep", cases}, {0}};
    return check_main(argc, argv, suites);
}
