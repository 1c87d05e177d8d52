/* study/compare.c: see compare.h. */
#include "study/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

/* ---- settings ----------------------------------------------------------------------------- */

static const struct outcome_origin *find_origin(const struct outcome *outcome, const char *path)
{
    for (int32_t i = 0; i < outcome->origin_count; i++) {
        if (text_equal(outcome->origins[i].path, path))
            return &outcome->origins[i];
    }
    return NULL;
}

/* Ends in ":6:8". */
static bool has_place(const char *origin)
{
    static const char digits[] = "0123456789";
    const char *column = strrchr(origin, ':');
    const char *line = column;
    while (line != NULL && line > origin && strchr(digits, line[-1]) != NULL)
        line--;
    return column != NULL && column[1] != '\0' && column[1 + strspn(column + 1, digits)] == '\0' &&
           line > origin && line < column && line[-1] == ':';
}

enum setting_from setting_from(const char *origin)
{
    if (origin == NULL)
        return FROM_NOWHERE;
    if (text_equal(origin, "<command line>"))
        return FROM_COMMAND_LINE;
    if (has_place(origin))
        return FROM_FILE;
    return text_equal(origin, "default") ? FROM_DEFAULT : FROM_OTHERS;
}

static void add_setting(struct compare *compare, struct arena *arena,
                        const struct outcome_origin *a, const struct outcome_origin *b)
{
    struct compare_setting *setting = ARENA_PUSH(arena, &compare->settings);
    *setting = (struct compare_setting){.key = a != NULL ? a->path : b->path};
    if (a != NULL) {
        setting->a = a->value != NULL ? a->value : "";
        setting->from_a = a->origin;
    }
    if (b != NULL) {
        setting->b = b->value != NULL ? b->value : "";
        setting->from_b = b->origin;
    }
    setting->follows = setting_from(setting->from_a) == FROM_OTHERS &&
                       setting_from(setting->from_b) == FROM_OTHERS;
}

/* "cluster" and "cluster.host.gpus" */
static bool is_below(const char *key, const char *above)
{
    const size_t length = strlen(above);
    return strncmp(key, above, length) == 0 && (key[length] == '.' || key[length] == '[');
}

/* Where another file is named, all in it differs: one line. What was typed keeps its own. */
static void put_inside(struct compare *compare)
{
    for (int32_t i = 0; i < compare->settings.count; i++) {
        struct compare_setting *setting = &compare->settings.items[i];
        for (int32_t k = 0; k < compare->settings.count && !setting->is_inside; k++) {
            struct compare_setting *above = &compare->settings.items[k];
            if (!is_below(setting->key, above->key) || above->is_inside ||
                setting_from(setting->from_a) == FROM_COMMAND_LINE ||
                setting_from(setting->from_b) == FROM_COMMAND_LINE)
                continue;
            setting->is_inside = true;
            above->inside++;
        }
    }
}

/* What a stored row says of the configuration, where its settings are not stored. */
static void add_row_settings(struct compare *compare, struct arena *arena)
{
    static const char *const names[] = {
        "model",         "cluster", "gpu",         "policy",     "n_nodes",
        "gpus_per_node", "seq_len", "micro_batch", "grad_accum", NULL};
    for (const char *const *name = names; *name != NULL; name++) {
        const struct metric *metric = outcome_metric(*name);
        const bool is_text = metric->kind == METRIC_TEXT;
        const char *a =
            is_text ? metric_text(compare->a, metric)
                    : arena_printf(arena, "%lld", (long long)metric_int(compare->a, metric));
        const char *b =
            is_text ? metric_text(compare->b, metric)
                    : arena_printf(arena, "%lld", (long long)metric_int(compare->b, metric));
        if (text_equal(a, b))
            continue;
        *ARENA_PUSH(arena, &compare->settings) =
            (struct compare_setting){.key = *name, .a = a, .b = b};
    }
}

static void find_settings(struct compare *compare, struct arena *arena)
{
    const struct outcome *a = compare->a;
    const struct outcome *b = compare->b;
    compare->has_settings = a->origin_count > 0 && b->origin_count > 0;
    if (!compare->has_settings) {
        add_row_settings(compare, arena);
        return;
    }
    for (int32_t i = 0; i < a->origin_count; i++) {
        const struct outcome_origin *one = &a->origins[i];
        const struct outcome_origin *other = find_origin(b, one->path);
        if (other == NULL || !text_equal(one->value, other->value))
            add_setting(compare, arena, one, other);
    }
    for (int32_t i = 0; i < b->origin_count; i++) {
        if (find_origin(a, b->origins[i].path) == NULL)
            add_setting(compare, arena, NULL, &b->origins[i]);
    }
    put_inside(compare);
}

/* ---- parts -------------------------------------------------------------------------------- */

static void add_part(struct compare_parts *parts, struct arena *arena, const char *name, double a,
                     double b)
{
    const int32_t order = parts->count;
    struct compare_part *part = ARENA_PUSH(arena, parts);
    *part = (struct compare_part){
        .name = name, .last = name, .count = 1, .a = a, .b = b, .order = order};
}

static bool is_one_more(const struct compare_part *part, const char *name, double a, double b)
{
    return outcome_names_are_alike(part->last, name) && fabs(part->a - a * part->count) < 1 &&
           fabs(part->b - b * part->count) < 1;
}

/* Bytes; or one more of the part before, where it is like that. */
static void add_alike_part(struct compare_parts *parts, struct arena *arena, const char *name,
                           double a, double b)
{
    if (parts->count == 0 || !is_one_more(&parts->items[parts->count - 1], name, a, b)) {
        add_part(parts, arena, name, a, b);
        return;
    }
    struct compare_part *last = &parts->items[parts->count - 1];
    last->last = name;
    last->count++;
    last->a += a;
    last->b += b;
}

static int by_difference(double one, double other, int32_t one_order, int32_t other_order)
{
    if (fabs(one) > fabs(other))
        return -1;
    return fabs(one) < fabs(other) ? 1 : (one_order > other_order) - (one_order < other_order);
}

static int compare_two_parts(const void *a, const void *b)
{
    const struct compare_part *one = a;
    const struct compare_part *other = b;
    return by_difference(one->b - one->a, other->b - other->a, one->order, other->order);
}

static void sort_parts(struct compare_parts *parts)
{
    if (parts->count > 1)
        qsort(parts->items, (size_t)parts->count, sizeof(*parts->items), compare_two_parts);
}

static void find_time(struct compare *compare, struct arena *arena)
{
    const struct outcome *a = compare->a;
    const struct outcome *b = compare->b;
    add_part(&compare->time, arena, "compute", a->compute_s, b->compute_s);
    add_part(&compare->time, arena, "exposed communication", a->exposed_comm_s, b->exposed_comm_s);
    add_part(&compare->time, arena, "idle", a->idle_s, b->idle_s);
    add_part(&compare->phases, arena, "forward", a->forward_s, b->forward_s);
    add_part(&compare->phases, arena, "backward", a->backward_s, b->backward_s);
    add_part(&compare->phases, arena, "optimizer", a->optimizer_s, b->optimizer_s);
    sort_parts(&compare->time);
    sort_parts(&compare->phases);
}

static bool has_composition(const struct outcome *outcome)
{
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++) {
        if (outcome->peak_composition[i] != 0)
            return true;
    }
    return false;
}

static void find_memory(struct compare *compare, struct arena *arena)
{
    const struct outcome *a = compare->a;
    const struct outcome *b = compare->b;
    compare->has_composition = has_composition(a) && has_composition(b);
    for (int i = 0; i < MEMORY_CATEGORY_COUNT && compare->has_composition; i++) {
        if (a->peak_composition[i] != 0 || b->peak_composition[i] != 0)
            add_part(&compare->memory, arena, memory_category_name((enum memory_category)i),
                     (double)a->peak_composition[i], (double)b->peak_composition[i]);
    }
    sort_parts(&compare->memory);
}

/* ---- units -------------------------------------------------------------------------------- */

double compare_unit_s(const struct outcome_unit *unit)
{
    return unit == NULL ? 0 : unit->forward_s + unit->backward_s + unit->exposed_s;
}

static const struct outcome_unit *find_unit(const struct outcome *outcome, const char *name)
{
    for (int32_t i = 0; i < outcome->unit_count; i++) {
        if (text_equal(outcome->units[i].name, name))
            return &outcome->units[i];
    }
    return NULL;
}

static bool are_alike(const struct outcome_unit *one, const struct outcome_unit *other)
{
    if (one == NULL || other == NULL)
        return one == other;
    return outcome_units_are_alike(one, other);
}

static void add_unit(struct compare *compare, struct arena *arena, const struct outcome_unit *a,
                     const struct outcome_unit *b)
{
    const char *name = a != NULL ? a->name : b->name;
    const int32_t count = compare->units.count;
    struct compare_unit *last = count > 0 ? &compare->units.items[count - 1] : NULL;
    if (last == NULL || !outcome_names_are_alike(last->last, name) || !are_alike(last->a, a) ||
        !are_alike(last->b, b)) {
        last = ARENA_PUSH(arena, &compare->units);
        *last = (struct compare_unit){.first = name, .a = a, .b = b, .order = count};
    }
    last->last = name;
    last->count++;
    last->a_s += compare_unit_s(a);
    last->b_s += compare_unit_s(b);
    compare->outside_a_s -= compare_unit_s(a);
    compare->outside_b_s -= compare_unit_s(b);
}

static int compare_two_units(const void *a, const void *b)
{
    const struct compare_unit *one = a;
    const struct compare_unit *other = b;
    return by_difference(one->b_s - one->a_s, other->b_s - other->a_s, one->order, other->order);
}

static void find_units(struct compare *compare, struct arena *arena)
{
    const struct outcome *a = compare->a;
    const struct outcome *b = compare->b;
    compare->outside_a_s = a->step_time_s;
    compare->outside_b_s = b->step_time_s;
    compare->has_units = compare->is_same_model && a->unit_count > 0 && b->unit_count > 0;
    if (!compare->has_units)
        return;
    for (int32_t i = 0; i < a->unit_count; i++)
        add_unit(compare, arena, &a->units[i], find_unit(b, a->units[i].name));
    for (int32_t i = 0; i < b->unit_count; i++) {
        if (find_unit(a, b->units[i].name) == NULL)
            add_unit(compare, arena, NULL, &b->units[i]);
    }
    qsort(compare->units.items, (size_t)compare->units.count, sizeof(*compare->units.items),
          compare_two_units);
}

static double memory_of(const struct outcome *outcome, const char *name, bool *is_there)
{
    *is_there = false;
    for (int32_t i = 0; i < outcome->memory_unit_count; i++) {
        if (!text_equal(outcome->memory_units[i].name, name))
            continue;
        *is_there = true;
        return (double)outcome->memory_units[i].bytes;
    }
    return 0;
}

static void find_memory_units(struct compare *compare, struct arena *arena)
{
    const struct outcome *a = compare->a;
    const struct outcome *b = compare->b;
    bool is_there = false;
    if (!compare->is_same_model || a->memory_unit_count == 0 || b->memory_unit_count == 0)
        return;
    for (int32_t i = 0; i < a->memory_unit_count; i++)
        add_alike_part(&compare->memory_units, arena, a->memory_units[i].name,
                       (double)a->memory_units[i].bytes,
                       memory_of(b, a->memory_units[i].name, &is_there));
    for (int32_t i = 0; i < b->memory_unit_count; i++) {
        (void)memory_of(a, b->memory_units[i].name, &is_there);
        if (!is_there)
            add_alike_part(&compare->memory_units, arena, b->memory_units[i].name, 0,
                           (double)b->memory_units[i].bytes);
    }
    sort_parts(&compare->memory_units);
}

/* ---- collectives -------------------------------------------------------------------------- */

static struct compare_collective *collective_for(struct compare *compare, struct arena *arena,
                                                 const struct outcome_collective *one)
{
    for (int32_t i = 0; i < compare->collectives.count; i++) {
        struct compare_collective *found = &compare->collectives.items[i];
        if (text_equal(found->op, one->op) && text_equal(found->communicator, one->communicator))
            return found;
    }
    struct compare_collective *made = ARENA_PUSH(arena, &compare->collectives);
    *made = (struct compare_collective){.op = one->op, .communicator = one->communicator};
    return made;
}

static int compare_two_collectives(const void *a, const void *b)
{
    const struct compare_collective *one = a;
    const struct compare_collective *other = b;
    const int order =
        by_difference(one->alone_b_s - one->alone_a_s, other->alone_b_s - other->alone_a_s, 0, 0);
    if (order != 0)
        return order;
    const int by_op = strcmp(one->op, other->op);
    return by_op != 0 ? by_op : strcmp(one->communicator, other->communicator);
}

static void find_collectives(struct compare *compare, struct arena *arena)
{
    /* A row of a sweep has neither units nor collectives: it is not that there were none. */
    if (compare->a->unit_count == 0 || compare->b->unit_count == 0)
        return;
    for (int32_t i = 0; i < compare->a->collective_count; i++) {
        const struct outcome_collective *one = &compare->a->collectives[i];
        struct compare_collective *sum = collective_for(compare, arena, one);
        sum->count_a += one->count;
        sum->alone_a_s += (double)one->count * one->alone_s;
    }
    for (int32_t i = 0; i < compare->b->collective_count; i++) {
        const struct outcome_collective *one = &compare->b->collectives[i];
        struct compare_collective *sum = collective_for(compare, arena, one);
        sum->count_b += one->count;
        sum->alone_b_s += (double)one->count * one->alone_s;
    }
    if (compare->collectives.count > 1)
        qsort(compare->collectives.items, (size_t)compare->collectives.count,
              sizeof(*compare->collectives.items), compare_two_collectives);
}

/* ---- all together ------------------------------------------------------------------------- */

void compare_make(struct compare *compare, struct arena *arena, const struct outcome *a,
                  const struct outcome *b)
{
    *compare = (struct compare){.a = a, .b = b};
    compare->is_same_config = hash128_equal(a->config_hash, b->config_hash) &&
                              (a->config_hash.high | a->config_hash.low) != 0;
    compare->is_same_model = text_equal(a->model, b->model) && a->parameters == b->parameters;
    find_settings(compare, arena);
    find_time(compare, arena);
    find_units(compare, arena);
    find_memory(compare, arena);
    find_memory_units(compare, arena);
    find_collectives(compare, arena);
}
