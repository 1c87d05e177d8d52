/* report/report_models.c: see report_models.h. */
#include "report/report_models.h"

#include <math.h>
#include <stdbool.h>

#include "report/json_writer.h"

static void write_end(const struct model_validation *validation, FILE *file)
{
    const double median = validation->all.scores[MODEL_TOTAL].median_abs_err;
    fprintf(file,
            "\nScope: mode 'train', one GPU in eager mode, a GPU and a model that are listed.\n"
            "Goal: median of the total at most %.0f %%: %s.\n",
            validation->median_goal * 100,
            validation->in_scope == 0           ? "no row in scope"
            : median <= validation->median_goal ? "reached"
                                                : "missed");
    for (int32_t i = 0; i < validation->exclusions.count; i++)
        fprintf(file, "Out of scope, %lld rows: %s\n",
                (long long)validation->exclusions.items[i].rows,
                validation->exclusions.items[i].reason);
}

/* Of a table for people; `bar` is put behind. */
static void write_percent(double value, bool is_signed, const char *bar, FILE *file)
{
    if (isnan(value))
        fprintf(file, "%8s%s", "-", bar);
    else if (is_signed)
        fprintf(file, "%+6.1f %%%s", value * 100, bar);
    else
        fprintf(file, "%6.1f %%%s", value * 100, bar);
}

static void write_score(const struct validate_score *score, const char *bar, FILE *file)
{
    write_percent(score->median_abs_err, false, bar, file);
    write_percent(score->p90_abs_err, false, bar, file);
    write_percent(score->bias, true, bar, file);
}

static void write_group(const struct model_group *group, FILE *file)
{
    fprintf(file, "%-30s %4lld", group->name ? group->name : "all", (long long)group->rows);
    for (int pass = 0; pass < MODEL_PASS_COUNT; pass++) {
        fputs("  ", file);
        write_score(&group->scores[pass], "", file);
    }
    fputc('\n', file);
}

static void write_groups(const struct model_groups *groups, const char *title, FILE *file)
{
    fprintf(file, "\n%-30s %4s", title, "n");
    for (int pass = 0; pass < MODEL_PASS_COUNT; pass++)
        fprintf(file, "  %8s%8s%8s", model_pass_name((enum model_pass)pass), "p90", "bias");
    fputc('\n', file);
    for (int32_t i = 0; i < groups->count; i++)
        write_group(&groups->items[i], file);
}

static void write_rows(const struct model_validation *validation, FILE *file)
{
    fprintf(file, "%-24s %-14s %6s %5s %10s %10s %8s %8s %8s %8s\n", "GPU", "model", "seq", "batch",
            "measured", "predicted", "total", "forward", "backward", "starved");
    for (int32_t i = 0; i < validation->rows.count; i++) {
        const struct model_row *row = &validation->rows.items[i];
        if (row->reason != NULL)
            continue;
        fprintf(file, "%-24s %-14s %6lld %5lld %7.1f ms %7.1f ms ", row->gpu, row->model,
                (long long)row->seq_len, (long long)row->batch,
                row->pairs[MODEL_TOTAL].measured * 1e3, row->pairs[MODEL_TOTAL].predicted * 1e3);
        for (int pass = 0; pass < MODEL_PASS_COUNT; pass++)
            write_percent(row->pairs[pass].error, true, " ", file);
        fprintf(file, "%6.1f %%\n", row->starved_frac * 100);
    }
}

void report_models(const struct model_validation *validation, FILE *file)
{
    write_rows(validation, file);
    write_groups(&validation->by_gpu, "median |error| by GPU", file);
    write_groups(&validation->by_model, "by model", file);
    write_group(&validation->all, file);
    write_end(validation, file);
}

/* ---- Markdown ----------------------------------------------------------------------------- */

static void markdown_group(const char *kind, const struct model_group *group, FILE *file)
{
    fprintf(file, "| %s | %s | %lld |", kind, group->name ? group->name : "all",
            (long long)group->rows);
    for (int pass = 0; pass < MODEL_PASS_COUNT; pass++)
        write_score(&group->scores[pass], " |", file);
    fputc('\n', file);
}

void report_models_markdown(const struct model_validation *validation, FILE *file)
{
    fprintf(file,
            "## Whole models on one GPU\n\nForward and backward in fp32 of %lld runs without FSDP "
            "and optimizer (`fsdpsim validate models`);\nerror = predicted / measured - 1.\n\n"
            "| by | which | n | total: median | p90 | bias | forward: median | p90 | bias | "
            "backward: median | p90 | bias |\n"
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
            (long long)validation->in_scope);
    for (int32_t i = 0; i < validation->by_gpu.count; i++)
        markdown_group("GPU", &validation->by_gpu.items[i], file);
    for (int32_t i = 0; i < validation->by_model.count; i++)
        markdown_group("model", &validation->by_model.items[i], file);
    markdown_group("", &validation->all, file);
    write_end(validation, file);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_number(struct json_writer *json, const char *key, double value)
{
    json_key(json, key);
    json_double(json, value);
}

static void json_scores(struct json_writer *json, const struct model_group *group)
{
    for (int pass = 0; pass < MODEL_PASS_COUNT; pass++) {
        const struct validate_score *score = &group->scores[pass];
        json_key(json, model_pass_name((enum model_pass)pass));
        json_begin_object(json);
        json_key(json, "n");
        json_int(json, score->n);
        json_number(json, "median_abs_err", score->median_abs_err);
        json_number(json, "p90_abs_err", score->p90_abs_err);
        json_number(json, "bias", score->bias);
        json_number(json, "within_10pct", score->within_10pct);
        json_number(json, "within_15pct", score->within_15pct);
        json_end_object(json);
    }
}

static void json_groups(struct json_writer *json, const char *key,
                        const struct model_groups *groups)
{
    json_key(json, key);
    json_begin_array(json);
    for (int32_t i = 0; i < groups->count; i++) {
        json_begin_object(json);
        json_key(json, "name");
        json_text(json, groups->items[i].name);
        json_scores(json, &groups->items[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_row(struct json_writer *json, const struct model_row *row)
{
    json_begin_object(json);
    json_key(json, "line");
    json_int(json, row->line);
    json_key(json, "gpu");
    json_text(json, row->gpu);
    json_key(json, "model");
    json_text(json, row->model);
    json_key(json, "seq_len");
    json_int(json, row->seq_len);
    json_key(json, "batch");
    json_int(json, row->batch);
    json_key(json, "reason");
    json_text(json, row->reason);
    for (int pass = 0; pass < MODEL_PASS_COUNT; pass++) {
        json_key(json, model_pass_name((enum model_pass)pass));
        json_begin_object(json);
        json_number(json, "measured_s", row->pairs[pass].measured);
        json_number(json, "predicted_s", row->pairs[pass].predicted);
        json_number(json, "error", row->pairs[pass].error);
        json_end_object(json);
    }
    json_number(json, "starved_frac", row->starved_frac);
    json_end_object(json);
}

void report_models_json(const struct model_validation *validation, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, 1);
    json_key(&json, "row_count");
    json_int(&json, validation->rows.count);
    json_key(&json, "in_scope");
    json_int(&json, validation->in_scope);
    json_number(&json, "median_goal", validation->median_goal);
    json_scores(&json, &validation->all);
    json_groups(&json, "by_gpu", &validation->by_gpu);
    json_groups(&json, "by_model", &validation->by_model);
    json_key(&json, "rows");
    json_begin_array(&json);
    for (int32_t i = 0; i < validation->rows.count; i++)
        json_row(&json, &validation->rows.items[i]);
    json_end_array(&json);
    json_key(&json, "out_of_scope");
    json_begin_array(&json);
    for (int32_t i = 0; i < validation->exclusions.count; i++) {
        json_begin_object(&json);
        json_key(&json, "reason");
        json_text(&json, validation->exclusions.items[i].reason);
        json_key(&json, "rows");
        json_int(&json, validation->exclusions.items[i].rows);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
}
