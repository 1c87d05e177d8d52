/* report/report_validate.c: tables and JSON of a validation; see report_validate.h. */
#include "report/report_validate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/json_writer.h"
#include "report/report_table_private.h"

/* Of the JSON object. */
enum { VALIDATE_SCHEMA_VERSION = 1 };

const char *const validate_predicate[] = {
    "A row is in scope when no fact excludes it and all that it states can be simulated: model,",
    "GPU, network, policy, dtypes, checkpointing. The scores take rows of trust A and B that are",
    "not repeats of another row. Error = predicted / measured - 1.", NULL};

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_score(struct json_writer *json, const char *key,
                       const struct validate_score *score)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"median_abs_err", score->median_abs_err},
                   {"p90_abs_err", score->p90_abs_err},
                   {"bias", score->bias},
                   {"within_10pct", score->within_10pct},
                   {"within_15pct", score->within_15pct},
                   {"mean_source_median_abs_err", score->mean_source_median}};
    json_key(json, key);
    json_begin_object(json);
    json_key(json, "n");
    json_int(json, score->n);
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
        json_key(json, numbers[k].key);
        json_double(json, numbers[k].value);
    }
    json_end_object(json);
}

static void json_scores(struct json_writer *json, const struct validate_scores *scores)
{
    json_score(json, "step_time", &scores->step_time);
    json_score(json, "memory", &scores->memory);
}

static void json_groups(struct json_writer *json, const char *key,
                        const struct validate_groups *groups)
{
    json_key(json, key);
    json_begin_object(json);
    for (int32_t k = 0; k < groups->count; k++) {
        json_key(json, groups->items[k].name);
        json_begin_object(json);
        json_key(json, "rows");
        json_int(json, groups->items[k].rows);
        json_key(json, "in_scope");
        json_int(json, groups->items[k].in_scope);
        json_scores(json, &groups->items[k].scores);
        json_end_object(json);
    }
    json_end_object(json);
}

static void json_pair(struct json_writer *json, const char *name, const char *unit,
                      const struct validate_pair *pair)
{
    char key[64];
    snprintf(key, sizeof(key), "measured_%s%s", name, unit);
    json_key(json, key);
    json_double(json, pair->measured);
    snprintf(key, sizeof(key), "predicted_%s%s", name, unit);
    json_key(json, key);
    json_double(json, pair->predicted);
    snprintf(key, sizeof(key), "%s_error", name);
    json_key(json, key);
    json_double(json, pair->error);
}

static void json_row(struct json_writer *json, const struct validate_row *row)
{
    const struct {
        const char *key, *text;
    } texts[] = {{"id", row->label},
                 {"source", row->source},
                 {"licence", row->licence},
                 {"gpu", row->gpu},
                 {"model", row->model},
                 {"trust", row->trust},
                 {"out_of_scope", row->reason},
                 {"regime", row->regime}};
    json_begin_object(json);
    json_key(json, "line");
    json_int(json, row->line);
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
        json_key(json, texts[k].key);
        json_text(json, texts[k].text);
    }
    json_key(json, "n_gpus");
    json_int(json, row->n_gpus);
    json_key(json, "in_scope");
    json_bool(json, row->reason == NULL);
    json_key(json, "assumed");
    json_bool(json, row->is_assumed);
    json_key(json, "scored");
    json_bool(json, row->is_scored);
    json_pair(json, "step_time", "_s", &row->step_s);
    json_key(json, "memory_kind");
    json_text(json, memory_kind_name(row->memory_kind));
    json_pair(json, "memory", "_bytes", &row->memory_bytes);
    json_end_object(json);
}

void report_validation_json(const struct validation *validation, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, VALIDATE_SCHEMA_VERSION);
    json_key(&json, "rows");
    json_int(&json, validation->row_count);
    json_key(&json, "in_scope");
    json_int(&json, validation->in_scope);
    json_key(&json, "coverage");
    json_double(&json, validation->row_count > 0
                           ? (double)validation->in_scope / validation->row_count
                           : (double)NAN);
    json_key(&json, "predicate");
    json_begin_array(&json);
    for (int k = 0; validate_predicate[k] != NULL; k++)
        json_text(&json, validate_predicate[k]);
    json_end_array(&json);
    json_scores(&json, &validation->headline);
    json_key(&json, "without_assumed");
    json_begin_object(&json);
    json_scores(&json, &validation->without_assumed);
    json_end_object(&json);
    json_key(&json, "all_trust");
    json_begin_object(&json);
    json_scores(&json, &validation->all_trust);
    json_end_object(&json);
    json_groups(&json, "by_source", &validation->by_source);
    json_groups(&json, "by_gpu", &validation->by_gpu);
    json_groups(&json, "by_regime", &validation->by_regime);
    json_key(&json, "excluded");
    json_begin_array(&json);
    for (int32_t k = 0; k < validation->exclusions.count; k++) {
        json_begin_object(&json);
        json_key(&json, "reason");
        json_text(&json, validation->exclusions.items[k].reason);
        json_key(&json, "rows");
        json_int(&json, validation->exclusions.items[k].rows);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_key(&json, "runs");
    json_begin_array(&json);
    for (int32_t k = 0; k < validation->row_count; k++)
        json_row(&json, &validation->rows[k]);
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
}

/* ---- tables: one content, as aligned text or as Markdown ----------------------------------- */

struct page {
    struct table table;
    FILE *file;
    bool is_markdown, has_header;
    int32_t columns, left_columns;
};

static void page_begin(struct page *page, int32_t columns, int32_t left_columns)
{
    page->columns = columns;
    page->left_columns = left_columns;
    table_init(&page->table, columns, left_columns);
}

static void write_markdown_line(const struct page *page, const char *const *cells)
{
    for (int32_t c = 0; c < page->columns; c++) {
        fputs(c == 0 ? "| " : " | ", page->file);
        for (const char *at = cells[c]; *at != '\0'; at++)
            fprintf(page->file, *at == '|' ? "\\%c" : "%c", *at);
    }
    fputs(" |\n", page->file);
}

/* Markdown: | a | b |, with the rule below the first line. */
static void write_markdown(const struct page *page)
{
    for (int32_t k = 0; k < page->table.count; k++) {
        write_markdown_line(page, page->table.items[k].cells);
        if (k > 0)
            continue;
        for (int32_t c = 0; c < page->columns; c++)
            fputs(c < page->left_columns ? "| --- " : "| ---: ", page->file);
        fputs("|\n", page->file);
    }
}

static void page_end(struct page *page)
{
    if (page->is_markdown)
        write_markdown(page);
    else
        table_write(&page->table, page->file);
    table_release(&page->table);
    fputc('\n', page->file);
}

static void page_heading(const struct page *page, const char *text)
{
    fprintf(page->file, page->is_markdown ? "## %s\n\n" : "%s\n", text);
}

static void percent_cell(struct page *page, double value, bool has_sign)
{
    if (isnan(value))
        table_cell(&page->table, "-");
    else if (has_sign)
        table_cell(&page->table, "%+.1f %%", 100.0 * value);
    else
        table_cell(&page->table, "%.1f %%", 100.0 * value);
}

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
    percent_cell(page, score->median_abs_err, false);
    percent_cell(page, score->p90_abs_err, false);
    percent_cell(page, score->bias, true);
    percent_cell(page, score->within_10pct, false);
    percent_cell(page, score->within_15pct, false);
    percent_cell(page, score->mean_source_median, false);
}

static void write_scores(struct page *page, const struct validation *validation)
{
    page_begin(page, 8, 1);
    score_header(page, "|error|");
    score_line(page, "step time", &validation->headline.step_time);
    score_line(page, "  without assumed facts", &validation->without_assumed.step_time);
    score_line(page, "  trust C and repeats too", &validation->all_trust.step_time);
    score_line(page, "memory", &validation->headline.memory);
    score_line(page, "  without assumed facts", &validation->without_assumed.memory);
    score_line(page, "  trust C and repeats too", &validation->all_trust.memory);
    page_end(page);
}

/* A name cut to what a terminal has room for; whole in Markdown. */
static void name_cell(struct page *page, const char *name)
{
    enum { MAX_WIDTH = 56 };
    if (name[0] == '\0')
        table_cell(&page->table, "(not stated)");
    else if (page->is_markdown || text_width(name) <= MAX_WIDTH)
        table_cell(&page->table, "%s", name);
    else
        table_cell(&page->table, "%.*s...", MAX_WIDTH - 3, name);
}

/* Groups with a row in scope; the others are in the JSON. */
static void write_groups(struct page *page, const char *heading, const char *what,
                         const struct validate_groups *groups)
{
    page_heading(page, heading);
    page_begin(page, 11, 1);
    table_row(&page->table);
    static const char *const heads[] = {"rows", "in scope", "time n", "median",  "p90",
                                        "bias", "in 15 %",  "mem n",  "mem med", "mem bias"};
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
        name_cell(page, group->name);
        table_cell(&page->table, "%" PRId64, group->rows);
        table_cell(&page->table, "%" PRId64, group->in_scope);
        table_cell(&page->table, "%" PRId64, time->n);
        percent_cell(page, time->median_abs_err, false);
        percent_cell(page, time->p90_abs_err, false);
        percent_cell(page, time->bias, true);
        percent_cell(page, time->within_15pct, false);
        table_cell(&page->table, "%" PRId64, memory->n);
        percent_cell(page, memory->median_abs_err, false);
        percent_cell(page, memory->bias, true);
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
    percent_cell(page, pair->error, true);
}

static void write_rows(struct page *page, const struct validation *validation, int64_t limit)
{
    static const char *const heads[] = {"run",      "model",     "GPUs",      "",
                                        "regime",   "measured",  "predicted", "error",
                                        "measured", "predicted", "error",     "facts"};
    page_begin(page, 12, 5);
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
        name_cell(page, row->model);
        table_cell(&page->table, "%" PRId64, row->n_gpus);
        name_cell(page, row->gpu);
        table_cell(&page->table, "%s", row->regime);
        pair_cells(page, &row->step_s, true);
        pair_cells(page, &row->memory_bytes, false);
        table_cell(&page->table, "%s", row->is_assumed ? "assumed" : "cited");
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
    page_heading(page, "Worst rows");
    write_rows(page, validation, limit);
    page_heading(page, "Scores");
    write_scores(page, validation);
}

void report_validation(const struct validation *validation, int64_t limit, bool has_settings,
                       FILE *file)
{
    struct page page = {.file = file};
    write_page(&page, validation, limit);
    if (has_settings)
        write_settings(validation, limit, file);
}

void report_validation_markdown(const struct validation *validation, int64_t limit, FILE *file)
{
    struct page page = {.file = file, .is_markdown = true};
    fputs("# Accuracy: predictions beside published training runs\n\n"
          "Generated by `fsdpsim validate --markdown`; see [README.md](README.md).\n\n",
          file);
    write_page(&page, validation, limit);
}
