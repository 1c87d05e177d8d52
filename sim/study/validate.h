/*
 * study/validate.h: predictions beside published training runs.
 *
 * A CSV holds one run a row (results/measured/measured_runs.csv; the columns are in
 * `measured_columns`). What a row leaves open is filled from facts (results/measured/facts/: one
 * file a source, each fact with its citation or marked as assumed). Row and facts give a
 * configuration, which is simulated as `fsdpsim run` would, and the result stands beside the
 * measurement:
 *
 *   error = predicted / measured - 1          step time, and memory of the kind the source states
 *   error = predicted - measured              MFU, in points, as the source counts its FLOPs
 *
 * A row is in scope when the facts do not exclude it and everything it states can be simulated. The
 * reason why one is not is the program's own message, so coverage grows with the program. Facts
 * match on columns (source, framework, GPU, ...), never on a row's id, and no constant of the
 * simulation depends on a row, a model or a source.
 *
 * Scores: |error| as median and 90th percentile (linear between ranks), bias = median of the signed
 * error, shares of the rows within 10 and 15 %; and the mean of the per-source medians, so that one
 * large source does not decide. Headline scores take rows of trust A and B (or without a mark) that
 * are not repeats of another row.
 *
 *   errors +0.10, -0.05, +0.20: median_abs_err 0.10, p90_abs_err 0.18, bias 0.10, within_10pct 2/3
 */
#ifndef FSDPSIM_STUDY_VALIDATE_H
#define FSDPSIM_STUDY_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "study/closest.h"
#include "study/interval.h"

/* Which of the simulated peaks a source's figure is. */
enum memory_kind {
    MEMORY_KIND_NONE,
    MEMORY_KIND_ALLOCATED, /* torch.cuda.max_memory_allocated() */
    MEMORY_KIND_ACTIVE,    /* memory_stats()["active_bytes.all.peak"] */
    MEMORY_KIND_RESERVED,
    MEMORY_KIND_DEVICE
};
const char *memory_kind_name(enum memory_kind kind);

/* One setting in force of a row: where it comes from. */
struct validate_setting {
    const char *key, *value;
    const char *origin;  /* "llm-foundry.yaml:12" */
    const char *because; /* the citation, or why it is assumed */
    bool is_assumed;
};

/* One measured figure beside its prediction; `error` is NaN when there is none. */
struct validate_pair {
    double measured, predicted, error;
};

struct validate_row {
    int32_t line; /* in the CSV */
    const char *label, *source, *licence, *gpu, *model, *trust;
    const char *hosts;  /* "single node", "multi node", "multi node, network assumed" */
    const char *regime; /* hosts, and how much of the communication is exposed */
    int64_t n_gpus;
    int64_t tokens_per_gpu; /* of a step; 0: not simulated */
    const char *reason;     /* why it is out of scope, NULL: in scope */
    bool is_assumed;        /* a setting in force is assumed */
    bool is_scored;         /* trust A, B or none; not a repeat */
    enum memory_kind memory_kind;
    struct validate_pair step_s, memory_bytes, mfu; /* MFU as a fraction */
    const char *mfu_convention;                     /* NULL: no MFU is compared */
    double exposed_comm_fraction;
    bool fits;
    struct interval interval; /* of step_s.predicted */
    struct run_traits traits; /* in scope only */
    const struct validate_setting *settings;
    int32_t setting_count;
};

struct validate_score {
    int64_t n;
    double median_abs_err, p90_abs_err, bias, within_10pct, within_15pct; /* NaN when n is 0 */
    double mean_source_median; /* mean over sources of the median |error| */
};

struct validate_scores {
    struct validate_score step_time, memory;
    struct validate_score mfu; /* errors in fractions of 1 */
};

/* Of the scored rows with a step time: how the measured one lies to the interval (interval.h). */
struct validate_inside {
    int64_t n, inside, faster, slower; /* faster: measured below the 5th percentile */
    double median_spread;              /* NaN when n is 0 */
};

struct validate_group { /* by source, GPU, regime or MFU convention */
    const char *name;
    int64_t rows, in_scope;
    struct validate_scores scores;
    struct validate_inside inside;
};

struct validate_groups {
    struct validate_group *items;
    int32_t count, capacity;
};

struct validate_exclusion {
    const char *reason;
    int64_t rows;
};

struct validation {
    const char *csv_name;
    struct validate_row *rows; /* worst step-time error first, then those without, then excluded */
    int32_t row_count;
    int64_t in_scope;
    struct validate_scores headline, without_assumed, all_trust;
    struct validate_inside inside;
    struct validate_groups by_source, by_gpu, by_hosts, by_regime, by_convention;
    struct {
        struct validate_exclusion *items;
        int32_t count, capacity;
    } exclusions; /* most rows first */
};

struct validate_request {
    const char *csv_path;           /* NULL: the table that ships */
    const char *source;             /* part of a source's name, NULL: all */
    const char *const *facts_paths; /* files read after those that ship */
    int32_t facts_count;
    const char *const *overrides; /* `-s`, for every row, last */
    int32_t override_count;
};

/* The scored rows in scope with a step time, for `run` to be laid beside (closest.h). */
void validate_index(struct arena *arena, const struct validation *validation,
                    struct run_index *index);

/*
 * Reads, simulates and scores. Everything lives in `arena`. A mistake in the CSV or in a facts file
 * is STATUS_INPUT; a row that cannot be simulated is not a mistake.
 */
MUST_CHECK enum status validate_run(struct arena *arena, const struct validate_request *request,
                                    struct validation *validation, struct diag *diag);

/* The columns of such a CSV and the words that they accept (validate_words.c). */
MUST_CHECK enum status validate_schema_write(struct arena *arena, FILE *file, struct diag *diag);

#endif
