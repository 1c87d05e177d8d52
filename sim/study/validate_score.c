/* study/validate_score.c: errors → scores by all rows, source, GPU and regime. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "study/validate_private.h"

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between ranks, as R and numpy do by default. `sorted` has at least one value. */
static double quantile(const double *sorted, int32_t count, double share)
{
    const double rank = share * (count - 1);
    const int32_t low = (int32_t)rank;
    if (low + 1 >= count)
        return sorted[count - 1];
    return sorted[low] + (rank - low) * (sorted[low + 1] - sorted[low]);
}

struct validate_score score_of(struct arena *arena, const double *errors, int32_t count)
{
    struct validate_score score = {.n = count,
                                   .median_abs_err = (double)NAN,
                                   .p90_abs_err = (double)NAN,
                                   .bias = (double)NAN,
                                   .within_10pct = (double)NAN,
                                   .within_15pct = (double)NAN,
                                   .mean_source_median = (double)NAN};
    if (count == 0)
        return score;
    double *sorted = ARENA_ARRAY(arena, double, count);
    int32_t within_10 = 0, within_15 = 0;
    memcpy(sorted, errors, sizeof(double) * (size_t)count);
    qsort(sorted, (size_t)count, sizeof(double), compare_doubles);
    score.bias = quantile(sorted, count, 0.5);
    for (int32_t k = 0; k < count; k++) {
        sorted[k] = fabs(sorted[k]);
        within_10 += sorted[k] <= 0.10;
        within_15 += sorted[k] <= 0.15;
    }
    qsort(sorted, (size_t)count, sizeof(double), compare_doubles);
    score.median_abs_err = quantile(sorted, count, 0.5);
    score.p90_abs_err = quantile(sorted, count, 0.9);
    score.within_10pct = (double)within_10 / count;
    score.within_15pct = (double)within_15 / count;
    return score;
}

/* ---- which rows --------------------------------------------------------------------------- */

enum key_kind { KEY_NONE, KEY_SOURCE, KEY_GPU, KEY_HOSTS, KEY_REGIME, KEY_CONVENTION };
enum figure { FIGURE_TIME, FIGURE_MEMORY, FIGURE_MFU };
struct selection {
    bool takes_assumed, takes_unscored; /* rows that lean on assumed facts; of trust C, repeats */
    enum figure figure;
    enum key_kind key;
    const char *name;
};

static const char *key_of(const struct validate_row *row, enum key_kind key)
{
    switch (key) {
    case KEY_NONE:
        break;
    case KEY_SOURCE:
        return row->source;
    case KEY_GPU:
        return row->gpu;
    case KEY_HOSTS:
        return row->hosts;
    case KEY_REGIME:
        return row->regime;
    case KEY_CONVENTION:
        return row->mfu_convention;
    }
    return NULL;
}

static double error_of(const struct validate_row *row, enum figure figure)
{
    return figure == FIGURE_TIME     ? row->step_s.error
           : figure == FIGURE_MEMORY ? row->memory_bytes.error
                                     : row->mfu.error;
}

static bool takes(const struct selection *selection, const struct validate_row *row)
{
    return row->reason == NULL && !isnan(error_of(row, selection->figure)) &&
           (selection->takes_assumed || !row->is_assumed) &&
           (selection->takes_unscored || row->is_scored) &&
           (selection->key == KEY_NONE || text_equal(key_of(row, selection->key), selection->name));
}

static int32_t collect(const struct validation *validation, const struct selection *selection,
                       double *errors)
{
    int32_t count = 0;
    for (int32_t k = 0; k < validation->row_count; k++) {
        const struct validate_row *row = &validation->rows[k];
        if (takes(selection, row))
            errors[count++] = error_of(row, selection->figure);
    }
    return count;
}

/* Of the selected rows; NaN when there are none. */
static double mean_of_source_medians(struct arena *arena, const struct validation *validation,
                                     const struct selection *selection, double *errors)
{
    double sum = 0.0;
    int32_t sources = 0;
    for (int32_t k = 0; k < validation->by_source.count; k++) {
        int32_t count = 0;
        for (int32_t r = 0; r < validation->row_count; r++) {
            const struct validate_row *row = &validation->rows[r];
            if (takes(selection, row) &&
                strcmp(row->source, validation->by_source.items[k].name) == 0)
                errors[count++] = error_of(row, selection->figure);
        }
        sum += count > 0 ? score_of(arena, errors, count).median_abs_err : 0.0;
        sources += count > 0;
    }
    return sources > 0 ? sum / sources : (double)NAN;
}

static struct validate_score score_selection(struct arena *arena,
                                             const struct validation *validation,
                                             struct selection selection)
{
    double *errors = ARENA_ARRAY(arena, double, validation->row_count + 1);
    const int32_t count = collect(validation, &selection, errors);
    struct validate_score score = score_of(arena, errors, count);
    score.mean_source_median = selection.key == KEY_SOURCE
                                   ? score.median_abs_err
                                   : mean_of_source_medians(arena, validation, &selection, errors);
    return score;
}

static struct validate_scores score_all(struct arena *arena, const struct validation *validation,
                                        struct selection selection)
{
    struct validate_scores scores = {0};
    scores.step_time = score_selection(arena, validation, selection);
    selection.figure = FIGURE_MEMORY;
    scores.memory = score_selection(arena, validation, selection);
    selection.figure = FIGURE_MFU;
    scores.mfu = score_selection(arena, validation, selection);
    return scores;
}

/* ---- intervals ---------------------------------------------------------------------------- */

static struct validate_inside count_inside(struct arena *arena, const struct validation *validation,
                                           struct selection selection)
{
    struct validate_inside inside = {0};
    double *spreads = ARENA_ARRAY(arena, double, validation->row_count + 1);
    for (int32_t k = 0; k < validation->row_count; k++) {
        const struct validate_row *row = &validation->rows[k];
        if (!takes(&selection, row) || !(row->interval.low_s > 0))
            continue;
        spreads[inside.n++] = row->interval.spread;
        inside.faster += row->step_s.measured < row->interval.low_s;
        inside.slower += row->step_s.measured > row->interval.high_s;
    }
    inside.inside = inside.n - inside.faster - inside.slower;
    qsort(spreads, (size_t)inside.n, sizeof(double), compare_doubles);
    inside.median_spread = inside.n > 0 ? quantile(spreads, (int32_t)inside.n, 0.5) : (double)NAN;
    return inside;
}

/* ---- groups ------------------------------------------------------------------------------- */

static struct validate_group *group_of(struct arena *arena, struct validate_groups *groups,
                                       const char *name)
{
    for (int32_t k = 0; k < groups->count; k++)
        if (strcmp(groups->items[k].name, name) == 0)
            return &groups->items[k];
    struct validate_group *group = ARENA_PUSH(arena, groups);
    group->name = name;
    return group;
}

static int compare_groups(const void *a, const void *b)
{
    return strcmp(((const struct validate_group *)a)->name,
                  ((const struct validate_group *)b)->name);
}

static void count_groups(struct arena *arena, struct validation *validation, enum key_kind key,
                         struct validate_groups *groups)
{
    for (int32_t k = 0; k < validation->row_count; k++) {
        const struct validate_row *row = &validation->rows[k];
        if (key_of(row, key) == NULL)
            continue; /* no regime without a prediction, no convention without an MFU */
        struct validate_group *group = group_of(arena, groups, key_of(row, key));
        group->rows++;
        group->in_scope += row->reason == NULL;
    }
    if (groups->count > 0)
        qsort(groups->items, (size_t)groups->count, sizeof(groups->items[0]), compare_groups);
}

static void score_groups(struct arena *arena, const struct validation *validation,
                         enum key_kind key, struct validate_groups *groups)
{
    for (int32_t k = 0; k < groups->count; k++) {
        const struct selection selection = {
            .takes_assumed = true, .key = key, .name = groups->items[k].name};
        groups->items[k].scores = score_all(arena, validation, selection);
        groups->items[k].inside = count_inside(arena, validation, selection);
    }
}

/* ---- order -------------------------------------------------------------------------------- */

/* In scope with a step time: 2 + |error|; with memory only: 1; out of scope: 0. */
static double badness(const struct validate_row *row)
{
    if (row->reason != NULL)
        return 0.0;
    return isnan(row->step_s.error) ? 1.0 : 2.0 + fabs(row->step_s.error);
}

static int compare_rows(const void *a, const void *b)
{
    const struct validate_row *x = a, *y = b;
    const double bad_x = badness(x), bad_y = badness(y);
    if (bad_x != bad_y)
        return bad_x < bad_y ? 1 : -1;
    return (x->line > y->line) - (x->line < y->line);
}

static int compare_exclusions(const void *a, const void *b)
{
    const struct validate_exclusion *x = a, *y = b;
    if (x->rows != y->rows)
        return x->rows < y->rows ? 1 : -1;
    return strcmp(x->reason, y->reason);
}

static void count_exclusions(struct arena *arena, struct validation *validation)
{
    for (int32_t k = 0; k < validation->row_count; k++) {
        const char *reason = validation->rows[k].reason;
        int32_t at = 0;
        if (reason == NULL) {
            validation->in_scope++;
            continue;
        }
        while (at < validation->exclusions.count &&
               strcmp(validation->exclusions.items[at].reason, reason) != 0)
            at++;
        struct validate_exclusion *exclusion = at < validation->exclusions.count
                                                   ? &validation->exclusions.items[at]
                                                   : ARENA_PUSH(arena, &validation->exclusions);
        exclusion->reason = reason;
        exclusion->rows++;
    }
    if (validation->exclusions.count > 0)
        qsort(validation->exclusions.items, (size_t)validation->exclusions.count,
              sizeof(validation->exclusions.items[0]), compare_exclusions);
}

void validation_score(struct arena *arena, struct validation *validation)
{
    if (validation->row_count > 0)
        qsort(validation->rows, (size_t)validation->row_count, sizeof(validation->rows[0]),
              compare_rows);
    count_exclusions(arena, validation);
    count_groups(arena, validation, KEY_SOURCE, &validation->by_source);
    count_groups(arena, validation, KEY_GPU, &validation->by_gpu);
    count_groups(arena, validation, KEY_HOSTS, &validation->by_hosts);
    count_groups(arena, validation, KEY_REGIME, &validation->by_regime);
    count_groups(arena, validation, KEY_CONVENTION, &validation->by_convention);
    score_groups(arena, validation, KEY_SOURCE, &validation->by_source);
    score_groups(arena, validation, KEY_GPU, &validation->by_gpu);
    score_groups(arena, validation, KEY_HOSTS, &validation->by_hosts);
    score_groups(arena, validation, KEY_REGIME, &validation->by_regime);
    score_groups(arena, validation, KEY_CONVENTION, &validation->by_convention);
    validation->headline = score_all(arena, validation, (struct selection){.takes_assumed = true});
    validation->inside = count_inside(arena, validation, (struct selection){.takes_assumed = true});
    validation->without_assumed = score_all(arena, validation, (struct selection){0});
    validation->all_trust = score_all(
        arena, validation, (struct selection){.takes_assumed = true, .takes_unscored = true});
}

static int compare_lines(const void *a, const void *b)
{
    const struct validate_row *x = *(const struct validate_row *const *)a;
    const struct validate_row *y = *(const struct validate_row *const *)b;
    return (x->line > y->line) - (x->line < y->line);
}

void validate_index(struct arena *arena, const struct validation *validation,
                    struct run_index *index)
{
    const struct selection selection = {.takes_assumed = true};
    const struct validate_row **rows =
        ARENA_ARRAY(arena, const struct validate_row *, validation->row_count + 1);
    int32_t count = 0;
    *index = (struct run_index){0};
    for (int32_t k = 0; k < validation->row_count; k++)
        if (takes(&selection, &validation->rows[k]))
            rows[count++] = &validation->rows[k];
    qsort(rows, (size_t)count, sizeof(const struct validate_row *), compare_lines);
    for (int32_t k = 0; k < count; k++)
        *ARENA_PUSH(arena, index) = rows[k]->traits;
}
