/* report/report_tornado.c: see report_tornado.h. */
#include "report/report_tornado.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "numeric/distribution.h"
#include "report/report_sweep.h"
#include "report/report_table_private.h"

enum { BAR_WIDTH = 30 };

struct bar { /* of a key */
    int32_t axis;
    double least, most;         /* one by one */
    double weight, correlation; /* what it is sorted by; Sobol's points */
};

struct tornado {
    struct arena arena;
    const struct sweep_plan *plan;
    const struct metric *metric;
    double *values; /* by point; NaN: none */
    struct bar *bars;
    int64_t done;
};

static enum status load(struct tornado *tornado, struct sweep *sweep, struct diag *diag)
{
    const int64_t count = sweep->plan->point_count;
    enum status status = STATUS_OK;
    tornado->values = ARENA_ARRAY(&tornado->arena, double, count);
    for (int64_t i = 0; i < count && status == STATUS_OK; i++) {
        struct arena scratch = {0};
        struct outcome outcome = {0};
        tornado->values[i] = (double)NAN;
        if (!sweep_has(sweep, i) || sweep->points[i].state != POINT_DONE)
            continue;
        status = sweep_load(sweep, i, &scratch, &outcome, diag);
        if (status == STATUS_OK && outcome_number(&outcome, tornado->metric, &tornado->values[i]))
            tornado->done++;
        arena_release(&scratch);
    }
    return status;
}

static void find_swing(const struct tornado *tornado, struct bar *bar)
{
    const struct sweep_plan *plan = tornado->plan;
    bar->least = bar->most = tornado->values[0];
    for (int64_t i = 1; i < plan->point_count; i++) {
        if (sweep_plan_is_base(plan, i, bar->axis))
            continue;
        bar->least = fmin(bar->least, tornado->values[i]); /* fmin, fmax pass over NaN */
        bar->most = fmax(bar->most, tornado->values[i]);
    }
    bar->weight = bar->most - bar->least;
    if (isnan(bar->weight))
        bar->weight = 0;
}

static void find_correlation(const struct tornado *tornado, struct bar *bar)
{
    const struct sweep_plan *plan = tornado->plan;
    struct arena scratch = {0};
    double *x = ARENA_ARRAY(&scratch, double, tornado->done);
    double *y = ARENA_ARRAY(&scratch, double, tornado->done);
    double *work = ARENA_ARRAY(&scratch, double, 2 * tornado->done);
    size_t count = 0;
    for (int64_t i = 0; i < plan->point_count; i++) {
        if (isnan(tornado->values[i]))
            continue;
        x[count] = plan->axes.items[bar->axis].numbers[i];
        y[count++] = tornado->values[i];
    }
    bar->correlation = rank_correlation(x, y, count, work);
    bar->weight = fabs(bar->correlation);
    arena_release(&scratch);
}

/* The heaviest first; of equal ones the first key. */
static int compare_bars(const void *a, const void *b)
{
    const struct bar *x = a, *y = b;
    if (x->weight > y->weight || x->weight < y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->axis > y->axis) - (x->axis < y->axis);
}

static const char *value_text(struct arena *arena, const struct metric *metric, double value)
{
    char text[40];
    if (isnan(value))
        return "-";
    if (text_equal(metric->unit, "s"))
        format_seconds(text, sizeof(text), value);
    else if (text_equal(metric->unit, "bytes"))
        format_gib(text, sizeof(text), value);
    else if (text_equal(metric->unit, "1"))
        snprintf(text, sizeof(text), "%.1f %%", 100 * value);
    else
        snprintf(text, sizeof(text), "%.6g", value);
    return arena_strdup(arena, text);
}

static const char *bar_text(struct arena *arena, double share)
{
    const int length = share > 0 ? (int)lround(share * BAR_WIDTH) : 0;
    char text[BAR_WIDTH + 1] = "";
    for (int i = 0; i < length && i < BAR_WIDTH; i++)
        text[i] = '#';
    text[length < BAR_WIDTH ? length : BAR_WIDTH] = '\0';
    return arena_strdup(arena, text);
}

/* "25Gbps: 3.2 s, 400Gbps: 1.1 s" */
static const char *points_text(struct tornado *tornado, int32_t axis)
{
    const struct sweep_plan *plan = tornado->plan;
    struct strbuf text = {0};
    strbuf_add(&text, "");
    for (int64_t i = 1; i < plan->point_count; i++) {
        if (sweep_plan_is_base(plan, i, axis))
            continue;
        const char *value = text_shown(&tornado->arena, sweep_plan_value(plan, i, axis));
        strbuf_printf(&text, "%s%s: %s", text.length > 0 ? ", " : "", value,
                      value_text(&tornado->arena, tornado->metric, tornado->values[i]));
    }
    const char *whole = arena_strdup(&tornado->arena, text.text);
    strbuf_release(&text);
    return whole;
}

static void write_swings(struct tornado *tornado, FILE *file)
{
    struct table table;
    const double widest = tornado->bars[0].weight;
    fprintf(file, "%s, base: %s\n\n", tornado->metric->name,
            value_text(&tornado->arena, tornado->metric, tornado->values[0]));
    table_init(&table, 4, 4);
    table_row(&table);
    table_cell(&table, "key");
    table_cell(&table, "swing");
    table_cell(&table, "%s", "");
    table_cell(&table, "at its values");
    for (int32_t i = 0; i < tornado->plan->axes.count; i++) {
        const struct bar *bar = &tornado->bars[i];
        table_row(&table);
        table_cell(&table, "%s",
                   text_shown(&table.arena, report_sweep_key(tornado->plan, bar->axis)));
        table_cell(&table, "%s", value_text(&table.arena, tornado->metric, bar->weight));
        table_cell(&table, "%s", bar_text(&table.arena, widest > 0 ? bar->weight / widest : 0));
        table_cell(&table, "%s", points_text(tornado, bar->axis));
    }
    table_write(&table, file);
    table_release(&table);
}

static void write_correlations(struct tornado *tornado, FILE *file)
{
    struct table table;
    fprintf(file, "%s, rank correlation (Spearman) over %" PRId64 " points\n\n",
            tornado->metric->name, tornado->done);
    table_init(&table, 3, 3);
    table_row(&table);
    table_cell(&table, "key");
    table_cell(&table, "r");
    table_cell(&table, "%s", "");
    for (int32_t i = 0; i < tornado->plan->axes.count; i++) {
        const struct bar *bar = &tornado->bars[i];
        table_row(&table);
        table_cell(&table, "%s",
                   text_shown(&table.arena, report_sweep_key(tornado->plan, bar->axis)));
        table_cell(&table, "%+.2f", bar->correlation);
        table_cell(&table, "%s", bar_text(&table.arena, bar->weight));
    }
    table_write(&table, file);
    table_release(&table);
}

enum status report_tornado(struct sweep *sweep, const struct metric *metric, FILE *file,
                           struct diag *diag)
{
    const struct sweep_plan *plan = sweep->plan;
    struct tornado tornado = {.plan = plan, .metric = metric};
    const enum status status = load(&tornado, sweep, diag);
    tornado.bars = ARENA_ARRAY(&tornado.arena, struct bar, plan->axes.count);
    for (int32_t i = 0; i < plan->axes.count && status == STATUS_OK; i++) {
        tornado.bars[i].axis = i;
        if (plan->is_one_by_one)
            find_swing(&tornado, &tornado.bars[i]);
        else
            find_correlation(&tornado, &tornado.bars[i]);
    }
    if (status == STATUS_OK) {
        qsort(tornado.bars, (size_t)plan->axes.count, sizeof(struct bar), compare_bars);
        if (plan->is_one_by_one)
            write_swings(&tornado, file);
        else
            write_correlations(&tornado, file);
    }
    arena_release(&tornado.arena);
    return status;
}
