/* report/report_validate_json.c: a validation as one JSON object; see report_validate.h. */
#include <math.h>

#include "report/json_writer.h"
#include "report/report_validate.h"

/* Of the JSON object. */
enum { VALIDATE_SCHEMA_VERSION = 1 };

static void json_score(struct json_writer *json, const char *key,
                       const struct validate_score *score)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"median_abs_err", score->median_abs_err},
                   {"p90_abs_err", score->p90_abs_err},
                   {"bias", score->bias},
                   {"within_10pct", score->within_10pct},
                   {"within_15pct", score->within_15pct},
                   {"mean_source_median_abs_err", score->mean_source_median}};
    json_key(json, key);
    json_begin_object(json);
    json_key(json, "n");
    json_int(json, score->n);
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
        json_key(json, numbers[k].key);
        json_double(json, numbers[k].value);
    }
    json_end_object(json);
}

static void json_scores(struct json_writer *json, const struct validate_scores *scores)
{
    json_score(json, "step_time", &scores->step_time);
    json_score(json, "memory", &scores->memory);
    json_score(json, "mfu", &scores->mfu);
}

static void json_inside(struct json_writer *json, const struct validate_inside *inside)
{
    json_key(json, "p5_to_p95");
    json_begin_object(json);
    json_key(json, "n");
    json_int(json, inside->n);
    json_key(json, "inside");
    json_int(json, inside->inside);
    json_key(json, "faster");
    json_int(json, inside->faster);
    json_key(json, "slower");
    json_int(json, inside->slower);
    json_key(json, "median_spread");
    json_double(json, inside->median_spread);
    json_end_object(json);
}

static void json_groups(struct json_writer *json, const char *key,
                        const struct validate_groups *groups)
{
    json_key(json, key);
    json_begin_object(json);
    for (int32_t k = 0; k < groups->count; k++) {
        json_key(json, groups->items[k].name);
        json_begin_object(json);
        json_key(json, "rows");
        json_int(json, groups->items[k].rows);
        json_key(json, "in_scope");
        json_int(json, groups->items[k].in_scope);
        json_scores(json, &groups->items[k].scores);
        json_inside(json, &groups->items[k].inside);
        json_end_object(json);
    }
    json_end_object(json);
}

static void json_pair(struct json_writer *json, const char *name, const char *unit,
                      const struct validate_pair *pair)
{
    char key[64];
    snprintf(key, sizeof(key), "measured_%s%s", name, unit);
    json_key(json, key);
    json_double(json, pair->measured);
    snprintf(key, sizeof(key), "predicted_%s%s", name, unit);
    json_key(json, key);
    json_double(json, pair->predicted);
    snprintf(key, sizeof(key), "%s_error", name);
    json_key(json, key);
    json_double(json, pair->error);
}

static void json_row(struct json_writer *json, const struct validate_row *row)
{
    const struct {
        const char *key, *text;
    } texts[] = {{"id", row->label},
                 {"source", row->source},
                 {"licence", row->licence},
                 {"gpu", row->gpu},
                 {"model", row->model},
                 {"trust", row->trust},
                 {"out_of_scope", row->reason},
                 {"regime", row->regime}};
    json_begin_object(json);
    json_key(json, "line");
    json_int(json, row->line);
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
        json_key(json, texts[k].key);
        json_text(json, texts[k].text);
    }
    json_key(json, "n_gpus");
    json_int(json, row->n_gpus);
    json_key(json, "in_scope");
    json_bool(json, row->reason == NULL);
    json_key(json, "assumed");
    json_bool(json, row->is_assumed);
    json_key(json, "scored");
    json_bool(json, row->is_scored);
    json_pair(json, "step_time", "_s", &row->step_s);
    json_key(json, "step_time_p5_s");
    json_double(json, row->interval.low_s > 0 ? row->interval.low_s : (double)NAN);
    json_key(json, "step_time_p95_s");
    json_double(json, row->interval.low_s > 0 ? row->interval.high_s : (double)NAN);
    json_key(json, "memory_kind");
    json_text(json, memory_kind_name(row->memory_kind));
    json_pair(json, "memory", "_bytes", &row->memory_bytes);
    json_key(json, "mfu_convention");
    json_text(json, row->mfu_convention);
    json_pair(json, "mfu", "", &row->mfu);
    json_end_object(json);
}

void report_validation_json(const struct validation *validation, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, VALIDATE_SCHEMA_VERSION);
    json_key(&json, "rows");
    json_int(&json, validation->row_count);
    json_key(&json, "in_scope");
    json_int(&json, validation->in_scope);
    json_key(&json, "coverage");
    json_double(&json, validation->row_count > 0
                           ? (double)validation->in_scope / validation->row_count
                           : (double)NAN);
    json_key(&json, "predicate");
    json_begin_array(&json);
    for (int k = 0; validate_predicate[k] != NULL; k++)
        json_text(&json, validate_predicate[k]);
    json_end_array(&json);
    json_scores(&json, &validation->headline);
    json_inside(&json, &validation->inside);
    json_key(&json, "without_assumed");
    json_begin_object(&json);
    json_scores(&json, &validation->without_assumed);
    json_end_object(&json);
    json_key(&json, "all_trust");
    json_begin_object(&json);
    json_scores(&json, &validation->all_trust);
    json_end_object(&json);
    json_groups(&json, "by_source", &validation->by_source);
    json_groups(&json, "by_gpu", &validation->by_gpu);
    json_groups(&json, "by_hosts", &validation->by_hosts);
    json_groups(&json, "by_regime", &validation->by_regime);
    json_groups(&json, "by_mfu_convention", &validation->by_convention);
    json_key(&json, "excluded");
    json_begin_array(&json);
    for (int32_t k = 0; k < validation->exclusions.count; k++) {
        json_begin_object(&json);
        json_key(&json, "reason");
        json_text(&json, validation->exclusions.items[k].reason);
        json_key(&json, "rows");
        json_int(&json, validation->exclusions.items[k].rows);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_key(&json, "runs");
    json_begin_array(&json);
    for (int32_t k = 0; k < validation->row_count; k++)
        json_row(&json, &validation->rows[k]);
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
}
