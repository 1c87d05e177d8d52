/*
 * unit/store/store_fixture.h: a folder of its own for each test, files as bytes, expected errors.
 * Also the suites of this program.
 */
#ifndef FSDPSIM_TESTS_STORE_FIXTURE_H
#define FSDPSIM_TESTS_STORE_FIXTURE_H

#include "check.h"
#include "outcome_fixture.h"
#include "store/store_private.h"

extern const struct check_case store_content_cases[];
extern const struct check_case store_failure_cases[];
extern const struct check_case store_full_cases[];
extern const struct check_case store_merge_cases[];
extern const struct check_case store_path_cases[];
extern const struct check_case store_sweep_cases[];
extern const struct check_case store_export_cases[];
extern const struct check_case store_validation_cases[];

struct fixture {
    struct arena arena;
    struct diag diag;
    struct outcome outcome; /* outcome_fixture */
    const char *folder;
    const char *path; /* folder/runs.db, not there yet */
};

void fixture_init(struct fixture *fixture);
/* Removes the folder and all in it. */
void fixture_release(struct fixture *fixture);

/* Opens, expecting success; NULL (and a failed check) otherwise. */
struct store *fixture_open(struct fixture *fixture, enum store_mode mode);
/* A file with `count` runs in it. */
void fixture_fill(struct fixture *fixture, int32_t count);
/* Opens, expecting an error with `part` in it; nothing in the file may change. */
void fixture_expect_refusal(struct fixture *fixture, enum store_mode mode, const char *part);
/* Adds `count` copies of the outcome in one batch. */
enum status fixture_add(struct fixture *fixture, struct store *store, int32_t count);
/* The last message, "" without one. */
const char *fixture_message(const struct fixture *fixture);

struct file_bytes {
    char *bytes; /* freed by the caller; NULL: no such file */
    size_t count;
};
struct file_bytes file_read(const char *path);
void file_write(const char *path, const void *bytes, size_t count);

/* First column of the first row by a connection of its own; -1: none. */
int64_t sql_int(const char *path, const char *sql);
/* Runs statements; the SQLite code. */
int sql_run(const char *path, const char *sql);

#endif
