/* study/validate_map.c: a row and the facts → the settings of its configuration. */
#include <string.h>

#include "base/strbuf.h"
#include "study/validate_private.h"

static struct validate_setting *find_setting(const struct row_settings *settings, const char *key)
{
    for (int32_t k = 0; k < settings->list.count; k++)
        if (strcmp(settings->list.items[k].key, key) == 0)
            return &settings->list.items[k];
    return NULL;
}

const char *setting_value(const struct row_settings *settings, const char *key)
{
    const struct validate_setting *setting = find_setting(settings, key);
    return setting != NULL ? setting->value : NULL;
}

/* The value with <column> replaced; NULL when a cell that it needs is empty. */
static const char *expand(struct arena *arena, const char *value, const struct measured_row *row)
{
    struct strbuf text = {0};
    bool is_complete = true;
    strbuf_add(&text, "");
    while (*value != '\0') {
        const size_t plain = strcspn(value, "<");
        strbuf_add_bytes(&text, value, plain);
        value += plain;
        if (*value != '<')
            continue;
        const size_t length = strcspn(value + 1, ">");
        const char *cell = measured_text(row, arena_strndup(arena, value + 1, length));
        is_complete = is_complete && cell[0] != '\0';
        strbuf_add(&text, cell);
        value += 1 + length + (value[1 + length] == '>');
    }
    const char *result = is_complete ? arena_strdup(arena, text.text) : NULL;
    strbuf_release(&text);
    return result;
}

/* A reason may name the row's own words. */
static const char *reason_text(struct arena *arena, const char *reason,
                               const struct measured_row *row)
{
    const char *text = expand(arena, reason, row);
    return text != NULL ? text : reason;
}

/* "model" and "model.x": a new model (or cluster) starts without what was set inside the old one.
 */
static void drop_setting(struct row_settings *settings, const char *key, bool with_inner)
{
    const size_t length = strlen(key);
    int32_t kept = 0;
    for (int32_t k = 0; k < settings->list.count; k++) {
        const char *other = settings->list.items[k].key;
        const bool is_key = strncmp(other, key, length) == 0 &&
                            (other[length] == '\0' || (with_inner && other[length] == '.'));
        if (!is_key)
            settings->list.items[kept++] = settings->list.items[k];
    }
    settings->list.count = kept;
}

static void apply_setting(struct arena *arena, const struct fact_rule *rule,
                          const struct fact_setting *from, const struct measured_row *row,
                          struct row_settings *settings)
{
    const char *value = expand(arena, from->value, row);
    if (value == NULL)
        return;
    drop_setting(settings, from->key, true);
    if (value[0] == '\0')
        return;
    *ARENA_PUSH(arena, &settings->list) =
        (struct validate_setting){.key = from->key,
                                  .value = value,
                                  .origin = rule->origin,
                                  .because = rule->assumed != NULL ? rule->assumed : rule->citation,
                                  .is_assumed = rule->assumed != NULL};
}

void settings_of_row(struct arena *arena, const struct fact_rules *rules,
                     const struct measured_row *row, struct row_settings *settings)
{
    *settings = (struct row_settings){0};
    for (int32_t k = 0; k < rules->count; k++) {
        const struct fact_rule *rule = &rules->items[k];
        if (rule->match != NULL && rule->licence != NULL &&
            pattern_matches(rule->match, measured_text(row, "source")))
            settings->licence = rule->licence;
        if (!fact_matches(rule, row))
            continue;
        if (rule->exclude != NULL && settings->exclude == NULL) {
            settings->exclude = reason_text(arena, rule->exclude, row);
            settings->excluded_by = rule;
        }
        for (int32_t s = 0; s < rule->set_count; s++)
            apply_setting(arena, rule, &rule->set[s], row, settings);
    }
    for (int32_t k = 0; k < settings->list.count; k++)
        settings->is_assumed = settings->is_assumed || settings->list.items[k].is_assumed;
}
