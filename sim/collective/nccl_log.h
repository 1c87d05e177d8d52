/*
 * collective/nccl_log.h: what nccl-tests (and rccl-tests) printed → tables of measured times.
 *
 * Text as the programs print it, from any version: the columns are taken from the header row, so
 * forms with and without `redop` and `root`, with `error` or `#wrong`, `cputime`, the percentiles
 * of -I and the time stamps of -S are all one; without a header row 11, 12 and 13 columns are told
 * apart. Around the rows anything may stand: mpirun and srun prefixes (`[1,0]<stdout>:`, ` 0: `),
 * colours, NCCL INFO lines, a shell prompt, Markdown. Several collectives in one text are several
 * tables. JSON (-J) is the other form; JSON is YAML, so config reads it. Also the 11-column tables
 * of public measurements: `# key: value` lines, `size_B … time_us …`, '-' where nothing is known.
 *
 *   # Collective test starting: all_gather_perf          the collective
 *   #  Rank  3 Group  0 Pid 431 on node7 device  3 [0x0f] NVIDIA H100    ranks, nodes, GPU
 *   #       size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw …
 *      1048576  262144  float  none  -1  61.2  17.1  15.0  0  60.9  17.2  15.1  0
 *
 * size is as nccl-tests counts it (plan.h); times are microseconds there, seconds here. algbw =
 * size / time in GB/s (1e9 B/s), busbw = algbw · 2(n−1)/n for an all-reduce, · (n−1)/n for
 * all-gather and reduce-scatter; versions before 2020 printed both with that factor.
 *
 * What the text does not say the request may (`--op`, `--ranks`, `--nodes`). An all-reduce and a
 * reduce-scatter are also known by their redop and busbw / algbw, and ranks up to 64 by that ratio.
 *
 * Damage: a row that cannot be read is left out with a warning at its place, as is one that is cut
 * off at the end of the text; the others are read. A size or time
 * that no calibration may hold (cluster/calibration.h) is such damage. Of many such rows of a text
 * the first 20 are shown and the others counted. Errors (STATUS_INPUT): a text without any row, a
 * table whose collective, ranks or nodes are not known.
 *
 * Source: NVIDIA/nccl-tests src/util.cu, src/common.cu, doc/PERFORMANCE.md; public logs. Left out:
 * other collectives (a note says which were skipped), several communicators at once
 * (NCCL_TESTS_SPLIT).
 */
#ifndef FSDPSIM_COLLECTIVE_NCCL_LOG_H
#define FSDPSIM_COLLECTIVE_NCCL_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cluster/collective_op.h"

/* One of out-of-place and in-place. NaN: not printed. */
struct nccl_times {
    double time_s;
    double algbw_bytes_per_s, busbw_bytes_per_s; /* as printed */
    double low_s, high_s; /* of the iterations (-I): the lowest and highest percentile printed */
    int64_t wrong;        /* results found wrong; -1: not checked */
};

struct nccl_row {
    struct place place;
    int64_t bytes, count;
    const char *type, *redop; /* "float", "sum"; "" when not printed */
    int64_t root;             /* -1: none */
    struct nccl_times out_of_place, in_place;
};

struct nccl_fact { /* "# hardware: …", "NCCL_ALGO=Ring" */
    const char *key, *value;
    struct place place;
};

struct nccl_table {
    const char *name; /* of the text: the file's name */
    struct place place;
    bool has_op; /* false: a collective that is not read, or not known */
    enum collective_op op;
    const char *program;                 /* "all_gather_perf"; NULL: not said */
    int64_t ranks, nodes, gpus_per_node; /* 0: not known */
    struct place ranks_place;            /* where the ranks are said; none: elsewhere */
    const char *device, *version;        /* "NVIDIA H100 80GB HBM3", "2.20.5"; NULL: not said */
    const char *algorithm, *protocol;    /* NCCL_ALGO, NCCL_PROTO in lower case; NULL: not set */
    int64_t gpus_per_process;            /* -g times -t; 0: not said */
    struct {
        struct nccl_fact *items;
        int32_t count, capacity;
    } facts;
    struct {
        struct nccl_row *items;
        int32_t count, capacity;
    } rows;
};

struct nccl_log {
    struct {
        struct nccl_table *items;
        int32_t count, capacity;
    } tables;
};

/* What the texts do not say; where they do, it stands over them. */
struct nccl_request {
    bool has_op;
    enum collective_op op;
    int64_t ranks, nodes; /* 0: as the text says */
};

enum { NCCL_LOG_MAX_BYTES = 64 << 20 };

/* Adds the tables of `source` to `log`. The source must live as long as the log. */
MUST_CHECK enum status nccl_log_parse(struct arena *arena, const struct source *source,
                                      const struct nccl_request *request, struct nccl_log *log,
                                      struct diag *diag);
/* Reads a file; "-" is standard input. */
MUST_CHECK enum status nccl_log_load(struct arena *arena, const char *path,
                                     const struct nccl_request *request, struct nccl_log *log,
                                     struct diag *diag);

/* The first value of a `# key: value` line, NULL: none. */
const char *nccl_table_fact(const struct nccl_table *table, const char *key);
/* busbw / algbw of a collective over n ranks. */
double nccl_bus_factor(enum collective_op op, int64_t ranks);
/* "all_gather_perf", "AllGather", "./build/all_gather_perf_mpi" → the collective; false: another.
 */
bool nccl_op_from_name(const char *name, enum collective_op *op);
/* Those that logs are read for: all-gather, reduce-scatter, all-reduce. */
bool nccl_op_is_read(enum collective_op op);
bool nccl_op_from_log(const char *name, enum collective_op *op);

#endif
