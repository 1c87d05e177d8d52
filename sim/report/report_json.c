/* report/report_json.c: an outcome as one JSON object; see report.h. */
#include <inttypes.h>
#include <string.h>

#include "report/json_writer.h"
#include "report/report.h"
#include "report/report_beside.h"
#include "report/report_why.h"

static void write_field(struct json_writer *json, const void *item, const struct metric *metric)
{
    json_key(json, metric->name);
    switch (metric->kind) {
    case METRIC_DOUBLE:
        json_double(json, metric_double(item, metric));
        break;
    case METRIC_INT:
        json_int(json, metric_int(item, metric));
        break;
    case METRIC_BOOL:
        json_bool(json, metric_bool(item, metric));
        break;
    case METRIC_TEXT:
        json_text(json, metric_text(item, metric));
        break;
    }
}

static void write_fields(struct json_writer *json, const void *item, const struct metric *fields)
{
    for (const struct metric *field = fields; field->name != NULL; field++)
        write_field(json, item, field);
}

/* `name: [{fields of each row}, …]` */
static void write_rows(struct json_writer *json, const char *name, const void *rows, int32_t count,
                       size_t row_bytes, const struct metric *fields)
{
    json_key(json, name);
    json_begin_array(json);
    for (int32_t i = 0; i < count; i++) {
        json_begin_object(json);
        write_fields(json, (const char *)rows + (size_t)i * row_bytes, fields);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_composition(struct json_writer *json, const struct outcome *outcome)
{
    json_key(json, "peak_composition");
    json_begin_object(json);
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++) {
        json_key(json, memory_category_name((enum memory_category)i));
        json_int(json, outcome->peak_composition[i]);
    }
    json_end_object(json);
}

void report_json(const struct outcome *outcome, FILE *file)
{
    report_json_of(outcome, 0, NULL, NULL, file);
}

void report_json_samples(struct json_writer *json, const struct outcome *outcome)
{
    if (outcome->n_samples == 0)
        return;
    json_key(json, "samples");
    json_begin_object(json);
    json_key(json, "count");
    json_int(json, outcome->n_samples);
    for (int32_t i = 0; i < outcome->interval_count; i++) {
        const struct outcome_interval *interval = &outcome->intervals[i];
        json_key(json, interval->metric);
        json_begin_object(json);
        json_key(json, "p05");
        json_double(json, interval->p05);
        json_key(json, "p50");
        json_double(json, interval->p50);
        json_key(json, "p95");
        json_double(json, interval->p95);
        json_end_object(json);
    }
    json_end_object(json);
}

static void write_units(struct json_writer *json, const struct outcome *outcome, int32_t top)
{
    struct arena scratch = {0};
    const int32_t count = top > 0 && top < outcome->unit_count ? top : outcome->unit_count;
    struct outcome_unit *units =
        ARENA_ARRAY(&scratch, struct outcome_unit, outcome->unit_count + 1);
    if (outcome->unit_count > 0)
        memcpy(units, outcome->units, sizeof(*units) * (size_t)outcome->unit_count);
    if (top > 0)
        report_sort_units(units, outcome->unit_count);
    write_rows(json, "units", units, count, sizeof(*units), outcome_unit_fields);
    arena_release(&scratch);
}

void report_json_of(const struct outcome *outcome, int32_t top, const struct beside *beside,
                    const struct why *why, FILE *file)
{
    struct json_writer json;
    char fingerprint[17];
    snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, outcome->fingerprint);

    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, OUTCOME_SCHEMA_VERSION);
    write_fields(&json, outcome, outcome_metrics);
    json_key(&json, "fingerprint");
    json_text(&json, fingerprint);
    write_composition(&json, outcome);
    if (beside != NULL)
        report_beside_json(beside, &json);
    json_key(&json, "warnings");
    json_begin_array(&json);
    for (int32_t i = 0; i < outcome->warning_count; i++)
        json_text(&json, outcome->warnings[i]);
    json_end_array(&json);
    write_units(&json, outcome, top);
    report_json_samples(&json, outcome);
    write_rows(&json, "collectives", outcome->collectives, outcome->collective_count,
               sizeof(*outcome->collectives), outcome_collective_fields);
    write_rows(&json, "links", outcome->links, outcome->link_count, sizeof(*outcome->links),
               outcome_link_fields);
    write_rows(&json, "memory_units", outcome->memory_units, outcome->memory_unit_count,
               sizeof(*outcome->memory_units), outcome_memory_unit_fields);
    if (why != NULL)
        report_why_json(why, &json);
    json_end_object(&json);
    json_finish(&json);
}
