/* study/validate_bands.c: scores of collectives by size, table, fabric and collective. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "numeric/fit.h"
#include "study/validate_collectives_private.h"

static const double kib = 1024;
static const double mib = 1024 * 1024;
static const double gib = 1024 * 1024 * 1024;

const char *collective_basis_name(enum collective_basis basis)
{
    static const char *const names[COLLECTIVE_BASIS_COUNT] = {
        [ON_SPEC] = "spec", [ON_ITSELF] = "itself", [ON_SIBLING] = "sibling"};
    return names[basis];
}

const char *size_band_name(enum size_band band)
{
    static const char *const names[SIZE_BAND_COUNT] = {
        [BAND_64K] = "64K-1M", [BAND_1M] = "1M-32M", [BAND_32M] = "32M-1G", [BAND_1G] = ">=1G"};
    return names[band];
}

static double band_begin(enum size_band band)
{
    const double begins[] = {64 * kib, mib, 32 * mib, gib};
    return band < SIZE_BAND_COUNT ? begins[band] : (double)INFINITY;
}

enum size_band size_band_of(double bytes)
{
    if (bytes < band_begin(BAND_64K))
        return SIZE_BAND_COUNT;
    enum size_band band = BAND_64K;
    while (bytes >= band_begin(band + 1))
        band++;
    return band;
}

/* Errors, gathered from several tables. */
struct errors {
    double *items;
    int32_t count, capacity;
};

static void gather(struct arena *arena, const struct collective_point *points, int32_t count,
                   enum collective_basis basis, double from_bytes, double below_bytes,
                   struct errors *errors)
{
    for (int32_t i = 0; i < count; i++) {
        const double error = points[i].predicted_s[basis] / points[i].measured_s - 1;
        if (points[i].bytes >= from_bytes && points[i].bytes < below_bytes && !isnan(error))
            *ARENA_PUSH(arena, errors) = error;
    }
}

static struct collective_score score_of_errors(struct errors *errors)
{
    struct collective_score score = {.n = errors->count, .max_abs_err = (double)NAN};
    score.bias = quantile(errors->items, errors->count, 0.5);
    for (int32_t i = 0; i < errors->count; i++)
        errors->items[i] = fabs(errors->items[i]);
    score.median_abs_err = quantile(errors->items, errors->count, 0.5);
    if (errors->count > 0)
        score.max_abs_err = errors->items[errors->count - 1];
    return score;
}

struct collective_score collective_score_of(struct arena *arena,
                                            const struct collective_point *points, int32_t count,
                                            enum collective_basis basis, double from_bytes,
                                            double below_bytes)
{
    struct errors errors = {0};
    gather(arena, points, count, basis, from_bytes, below_bytes, &errors);
    return score_of_errors(&errors);
}

/* ---- all tables ----------------------------------------------------------------------------- */

static bool is_scored(const struct collective_result *result)
{
    return result->reason == NULL && !result->is_degraded;
}

/* Over the tables in the totals; `fabric` and `op` NULL: any. */
static struct collective_score
total(struct arena *arena, const struct collective_validation *validation, const char *fabric,
      const char *op, enum collective_basis basis, double from_bytes, double below_bytes)
{
    struct errors errors = {0};
    for (int32_t i = 0; i < validation->result_count; i++) {
        const struct collective_result *result = &validation->results[i];
        if (is_scored(result) && (fabric == NULL || text_equal(fabric, result->fabric)) &&
            (op == NULL || text_equal(op, collective_op_name(result->log->op))))
            gather(arena, result->points, result->point_count, basis, from_bytes, below_bytes,
                   &errors);
    }
    return score_of_errors(&errors);
}

static struct collective_group *group_of(struct arena *arena, struct collective_groups *groups,
                                         const char *name)
{
    for (int32_t i = 0; i < groups->count; i++)
        if (text_equal(groups->items[i].name, name))
            return &groups->items[i];
    struct collective_group *group = ARENA_PUSH(arena, groups);
    group->name = name;
    return group;
}

static int compare_groups(const void *a, const void *b)
{
    const struct collective_group *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void score_groups(struct arena *arena, struct collective_validation *validation)
{
    for (int32_t i = 0; i < validation->result_count; i++) {
        const struct collective_result *result = &validation->results[i];
        if (!is_scored(result))
            continue;
        group_of(arena, &validation->by_fabric, result->fabric)->tables++;
        group_of(arena, &validation->by_op, collective_op_name(result->log->op))->tables++;
    }
    struct collective_groups *const lists[] = {&validation->by_fabric, &validation->by_op};
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        if (lists[k]->count > 1)
            qsort(lists[k]->items, (size_t)lists[k]->count, sizeof(*lists[k]->items),
                  compare_groups);
        for (int32_t i = 0; i < lists[k]->count; i++) {
            struct collective_group *group = &lists[k]->items[i];
            for (int basis = 0; basis < COLLECTIVE_BASIS_COUNT; basis++)
                group->from_1m[basis] = total(arena, validation, k == 0 ? group->name : NULL,
                                              k == 1 ? group->name : NULL,
                                              (enum collective_basis)basis, mib, (double)INFINITY);
        }
    }
}

static double rank_of(const struct collective_result *result)
{
    const double error = result->from_1m[ON_SPEC].median_abs_err;
    if (result->reason != NULL)
        return -2;
    if (result->is_degraded)
        return -1;
    return isnan(error) ? -0.5 : error;
}

/* Worst first; ties by name, so that the order of files does not matter. */
static int compare_results(const void *a, const void *b)
{
    const struct collective_result *x = a, *y = b;
    const double p = rank_of(x), q = rank_of(y);
    return p != q ? (p < q) - (p > q) : strcmp(x->name, y->name);
}

static void score_result(struct arena *arena, struct collective_result *result)
{
    for (int basis = 0; basis < COLLECTIVE_BASIS_COUNT; basis++) {
        const enum collective_basis of = (enum collective_basis)basis;
        for (int band = 0; band < SIZE_BAND_COUNT; band++)
            result->bands[basis][band] = collective_score_of(
                arena, result->points, result->point_count, of, band_begin((enum size_band)band),
                band_begin((enum size_band)(band + 1)));
        result->from_1m[basis] = collective_score_of(arena, result->points, result->point_count, of,
                                                     mib, (double)INFINITY);
    }
}

void collective_validation_score(struct arena *arena, struct collective_validation *validation)
{
    for (int32_t i = 0; i < validation->result_count; i++) {
        struct collective_result *result = &validation->results[i];
        score_result(arena, result);
        if (result->reason != NULL)
            validation->out_of_scope++;
        else if (result->is_degraded)
            validation->degraded++;
        else
            validation->in_scope++;
    }
    for (int basis = 0; basis < COLLECTIVE_BASIS_COUNT; basis++) {
        const enum collective_basis of = (enum collective_basis)basis;
        validation->from_1m[basis] =
            total(arena, validation, NULL, NULL, of, mib, (double)INFINITY);
        for (int band = 0; band < SIZE_BAND_COUNT; band++)
            validation->bands[basis][band] =
                total(arena, validation, NULL, NULL, of, band_begin((enum size_band)band),
                      band_begin((enum size_band)(band + 1)));
    }
    score_groups(arena, validation);
    if (validation->result_count > 1)
        qsort(validation->results, (size_t)validation->result_count, sizeof(*validation->results),
              compare_results);
}
