/* study/validate_kernels.c: rows of kernels → errors by cell. */
#include "study/validate_kernels.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "cluster/gemm_model.h"
#include "config/csv_table.h"
#include "study/validate_private.h"

static const double large_flop = 1e9;
static const int64_t cell_rows_least = 30;
static const double us_least = 1e-6; /* shorter ones are no measurement, and errors overflow */

enum {
    COLUMN_GPU,
    COLUMN_KERNEL,
    COLUMN_US,
    COLUMN_DTYPE,
    COLUMN_IMPL,
    COLUMN_PASS,
    COLUMN_CAUSAL,
    COLUMN_BATCH,
    COLUMN_M,
    COLUMN_N,
    COLUMN_K,
    COLUMN_BYTES,
    COLUMN_COPY_BYTES,
    COLUMN_COUNT
};
static const char *const column_names[COLUMN_COUNT + 1] = {
    "gpu",   "kernel", "us", "dtype", "impl",  "pass",      "causal",
    "batch", "m",      "n",  "k",     "bytes", "copy_bytes"};

static const char *const attention_words[ATTENTION_IMPL_COUNT + 1] = {
    [ATTENTION_FA2] = "fa2",    [ATTENTION_EAGER] = "eager",   [ATTENTION_FA1] = "fa1",
    [ATTENTION_FA3] = "fa3",    [ATTENTION_TRITON] = "triton", [ATTENTION_XFORMERS] = "xformers",
    [ATTENTION_CUDNN] = "cudnn"};
static const char *const impl_words[IMPL_COUNT + 1] = {[IMPL_EAGER] = "eager",
                                                       [IMPL_COMPOSITE] = "composite",
                                                       [IMPL_INDUCTOR] = "inductor",
                                                       [IMPL_HAND] = "hand"};
static const char *const pass_words[] = {
    [PASS_FORWARD] = "forward", [PASS_BACKWARD] = "backward", NULL};

/* What a run needs besides its result. */
struct reading {
    struct arena *arena;
    struct diag *diag;
    struct kernel_validation *validation;
    struct gpu_shelf gpus;
    struct validate_exclusions skipped;
    int32_t columns[COLUMN_COUNT]; /* of the file being read; -1: absent */
};

const char *kernel_verdict_name(enum kernel_verdict verdict)
{
    static const char *const names[] = {[KERNEL_REACHED] = "reached",
                                        [KERNEL_MISSED] = "missed",
                                        [KERNEL_ASSUMED] = "assumed",
                                        [KERNEL_NO_GOAL] = "-"};
    return names[verdict];
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
    int32_t at = reading->columns[column];
    struct place place = row->items[at < 0 ? 0 : at].place;
    diag_add(reading->diag, DIAG_ERROR, place, NULL, "'%s' %s", column_names[column], what);
    return STATUS_INPUT;
}

/* Wider than any kernel, narrow enough that no product of them leaves a double. */
static double most_of(int column)
{
    if (column == COLUMN_BYTES || column == COLUMN_COPY_BYTES)
        return 1e15;
    return column == COLUMN_US ? 1e9 : 2147483648.0;
}

static enum status read_number(struct reading *reading, const struct csv_row *row, int column,
                               double *value)
{
    const char *text = cell_text(reading, row, column);
    *value = 0;
    if (text[0] == '\0')
        return STATUS_OK;
    if (!text_to_double(text, value) || !(*value >= 0))
        return complain(reading, row, column, "is not a number of at least 0");
    if (*value > most_of(column))
        return complain(reading, row, column,
                        arena_printf(reading->arena, "is more than %.10g", most_of(column)));
    return STATUS_OK;
}

/* The index of the cell's word; an empty cell is 0. */
static enum status read_word(struct reading *reading, const struct csv_row *row, int column,
                             const char *const *words, int *index)
{
    const char *text = cell_text(reading, row, column);
    *index = 0;
    if (text[0] == '\0')
        return STATUS_OK;
    for (int i = 0; words[i] != NULL; i++) {
        *index = i;
        if (text_equal(words[i], text))
            return STATUS_OK;
    }
    return complain(reading, row, column, "is not a word known here");
}

static enum status read_words(struct reading *reading, const struct csv_row *row,
                              struct kernel *kernel)
{
    const char *kinds[KERNEL_KIND_COUNT + 1] = {0};
    const char *dtypes[DTYPE_COUNT + 1] = {0};
    int kind = 0;
    int dtype = 0;
    int impl = 0;
    int pass = 0;
    for (int i = 0; i < KERNEL_KIND_COUNT; i++)
        kinds[i] = kernel_kind_name((enum kernel_kind)i);
    for (int i = 0; i < DTYPE_COUNT; i++)
        dtypes[i] = dtype_name((enum dtype)i);
    enum status status = read_word(reading, row, COLUMN_KERNEL, kinds, &kind);
    if (status == STATUS_OK && kind == KERNEL_GIVEN)
        status = complain(reading, row, COLUMN_KERNEL, "has no prediction");
    if (status == STATUS_OK)
        status = read_word(reading, row, COLUMN_DTYPE, dtypes, &dtype);
    if (status == STATUS_OK)
        status = read_word(reading, row, COLUMN_IMPL,
                           kind == KERNEL_ATTENTION ? attention_words : impl_words, &impl);
    if (status == STATUS_OK)
        status = read_word(reading, row, COLUMN_PASS, pass_words, &pass);
    bool is_dtype_given = cell_text(reading, row, COLUMN_DTYPE)[0] != '\0';
    kernel->name = "kernel";
    kernel->kind = (enum kernel_kind)kind;
    kernel->dtype = is_dtype_given ? (enum dtype)dtype : DTYPE_BF16;
    kernel->pass = (enum kernel_pass)pass;
    if (kind == KERNEL_ATTENTION)
        kernel->attention = (enum attention_impl)impl;
    else
        kernel->impl = (enum kernel_impl)impl;
    return status;
}

/* FLOP of a matrix kernel, and its traffic where the row does not say. */
static void kernel_fill(struct kernel *kernel)
{
    double batch = (double)kernel->batch;
    double m = (double)kernel->m;
    double n = (double)kernel->n;
    double k = (double)kernel->k;
    double element = (double)dtype_bytes(kernel->dtype);
    double bytes = kernel->bytes;
    if (kernel->kind == KERNEL_GEMM) {
        kernel->flop = 2 * batch * m * n * k;
        bytes = batch * element * (m * k + n * k + m * n);
    } else if (kernel->kind == KERNEL_ATTENTION) {
        /* Backward reads and writes q, o, do, dq and k, v, dk, dv. */
        bool is_backward = kernel->pass == PASS_BACKWARD;
        kernel->flop =
            4 * batch * m * n * k * (is_backward ? 2.5 : 1) / (kernel->is_causal ? 2 : 1);
        bytes = batch * element * k * (m + n) * (is_backward ? 4 : 2);
    }
    if (kernel->bytes <= 0)
        kernel->bytes = bytes;
}

static enum status read_kernel(struct reading *reading, const struct csv_row *row,
                               struct kernel *kernel, double *us)
{
    static const int number_columns[] = {COLUMN_CAUSAL, COLUMN_BATCH, COLUMN_M, COLUMN_N,
                                         COLUMN_K,      COLUMN_BYTES, COLUMN_US};
    double values[COLUMN_COUNT] = {0};
    *kernel = (struct kernel){0};
    enum status status = read_words(reading, row, kernel);
    for (size_t i = 0; i < sizeof(number_columns) / sizeof(number_columns[0]); i++)
        if (status == STATUS_OK)
            status = read_number(reading, row, number_columns[i], &values[number_columns[i]]);
    if (status == STATUS_OK && values[COLUMN_US] <= 0)
        status = complain(reading, row, COLUMN_US, "must be more than 0");
    if (status == STATUS_OK && values[COLUMN_US] < us_least)
        status = complain(reading, row, COLUMN_US,
                          arena_printf(reading->arena, "is less than %g", us_least));
    if (status != STATUS_OK)
        return status;
    kernel->is_causal = values[COLUMN_CAUSAL] > 0;
    kernel->batch = (int64_t)fmax(values[COLUMN_BATCH], 1);
    kernel->m = (int64_t)values[COLUMN_M];
    kernel->n = (int64_t)values[COLUMN_N];
    kernel->k = (int64_t)values[COLUMN_K];
    kernel->bytes = values[COLUMN_BYTES];
    *us = values[COLUMN_US];
    bool is_matrix = kernel->kind == KERNEL_GEMM || kernel->kind == KERNEL_ATTENTION;
    if (is_matrix && (kernel->m < 1 || kernel->n < 1 || kernel->k < 1))
        return complain(reading, row, COLUMN_KERNEL, "needs m, n and k");
    kernel_fill(kernel);
    if (kernel->bytes <= 0)
        return complain(reading, row, COLUMN_KERNEL, "needs 'bytes'");
    return STATUS_OK;
}

/* ---- cells -------------------------------------------------------------------------------- */

static const char *cell_name(struct arena *arena, const struct kernel *kernel)
{
    const char *kind = kernel_kind_name(kernel->kind);
    const char *pass = kernel->pass == PASS_BACKWARD ? " backward" : "";
    if (kernel->kind == KERNEL_GEMM)
        return arena_printf(arena, "gemm %s%s, %s 1 GFLOP", dtype_name(kernel->dtype), pass,
                            kernel->flop >= large_flop ? "from" : "below");
    const char *impl = kernel->kind == KERNEL_ATTENTION ? attention_words[kernel->attention]
                                                        : impl_words[kernel->impl];
    return arena_printf(arena, "%s %s %s", kind, impl, pass_words[kernel->pass]);
}

static struct kernel_cell *cell_of(struct reading *reading, const struct gpu *gpu,
                                   const struct kernel *kernel)
{
    const char *what = cell_name(reading->arena, kernel);
    struct kernel_validation *validation = reading->validation;
    for (int32_t i = 0; i < validation->cells.count; i++) {
        struct kernel_cell *cell = &validation->cells.items[i];
        if (text_equal(cell->gpu, gpu->name) && text_equal(cell->what, what))
            return cell;
    }
    struct kernel_cell *cell = ARENA_PUSH(reading->arena, &validation->cells);
    bool is_gemm = kernel->kind == KERNEL_GEMM;
    bool is_small = is_gemm && kernel->flop < large_flop;
    double scatter =
        is_gemm && !is_small && gpu->gemm ? gemm_model_scatter(gpu->gemm, kernel->dtype) : 0;
    cell->gpu = gpu->name;
    cell->what = what;
    cell->scatter = scatter > 0 ? scatter : (double)NAN;
    cell->median_goal = is_small ? (double)NAN : is_gemm ? 0.05 : 0.10;
    cell->p90_goal = is_gemm && !is_small ? 0.15 : (double)NAN;
    return cell;
}

/* Benchmarks of inference engines time the write into the cache of keys and values as well. */
static double predicted_s(const struct gpu *gpu, const struct kernel *kernel, double copy_bytes)
{
    const struct kernel copy = {
        .name = "copy", .kind = KERNEL_COPY_IN, .dtype = kernel->dtype, .bytes = copy_bytes};
    return gpu_kernel_burst_s(gpu, kernel) +
           (copy_bytes > 0 ? gpu_kernel_burst_s(gpu, &copy) : 0.0);
}

static enum status take_row(struct reading *reading, const struct csv_row *row)
{
    struct kernel kernel;
    double us;
    double copy_bytes;
    enum status status = read_kernel(reading, row, &kernel, &us);
    if (status == STATUS_OK)
        status = read_number(reading, row, COLUMN_COPY_BYTES, &copy_bytes);
    if (status != STATUS_OK)
        return status;
    reading->validation->rows++;
    const struct loaded_gpu *loaded =
        gpu_shelf_take(&reading->gpus, cell_text(reading, row, COLUMN_GPU));
    if (loaded->problem) {
        exclusion_count(reading->arena, &reading->skipped, loaded->problem);
        return STATUS_OK;
    }
    if (kernel.flop > 0 && loaded->gpu.peak_flop_per_s[kernel.dtype] <= 0) {
        exclusion_count(reading->arena, &reading->skipped,
                        arena_printf(reading->arena, "'%s' has no peak for %s", loaded->gpu.name,
                                     dtype_name(kernel.dtype)));
        return STATUS_OK;
    }
    reading->validation->rows_used++;
    struct kernel_cell *cell = cell_of(reading, &loaded->gpu, &kernel);
    *ARENA_PUSH(reading->arena, &cell->errors) =
        predicted_s(&loaded->gpu, &kernel, copy_bytes) / (us * 1e-6) - 1;
    return STATUS_OK;
}

static void cell_judge(struct arena *arena, struct kernel_cell *cell)
{
    cell->score = score_of(arena, cell->errors.items, cell->errors.count);
    bool is_good = (isnan(cell->median_goal) || cell->score.median_abs_err <= cell->median_goal) &&
                   (isnan(cell->p90_goal) || cell->score.p90_abs_err <= cell->p90_goal);
    if (isnan(cell->median_goal))
        cell->verdict = KERNEL_NO_GOAL;
    else if (cell->score.n < cell_rows_least)
        cell->verdict = KERNEL_ASSUMED;
    else
        cell->verdict = is_good ? KERNEL_REACHED : KERNEL_MISSED;
}

/* ---- files -------------------------------------------------------------------------------- */

static enum status take_file(struct reading *reading, const char *path)
{
    struct csv_table table = {0};
    enum status status = csv_load(reading->arena, path, &table, reading->diag);
    if (status == STATUS_OK)
        status = csv_columns(&table, column_names, COLUMN_COUNT, COLUMN_US + 1, reading->columns,
                             reading->diag);
    for (int32_t i = 0; i < table.rows.count && status == STATUS_OK; i++)
        status = take_row(reading, &table.rows.items[i]);
    return status;
}

static enum status take_if_there(struct reading *reading, const char *file_name)
{
    const char *path = data_path(reading->arena, reading->gpus.data_folders,
                                 "results/measured/kernels", file_name);
    return path ? take_file(reading, path) : STATUS_OK;
}

static enum status take_hold_out(struct reading *reading)
{
    static const char *const kinds[] = {"gemm", "attention", "memory"};
    const char *const *names =
        data_names(reading->arena, reading->gpus.data_folders, "topologies/gpus");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (status == STATUS_OK)
            status = take_if_there(reading, arena_printf(reading->arena, "%s.csv", kinds[i]));
        for (int32_t k = 0; names[k] != NULL && status == STATUS_OK; k++)
            status = take_if_there(reading,
                                   arena_printf(reading->arena, "%s-%s.csv", kinds[i], names[k]));
    }
    return status;
}

enum status kernel_validation_run(struct arena *arena, const char *csv_path,
                                  struct kernel_validation *validation, struct diag *diag)
{
    struct reading reading = {.arena = arena,
                              .diag = diag,
                              .gpus = {.arena = arena, .data_folders = data_folders_find(arena)},
                              .validation = validation};
    *validation = (struct kernel_validation){0};
    enum status status = csv_path ? take_file(&reading, csv_path) : take_hold_out(&reading);
    gpu_shelf_release(&reading.gpus);
    for (int32_t i = 0; i < validation->cells.count; i++) {
        cell_judge(arena, &validation->cells.items[i]);
        validation->verdicts[validation->cells.items[i].verdict]++;
    }
    validation->skipped = reading.skipped.items;
    validation->skipped_count = reading.skipped.count;
    return status;
}
