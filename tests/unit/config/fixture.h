/*
 * tests/unit/config/fixture.h: one configuration, bound by a table with every kind of field. The
 * text stands in "t.yaml"; messages are the whole output that a user would see.
 */
#ifndef FSDPSIM_TESTS_CONFIG_FIXTURE_H
#define FSDPSIM_TESTS_CONFIG_FIXTURE_H

#include "check.h"
#include "config/config.h"

struct nics {
    int64_t count;
    double bytes_per_s;
};

struct host {
    const char *name;
    int64_t gpus;
    struct nics nics;
};

struct tuning {
    double ratio;
    double latency_s;
};

struct slow_gpu {
    int64_t host, gpu;
    double clock_frac;
};

struct shape {
    int kind;
    int64_t sides;
    double radius;
};

struct bound {
    bool is_compiled;
    int64_t nodes, gpus;
    double share, power_w;
    double memory_bytes;
    int wrap;
    const char *title;
    struct tuning tuning;
    struct nics nics; /* optional, its table has required keys */
    struct host host;
    struct shape shape;
    struct config_list slow; /* struct slow_gpu */
    struct config_list ideal;
    const struct node *extra;
    int64_t checked; /* set by the check of the table */
};

extern const struct field_table bound_table;
extern const struct field_table foreign_table; /* struct nics; warns_unknown, ignores "_comment" */

struct fixture {
    struct arena arena;
    struct diag diag;
    struct config config;
    struct source source;
    struct bound bound;
    enum status status;
    char *messages;
};

/* Parses and binds; `overrides` may be NULL, else NULL-ended. */
void fixture_bind(struct fixture *fixture, const char *yaml, const char *const *overrides);
/* Only parses `length` bytes (0: to the NUL) as "t.yaml"; config.root is the result. */
void fixture_parse(struct fixture *fixture, const char *text, size_t length);
void fixture_release(struct fixture *fixture);
/* The output of config_write_resolved; freed by fixture_release. */
const char *fixture_resolved(struct fixture *fixture);

extern const struct check_case node_cases[], bind_cases[], override_cases[], ref_cases[],
    origin_cases[], csv_table_cases[];

/* Binds and compares all messages. */
void check_messages(const char *yaml, const char *expected);

#endif
