/* collective/nccl_log_json.c: what -J writes; see nccl_log.h. */
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "collective/nccl_log_private.h"
#include "config/node.h"

struct json_reader {
    struct arena *arena;
    struct nccl_log *log;
    struct row_warnings *warnings;
};

static bool is_text(const struct node *node)
{
    return node != NULL && node->kind == NODE_SCALAR;
}

static const struct node *child(const struct node *map, const char *key)
{
    return map != NULL && map->kind == NODE_MAP ? node_get(map, key) : NULL;
}

static const char *text_of(const struct node *map, const char *key)
{
    const struct node *node = child(map, key);
    return is_text(node) ? node->text : NULL;
}

/* Numbers may be quoted ("root": "    -1", "nan"); false: absent, null or no number. */
static bool number_of(const struct node *map, const char *key, double *value)
{
    const char *text = text_of(map, key);
    while (text != NULL && *text == ' ')
        text++;
    return text != NULL && text_to_double(text, value);
}

static bool count_of(const struct node *map, const char *key, int64_t *value)
{
    const char *text = text_of(map, key);
    while (text != NULL && *text == ' ')
        text++;
    return text != NULL && text_to_int64(text, value);
}

static void take_seconds(const struct node *map, const char *key, double *seconds, bool is_low)
{
    double us;
    if (!number_of(map, key, &us) || !row_time_is_possible(us * 1e-6))
        return;
    *seconds = is_low ? fmin(*seconds, us * 1e-6) : fmax(*seconds, us * 1e-6);
}

/* The percentiles of -I stand in the group or in a map of their own in it. */
static void take_percentiles(const struct node *map, struct nccl_times *times)
{
    static const char *const low[] = {"min", "p5", "p10", "p50"};
    static const char *const high[] = {"p95", "p99", "max"};
    for (size_t i = 0; i < sizeof(low) / sizeof(low[0]); i++)
        take_seconds(map, low[i], &times->low_s, true);
    for (size_t i = 0; i < sizeof(high) / sizeof(high[0]); i++)
        take_seconds(map, high[i], &times->high_s, false);
    for (int32_t i = 0; i < map->entries.count; i++)
        if (map->entries.items[i].value->kind == NODE_MAP)
            take_percentiles(map->entries.items[i].value, times);
}

static struct nccl_times times_of(const struct node *map)
{
    struct nccl_times times = {.time_s = (double)NAN,
                               .algbw_bytes_per_s = (double)NAN,
                               .busbw_bytes_per_s = (double)NAN,
                               .low_s = (double)NAN,
                               .high_s = (double)NAN,
                               .wrong = -1};
    double value;
    if (map == NULL || map->kind != NODE_MAP)
        return times;
    if ((number_of(map, "time", &value) || number_of(map, "cpu_time", &value)) && value >= 0)
        times.time_s = value * 1e-6;
    if (number_of(map, "alg_bw", &value) && row_rate_is_possible(value * 1e9))
        times.algbw_bytes_per_s = value * 1e9;
    if (number_of(map, "bus_bw", &value) && row_rate_is_possible(value * 1e9))
        times.busbw_bytes_per_s = value * 1e9;
    if (number_of(map, "nwrong", &value) && value >= 0)
        times.wrong = (int64_t)fmin(value, 9e18);
    take_percentiles(map, &times);
    return times;
}

/* A time that is none ("1e999", -3) or that no calibration may hold; absent and null are possible.
 */
static bool times_are_possible(struct json_reader *reader, const struct node *map)
{
    static const char *const keys[] = {"time", "cpu_time"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct node *node = child(map, keys[i]);
        const char *text = is_text(node) ? node->text : NULL;
        double us;
        if (node == NULL || text == NULL || text_equal(text, "null") || text_equal(text, "nan") ||
            (number_of(map, keys[i], &us) && row_time_is_possible(us * 1e-6)))
            continue;
        return row_left_out(reader->warnings, node->place, "the result is left out",
                            "'%.64s' is not 0 or a time from 1 ns to 1e5 s", text);
    }
    return true;
}

static void take_result(struct json_reader *reader, struct nccl_table *table,
                        const struct node *result)
{
    struct nccl_row row = {.place = result->place, .type = "", .redop = "", .root = -1};
    const struct node *size = child(result, "size");
    if (!count_of(result, "size", &row.bytes)) {
        (void)row_left_out(reader->warnings, result->place, "the result is left out",
                           "a result without 'size'");
        return;
    }
    if (!row_size_is_possible(row.bytes)) {
        (void)row_left_out(reader->warnings, size != NULL ? size->place : result->place,
                           "the result is left out", "'%.64s' is not a size from 0 to 1e18 bytes",
                           text_of(result, "size"));
        return;
    }
    if (!times_are_possible(reader, child(result, "out_of_place")) ||
        !times_are_possible(reader, child(result, "in_place")))
        return;
    (void)count_of(result, "count", &row.count);
    (void)count_of(result, "root", &row.root);
    row.type = text_of(result, "type") != NULL ? text_of(result, "type") : "";
    row.redop = text_of(result, "redop") != NULL ? text_of(result, "redop") : "";
    row.out_of_place = times_of(child(result, "out_of_place"));
    row.in_place = times_of(child(result, "in_place"));
    if (isnan(row.out_of_place.time_s) && isnan(row.in_place.time_s)) {
        (void)row_left_out(reader->warnings, result->place, "the result is left out",
                           "a result without a time");
        return;
    }
    if (table->program == NULL && text_of(result, "experiment_name") != NULL) {
        table->program = text_of(result, "experiment_name");
        table->has_op = nccl_op_from_log(table->program, &table->op);
    }
    *ARENA_PUSH(reader->arena, &table->rows) = row;
}

static void take_devices(struct json_reader *reader, struct nccl_table *table,
                         const struct node *devices)
{
    struct rank_list ranks = {0};
    for (int32_t i = 0; devices != NULL && i < devices->entries.count; i++) {
        const struct node *device = devices->entries.items[i].value;
        const char *host = text_of(device, "hostname");
        int64_t rank = i;
        (void)count_of(device, "rank", &rank);
        if (host != NULL && rank >= 0)
            rank_list_add(reader->arena, &ranks, rank, host, device->place);
        if (table->device == NULL)
            table->device = text_of(device, "device_info");
    }
    rank_list_close(&ranks, table);
}

static void take_texts(struct json_reader *reader, struct nccl_table *table,
                       const struct node *list, bool is_program)
{
    for (int32_t i = 0; list != NULL && i < list->entries.count; i++) {
        const struct node *item = list->entries.items[i].value;
        if (!is_text(item))
            continue;
        if (is_program && i == 0) {
            table->program = item->text;
            table->has_op = nccl_op_from_log(item->text, &table->op);
        }
        table_take_environment(reader->arena, table, item->text);
    }
}

static void take_root(struct json_reader *reader, const struct node *root)
{
    const struct node *results = child(root, "results");
    const struct node *config = child(root, "config");
    int64_t code;
    int64_t threads = 1;
    int64_t gpus = 0;
    struct nccl_table *table = ARENA_PUSH(reader->arena, &reader->log->tables);
    *table = (struct nccl_table){.name = root->place.source->name, .place = root->place};
    take_texts(reader, table, child(root, "args"), true);
    take_texts(reader, table, child(root, "env"), false);
    if (count_of(root, "nccl_version", &code) && code > 0)
        table->version = version_from_code(reader->arena, code);
    (void)count_of(config, "nthreads", &threads);
    (void)count_of(config, "ngpus", &gpus);
    if (threads > 0 && threads < 4096 && gpus > 0 && gpus < 4096)
        table->gpus_per_process = threads * gpus;
    const struct node *devices = child(config, "devices");
    take_devices(reader, table, devices != NULL ? devices : child(root, "devices"));
    for (int32_t i = 0; results != NULL && i < results->entries.count; i++)
        take_result(reader, table, results->entries.items[i].value);
    if (table->rows.count == 0)
        reader->log->tables.count--;
}

enum status nccl_json_parse(struct arena *arena, const struct source *source, struct nccl_log *log,
                            struct row_warnings *warnings)
{
    struct json_reader reader = {.arena = arena, .log = log, .warnings = warnings};
    struct node *root = NULL;
    struct diag parsing;
    diag_init(&parsing, arena);
    const enum status status = node_parse_foreign(arena, source, &root, &parsing);
    const int32_t before = log->tables.count;
    if (root != NULL && root->kind == NODE_MAP)
        take_root(&reader, root);
    /* A file that was cut off: what came before the end counts. */
    const bool is_saved = status != STATUS_OK && log->tables.count > before;
    for (int32_t i = 0; i < parsing.count; i++) {
        const struct diag_message *message = &parsing.items[i];
        const bool is_softened = is_saved && message->level == DIAG_ERROR;
        diag_add(warnings->diag, is_softened ? DIAG_WARNING : message->level, message->place,
                 is_softened ? "the results before it are used" : message->hint, "%s",
                 message->text);
    }
    return is_saved ? STATUS_OK : status;
}
