/* report/report_why_json.c: see report_why.h: the JSON. */
#include "base/units.h"
#include "report/report_why.h"

static void put_unit(const struct why *why, struct json_writer *json, const char *key, int32_t unit)
{
    json_key(json, key);
    json_text(json, unit < 0 ? NULL : why->path->program->units.items[unit].name);
}

static void put_text(struct json_writer *json, const char *key, const char *text)
{
    json_key(json, key);
    json_text(json, text);
}

static void put_seconds(const struct why *why, struct json_writer *json, const char *key,
                        int64_t ps)
{
    json_key(json, key);
    json_double(json, s_from_ps(ps) / (double)why->steps);
}

static void put_path(const struct why *why, struct json_writer *json)
{
    const struct critical_path *path = why->path;
    json_key(json, "critical_path");
    json_begin_object(json);
    put_seconds(why, json, "total_s", path->length_ps);
    put_seconds(why, json, "other_classes_s", path->elsewhere_ps);
    json_key(json, "by_cause");
    json_begin_object(json);
    for (int cause = 0; cause < PATH_CAUSE_COUNT; cause++) {
        char key[48];
        snprintf(key, sizeof(key), "%s_s", path_cause_name((enum path_cause)cause));
        put_seconds(why, json, key, path->by_cause_ps[cause]);
    }
    json_end_object(json);
    json_key(json, "by_unit");
    json_begin_array(json);
    for (int32_t i = 0; i < path->shares.count; i++) {
        const struct path_share *share = &path->shares.items[i];
        json_begin_object(json);
        put_unit(why, json, "unit", share->unit);
        put_text(json, "cause", path_cause_name(share->cause));
        put_seconds(why, json, "time_s", share->ps);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static bool is_behind(enum path_late late)
{
    return late == LATE_EVENT || late == LATE_TURN || late == LATE_STREAM;
}

static void put_wait(const struct why *why, struct json_writer *json, const struct path_wait *wait)
{
    json_begin_object(json);
    put_text(json, "phase", path_phase_name(wait->phase));
    put_unit(why, json, "unit", wait->unit);
    put_text(json, "for", path_cause_name(wait->for_cause));
    put_unit(why, json, "for_unit", wait->for_unit);
    put_text(json, "late_by", path_late_name(wait->late));
    put_text(json, "behind", is_behind(wait->late) ? path_cause_name(wait->late_cause) : NULL);
    put_unit(why, json, "behind_unit", is_behind(wait->late) ? wait->late_unit : -1);
    json_key(json, "late_rank");
    if (wait->late_rank < 0)
        json_text(json, NULL);
    else
        json_int(json, wait->late_rank);
    json_key(json, "count");
    json_double(json, (double)wait->count / (double)why->steps);
    put_seconds(why, json, "time_s", wait->ps);
    json_end_object(json);
}

static void put_advice(const struct why *why, struct json_writer *json, const char *key,
                       const struct advice_list *list)
{
    json_key(json, key);
    json_begin_array(json);
    for (int32_t i = 0; i < list->count && i < WHY_SETTINGS; i++) {
        const struct advice_item *item = &list->items[i];
        json_begin_object(json);
        put_text(json, "words", item->words);
        json_key(json, "settings");
        json_begin_array(json);
        for (int k = 0; k < 3 && item->texts[k] != NULL; k++)
            json_text(json, item->texts[k]);
        json_end_array(json);
        json_key(json, "step_time_s");
        json_double(json, item->step_time_s);
        json_key(json, "tokens_per_s");
        json_double(json, item->tokens_per_s);
        json_key(json, "time_per_token_gain_fraction");
        json_double(json, item->gain);
        json_key(json, "peak_device_bytes");
        json_int(json, item->peak_device_bytes);
        json_key(json, "peak_device_change_bytes");
        json_int(json, item->peak_device_bytes - why->outcome->peak_device_bytes);
        json_end_object(json);
    }
    json_end_array(json);
}

void report_why_json(const struct why *why, struct json_writer *json)
{
    put_path(why, json);
    json_key(json, "waits");
    json_begin_array(json);
    for (int32_t i = 0; i < why->path->waits.count; i++)
        put_wait(why, json, &why->path->waits.items[i]);
    json_end_array(json);
    put_advice(why, json, "settings", &why->advice->settings);
    put_advice(why, json, "what_if", &why->advice->hardware);
    json_key(json, "settings_tried");
    json_int(json, why->advice->tried);
    json_key(json, "settings_refused");
    json_int(json, why->advice->refused);
    json_key(json, "settings_unfit");
    json_int(json, why->advice->unfit);
}
