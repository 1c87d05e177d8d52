/* study/spread_measure.c: see spread_measure.h. */
#include "study/spread_measure.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "numeric/fit.h"

static const char any[] = "any";
enum { ROWS_LEAST = 30 };

/* The 95th percentile of a normal distribution, in standard deviations: 90 % of |x| lie below. */
static const double normal_p95 = 1.6448536269514722;

struct errors {
    double *items;
    int32_t count, capacity;
};

static void put_row(struct arena *arena, enum spread_part part, const char *gpu,
                    struct errors *errors, struct spread_rows *rows)
{
    if (errors->count < ROWS_LEAST)
        return;
    for (int32_t k = 0; k < errors->count; k++)
        errors->items[k] = fabs(errors->items[k]);
    const double p90 = quantile(errors->items, errors->count, 0.9);
    *ARENA_PUSH(arena, rows) = (struct spread_row){
        .part = part, .gpu = gpu, .n = errors->count, .spread = fmin(p90 / normal_p95, 1.0)};
}

/* Small GEMMs are not what a training step is made of. */
static bool part_of_cell(const struct kernel_cell *cell, enum spread_part *part)
{
    if (strstr(cell->what, "below") != NULL)
        return false;
    *part = strncmp(cell->what, "gemm", 4) == 0        ? SPREAD_GEMM
            : strncmp(cell->what, "attention", 9) == 0 ? SPREAD_ATTENTION
                                                       : SPREAD_MEMORY;
    return true;
}

/* Of the cells of `gpu`; NULL: all. */
static void gather(struct arena *arena, const struct kernel_validation *kernels,
                   enum spread_part part, const char *gpu, struct errors *errors)
{
    for (int32_t i = 0; i < kernels->cells.count; i++) {
        const struct kernel_cell *cell = &kernels->cells.items[i];
        enum spread_part its = SPREAD_COUNT;
        if (!part_of_cell(cell, &its) || its != part ||
            (gpu != NULL && !text_equal(cell->gpu, gpu)))
            continue;
        for (int32_t k = 0; k < cell->errors.count; k++)
            *ARENA_PUSH(arena, errors) = cell->errors.items[k];
    }
}

static bool is_first_of(const struct kernel_validation *kernels, int32_t index)
{
    for (int32_t i = 0; i < index; i++)
        if (text_equal(kernels->cells.items[i].gpu, kernels->cells.items[index].gpu))
            return false;
    return true;
}

static void measure_kernels(struct arena *arena, const struct kernel_validation *kernels,
                            struct spread_rows *rows)
{
    for (int part = 0; part < SPREAD_KERNEL_COUNT; part++) {
        const enum spread_part of = (enum spread_part)part;
        struct errors all = {0};
        gather(arena, kernels, of, NULL, &all);
        put_row(arena, of, any, &all, rows);
        for (int32_t i = 0; i < kernels->cells.count; i++) {
            struct errors errors = {0};
            if (!is_first_of(kernels, i))
                continue;
            gather(arena, kernels, of, kernels->cells.items[i].gpu, &errors);
            put_row(arena, of, kernels->cells.items[i].gpu, &errors, rows);
        }
    }
}

/* Sizes from 1 MiB of healthy tables, predicted without any calibration. */
static void measure_collectives(struct arena *arena,
                                const struct collective_validation *collectives,
                                struct spread_rows *rows)
{
    const double mib = 1024 * 1024;
    struct errors errors[2] = {{0}, {0}};
    for (int32_t i = 0; i < collectives->result_count; i++) {
        const struct collective_result *result = &collectives->results[i];
        if (result->reason != NULL || result->is_degraded)
            continue;
        for (int32_t p = 0; p < result->point_count; p++) {
            const struct collective_point *point = &result->points[p];
            const double error = point->predicted_s[ON_SPEC] / point->measured_s - 1;
            if (point->bytes >= mib && isfinite(error))
                *ARENA_PUSH(arena, &errors[result->nodes > 1]) = error;
        }
    }
    put_row(arena, SPREAD_ONE_HOST, any, &errors[0], rows);
    put_row(arena, SPREAD_HOSTS, any, &errors[1], rows);
}

void spread_measure(struct arena *arena, const struct kernel_validation *kernels,
                    const struct collective_validation *collectives, struct spread_rows *rows)
{
    *rows = (struct spread_rows){0};
    measure_kernels(arena, kernels, rows);
    measure_collectives(arena, collectives, rows);
}

void spread_write(const struct spread_rows *rows, FILE *file)
{
    fputs("part,gpu,n,spread\n", file);
    for (int32_t k = 0; k < rows->count; k++)
        fprintf(file, "%s,%s,%" PRId64 ",%.3f\n", spread_part_name(rows->items[k].part),
                rows->items[k].gpu, rows->items[k].n, rows->items[k].spread);
}
