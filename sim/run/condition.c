/* run/condition.c: see condition.h. */
#include "run/condition.h"

#include <string.h>

#include "base/strbuf.h"
#include "base/units.h"

static enum status refuse(struct diag *diag, const struct condition *condition, const char *hint,
                          const char *what)
{
    diag_add(diag, DIAG_ERROR, NO_PLACE, hint, "%s '%s': %s", condition->option, condition->text,
             what);
    return STATUS_INPUT;
}

static const char *trimmed(struct arena *arena, const char *text, size_t length)
{
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return arena_strndup(arena, text, length);
}

static const struct {
    const char *text;
    enum comparison comparison;
} comparisons[] = {
    /* The longer ones first. */
    {"<=", COMPARE_LESS_EQUAL}, {">=", COMPARE_GREATER_EQUAL}, {"==", COMPARE_EQUAL},
    {"!=", COMPARE_NOT_EQUAL},  {"<", COMPARE_LESS},           {">", COMPARE_GREATER},
};

/* The length of the comparison at the start of `text`, 0 when there is none. */
static size_t read_comparison(const char *text, enum comparison *comparison)
{
    for (size_t k = 0; k < sizeof(comparisons) / sizeof(comparisons[0]); k++) {
        const size_t length = strlen(comparisons[k].text);
        if (strncmp(text, comparisons[k].text, length) == 0) {
            *comparison = comparisons[k].comparison;
            return length;
        }
    }
    return 0;
}

static enum status find_metric(struct arena *arena, const char *name, struct condition *condition,
                               struct diag *diag)
{
    condition->metric = outcome_metric(name);
    if (condition->metric != NULL)
        return STATUS_OK;
    const char *names[128];
    size_t count = 0;
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++) {
        BUG_IF(count + 1 >= sizeof(names) / sizeof(names[0]));
        names[count++] = metric->name;
    }
    names[count] = NULL;
    const char *nearest = nearest_name(name, names);
    const char *hint = nearest != NULL ? arena_printf(arena, "did you mean '%s'?", nearest)
                                       : "metrics are the scalar keys of 'fsdpsim run --json'";
    return refuse(diag, condition, hint, arena_printf(arena, "there is no metric '%s'", name));
}

static enum status read_quantity(struct arena *arena, const char *value, enum dimension dimension,
                                 struct condition *condition, struct diag *diag)
{
    const enum unit_error error = units_parse(value, dimension, &condition->value, NULL);
    if (error == UNIT_OK)
        return STATUS_OK;
    return refuse(diag, condition,
                  arena_printf(arena, "accepted units: %s", units_accepted(dimension)),
                  error == UNIT_MISSING
                      ? arena_printf(arena, "'%s' needs a unit", value)
                      : arena_printf(arena, "'%s' is not %s", value,
                                     dimension == DIM_BYTES ? "a size in bytes" : "a time"));
}

bool text_to_fraction(struct arena *arena, const char *text, double *fraction)
{
    const size_t length = strlen(text);
    if (length == 0 || text[length - 1] != '%')
        return text_to_double(text, fraction);
    if (!text_to_double(trimmed(arena, text, length - 1), fraction))
        return false;
    *fraction /= 100.0;
    return true;
}

/* `mfu>40` means 40 %, and would never hold. */
static enum status read_fraction(struct arena *arena, const char *value,
                                 struct condition *condition, struct diag *diag)
{
    if (!text_to_fraction(arena, value, &condition->value))
        return refuse(diag, condition, "a fraction, as 0.05 or 5%",
                      arena_printf(arena, "'%s' is not a fraction", value));
    const bool is_percent = value[strlen(value) - 1] == '%';
    if (is_percent || (condition->value >= 0.0 && condition->value <= 1.0))
        return STATUS_OK;
    const bool is_meant_percent = condition->value > 1.0;
    return refuse(diag, condition,
                  is_meant_percent
                      ? arena_printf(arena, "write %s%% or %.10g", value, condition->value / 100.0)
                      : NULL,
                  arena_printf(arena, "'%s' is a fraction, from 0 to 1", condition->metric->name));
}

/* "32" says it; "32 count" does not. */
static bool is_count(const char *unit)
{
    return strcmp(unit, "count") == 0;
}

static enum status read_number(struct arena *arena, const char *value, struct condition *condition,
                               struct diag *diag)
{
    const char *unit = condition->metric->unit;
    if (strcmp(unit, "bytes") == 0)
        return read_quantity(arena, value, DIM_BYTES, condition, diag);
    if (strcmp(unit, "s") == 0)
        return read_quantity(arena, value, DIM_TIME, condition, diag);
    if (strcmp(unit, "1") == 0)
        return read_fraction(arena, value, condition, diag);
    if (text_to_double(value, &condition->value))
        return STATUS_OK;
    return refuse(diag, condition,
                  is_count(unit) ? NULL : arena_printf(arena, "a number, in %s", unit),
                  arena_printf(arena, "'%s' is not a number", value));
}

static enum status read_word(struct arena *arena, const char *value, struct condition *condition,
                             struct diag *diag)
{
    const bool is_bool = condition->metric->kind == METRIC_BOOL;
    if (condition->comparison != COMPARE_EQUAL && condition->comparison != COMPARE_NOT_EQUAL)
        return refuse(
            diag, condition, NULL,
            arena_printf(arena, "'%s' is no number: use == or !=", condition->metric->name));
    condition->word = value;
    condition->value = strcmp(value, "true") == 0 ? 1.0 : 0.0;
    if (is_bool && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return refuse(diag, condition, NULL,
                      arena_printf(arena, "'%s' is neither true nor false", value));
    return STATUS_OK;
}

/* `fits` and `!fits`. */
static enum status parse_bare(struct arena *arena, const char *text, struct condition *condition,
                              struct diag *diag)
{
    const bool is_negated = text[0] == '!';
    const char *rest = text + (is_negated ? 1 : 0);
    const char *name = trimmed(arena, rest, strlen(rest));
    if (strchr(name, '=') != NULL)
        return refuse(diag, condition, NULL, "compare with ==, not =");
    const enum status status = find_metric(arena, name, condition, diag);
    if (status != STATUS_OK)
        return status;
    if (condition->metric->kind != METRIC_BOOL)
        return refuse(diag, condition, "as in 'peak_device_bytes<80GiB'",
                      "it compares with nothing");
    condition->comparison = COMPARE_EQUAL;
    condition->value = is_negated ? 0.0 : 1.0;
    return STATUS_OK;
}

enum status condition_parse(struct arena *arena, const char *option, const char *text,
                            struct condition *condition, struct diag *diag)
{
    *condition = (struct condition){.option = option, .text = text};
    size_t at = 0, length = 0;
    while (text[at] != '\0') {
        length = read_comparison(text + at, &condition->comparison);
        if (length > 0)
            break;
        at++;
    }
    if (length == 0)
        return parse_bare(arena, text, condition, diag);
    const enum status status = find_metric(arena, trimmed(arena, text, at), condition, diag);
    if (status != STATUS_OK)
        return status;
    const char *rest = text + at + length;
    const char *value = trimmed(arena, rest, strlen(rest));
    if (condition->metric->kind == METRIC_BOOL || condition->metric->kind == METRIC_TEXT)
        return read_word(arena, value, condition, diag);
    return read_number(arena, value, condition, diag);
}

bool condition_holds(const struct condition *condition, const struct outcome *outcome)
{
    if (condition->metric->kind == METRIC_TEXT) {
        const bool is_equal = text_equal(metric_text(outcome, condition->metric), condition->word);
        return is_equal == (condition->comparison == COMPARE_EQUAL);
    }
    double obtained = 0.0;
    if (!outcome_number(outcome, condition->metric, &obtained))
        return false;
    switch (condition->comparison) {
    case COMPARE_LESS:
        return obtained < condition->value;
    case COMPARE_LESS_EQUAL:
        return obtained <= condition->value;
    case COMPARE_GREATER:
        return obtained > condition->value;
    case COMPARE_GREATER_EQUAL:
        return obtained >= condition->value;
    case COMPARE_EQUAL:
        return obtained == condition->value;
    case COMPARE_NOT_EQUAL:
        return obtained != condition->value;
    }
    BUG("comparison %d", (int)condition->comparison);
}

const char *condition_obtained(struct arena *arena, const struct condition *condition,
                               const struct outcome *outcome)
{
    const struct metric *metric = condition->metric;
    if (metric->kind == METRIC_TEXT)
        return metric_text(outcome, metric);
    double value = 0.0;
    char text[64];
    if (!outcome_number(outcome, metric, &value))
        return "not defined here";
    if (metric->kind == METRIC_BOOL)
        return value != 0.0 ? "true" : "false";
    if (strcmp(metric->unit, "bytes") == 0)
        return arena_strdup(arena, format_gib(text, sizeof(text), value));
    if (strcmp(metric->unit, "s") == 0)
        return arena_strdup(arena, format_seconds(text, sizeof(text), value));
    if (strcmp(metric->unit, "1") == 0)
        return arena_printf(arena, "%.4g %%", 100.0 * value);
    if (is_count(metric->unit))
        return arena_printf(arena, "%.15g", value);
    return arena_printf(arena, "%.6g %s", value, metric->unit);
}
