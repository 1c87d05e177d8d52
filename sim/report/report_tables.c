/* report/report_tables.c: units, collectives and links of one run as tables; see report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "report/report.h"
#include "report/report_table_private.h"

/* Equal units, or one; adapters may lie between blocks. */
struct unit_group {
    const struct outcome_unit *first, *last;
    int32_t count;
    bool has_gaps;  /* not every number from first to last */
    double total_s; /* of one unit */
};

/* Exposed time and its own kernels: what the unit adds to the step. */
static double unit_total_s(const struct outcome_unit *unit)
{
    return unit->forward_s + unit->backward_s + unit->exposed_s;
}

static int compare_groups(const void *a, const void *b)
{
    const struct unit_group *one = a, *other = b;
    if (one->total_s < other->total_s)
        return 1;
    if (one->total_s > other->total_s)
        return -1;
    /* Same array: the earlier unit first, so that the order is defined. */
    return one->first < other->first ? -1 : one->first > other->first;
}

static int compare_units(const void *a, const void *b)
{
    const double one = unit_total_s(a);
    const double other = unit_total_s(b);
    if (one < other)
        return 1;
    /* Same array: the earlier unit first. */
    return one > other ? -1 : a < b ? -1 : a > b;
}

void report_sort_units(struct outcome_unit *units, int32_t count)
{
    if (count > 1)
        qsort(units, (size_t)count, sizeof(*units), compare_units);
}

/* Like the last too, or numbers in two places would run together ("0.1 … 0.2 … 1.1"). */
static bool belongs(const struct unit_group *group, const struct outcome_unit *unit)
{
    return outcome_units_are_alike(group->first, unit) &&
           outcome_names_are_alike(group->last->name, unit->name);
}

static void join(struct unit_group *group, const struct outcome_unit *unit)
{
    if (!outcome_name_is_next(group->last->name, unit->name))
        group->has_gaps = true;
    group->last = unit;
    group->count++;
}

static int32_t group_units(const struct outcome *outcome, struct unit_group *groups)
{
    int32_t count = 0;
    for (int32_t i = 0; i < outcome->unit_count; i++) {
        const struct outcome_unit *unit = &outcome->units[i];
        int32_t k = count - 1; /* the latest groups first: they are the nearest */
        while (k >= 0 && !belongs(&groups[k], unit))
            k--;
        if (k >= 0)
            join(&groups[k], unit);
        else
            groups[count++] = (struct unit_group){
                .first = unit, .last = unit, .count = 1, .total_s = unit_total_s(unit)};
    }
    return count;
}

static void add_seconds(struct table *table, double seconds)
{
    char text[48];
    table_cell(table, "%s", format_seconds(text, sizeof(text), seconds));
}

static void add_group(struct table *table, const struct unit_group *group)
{
    char text[48];
    table_row(table);
    if (group->count > 1)
        table_cell(table, "%s%s … %s", group->has_gaps ? "some of " : "", group->first->name,
                   group->last->name);
    else
        table_cell(table, "%s", group->first->name);
    table_cell(table, "%s", format_count(text, sizeof(text), group->count));
    table_cell(table, "%s", format_count(text, sizeof(text), group->first->parameters));
    add_seconds(table, group->first->forward_s);
    add_seconds(table, group->first->backward_s);
    add_seconds(table, group->first->all_gather_s);
    add_seconds(table, group->first->reduce_scatter_s);
    add_seconds(table, group->first->exposed_s);
}

static void add_titles(struct table *table, const char *const *titles)
{
    table_row(table);
    for (; *titles != NULL; titles++)
        table_cell(table, "%s", *titles);
}

void report_units(const struct outcome *outcome, int32_t top, FILE *file)
{
    static const char *const titles[] = {"unit (times of one, per step)",
                                         "count",
                                         "parameters",
                                         "forward",
                                         "backward",
                                         "gather",
                                         "scatter",
                                         "exposed",
                                         NULL};
    struct arena scratch = {0};
    struct table table;
    struct unit_group *groups = ARENA_ARRAY(&scratch, struct unit_group, outcome->unit_count + 1);
    const int32_t count = group_units(outcome, groups);
    qsort(groups, (size_t)count, sizeof(*groups), compare_groups);

    table_init(&table, 8, 1);
    add_titles(&table, titles);
    for (int32_t i = 0; i < count && i < top; i++)
        add_group(&table, &groups[i]);
    table_write(&table, file);
    if (count > top)
        fprintf(file, "(%d more)\n", (int)(count - top));
    table_release(&table);
    arena_release(&scratch);
}

void report_collectives(const struct outcome *outcome, FILE *file)
{
    static const char *const titles[] = {"collective", "communicator",  "count", "size",
                                         "alone",      "bus bandwidth", NULL};
    char text[48];
    struct table table;
    table_init(&table, 6, 2);
    add_titles(&table, titles);
    for (int32_t i = 0; i < outcome->collective_count; i++) {
        const struct outcome_collective *one = &outcome->collectives[i];
        table_row(&table);
        table_cell(&table, "%s", one->op);
        table_cell(&table, "%s", one->communicator);
        table_cell(&table, "%s", format_count(text, sizeof(text), one->count));
        table_cell(&table, "%s", format_bytes(text, sizeof(text), one->bytes));
        add_seconds(&table, one->alone_s);
        table_cell(&table, "%s", format_bandwidth(text, sizeof(text), one->busbw_bytes_per_s));
    }
    table_write(&table, file);
    table_release(&table);
}

void report_links(const struct outcome *outcome, FILE *file)
{
    static const char *const titles[] = {
        "link (one direction)", "capacity", "instances", "bytes per step", "busy",
        "utilisation",          NULL};
    char text[48];
    struct table table;
    table_init(&table, 6, 1);
    add_titles(&table, titles);
    for (int32_t i = 0; i < outcome->link_count; i++) {
        const struct outcome_link *link = &outcome->links[i];
        table_row(&table);
        table_cell(&table, "%s", link->name);
        table_cell(&table, "%s", format_bandwidth(text, sizeof(text), link->capacity_bytes_per_s));
        table_cell(&table, "%s", format_count(text, sizeof(text), link->instances));
        table_cell(&table, "%s", format_bytes(text, sizeof(text), link->bytes));
        table_cell(&table, "%.1f %%", link->busy_frac * 100);
        table_cell(&table, "%.1f %%", link->utilisation * 100);
    }
    table_write(&table, file);
    table_release(&table);
}
