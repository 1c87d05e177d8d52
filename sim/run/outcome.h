/*
 * run/outcome.h: the result of one run, as plain data: the numbers of `--json`, with their units.
 *
 * `outcome_metrics` is the one table of scalar results: the JSON keys, the database columns, the
 * reference text and `--assert` all come from it. SI units; the unit is part of the name.
 */
#ifndef FSDPSIM_RUN_OUTCOME_H
#define FSDPSIM_RUN_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "observe/observe.h"
#include "schedule/program.h"

/* Of the JSON object; of the physics: moves when the same input gives other numbers (it is hashed
   into config_hash and stored with the run). */
enum { OUTCOME_SCHEMA_VERSION = 1, OUTCOME_MODEL_VERSION = 1 };

struct outcome_unit {
    const char *name;
    int64_t parameters;
    double forward_s, backward_s, all_gather_s, reduce_scatter_s, exposed_s; /* per step */
};

struct outcome_collective { /* one row per (operation, communicator, bytes) */
    const char *op, *communicator;
    int64_t count;            /* per step */
    double bytes;             /* nccl-tests size of each */
    double alone_s;           /* on an idle machine: closed form */
    double busbw_bytes_per_s; /* alone */
};

struct outcome_link {
    const char *name;
    double capacity_bytes_per_s;
    int64_t instances;
    double bytes;       /* through one instance, per step */
    double busy_frac;   /* share of the step in which something used it */
    double utilisation; /* bytes / (capacity × step) */
};

struct outcome_memory_unit { /* of the active peak */
    const char *name;        /* "outside units": optimizer's temporaries, loss, workspace */
    int64_t bytes;
};

struct outcome_interval { /* of the samples (samples.h) */
    const char *metric, *unit;
    double p05, p50, p95;
};

struct outcome_origin {
    const char *path, *value, *origin;
};

struct outcome {
    const char *config_name, *model, *cluster, *gpu, *policy, *bottleneck;
    int64_t n_gpus, n_nodes, gpus_per_node;
    int64_t parameters, seq_len, micro_batch, grad_accum;
    int64_t tokens_per_step; /* whole job */
    double step_time_s, tokens_per_s, tokens_per_s_per_gpu, tokens_per_day;
    /* NaN: the configuration does not ask (run/training_cost.h) */
    double goodput;
    double cost_per_gpu_hour, cost_per_billion_tokens;
    double budget_tokens, budget_days, budget_gpu_hours, budget_cost;
    const char *currency;            /* NULL: there is no price */
    double mfu, hfu, tflops_per_gpu; /* NaN: not defined (printed as null with a note) */
    const char *mfu_convention;
    double compute_s, comm_s, comm_wait_s, copy_s, exposed_comm_s, idle_s, memcpy_s;
    double data_wait_s;  /* part of idle_s (run/loading.h) */
    double checkpoint_s; /* of a step's mean: part of idle_s (run/saving.h) */
    double checkpoint_bytes, checkpoint_block_s, checkpoint_write_s; /* of each checkpoint */
    double forward_s, backward_s, optimizer_s;
    double exposed_comm_fraction, overlap_fraction;
    int64_t peak_allocated_bytes; /* freed when the host frees, not when streams are done with it */
    int64_t peak_active_bytes, peak_reserved_bytes, peak_device_bytes;
    int64_t first_step_peak_active_bytes, first_step_peak_reserved_bytes;
    double alloc_retries, alloc_retry_s; /* per step */
    int64_t memory_capacity_bytes;
    int64_t memory_over_bytes; /* by how much it does not fit, 0: fits */
    int64_t peak_host_bytes;   /* training states in the memory of one host (offload) */
    int64_t host_memory_bytes; /* of a host; 0: the cluster does not say */
    bool fits;                 /* GPUs, and the host where it is known */
    int64_t peak_composition[MEMORY_CATEGORY_COUNT]; /* of the device peak */
    const char *peak_at;                             /* "grad_logits(output)" */
    const char *peak_phase, *peak_unit, *peak_operation;
    double peak_time_s;
    double comm_bytes_per_gpu; /* sent by each GPU, per step */
    uint64_t fingerprint;
    int64_t events;
    const char *const *warnings;
    int32_t warning_count;
    struct outcome_unit *units;
    int32_t unit_count;
    struct outcome_collective *collectives;
    int32_t collective_count;
    struct outcome_link *links;
    int32_t link_count;
    struct outcome_memory_unit *memory_units;
    int32_t memory_unit_count;
    struct outcome_origin *origins;
    int32_t origin_count;
    int64_t n_samples; /* 0: one run as configured */
    struct outcome_interval *intervals;
    int32_t interval_count;
    struct hash128 config_hash; /* of the resolved content, seed and model version */
};

enum metric_kind { METRIC_DOUBLE, METRIC_INT, METRIC_BOOL, METRIC_TEXT };
struct metric {
    const char *name; /* JSON key and column: "step_time_s" */
    const char *unit; /* "s", "bytes", "1", "tokens/s"; "text" for texts */
    enum metric_kind kind;
    bool is_optional; /* may be undefined: NaN, printed as null, stored as NULL */
    size_t offset;
    const char *help;
};
/* All end with name NULL. The scalars of an outcome, and the fields of the rows of its lists. */
extern const struct metric outcome_metrics[];
extern const struct metric outcome_unit_fields[];
extern const struct metric outcome_collective_fields[];
extern const struct metric outcome_link_fields[];
extern const struct metric outcome_memory_unit_fields[];
extern const struct metric outcome_interval_fields[];

const struct metric *outcome_metric(const char *name); /* NULL: no such metric */
/* Whether exposed communication takes more of the step than compute and no less than idle time. */
bool outcome_is_network_bound(const struct outcome *outcome);
/* The value as a number (bool: 0/1); false for texts and undefined values. */
bool outcome_number(const struct outcome *outcome, const struct metric *metric, double *value);

/* "layers.9.lora_A" and "layers.10.lora_A": equal but for one number, wherever it stands. */
bool outcome_names_are_alike(const char *a, const char *b);
bool outcome_name_is_next(const char *name,
                          const char *next); /* alike, and its number is one more */
/* Such units, with the same parameters and, to four digits, the same times. */
bool outcome_units_are_alike(const struct outcome_unit *a, const struct outcome_unit *b);
/* NULL: it was not sampled, or it is not defined. */
const struct outcome_interval *outcome_interval(const struct outcome *outcome, const char *metric);

/* The field of `item` (an outcome, or a row of one of its lists) that the metric describes. */
static inline const void *metric_field(const void *item, const struct metric *metric)
{
    return (const char *)item + metric->offset;
}
static inline double metric_double(const void *item, const struct metric *metric)
{
    return *(const double *)metric_field(item, metric);
}
static inline int64_t metric_int(const void *item, const struct metric *metric)
{
    return *(const int64_t *)metric_field(item, metric);
}
static inline bool metric_bool(const void *item, const struct metric *metric)
{
    return *(const bool *)metric_field(item, metric);
}
static inline const char *metric_text(const void *item, const struct metric *metric)
{
    return *(const char *const *)metric_field(item, metric);
}

#endif
