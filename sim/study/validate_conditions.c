/*
 * study/validate_conditions.c: conditions of facts on the columns of a row.
 *
 *   gpu=A100*|A800*   dtype!=fp32   n_gpus>8   date_version<2024-06
 *
 * Texts have patterns and no order; numbers are compared with numbers, dates with dates.
 */
#include <string.h>

#include "base/strbuf.h"
#include "study/validate_private.h"

/* ---- reading ------------------------------------------------------------------------------ */

/* "2024", "2024-06" or "2024-06-30". */
static bool is_date(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    const size_t length = strlen(text);
    if (length != 4 && length != 7 && length != sizeof(form) - 1)
        return false;
    for (size_t k = 0; k < length; k++)
        if (form[k] == 'd' ? text[k] < '0' || text[k] > '9' : text[k] != form[k])
            return false;
    return true;
}

/* What '<' and '>' compare a column with. */
static bool check_order(struct config *config, const char *path, const char *text,
                        const struct fact_condition *condition)
{
    static const char *const accepted[] = {
        [COLUMN_TEXT] = "accepted of a text: column=pattern, column!=pattern",
        [COLUMN_COUNT_KIND] = "accepted: a number, as in n_gpus>8",
        [COLUMN_REAL] = "accepted: a number, as in step_time_s>0.5",
        [COLUMN_DATE] = "accepted: a year, month or day, as in date_version<2024-06"};
    const struct measured_column *column = &measured_columns[condition->column];
    double number = 0.0;
    switch (column->kind) {
    case COLUMN_TEXT:
        config_error(config, path, accepted[column->kind], "'%s': the column '%s' has no order",
                     text, column->name);
        return false;
    case COLUMN_COUNT_KIND:
    case COLUMN_REAL:
        if (text_to_double(condition->value, &number))
            return true;
        config_error(config, path, accepted[column->kind],
                     "'%s': '%s' is compared with a number, not '%s'", text, column->name,
                     condition->value);
        return false;
    case COLUMN_DATE:
        if (is_date(condition->value))
            return true;
        config_error(config, path, accepted[column->kind],
                     "'%s': '%s' is compared with a date, not '%s'", text, column->name,
                     condition->value);
        return false;
    }
    BUG("no column of kind %d", (int)column->kind);
}

bool fact_condition_parse(struct config *config, const char *path, const char *text,
                          struct fact_condition *condition)
{
    const size_t length = strcspn(text, "=!<>");
    const char *name = arena_strndup(config->arena, text, length);
    const char *rest = text + length;
    condition->column = measured_column_find(name);
    if (condition->column < 0 || rest[0] == '\0' || (rest[0] == '!' && rest[1] != '=')) {
        config_error(config, path, "column=pattern, column!=pattern, column<value, column>value",
                     "'%s' is not a condition on a column", text);
        return false;
    }
    condition->op = rest[0] == '!'   ? CONDITION_NOT_EQUAL
                    : rest[0] == '<' ? CONDITION_LESS
                    : rest[0] == '>' ? CONDITION_GREATER
                                     : CONDITION_EQUAL;
    condition->value = rest + (rest[0] == '!' ? 2 : 1);
    return rest[0] == '=' || rest[0] == '!' || check_order(config, path, text, condition);
}

/* ---- matching ----------------------------------------------------------------------------- */

/* One pattern of `length` bytes; linear in practice: a star is retried from the last one only. */
static bool matches_one(const char *pattern, size_t length, const char *text)
{
    const char *stop = pattern + length, *star = NULL, *resume = NULL;
    while (*text != '\0') {
        if (pattern < stop && *pattern == '*') {
            star = ++pattern;
            resume = text;
        } else if (pattern < stop && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (pattern < stop && *pattern == '*')
        pattern++;
    return pattern == stop;
}

bool pattern_matches(const char *patterns, const char *text)
{
    for (const char *at = patterns;; at++) {
        const size_t length = strcspn(at, "|");
        if (matches_one(at, length, text))
            return true;
        at += length;
        if (*at == '\0')
            return false;
    }
}

/* As numbers where both are, else as texts (dates); nothing is less or more than an empty cell. */
static int compare_values(const char *cell, const char *value)
{
    double a = 0.0, b = 0.0;
    if (text_to_double(cell, &a) && text_to_double(value, &b))
        return (a > b) - (a < b);
    return strcmp(cell, value);
}

static bool condition_holds_on(const struct fact_condition *condition,
                               const struct measured_row *row)
{
    const char *cell = row->values[condition->column];
    switch (condition->op) {
    case CONDITION_EQUAL:
        return pattern_matches(condition->value, cell);
    case CONDITION_NOT_EQUAL:
        return !pattern_matches(condition->value, cell);
    case CONDITION_LESS:
        return cell[0] != '\0' && compare_values(cell, condition->value) < 0;
    case CONDITION_GREATER:
        return cell[0] != '\0' && compare_values(cell, condition->value) > 0;
    }
    BUG("no such condition %d", (int)condition->op);
}

bool fact_matches(const struct fact_rule *rule, const struct measured_row *row)
{
    if (rule->match != NULL && !pattern_matches(rule->match, measured_text(row, "source")))
        return false;
    for (int32_t k = 0; k < rule->when_count; k++)
        if (!condition_holds_on(&rule->when[k], row))
            return false;
    return true;
}
