/* cluster/calibration.c: see calibration.h. */
#include "cluster/calibration.h"

#include <math.h>

#include "cluster/calibration_config.h"
#include "numeric/curve.h"
#include "numeric/distribution.h"

static const char *const fit_names[] = {
    [CALIBRATION_LINEAR] = "linear", [CALIBRATION_LOG_LOG] = "log_log"};

const char *calibration_fit_name(enum calibration_fit fit)
{
    return fit_names[fit];
}

enum status calibration_table_derive(struct calibration_table *table)
{
    const struct calibration_point *points = table->points;
    struct arena scratch = {0};
    double *bytes = ARENA_ARRAY(&scratch, double, table->point_count);
    double *log_s = ARENA_ARRAY(&scratch, double, table->point_count);
    for (int64_t i = 0; i < table->point_count; i++) {
        bytes[i] = points[i].bytes;
        log_s[i] = log(points[i].time_s);
    }
    table->curve = curve_new(bytes, log_s, (int32_t)table->point_count);
    const bool is_good = table->curve != NULL;
    arena_release(&scratch);
    return is_good ? STATUS_OK : STATUS_INPUT;
}

double calibration_error_sigma(double median, double leave_one_out, double repeat)
{
    return hypot(leave_one_out > 0 ? leave_one_out : median, repeat) / normal_quantile(0.75);
}

enum status calibration_build(struct arena *arena, struct config *config, const char *path,
                              const void *bound, struct calibration *calibration)
{
    const struct calibration_config *from = bound;
    const struct calibration_table_config *items = from->tables.items;
    *calibration = (struct calibration){0};
    if (from->tables.count == 0)
        return STATUS_OK;
    calibration->name = from->name;
    calibration->tables = ARENA_ARRAY(arena, struct calibration_table, from->tables.count);
    for (int64_t i = 0; i < from->tables.count; i++) {
        const char *key = arena_printf(config->arena, "%s%stables[%lld].op", path,
                                       path[0] ? "." : "", (long long)i);
        struct calibration_table *table = &calibration->tables[calibration->table_count++];
        *table = (struct calibration_table){
            .op = (enum collective_op)items[i].op,
            .nodes = items[i].nodes,
            .gpus_per_node = items[i].gpus_per_node,
            .algorithm = items[i].algorithm,
            .protocol = items[i].protocol,
            .fit = (enum calibration_fit)items[i].fit,
            .floor_s = items[i].floor_s,
            .points = items[i].points.items,
            .point_count = items[i].points.count,
            .source = items[i].source,
            .number = i + 1,
            .error_sigma = calibration_error_sigma(
                items[i].error.median, items[i].error.leave_one_out, items[i].error.repeat),
            .place = config_place(config, key)};
        if (calibration_table_derive(table) != STATUS_OK) {
            config_error(config, key, NULL, "two points of this table lie too close together");
            return STATUS_INPUT;
        }
    }
    return STATUS_OK;
}

void calibration_release(struct calibration *calibration)
{
    for (int64_t i = 0; i < calibration->table_count; i++)
        curve_free(calibration->tables[i].curve);
    *calibration = (struct calibration){0};
}

static double linear_s(const struct calibration_table *table, double bytes)
{
    const struct calibration_point *points = table->points;
    int64_t i = 1;
    while (i < table->point_count - 1 && bytes > points[i].bytes)
        i++;
    const double share = (bytes - points[i - 1].bytes) / (points[i].bytes - points[i - 1].bytes);
    return points[i - 1].time_s + share * (points[i].time_s - points[i - 1].time_s);
}

double calibration_table_s(const struct calibration_table *table, double bytes)
{
    const struct calibration_point *first = &table->points[0];
    const struct calibration_point *last = &table->points[table->point_count - 1];
    double time_s;
    if (bytes <= first->bytes)
        time_s = first->time_s;
    else if (bytes >= last->bytes)
        time_s = last->time_s;
    else if (table->fit == CALIBRATION_LINEAR)
        time_s = linear_s(table, bytes);
    else
        time_s = exp(curve_at(table->curve, bytes));
    return fmax(time_s, table->floor_s);
}

double calibration_clamp(const struct calibration_table *table, double bytes)
{
    return fmin(fmax(bytes, table->points[0].bytes), table->points[table->point_count - 1].bytes);
}

bool calibration_is_outside(const struct calibration_table *table, double bytes)
{
    return bytes < table->points[0].bytes || bytes > table->points[table->point_count - 1].bytes;
}
