/* report/report_why.c: see report_why.h: the text. */
#include "report/report_why.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/report_table_private.h"

static const char *const cause_words[PATH_CAUSE_COUNT] = {
    [PATH_COMPUTE] = "kernels",
    [PATH_FSDP_COPY] = "FSDP's own copies",
    [PATH_CONTENTION] = "kernels slowed by what runs beside",
    [PATH_ALL_GATHER] = "all-gather",
    [PATH_REDUCE_SCATTER] = "reduce-scatter",
    [PATH_ALL_REDUCE] = "all-reduce",
    [PATH_OTHER_COLLECTIVE] = "other collectives",
    [PATH_SHARING] = "transfers slowed by what runs beside",
    [PATH_MEMCPY] = "copies between host and device",
    [PATH_HOST] = "host thread",
    [PATH_HOST_COMPUTE] = "host computes",
    [PATH_RETRY] = "allocator out of memory, retries",
};

static const char *unit_words(const struct why *why, int32_t unit)
{
    return unit < 0 ? "outside units" : why->path->program->units.items[unit].name;
}

static double step_s(const struct why *why, int64_t ps)
{
    return s_from_ps(ps) / (double)why->steps;
}

static void add_seconds(struct table *table, double seconds)
{
    char text[48];
    table_cell(table, "%s", format_seconds(text, sizeof(text), seconds));
}

/* ---- the path ------------------------------------------------------------------------------ */

/* The units with the largest part of a cause: "embed_tokens 4.1 ms, layers.0 1.2 ms, …". */
static const char *largest_units(const struct why *why, enum path_cause cause, struct arena *arena)
{
    enum { SHOWN = 3 };
    const struct critical_path *path = why->path;
    const char *text = "";
    int32_t shown = 0;
    for (int32_t i = 0; i < path->shares.count; i++) {
        const struct path_share *share = &path->shares.items[i];
        char time[48];
        if (share->cause != cause)
            continue;
        if (shown == SHOWN)
            return arena_printf(arena, "%s, …", text);
        format_seconds(time, sizeof(time), step_s(why, share->ps));
        text = arena_printf(arena, "%s%s%s %s", text, shown++ > 0 ? ", " : "",
                            unit_words(why, share->unit), time);
    }
    return text;
}

static void path_rows(const struct why *why, struct table *table)
{
    const struct critical_path *path = why->path;
    for (int cause = 0; cause < PATH_CAUSE_COUNT; cause++) {
        const int64_t ps = path->by_cause_ps[cause];
        if (ps == 0)
            continue;
        table_row(table);
        table_cell(table, "  %s", cause_words[cause]);
        table_cell(table, "%s", largest_units(why, (enum path_cause)cause, &table->arena));
        add_seconds(table, step_s(why, ps));
        table_cell(table, "%.1f %%", 100 * (double)ps / (double)path->length_ps);
    }
}

static void write_path(const struct why *why, FILE *file)
{
    struct table table;
    char text[48];
    table_init(&table, 4, 2);
    table_row(&table);
    table_cell(&table, "critical path of the step");
    table_cell(&table, "largest units");
    add_seconds(&table, step_s(why, why->path->length_ps));
    table_cell(&table, "100.0 %%");
    path_rows(why, &table);
    table_write(&table, file);
    table_release(&table);
    if (why->path->elsewhere_ps > 0)
        fprintf(file, "(%s of it on other classes of ranks)\n",
                format_seconds(text, sizeof(text), step_s(why, why->path->elsewhere_ps)));
}

/* ---- waits --------------------------------------------------------------------------------- */

/* Waits of several units for the same reason. */
struct wait_group {
    const struct path_wait *first;
    int32_t units;
    int64_t count, ps;
    bool is_own, is_behind_one; /* for what is the unit's own; behind one and the same unit */
};

static bool is_own(const struct path_wait *wait)
{
    return wait->unit >= 0 && wait->for_unit == wait->unit;
}

static bool is_alike(const struct wait_group *group, const struct path_wait *wait)
{
    const struct path_wait *first = group->first;
    return first->phase == wait->phase && first->for_cause == wait->for_cause &&
           first->late == wait->late && first->late_cause == wait->late_cause &&
           first->late_rank == wait->late_rank && group->is_own == is_own(wait) &&
           (first->unit < 0) == (wait->unit < 0);
}

static int compare_groups(const void *a, const void *b)
{
    const struct wait_group *one = a;
    const struct wait_group *other = b;
    if (one->ps != other->ps)
        return one->ps < other->ps ? 1 : -1;
    return (one->first > other->first) - (one->first < other->first);
}

static int32_t group_waits(const struct critical_path *path, struct wait_group *groups)
{
    int32_t count = 0;
    for (int32_t i = 0; i < path->waits.count; i++) {
        const struct path_wait *wait = &path->waits.items[i];
        int32_t k = 0;
        while (k < count && !is_alike(&groups[k], wait))
            k++;
        if (k == count)
            groups[count++] =
                (struct wait_group){.first = wait, .is_own = is_own(wait), .is_behind_one = true};
        groups[k].units++;
        groups[k].count += wait->count;
        groups[k].ps += wait->ps;
        groups[k].is_behind_one &= wait->late_unit == groups[k].first->late_unit;
    }
    if (count > 1)
        qsort(groups, (size_t)count, sizeof(*groups), compare_groups);
    return count;
}

static const char *waiter_words(const struct why *why, const struct wait_group *group,
                                struct arena *arena)
{
    const char *phase = path_phase_name(group->first->phase);
    const char *unit = unit_words(why, group->first->unit);
    if (group->first->unit < 0)
        return arena_printf(arena, "end of %s", phase);
    if (group->units == 1)
        return arena_printf(arena, "%s of %s", phase, unit);
    return arena_printf(arena, "%s of %s and %d more", phase, unit, (int)group->units - 1);
}

static const char *for_words(const struct why *why, const struct wait_group *group,
                             struct arena *arena)
{
    const struct path_wait *first = group->first;
    const char *what = cause_words[first->for_cause];
    if (first->for_cause == PATH_HOST)
        return "the host to issue it";
    if (first->for_cause == PATH_HOST_COMPUTE)
        return "the host, which computed";
    if (group->is_own)
        return arena_printf(arena, "its %s", what);
    if (group->units > 1 || first->for_unit < 0)
        return arena_printf(arena, "%s", what);
    return arena_printf(arena, "%s of %s", what, unit_words(why, first->for_unit));
}

static const char *behind_words(const struct why *why, const struct wait_group *group,
                                struct arena *arena)
{
    const struct path_wait *first = group->first;
    const char *what = cause_words[first->late_cause];
    if (!group->is_behind_one || first->late_unit < 0)
        return what;
    return arena_printf(arena, "%s of %s", what, unit_words(why, first->late_unit));
}

static const char *late_words(const struct why *why, const struct wait_group *group,
                              struct arena *arena)
{
    const char *behind = behind_words(why, group, arena);
    switch (group->first->late) {
    case LATE_HOST:
        return "issued late by the host";
    case LATE_EVENT:
        return arena_printf(arena, "could begin after %s", behind);
    case LATE_TURN:
        return arena_printf(arena, "behind %s on its communicator", behind);
    case LATE_STREAM:
        return arena_printf(arena, "behind %s on its stream", behind);
    case LATE_RENDEZVOUS:
        return arena_printf(arena, "rank %lld came late", (long long)group->first->late_rank);
    case LATE_LONG:
    case LATE_COUNT:
        break;
    }
    return "";
}

static void wait_row(const struct why *why, const struct wait_group *group, struct table *table)
{
    struct arena *arena = &table->arena;
    char text[48];
    const int64_t count = (group->count + why->steps - 1) / why->steps;
    table_row(table);
    table_cell(table, "  %s", waiter_words(why, group, arena));
    table_cell(table, "%s", for_words(why, group, arena));
    table_cell(table, "%s", late_words(why, group, arena));
    table_cell(table, "%s", format_count(text, sizeof(text), count));
    add_seconds(table, step_s(why, group->ps));
}

static void write_waits(const struct why *why, int32_t top, FILE *file)
{
    const struct critical_path *path = why->path;
    struct table table;
    if (path->waits.count == 0) {
        fputs("the compute stream never stood still\n", file);
        return;
    }
    table_init(&table, 5, 3);
    struct wait_group *groups = ARENA_ARRAY(&table.arena, struct wait_group, path->waits.count);
    const int32_t count = group_waits(path, groups);
    table_row(&table);
    table_cell(&table, "the compute stream stood still");
    table_cell(&table, "for");
    table_cell(&table, "which was");
    table_cell(&table, "times");
    add_seconds(&table, step_s(why, path->held_ps));
    for (int32_t i = 0; i < count && i < top; i++)
        wait_row(why, &groups[i], &table);
    table_write(&table, file);
    table_release(&table);
    if (count > top)
        fprintf(file, "  (%d more)\n", (int)(count - top));
}

/* ---- settings ------------------------------------------------------------------------------ */

/* As a shell reads it: "-s 'mesh={dp_replicate: 4}'". */
static const char *settings_words(const struct advice_item *item, struct arena *arena)
{
    const char *words = "";
    for (int i = 0; i < 3 && item->texts[i] != NULL; i++) {
        const char *quote = strpbrk(item->texts[i], " {}[]*?&|;<>()$`") != NULL ? "'" : "";
        words = arena_printf(arena, "%s%s-s %s%s%s", words, i > 0 ? " " : "", quote, item->texts[i],
                             quote);
    }
    return words;
}

static void setting_row(const struct why *why, const struct advice_item *item, struct table *table)
{
    char text[48];
    const double change_bytes =
        (double)item->peak_device_bytes - (double)why->outcome->peak_device_bytes;
    format_gib(text, sizeof(text), change_bytes < 0 ? -change_bytes : change_bytes);
    table_row(table);
    table_cell(table, "  %s", item->words);
    table_cell(table, "%s", settings_words(item, &table->arena));
    table_cell(table, "%+.1f %%", 100 * (1 / (1 - item->gain) - 1));
    add_seconds(table, item->step_time_s);
    table_cell(table, "%s%s", change_bytes < 0 ? "-" : "+", text);
}

static void write_settings(const struct why *why, const char *title, const struct advice_list *list,
                           FILE *file)
{
    struct table table;
    table_init(&table, 5, 2);
    table_row(&table);
    table_cell(&table, "%s", title);
    table_cell(&table, " ");
    table_cell(&table, "tokens/s");
    table_cell(&table, "step");
    table_cell(&table, "memory");
    for (int32_t i = 0; i < list->count && i < WHY_SETTINGS; i++)
        setting_row(why, &list->items[i], &table);
    table_write(&table, file);
    table_release(&table);
}

static void write_advice(const struct why *why, FILE *file)
{
    const struct advice *advice = why->advice;
    if (advice->settings.count > 0)
        write_settings(why,
                       advice->did_fit ? "settings that help most, one at a time"
                                       : "settings with which it fits, one at a time",
                       &advice->settings, file);
    else if (advice->did_fit)
        fputs("no setting that was tried helps\n", file);
    else
        fputs("no setting that was tried makes it fit\n", file);
    fprintf(file, "(%d runs tried; %d settings do not go with this run, %d do not fit)\n",
            (int)advice->tried, (int)advice->refused, (int)advice->unfit);
    if (advice->hardware.count == 0)
        return;
    fputc('\n', file);
    write_settings(why, "what if", &advice->hardware, file);
}

void report_why(const struct why *why, int32_t top, FILE *file)
{
    write_path(why, file);
    fputc('\n', file);
    write_waits(why, top, file);
    fputc('\n', file);
    write_advice(why, file);
}
