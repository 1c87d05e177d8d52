/* report/report_calibrate.c: see report_calibrate.h. */
#include "report/report_calibrate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/units.h"
#include "report/json_writer.h"
#include "report/report_table_private.h"

/* Marks: what `calibrate_warn` speaks of. */
static const double spread_share = 0.10; /* of error bars, half width */

static const char *said(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

/* ---- text --------------------------------------------------------------------------------- */

static void write_head(const struct calibrate_fit *fit, struct arena *arena, FILE *file)
{
    const struct calibration_table *table = &fit->table;
    char text[32];
    fprintf(file, "%s over %" PRId64 " x %" PRId64 " GPUs", collective_op_name(table->op),
            table->nodes, table->gpus_per_node);
    if (fit->sources[0]->device != NULL)
        fprintf(file, " (%s)", text_shown(arena, fit->sources[0]->device));
    fprintf(file, ", algorithm %s, protocol %s\n",
            text_shown(arena, said(table->algorithm, "of NCCL's choice")),
            text_shown(arena, said(table->protocol, "of NCCL's choice")));
    fprintf(file, "  from");
    for (int32_t i = 0; i < fit->source_count; i++)
        fprintf(file, "%s %s", i > 0 ? "," : "", text_shown(arena, fit->sources[i]->name));
    fprintf(file, "\n  best busbw %s",
            format_bandwidth(text, sizeof(text), fit->best_busbw_bytes_per_s));
    fprintf(file, " at %s", format_gib(text, sizeof(text), fit->best_at_bytes));
    fprintf(file, ", floor %s\n", format_seconds(text, sizeof(text), table->floor_s));
}

/* "latency 28.8 us ± 0.7, 8.45 GB/s ± 0.1 up to 4 MiB, then 35.9 GB/s" (bandwidth of algbw). */
static void write_pieces(const struct pieces *pieces, FILE *file)
{
    char text[32];
    fprintf(file, "  latency %s", format_seconds(text, sizeof(text), pieces->a));
    fprintf(file, " +- %s", format_seconds(text, sizeof(text), pieces->a_error));
    if (pieces->b > 0) {
        fprintf(file, ", algbw %s", format_bandwidth(text, sizeof(text), 1 / pieces->b));
        fprintf(file, " +- %.1f %%", 100 * pieces->b_error / pieces->b);
    }
    if (pieces->c != 0) {
        fprintf(file, " up to %s", format_gib(text, sizeof(text), pieces->k));
        if (pieces->b + pieces->c > 0)
            fprintf(file, ", then %s",
                    format_bandwidth(text, sizeof(text), 1 / (pieces->b + pieces->c)));
    }
    fputc('\n', file);
}

static void percent(char *text, size_t size, double share)
{
    if (isnan(share))
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%.1f %%", share * 100);
}

static void write_fit(const struct calibrate_fit *fit, FILE *file)
{
    char linear[32], log_log[32], repeat[32];
    percent(linear, sizeof(linear), fit->linear_left_out);
    percent(log_log, sizeof(log_log), fit->log_log_left_out);
    percent(repeat, sizeof(repeat), fit->repeat_err);
    fprintf(file,
            "  fit %s: left-out sizes are predicted within %s by linear pieces, %s by a log-log "
            "curve (medians)\n",
            calibration_fit_name(fit->table.fit), linear, log_log);
    if (fit->table.fit == CALIBRATION_LINEAR)
        write_pieces(&fit->pieces, file);
    fprintf(file,
            "  error of the fit: median %.1f %%, 90th percentile %.1f %%, largest %.1f %%; error "
            "bars of the data: %s\n",
            fit->median_err * 100, fit->p90_err * 100, fit->max_err * 100, repeat);
}

static void write_points(const struct calibrate_fit *fit, FILE *file)
{
    static const char *const heads[] = {"",      "size", "n",     "time",     "low", "high",
                                        "busbw", "fit",  "error", "left out", ""};
    const double factor =
        nccl_bus_factor(fit->table.op, fit->table.nodes * fit->table.gpus_per_node);
    char text[32];
    struct table table;
    table_init(&table, sizeof(heads) / sizeof(heads[0]), 1);
    table_row(&table);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        table_cell(&table, "%s", heads[i]);
    for (int32_t i = 0; i < fit->point_count; i++) {
        const struct calibrate_point *point = &fit->points[i];
        table_row(&table);
        table_cell(&table, " ");
        table_cell(&table, "%.0f", point->bytes);
        table_cell(&table, "%" PRId64, point->measured_count);
        table_cell(&table, "%s", format_seconds(text, sizeof(text), point->time_s));
        table_cell(&table, "%s", format_seconds(text, sizeof(text), point->low_s));
        table_cell(&table, "%s", format_seconds(text, sizeof(text), point->high_s));
        table_cell(&table, "%s",
                   format_bandwidth(text, sizeof(text), factor * point->bytes / point->time_s));
        table_cell(&table, "%s", format_seconds(text, sizeof(text), point->fit_s));
        table_cell(&table, "%+.1f %%", (point->fit_s / point->time_s - 1) * 100);
        if (isnan(point->left_out_s))
            table_cell(&table, "-");
        else
            table_cell(&table, "%+.1f %%", (point->left_out_s / point->time_s - 1) * 100);
        table_cell(&table, "%s%s", point->is_outlier ? "outlier " : "",
                   point->is_falling ? "falls" : "");
    }
    table_write(&table, file);
    table_release(&table);
}

void report_calibrate(const struct calibrate_set *set, FILE *file)
{
    struct arena arena = {0};
    for (int32_t i = 0; i < set->count; i++) {
        if (i > 0)
            fputc('\n', file);
        write_head(&set->items[i], &arena, file);
        write_fit(&set->items[i], file);
        write_points(&set->items[i], file);
    }
    arena_release(&arena);
}

/* ---- warnings ----------------------------------------------------------------------------- */

static void warn_point(const struct calibrate_point *point, const char *op, struct diag *diag)
{
    char text[32];
    format_gib(text, sizeof(text), point->bytes);
    if (point->is_outlier)
        diag_add(diag, DIAG_WARNING, point->place, "measure it again, with more iterations (-n)",
                 "%s of %s takes %.0f %% %s than its neighbours say", op, text,
                 fabs(point->time_s / point->left_out_s - 1) * 100,
                 point->time_s > point->left_out_s ? "more" : "less");
    if (point->is_falling)
        diag_add(diag, DIAG_WARNING, point->place,
                 "a switch of algorithm or protocol by size, or a disturbed run",
                 "%s of %s takes less time than a smaller size", op, text);
}

void calibrate_warn(const struct calibrate_set *set, struct diag *diag)
{
    for (int32_t i = 0; i < set->count; i++) {
        const struct calibrate_fit *fit = &set->items[i];
        const struct place place = fit->points[0].place;
        const char *op = collective_op_name(fit->table.op);
        for (int32_t k = 0; k < fit->point_count; k++)
            warn_point(&fit->points[k], op, diag);
        if (fit->point_count == 1)
            diag_add(diag, DIAG_WARNING, place,
                     "measure from a few KiB to a few GiB (-b 8 -e 8G -f 2)",
                     "%s: one size is no curve: its time is all that is known", op);
        if (fit->repeat_err > spread_share)
            diag_add(diag, DIAG_WARNING, place, "measure on idle nodes, with more iterations (-n)",
                     "%s: repeats and in-place times differ by +-%.0f %%", op,
                     fit->repeat_err * 100);
        if (fit->wrong_count > 0)
            diag_add(diag, DIAG_WARNING, place, "the machine computes wrong sums: do not use it",
                     "%s: rows with wrong results: %" PRId64, op, fit->wrong_count);
    }
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void number(struct json_writer *json, const char *key, double value)
{
    json_key(json, key);
    json_double(json, value);
}

static void integer(struct json_writer *json, const char *key, int64_t value)
{
    json_key(json, key);
    json_int(json, value);
}

static void text_value(struct json_writer *json, const char *key, const char *value)
{
    json_key(json, key);
    json_text(json, value);
}

static void json_points(struct json_writer *json, const struct calibrate_fit *fit)
{
    json_key(json, "points");
    json_begin_array(json);
    for (int32_t i = 0; i < fit->point_count; i++) {
        const struct calibrate_point *point = &fit->points[i];
        json_begin_object(json);
        number(json, "bytes", point->bytes);
        integer(json, "n", point->measured_count);
        number(json, "time_s", point->time_s);
        number(json, "low_s", point->low_s);
        number(json, "high_s", point->high_s);
        number(json, "fit_s", point->fit_s);
        number(json, "left_out_s", point->left_out_s);
        json_key(json, "is_outlier");
        json_bool(json, point->is_outlier);
        json_key(json, "is_falling");
        json_bool(json, point->is_falling);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_fit(struct json_writer *json, const struct calibrate_fit *fit)
{
    const struct calibration_table *table = &fit->table;
    json_begin_object(json);
    text_value(json, "op", collective_op_name(table->op));
    integer(json, "nodes", table->nodes);
    integer(json, "gpus_per_node", table->gpus_per_node);
    text_value(json, "algorithm", table->algorithm);
    text_value(json, "protocol", table->protocol);
    text_value(json, "device", fit->sources[0]->device);
    text_value(json, "nccl_version", fit->sources[0]->version);
    json_key(json, "sources");
    json_begin_array(json);
    for (int32_t i = 0; i < fit->source_count; i++)
        json_text(json, fit->sources[i]->name);
    json_end_array(json);
    text_value(json, "fit", calibration_fit_name(table->fit));
    number(json, "floor_s", table->floor_s);
    number(json, "median_err", fit->median_err);
    number(json, "p90_err", fit->p90_err);
    number(json, "max_err", fit->max_err);
    number(json, "left_out_err_linear", fit->linear_left_out);
    number(json, "left_out_err_log_log", fit->log_log_left_out);
    number(json, "repeat_err", fit->repeat_err);
    number(json, "best_busbw_bytes_per_s", fit->best_busbw_bytes_per_s);
    integer(json, "wrong_rows", fit->wrong_count);
    json_points(json, fit);
    json_end_object(json);
}

void report_calibrate_json(const struct calibrate_set *set, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    integer(&json, "schema_version", 1);
    json_key(&json, "fits");
    json_begin_array(&json);
    for (int32_t i = 0; i < set->count; i++)
        json_fit(&json, &set->items[i]);
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
}

/* ---- YAML --------------------------------------------------------------------------------- */

/* In single quotes, where nothing but the quote itself means anything; control characters, which
   YAML does not take, become '?'. */
static void write_quoted(const char *text, FILE *file)
{
    fputc('\'', file);
    for (; *text != '\0'; text++) {
        const size_t hidden = hidden_length(text, strlen(text));
        if (hidden > 0 || *text == '\t') {
            fputc('?', file);
            text += hidden > 0 ? hidden - 1 : 0;
        } else if (*text == '\'') {
            fputs("''", file);
        } else {
            fputc(*text, file);
        }
    }
    fputc('\'', file);
}

static void write_table(const struct calibrate_fit *fit, FILE *file)
{
    const struct calibration_table *table = &fit->table;
    char bytes[64];
    fprintf(file, "  - op: %s\n    nodes: %" PRId64 "\n    gpus_per_node: %" PRId64 "\n",
            collective_op_name(table->op), table->nodes, table->gpus_per_node);
    if (table->algorithm != NULL) {
        fputs("    algorithm: ", file);
        write_quoted(table->algorithm, file);
        fputc('\n', file);
    }
    if (table->protocol != NULL) {
        fputs("    protocol: ", file);
        write_quoted(table->protocol, file);
        fputc('\n', file);
    }
    fprintf(file, "    fit: %s\n    floor: %.6g us\n", calibration_fit_name(table->fit),
            table->floor_s * 1e6);
    fprintf(file, "    error: {median: %.4f, p90: %.4f, max: %.4f", fit->median_err, fit->p90_err,
            fit->max_err);
    const double left_out =
        table->fit == CALIBRATION_LINEAR ? fit->linear_left_out : fit->log_log_left_out;
    if (!isnan(left_out))
        fprintf(file, ", leave_one_out: %.4f", left_out);
    fprintf(file, ", repeat: %.4f}\n    source: ", fit->repeat_err);
    write_quoted(fit->sources[0]->name, file);
    fprintf(file, "\n    points:\n");
    for (int64_t i = 0; i < table->point_count; i++)
        fprintf(file, "      - {bytes: %s, time: %.6g us}\n",
                format_quantity(bytes, sizeof(bytes), table->points[i].bytes, DIM_BYTES),
                table->points[i].time_s * 1e6);
}

void calibrate_write_yaml(const struct calibrate_set *set, const char *name, FILE *file)
{
    fputs(
        "# Measured collectives, fitted by 'fsdpsim calibrate nccl'. A cluster file names it:\n"
        "#   collectives: {calibration: PATH, ...}\n"
        "# error: of the fit, as shares of the time; leave_one_out: of sizes predicted by a fit to "
        "the\n# others; repeat: half width of the data's error bars.\nversion: 1\nname: ",
        file);
    write_quoted(name, file);
    fputc('\n', file);
    if (set->items[0].sources[0]->device != NULL) {
        fputs("summary: ", file);
        write_quoted(set->items[0].sources[0]->device, file);
        fputc('\n', file);
    }
    fputs("tables:\n", file);
    for (int32_t i = 0; i < set->count; i++)
        write_table(&set->items[i], file);
}
