/* cluster/calibration_fields.c: the fields of a calibration file. */
#include <stddef.h>

#include "base/strbuf.h"
#include "cluster/calibration_config.h"

static const struct choice ops[] = {
    {"all_gather", COLLECTIVE_ALL_GATHER, "bytes: of the gathered output"},
    {"reduce_scatter", COLLECTIVE_REDUCE_SCATTER, "bytes: of the input"},
    {"all_reduce", COLLECTIVE_ALL_REDUCE, "bytes: of the buffer"},
    {0}};

static const struct choice fits[] = {
    {"linear", CALIBRATION_LINEAR, "straight pieces between the points"},
    {"log_log", CALIBRATION_LOG_LOG, "a monotone curve of log time over log bytes"},
    {0}};

static const struct field point_fields[] = {{.key = "bytes",
                                             .kind = FIELD_QUANTITY,
                                             .dimension = DIM_BYTES,
                                             .offset = offsetof(struct calibration_point, bytes),
                                             .is_required = true,
                                             .min = 1,
                                             .max = CALIBRATION_BYTES_MAX,
                                             .help = "size as nccl-tests counts it"},
                                            {.key = "time",
                                             .kind = FIELD_QUANTITY,
                                             .dimension = DIM_TIME,
                                             .offset = offsetof(struct calibration_point, time_s),
                                             .is_required = true,
                                             .min = CALIBRATION_TIME_MIN_S,
                                             .max = CALIBRATION_TIME_MAX_S,
                                             .help = "of one collective"},
                                            {0}};
static const struct field_table point_table = {.name = "point",
                                               .help = "a time of the fitted curve",
                                               .fields = point_fields,
                                               .struct_bytes = sizeof(struct calibration_point)};

#define ERROR_FIELD(member, text)                                                                  \
    {                                                                                              \
        .key = #member, .kind = FIELD_REAL,                                                        \
        .offset = offsetof(struct calibration_error_config, member), .min = 0,                     \
        .max = CALIBRATION_TIME_MAX_S / CALIBRATION_TIME_MIN_S, .help = (text)                     \
    }

static const struct field error_fields[] = {
    ERROR_FIELD(median, "median over the measured sizes"),
    ERROR_FIELD(p90, "90th percentile"),
    ERROR_FIELD(max, "largest"),
    ERROR_FIELD(leave_one_out, "median, each size predicted by a fit to the others"),
    ERROR_FIELD(repeat, "median distance of repeated measurements from their middle"),
    {0}};
static const struct field_table error_table = {.name = "error",
                                               .help = "error of the fit, as shares of the time",
                                               .fields = error_fields,
                                               .struct_bytes =
                                                   sizeof(struct calibration_error_config)};

static const struct field table_fields[] = {
    {.key = "op",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct calibration_table_config, op),
     .is_required = true,
     .choices = ops,
     .help = "which collective"},
    {.key = "nodes",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct calibration_table_config, nodes),
     .is_required = true,
     .min = 1,
     .max = CALIBRATION_NODES_MAX,
     .help = "hosts it ran on"},
    {.key = "gpus_per_node",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct calibration_table_config, gpus_per_node),
     .is_required = true,
     .min = 1,
     .max = CALIBRATION_GPUS_PER_NODE_MAX,
     .help = "ranks on each host"},
    {.key = "algorithm",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct calibration_table_config, algorithm),
     .help = "NCCL_ALGO, where it was set; absent: NCCL's own choice"},
    {.key = "protocol",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct calibration_table_config, protocol),
     .help = "NCCL_PROTO, where it was set; absent: NCCL's own choice"},
    {.key = "fit",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct calibration_table_config, fit),
     .default_text = "log_log",
     .choices = fits,
     .help = "what lies between the points"},
    {.key = "floor",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct calibration_table_config, floor_s),
     .default_text = "0 s",
     .min = 0,
     .max = CALIBRATION_TIME_MAX_S,
     .help = "no collective is faster"},
    {.key = "points",
     .kind = FIELD_LIST,
     .offset = offsetof(struct calibration_table_config, points),
     .is_required = true,
     .table = &point_table,
     .min = 1,
     .max = 1000,
     .help = "the curve; bytes increase, times do not fall"},
    {.key = "error",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct calibration_table_config, error),
     .table = &error_table,
     .help = "error of the fit, as shares of the time; simulate.samples draws from it"},
    {.key = "source",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct calibration_table_config, source),
     .is_required = true,
     .help = "where it was measured"},
    {0}};
static const struct field_table table_table = {.name = "table",
                                               .help = "one collective on one shape of machine",
                                               .fields = table_fields,
                                               .struct_bytes =
                                                   sizeof(struct calibration_table_config)};

static void points_check(struct config *config, const char *at,
                         const struct calibration_table_config *table)
{
    const struct calibration_point *points = table->points.items;
    for (int64_t i = 1; i < table->points.count; i++) {
        const char *key = arena_printf(config->arena, "%s.points[%lld]", at, (long long)i);
        if (points[i].bytes <= points[i - 1].bytes)
            config_error(config, arena_printf(config->arena, "%s.bytes", key), NULL,
                         "the bytes of a point must be more than those of the point before");
        if (points[i].time_s < points[i - 1].time_s)
            config_error(config, arena_printf(config->arena, "%s.time", key), NULL,
                         "the time of a point must not be less than that of the point before");
    }
}

static void floor_check(struct config *config, const char *at,
                        const struct calibration_table_config *table)
{
    const struct calibration_point *points = table->points.items;
    double highest_s = 0;
    for (int64_t i = 0; i < table->points.count; i++)
        highest_s = points[i].time_s > highest_s ? points[i].time_s : highest_s;
    if (table->points.count > 0 && table->floor_s > highest_s)
        config_error(config, arena_printf(config->arena, "%s.floor", at), NULL,
                     "the floor lies above the times of all points");
}

static bool is_same_key(const struct calibration_table_config *a,
                        const struct calibration_table_config *b)
{
    return a->op == b->op && a->nodes == b->nodes && a->gpus_per_node == b->gpus_per_node &&
           text_equal(a->algorithm, b->algorithm) && text_equal(a->protocol, b->protocol);
}

static void calibration_check(struct config *config, const char *path, void *bound)
{
    const struct calibration_config *calibration = bound;
    const struct calibration_table_config *tables = calibration->tables.items;
    const char *dot = path[0] ? "." : "";
    for (int64_t i = 0; i < calibration->tables.count; i++) {
        const char *at = arena_printf(config->arena, "%s%stables[%lld]", path, dot, (long long)i);
        points_check(config, at, &tables[i]);
        floor_check(config, at, &tables[i]);
        if (tables[i].nodes * tables[i].gpus_per_node < 2)
            config_error(config, arena_printf(config->arena, "%s.gpus_per_node", at), NULL,
                         "a collective has at least 2 ranks");
        for (int64_t k = 0; k < i; k++)
            if (is_same_key(&tables[i], &tables[k]))
                config_error(config, arena_printf(config->arena, "%s.op", at),
                             "one table for each collective, nodes, gpus_per_node, algorithm and "
                             "protocol",
                             "a second table for the same case");
    }
}

static const struct field calibration_fields[] = {
    FIELD_VERSION(struct calibration_config),
    FIELD_NAME(struct calibration_config),
    {.key = "summary",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct calibration_config, summary),
     .help = "one line for lists"},
    {.key = "tables",
     .kind = FIELD_LIST,
     .offset = offsetof(struct calibration_config, tables),
     .is_required = true,
     .table = &table_table,
     .min = 1,
     .max = 10000,
     .help = "measured collectives"},
    {0}};

const struct field_table calibration_config_table = {
    .name = "calibration",
    .help = "measured collectives of a machine: topologies/calibrations/NAME.yaml",
    .fields = calibration_fields,
    .struct_bytes = sizeof(struct calibration_config),
    .check = calibration_check};

const struct field_table *const calibration_tables[] = {&calibration_config_table, NULL};
