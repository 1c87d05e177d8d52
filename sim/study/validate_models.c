/* study/validate_models.c: see validate_models.h. */
#include "study/validate_models.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "cluster/cluster_config.h"
#include "model/model.h"
#include "study/validate_private.h"

static const char table_folder[] = "results/measured/models";
static const double ms = 1e-3;
/* Beyond these no error is a number that says anything. */
static const int64_t count_most = INT64_C(2147483648);
static const double ms_least = 1e-6, ms_most = 1e9;

enum {
    COLUMN_GPU,
    COLUMN_MODEL,
    COLUMN_MODE,
    COLUMN_SEQ,
    COLUMN_BATCH,
    COLUMN_TOTAL,
    COLUMN_FORWARD,
    COLUMN_BACKWARD,
    COLUMN_VARIANT,
    COLUMN_NUMBER
};
static const char *const column_names[COLUMN_NUMBER] = {
    "gpu",         "model",      "mode",          "seq",    "batch",
    "e2e_latency", "fw_latency", "bwall_latency", "variant"};

struct reading {
    struct arena *arena;
    struct diag *diag;
    struct model_validation *validation;
    struct gpu_shelf gpus;
    struct validate_exclusions excluded;
    const double *host_cost_s; /* by enum host_cost */
    int32_t columns[COLUMN_NUMBER];
};

const char *model_pass_name(enum model_pass pass)
{
    static const char *const names[] = {
        [MODEL_TOTAL] = "total", [MODEL_FORWARD] = "forward", [MODEL_BACKWARD] = "backward"};
    return names[pass];
}

/* ---- the prediction ----------------------------------------------------------------------- */

/* A pass as it is played; it starts with both clocks at 0. */
struct pass_clock {
    const struct gpu *gpu;
    double issue_s; /* of one kernel */
    double host_s, gpu_s, busy_s;
};

static void play_kernel(struct pass_clock *clock, const struct kernel *kernel)
{
    double seconds = gpu_kernel_s(clock->gpu, kernel, 1, NULL);
    if (kernel->kind != KERNEL_GIVEN)
        seconds += clock->gpu->launch_gap_s;
    clock->host_s += clock->issue_s;
    clock->gpu_s = fmax(clock->gpu_s, clock->host_s) + seconds;
    clock->busy_s += seconds;
}

static void play_list(struct pass_clock *clock, const struct kernel_list *list)
{
    for (int32_t i = 0; i < list->count; i++)
        play_kernel(clock, &list->items[i]);
}

/* The gradients of a module are added to those that stand: two tensors read, one written. */
static void play_accumulation(struct pass_clock *clock, const struct module_kind *kind)
{
    for (int32_t i = 0; i < kind->param_count; i++) {
        const double numel = (double)kind->params[i].dim0 * (double)kind->params[i].rest;
        const struct kernel add = {.name = "accumulate_grad",
                                   .kind = KERNEL_ELEMENTWISE,
                                   .dtype = DTYPE_FP32,
                                   .bytes = 3.0 * (double)dtype_bytes(DTYPE_FP32) * numel};
        play_kernel(clock, &add);
    }
}

static void predict(const struct reading *reading, const struct gpu *gpu, const struct model *model,
                    struct model_row *row)
{
    struct pass_clock forward = {.gpu = gpu, .issue_s = reading->host_cost_s[HOST_KERNEL]};
    struct pass_clock backward = {.gpu = gpu,
                                  .issue_s = reading->host_cost_s[HOST_KERNEL_BACKWARD]};
    if (model == NULL)
        BUG("row '%s' has no model", row->model);
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct module_kind *kind = &model->kinds[model->modules[i].kind_idx];
        if (kind->role != MODULE_LOSS)
            play_list(&forward, &kind->forward);
    }
    for (int32_t i = model->module_count - 1; i >= 0; i--) {
        const struct module_kind *kind = &model->kinds[model->modules[i].kind_idx];
        play_list(&backward, &kind->backward);
        play_accumulation(&backward, kind);
    }
    row->pairs[MODEL_FORWARD].predicted = forward.gpu_s;
    row->pairs[MODEL_BACKWARD].predicted = backward.gpu_s;
    row->pairs[MODEL_TOTAL].predicted = forward.gpu_s + backward.gpu_s;
    row->starved_frac = 1 - (forward.busy_s + backward.busy_s) / row->pairs[MODEL_TOTAL].predicted;
}

/* ---- models and the host ------------------------------------------------------------------ */

static const char *model_path(const struct reading *reading, const char *name)
{
    static const struct {
        const char *folder, *ending;
    } places[] = {{table_folder, "json"}, {"models", "yaml"}, {"models", "json"}};
    const char *path = NULL;
    if (strchr(name, '/') != NULL)
        return name;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && path == NULL; i++)
        path = data_path(reading->arena, reading->gpus.data_folders, places[i].folder,
                         arena_printf(reading->arena, "%s.%s", name, places[i].ending));
    return path;
}

/* The first error of a model that cannot be built, without its place. */
static const char *first_error(const struct diag *diag)
{
    const struct diag_message *error = diag_first_error(diag);
    return error != NULL ? error->text : "it cannot be built";
}

/* NULL when it was built, else why not. */
static const char *model_make(const struct reading *reading, const struct model_row *row,
                              struct model **model)
{
    struct arena *arena = reading->arena;
    const char *path = model_path(reading, row->model);
    if (path == NULL)
        return arena_printf(arena, "no model file of the name '%s'", row->model);
    struct config config;
    struct diag *diag = ARENA_NEW(arena, struct diag);
    struct model_config *bound = NULL;
    const struct train_shape shape = {.seq_len = row->seq_len,
                                      .micro_batch = row->batch,
                                      .compute_dtype = DTYPE_FP32,
                                      .attention = ATTENTION_EAGER};
    diag_init(diag, arena);
    config_init(&config, arena, diag, reading->gpus.data_folders);
    enum status status = config_load(&config, path);
    const struct field_table *table =
        status == STATUS_OK ? model_choose_table(config.root, diag) : NULL;
    if (table == NULL)
        return arena_printf(arena, "'%s': %s", row->model, first_error(diag));
    bound = arena_alloc(arena, table->struct_bytes);
    status = config_bind(&config, table, bound);
    if (status == STATUS_OK)
        status = model_build(arena, bound, &shape, model, diag);
    return status == STATUS_OK ? NULL
                               : arena_printf(arena, "'%s': %s", row->model, first_error(diag));
}

/* What the host thread costs: of the machine that the header names. */
static enum status host_load(struct reading *reading)
{
    struct arena *arena = reading->arena;
    struct config config;
    struct cluster_config *bound = ARENA_NEW(arena, struct cluster_config);
    const char *path = data_path(arena, reading->gpus.data_folders, "topologies", "dgx-h100.yaml");
    config_init(&config, arena, reading->diag, reading->gpus.data_folders);
    enum status status = config_load(&config, path ? path : "topologies/dgx-h100.yaml");
    if (status == STATUS_OK)
        status = config_bind(&config, &cluster_table, bound);
    if (status != STATUS_OK)
        return status;
    double *costs = ARENA_ARRAY(arena, double, HOST_COST_COUNT);
    for (int i = 0; i < HOST_COST_COUNT; i++)
        costs[i] = bound->host.cpu.cost[i].time_s;
    reading->host_cost_s = costs;
    return STATUS_OK;
}

/* ---- rows --------------------------------------------------------------------------------- */

static const char *cell_text(const struct reading *reading, const struct csv_row *row, int column)
{
    int32_t at = reading->columns[column];
    return at < 0 ? "" : row->items[at].text;
}

static enum status complain(struct reading *reading, const struct csv_row *row, int column,
                            const char *what)
{
    diag_add(reading->diag, DIAG_ERROR, row->items[reading->columns[column]].place, NULL, "'%s' %s",
             column_names[column], what);
    return STATUS_INPUT;
}

static enum status read_count(struct reading *reading, const struct csv_row *row, int column,
                              int64_t *value)
{
    if (!text_to_int64(cell_text(reading, row, column), value) || *value < 1)
        return complain(reading, row, column, "is not a count of at least 1");
    if (*value > count_most)
        return complain(reading, row, column, "is more than 2147483648");
    return STATUS_OK;
}

/* Milliseconds; empty and 0 are "not stated", which is NaN. */
static enum status read_ms(struct reading *reading, const struct csv_row *row, int column,
                           double *seconds)
{
    const char *text = cell_text(reading, row, column);
    double value = 0;
    *seconds = (double)NAN;
    if (text[0] != '\0' && (!text_to_double(text, &value) || !isfinite(value) || value < 0))
        return complain(reading, row, column, "is not a number of at least 0");
    if (value > 0 && (value < ms_least || value > ms_most))
        return complain(reading, row, column, "must be from 1e-06 to 1e+09");
    if (value > 0)
        *seconds = value * ms;
    return STATUS_OK;
}

static enum status read_row(struct reading *reading, const struct csv_row *from,
                            struct model_row *row)
{
    *row = (struct model_row){.line = from->items[0].place.line,
                              .gpu = cell_text(reading, from, COLUMN_GPU),
                              .model = cell_text(reading, from, COLUMN_MODEL)};
    struct validate_pair *pairs = row->pairs;
    enum status status = read_count(reading, from, COLUMN_SEQ, &row->seq_len);
    if (status == STATUS_OK)
        status = read_count(reading, from, COLUMN_BATCH, &row->batch);
    if (status == STATUS_OK)
        status = read_ms(reading, from, COLUMN_TOTAL, &pairs[MODEL_TOTAL].measured);
    if (status == STATUS_OK)
        status = read_ms(reading, from, COLUMN_FORWARD, &pairs[MODEL_FORWARD].measured);
    if (status == STATUS_OK)
        status = read_ms(reading, from, COLUMN_BACKWARD, &pairs[MODEL_BACKWARD].measured);
    if (status == STATUS_OK && isnan(pairs[MODEL_TOTAL].measured))
        status = complain(reading, from, COLUMN_TOTAL, "must be more than 0");
    for (int i = 0; i < MODEL_PASS_COUNT; i++)
        pairs[i].predicted = pairs[i].error = (double)NAN;
    return status;
}

/* Why the row's words put it out of scope, NULL: they do not. */
static const char *out_of_scope(const struct reading *reading, const struct csv_row *from)
{
    const char *mode = cell_text(reading, from, COLUMN_MODE);
    const char *variant = cell_text(reading, from, COLUMN_VARIANT);
    if (!text_equal(mode, "train"))
        return arena_printf(reading->arena, "mode '%s', not 'train'", mode);
    if (variant[0] != '\0')
        return arena_printf(reading->arena, "variant '%s', not one GPU in eager mode", variant);
    return NULL;
}

static void row_predict(struct reading *reading, struct model_row *row)
{
    struct model *model = NULL;
    const struct loaded_gpu *loaded = gpu_shelf_take(&reading->gpus, row->gpu);
    row->reason = loaded->problem;
    if (row->reason == NULL && loaded->gpu.peak_flop_per_s[DTYPE_FP32] <= 0)
        row->reason = arena_printf(reading->arena, "'%s' has no peak for fp32", loaded->gpu.name);
    if (row->reason == NULL)
        row->reason = model_make(reading, row, &model);
    if (row->reason != NULL)
        return;
    row->gpu = loaded->gpu.name;
    predict(reading, &loaded->gpu, model, row);
    for (int i = 0; i < MODEL_PASS_COUNT; i++)
        row->pairs[i].error = row->pairs[i].predicted / row->pairs[i].measured - 1;
}

static enum status take_row(struct reading *reading, const struct csv_row *from)
{
    struct model_row *row = ARENA_PUSH(reading->arena, &reading->validation->rows);
    const enum status status = read_row(reading, from, row);
    if (status != STATUS_OK)
        return status;
    row->reason = out_of_scope(reading, from);
    if (row->reason == NULL)
        row_predict(reading, row);
    if (row->reason != NULL)
        exclusion_count(reading->arena, &reading->excluded, row->reason);
    else
        reading->validation->in_scope++;
    return STATUS_OK;
}

static enum status take_file(struct reading *reading, const char *path)
{
    struct csv_table table = {0};
    enum status status = csv_load(reading->arena, path, &table, reading->diag);
    if (status == STATUS_OK)
        status = csv_columns(&table, column_names, COLUMN_NUMBER, COLUMN_TOTAL + 1,
                             reading->columns, reading->diag);
    for (int32_t i = 0; i < table.rows.count && status == STATUS_OK; i++)
        status = take_row(reading, &table.rows.items[i]);
    return status;
}

/* ---- groups ------------------------------------------------------------------------------- */

/* The rows in scope whose GPU or model is `name` (NULL: all). */
static void group_score(const struct reading *reading, const char *name, bool is_by_gpu,
                        struct model_group *group)
{
    const struct model_validation *validation = reading->validation;
    double *errors = ARENA_ARRAY(reading->arena, double, validation->rows.count + 1);
    group->name = name;
    for (int pass = 0; pass < MODEL_PASS_COUNT; pass++) {
        int32_t count = 0;
        group->rows = 0;
        for (int32_t i = 0; i < validation->rows.count; i++) {
            const struct model_row *row = &validation->rows.items[i];
            if (row->reason != NULL ||
                (name != NULL && !text_equal(is_by_gpu ? row->gpu : row->model, name)))
                continue;
            group->rows++;
            if (!isnan(row->pairs[pass].error))
                errors[count++] = row->pairs[pass].error;
        }
        group->scores[pass] = score_of(reading->arena, errors, count);
    }
}

static void groups_make(const struct reading *reading, bool is_by_gpu, struct model_groups *groups)
{
    const struct model_validation *validation = reading->validation;
    for (int32_t i = 0; i < validation->rows.count; i++) {
        const struct model_row *row = &validation->rows.items[i];
        const char *name = is_by_gpu ? row->gpu : row->model;
        bool is_known = row->reason != NULL;
        for (int32_t k = 0; k < groups->count && !is_known; k++)
            is_known = text_equal(groups->items[k].name, name);
        if (!is_known)
            group_score(reading, name, is_by_gpu, ARENA_PUSH(reading->arena, groups));
    }
}

enum status model_validation_run(struct arena *arena, const char *csv_path,
                                 struct model_validation *validation, struct diag *diag)
{
    struct reading reading = {.arena = arena,
                              .diag = diag,
                              .gpus = {.arena = arena, .data_folders = data_folders_find(arena)},
                              .validation = validation};
    *validation = (struct model_validation){.median_goal = 0.15};
    const char *path =
        csv_path ? csv_path
                 : data_path(arena, reading.gpus.data_folders, table_folder, "neusight.csv");
    enum status status = host_load(&reading);
    if (status == STATUS_OK)
        status = take_file(&reading, path ? path : "results/measured/models/neusight.csv");
    gpu_shelf_release(&reading.gpus);
    if (status != STATUS_OK)
        return status;
    group_score(&reading, NULL, true, &validation->all);
    groups_make(&reading, true, &validation->by_gpu);
    groups_make(&reading, false, &validation->by_model);
    validation->exclusions.items = reading.excluded.items;
    validation->exclusions.count = reading.excluded.count;
    return STATUS_OK;
}
