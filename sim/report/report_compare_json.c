/* report/report_compare_json.c: a comparison for machines; see report_compare.h. */
#include <math.h>
#include <string.h>

#include "report/json_writer.h"
#include "report/report_compare.h"

/* What kind of place a value comes from; the place itself is a path, which JSON leaves out. */
static const char *kind_of(const char *origin)
{
    static const char *const kinds[] = {NULL, "file", "command line", "default", "other values"};
    return kinds[setting_from(origin)];
}

static void write_settings(struct json_writer *json, const struct compare *compare)
{
    json_key(json, "settings");
    json_begin_array(json);
    for (int32_t i = 0; i < compare->settings.count; i++) {
        const struct compare_setting *setting = &compare->settings.items[i];
        json_begin_object(json);
        json_key(json, "key");
        json_text(json, setting->key);
        json_key(json, "a");
        json_text(json, setting->a);
        json_key(json, "b");
        json_text(json, setting->b);
        json_key(json, "from_a");
        json_text(json, kind_of(setting->from_a));
        json_key(json, "from_b");
        json_text(json, kind_of(setting->from_b));
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_pair(struct json_writer *json, double a, double b)
{
    json_key(json, "a");
    json_double(json, a);
    json_key(json, "b");
    json_double(json, b);
    json_key(json, "difference");
    json_double(json, b - a);
}

/* Every number of an outcome: {"step_time_s": {"a": …, "b": …, "difference": …}, …} */
static void write_metrics(struct json_writer *json, const struct compare *compare)
{
    json_key(json, "metrics");
    json_begin_object(json);
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++) {
        double a = 0;
        double b = 0;
        json_key(json, metric->name);
        json_begin_object(json);
        if (metric->kind == METRIC_TEXT || metric->kind == METRIC_BOOL) {
            json_key(json, "a");
            if (metric->kind == METRIC_TEXT)
                json_text(json, metric_text(compare->a, metric));
            else
                json_bool(json, metric_bool(compare->a, metric));
            json_key(json, "b");
            if (metric->kind == METRIC_TEXT)
                json_text(json, metric_text(compare->b, metric));
            else
                json_bool(json, metric_bool(compare->b, metric));
        } else {
            a = outcome_number(compare->a, metric, &a) ? a : (double)NAN;
            b = outcome_number(compare->b, metric, &b) ? b : (double)NAN;
            write_pair(json, a, b);
        }
        json_end_object(json);
    }
    json_end_object(json);
}

static void write_parts(struct json_writer *json, const char *key,
                        const struct compare_parts *parts)
{
    json_key(json, key);
    json_begin_array(json);
    for (int32_t i = 0; i < parts->count; i++) {
        const struct compare_part *part = &parts->items[i];
        json_begin_object(json);
        json_key(json, "name");
        json_text(json, part->name);
        if (part->count > 1) {
            json_key(json, "last");
            json_text(json, part->last);
            json_key(json, "count");
            json_int(json, part->count);
        }
        write_pair(json, part->a, part->b);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_units(struct json_writer *json, const struct compare *compare)
{
    json_key(json, "units_s");
    json_begin_array(json);
    for (int32_t i = 0; i < compare->units.count; i++) {
        const struct compare_unit *unit = &compare->units.items[i];
        json_begin_object(json);
        json_key(json, "name");
        json_text(json, unit->first);
        json_key(json, "last");
        json_text(json, unit->last);
        json_key(json, "count");
        json_int(json, unit->count);
        write_pair(json, unit->a_s, unit->b_s);
        json_end_object(json);
    }
    json_end_array(json);
    if (!compare->has_units)
        return;
    json_key(json, "outside_of_units_s");
    json_begin_object(json);
    write_pair(json, compare->outside_a_s, compare->outside_b_s);
    json_end_object(json);
}

static void write_collectives(struct json_writer *json, const struct compare *compare)
{
    json_key(json, "collectives");
    json_begin_array(json);
    for (int32_t i = 0; i < compare->collectives.count; i++) {
        const struct compare_collective *one = &compare->collectives.items[i];
        json_begin_object(json);
        json_key(json, "op");
        json_text(json, one->op);
        json_key(json, "communicator");
        json_text(json, one->communicator);
        json_key(json, "count_a");
        json_int(json, one->count_a);
        json_key(json, "count_b");
        json_int(json, one->count_b);
        json_key(json, "alone_s");
        json_begin_object(json);
        write_pair(json, one->alone_a_s, one->alone_b_s);
        json_end_object(json);
        json_end_object(json);
    }
    json_end_array(json);
}

void report_compare_json(const struct compare *compare, FILE *file)
{
    struct arena scratch = {0};
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, OUTCOME_SCHEMA_VERSION);
    json_key(&json, "same_configuration");
    json_bool(&json, compare->is_same_config);
    write_settings(&json, compare);
    write_metrics(&json, compare);
    write_parts(&json, "categories_s", &compare->time);
    write_parts(&json, "phases_s", &compare->phases);
    write_units(&json, compare);
    write_collectives(&json, compare);
    write_parts(&json, "memory_bytes", &compare->memory);
    write_parts(&json, "memory_units_bytes", &compare->memory_units);
    json_key(&json, "words");
    json_text(&json, report_compare_words(compare, &scratch));
    json_end_object(&json);
    json_finish(&json);
    arena_release(&scratch);
}
