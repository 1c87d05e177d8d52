/* config/bind_value.c: one scalar → one member of a struct, or an error that says what is accepted.
 */
#include <string.h>

#include "config/config_private.h"

/* What every reader needs. Each returns the canonical text of the value, NULL after an error. */
struct scalar {
    struct config *config;
    const struct field *field;
    const char *path;
    const struct node *node;
};

/* "overrides[1]" of "cluster.overrides[1]". */
static const char *last_key(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL ? dot + 1 : path;
}

void bind_wrong_kind(struct config *config, const struct field *field, const char *path,
                     const struct node *node, const char *hint)
{
    diag_add(config->diag, DIAG_ERROR, node->place, hint, "'%s' must be %s, not %s", last_key(path),
             field_accepted(config->arena, field), node_describe(config->arena, node));
}

static const char *wrong(const struct scalar *scalar, const char *hint)
{
    bind_wrong_kind(scalar->config, scalar->field, scalar->path, scalar->node, hint);
    return NULL;
}

/* A number in quotes is a text: whoever quotes it means something else, or learns it here. */
static bool is_refused_quote(const struct scalar *scalar)
{
    if (!scalar->node->is_quoted)
        return false;
    diag_add(scalar->config->diag, DIAG_ERROR, scalar->node->place, "remove the quotes",
             "'%s' must be %s, but %s in quotes is a text", last_key(scalar->path),
             field_accepted(scalar->config->arena, scalar->field),
             node_describe(scalar->config->arena, scalar->node));
    return true;
}

static const char *nearest_choice_hint(const struct scalar *scalar, const char *otherwise)
{
    struct arena *arena = scalar->config->arena;
    const char *const *words = choice_words(arena, scalar->field->choices);
    const char *text = scalar->node->text;
    const char *near = strlen(text) < 64 ? nearest_name(text, words) : NULL;
    return near != NULL ? arena_printf(arena, "did you mean '%s'?", near) : otherwise;
}

static bool is_same_word(const char *text, const char *lower_case_word)
{
    while (*lower_case_word != '\0' &&
           (*text == *lower_case_word || *text + 0x20 == *lower_case_word)) {
        text++;
        lower_case_word++;
    }
    return *text == *lower_case_word;
}

static const char *read_bool(const struct scalar *scalar, void *slot)
{
    static const char *const others[] = {"yes", "no", "on", "off", "y", "n", "true", "false"};
    const char *text = scalar->node->text;
    bool *target = slot;
    if (is_refused_quote(scalar))
        return NULL;
    *target = strcmp(text, "true") == 0;
    if (*target || strcmp(text, "false") == 0)
        return text;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (is_same_word(text, others[i]))
            return wrong(scalar,
                         "yes, no, on, off and capitals are texts here: write true or false");
    return wrong(scalar, NULL);
}

static const char *read_count(const struct scalar *scalar, void *slot)
{
    int64_t *target = slot;
    const char *text = scalar->node->text;
    const struct choice *choice = choice_find(scalar->field->choices, text);
    if (choice != NULL) {
        *target = choice->value;
        return choice->word;
    }
    if (is_refused_quote(scalar))
        return NULL;
    int64_t value = 0;
    if (!text_to_int64(text, &value))
        return wrong(scalar,
                     nearest_choice_hint(scalar, "digits only: no fraction, unit, exponent, '_' or "
                                                 "leading zero"));
    if (!field_is_in_range(scalar->field, (double)value))
        return wrong(scalar, NULL);
    *target = value;
    return arena_printf(scalar->config->arena, "%lld", (long long)value);
}

/* The shortest decimal that reads back as the same number. */
static const char *real_text(struct arena *arena, double value)
{
    for (int digits = 6; digits < 17; digits++) {
        const char *text = arena_printf(arena, "%.*g", digits, value);
        double back = 0.0;
        if (text_to_double(text, &back) && back == value)
            return text;
    }
    return arena_printf(arena, "%.17g", value);
}

static const char *read_real(const struct scalar *scalar, void *slot)
{
    double *target = slot;
    const struct choice *choice = choice_find(scalar->field->choices, scalar->node->text);
    if (choice != NULL) {
        *target = (double)choice->value;
        return choice->word;
    }
    if (is_refused_quote(scalar))
        return NULL;
    double value = 0.0;
    if (!text_to_double(scalar->node->text, &value))
        return wrong(scalar, nearest_choice_hint(scalar, "a plain number: no unit, nan or inf"));
    if (!field_is_in_range(scalar->field, value))
        return wrong(scalar, NULL);
    *target = value;
    return real_text(scalar->config->arena, value);
}

static const char *unit_wrong(const struct scalar *scalar, enum unit_error error, const char *unit)
{
    const struct field *field = scalar->field;
    struct arena *arena = scalar->config->arena;
    const struct place place = scalar->node->place;
    const char *key = last_key(scalar->path);
    const char *hint = arena_printf(arena, "accepted units: %s", units_accepted(field->dimension));
    struct diag *diag = scalar->config->diag;
    switch (error) {
    case UNIT_OK:
        break;
    case UNIT_NOT_A_NUMBER:
        return wrong(scalar, hint);
    case UNIT_MISSING:
        diag_add(diag, DIAG_ERROR, place, hint, "'%s' needs a unit", key);
        return NULL;
    case UNIT_UNKNOWN:
        diag_add(diag, DIAG_ERROR, place, hint, "unknown unit '%.40s' for '%s'", unit, key);
        return NULL;
    case UNIT_MISFIT:
        diag_add(diag, DIAG_ERROR, place, hint, "unit '%s' does not fit '%s'", unit, key);
        return NULL;
    case UNIT_OVERFLOW:
        diag_add(diag, DIAG_ERROR, place, NULL, "'%s' is too large: %s", key,
                 node_describe(arena, scalar->node));
        return NULL;
    }
    BUG("unit error %d", (int)error);
}

static const char *read_quantity(const struct scalar *scalar, void *slot)
{
    double *target = slot;
    const char *text = scalar->node->text;
    const struct choice *choice = choice_find(scalar->field->choices, text);
    if (choice != NULL) {
        *target = (double)choice->value;
        return choice->word;
    }
    size_t unit_start = 0;
    double value = 0.0;
    const enum unit_error error = units_parse(text, scalar->field->dimension, &value, &unit_start);
    if (error != UNIT_OK)
        return unit_wrong(scalar, error, text + unit_start);
    if (!field_is_in_range(scalar->field, value))
        return wrong(scalar, NULL);
    *target = value;
    char canonical[64];
    return arena_strdup(scalar->config->arena, format_quantity(canonical, sizeof(canonical), value,
                                                               scalar->field->dimension));
}

static const char *read_enum(const struct scalar *scalar, void *slot)
{
    int *target = slot;
    struct arena *arena = scalar->config->arena;
    const struct choice *choice = choice_find(scalar->field->choices, scalar->node->text);
    if (choice == NULL) {
        diag_add(scalar->config->diag, DIAG_ERROR, scalar->node->place,
                 suggestion(arena, scalar->node->text, choice_words(arena, scalar->field->choices),
                            "accepted"),
                 "unknown value %s for '%s'", node_describe(arena, scalar->node),
                 last_key(scalar->path));
        return NULL;
    }
    *target = (int)choice->value;
    return choice->word;
}

/* What is printed in tables. */
static bool is_refused_line(const struct scalar *scalar)
{
    const char *text = scalar->node->text;
    const size_t length = strlen(text);
    const char *problem = NULL;
    if (strpbrk(text, "\n\t") != NULL)
        problem = "holds a line feed or a tab";
    else if (text[strspn(text, " ")] == '\0')
        problem = "is empty";
    else if (length > FIELD_LINE_MAX_BYTES)
        problem = arena_printf(scalar->config->arena, "has %zu bytes", length);
    if (!scalar->field->is_line || problem == NULL)
        return false;
    diag_add(
        scalar->config->diag, DIAG_ERROR, scalar->node->place,
        arena_printf(scalar->config->arena, "one line of at most %d bytes", FIELD_LINE_MAX_BYTES),
        "'%s' %s", last_key(scalar->path), problem);
    return true;
}

static const char *read_text(const struct scalar *scalar, void *slot)
{
    const char **target = slot;
    struct strbuf buf = {0};
    const uint32_t hidden = text_hidden_character(scalar->node->text);
    if (hidden != 0) {
        diag_add(scalar->config->diag, DIAG_ERROR, scalar->node->place, NULL,
                 "'%s' holds U+%04X, %s", last_key(scalar->path), (unsigned)hidden,
                 hidden < 0xA0 ? "a control character" : "which turns the direction of writing");
        return NULL;
    }
    if (is_refused_line(scalar))
        return NULL;
    *target = scalar->node->text;
    strbuf_add_scalar(&buf, scalar->node->text, false);
    const char *canonical = arena_strdup(scalar->config->arena, buf.text);
    strbuf_release(&buf);
    return canonical;
}

void bind_value(struct config *config, const struct field *field, const char *path,
                const struct node *node, void *slot)
{
    const struct scalar scalar = {config, field, path, node};
    const char *canonical = NULL;
    if (node->kind != NODE_SCALAR) {
        bind_wrong_kind(config, field, path, node, NULL);
        return;
    }
    if (field->kind == FIELD_BOOL)
        canonical = read_bool(&scalar, slot);
    else if (field->kind == FIELD_COUNT)
        canonical = read_count(&scalar, slot);
    else if (field->kind == FIELD_REAL)
        canonical = read_real(&scalar, slot);
    else if (field->kind == FIELD_QUANTITY)
        canonical = read_quantity(&scalar, slot);
    else if (field->kind == FIELD_ENUM)
        canonical = read_enum(&scalar, slot);
    else
        canonical = read_text(&scalar, slot);
    if (canonical != NULL)
        origin_add(config, path, canonical, node);
}
