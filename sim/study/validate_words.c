/*
 * study/validate_words.c: the words that a column of a runs CSV accepts.
 *
 * They stand in one place, the rules for all sources that leave a row out over one column alone:
 *
 *   - exclude: "compile '<compile>' is not known"
 *     when: ['compile!=|unknown|n/a|yes|no|thunder*']
 *
 * reads as: empty, unknown, n/a, yes, no, thunder...
 */
#include <string.h>

#include "base/strbuf.h"
#include "study/validate_private.h"

enum { LINE_WIDTH = 100, NAME_WIDTH = 22, KIND_WIDTH = 8 };

/* The condition of a rule that knows the words of one column, else NULL. */
static const struct fact_condition *word_condition(const struct fact_rule *rule)
{
    const bool is_one = rule->exclude != NULL && rule->match == NULL && rule->when_count == 1;
    return is_one && rule->when[0].op == CONDITION_NOT_EQUAL ? &rule->when[0] : NULL;
}

struct word_list {
    const char **items;
    int32_t count, capacity;
};

/* Patterns that are not empty, "..." for any text; NULL-ended. `is_plain`: without what follows the
   word itself ("fsdp1 (*" is fsdp1), and none that begin with any text. */
static struct word_list words_of(struct arena *arena, const char *patterns, bool is_plain)
{
    struct word_list list = {0};
    for (const char *at = patterns; *at != '\0'; at += at[0] == '|') {
        const size_t length = strcspn(at, "|");
        struct strbuf word = {0};
        strbuf_add(&word, "");
        const size_t plain = is_plain ? strcspn(at, "|*(") : length;
        for (size_t k = 0; k < plain; k++)
            strbuf_add_bytes(&word, at[k] == '*' ? "..." : &at[k], at[k] == '*' ? 3 : 1);
        while (is_plain && word.length > 0 && word.text[word.length - 1] == ' ')
            word.text[--word.length] = '\0';
        if (word.length > 0)
            *ARENA_PUSH(arena, &list) = arena_strdup(arena, word.text);
        strbuf_release(&word);
        at += length;
    }
    *ARENA_PUSH(arena, &list) = NULL;
    return list;
}

static const char *joined(struct arena *arena, const struct word_list *list)
{
    const char *text = "empty";
    for (int32_t k = 0; list->items[k] != NULL; k++)
        text = arena_printf(arena, "%s, %s", text, list->items[k]);
    return text;
}

void words_warn(struct arena *arena, const struct fact_rule *rule, const struct measured_row *row,
                const char *reason, struct diag *diag)
{
    const struct fact_condition *condition = word_condition(rule);
    if (condition == NULL)
        return;
    const struct word_list accepted = words_of(arena, condition->value, false);
    const struct word_list plain = words_of(arena, condition->value, true);
    const char *near = nearest_name(row->values[condition->column], plain.items);
    const char *all = joined(arena, &accepted);
    const char *hint = near != NULL
                           ? arena_printf(arena, "did you mean '%s'? accepted: %s", near, all)
                           : arena_printf(arena, "accepted: %s", all);
    diag_add(diag, DIAG_WARNING, row->places[condition->column], hint,
             "%s: the row is out of scope", reason);
}

/* ---- the reference ------------------------------------------------------------------------ */

static const char *patterns_of(const struct fact_rules *rules, int32_t column)
{
    for (int32_t k = 0; k < rules->count; k++) {
        const struct fact_condition *condition = word_condition(&rules->items[k]);
        if (condition != NULL && condition->column == column)
            return condition->value;
    }
    return NULL;
}

/* Words behind each other, in lines that begin below the first. */
static void write_words(struct arena *arena, const char *patterns, FILE *file)
{
    const int indent = 2 + NAME_WIDTH + KIND_WIDTH;
    const struct word_list list = words_of(arena, patterns, false);
    int column = indent;
    for (int32_t k = 0; list.items[k] != NULL; k++) {
        const int length = (int)strlen(list.items[k]) + 2; /* with the comma and a blank */
        const bool is_wrapped = k > 0 && column + length > LINE_WIDTH;
        if (is_wrapped)
            fprintf(file, ",\n%*s", indent, "");
        else if (k > 0)
            fputs(", ", file);
        fputs(list.items[k], file);
        column = (is_wrapped ? indent : column) + length;
    }
}

enum status validate_schema_write(struct arena *arena, FILE *file, struct diag *diag)
{
    static const char *const kinds[] = {[COLUMN_TEXT] = "text",
                                        [COLUMN_COUNT_KIND] = "a whole number",
                                        [COLUMN_REAL] = "a number above 0",
                                        [COLUMN_DATE] = "text"};
    struct fact_rules rules = {0};
    const enum status status = facts_load(arena, data_folders_find(arena), NULL, 0, &rules, diag);
    if (status != STATUS_OK)
        return status;
    fprintf(file,
            "runs: columns of a CSV of measured runs (fsdpsim validate FILE.csv); an empty cell "
            "is not stated, '...' is any text\n");
    for (int32_t k = 0; measured_columns[k].name != NULL; k++) {
        const struct measured_column *column = &measured_columns[k];
        const char *patterns = patterns_of(&rules, k);
        if (column->is_derived)
            continue;
        const char *kind =
            arena_printf(arena, "%s%s", patterns != NULL ? "one of" : kinds[column->kind],
                         column->is_required ? ", required" : "");
        fprintf(file, "  %-*s%-*s", NAME_WIDTH, column->name, patterns != NULL ? KIND_WIDTH : 1,
                kind);
        if (patterns != NULL)
            write_words(arena, patterns, file);
        fputc('\n', file);
    }
    fprintf(file, "one of step_time_s, tokens_per_s_per_gpu, peak_mem_gib is required\n");
    return STATUS_OK;
}
