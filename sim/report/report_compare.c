/* report/report_compare.c: the tables; see report_compare.h. */
#include "report/report_compare.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "report/report_table_private.h"

struct scale { /* one unit for a whole table, so that its rows can be added up by eye */
    double factor;
    const char *unit;
    int decimals;
};

struct view {
    const struct compare *compare;
    const char *const *names;
    struct scale seconds, bytes;
    int32_t top;
    bool is_markdown;
    FILE *file;
};

static struct scale seconds_scale(const struct compare *compare)
{
    const double shortest = fmin(compare->a->step_time_s, compare->b->step_time_s);
    if (shortest >= 0.1)
        return (struct scale){1, "s", shortest < 10 ? 4 : 3};
    return shortest >= 1e-4 ? (struct scale){1e3, "ms", 3} : (struct scale){1e6, "us", 3};
}

static struct scale bytes_scale(const struct compare *compare)
{
    const int64_t largest = compare->a->peak_device_bytes > compare->b->peak_device_bytes
                                ? compare->a->peak_device_bytes
                                : compare->b->peak_device_bytes;
    return largest >= INT64_C(1) << 30 ? (struct scale){0x1p-30, "GiB", 2}
                                       : (struct scale){0x1p-20, "MiB", 2};
}

/* ---- cells -------------------------------------------------------------------------------- */

/* Times are whole picoseconds: less, or less of large numbers, is what sums of them lose. */
static bool differ(double a, double b)
{
    static const double rounding = 1e-12;
    return fabs(b - a) > 0.5 * rounding + rounding * fmax(fabs(a), fabs(b));
}

static void add_value(struct table *table, const struct scale *scale, double value)
{
    const double shown = differ(value, 0) ? value * scale->factor : 0;
    table_cell(table, "%.*f %s", scale->decimals, shown, scale->unit);
}

static void add_relative(struct table *table, double a, double b)
{
    const double change = a > 0 || a < 0 ? 100 * (b - a) / fabs(a) : (double)NAN;
    if (isnan(a) || isnan(b) || !differ(a, b))
        table_cell(table, "%s", "");
    else if (isnan(change))
        table_cell(table, "new");
    else if (fabs(change) >= 1000)
        table_cell(table, b / a < 100 ? "%.1f x" : "%.0f x", b / a);
    else
        table_cell(table, "%+.1f %%", change);
}

/* What would be rounded to nothing has a unit of its own. */
static void add_small(struct table *table, const struct scale *scale, double difference)
{
    char text[48];
    const char sign = difference < 0 ? '-' : '+';
    if (text_equal(scale->unit, "%"))
        table_cell(table, "%c<%.*f points", sign, scale->decimals, pow(10, -scale->decimals));
    else if (text_equal(scale->unit, "GiB") || text_equal(scale->unit, "MiB"))
        table_cell(table, "%c%s", sign, format_gib(text, sizeof(text), fabs(difference)));
    else
        table_cell(table, "%c%s", sign, format_seconds(text, sizeof(text), fabs(difference)));
}

static void add_difference(struct table *table, const struct scale *scale, double a, double b)
{
    const double shown = (b - a) * scale->factor;
    if (!differ(a, b))
        table_cell(table, "=");
    else if (fabs(shown) < 0.5 * pow(10, -scale->decimals))
        add_small(table, scale, b - a);
    else
        table_cell(table, "%+.*f %s", scale->decimals, shown,
                   text_equal(scale->unit, "%") ? "points" : scale->unit);
}

static void add_row(struct table *table, const struct scale *scale, const char *label, double a,
                    double b)
{
    table_row(table);
    table_cell(table, "%s", text_shown(&table->arena, label));
    add_value(table, scale, a);
    add_value(table, scale, b);
    add_difference(table, scale, a, b);
    add_relative(table, a, b);
}

/* "unsharded_parameters" → "  unsharded parameters" */
static const char *label_of(struct arena *arena, const char *indent, const char *name)
{
    char *label = arena_printf(arena, "%s%s", indent, name);
    for (char *line = strchr(label, '_'); line != NULL; line = strchr(line, '_'))
        *line = ' ';
    return label;
}

static void add_parts(struct table *table, const struct scale *scale,
                      const struct compare_parts *parts)
{
    for (int32_t i = 0; i < parts->count; i++) {
        const struct compare_part *part = &parts->items[i];
        add_row(table, scale, label_of(&table->arena, "  ", part->name), part->a, part->b);
    }
}

static const char *range_label(struct arena *arena, const char *first, const char *last,
                               int32_t count)
{
    if (count == 1)
        return arena_printf(arena, "  %s", first);
    return arena_printf(arena, "  %s … %s (%" PRId32 ")", first, last, count);
}

static void begin(struct table *table, const char *title, int32_t columns,
                  const char *const *headings)
{
    table_init(table, columns, 1);
    table_row(table);
    table_cell(table, "%s", title);
    for (int32_t i = 0; headings[i] != NULL; i++)
        table_cell(table, "%s", headings[i]);
}

static void end(const struct view *view, struct table *table)
{
    if (view->is_markdown)
        table_write_markdown(table, view->file);
    else
        table_write(table, view->file);
    fputc('\n', view->file);
    table_release(table);
}

static const char *const difference_headings[] = {"A", "B", "B - A", "of A", NULL};
enum { DIFFERENCE_COLUMNS = 5 };

/* ---- settings ----------------------------------------------------------------------------- */

static void add_setting(struct table *table, const struct compare_setting *setting)
{
    struct arena *arena = &table->arena;
    const char *key = text_shown(arena, setting->key);
    table_row(table);
    if (setting->inside > 0)
        key = arena_printf(arena, "%s (and %" PRId32 " keys in it)", key, setting->inside);
    table_cell(table, "%s", key);
    table_cell(table, "%s", setting->a != NULL ? text_shown(arena, setting->a) : "-");
    table_cell(table, "%s", setting->b != NULL ? text_shown(arena, setting->b) : "-");
    if (table->column_count < DIFFERENCE_COLUMNS)
        return;
    table_cell(table, "%s", setting->from_a != NULL ? text_shown(arena, setting->from_a) : "-");
    table_cell(table, "%s", setting->from_b != NULL ? text_shown(arena, setting->from_b) : "-");
}

static void write_settings(const struct view *view)
{
    enum { ROWS_MAX = 40, SHORT_COLUMNS = 3 };
    static const char *const headings[] = {"A", "B", "A from", "B from", NULL};
    static const char *const short_headings[] = {"A", "B", NULL};
    const struct compare *compare = view->compare;
    struct table table;
    int32_t shown = 0;
    int32_t left = 0;
    begin(&table, "settings that differ",
          compare->has_settings ? DIFFERENCE_COLUMNS : SHORT_COLUMNS,
          compare->has_settings ? headings : short_headings);
    table.left_count = table.column_count;
    for (int32_t i = 0; i < 2 * compare->settings.count; i++) {
        /* What follows from others comes after them. */
        const struct compare_setting *setting =
            &compare->settings.items[i % compare->settings.count];
        if (setting->is_inside || setting->follows != (i >= compare->settings.count))
            continue;
        if (shown < ROWS_MAX)
            add_setting(&table, setting);
        left += shown >= ROWS_MAX;
        shown += shown < ROWS_MAX;
    }
    if (shown == 0) {
        fprintf(view->file, "no setting differs\n\n");
        table_release(&table);
        return;
    }
    end(view, &table);
    if (left > 0)
        fprintf(view->file, "(and %" PRId32 " more: --json has them all)\n\n", left);
}

/* ---- time --------------------------------------------------------------------------------- */

static void write_time(const struct view *view)
{
    const struct compare *compare = view->compare;
    const double a = compare->a->step_time_s;
    const double b = compare->b->step_time_s;
    struct table table;
    begin(&table, "time by category", DIFFERENCE_COLUMNS, difference_headings);
    add_parts(&table, &view->seconds, &compare->time);
    add_row(&table, &view->seconds, "step time", a, b);
    end(view, &table);
    begin(&table, "time by phase", DIFFERENCE_COLUMNS, difference_headings);
    add_parts(&table, &view->seconds, &compare->phases);
    add_row(&table, &view->seconds, "step time", a, b);
    end(view, &table);
}

/* 0 where a side does not have it. */
static double field_of(const struct outcome_unit *unit, int which)
{
    if (unit == NULL)
        return 0;
    return which == 0 ? unit->forward_s : which == 1 ? unit->backward_s : unit->exposed_s;
}

static void add_unit(struct table *table, const struct view *view, const struct compare_unit *unit)
{
    add_row(table, &view->seconds, range_label(&table->arena, unit->first, unit->last, unit->count),
            unit->a_s, unit->b_s);
    for (int which = 0; which < 3; which++)
        add_difference(table, &view->seconds, unit->count * field_of(unit->a, which),
                       unit->count * field_of(unit->b, which));
}

static void write_units(const struct view *view)
{
    enum { COLUMNS = 8 };
    static const char *const headings[] = {"A",       "B",        "B - A",   "of A",
                                           "forward", "backward", "exposed", NULL};
    const struct compare *compare = view->compare;
    struct table table;
    double rest_a = 0;
    double rest_b = 0;
    if (!compare->has_units)
        return;
    begin(&table, "time by unit (forward, backward, exposed)", COLUMNS, headings);
    for (int32_t i = 0; i < compare->units.count; i++) {
        const struct compare_unit *unit = &compare->units.items[i];
        if (i < view->top) {
            add_unit(&table, view, unit);
            continue;
        }
        rest_a += unit->a_s;
        rest_b += unit->b_s;
    }
    if (compare->units.count > view->top)
        add_row(
            &table, &view->seconds,
            arena_printf(&table.arena, "  (%" PRId32 " more)", compare->units.count - view->top),
            rest_a, rest_b);
    add_row(&table, &view->seconds, "  outside of units", compare->outside_a_s,
            compare->outside_b_s);
    add_row(&table, &view->seconds, "step time", compare->a->step_time_s, compare->b->step_time_s);
    end(view, &table);
}

static void write_collectives(const struct view *view)
{
    enum { COLUMNS = 7 };
    static const char *const headings[] = {"A", "B", "A alone", "B alone", "B - A", "of A", NULL};
    const struct compare *compare = view->compare;
    struct table table;
    if (compare->collectives.count == 0)
        return;
    begin(&table, "collectives of a step", COLUMNS, headings);
    for (int32_t i = 0; i < compare->collectives.count; i++) {
        const struct compare_collective *one = &compare->collectives.items[i];
        table_row(&table);
        table_cell(&table, "  %s, %s", one->op, text_shown(&table.arena, one->communicator));
        table_cell(&table, "%" PRId64, one->count_a);
        table_cell(&table, "%" PRId64, one->count_b);
        add_value(&table, &view->seconds, one->alone_a_s);
        add_value(&table, &view->seconds, one->alone_b_s);
        add_difference(&table, &view->seconds, one->alone_a_s, one->alone_b_s);
        add_relative(&table, one->alone_a_s, one->alone_b_s);
    }
    end(view, &table);
}

/* ---- throughput and memory ---------------------------------------------------------------- */

static void add_metric(struct table *table, const struct view *view, const char *label,
                       const char *name)
{
    static const struct scale percent = {100, "%", 1};
    static const struct scale plain = {1, "", 0};
    const struct metric *metric = outcome_metric(name);
    double a = (double)NAN;
    double b = (double)NAN;
    BUG_IF(metric == NULL);
    const bool has_a = outcome_number(view->compare->a, metric, &a);
    const bool has_b = outcome_number(view->compare->b, metric, &b);
    const struct scale *scale = text_equal(metric->unit, "1") ? &percent : &plain;
    if (has_a && has_b && scale == &percent) {
        add_row(table, scale, label, a, b);
        return;
    }
    table_row(table);
    table_cell(table, "%s", label);
    const int decimals = fmax(fabs(a), fabs(b)) < 1000 ? 1 : 0;
    for (int side = 0; side < 2; side++) {
        const double value = side == 0 ? a : b;
        if (isnan(value))
            table_cell(table, "not defined");
        else
            table_cell(table, "%.*f", metric->kind == METRIC_INT ? 0 : decimals, value);
    }
    if (differ(a, b))
        table_cell(table, "%+.*f", metric->kind == METRIC_INT ? 0 : decimals, b - a);
    else
        table_cell(table, "%s", has_a && has_b ? "=" : "");
    add_relative(table, a, b);
}

/* Where a price is known, in one currency. */
static void add_cost(struct table *table, const struct view *view)
{
    static const char name[] = "cost_per_billion_tokens";
    const struct outcome *a = view->compare->a;
    const struct outcome *b = view->compare->b;
    double cost = 0;
    if ((outcome_number(a, outcome_metric(name), &cost) ||
         outcome_number(b, outcome_metric(name), &cost)) &&
        text_equal(a->currency, b->currency))
        add_metric(table, view, "  cost of a billion tokens", name);
}

static void write_throughput(const struct view *view)
{
    struct table table;
    begin(&table, "throughput", DIFFERENCE_COLUMNS, difference_headings);
    add_metric(&table, view, "  GPUs", "n_gpus");
    add_metric(&table, view, "  tokens per step", "tokens_per_step");
    add_metric(&table, view, "  tokens/s", "tokens_per_s");
    add_metric(&table, view, "  tokens/s/GPU", "tokens_per_s_per_gpu");
    add_metric(&table, view, "  MFU", "mfu");
    add_metric(&table, view, "  exposed fraction", "exposed_comm_fraction");
    add_cost(&table, view);
    end(view, &table);
}

static void write_memory_units(const struct view *view)
{
    const struct compare *compare = view->compare;
    struct table table;
    double rest_a = 0;
    double rest_b = 0;
    if (compare->memory_units.count == 0)
        return;
    begin(&table, "memory by unit, at the active peak", DIFFERENCE_COLUMNS, difference_headings);
    for (int32_t i = 0; i < compare->memory_units.count; i++) {
        const struct compare_part *part = &compare->memory_units.items[i];
        if (i < view->top) {
            add_row(&table, &view->bytes,
                    range_label(&table.arena, part->name, part->last, part->count), part->a,
                    part->b);
            continue;
        }
        rest_a += part->a;
        rest_b += part->b;
    }
    if (compare->memory_units.count > view->top)
        add_row(&table, &view->bytes,
                arena_printf(&table.arena, "  (%" PRId32 " more)",
                             compare->memory_units.count - view->top),
                rest_a, rest_b);
    add_row(&table, &view->bytes, "peak active", (double)compare->a->peak_active_bytes,
            (double)compare->b->peak_active_bytes);
    end(view, &table);
}

static void write_memory(const struct view *view)
{
    const struct outcome *a = view->compare->a;
    const struct outcome *b = view->compare->b;
    struct table table;
    begin(&table, "memory of one GPU", DIFFERENCE_COLUMNS, difference_headings);
    add_parts(&table, &view->bytes, &view->compare->memory);
    add_row(&table, &view->bytes, "peak device", (double)a->peak_device_bytes,
            (double)b->peak_device_bytes);
    add_row(&table, &view->bytes, "peak reserved", (double)a->peak_reserved_bytes,
            (double)b->peak_reserved_bytes);
    add_row(&table, &view->bytes, "peak active", (double)a->peak_active_bytes,
            (double)b->peak_active_bytes);
    add_row(&table, &view->bytes, "capacity", (double)a->memory_capacity_bytes,
            (double)b->memory_capacity_bytes);
    end(view, &table);
    write_memory_units(view);
}

void report_compare(const struct compare *compare, const char *const names[2], int32_t top,
                    bool is_markdown, FILE *file)
{
    struct arena scratch = {0};
    const struct view view = {.compare = compare,
                              .names = names,
                              .seconds = seconds_scale(compare),
                              .bytes = bytes_scale(compare),
                              .top = top > 0 ? top : COMPARE_ROWS,
                              .is_markdown = is_markdown,
                              .file = file};
    fprintf(file, "A: %s\n%sB: %s\n\n", text_shown(&scratch, names[0]), is_markdown ? "\n" : "",
            text_shown(&scratch, names[1]));
    write_settings(&view);
    write_time(&view);
    write_units(&view);
    write_collectives(&view);
    write_throughput(&view);
    write_memory(&view);
    fprintf(file, "%s\n", report_compare_words(compare, &scratch));
    arena_release(&scratch);
}
