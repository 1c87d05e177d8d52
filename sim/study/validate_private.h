/*
 * study/validate_private.h: what the files of `validate` share.
 *
 *   validate_columns.c  CSV → struct measured_row    validate_map.c    row + facts → settings
 *   validate_facts.c    facts files → rules          validate_score.c  errors → scores, groups
 *   validate_conditions.c  conditions of rules      validate_notes.c  rules' notes on a source
 *   validate.c          the loop over the rows           validate_gpus.c   GPUs by their names
 */
#ifndef FSDPSIM_STUDY_VALIDATE_PRIVATE_H
#define FSDPSIM_STUDY_VALIDATE_PRIVATE_H

#include "cluster/gpu.h"
#include "config/config.h"
#include "config/csv_table.h"
#include "study/validate.h"

/* A date ("2024-06-30", of any text: "2024-06 (v0.3)") is compared as text. */
enum column_kind { COLUMN_TEXT, COLUMN_COUNT_KIND, COLUMN_REAL, COLUMN_DATE };

struct measured_column {
    const char *name;
    enum column_kind kind;
    bool is_required; /* the column, not its cells */
    bool is_derived;  /* not in the CSV: computed, for facts to use */
};

/*
 * The columns of the CSV, then derived ones: nodes and node_gpus (how many hosts, and GPUs used on
 * each), nic_count and nic_bandwidth (read from inter_link, "8x400 Gb/s" or "1600 Gb/s per node"),
 * head_dim, ffn_ratio, experts and top_k (from ffn_type "gated-moe-8e-top2"), accum (grad_accum, or
 * what global_batch asks for), batch_conflict ("yes" where global_batch is no such product).
 */
extern const struct measured_column measured_columns[]; /* ends with name NULL */
enum { MEASURED_COLUMN_MAX = 64 };
int32_t measured_column_find(const char *name); /* -1: none */

struct measured_row {
    struct place place;
    const char *values[MEASURED_COLUMN_MAX];  /* "" when empty; by index in measured_columns */
    struct place places[MEASURED_COLUMN_MAX]; /* of those that the CSV has */
};

struct measured_table {
    struct {
        struct measured_row *items;
        int32_t count, capacity;
    } rows;
};

MUST_CHECK enum status measured_load(struct arena *arena, const char *path,
                                     struct measured_table *table, struct diag *diag);
const char *measured_text(const struct measured_row *row, const char *column);
int64_t measured_count(const struct measured_row *row, const char *column); /* 0 when empty */
double measured_real(const struct measured_row *row, const char *column);   /* NaN when empty */
/* Fills the derived columns from the others. */
void measured_derive(struct arena *arena, struct measured_row *row);

/* ---- facts -------------------------------------------------------------------------------- */

enum condition_op { CONDITION_EQUAL, CONDITION_NOT_EQUAL, CONDITION_LESS, CONDITION_GREATER };

struct fact_condition { /* "gpu=A100*|A800*", "date_version<2023-10-11", "n_gpus>8" */
    int32_t column;
    enum condition_op op;
    const char *value; /* patterns split by '|', or what to compare with */
};

struct fact_setting {
    const char *key, *value; /* <column> in the value stands for the row's own */
};

struct fact_rule {
    const char *origin; /* "llm-foundry.yaml:12" */
    const char *match;  /* patterns on the column `source`; NULL: every row */
    struct fact_condition *when;
    int32_t when_count;
    struct fact_setting *set;
    int32_t set_count;
    const char *exclude, *citation, *assumed, *licence;
};

struct fact_rules {
    struct fact_rule *items;
    int32_t count, capacity;
};

/* Facts that ship, in the order of their names (`columns.yaml`, for all rows, first), then `paths`.
 */
MUST_CHECK enum status facts_load(struct arena *arena, const char *const *data_folders,
                                  const char *const *paths, int32_t path_count,
                                  struct fact_rules *rules, struct diag *diag);
/* An error at `path` of the facts, with what is accepted: false. */
bool fact_condition_parse(struct config *config, const char *path, const char *text,
                          struct fact_condition *condition);
bool fact_matches(const struct fact_rule *rule, const struct measured_row *row);
/* '*' any run of characters, '?' one; alternatives split by '|'. */
bool pattern_matches(const char *patterns, const char *text);

/* validate_words.c: where the rule knows the words of a column, warns of the row's own, with those
   that are accepted. */
void words_warn(struct arena *arena, const struct fact_rule *rule, const struct measured_row *row,
                const char *reason, struct diag *diag);

/* ---- a row's configuration ---------------------------------------------------------------- */

struct row_settings {
    struct {
        struct validate_setting *items;
        int32_t count, capacity;
    } list;
    const char *exclude; /* NULL: nothing excludes the row */
    const struct fact_rule *excluded_by;
    const char *licence;
    bool is_assumed;
};

void settings_of_row(struct arena *arena, const struct fact_rules *rules,
                     const struct measured_row *row, struct row_settings *settings);
/* NULL: not set. Keys `source.…` are notes on the source, the others keys of the configuration. */
const char *setting_value(const struct row_settings *settings, const char *key);
bool setting_is_note(const char *key);
/* An error at `path` of the facts, with what is accepted, when there is no such note or the note
   has no such word; an empty value takes a note back. */
bool note_check(struct config *config, const char *path, const char *key, const char *value);
enum memory_kind memory_kind_of(const char *word); /* NULL, or no such word: MEMORY_KIND_NONE */

bool row_is_wanted(const struct validate_request *request, const struct measured_row *row);

/* ---- overrides of all rows ---------------------------------------------------------------- */

struct override_list {
    const char **items;
    int32_t count, capacity;
};

/* The settings of a row without its notes, then the user's: they stand over it. */
struct override_list overrides_of_row(struct arena *arena, const struct row_settings *settings,
                                      const struct validate_request *request);
/* An error where the user's overrides mean nothing, neither for the configuration that rows are
   laid over nor for a row: a key may belong to another kind of model than the one of `base`. */
MUST_CHECK enum status overrides_check(struct arena *arena, const char *base,
                                       const struct validate_request *request,
                                       const struct fact_rules *rules,
                                       const struct measured_table *table, struct diag *diag);

/* ---- GPUs, and rows that are left out ----------------------------------------------------- */

struct loaded_gpu {
    const char *word; /* as the CSV writes it: a file's name or an alias */
    struct gpu gpu;
    const char *problem; /* NULL: loaded */
};

/* Each GPU is loaded once. A pointer from it lasts until the next gpu_shelf_take. */
struct gpu_shelf {
    struct arena *arena;
    const char *const *data_folders;
    struct loaded_gpu *items;
    int32_t count, capacity;
};

const struct loaded_gpu *gpu_shelf_take(struct gpu_shelf *shelf, const char *word);
void gpu_shelf_release(struct gpu_shelf *shelf);

struct validate_exclusions {
    struct validate_exclusion *items;
    int32_t count, capacity;
};

/* One more row of this reason. */
void exclusion_count(struct arena *arena, struct validate_exclusions *list, const char *reason);

/* ---- scores ------------------------------------------------------------------------------- */

struct validate_score score_of(struct arena *arena, const double *errors, int32_t count);
/* Fills scores, groups, exclusions, and sorts the rows. */
void validation_score(struct arena *arena, struct validation *validation);

#endif
