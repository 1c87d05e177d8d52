/* tests/unit/study/test_validate_facts.c: patterns, rules, and which of them stands. */
#include "study/validate_private.h"
#include "study_tests.h"

static void test_patterns(void)
{
    static const struct {
        const char *patterns, *text;
        bool is_match;
    } rows[] = {{"A100*", "A100-80GB", true},
                {"A100*|H100*", "H100", true},
                {"A100", "A100-80GB", false},
                {"*LoRA*", "fsdp1 (QLoRA)", true},
                {"*ab*cd", "xabyabzcd", true},
                {"*ab*cd", "xabycdz", false},
                {"?*", "", false},
                {"?*", "x", true},
                {"", "", true},
                {"|unknown", "", true},
                {"bf16|unknown", "", false},
                {"a?c", "abc", true},
                {"***", "", true}};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        check_context("%s on %s", rows[k].patterns, rows[k].text);
        CHECK_INT(pattern_matches(rows[k].patterns, rows[k].text), rows[k].is_match);
    }
    check_context(NULL);
}

struct fixture {
    struct measured_row row;
    struct arena arena;
    struct row_settings settings;
};

static void start(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    for (int32_t k = 0; k < MEASURED_COLUMN_MAX; k++)
        fixture->row.values[k] = "";
    fixture->row.values[measured_column_find("source")] = "lab/runs";
    fixture->row.values[measured_column_find("n_gpus")] = "16";
    fixture->row.values[measured_column_find("seq_len")] = "2385";
    fixture->row.values[measured_column_find("date_version")] = "2023-10-19";
}

static void test_conditions(void)
{
    struct fixture fixture;
    start(&fixture);
    const struct {
        const char *column;
        enum condition_op op;
        const char *value;
        bool holds;
    } rows[] = {{"n_gpus", CONDITION_GREATER, "8", true},
                {"n_gpus", CONDITION_LESS, "9", false}, /* as numbers, not as texts */
                {"date_version", CONDITION_LESS, "2024", true},
                {"date_version", CONDITION_GREATER, "2023-10-11", true},
                {"tp", CONDITION_GREATER, "1", false},
                {"tp", CONDITION_LESS, "1", false},
                {"tp", CONDITION_EQUAL, "", true},
                {"tp", CONDITION_NOT_EQUAL, "2", true}};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct fact_condition condition = {measured_column_find(rows[k].column), rows[k].op,
                                           rows[k].value};
        const struct fact_rule rule = {.when = &condition, .when_count = 1};
        check_context("row %zu", k);
        CHECK_INT(fact_matches(&rule, &fixture.row), rows[k].holds);
    }
    check_context(NULL);
}

static void test_order(void)
{
    struct fixture fixture;
    start(&fixture);
    struct fact_setting first[] = {{"model", "{family: llama}"},
                                   {"model.vocab_size", "32000"},
                                   {"train.seq_len", "<seq_len>"},
                                   {"mesh.tp", "<tp>"},
                                   {"fsdp.wrap", "block"}};
    struct fact_setting second[] = {{"model", "{model_type: mpt}"}, {"fsdp.wrap", ""}};
    struct fact_setting third[] = {{"train.seq_len", "1"}};
    struct fact_rule items[] = {
        {.set = first, .set_count = 5, .assumed = "why not"},
        {.match = "lab/*", .licence = "MIT", .set = second, .set_count = 2, .citation = "readme"},
        {.match = "other/*", .set = third, .set_count = 1, .citation = "another source"},
        {.match = "lab/*", .exclude = "too old"},
        {.exclude = "a second reason"}};
    const struct fact_rules rules = {items, 5, 5};
    settings_of_row(&fixture.arena, &rules, &fixture.row, &fixture.settings);
    CHECK_INT(fixture.settings.list.count, 2);
    CHECK_TEXT(setting_value(&fixture.settings, "model"), "{model_type: mpt}");
    CHECK_TRUE(setting_value(&fixture.settings, "model.vocab_size") == NULL);
    CHECK_TEXT(setting_value(&fixture.settings, "train.seq_len"), "2385");
    CHECK_TRUE(setting_value(&fixture.settings, "mesh.tp") == NULL);
    CHECK_TRUE(setting_value(&fixture.settings, "fsdp.wrap") == NULL);
    CHECK_TRUE(fixture.settings.is_assumed);
    CHECK_TEXT(fixture.settings.exclude, "too old");
    CHECK_TEXT(fixture.settings.licence, "MIT");
    arena_release(&fixture.arena);
}

static void test_notes(void)
{
    CHECK_TRUE(setting_is_note("source.memory_kind"));
    CHECK_TRUE(!setting_is_note("train.seq_len"));
}

const struct check_case validate_facts_cases[] = {{"patterns", test_patterns},
                                                  {"conditions", test_conditions},
                                                  {"later rules stand", test_order},
                                                  {"notes", test_notes},
                                                  {0}};
