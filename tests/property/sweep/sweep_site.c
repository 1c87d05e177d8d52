/* property/sweep/sweep_site.c: see sweep_site.h. */
#include "sweep_site.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "check.h"

static const char configuration[] = FSDPSIM_SOURCE_DIR "/tests/golden/two-blocks.yaml";

double site_now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void site_wait_s(double seconds)
{
    struct timespec time = {(time_t)seconds, 0};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    (void)nanosleep(&time, NULL);
}

int64_t site_setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    int64_t value = otherwise;
    return text != NULL && text_to_int64(text, &value) ? value : otherwise;
}

/* ---- the program -------------------------------------------------------------------------- */

enum { WORDS_MAX = 40 };

/* In the child. */
__attribute__((noreturn)) static void become(const char *const *words, const char *csv,
                                             const char *log)
{
    char *argv[WORDS_MAX];
    (void)setpgid(0, 0);
    const int out = open(csv, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(99);
    if (log != NULL) {
        const int messages = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (messages < 0 || dup2(messages, STDERR_FILENO) < 0)
            _exit(99);
    }
    /* execvp changes none of them; its type is older than const. */
    memcpy(argv, words, sizeof(argv));
    execvp(argv[0], argv);
    _exit(99);
}

static int add_words(const char **words, int count, const char *const *more)
{
    for (int i = 0; more != NULL && more[i] != NULL && count < WORDS_MAX - 1; i++)
        words[count++] = more[i];
    return count;
}

pid_t site_start(const struct site *site, const char *const *launcher, const char *program,
                 const char *db, const char *csv, const char *log, const char *const *more)
{
    const char *words[WORDS_MAX] = {NULL};
    const char *const sweep[] = {program, "sweep", configuration, "-s", site->swept, "--csv",
                                 "--db",  db,      NULL};
    int count = add_words(words, 0, launcher);
    count = add_words(words, count, sweep);
    (void)add_words(words, count, more);
    const pid_t pid = fork();
    if (pid == 0)
        become(words, csv, log);
    return pid;
}

pid_t words_start(const char *const *words)
{
    const char *copy[WORDS_MAX] = {NULL};
    (void)add_words(copy, 0, words);
    const pid_t pid = fork();
    if (pid == 0)
        become(copy, "/dev/null", NULL);
    return pid;
}

pid_t sweep_start(const struct site *site, const char *db, const char *csv, const char *const *more)
{
    return site_start(site, NULL, FSDPSIM_PROGRAM, db, csv, "/dev/null", more);
}

/* The exit code; 128 + the signal. */
int process_finish(pid_t pid)
{
    int how = 0;
    if (waitpid(pid, &how, 0) != pid)
        return -1;
    return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}

int sweep_run_in(const struct site *site, const char *db, const char *csv, const char *const *more)
{
    return process_finish(sweep_start(site, db, csv, more));
}

/* The parent of a process, -1 where it is none or runs another program. */
static pid_t parent_of(const char *pid, const char *program)
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
    const char *name = strchr(text, '(');
    if (state == NULL || strlen(state) < 5 || name == NULL)
        return -1;
    const size_t name_bytes = (size_t)(state - name) - 1;
    if (program != NULL &&
        (strlen(program) != name_bytes || memcmp(name + 1, program, name_bytes) != 0))
        return -1;
    char number[16] = "";
    snprintf(number, sizeof(number), "%.*s", (int)strcspn(state + 4, " "), state + 4);
    return text_to_int64(number, &parent) ? (pid_t)parent : -1;
}

static int compare_pids(const void *a, const void *b)
{
    const pid_t one = *(const pid_t *)a;
    const pid_t other = *(const pid_t *)b;
    return (one > other) - (one < other);
}

pid_t child_of(pid_t pid, const char *program, int nth)
{
    enum { CHILDREN_MAX = 64 };
    pid_t found[CHILDREN_MAX];
    int count = 0;
    DIR *folder = opendir("/proc");
    if (folder == NULL)
        return 0;
    for (struct dirent *entry = readdir(folder); entry != NULL && count < CHILDREN_MAX;
         entry = readdir(folder)) {
        int64_t number = 0;
        if (text_to_int64(entry->d_name, &number) && parent_of(entry->d_name, program) == pid)
            found[count++] = (pid_t)number;
    }
    (void)closedir(folder);
    qsort(found, (size_t)count, sizeof(found[0]), compare_pids);
    return nth < count ? found[nth] : 0;
}

/* ---- what it left ------------------------------------------------------------------------- */

int64_t sql_int(const char *db, const char *sql)
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

bool is_same_text(const char *a, const char *b)
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

void site_check_sound(const char *db)
{
    CHECK_INT(sql_int(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    CHECK_INT(sql_int(db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    /* Killed while the tables were made, it has none yet. */
    if (sql_int(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'run'") == 1)
        CHECK_INT(sql_int(db, "SELECT count(*) - count(DISTINCT config_hash) FROM run"), 0);
}

void site_check_complete(const struct site *site, const char *db)
{
    site_check_sound(db);
    CHECK_INT(sql_int(db, "SELECT count(*) FROM run"), site->points);
    CHECK_INT(sql_int(db, "SELECT count(*) FROM sweep_point WHERE state = 'done'"), site->points);
    CHECK_TRUE(is_same_text(site->csv, site->expected));
}

void site_remove_db(const char *db)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", db, ends[i]);
        (void)unlink(path);
    }
}

const char *site_runs_text(struct arena *arena, const char *db, int64_t last)
{
    return sql_text(arena, db,
                    arena_printf(arena,
                                 "SELECT group_concat(id || config_hash || fingerprint || "
                                 "created_utc) FROM (SELECT * FROM run WHERE id <= %" PRId64
                                 " ORDER BY id)",
                                 last));
}

void site_init_swept(struct site *site, const char *swept, int64_t points)
{
    static const char *const one_job[] = {"-j", "1", NULL};
    *site = (struct site){.folder = "/tmp/fsdpsim_sweep.XXXXXX", .points = points, .swept = swept};
    CHECK_TRUE(mkdtemp(site->folder) != NULL);
    site->db = arena_printf(&site->arena, "%s/runs.db", site->folder);
    site->csv = arena_printf(&site->arena, "%s/table.csv", site->folder);
    site->expected = arena_printf(&site->arena, "%s/expected.csv", site->folder);
    site->log = arena_printf(&site->arena, "%s/log", site->folder);
    const double start_s = site_now_s();
    CHECK_INT(sweep_run_in(site, site->db, site->expected, one_job), 0);
    site->undisturbed_s = site_now_s() - start_s;
    CHECK_INT(sql_int(site->db, "SELECT count(*) FROM run"), points);
    site_remove_db(site->db);
}

void site_init(struct site *site, int64_t points)
{
    struct arena arena = {0};
    site_init_swept(site, arena_printf(&arena, "train.seq_len=range(1,%" PRId64 ",1)", points + 1),
                    points);
    site->swept = arena_strdup(&site->arena, site->swept);
    arena_release(&arena);
}

void site_check_said(struct site *site, const char *part)
{
    struct diag diag;
    struct strbuf text = {0};
    diag_init(&diag, &site->arena);
    if (CHECK_INT(strbuf_read_file(&text, site->log, 1 << 20, &diag), STATUS_OK))
        CHECK_CONTAINS(text.text != NULL ? text.text : "", part);
    strbuf_release(&text);
}

void site_release(struct site *site)
{
    site_remove_db(site->db);
    (void)unlink(site->csv);
    (void)unlink(site->expected);
    (void)unlink(site->log);
    CHECK_INT(rmdir(site->folder), 0);
    arena_release(&site->arena);
}
