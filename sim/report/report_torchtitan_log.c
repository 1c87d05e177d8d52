/* report/report_torchtitan_log.c: see report_torchtitan_log.h. */
#include "report/report_torchtitan_log.h"

#include <inttypes.h>
#include <math.h>

#include "base/shown_text.h"
#include "base/units.h"
#include "report/json_writer.h"
#include "report/report_table_private.h"

/* Of the JSON object. 2: lines_without_rate, is_warm_up; is_inside may be null. */
enum { LOG_SCHEMA_VERSION = 2 };

struct figures {
    double step_s[2], rate[2], mfu[2], bytes[2]; /* measured, predicted */
};

static struct figures figures_of(const struct log_comparison *comparison)
{
    const struct torchtitan_log *log = comparison->log;
    const struct outcome *outcome = comparison->outcome;
    const double tokens = (double)outcome->tokens_per_step / (double)outcome->n_gpus;
    return (struct figures){.step_s = {tokens / log->tokens_per_s_per_gpu, outcome->step_time_s},
                            .rate = {log->tokens_per_s_per_gpu, outcome->tokens_per_s_per_gpu},
                            .mfu = {log->mfu, outcome->mfu},
                            .bytes = {log->reserved_bytes, (double)outcome->peak_reserved_bytes}};
}

static void error_cell(struct table *table, const double *pair)
{
    table_cell(table, "%+.1f %%", 100.0 * (pair[1] / pair[0] - 1.0));
}

static void write_table(const struct log_comparison *comparison, FILE *file)
{
    const struct figures figures = figures_of(comparison);
    struct table table;
    char text[32];
    table_init(&table, 4, 1);
    table_row(&table);
    table_cell(&table, " ");
    table_cell(&table, "measured");
    table_cell(&table, "predicted");
    table_cell(&table, "error");
    table_row(&table);
    table_cell(&table, "step time");
    for (int k = 0; k < 2; k++)
        table_cell(&table, "%s", format_seconds(text, sizeof(text), figures.step_s[k]));
    error_cell(&table, figures.step_s);
    table_row(&table);
    table_cell(&table, "tokens/s/GPU");
    for (int k = 0; k < 2; k++)
        table_cell(&table, "%s", format_count(text, sizeof(text), llround(figures.rate[k])));
    error_cell(&table, figures.rate);
    if (!isnan(figures.mfu[0]) && !isnan(figures.mfu[1])) {
        table_row(&table);
        table_cell(&table, "MFU (%s)", comparison->outcome->mfu_convention);
        for (int k = 0; k < 2; k++)
            table_cell(&table, "%.1f %%", 100.0 * figures.mfu[k]);
        table_cell(&table, "%+.1f points", 100.0 * (figures.mfu[1] - figures.mfu[0]));
    }
    if (!isnan(figures.bytes[0])) {
        table_row(&table);
        table_cell(&table, "memory, reserved");
        for (int k = 0; k < 2; k++)
            table_cell(&table, "%s", format_gib(text, sizeof(text), figures.bytes[k]));
        error_cell(&table, figures.bytes);
    }
    table_write(&table, file);
    table_release(&table);
}

static bool has_interval(const struct log_comparison *comparison)
{
    return comparison->interval->low_s > 0;
}

static bool is_inside(const struct log_comparison *comparison, double step_s)
{
    return step_s >= comparison->interval->low_s && step_s <= comparison->interval->high_s;
}

void report_torchtitan_log(const struct log_comparison *comparison, FILE *file)
{
    const struct torchtitan_log *log = comparison->log;
    const struct interval *interval = comparison->interval;
    const double step_s = figures_of(comparison).step_s[0];
    struct arena arena = {0};
    char low[32], high[32];
    fprintf(file,
            "%s beside %s: %" PRId64 " of %" PRId64 " lines of %" PRId64 " rank%s, steps %" PRId64
            " to %" PRId64 "%s\n",
            comparison->log_name, text_shown(&arena, comparison->outcome->config_name),
            log->lines_used, log->lines, log->ranks, log->ranks == 1 ? "" : "s", log->first_step,
            log->last_step, log->is_warm_up ? ": warm-up, which is slower; no later ones" : "");
    if (log->lines_without_rate > 0)
        fprintf(file, "without a rate (nan, N/A): %" PRId64 " lines\n", log->lines_without_rate);
    fputc('\n', file);
    arena_release(&arena);
    write_table(comparison, file);
    if (has_interval(comparison))
        fprintf(file, "\nexpected, p5 to p95: %s to %s; the measured step is %s\n",
                format_seconds(low, sizeof(low), interval->low_s),
                format_seconds(high, sizeof(high), interval->high_s),
                is_inside(comparison, step_s) ? "inside"
                : step_s < interval->low_s    ? "faster"
                                              : "slower");
}

static void write_pair(struct json_writer *json, const char *key, const double *pair,
                       bool is_fraction)
{
    const bool is_there = !isnan(pair[0]) && !isnan(pair[1]);
    json_key(json, key);
    json_begin_object(json);
    json_key(json, "measured");
    json_double(json, pair[0]);
    json_key(json, "predicted");
    json_double(json, pair[1]);
    json_key(json, "error");
    json_double(json, !is_there     ? (double)NAN
                      : is_fraction ? pair[1] - pair[0]
                                    : pair[1] / pair[0] - 1.0);
    json_end_object(json);
}

void report_torchtitan_log_json(const struct log_comparison *comparison, FILE *file)
{
    const struct torchtitan_log *log = comparison->log;
    const struct figures figures = figures_of(comparison);
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"schema_version", LOG_SCHEMA_VERSION},
                  {"lines", log->lines},
                  {"lines_used", log->lines_used},
                  {"lines_without_rate", log->lines_without_rate},
                  {"ranks", log->ranks},
                  {"first_step", log->first_step},
                  {"last_step", log->last_step}};
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        json_key(&json, counts[k].key);
        json_int(&json, counts[k].value);
    }
    json_key(&json, "is_warm_up");
    json_bool(&json, log->is_warm_up);
    json_key(&json, "config_name");
    json_text(&json, comparison->outcome->config_name);
    write_pair(&json, "step_time_s", figures.step_s, false);
    write_pair(&json, "tokens_per_s_per_gpu", figures.rate, false);
    write_pair(&json, "mfu", figures.mfu, true);
    write_pair(&json, "peak_reserved_bytes", figures.bytes, false);
    json_key(&json, "step_time_p5_s");
    json_double(&json, has_interval(comparison) ? comparison->interval->low_s : (double)NAN);
    json_key(&json, "step_time_p95_s");
    json_double(&json, has_interval(comparison) ? comparison->interval->high_s : (double)NAN);
    json_key(&json, "is_inside");
    if (has_interval(comparison))
        json_bool(&json, is_inside(comparison, figures.step_s[0]));
    else
        json_text(&json, NULL);
    json_end_object(&json);
    json_finish(&json);
}
