/*
 * property/sweep/sweep_site.h: a folder with a database, the program that sweeps into it, and what
 * must be true of what it left.
 */
#ifndef FSDPSIM_TESTS_SWEEP_SITE_H
#define FSDPSIM_TESTS_SWEEP_SITE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"

/* Whether this is a build with the address sanitizer: slower, and it wants much address space. */
#if defined(__SANITIZE_ADDRESS__)
#define SITE_HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SITE_HAS_SANITIZER 1
#endif
#endif
#ifndef SITE_HAS_SANITIZER
#define SITE_HAS_SANITIZER 0
#endif

struct site {
    struct arena arena;
    char folder[64];
    const char *db, *csv, *expected; /* expected: the table of an undisturbed sweep */
    const char *log;                 /* messages */
    int64_t points;
    const char *swept; /* "train.seq_len=range(1,241,1)" */
    double undisturbed_s;
};

/* Sweeps once, undisturbed, for the expected table; the database is then gone again. */
void site_init_swept(struct site *site, const char *swept, int64_t points);
/* train.seq_len = 1, 2, …, points */
void site_init(struct site *site, int64_t points);
void site_release(struct site *site);

/* Starts `launcher` (words, NULL-ended; NULL: none) and the program `program` with "sweep …" and
   `more`, in a process group of its own; its table goes to `csv`, its messages to `log` (NULL:
   where ours go). */
pid_t site_start(const struct site *site, const char *const *launcher, const char *program,
                 const char *db, const char *csv, const char *log, const char *const *more);
/* fsdpsim, with `more`. */
pid_t sweep_start(const struct site *site, const char *db, const char *csv,
                  const char *const *more);
/* Any program, by its words. */
pid_t words_start(const char *const *words);
/* Waits; the exit code, or 128 + the signal. */
int process_finish(pid_t pid);
/* Starts and waits. */
int sweep_run_in(const struct site *site, const char *db, const char *csv, const char *const *more);

/* Child number `nth`, from 0, of `pid` that runs `program` (NULL: any), by number; 0: none now. */
pid_t child_of(pid_t pid, const char *program, int nth);
double site_now_s(void);
void site_wait_s(double seconds);
/* A number in the environment. */
int64_t site_setting(const char *name, int64_t otherwise);

/* Of the first row; -1: none, or no such table. */
int64_t sql_int(const char *db, const char *sql);
bool is_same_text(const char *path_a, const char *path_b);
void site_check_said(struct site *site, const char *part); /* in the log */
/* Sound, and no run twice. */
void site_check_sound(const char *db);
/* Sound, every point done and answered by one run, the table as expected. */
void site_check_complete(const struct site *site, const char *db);
void site_remove_db(const char *db);
/* The runs up to the `last` one, all of what names them. */
const char *site_runs_text(struct arena *arena, const char *db, int64_t last);

#endif
