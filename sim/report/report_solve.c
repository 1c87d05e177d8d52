/* report/report_solve.c: see report_solve.h. */
#include "report/report_solve.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "report/json_writer.h"
#include "report/report_table_private.h"

/* ---- numbers ------------------------------------------------------------------------------ */

/* Just inside and just outside differ by a tolerance of a thousandth, or by less. */
enum { TABLE_DIGITS = 5, FINE_DIGITS = 9 };

static const char *seconds_text(struct arena *arena, double seconds, int digits)
{
    if (seconds >= 0.1 || !(seconds > 0))
        return arena_printf(arena, "%.*g s", digits, seconds);
    return seconds >= 1e-4 ? arena_printf(arena, "%.*g ms", digits, seconds * 1e3)
                           : arena_printf(arena, "%.*g us", digits, seconds * 1e6);
}

static const char *bytes_text(struct arena *arena, double bytes, int digits)
{
    return fabs(bytes) >= 0x1p30 ? arena_printf(arena, "%.*g GiB", digits, bytes * 0x1p-30)
                                 : arena_printf(arena, "%.*g MiB", digits, bytes * 0x1p-20);
}

static const char *number_text(struct arena *arena, const struct solve *solve,
                               const struct solve_point *point, int32_t condition, int digits)
{
    const struct metric *metric = solve->request.conditions[condition].metric;
    const double number = point->numbers[condition];
    if (metric->kind == METRIC_BOOL || metric->kind == METRIC_TEXT || isnan(number))
        return text_shown(arena, point->texts[condition]);
    if (text_equal(metric->unit, "s"))
        return seconds_text(arena, number, digits);
    if (text_equal(metric->unit, "bytes"))
        return bytes_text(arena, number, digits);
    if (text_equal(metric->unit, "1"))
        return arena_printf(arena, "%.*g %%", digits, 100 * number);
    if (text_equal(metric->unit, "count"))
        return arena_printf(arena, "%.15g", number);
    return arena_printf(arena, "%.*g %s", digits, number, metric->unit);
}

/* Whether an earlier condition is on the same metric. */
static bool is_repeated(const struct solve *solve, int32_t condition)
{
    for (int32_t i = 0; i < condition; i++) {
        if (solve->request.conditions[i].metric == solve->request.conditions[condition].metric)
            return true;
    }
    return false;
}

static bool has_metric(const struct solve *solve, const char *name)
{
    for (int32_t i = 0; i < solve->request.condition_count; i++) {
        if (text_equal(solve->request.conditions[i].metric->name, name))
            return true;
    }
    return false;
}

/* ---- words -------------------------------------------------------------------------------- */

/* "fits and step_time_s<0.5s" */
static const char *conditions_text(const struct solve *solve, struct arena *arena)
{
    const char *text = "";
    for (int32_t i = 0; i < solve->request.condition_count; i++)
        text = arena_printf(arena, "%s%s%s", text, i > 0 ? " and " : "",
                            text_shown(arena, solve->request.conditions[i].text));
    return text;
}

/* "step_time_s is 0.49 s and fits is true (41.2 GiB)" */
static const char *metrics_with(const struct solve *solve, struct arena *arena,
                                const struct solve_point *point, int digits)
{
    const char *text = "";
    for (int32_t i = 0; i < solve->request.condition_count; i++) {
        const char *name = solve->request.conditions[i].metric->name;
        if (is_repeated(solve, i))
            continue;
        text = arena_printf(arena, "%s%s%s is %s", text, i > 0 ? " and " : "", name,
                            number_text(arena, solve, point, i, digits));
        if (text_equal(name, "fits"))
            text = arena_printf(arena, "%s (%s)", text,
                                bytes_text(arena, (double)point->peak_device_bytes, digits));
    }
    return text;
}

/* As many digits as tell the answer from its neighbour. */
static const char *metrics_text(const struct solve *solve, struct arena *arena,
                                const struct solve_point *point)
{
    bool is_alike = solve->outside != NULL;
    for (int32_t i = 0; i < solve->request.condition_count && is_alike; i++)
        is_alike = text_equal(number_text(arena, solve, solve->answer, i, TABLE_DIGITS),
                              number_text(arena, solve, solve->outside, i, TABLE_DIGITS));
    return metrics_with(solve, arena, point, is_alike ? FINE_DIGITS : TABLE_DIGITS);
}

static const char *value_text(struct arena *arena, const struct solve_point *point)
{
    return text_shown(arena, point->value);
}

static const char *end_word(const struct solve *solve)
{
    const bool is_ordered = solve->request.knob->is_ordered;
    if (solve->wanted == SOLVE_SMALLEST)
        return is_ordered ? "smallest" : "first";
    return is_ordered ? "largest" : "last";
}

static const char *range_text(const struct solve *solve, struct arena *arena)
{
    const struct knob *knob = solve->request.knob;
    return arena_printf(arena, "%s from %s to %s", text_shown(arena, knob->key),
                        text_shown(arena, knob_low_text(knob)),
                        text_shown(arena, knob_high_text(knob)));
}

/* With a gap inside, and both ends of the range meeting the conditions. */
static const char *gap_text(const struct solve *solve)
{
    const int32_t count = solve->intervals.count;
    if (count < 2 || solve->request.wanted != SOLVE_DERIVED || solve->outside == NULL ||
        solve->intervals.items[0].before != NULL || solve->intervals.items[count - 1].after != NULL)
        return "";
    return solve->wanted == SOLVE_SMALLEST
               ? " from which on they hold to the end of the range"
               : " up to which they hold from the beginning of the range";
}

static const char *answer_text(const struct solve *solve, struct arena *arena)
{
    const char *key = text_shown(arena, solve->request.knob->key);
    if (solve->result == SOLVE_EVERYTHING)
        return arena_printf(
            arena, "every value of %s that was played meets %s: at %s %s, at %s %s; the %s is %s",
            range_text(solve, arena), conditions_text(solve, arena),
            value_text(arena, solve_low(solve)), metrics_text(solve, arena, solve_low(solve)),
            value_text(arena, solve_high(solve)), metrics_text(solve, arena, solve_high(solve)),
            end_word(solve), value_text(arena, solve->answer));
    const char *text =
        arena_printf(arena, "the %s %s with %s%s is %s: there %s", end_word(solve), key,
                     conditions_text(solve, arena), gap_text(solve),
                     value_text(arena, solve->answer), metrics_text(solve, arena, solve->answer));
    if (solve->outside == NULL)
        return arena_printf(arena, "%s; it is the end of the range", text);
    return arena_printf(arena, "%s; just outside, at %s, %s", text,
                        value_text(arena, solve->outside),
                        metrics_text(solve, arena, solve->outside));
}

const char *report_solve_failure(const struct solve *solve, struct arena *arena, const char **hint)
{
    *hint = arena_printf(arena, "at %s %s; at %s %s", value_text(arena, solve_low(solve)),
                         metrics_text(solve, arena, solve_low(solve)),
                         value_text(arena, solve_high(solve)),
                         metrics_text(solve, arena, solve_high(solve)));
    return arena_printf(arena, "no value of %s meets %s: the closest is %s, where %s",
                        range_text(solve, arena), conditions_text(solve, arena),
                        value_text(arena, solve->answer),
                        metrics_text(solve, arena, solve->answer));
}

/* ---- notes -------------------------------------------------------------------------------- */

static void write_turns(const struct solve *solve, int32_t condition, struct arena *arena,
                        FILE *file)
{
    enum { TURNS_MAX = 8 };
    const struct solve_metric *metric = &solve->metrics[condition];
    const char *name = solve->request.conditions[condition].metric->name;
    const char *key = text_shown(arena, solve->request.knob->key);
    if (metric->trend == TREND_FLAT)
        fprintf(file, "%s does not change with %s\n", name, key);
    if (metric->trend != TREND_TURNS)
        return;
    fprintf(file, "%s is not monotone in %s:", name, key);
    for (int32_t i = 0; i < metric->turns.count && i < TURNS_MAX; i++) {
        const struct solve_point *point = metric->turns.items[i].point;
        fprintf(file, "%s %s at %s", i > 0 ? "," : "",
                number_text(arena, solve, point, condition, TABLE_DIGITS),
                value_text(arena, point));
    }
    if (metric->turns.count > TURNS_MAX)
        fprintf(file, ", and %" PRId32 " more turns", metric->turns.count - TURNS_MAX);
    fputc('\n', file);
}

static void write_intervals(const struct solve *solve, struct arena *arena, FILE *file)
{
    if (solve->intervals.count < 2)
        return;
    fprintf(file, "%s: in %" PRId32 " intervals, as far as %" PRId32 " points see:",
            conditions_text(solve, arena), solve->intervals.count, solve->valid_count);
    for (int32_t i = 0; i < solve->intervals.count; i++) {
        const struct solve_interval *interval = &solve->intervals.items[i];
        const char *first = value_text(arena, interval->first);
        fprintf(file, "%s %s", i > 0 ? "," : "", first);
        if (interval->first != interval->last)
            fprintf(file, " to %s", value_text(arena, interval->last));
    }
    fputc('\n', file);
}

/* Equal but for the numbers in them. */
static bool is_same_reason(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    if (a == NULL || b == NULL)
        return false;
    while (*a != '\0' && *b != '\0') {
        a += strspn(a, digits);
        b += strspn(b, digits);
        if (*a != *b)
            return false;
        a += *a != '\0';
        b += *b != '\0';
    }
    return *a == *b;
}

static bool is_first_of_kind(const struct solve *solve, int32_t index)
{
    const char *reason = solve->points.items[index].point->reason;
    for (int32_t i = 0; i < index; i++) {
        if (is_same_reason(solve->points.items[i].point->reason, reason))
            return false;
    }
    return reason != NULL;
}

/* A kind of reason, as the value at `first` has it, with all values that have it. */
static void write_kind(const struct solve *solve, int32_t first, struct arena *arena, FILE *file)
{
    enum { VALUES_MAX = 12 };
    const char *reason = solve->points.items[first].point->reason;
    int32_t count = 0;
    fprintf(file, "refused:");
    for (int32_t i = first; i < solve->points.count; i++) {
        const struct solve_point *point = solve->points.items[i].point;
        if (!is_same_reason(point->reason, reason))
            continue;
        if (count < VALUES_MAX)
            fprintf(file, "%s %s", count > 0 ? "," : "", value_text(arena, point));
        count++;
    }
    if (count > VALUES_MAX)
        fprintf(file, " and %" PRId32 " more", count - VALUES_MAX);
    fprintf(file, "%s: %s\n", count > 1 ? "; the first" : "", text_shown(arena, reason));
}

static void write_refused(const struct solve *solve, struct arena *arena, FILE *file)
{
    for (int32_t i = 0; i < solve->points.count; i++) {
        if (is_first_of_kind(solve, i))
            write_kind(solve, i, arena, file);
    }
    if (solve->is_cut)
        fprintf(file, "most values are refused: not every one was tried\n");
}

/* ---- table -------------------------------------------------------------------------------- */

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot != NULL ? dot + 1 : key;
}

static void add_headings(const struct solve *solve, struct table *table)
{
    table_row(table);
    table_cell(table, "%s", text_shown(&table->arena, last_part(solve->request.knob->key)));
    for (int32_t i = 0; i < solve->request.condition_count; i++) {
        if (!is_repeated(solve, i))
            table_cell(table, "%s", solve->request.conditions[i].metric->name);
    }
    if (!has_metric(solve, "step_time_s"))
        table_cell(table, "step");
    if (!has_metric(solve, "peak_device_bytes"))
        table_cell(table, "memory");
    if (!has_metric(solve, "fits"))
        table_cell(table, "fits");
    table_cell(table, "holds");
}

static void add_point(const struct solve *solve, const struct solve_point *point,
                      struct table *table)
{
    struct arena *arena = &table->arena;
    table_row(table);
    table_cell(table, "%s", value_text(arena, point));
    for (int32_t i = 0; i < solve->request.condition_count; i++) {
        if (!is_repeated(solve, i))
            table_cell(table, "%s", number_text(arena, solve, point, i, TABLE_DIGITS));
    }
    if (!has_metric(solve, "step_time_s"))
        table_cell(table, "%s", seconds_text(arena, point->step_time_s, TABLE_DIGITS));
    if (!has_metric(solve, "peak_device_bytes"))
        table_cell(table, "%s", bytes_text(arena, (double)point->peak_device_bytes, TABLE_DIGITS));
    if (!has_metric(solve, "fits"))
        table_cell(table, "%s", point->fits ? "yes" : "no");
    const bool is_answer = point == solve->answer;
    if (solve->result == SOLVE_NOTHING)
        table_cell(table, "%s", is_answer ? "no, closest" : "no");
    else
        table_cell(table, "%s", is_answer ? "yes, answer" : point->meets ? "yes" : "no");
}

void report_solve(const struct solve *solve, FILE *file)
{
    enum { OTHER_COLUMNS = 5 };
    struct table table;
    table_init(&table, solve->request.condition_count + OTHER_COLUMNS, 0);
    add_headings(solve, &table);
    for (int32_t i = solve_next_valid(solve, -1); i >= 0; i = solve_next_valid(solve, i))
        add_point(solve, solve->points.items[i].point, &table);
    table_write(&table, file);
    fputc('\n', file);
    write_refused(solve, &table.arena, file);
    for (int32_t i = 0; i < solve->request.condition_count; i++) {
        if (!is_repeated(solve, i))
            write_turns(solve, i, &table.arena, file);
    }
    write_intervals(solve, &table.arena, file);
    if (solve->result != SOLVE_NOTHING)
        fprintf(file, "%s\n", answer_text(solve, &table.arena));
    table_release(&table);
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* The value in SI units; NaN (null): a word. */
static double si_value(const char *value)
{
    double number = 0;
    for (int dimension = DIM_NONE; dimension <= DIM_POWER; dimension++) {
        if (units_parse(value, (enum dimension)dimension, &number, NULL) == UNIT_OK)
            return number;
    }
    return (double)NAN;
}

static void json_number(struct json_writer *json, const struct solve *solve,
                        const struct solve_point *point, int32_t condition)
{
    const struct metric *metric = solve->request.conditions[condition].metric;
    const double number = point->numbers[condition];
    json_key(json, metric->name);
    if (metric->kind == METRIC_TEXT)
        json_text(json, point->texts[condition]);
    else if (metric->kind == METRIC_BOOL)
        json_bool(json, number != 0);
    else if (metric->kind == METRIC_INT && !isnan(number))
        json_int(json, (int64_t)number);
    else
        json_double(json, number);
}

static void json_point(struct json_writer *json, const struct solve *solve,
                       const struct solve_point *point)
{
    if (point == NULL) {
        json_text(json, NULL);
        return;
    }
    json_begin_object(json);
    json_key(json, "value");
    json_text(json, point->value);
    json_key(json, "value_si");
    json_double(json, si_value(point->value));
    for (int32_t i = 0; i < solve->request.condition_count; i++) {
        if (!is_repeated(solve, i))
            json_number(json, solve, point, i);
    }
    if (!has_metric(solve, "step_time_s")) {
        json_key(json, "step_time_s");
        json_double(json, point->step_time_s);
    }
    if (!has_metric(solve, "peak_device_bytes")) {
        json_key(json, "peak_device_bytes");
        json_int(json, point->peak_device_bytes);
    }
    if (!has_metric(solve, "fits")) {
        json_key(json, "fits");
        json_bool(json, point->fits);
    }
    json_key(json, "holds");
    json_bool(json, point->meets);
    json_end_object(json);
}

static void json_points(struct json_writer *json, const struct solve *solve)
{
    json_key(json, "points");
    json_begin_array(json);
    for (int32_t i = 0; i < solve->points.count; i++) {
        if (solve->points.items[i].point->reason == NULL)
            json_point(json, solve, solve->points.items[i].point);
    }
    json_end_array(json);
    json_key(json, "refused");
    json_begin_array(json);
    for (int32_t i = 0; i < solve->points.count; i++) {
        const struct solve_point *point = solve->points.items[i].point;
        if (point->reason == NULL)
            continue;
        json_begin_object(json);
        json_key(json, "value");
        json_text(json, point->value);
        json_key(json, "reason");
        json_text(json, point->reason);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_intervals(struct json_writer *json, const struct solve *solve)
{
    json_key(json, "intervals");
    json_begin_array(json);
    for (int32_t i = 0; i < solve->intervals.count; i++) {
        const struct solve_interval *interval = &solve->intervals.items[i];
        json_begin_object(json);
        json_key(json, "first");
        json_text(json, interval->first->value);
        json_key(json, "last");
        json_text(json, interval->last->value);
        json_key(json, "before");
        json_text(json, interval->before != NULL ? interval->before->value : NULL);
        json_key(json, "after");
        json_text(json, interval->after != NULL ? interval->after->value : NULL);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_conditions(struct json_writer *json, const struct solve *solve)
{
    static const char *const trends[] = {NULL, "flat", "rises", "falls", "turns"};
    json_key(json, "conditions");
    json_begin_array(json);
    for (int32_t i = 0; i < solve->request.condition_count; i++) {
        const struct solve_metric *metric = &solve->metrics[i];
        json_begin_object(json);
        json_key(json, "text");
        json_text(json, solve->request.conditions[i].text);
        json_key(json, "metric");
        json_text(json, solve->request.conditions[i].metric->name);
        json_key(json, "trend");
        json_text(json, trends[metric->trend]);
        json_key(json, "turns");
        json_begin_array(json);
        for (int32_t k = 0; k < metric->turns.count && metric->trend == TREND_TURNS; k++)
            json_text(json, metric->turns.items[k].point->value);
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
}

void report_solve_json(const struct solve *solve, FILE *file)
{
    static const char *const results[] = {"found", "everything", "nothing"};
    const struct knob *knob = solve->request.knob;
    const bool is_found = solve->result != SOLVE_NOTHING;
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, OUTCOME_SCHEMA_VERSION);
    json_key(&json, "key");
    json_text(&json, knob->key);
    json_key(&json, "low");
    json_text(&json, knob_low_text(knob));
    json_key(&json, "high");
    json_text(&json, knob_high_text(knob));
    json_key(&json, "tolerance");
    json_double(&json, knob->kind == KNOB_CONTINUOUS ? solve->request.tolerance : (double)NAN);
    json_conditions(&json, solve);
    json_key(&json, "result");
    json_text(&json, results[solve->result]);
    json_key(&json, "wanted");
    json_text(&json, solve->wanted == SOLVE_SMALLEST  ? "smallest"
                     : solve->wanted == SOLVE_LARGEST ? "largest"
                                                      : NULL);
    json_key(&json, "answer");
    json_point(&json, solve, is_found ? solve->answer : NULL);
    json_key(&json, "outside");
    json_point(&json, solve, solve->outside);
    json_key(&json, "closest");
    json_point(&json, solve, is_found ? NULL : solve->answer);
    json_intervals(&json, solve);
    json_points(&json, solve);
    json_end_object(&json);
    json_finish(&json);
}
