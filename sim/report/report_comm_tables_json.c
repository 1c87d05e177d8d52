/* report/report_comm_tables_json.c: see report_comm_tables.h. */
#include "report/json_writer.h"
#include "report/report_comm_tables.h"

static void score(struct json_writer *json, const char *key, const struct collective_score *from)
{
    json_key(json, key);
    json_begin_object(json);
    json_key(json, "n");
    json_int(json, from->n);
    json_key(json, "median_abs_err");
    json_double(json, from->median_abs_err);
    json_key(json, "max_abs_err");
    json_double(json, from->max_abs_err);
    json_key(json, "bias");
    json_double(json, from->bias);
    json_end_object(json);
}

static void scores(struct json_writer *json, const char *key,
                   const struct collective_score from[COLLECTIVE_BASIS_COUNT])
{
    json_key(json, key);
    json_begin_object(json);
    for (int basis = 0; basis < COLLECTIVE_BASIS_COUNT; basis++)
        score(json, collective_basis_name((enum collective_basis)basis), &from[basis]);
    json_end_object(json);
}

static void text(struct json_writer *json, const char *key, const char *value)
{
    json_key(json, key);
    json_text(json, value);
}

static void bands(struct json_writer *json,
                  const struct collective_score from[COLLECTIVE_BASIS_COUNT][SIZE_BAND_COUNT])
{
    json_key(json, "bands");
    json_begin_object(json);
    for (int band = 0; band < SIZE_BAND_COUNT; band++) {
        json_key(json, size_band_name((enum size_band)band));
        json_begin_object(json);
        for (int basis = 0; basis < COLLECTIVE_BASIS_COUNT; basis++)
            score(json, collective_basis_name((enum collective_basis)basis), &from[basis][band]);
        json_end_object(json);
    }
    json_end_object(json);
}

static void points(struct json_writer *json, const struct collective_result *result)
{
    json_key(json, "points");
    json_begin_array(json);
    for (int32_t i = 0; i < result->point_count; i++) {
        const struct collective_point *point = &result->points[i];
        json_begin_object(json);
        json_key(json, "bytes");
        json_double(json, point->bytes);
        json_key(json, "measured_s");
        json_double(json, point->measured_s);
        json_key(json, "spec_s");
        json_double(json, point->predicted_s[ON_SPEC]);
        json_key(json, "itself_s");
        json_double(json, point->predicted_s[ON_ITSELF]);
        json_key(json, "sibling_s");
        json_double(json, point->predicted_s[ON_SIBLING]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void explanations(struct json_writer *json, const struct collective_result *result)
{
    json_key(json, "explanations");
    json_begin_array(json);
    for (int32_t i = 0; i < result->explanation_count; i++) {
        json_begin_object(json);
        text(json, "name", result->explanations[i].name);
        text(json, "setting", result->explanations[i].setting);
        json_key(json, "median_abs_err");
        json_double(json, result->explanations[i].error_after);
        json_end_object(json);
    }
    json_end_array(json);
}

static void result_object(struct json_writer *json, const struct collective_result *result)
{
    json_begin_object(json);
    text(json, "table", result->name);
    text(json, "collective", collective_op_name(result->log->op));
    text(json, "status",
         result->reason != NULL ? "out of scope"
         : result->is_degraded  ? "degraded"
                                : "healthy");
    text(json, "reason", result->reason != NULL ? result->reason : result->because);
    text(json, "cluster", result->cluster);
    text(json, "fabric", result->fabric);
    text(json, "launch", result->launch);
    json_key(json, "nodes");
    json_int(json, result->nodes);
    json_key(json, "gpus_per_node");
    json_int(json, result->gpus_per_node);
    json_key(json, "settings");
    json_begin_array(json);
    for (int32_t i = 0; i < result->setting_count; i++)
        json_text(json, result->settings[i]);
    json_end_array(json);
    text(json, "sibling", result->sibling);
    scores(json, "from_1MiB", result->from_1m);
    bands(json, result->bands);
    if (result->is_degraded && result->reason == NULL)
        explanations(json, result);
    points(json, result);
    json_end_object(json);
}

static void groups(struct json_writer *json, const char *key, const struct collective_groups *list)
{
    json_key(json, key);
    json_begin_array(json);
    for (int32_t i = 0; i < list->count; i++) {
        json_begin_object(json);
        text(json, "name", list->items[i].name);
        json_key(json, "tables");
        json_int(json, list->items[i].tables);
        scores(json, "from_1MiB", list->items[i].from_1m);
        json_end_object(json);
    }
    json_end_array(json);
}

void report_comm_tables_json(const struct collective_validation *validation, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, 1);
    json_key(&json, "tables");
    json_int(&json, validation->result_count);
    json_key(&json, "healthy");
    json_int(&json, validation->in_scope);
    json_key(&json, "degraded");
    json_int(&json, validation->degraded);
    json_key(&json, "out_of_scope");
    json_int(&json, validation->out_of_scope);
    scores(&json, "from_1MiB", validation->from_1m);
    bands(&json, validation->bands);
    groups(&json, "by_fabric", &validation->by_fabric);
    groups(&json, "by_collective", &validation->by_op);
    json_key(&json, "results");
    json_begin_array(&json);
    for (int32_t i = 0; i < validation->result_count; i++)
        result_object(&json, &validation->results[i]);
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
}
