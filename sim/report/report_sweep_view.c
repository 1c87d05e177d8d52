/* report/report_sweep_view.c: see report_sweep_view.h. */
#include "report/report_sweep_view.h"

#include <math.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "report/report_sweep.h"
#include "report/report_table_private.h"

/* Of the best tokens a second: less is beyond the knee. */
static const double knee_share = 0.95;
static const char shades[] = " .:-=+*#%@";
enum { SHADE_COUNT = sizeof(shades) - 1, BAR_WIDTH = 40 };

struct cell {
    double value, tokens_per_s; /* NaN: not played */
    bool fits;
};

struct grid {
    const struct sweep_plan *plan;
    const struct metric *metric;
    struct cell *cells; /* of all points */
    double least, most;
    struct arena arena;
};

static enum status grid_load(struct sweep *sweep, const struct metric *metric, struct grid *grid,
                             struct diag *diag)
{
    const int64_t count = sweep->plan->point_count;
    *grid = (struct grid){.plan = sweep->plan, .metric = metric, .least = (double)INFINITY};
    grid->most = -grid->least;
    grid->cells = ARENA_ARRAY(&grid->arena, struct cell, count);
    for (int64_t i = 0; i < count; i++) {
        struct arena scratch = {0};
        struct outcome outcome = {0};
        struct cell *cell = &grid->cells[i];
        *cell = (struct cell){.value = (double)NAN, .tokens_per_s = (double)NAN};
        if (!sweep_has(sweep, i) || sweep->points[i].state != POINT_DONE)
            continue;
        const enum status status = sweep_load(sweep, i, &scratch, &outcome, diag);
        if (status == STATUS_OK) {
            cell->tokens_per_s = outcome.tokens_per_s;
            cell->fits = outcome.fits;
            if (outcome_number(&outcome, metric, &cell->value)) {
                grid->least = fmin(grid->least, cell->value);
                grid->most = fmax(grid->most, cell->value);
            }
        }
        arena_release(&scratch);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* 0 to 1 between the least and the most. */
static double share_of(const struct grid *grid, double value)
{
    return grid->most > grid->least ? (value - grid->least) / (grid->most - grid->least) : 1;
}

static char shade_of(const struct grid *grid, double value)
{
    const int level = (int)(share_of(grid, value) * SHADE_COUNT);
    return shades[level < SHADE_COUNT ? level : SHADE_COUNT - 1];
}

static const char *value_text(struct arena *arena, const struct grid *grid, const struct cell *cell)
{
    char text[40];
    if (isnan(cell->value))
        return "-";
    if (text_equal(grid->metric->unit, "s"))
        format_seconds(text, sizeof(text), cell->value);
    else if (text_equal(grid->metric->unit, "bytes"))
        format_gib(text, sizeof(text), cell->value);
    else if (text_equal(grid->metric->unit, "1"))
        snprintf(text, sizeof(text), "%.1f %%", 100 * cell->value);
    else
        snprintf(text, sizeof(text), cell->value < 1000 ? "%.4g" : "%.0f", cell->value);
    return arena_printf(arena, cell->fits ? "%s" : "(%s)", text);
}

/* The first of `count` successive points with nearly the best of them; -1: none was played. */
static int32_t knee_of(const struct cell *cells, int32_t count)
{
    double best = 0;
    for (int32_t i = 0; i < count; i++)
        if (cells[i].tokens_per_s > best)
            best = cells[i].tokens_per_s;
    for (int32_t i = 0; i < count; i++)
        if (cells[i].tokens_per_s >= knee_share * best && best > 0)
            return i;
    return -1;
}

static const char *shown_value(struct arena *arena, const struct grid *grid, int64_t position,
                               int32_t axis)
{
    return text_shown(arena, sweep_plan_value(grid->plan, position, axis));
}

/* "train.seq_len = 4096, nodes = 8": the first `axes` keys of a point. */
static const char *describe(struct arena *arena, const struct grid *grid, int64_t position,
                            int32_t axes)
{
    const char *text = "";
    for (int32_t i = 0; i < axes; i++)
        text = arena_printf(arena, "%s%s%s = %s", text, i > 0 ? ", " : "",
                            report_sweep_key(grid->plan, i), shown_value(arena, grid, position, i));
    return text;
}

/* ---- map ---------------------------------------------------------------------------------- */

static void add_map_row(struct table *table, const struct grid *grid, int64_t position,
                        int32_t columns)
{
    const int32_t last = grid->plan->axes.count - 1;
    const struct cell *cells = &grid->cells[position];
    table_row(table);
    table_cell(table, "%s", shown_value(&table->arena, grid, position, last - 1));
    for (int32_t k = 0; k < columns; k++) {
        const char shade = isnan(cells[k].value) ? ' ' : shade_of(grid, cells[k].value);
        table_cell(table, "%s %c%c", value_text(&table->arena, grid, &cells[k]), shade, shade);
    }
    const int32_t knee = knee_of(cells, columns);
    table_cell(table, "%s",
               knee < 0 ? "-" : shown_value(&table->arena, grid, position + knee, last));
}

/* The pairs of the last two keys from `position` on. */
static void write_map(const struct grid *grid, int64_t position, FILE *file)
{
    const struct sweep_plan *plan = grid->plan;
    const int32_t last = plan->axes.count - 1;
    const int32_t columns = plan->axes.items[last].values.count;
    const int32_t rows = plan->axes.items[last - 1].values.count;
    struct table table;
    table_init(&table, columns + 2, 0);
    table_row(&table);
    table_cell(&table, "%s", text_shown(&table.arena, report_sweep_key(plan, last - 1)));
    for (int32_t k = 0; k < columns; k++)
        table_cell(&table, "%s   ", shown_value(&table.arena, grid, position + k, last));
    table_cell(&table, "knee");
    for (int32_t i = 0; i < rows; i++)
        add_map_row(&table, grid, position + (int64_t)i * columns, columns);
    if (last > 1)
        fprintf(file, "%s\n", describe(&table.arena, grid, position, last - 1));
    table_write(&table, file);
    table_release(&table);
}

enum status report_sweep_map(struct sweep *sweep, const struct metric *metric, FILE *file,
                             struct diag *diag)
{
    const struct sweep_plan *plan = sweep->plan;
    const int32_t last = plan->axes.count - 1;
    struct grid grid;
    const enum status status = grid_load(sweep, metric, &grid, diag);
    if (status == STATUS_OK) {
        const int64_t size =
            (int64_t)plan->axes.items[last].values.count * plan->axes.items[last - 1].values.count;
        fprintf(file, "%s (%s): %s down, %s across\n\n", metric->name, metric->help,
                report_sweep_key(plan, last - 1), report_sweep_key(plan, last));
        for (int64_t i = 0; i < plan->point_count; i += size) {
            if (i > 0)
                fputc('\n', file);
            write_map(&grid, i, file);
        }
        fprintf(file, "\nknee: the first %s with %.0f %% of the tokens/s of the best in its row\n",
                report_sweep_key(plan, last), 100 * knee_share);
    }
    arena_release(&grid.arena);
    return status;
}

/* ---- line --------------------------------------------------------------------------------- */

static void write_line(const struct grid *grid, int64_t position, FILE *file)
{
    const struct sweep_plan *plan = grid->plan;
    const int32_t last = plan->axes.count - 1;
    const int32_t count = plan->axes.items[last].values.count;
    const struct cell *cells = &grid->cells[position];
    const int32_t knee = knee_of(cells, count);
    struct table table;
    table_init(&table, 3, 0);
    for (int32_t k = 0; k < count; k++) {
        char bar[BAR_WIDTH + 1] = "";
        const double share = grid->most > 0 ? cells[k].value / grid->most : 0;
        const int length = share > 0 ? (int)(share * BAR_WIDTH + 0.5) : 0;
        memset(bar, '#', (size_t)(length < BAR_WIDTH ? length : BAR_WIDTH));
        table_row(&table);
        table_cell(&table, "%s", shown_value(&table.arena, grid, position + k, last));
        table_cell(&table, "%s", value_text(&table.arena, grid, &cells[k]));
        table_cell(&table, "%-*s%s", (int)BAR_WIDTH, bar, k == knee ? " <- knee" : "        ");
    }
    if (last > 0)
        fprintf(file, "%s\n", describe(&table.arena, grid, position, last));
    table_write(&table, file);
    table_release(&table);
}

enum status report_sweep_line(struct sweep *sweep, const struct metric *metric, FILE *file,
                              struct diag *diag)
{
    const struct sweep_plan *plan = sweep->plan;
    const int32_t last = plan->axes.count - 1;
    struct grid grid;
    const enum status status = grid_load(sweep, metric, &grid, diag);
    if (status == STATUS_OK) {
        fprintf(file, "%s (%s) over %s\n\n", metric->name, metric->help,
                report_sweep_key(plan, last));
        for (int64_t i = 0; i < plan->point_count; i += plan->axes.items[last].values.count) {
            if (i > 0)
                fputc('\n', file);
            write_line(&grid, i, file);
        }
        fprintf(file, "\nknee: the first %s with %.0f %% of the tokens/s of the best\n",
                report_sweep_key(plan, last), 100 * knee_share);
    }
    arena_release(&grid.arena);
    return status;
}
