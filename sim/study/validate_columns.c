/* study/validate_columns.c: a CSV of published runs → rows with checked numbers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "study/validate_private.h"

const struct measured_column measured_columns[] = {
    {"id", COLUMN_TEXT, false, false},
    {"source", COLUMN_TEXT, false, false},
    {"url_or_repo_path", COLUMN_TEXT, false, false},
    {"date_version", COLUMN_DATE, false, false},
    {"framework", COLUMN_TEXT, false, false},
    {"model_name", COLUMN_TEXT, false, false},
    {"n_params", COLUMN_COUNT_KIND, false, false},
    {"n_layers", COLUMN_COUNT_KIND, false, false},
    {"d_model", COLUMN_COUNT_KIND, false, false},
    {"n_heads", COLUMN_COUNT_KIND, false, false},
    {"n_kv_heads", COLUMN_COUNT_KIND, false, false},
    {"d_ff", COLUMN_COUNT_KIND, false, false},
    {"ffn_type", COLUMN_TEXT, false, false},
    {"vocab", COLUMN_COUNT_KIND, false, false},
    {"seq_len", COLUMN_COUNT_KIND, true, false},
    {"microbatch_per_gpu", COLUMN_COUNT_KIND, true, false},
    {"grad_accum", COLUMN_COUNT_KIND, false, false},
    {"global_batch", COLUMN_COUNT_KIND, false, false},
    {"gpu", COLUMN_TEXT, true, false},
    {"n_gpus", COLUMN_COUNT_KIND, true, false},
    {"gpus_per_node", COLUMN_COUNT_KIND, false, false},
    {"intra_link", COLUMN_TEXT, false, false},
    {"inter_link", COLUMN_TEXT, false, false},
    {"dtype", COLUMN_TEXT, false, false},
    {"reduce_dtype", COLUMN_TEXT, false, false},
    {"float8", COLUMN_TEXT, false, false},
    {"compile", COLUMN_TEXT, false, false},
    {"attention_impl", COLUMN_TEXT, false, false},
    {"sharding", COLUMN_TEXT, false, false},
    {"tp", COLUMN_COUNT_KIND, false, false},
    {"pp", COLUMN_COUNT_KIND, false, false},
    {"cp", COLUMN_COUNT_KIND, false, false},
    {"activation_checkpoint", COLUMN_TEXT, false, false},
    {"cpu_offload", COLUMN_TEXT, false, false},
    {"tokens_per_s_per_gpu", COLUMN_REAL, false, false},
    {"step_time_s", COLUMN_REAL, false, false},
    {"tflops_per_gpu", COLUMN_REAL, false, false},
    {"mfu_pct", COLUMN_REAL, false, false},
    {"hfu_pct", COLUMN_REAL, false, false},
    {"peak_mem_gib", COLUMN_REAL, false, false},
    {"notes", COLUMN_TEXT, false, false},
    {"trust", COLUMN_TEXT, false, false},
    {"use", COLUMN_TEXT, false, false},
    {"nodes", COLUMN_COUNT_KIND, false, true},
    {"node_gpus", COLUMN_COUNT_KIND, false, true},
    {"nic_count", COLUMN_COUNT_KIND, false, true},
    {"nic_bandwidth", COLUMN_TEXT, false, true},
    {"head_dim", COLUMN_COUNT_KIND, false, true},
    {"ffn_ratio", COLUMN_COUNT_KIND, false, true},
    {"experts", COLUMN_COUNT_KIND, false, true},
    {"top_k", COLUMN_COUNT_KIND, false, true},
    {"accum", COLUMN_COUNT_KIND, false, true},
    {"batch_conflict", COLUMN_TEXT, false, true},
    {0}};

_Static_assert(sizeof(measured_columns) / sizeof(measured_columns[0]) <= MEASURED_COLUMN_MAX,
               "measured_row holds them all");

int32_t measured_column_find(const char *name)
{
    for (int32_t k = 0; measured_columns[k].name != NULL; k++)
        if (strcmp(measured_columns[k].name, name) == 0)
            return k;
    return -1;
}

const char *measured_text(const struct measured_row *row, const char *column)
{
    const int32_t k = measured_column_find(column);
    BUG_IF(k < 0);
    return row->values[k];
}

int64_t measured_count(const struct measured_row *row, const char *column)
{
    int64_t value = 0;
    return text_to_int64(measured_text(row, column), &value) ? value : 0;
}

double measured_real(const struct measured_row *row, const char *column)
{
    double value = 0.0;
    return text_to_double(measured_text(row, column), &value) ? value : (double)NAN;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* Wider than any run, narrow enough that no ratio of two figures leaves a double. */
static void column_range(const struct measured_column *column, double *least, double *most)
{
    static const struct {
        const char *name;
        double least, most;
    } ranges[] = {{"n_params", 1.0, 1e15},
                  {"tokens_per_s_per_gpu", 1e-3, 1e9},
                  {"step_time_s", 1e-6, 1e6},
                  {"peak_mem_gib", 1e-3, 1e5}};
    *least = column->kind == COLUMN_COUNT_KIND ? 1.0 : 1e-6;
    *most = column->kind == COLUMN_COUNT_KIND ? 2147483648.0 : 1e9;
    for (size_t k = 0; k < sizeof(ranges) / sizeof(ranges[0]); k++)
        if (strcmp(ranges[k].name, column->name) == 0) {
            *least = ranges[k].least;
            *most = ranges[k].most;
        }
}

static void check_range(const struct measured_column *column, const struct csv_cell *cell,
                        double value, struct diag *diag)
{
    double least = 0.0, most = 0.0;
    column_range(column, &least, &most);
    if (value < least || value > most)
        diag_add(diag, DIAG_ERROR, cell->place, "leave the cell empty when the source does not say",
                 "'%s' must be from %.10g to %.10g, not '%s'", column->name, least, most,
                 cell->text);
}

static void check_cell(const struct measured_column *column, const struct csv_cell *cell,
                       struct diag *diag)
{
    int64_t count = 0;
    double real = 0.0;
    if (cell->text[0] == '\0' || column->kind == COLUMN_TEXT || column->kind == COLUMN_DATE)
        return;
    const bool is_count = column->kind == COLUMN_COUNT_KIND;
    if (is_count ? text_to_int64(cell->text, &count) && count >= 1
                 : text_to_double(cell->text, &real) && real > 0.0) {
        check_range(column, cell, is_count ? (double)count : real, diag);
        return;
    }
    diag_add(diag, DIAG_ERROR, cell->place, "leave the cell empty when the source does not say",
             "'%s' must be %s, not '%s'", column->name,
             is_count ? "a whole number of at least 1" : "a number above 0", cell->text);
}

static bool has_measurement(const struct csv_table *csv)
{
    return csv_column(csv, "step_time_s") >= 0 || csv_column(csv, "tokens_per_s_per_gpu") >= 0 ||
           csv_column(csv, "peak_mem_gib") >= 0;
}

/* "a, b" and "c" → "a, b, c"; NULL and "c" → "c" */
static const char *listed(struct arena *arena, const char *list, const char *name)
{
    return list == NULL ? name : arena_printf(arena, "%s, %s", list, name);
}

static void check_missing(struct arena *arena, const struct csv_table *csv, struct diag *diag)
{
    const struct place place = csv->header.items[0].place;
    const char *missing = NULL;
    for (int32_t k = 0; measured_columns[k].name != NULL; k++)
        if (measured_columns[k].is_required && csv_column(csv, measured_columns[k].name) < 0)
            missing = listed(arena, missing, measured_columns[k].name);
    if (missing != NULL)
        diag_add(diag, DIAG_ERROR, place, "results/measured/README.md says what each holds",
                 "missing columns: %s", missing);
    if (!has_measurement(csv))
        diag_add(diag, DIAG_ERROR, place, "step_time_s, tokens_per_s_per_gpu or peak_mem_gib",
                 "no column with a measurement");
}

static void check_unknown(struct arena *arena, const struct csv_table *csv, struct diag *diag)
{
    const char *unknown = NULL;
    struct place first = NO_PLACE;
    for (int32_t k = 0; k < csv->header.count; k++) {
        const struct csv_cell *cell = &csv->header.items[k];
        const int32_t column = measured_column_find(cell->text);
        if (column >= 0 && !measured_columns[column].is_derived)
            continue;
        first = unknown == NULL ? cell->place : first;
        unknown = listed(arena, unknown, cell->text);
    }
    if (unknown != NULL)
        diag_add(diag, DIAG_WARNING, first, NULL, "columns that are not used: %s", unknown);
}

static void take_row(const struct csv_table *csv, const struct csv_row *cells,
                     struct measured_row *row, struct diag *diag)
{
    row->place = cells->items[0].place;
    for (int32_t k = 0; measured_columns[k].name != NULL; k++) {
        const int32_t at =
            measured_columns[k].is_derived ? -1 : csv_column(csv, measured_columns[k].name);
        row->values[k] = "";
        if (at < 0)
            continue;
        row->values[k] = cells->items[at].text;
        row->places[k] = cells->items[at].place;
        check_cell(&measured_columns[k], &cells->items[at], diag);
    }
}

enum status measured_load(struct arena *arena, const char *path, struct measured_table *table,
                          struct diag *diag)
{
    struct csv_table csv = {0};
    const int32_t errors_before = diag->error_count;
    const enum status status = csv_load(arena, path, &csv, diag);
    if (status != STATUS_OK)
        return status;
    check_missing(arena, &csv, diag);
    check_unknown(arena, &csv, diag);
    if (diag->error_count != errors_before)
        return STATUS_INPUT;
    for (int32_t k = 0; k < csv.rows.count; k++) {
        struct measured_row *row = ARENA_PUSH(arena, &table->rows);
        take_row(&csv, &csv.rows.items[k], row, diag);
        if (diag->error_count == errors_before) /* products of figures out of range overflow */
            measured_derive(arena, row);
    }
    return diag->error_count == errors_before ? STATUS_OK : STATUS_INPUT;
}

/* ---- derived columns ---------------------------------------------------------------------- */

static void put_text(struct measured_row *row, const char *column, const char *value)
{
    row->values[measured_column_find(column)] = value;
}

static void put_count(struct arena *arena, struct measured_row *row, const char *column,
                      int64_t value)
{
    if (value > 0)
        put_text(row, column, arena_printf(arena, "%" PRId64, value));
}

/* A host count only where the GPUs fill their hosts evenly. */
static void derive_hosts(struct arena *arena, struct measured_row *row)
{
    const int64_t gpus = measured_count(row, "n_gpus");
    int64_t per_node = measured_count(row, "gpus_per_node");
    if (per_node == 0)
        per_node = 8;
    if (gpus == 0)
        return;
    if (gpus <= per_node) {
        put_count(arena, row, "nodes", 1);
        put_count(arena, row, "node_gpus", gpus);
    } else if (gpus % per_node == 0) {
        put_count(arena, row, "nodes", gpus / per_node);
        put_count(arena, row, "node_gpus", per_node);
    }
}

/* Digits with a point that end just before `stop`; NULL: none. */
static const char *number_before(const char *text, const char *stop)
{
    while (stop > text && stop[-1] == ' ')
        stop--;
    const char *start = stop;
    while (start > text && ((start[-1] >= '0' && start[-1] <= '9') || start[-1] == '.'))
        start--;
    return start < stop ? start : NULL;
}

static double number_at(struct arena *arena, const char *start)
{
    double value = 0.0;
    const size_t length = strspn(start, "0123456789.");
    return text_to_double(arena_strndup(arena, start, length), &value) ? value : 0.0;
}

/*
 * "4x100 Gb/s per node", "8 x 400 Gb/s": NICs and the rate of each. "1600 Gb/s per node": a NIC for
 * each GPU, which share it. "400 Gb/s per GPU": a NIC for each GPU. Otherwise ("10 Gb/s NIC", "3.19
 * GB/s aggregate") one NIC.
 */
static void derive_network(struct arena *arena, struct measured_row *row)
{
    const char *text = measured_text(row, "inter_link");
    const char *bits = strstr(text, "Gb/s"), *bytes = strstr(text, "GB/s");
    const char *unit = bits != NULL && (bytes == NULL || bits < bytes) ? bits : bytes;
    const char *rate = unit != NULL ? number_before(text, unit) : NULL;
    if (rate == NULL)
        return;
    double value = number_at(arena, rate);
    int64_t count = 1;
    const char *times = rate;
    while (times > text && times[-1] == ' ')
        times--;
    const char *factor = times > text && times[-1] == 'x' ? number_before(text, times - 1) : NULL;
    int64_t per_node = measured_count(row, "gpus_per_node");
    per_node = per_node > 0 ? per_node : 8;
    if (factor != NULL) {
        count = (int64_t)fmin(number_at(arena, factor), 1e6);
    } else if (strstr(unit, "per GPU") != NULL) {
        count = per_node;
    } else if (unit == bits && strstr(unit, "per node") != NULL) {
        count = per_node;
        value /= (double)per_node;
    }
    if (count < 1 || value <= 0.0)
        return;
    put_count(arena, row, "nic_count", count);
    put_text(row, "nic_bandwidth",
             arena_printf(arena, "%.15g %s", value, unit == bits ? "Gb/s" : "GB/s"));
}

/* Digits up to `stop`; what follows it, NULL when they are not a count of at least 1. */
static const char *take_count(struct arena *arena, const char *text, const char *stop,
                              int64_t *count)
{
    const size_t digits = strspn(text, "0123456789"), length = strlen(stop);
    const bool is_count = text_to_int64(arena_strndup(arena, text, digits), count) && *count >= 1;
    return is_count && strncmp(text + digits, stop, length) == 0 ? text + digits + length : NULL;
}

/* Both or neither: half of "gated-moe-8e-top2" is not a network. */
static void derive_experts(struct arena *arena, struct measured_row *row)
{
    static const char prefix[] = "gated-moe-";
    const char *text = measured_text(row, "ffn_type");
    int64_t experts = 0, top_k = 0;
    if (strncmp(text, prefix, sizeof(prefix) - 1) != 0)
        return;
    const char *rest = take_count(arena, text + sizeof(prefix) - 1, "e-top", &experts);
    rest = rest != NULL ? take_count(arena, rest, "", &top_k) : NULL;
    if (rest == NULL || *rest != '\0' || top_k > experts)
        return;
    put_count(arena, row, "experts", experts);
    put_count(arena, row, "top_k", top_k);
}

static void derive_accumulation(struct arena *arena, struct measured_row *row)
{
    const int64_t given = measured_count(row, "grad_accum");
    const int64_t batch = measured_count(row, "global_batch");
    int64_t ways = measured_count(row, "n_gpus") * measured_count(row, "microbatch_per_gpu");
    for (int k = 0; k < 3; k++) {
        const int64_t split = measured_count(row, (const char *const[]){"tp", "pp", "cp"}[k]);
        if (split > 1)
            ways /= split;
    }
    const double asked = (double)given * (double)ways;
    const bool is_other =
        given > 0 ? fabs(asked / (double)batch - 1.0) > 1e-9 : ways > 0 && batch % ways != 0;
    if (batch > 0 && ways > 0 && is_other)
        put_text(row, "batch_conflict", "yes");
    if (given > 0)
        put_count(arena, row, "accum", given);
    else if (batch > 0 && ways > 0 && batch % ways == 0)
        put_count(arena, row, "accum", batch / ways);
}

void measured_derive(struct arena *arena, struct measured_row *row)
{
    const int64_t width = measured_count(row, "d_model");
    const int64_t heads = measured_count(row, "n_heads");
    const int64_t ffn = measured_count(row, "d_ff");
    derive_hosts(arena, row);
    derive_network(arena, row);
    derive_experts(arena, row);
    derive_accumulation(arena, row);
    if (heads > 0 && width % heads == 0)
        put_count(arena, row, "head_dim", width / heads);
    if (width > 0 && ffn % width == 0)
        put_count(arena, row, "ffn_ratio", ffn / width);
}
