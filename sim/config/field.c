/* config/field.c: a row of a field table in words: what it accepts, and what was probably meant. */
#include "config/field.h"

#include <math.h>
#include <string.h>

#include "config/config_private.h"

/* Longer words are not typing mistakes, and the edit distance is quadratic. */
enum { SUGGESTION_MAX_BYTES = 64 };

const struct field *field_find(const struct field_table *table, const char *key)
{
    for (const struct field *field = table->fields; field->kind != FIELD_END; field++)
        if (strcmp(field->key, key) == 0)
            return field;
    return NULL;
}

const struct choice *choice_find(const struct choice *choices, const char *word)
{
    for (; choices != NULL && choices->word != NULL; choices++)
        if (strcmp(choices->word, word) == 0)
            return choices;
    return NULL;
}

bool table_has_required(const struct field_table *table)
{
    for (const struct field *field = table->fields; field->kind != FIELD_END; field++)
        if (field->is_required)
            return true;
    return false;
}

static bool is_bounded(const struct field *field)
{
    return field->min != 0.0 || field->max != 0.0;
}

static bool has_upper_bound(const struct field *field)
{
    return field->max >= field->min && !isinf(field->max);
}

bool field_is_in_range(const struct field *field, double value)
{
    if (!is_bounded(field))
        return true;
    return value >= field->min && (!has_upper_bound(field) || value <= field->max);
}

static const char *bound_text(struct arena *arena, const struct field *field, double value)
{
    char text[64];
    if (field->kind == FIELD_QUANTITY)
        return arena_strdup(arena, format_quantity(text, sizeof(text), value, field->dimension));
    return arena_printf(arena, field->kind == FIELD_REAL ? "%.10g" : "%.0f", value);
}

const char *field_range(struct arena *arena, const struct field *field)
{
    const bool has_lower = !isinf(field->min);
    const bool has_upper = has_upper_bound(field);
    if (!is_bounded(field) || (!has_lower && !has_upper))
        return "";
    if (!has_upper)
        return arena_printf(arena, "of at least %s", bound_text(arena, field, field->min));
    if (!has_lower)
        return arena_printf(arena, "of at most %s", bound_text(arena, field, field->max));
    return arena_printf(arena, "from %s to %s", bound_text(arena, field, field->min),
                        bound_text(arena, field, field->max));
}

static const char *kind_text(struct arena *arena, const struct field *field)
{
    switch (field->kind) {
    case FIELD_END:
        break;
    case FIELD_BOOL:
        return "true or false";
    case FIELD_COUNT:
        return "an integer";
    case FIELD_REAL:
        return "a number";
    case FIELD_QUANTITY:
        if (field->dimension == DIM_BYTES)
            return "a size in bytes";
        return arena_printf(arena, "a %s", dimension_name(field->dimension));
    case FIELD_ENUM:
        return "one of";
    case FIELD_TEXT:
        return field->is_line ? "one line" : "a text";
    case FIELD_STRUCT:
        return "a map";
    case FIELD_LIST:
        return "a list of maps";
    case FIELD_TEXT_LIST:
        return "a text or a list of texts";
    case FIELD_REF:
        return arena_printf(arena, "a name from %s/, a path or a map", field->folder);
    case FIELD_ANY:
        return "any value";
    }
    BUG("field '%s' has kind %d", field->key, (int)field->kind);
}

const char *field_accepted(struct arena *arena, const struct field *field)
{
    struct strbuf buf = {0};
    const char *range = field_range(arena, field);
    strbuf_add(&buf, kind_text(arena, field));
    if (range[0] != '\0') {
        const bool is_list = field->kind == FIELD_LIST || field->kind == FIELD_TEXT_LIST;
        strbuf_printf(&buf, is_list ? " (items: %s)" : " %s",
                      is_list && strncmp(range, "of ", 3) == 0 ? range + 3 : range);
    }
    const bool is_enum = field->kind == FIELD_ENUM;
    for (const struct choice *one = field->choices; one != NULL && one->word != NULL; one++) {
        const char *join = one == field->choices ? (is_enum ? " " : " or ") : ", ";
        strbuf_printf(&buf, is_enum ? "%s%s" : "%s'%s'", join, one->word);
    }
    const char *text = arena_strdup(arena, buf.text);
    strbuf_release(&buf);
    return text;
}

const char *const *table_keys(struct arena *arena, const struct field_table *table)
{
    int32_t count = 0;
    while (table->fields[count].kind != FIELD_END)
        count++;
    const char **keys = ARENA_ARRAY(arena, const char *, count + 1);
    for (int32_t i = 0; i < count; i++)
        keys[i] = table->fields[i].key;
    return keys;
}

const char *const *choice_words(struct arena *arena, const struct choice *choices)
{
    int32_t count = 0;
    while (choices != NULL && choices[count].word != NULL)
        count++;
    const char **words = ARENA_ARRAY(arena, const char *, count + 1);
    for (int32_t i = 0; i < count; i++)
        words[i] = choices[i].word;
    return words;
}

const char *suggestion(struct arena *arena, const char *word, const char *const *names,
                       const char *label)
{
    enum { SHOWN = 30 };
    struct strbuf buf = {0};
    const char *near = strlen(word) <= SUGGESTION_MAX_BYTES ? nearest_name(word, names) : NULL;
    if (near != NULL)
        strbuf_printf(&buf, "did you mean '%s'? ", near);
    strbuf_printf(&buf, "%s:", label);
    int32_t count = 0;
    for (; names[count] != NULL; count++)
        if (count < SHOWN)
            strbuf_printf(&buf, "%s %s", count > 0 ? "," : "", names[count]);
    if (count > SHOWN)
        strbuf_printf(&buf, " and %d more", count - SHOWN);
    if (count == 0)
        strbuf_add(&buf, " none");
    const char *text = arena_strdup(arena, buf.text);
    strbuf_release(&buf);
    return text;
}
