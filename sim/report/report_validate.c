/* report/report_validate.c: tables of a validation; see report_validate.h. */
#include "report/report_validate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/report_page_private.h"

const char *const validate_predicate[] = {
    "A row is in scope when no fact excludes it and all that it states can be simulated: model,",
    "GPU, network, policy, dtypes, checkpointing. The scores take rows of trust A and B that are",
    "not repeats of another row. Error = predicted / measured - 1.", NULL};

static void score_header(struct page *page, const char *first)
{
    static const char *const heads[] = {"n",       "median",  "p90",      "bias",
                                        "in 10 %", "in 15 %", "by source"};
    table_row(&page->table);
    table_cell(&page->table, "%s", first);
    for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++)
        table_cell(&page->table, "%s", heads[k]);
}

static void score_line(struct page *page, const char *name, const struct validate_score *score)
{
    table_row(&page->table);
    table_cell(&page->table, "%s", name);
    table_cell(&page->table, "%" PRId64, score->n);
    page_percent(page, score->median_abs_err, false);
    page_percent(page, score->p90_abs_err, false);
    page_percent(page, score->bias, true);
    page_percent(page, score->within_10pct, false);
    page_percent(page, score->within_15pct, false);
    page_percent(page, score->mean_source_median, false);
}

/* Of all step times, those of a group. */
static void score_part(struct page *page, const struct validate_group *group)
{
    char name[64];
    if (group->scores.step_time.n == 0)
        return;
    snprintf(name, sizeof(name), "  %s", group->name);
    score_line(page, name, &group->scores.step_time);
}

static void write_scores(struct page *page, const struct validation *validation)
{
    page_begin(page, 8, 1);
    score_header(page, "|error|");
    score_line(page, "step time", &validation->headline.step_time);
    for (int32_t k = 0; k < validation->by_hosts.count; k++)
        score_part(page, &validation->by_hosts.items[k]);
    score_line(page, "  without assumed facts", &validation->without_assumed.step_time);
    score_line(page, "  trust C and repeats too", &validation->all_trust.step_time);
    score_line(page, "memory", &validation->headline.memory);
    score_line(page, "  without assumed facts", &validation->without_assumed.memory);
    score_line(page, "  trust C and repeats too", &validation->all_trust.memory);
    page_end(page);
}

static void write_mfu(struct page *page, const struct validation *validation)
{
    static const char *const heads[] = {"n", "median", "p90", "bias", "by source"};
    if (validation->all_trust.mfu.n == 0)
        return;
    page_heading(page, "MFU, as each source counts its FLOPs: errors in points");
    page_begin(page, 6, 1);
    table_row(&page->table);
    table_cell(&page->table, "convention");
    for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++)
        table_cell(&page->table, "%s", heads[k]);
    for (int32_t k = 0; k <= validation->by_convention.count; k++) {
        const bool is_all = k == validation->by_convention.count;
        const struct validate_score *score =
            is_all ? &validation->headline.mfu : &validation->by_convention.items[k].scores.mfu;
        table_row(&page->table);
        table_cell(&page->table, "%s", is_all ? "all" : validation->by_convention.items[k].name);
        table_cell(&page->table, "%" PRId64, score->n);
        page_points(page, score->median_abs_err, false);
        page_points(page, score->p90_abs_err, false);
        page_points(page, score->bias, true);
        page_points(page, is_all ? score->mean_source_median : (double)NAN, false);
    }
    page_end(page);
}

static void write_inside(struct page *page, const struct validation *validation)
{
    const struct validate_inside *inside = &validation->inside;
    if (inside->n == 0)
        return;
    fprintf(page->file,
            "Between the 5th and the 95th percentile of the prediction lie %" PRId64 " of %" PRId64
            " measured step times (%.0f %%);\n%" PRId64 " are faster, %" PRId64
            " slower. A standard deviation is %.1f %% in the median: see docs/intervals.md.\n\n",
            inside->inside, inside->n, 100.0 * (double)inside->inside / (double)inside->n,
            inside->faster, inside->slower, 100.0 * inside->median_spread);
}

/* Groups with a row in scope; the others are in the JSON. */
static void write_groups(struct page *page, const char *heading, const char *what,
                         const struct validate_groups *groups)
{
    page_heading(page, heading);
    page_begin(page, 12, 1);
    table_row(&page->table);
    static const char *const heads[] = {"rows",  "in scope", "time n",  "median",
                                        "p90",   "bias",     "in 15 %", "in p5-p95",
                                        "mem n", "mem med",  "mem bias"};
    table_cell(&page->table, "%s", what);
    for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++)
        table_cell(&page->table, "%s", heads[k]);
    for (int32_t k = 0; k < groups->count; k++) {
        const struct validate_group *group = &groups->items[k];
        const struct validate_score *time = &group->scores.step_time;
        const struct validate_score *memory = &group->scores.memory;
        if (group->in_scope == 0)
            continue;
        table_row(&page->table);
        page_name(page, group->name);
        table_cell(&page->table, "%" PRId64, group->rows);
        table_cell(&page->table, "%" PRId64, group->in_scope);
        table_cell(&page->table, "%" PRId64, time->n);
        page_percent(page, time->median_abs_err, false);
        page_percent(page, time->p90_abs_err, false);
        page_percent(page, time->bias, true);
        page_percent(page, time->within_15pct, false);
        page_percent(page,
                     group->inside.n > 0 ? (double)group->inside.inside / (double)group->inside.n
                                         : (double)NAN,
                     false);
        table_cell(&page->table, "%" PRId64, memory->n);
        page_percent(page, memory->median_abs_err, false);
        page_percent(page, memory->bias, true);
    }
    page_end(page);
}

static void pair_cells(struct page *page, const struct validate_pair *pair, bool is_time)
{
    char text[2][32];
    for (int k = 0; k < 2; k++) {
        const double value = k == 0 ? pair->measured : pair->predicted;
        if (isnan(value))
            snprintf(text[k], sizeof(text[k]), "-");
        else if (is_time)
            format_seconds(text[k], sizeof(text[k]), value);
        else
            format_gib(text[k], sizeof(text[k]), value);
        table_cell(&page->table, "%s", text[k]);
    }
    page_percent(page, pair->error, true);
}

static void write_rows(struct page *page, const struct validation *validation, int64_t limit)
{
    static const char *const heads[] = {"run",      "model",     "GPUs",   "",         "regime",
                                        "measured", "predicted", "error",  "measured", "predicted",
                                        "error",    "MFU",       "points", "facts"};
    page_begin(page, 14, 5);
    table_row(&page->table);
    for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++)
        table_cell(&page->table, "%s", heads[k]);
    for (int32_t k = 0; k < validation->row_count && (limit == 0 || k < limit); k++) {
        const struct validate_row *row = &validation->rows[k];
        if (row->reason != NULL)
            break;
        table_row(&page->table);
        if (row->label[0] != '\0')
            table_cell(&page->table, "%s", row->label);
        else
            table_cell(&page->table, "line %" PRId32, row->line);
        page_name(page, row->model);
        table_cell(&page->table, "%" PRId64, row->n_gpus);
        page_name(page, row->gpu);
        table_cell(&page->table, "%s", row->regime);
        pair_cells(page, &row->step_s, true);
        pair_cells(page, &row->memory_bytes, false);
        if (isnan(row->mfu.error))
            table_cell(&page->table, "-");
        else
            table_cell(&page->table, "%.1f/%.1f", 100.0 * row->mfu.measured,
                       100.0 * row->mfu.predicted);
        page_points(page, row->mfu.error, true);
        table_cell(&page->table, "%s%s", row->is_assumed ? "assumed" : "cited",
                   row->is_scored ? "" : ", not scored");
    }
    page_end(page);
}

static void write_exclusions(struct page *page, const struct validation *validation)
{
    if (validation->exclusions.count == 0)
        return;
    page_heading(page, "Out of scope");
    page_begin(page, 2, 1);
    table_row(&page->table);
    table_cell(&page->table, "reason");
    table_cell(&page->table, "rows");
    for (int32_t k = 0; k < validation->exclusions.count; k++) {
        table_row(&page->table);
        table_cell(&page->table, "%s", validation->exclusions.items[k].reason);
        table_cell(&page->table, "%" PRId64, validation->exclusions.items[k].rows);
    }
    page_end(page);
}

static void write_settings(const struct validation *validation, int64_t limit, FILE *file)
{
    for (int32_t k = 0; k < validation->row_count && (limit == 0 || k < limit); k++) {
        const struct validate_row *row = &validation->rows[k];
        fprintf(file, "%s (line %" PRId32 ")%s%s\n", row->label, row->line,
                row->reason != NULL ? ": out of scope: " : "",
                row->reason != NULL ? row->reason : "");
        for (int32_t s = 0; s < row->setting_count; s++) {
            const struct validate_setting *setting = &row->settings[s];
            fprintf(file, "  %s=%s  # %s%s: %s\n", setting->key, setting->value,
                    setting->is_assumed ? "assumed, " : "", setting->origin, setting->because);
        }
    }
}

static void write_page(struct page *page, const struct validation *validation, int64_t limit)
{
    page_heading(page, "Coverage");
    fprintf(page->file, "%" PRId64 " of %" PRId32 " rows in scope (%.1f %%).\n",
            validation->in_scope, validation->row_count,
            validation->row_count > 0 ? 100.0 * (double)validation->in_scope / validation->row_count
                                      : 0.0);
    for (int k = 0; validate_predicate[k] != NULL; k++)
        fprintf(page->file, "%s\n", validate_predicate[k]);
    fputc('\n', page->file);
    write_exclusions(page, validation);
    if (validation->in_scope == 0)
        return;
    write_groups(page, "By source", "source", &validation->by_source);
    write_groups(page, "By GPU", "GPU", &validation->by_gpu);
    write_groups(page, "By regime", "regime", &validation->by_regime);
    write_mfu(page, validation);
    page_heading(page, "Worst rows");
    write_rows(page, validation, limit);
    page_heading(page, "Scores");
    write_scores(page, validation);
    write_inside(page, validation);
}

void report_validation(const struct validation *validation, int64_t limit, bool has_settings,
                       FILE *file)
{
    struct page page = {.file = file};
    write_page(&page, validation, limit);
    if (has_settings)
        write_settings(validation, limit, file);
}

void report_validation_markdown(const struct validation *validation, int64_t limit,
                                const char *picture, FILE *file)
{
    struct page page = {.file = file, .is_markdown = true};
    fputs("# Accuracy: predictions beside published training runs\n\n"
          "Generated by `fsdpsim validate`; see [README.md](README.md).\n\n",
          file);
    if (picture != NULL)
        fprintf(file, "![Step time, predicted against measured](%s)\n\n", picture);
    write_page(&page, validation, limit);
}
