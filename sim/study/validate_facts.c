/*
 * study/validate_facts.c: what the sources' texts say, as rules.
 *
 *   version: 1
 *   match: mosaicml/llm-foundry*      # on the column `source`; absent: every row
 *   licence: Apache-2.0
 *   rules:
 *     - when: [gpu=A100*|A800*, n_gpus>8]
 *       set: [train.attention=triton, train.seq_len=<seq_len>]
 *       citation: README, section "A100"
 *     - exclude: a hand-written engine without PyTorch
 *       when: ['framework=llmq*']
 *
 * A rule holds when all its conditions do. A later rule stands over an earlier one; `key=` takes a
 * setting back. `<column>` stands for the row's own cell; a setting whose cell is empty is not
 * made.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "study/validate_private.h"

struct rule_config {
    struct config_list when, set;
    const char *exclude, *citation, *assumed;
};

struct facts_config {
    int64_t version;
    const char *match, *licence;
    struct config_list rules;
};

static const struct field rule_fields[] = {
    {.key = "when",
     .kind = FIELD_TEXT_LIST,
     .offset = offsetof(struct rule_config, when),
     .help = "conditions on columns, all must hold: gpu=A100*|H100*, dtype!=fp32, n_gpus>8"},
    {.key = "set",
     .kind = FIELD_TEXT_LIST,
     .offset = offsetof(struct rule_config, set),
     .help = "keys of the configuration, as for -s; <column> stands for the row's cell"},
    {.key = "exclude",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct rule_config, exclude),
     .help = "why such a row is out of scope"},
    {.key = "citation",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct rule_config, citation),
     .help = "where the source says so"},
    {.key = "assumed",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct rule_config, assumed),
     .help = "the source does not say: why it is taken so"},
    {0}};

static const struct field_table rule_table = {.name = "rules",
                                              .help = "facts on runs",
                                              .fields = rule_fields,
                                              .struct_bytes = sizeof(struct rule_config)};

static const struct field facts_fields[] = {
    {.key = "version",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct facts_config, version),
     .is_required = true,
     .min = 1,
     .max = 1,
     .help = "of the file format"},
    {.key = "match",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct facts_config, match),
     .help = "which sources; '*' any text, alternatives split by '|'"},
    {.key = "licence",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct facts_config, licence),
     .help = "of the source"},
    {.key = "rules",
     .kind = FIELD_LIST,
     .offset = offsetof(struct facts_config, rules),
     .table = &rule_table,
     .help = "what the source says of its runs"},
    {0}};

static const struct field_table facts_table = {.name = "facts",
                                               .help = "what a source says of its runs",
                                               .fields = facts_fields,
                                               .struct_bytes = sizeof(struct facts_config)};

/* ---- reading ------------------------------------------------------------------------------ */

/* Every <name> in a value is a column. */
static bool check_value(struct config *config, const char *path, const char *value)
{
    for (const char *at = strchr(value, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const char *name = arena_strndup(config->arena, at + 1, strcspn(at + 1, ">"));
        if (measured_column_find(name) >= 0)
            continue;
        config_error(config, path, NULL, "'<%s>' names no column", name);
        return false;
    }
    return true;
}

static bool parse_setting(struct config *config, const char *path, const char *text,
                          struct fact_setting *setting)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        config_error(config, path, "key=value, as for -s", "'%s' is not a setting", text);
        return false;
    }
    setting->key = arena_strndup(config->arena, text, (size_t)(equals - text));
    setting->value = equals + 1;
    return setting_is_note(setting->key) ? note_check(config, path, setting->key, setting->value)
                                         : check_value(config, path, setting->value);
}

static const char *rule_origin(const struct config *config, const char *path, const char *file)
{
    const char *slash = strrchr(file, '/');
    return arena_printf(config->arena, "%s:%" PRId32, slash != NULL ? slash + 1 : file,
                        config_place(config, path).line);
}

static void take_rule(struct config *config, const struct facts_config *facts, int64_t index,
                      const char *file, struct fact_rules *rules)
{
    struct arena *arena = config->arena;
    const struct rule_config *from = (const struct rule_config *)facts->rules.items + index;
    const char *path = arena_printf(arena, "rules[%" PRId64 "]", index);
    struct fact_rule rule = {.origin = rule_origin(config, path, file),
                             .match = facts->match,
                             .licence = facts->licence,
                             .exclude = from->exclude,
                             .citation = from->citation,
                             .assumed = from->assumed};
    if (from->exclude == NULL && (from->citation == NULL) == (from->assumed == NULL)) {
        config_error(config, path, NULL, "a fact needs either 'citation' or 'assumed'");
        return;
    }
    rule.when = ARENA_ARRAY(arena, struct fact_condition, from->when.count + 1);
    rule.set = ARENA_ARRAY(arena, struct fact_setting, from->set.count + 1);
    for (int64_t k = 0; k < from->when.count; k++)
        rule.when_count += fact_condition_parse(
            config, arena_printf(arena, "%s.when[%" PRId64 "]", path, k),
            ((const char *const *)from->when.items)[k], &rule.when[rule.when_count]);
    for (int64_t k = 0; k < from->set.count; k++)
        rule.set_count +=
            parse_setting(config, arena_printf(arena, "%s.set[%" PRId64 "]", path, k),
                          ((const char *const *)from->set.items)[k], &rule.set[rule.set_count]);
    *ARENA_PUSH(arena, rules) = rule;
}

static enum status load_file(struct arena *arena, const char *const *data_folders, const char *path,
                             struct fact_rules *rules, struct diag *diag)
{
    struct config *config = ARENA_NEW(arena, struct config);
    struct facts_config facts = {0};
    const int32_t errors_before = diag->error_count;
    config_init(config, arena, diag, data_folders);
    enum status status = config_load(config, path);
    if (status == STATUS_OK)
        status = config_bind(config, &facts_table, &facts);
    if (status != STATUS_OK)
        return status;
    if (facts.rules.count == 0) /* a source may only have a licence */
        *ARENA_PUSH(arena, rules) =
            (struct fact_rule){.origin = path, .match = facts.match, .licence = facts.licence};
    for (int64_t k = 0; k < facts.rules.count; k++)
        take_rule(config, &facts, k, path, rules);
    return diag->error_count == errors_before ? STATUS_OK : STATUS_INPUT;
}

/* Of the files that ship: `columns` when `is_general`, else the others. */
static enum status load_shipped(struct arena *arena, const char *const *data_folders,
                                bool is_general, struct fact_rules *rules, struct diag *diag)
{
    static const char folder[] = "results/measured/facts";
    enum status status = STATUS_OK;
    for (const char *const *name = data_names(arena, data_folders, folder); *name != NULL; name++) {
        if (text_equal(*name, "columns") != is_general)
            continue;
        const char *path =
            data_path(arena, data_folders, folder, arena_printf(arena, "%s.yaml", *name));
        const enum status one =
            path != NULL ? load_file(arena, data_folders, path, rules, diag) : STATUS_OK;
        status = one != STATUS_OK ? one : status;
    }
    return status;
}

enum status facts_load(struct arena *arena, const char *const *data_folders,
                       const char *const *paths, int32_t path_count, struct fact_rules *rules,
                       struct diag *diag)
{
    enum status status = load_shipped(arena, data_folders, true, rules, diag);
    enum status one = load_shipped(arena, data_folders, false, rules, diag);
    status = one != STATUS_OK ? one : status;
    for (int32_t k = 0; k < path_count; k++) {
        one = load_file(arena, data_folders, paths[k], rules, diag);
        status = one != STATUS_OK ? one : status;
    }
    return status;
}
