/* collective/calibrate.c: see calibrate.h. */
#include "collective/calibrate.h"

#include <math.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "numeric/curve.h"
#include "numeric/fit.h"

/* Of many sizes a sample is left out in turn; a few do not tell which model is better. */
enum { LEFT_OUT_MAX = 64, JUDGED_MIN = 6 };

/* Marks of calibrate.h: shares of the time. */
static const double outlier_share = 0.25;
static const double falling_share = 0.10;

struct fitting {
    struct arena *arena;
    struct calibrate_fit *fit;
    double *bytes, *time_s; /* of the points */
    int32_t count;
};

bool calibrate_is_alike(const struct nccl_table *a, const struct nccl_table *b)
{
    return a->op == b->op && a->nodes == b->nodes && a->gpus_per_node == b->gpus_per_node &&
           text_equal(a->algorithm, b->algorithm) && text_equal(a->protocol, b->protocol);
}

double nccl_row_s(const struct nccl_row *row)
{
    const double out = row->out_of_place.time_s;
    return out > 0 ? out : row->in_place.time_s > 0 ? row->in_place.time_s : (double)NAN;
}

/* ---- pooling ------------------------------------------------------------------------------ */

struct sample {
    double bytes, time_s, low_s, high_s;
    struct place place;
};

static int compare_samples(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static void widen(struct sample *sample, double time_s)
{
    if (time_s > 0) { /* not NaN */
        sample->low_s = fmin(sample->low_s, time_s);
        sample->high_s = fmax(sample->high_s, time_s);
    }
}

static struct sample *samples_of(struct arena *arena, const struct nccl_table *const *tables,
                                 int32_t table_count, int32_t *count)
{
    int32_t rows = 0;
    *count = 0;
    for (int32_t i = 0; i < table_count; i++)
        rows += tables[i]->rows.count;
    struct sample *samples = ARENA_ARRAY(arena, struct sample, rows + 1);
    for (int32_t i = 0; i < table_count; i++) {
        for (int32_t k = 0; k < tables[i]->rows.count; k++) {
            const struct nccl_row *row = &tables[i]->rows.items[k];
            const double time_s = nccl_row_s(row);
            if (!(time_s > 0) || row->bytes <= 0)
                continue;
            struct sample *sample = &samples[(*count)++];
            *sample = (struct sample){(double)row->bytes, time_s, time_s, time_s, row->place};
            widen(sample, row->out_of_place.low_s);
            widen(sample, row->out_of_place.high_s);
            widen(sample, row->in_place.time_s);
        }
    }
    qsort(samples, (size_t)*count, sizeof(*samples), compare_samples);
    return samples;
}

/* Sizes that differ by less than `width` become one point. */
static void pool_by(struct fitting *fitting, const struct sample *samples, int32_t count,
                    double width)
{
    struct calibrate_fit *fit = fitting->fit;
    fit->point_count = 0;
    for (int32_t i = 0; i < count;) {
        int32_t end = i + 1;
        double low_s = samples[i].low_s;
        double high_s = samples[i].high_s;
        while (end < count && samples[end].bytes < samples[i].bytes * (1 + width)) {
            low_s = fmin(low_s, samples[end].low_s);
            high_s = fmax(high_s, samples[end].high_s);
            end++;
        }
        const int32_t middle = i + (end - i) / 2;
        const bool is_even = (end - i) % 2 == 0;
        fit->points[fit->point_count++] = (struct calibrate_point){
            .bytes = samples[i].bytes,
            .time_s = is_even ? (samples[middle - 1].time_s + samples[middle].time_s) / 2
                              : samples[middle].time_s,
            .low_s = low_s,
            .high_s = high_s,
            .place = samples[middle].place,
            .measured_count = end - i,
            .left_out_s = (double)NAN};
        i = end;
    }
}

/* Equal sizes become one point, and near ones where there are too many. */
static void pool(struct fitting *fitting, const struct sample *samples, int32_t count)
{
    struct calibrate_fit *fit = fitting->fit;
    fit->points = ARENA_ARRAY(fitting->arena, struct calibrate_point, count);
    /* At first only those whose logarithms cannot be told apart. */
    for (double width = 1e-9; width == 1e-9 || fit->point_count > CALIBRATE_MAX_POINTS; width *= 2)
        pool_by(fitting, samples, count, width);
    fitting->count = fit->point_count;
    fitting->bytes = ARENA_ARRAY(fitting->arena, double, fitting->count);
    fitting->time_s = ARENA_ARRAY(fitting->arena, double, fitting->count);
    for (int32_t i = 0; i < fitting->count; i++) {
        fitting->bytes[i] = fit->points[i].bytes;
        fitting->time_s[i] = fit->points[i].time_s;
    }
}

/* ---- the two models ------------------------------------------------------------------------- */

/* Points of a curve through the data, times made monotone in their logarithms. */
static struct calibration_point *log_log_points(struct arena *arena, const double *bytes,
                                                const double *time_s, int32_t count)
{
    struct calibration_point *points = ARENA_ARRAY(arena, struct calibration_point, count);
    double *log_s = ARENA_ARRAY(arena, double, count);
    for (int32_t i = 0; i < count; i++)
        log_s[i] = log(time_s[i]);
    fit_isotonic(log_s, count);
    for (int32_t i = 0; i < count; i++)
        points[i] = (struct calibration_point){bytes[i], exp(log_s[i])};
    return points;
}

/* Two or three points; 0: no straight pieces fit. */
static int32_t linear_points(const double *bytes, const double *time_s, int32_t count,
                             struct calibration_point *points, struct pieces *found)
{
    int32_t made = 0;
    if (!fit_pieces(bytes, time_s, count, found))
        return 0;
    const struct pieces pieces = *found;
    const double first = bytes[0];
    const double last = bytes[count - 1];
    points[made++] = (struct calibration_point){first, pieces_at(&pieces, first)};
    if (pieces.c != 0 && pieces.k > first && pieces.k < last)
        points[made++] = (struct calibration_point){pieces.k, pieces_at(&pieces, pieces.k)};
    points[made++] = (struct calibration_point){last, pieces_at(&pieces, last)};
    return points[0].time_s >= CALIBRATION_TIME_MIN_S &&
                   points[made - 1].time_s <= CALIBRATION_TIME_MAX_S
               ? made
               : 0;
}

/* A table of one of the models fitted to these points; false: it cannot be. */
static bool model_fit(struct arena *arena, enum calibration_fit kind, const double *bytes,
                      const double *time_s, int32_t count, struct calibration_table *table,
                      struct pieces *pieces)
{
    table->fit = kind;
    table->curve = NULL;
    if (kind == CALIBRATION_LOG_LOG) {
        table->points = log_log_points(arena, bytes, time_s, count);
        table->point_count = count;
    } else {
        struct calibration_point *points = ARENA_ARRAY(arena, struct calibration_point, 3);
        table->points = points;
        table->point_count = linear_points(bytes, time_s, count, points, pieces);
    }
    return table->point_count > 0 && calibration_table_derive(table) == STATUS_OK;
}

/* Predicts point i from the others; NaN: impossible. */
static double left_out_s(const struct fitting *fitting, enum calibration_fit kind, int32_t i)
{
    struct arena scratch = {0};
    struct calibration_table table = {0};
    struct pieces pieces;
    double *bytes = ARENA_ARRAY(&scratch, double, fitting->count);
    double *time_s = ARENA_ARRAY(&scratch, double, fitting->count);
    int32_t count = 0;
    for (int32_t k = 0; k < fitting->count; k++) {
        if (k == i)
            continue;
        bytes[count] = fitting->bytes[k];
        time_s[count++] = fitting->time_s[k];
    }
    double predicted = (double)NAN;
    if (model_fit(&scratch, kind, bytes, time_s, count, &table, &pieces))
        predicted = calibration_table_s(&table, fitting->bytes[i]);
    curve_free(table.curve);
    arena_release(&scratch);
    return predicted;
}

static double left_out_median(const struct fitting *fitting, enum calibration_fit kind,
                              double *predicted)
{
    double *errors = ARENA_ARRAY(fitting->arena, double, fitting->count);
    int32_t count = 0;
    for (int32_t i = 0; i < fitting->count; i++)
        predicted[i] = (double)NAN;
    const int32_t step = 1 + fitting->count / LEFT_OUT_MAX;
    for (int32_t i = 1; i + 1 < fitting->count; i += step) {
        predicted[i] = left_out_s(fitting, kind, i);
        if (!isnan(predicted[i]))
            errors[count++] = fabs(predicted[i] / fitting->time_s[i] - 1);
    }
    return quantile(errors, count, 0.5);
}

/* ---- errors and marks ----------------------------------------------------------------------- */

static void judge(struct fitting *fitting)
{
    struct calibrate_fit *fit = fitting->fit;
    double *errors = ARENA_ARRAY(fitting->arena, double, fitting->count);
    double *widths = ARENA_ARRAY(fitting->arena, double, fitting->count);
    for (int32_t i = 0; i < fitting->count; i++) {
        struct calibrate_point *point = &fit->points[i];
        point->fit_s = calibration_table_s(&fit->table, point->bytes);
        errors[i] = fabs(point->fit_s / point->time_s - 1);
        widths[i] = (point->high_s - point->low_s) / 2 / point->time_s;
        point->is_falling = i > 0 && !point[-1].is_outlier &&
                            point->time_s < point[-1].time_s * (1 - falling_share);
        fit->falling_count += point->is_falling;
        const double busbw =
            nccl_bus_factor(fit->table.op, fit->table.nodes * fit->table.gpus_per_node) *
            point->bytes / point->time_s;
        if (busbw > fit->best_busbw_bytes_per_s) {
            fit->best_busbw_bytes_per_s = busbw;
            fit->best_at_bytes = point->bytes;
        }
    }
    fit->median_err = quantile(errors, fitting->count, 0.5);
    fit->p90_err = quantile(errors, fitting->count, 0.9);
    fit->max_err = errors[fitting->count - 1]; /* sorted by now */
    fit->repeat_err = quantile(widths, fitting->count, 0.5);
}

/* A point far from what a curve through the others says, when its neighbours are not. */
static void mark_outliers(struct fitting *fitting, const double *predicted)
{
    struct calibrate_fit *fit = fitting->fit;
    for (int32_t i = 1; i + 1 < fitting->count; i++) {
        const double off = fabs(fitting->time_s[i] / predicted[i] - 1);
        const double before = i > 1 ? fabs(fitting->time_s[i - 1] / predicted[i - 1] - 1) : 0;
        const double after =
            i + 2 < fitting->count ? fabs(fitting->time_s[i + 1] / predicted[i + 1] - 1) : 0;
        fit->points[i].is_outlier = off > outlier_share && !(off < before) && !(off < after);
        fit->outlier_count += fit->points[i].is_outlier;
    }
}

static void choose(struct fitting *fitting)
{
    struct calibrate_fit *fit = fitting->fit;
    double *linear = ARENA_ARRAY(fitting->arena, double, fitting->count);
    double *log_log = ARENA_ARRAY(fitting->arena, double, fitting->count);
    fit->linear_left_out = left_out_median(fitting, CALIBRATION_LINEAR, linear);
    fit->log_log_left_out = left_out_median(fitting, CALIBRATION_LOG_LOG, log_log);
    const bool is_linear =
        fitting->count >= JUDGED_MIN && fit->linear_left_out < fit->log_log_left_out;
    const double *predicted = is_linear ? linear : log_log;
    for (int32_t i = 1; i + 1 < fitting->count; i++)
        fit->points[i].left_out_s = predicted[i];
    mark_outliers(fitting, predicted);
    enum calibration_fit kind = is_linear ? CALIBRATION_LINEAR : CALIBRATION_LOG_LOG;
    if (!model_fit(fitting->arena, kind, fitting->bytes, fitting->time_s, fitting->count,
                   &fit->table, &fit->pieces))
        BUG("a curve through %d sizes", (int)fitting->count);
}

bool calibrate_fit_tables(struct arena *arena, const struct nccl_table *const *tables,
                          int32_t count, struct calibrate_fit *fit)
{
    *fit = (struct calibrate_fit){.source_count = count, .sources = tables};
    struct fitting fitting = {.arena = arena, .fit = fit};
    int32_t sample_count;
    const struct sample *samples = samples_of(arena, tables, count, &sample_count);
    if (sample_count == 0)
        return false;
    pool(&fitting, samples, sample_count);
    fit->table = (struct calibration_table){.op = tables[0]->op,
                                            .nodes = tables[0]->nodes,
                                            .gpus_per_node = tables[0]->gpus_per_node,
                                            .algorithm = tables[0]->algorithm,
                                            .protocol = tables[0]->protocol,
                                            .source = tables[0]->name,
                                            .place = tables[0]->place};
    for (int32_t i = 0; i < count; i++)
        for (int32_t k = 0; k < tables[i]->rows.count; k++)
            fit->wrong_count += tables[i]->rows.items[k].out_of_place.wrong > 0 ||
                                tables[i]->rows.items[k].in_place.wrong > 0;
    choose(&fitting);
    BUG_IF(fit->table.point_count < 1);
    /* A fitted point may lie under the times by a rounding. */
    double floor_s = fit->table.points[fit->table.point_count - 1].time_s;
    for (int32_t i = 0; i < fitting.count; i++)
        floor_s = fmin(floor_s, fitting.time_s[i]);
    fit->table.floor_s = floor_s;
    judge(&fitting);
    return true;
}

void calibrate_release(struct calibrate_fit *fit)
{
    curve_free(fit->table.curve);
    fit->table.curve = NULL;
}

bool calibrate_log(struct arena *arena, const struct nccl_log *log, struct calibrate_set *set,
                   struct diag *diag)
{
    const int32_t table_count = log->tables.count;
    bool *is_taken = ARENA_ARRAY(arena, bool, table_count);
    bool is_good = true;
    *set = (struct calibrate_set){.items = ARENA_ARRAY(arena, struct calibrate_fit, table_count)};
    for (int32_t i = 0; i < table_count; i++) {
        if (is_taken[i])
            continue;
        const struct nccl_table **alike =
            ARENA_ARRAY(arena, const struct nccl_table *, table_count);
        int32_t count = 0;
        for (int32_t k = i; k < table_count; k++) {
            if (is_taken[k] || !calibrate_is_alike(&log->tables.items[i], &log->tables.items[k]))
                continue;
            is_taken[k] = true;
            alike[count++] = &log->tables.items[k];
        }
        if (calibrate_fit_tables(arena, alike, count, &set->items[set->count]))
            set->count++;
        else {
            diag_add(diag, DIAG_ERROR, log->tables.items[i].rows.items[0].place, NULL,
                     "%s: no row of this table has a size and a time above 0",
                     collective_op_name(log->tables.items[i].op));
            is_good = false;
        }
    }
    return is_good;
}

void calibrate_set_release(struct calibrate_set *set)
{
    for (int32_t i = 0; i < set->count; i++)
        calibrate_release(&set->items[i]);
}
