/* report/report_sweep.c: see report_sweep.h. */
#include "report/report_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "report/csv_writer.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "report/report_table_private.h"

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot != NULL ? dot + 1 : key;
}

const char *report_sweep_key(const struct sweep_plan *plan, int32_t axis)
{
    const char *part = last_part(plan->axes.items[axis].key);
    for (int32_t i = 0; i < plan->axes.count; i++)
        if (i != axis && text_equal(last_part(plan->axes.items[i].key), part))
            return plan->axes.items[axis].key;
    return part;
}

static bool is_done(const struct sweep *sweep, int64_t position)
{
    return sweep_has(sweep, position) && sweep->points[position].state == POINT_DONE;
}

/* What points are measured against: of those that fit, if one does. */
struct best {
    double rate;     /* most tokens a second and GPU */
    double cost;     /* least for 1e9 tokens; NaN: no point has a price */
    bool has_budget; /* some point has a number of tokens to train on */
    bool is_sampled; /* some point has an interval */
};

static void meet(struct best *best, const struct outcome *outcome)
{
    if (!(outcome->tokens_per_s_per_gpu <= best->rate))
        best->rate = outcome->tokens_per_s_per_gpu;
    if (!(outcome->cost_per_billion_tokens >= best->cost) &&
        !isnan(outcome->cost_per_billion_tokens))
        best->cost = outcome->cost_per_billion_tokens;
    best->has_budget = best->has_budget || outcome->budget_days > 0;
    best->is_sampled = best->is_sampled || outcome->n_samples > 0;
}

static enum status find_best(struct sweep *sweep, struct best *best, struct diag *diag)
{
    const struct best none = {.cost = (double)NAN};
    struct best any = none;
    enum status status = STATUS_OK;
    *best = none;
    for (int64_t i = 0; i < sweep->plan->point_count && status == STATUS_OK; i++) {
        struct arena scratch = {0};
        struct outcome outcome = {0};
        if (!is_done(sweep, i))
            continue;
        status = sweep_load(sweep, i, &scratch, &outcome, diag);
        if (status == STATUS_OK)
            meet(&any, &outcome);
        if (status == STATUS_OK && outcome.fits)
            meet(best, &outcome);
        arena_release(&scratch);
    }
    if (!(best->rate > 0))
        *best = any;
    best->has_budget = any.has_budget;
    best->is_sampled = any.is_sampled;
    return status;
}

/* ---- for people --------------------------------------------------------------------------- */

static const char *const headings[] = {"GPUs",    "step",   "tokens/s/GPU", "of best", "MFU",
                                       "exposed", "memory", "fits",         "bound by"};
enum { HEADING_COUNT = sizeof(headings) / sizeof(headings[0]) };

/* Behind them, where there is a budget of tokens, and where there is a price. */
static const char *const budget_headings[] = {"days"};
/* Half of what lies between 5 and 95 % of the samples, over their median. */
static const char *const sample_headings[] = {"step \u00b1", "tokens/s \u00b1"};
static const char *const sample_metrics[] = {"step_time_s", "tokens_per_s"};
enum { SAMPLE_COLUMNS = sizeof(sample_headings) / sizeof(sample_headings[0]) };
static const char *const cost_headings[] = {"per 1e9 tokens", "of cheapest"};

static int32_t column_count(const struct sweep_plan *plan, const struct best *best)
{
    return plan->axes.count + HEADING_COUNT + (best->has_budget ? 1 : 0) +
           (isnan(best->cost) ? 0 : 2) + (best->is_sampled ? SAMPLE_COLUMNS : 0);
}

static void add_share(struct table *table, double share)
{
    if (isnan(share))
        table_cell(table, "-");
    else
        table_cell(table, "%.1f %%", 100 * share);
}

static void add_money(struct table *table, const struct outcome *outcome, const struct best *best)
{
    if (best->has_budget)
        table_cell(table, isnan(outcome->budget_days) ? "-" : "%.1f", outcome->budget_days);
    if (isnan(best->cost))
        return;
    if (isnan(outcome->cost_per_billion_tokens))
        table_cell(table, "-");
    else
        table_cell(table, "%.2f %s", outcome->cost_per_billion_tokens,
                   outcome->currency != NULL ? text_shown(&table->arena, outcome->currency) : "");
    add_share(table, outcome->cost_per_billion_tokens / best->cost);
}

static void add_figures(struct table *table, const struct outcome *outcome, const struct best *best)
{
    char text[32];
    table_cell(table, "%" PRId64, outcome->n_gpus);
    table_cell(table, "%s", format_seconds(text, sizeof(text), outcome->step_time_s));
    table_cell(table, outcome->tokens_per_s_per_gpu < 1000 ? "%.1f" : "%.0f",
               outcome->tokens_per_s_per_gpu);
    add_share(table, best->rate > 0 ? outcome->tokens_per_s_per_gpu / best->rate : (double)NAN);
    add_share(table, outcome->mfu);
    add_share(table, outcome->exposed_comm_fraction);
    table_cell(table, "%s", format_gib(text, sizeof(text), (double)outcome->peak_device_bytes));
    table_cell(table, "%s", outcome->fits ? "yes" : "no");
    table_cell(table, "%s",
               outcome->bottleneck != NULL ? text_shown(&table->arena, outcome->bottleneck) : "");
    add_money(table, outcome, best);
    for (int k = 0; k < SAMPLE_COLUMNS && best->is_sampled; k++) {
        const struct outcome_interval *interval = outcome_interval(outcome, sample_metrics[k]);
        add_share(table, interval != NULL ? (interval->p95 - interval->p05) / (2 * interval->p50)
                                          : (double)NAN);
    }
}

static const char *state_text(const struct sweep_point *point)
{
    switch (point->state) {
    case POINT_PENDING:
        return "not played";
    case POINT_DONE:
        return "";
    case POINT_INVALID:
        return "invalid";
    case POINT_FAILED:
        return "failed";
    }
    return "";
}

/* What is wrong with points, below the table: a column would push all others apart. */
static void add_row(struct table *table, const struct sweep *sweep, int64_t position,
                    const struct outcome *outcome, const struct best *best)
{
    const struct sweep_plan *plan = sweep->plan;
    table_row(table);
    for (int32_t i = 0; i < plan->axes.count; i++)
        table_cell(table, "%s", text_shown(&table->arena, sweep_plan_value(plan, position, i)));
    if (outcome != NULL) {
        add_figures(table, outcome, best);
        return;
    }
    for (int k = 0; k < HEADING_COUNT; k++)
        table_cell(table, "%s",
                   k + 1 == HEADING_COUNT ? state_text(&sweep->points[position]) : "-");
    for (int32_t k = plan->axes.count + HEADING_COUNT; k < column_count(plan, best); k++)
        table_cell(table, "-");
}

static void add_headings(struct table *table, const struct sweep_plan *plan,
                         const struct best *best)
{
    table_row(table);
    for (int32_t i = 0; i < plan->axes.count; i++)
        table_cell(table, "%s", text_shown(&table->arena, report_sweep_key(plan, i)));
    for (int k = 0; k < HEADING_COUNT; k++)
        table_cell(table, "%s", headings[k]);
    if (best->has_budget)
        table_cell(table, "%s", budget_headings[0]);
    for (int k = 0; k < 2 && !isnan(best->cost); k++)
        table_cell(table, "%s", cost_headings[k]);
    for (int k = 0; k < SAMPLE_COLUMNS && best->is_sampled; k++)
        table_cell(table, "%s", sample_headings[k]);
}

/* Each reason once, with the number of points that have it. */
static void write_reasons(const struct sweep *sweep, FILE *file)
{
    enum { REASONS_MAX = 20 };
    const char *reasons[REASONS_MAX];
    int64_t counts[REASONS_MAX] = {0};
    int32_t count = 0;
    struct arena scratch = {0};
    for (int64_t i = 0; i < sweep->plan->point_count; i++) {
        const struct sweep_point *point = &sweep->points[i];
        int32_t at = 0;
        if (!sweep_has(sweep, i) || point->reason == NULL || point->state == POINT_DONE)
            continue;
        while (at < count && !text_equal(reasons[at], point->reason))
            at++;
        if (at == REASONS_MAX)
            continue;
        if (at == count)
            reasons[count++] = point->reason;
        counts[at]++;
    }
    for (int32_t i = 0; i < count; i++)
        fprintf(file, "%s%" PRId64 " point%s: %s\n", i == 0 ? "\n" : "", counts[i],
                counts[i] == 1 ? "" : "s", text_shown(&scratch, reasons[i]));
    arena_release(&scratch);
}

enum status report_sweep_table(struct sweep *sweep, bool is_markdown, FILE *file, struct diag *diag)
{
    struct table table;
    struct best best;
    enum status status = find_best(sweep, &best, diag);
    table_init(&table, column_count(sweep->plan, &best), 0);
    add_headings(&table, sweep->plan, &best);
    for (int64_t i = 0; i < sweep->plan->point_count && status == STATUS_OK; i++) {
        struct arena scratch = {0};
        struct outcome outcome = {0};
        if (!sweep_has(sweep, i))
            continue;
        if (is_done(sweep, i))
            status = sweep_load(sweep, i, &scratch, &outcome, diag);
        if (status == STATUS_OK)
            add_row(&table, sweep, i, is_done(sweep, i) ? &outcome : NULL, &best);
        arena_release(&scratch);
    }
    if (status == STATUS_OK) {
        if (is_markdown)
            table_write_markdown(&table, file);
        else
            table_write(&table, file);
        write_reasons(sweep, file);
    }
    table_release(&table);
    return status;
}

/* ---- for machines ------------------------------------------------------------------------- */

static void write_csv_field(const struct outcome *outcome, const struct metric *metric, FILE *file)
{
    switch (metric->kind) {
    case METRIC_DOUBLE:
        csv_write_double(file, metric_double(outcome, metric));
        break;
    case METRIC_INT:
        fprintf(file, "%" PRId64, metric_int(outcome, metric));
        break;
    case METRIC_BOOL:
        fputs(metric_bool(outcome, metric) ? "true" : "false", file);
        break;
    case METRIC_TEXT:
        csv_write_text(file, metric_text(outcome, metric));
        break;
    }
}

/* The metrics that have intervals at some point, in the order in which they are met. */
struct sampled {
    const char **items;
    int32_t count, capacity;
};

static void add_sampled(struct sampled *sampled, struct arena *arena, const struct outcome *outcome)
{
    for (int32_t i = 0; i < outcome->interval_count; i++) {
        const char *metric = outcome->intervals[i].metric;
        bool is_known = false;
        for (int32_t k = 0; k < sampled->count && !is_known; k++)
            is_known = text_equal(sampled->items[k], metric);
        if (!is_known)
            *ARENA_PUSH(arena, sampled) = arena_strdup(arena, metric);
    }
}

static enum status find_sampled(struct sweep *sweep, struct arena *arena, struct sampled *sampled,
                                struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int64_t i = 0; i < sweep->plan->point_count && status == STATUS_OK; i++) {
        struct arena scratch = {0};
        struct outcome outcome = {0};
        if (!is_done(sweep, i))
            continue;
        status = sweep_load(sweep, i, &scratch, &outcome, diag);
        add_sampled(sampled, arena, &outcome);
        arena_release(&scratch);
    }
    return status;
}

static void write_csv_intervals(const struct sampled *sampled, const struct outcome *outcome,
                                FILE *file)
{
    for (int32_t i = 0; i < sampled->count; i++) {
        const struct outcome_interval *interval = outcome_interval(outcome, sampled->items[i]);
        const double values[] = {interval != NULL ? interval->p05 : (double)NAN,
                                 interval != NULL ? interval->p50 : (double)NAN,
                                 interval != NULL ? interval->p95 : (double)NAN};
        for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
            fputc(',', file);
            csv_write_double(file, values[k]);
        }
    }
}

static const char *state_word(const struct sweep_point *point)
{
    return point->state == POINT_DONE ? "done" : state_text(point);
}

enum status report_sweep_csv(struct sweep *sweep, FILE *file, struct diag *diag)
{
    const struct sweep_plan *plan = sweep->plan;
    struct arena arena = {0};
    struct sampled sampled = {0};
    enum status status = find_sampled(sweep, &arena, &sampled, diag);
    fputs("position", file);
    for (int32_t k = 0; k < plan->axes.count; k++) {
        fputc(',', file);
        csv_write_text(file, plan->axes.items[k].key);
    }
    fputs(",state,reason", file);
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++)
        fprintf(file, ",%s", metric->name);
    for (int32_t i = 0; i < sampled.count; i++)
        fprintf(file, ",%s.p05,%s.p50,%s.p95", sampled.items[i], sampled.items[i],
                sampled.items[i]);
    fputc('\n', file);
    for (int64_t i = 0; i < plan->point_count && status == STATUS_OK; i++) {
        struct arena scratch = {0};
        struct outcome outcome = {0};
        if (!sweep_has(sweep, i))
            continue;
        fprintf(file, "%" PRId64, i);
        for (int32_t k = 0; k < plan->axes.count; k++) {
            fputc(',', file);
            csv_write_text(file, sweep_plan_value(plan, i, k));
        }
        fprintf(file, ",%s,", state_word(&sweep->points[i]));
        csv_write_text(file, is_done(sweep, i) ? NULL : sweep->points[i].reason);
        if (is_done(sweep, i))
            status = sweep_load(sweep, i, &scratch, &outcome, diag);
        for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++) {
            fputc(',', file);
            if (status == STATUS_OK && is_done(sweep, i))
                write_csv_field(&outcome, metric, file);
        }
        write_csv_intervals(&sampled, &outcome, file);
        fputc('\n', file);
        arena_release(&scratch);
    }
    arena_release(&arena);
    return status;
}

static void write_json_fields(struct json_writer *json, const struct outcome *outcome)
{
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++) {
        json_key(json, metric->name);
        if (metric->kind == METRIC_DOUBLE)
            json_double(json, metric_double(outcome, metric));
        else if (metric->kind == METRIC_INT)
            json_int(json, metric_int(outcome, metric));
        else if (metric->kind == METRIC_BOOL)
            json_bool(json, metric_bool(outcome, metric));
        else
            json_text(json, metric_text(outcome, metric));
    }
}

static enum status write_json_point(struct json_writer *json, struct sweep *sweep, int64_t position,
                                    struct diag *diag)
{
    const struct sweep_plan *plan = sweep->plan;
    const struct sweep_point *point = &sweep->points[position];
    struct arena scratch = {0};
    struct outcome outcome = {0};
    enum status status = STATUS_OK;
    json_begin_object(json);
    json_key(json, "position");
    json_int(json, position);
    json_key(json, "settings");
    json_begin_object(json);
    for (int32_t k = 0; k < plan->axes.count; k++) {
        json_key(json, plan->axes.items[k].key);
        json_text(json, sweep_plan_value(plan, position, k));
    }
    json_end_object(json);
    json_key(json, "state");
    json_text(json, state_word(point));
    if (is_done(sweep, position)) {
        status = sweep_load(sweep, position, &scratch, &outcome, diag);
        if (status == STATUS_OK)
            write_json_fields(json, &outcome);
        if (status == STATUS_OK)
            report_json_samples(json, &outcome);
    } else {
        json_key(json, "reason");
        json_text(json, point->reason);
    }
    json_end_object(json);
    arena_release(&scratch);
    return status;
}

enum status report_sweep_json(struct sweep *sweep, FILE *file, struct diag *diag)
{
    const struct sweep_plan *plan = sweep->plan;
    struct json_writer json;
    enum status status = STATUS_OK;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, OUTCOME_SCHEMA_VERSION);
    json_key(&json, "config_name");
    json_text(&json, plan->name);
    json_key(&json, "keys");
    json_begin_array(&json);
    for (int32_t k = 0; k < plan->axes.count; k++)
        json_text(&json, plan->axes.items[k].key);
    json_end_array(&json);
    json_key(&json, "points");
    json_begin_array(&json);
    for (int64_t i = 0; i < plan->point_count && status == STATUS_OK; i++)
        if (sweep_has(sweep, i))
            status = write_json_point(&json, sweep, i, diag);
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
    return status;
}
