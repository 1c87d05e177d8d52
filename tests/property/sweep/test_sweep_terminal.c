/* property/sweep/test_sweep_terminal.c: what a user sees while a sweep runs: one line that is
   written over on a terminal, no control characters elsewhere. */
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "sweep_site.h"
#include "sweep_tests.h"

/* Enough for some lines of progress, and few. */
enum { MANY_POINTS = SITE_HAS_SANITIZER ? 400 : 4000, FEW_POINTS = 60 };

struct watched {
    struct site site;
    struct strbuf said; /* to the terminal */
    int exit_code;
};

/* A new terminal: its two ends. */
static void open_terminal(int *master, const char **slave)
{
    *master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK_TRUE(*master >= 0 && grantpt(*master) == 0 && unlockpt(*master) == 0);
    *slave = ptsname(*master);
    CHECK_TRUE(*slave != NULL);
}

/* Sweeps with standard error on a terminal of kind `term`. */
static void watch(struct watched *watched, int64_t points, const char *term,
                  const char *const *more)
{
    struct site *site = &watched->site;
    const char *slave = NULL;
    char bytes[4096];
    int master = -1;
    site_init(site, points);
    open_terminal(&master, &slave);
    /* Kept open, so that the terminal lives until the last word is read. */
    const int end = open(slave, O_RDWR | O_NOCTTY);
    CHECK_INT(setenv("TERM", term, 1), 0);
    const pid_t pid = site_start(site, NULL, FSDPSIM_PROGRAM, site->db, site->csv, slave, more);
    (void)close(end);
    /* At its end a terminal whose other side is closed gives EIO. */
    for (;;) {
        const ssize_t got = read(master, bytes, sizeof(bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        strbuf_add_bytes(&watched->said, bytes, (size_t)got);
    }
    watched->exit_code = process_finish(pid);
    (void)close(master);
    strbuf_add(&watched->said, "");
}

static void watched_release(struct watched *watched)
{
    strbuf_release(&watched->said);
    site_release(&watched->site);
}

static bool has_match(const char *text, const char *pattern)
{
    regex_t compiled;
    if (!CHECK_INT(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0))
        return false;
    const bool is_found = regexec(&compiled, text, 0, NULL, 0) == 0;
    regfree(&compiled);
    if (!is_found)
        printf("no match of %s in: %s\n", pattern, text);
    return is_found;
}

/* Rate, time to go and the best so far, on one line that is gone at the end. */
static void test_terminal(void)
{
    static const char *const one_job[] = {"-j", "1", NULL};
    struct watched watched = {0};
    watch(&watched, MANY_POINTS, "xterm", one_job);
    CHECK_INT(watched.exit_code, 0);
    const char *said = watched.said.text;
    struct arena *arena = &watched.site.arena;
    const int points = MANY_POINTS;
    CHECK_TRUE(has_match(said, arena_printf(arena,
                                            "\r\x1b\\[\\?7lplayed [0-9]+ of %d points, [0-9]+/s, "
                                            "[0-9]+:[0-9][0-9] to go; best [0-9]+ tokens/s/GPU: "
                                            "seq_len=[0-9]+\x1b\\[K\x1b\\[\\?7h",
                                            points)));
    CHECK_TRUE(
        has_match(said, arena_printf(arena, "\r\x1b\\[K%d points: %d played, 0 stored before; in ",
                                     points, points)));
    /* The line is written over: lines end only after the last word. */
    CHECK_TRUE(strchr(said, '\n') == strrchr(said, '\n'));
    site_check_complete(&watched.site, watched.site.db);
    watched_release(&watched);
}

static void check_plain(const char *term, const char *const *more, const char *pattern)
{
    struct watched watched = {0};
    watch(&watched, FEW_POINTS, term, more);
    CHECK_INT(watched.exit_code, 0);
    CHECK_TRUE(strchr(watched.said.text, '\x1b') == NULL);
    CHECK_TRUE(has_match(watched.said.text, pattern));
    watched_release(&watched);
}

static void test_dumb_terminal(void)
{
    check_plain("dumb", NULL, "^(played [^\r\n]*\r\n)*60 points: 60 played");
}

static void test_quiet(void)
{
    static const char *const quiet[] = {"-q", NULL};
    check_plain("xterm", quiet, "^$");
}

/* Into a file: lines, no control characters. */
static void test_file(void)
{
    struct site site;
    struct diag diag;
    struct strbuf text = {0};
    site_init(&site, FEW_POINTS);
    CHECK_INT(setenv("TERM", "xterm", 1), 0);
    CHECK_INT(
        process_finish(site_start(&site, NULL, FSDPSIM_PROGRAM, site.db, site.csv, site.log, NULL)),
        0);
    diag_init(&diag, &site.arena);
    CHECK_INT(strbuf_read_file(&text, site.log, 1 << 20, &diag), STATUS_OK);
    CHECK_TRUE(has_match(text.text, "^(played [^\n]*\n)*60 points: 60 played, [^\n]*\n$"));
    strbuf_release(&text);
    site_release(&site);
}

const struct check_case sweep_terminal_cases[] = {
    {"on a terminal", test_terminal},
    {"on a dumb one", test_dumb_terminal},
    {"quiet", test_quiet},
    {"into a file", test_file},
    {0},
};
