/* unit/store/test_store_export.c: export and views, against sums and numbers by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_export.h"
#include "store_fixture.h"

/* What RFC 4180 asks a reader to do, written from its grammar: reads a field from `text` on, and
   returns where it ends: at ',', CR LF or the end. */
static const char *read_field(const char *text, struct strbuf *field)
{
    if (*text == '"') {
        for (text++; *text != '\0' && (*text != '"' || text[1] == '"'); text++) {
            text += *text == '"';
            strbuf_add_bytes(field, text, 1);
        }
        text++;
    }
    const size_t length = strcspn(text, ",\r");
    strbuf_add_bytes(field, text, length);
    return text + length;
}

/* Field `column` of line `line`, both from 0; "" past the end. */
static const char *csv_field(struct arena *arena, const char *text, int line, int column)
{
    const char *found = "";
    int at_line = 0, at_column = 0;
    while (*text != '\0' && at_line <= line) {
        struct strbuf field = {0};
        strbuf_add(&field, "");
        text = read_field(text, &field);
        if (at_line == line && at_column == column)
            found = arena_strdup(arena, field.text);
        strbuf_release(&field);
        at_column++;
        if (*text == '\r') {
            CHECK_INT(text[1], '\n');
            text++;
            at_line++;
            at_column = 0;
        }
        text += *text != '\0';
    }
    return found;
}

static int column_of(struct arena *arena, const char *csv, const char *name)
{
    for (int i = 0; i < 200; i++)
        if (strcmp(csv_field(arena, csv, 0, i), name) == 0)
            return i;
    return -1;
}

static const char *value_of(struct arena *arena, const char *csv, int line, const char *name)
{
    const int column = column_of(arena, csv, name);
    CHECK_TRUE(column >= 0);
    return csv_field(arena, csv, line, column);
}

static char *export_text(struct fixture *fixture, const struct store_query *query, bool is_json)
{
    struct store *store = fixture_open(fixture, STORE_READ);
    struct store_rows *rows = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    CHECK_INT(store_rows_open(store, query, &rows, &fixture->diag), STATUS_OK);
    CHECK_INT(is_json ? report_export_json(rows, query->table, file, &fixture->diag)
                      : report_export_csv(rows, file, &fixture->diag),
              STATUS_OK);
    store_rows_close(rows);
    store_close(store);
    fclose(file);
    return text;
}

static void test_round_trip(void)
{
    struct fixture fixture;
    const struct store_query query = {.table = "v_runs"};
    fixture_init(&fixture);
    fixture.outcome.config_name = "a \"quoted\", name\r\nof two lines";
    fixture.outcome.bottleneck = "=cmd|' /C calc'!A0";
    fixture.outcome.cluster = "\xC3\xBC, plain";
    fixture.outcome.step_time_s = 0.1 + 0.2;
    fixture_fill(&fixture, 2);
    char *csv = export_text(&fixture, &query, false);
    struct arena *arena = &fixture.arena;
    for (int line = 1; line <= 2; line++) {
        CHECK_TEXT(value_of(arena, csv, line, "config_name"), fixture.outcome.config_name);
        CHECK_TEXT(value_of(arena, csv, line, "bottleneck"), fixture.outcome.bottleneck);
        CHECK_TEXT(value_of(arena, csv, line, "cluster"), fixture.outcome.cluster);
        CHECK_TEXT(value_of(arena, csv, line, "id"), line == 1 ? "1" : "2");
        CHECK_TEXT(value_of(arena, csv, line, "fits"), "true");
        CHECK_TEXT(value_of(arena, csv, line, "hfu"), "");
        CHECK_NEAR(strtod(value_of(arena, csv, line, "step_time_s"), NULL), 0.1 + 0.2, 0);
    }
    CHECK_TEXT(csv_field(arena, csv, 3, 0), "");
    free(csv);
    char *json = export_text(&fixture, &query, true);
    CHECK_TRUE(strstr(json, "\"config_name\": \"a \\\"quoted\\\", name\\r\\nof two lines\"") !=
               NULL);
    CHECK_TRUE(strstr(json, "\"hfu\": null") != NULL);
    CHECK_TRUE(strstr(json, "\"fits\": true") != NULL);
    CHECK_TRUE(strstr(json, "\"unit\": \"tokens/s\"") != NULL);
    free(json);
    fixture_release(&fixture);
}

static void test_choice(void)
{
    struct fixture fixture;
    const struct store_range ranges[] = {{1, 1}, {3, 4}};
    const struct store_query some = {.table = "run", .ranges = ranges, .range_count = 2};
    const struct store_query both = {
        .table = "run", .ranges = ranges, .range_count = 2, .where = "id > 1 -- later ones"};
    const struct store_query rows = {.table = "unit_time", .ranges = ranges, .range_count = 1};
    fixture_init(&fixture);
    fixture_fill(&fixture, 5);
    char *text = export_text(&fixture, &some, false);
    CHECK_TEXT(csv_field(&fixture.arena, text, 1, 0), "1");
    CHECK_TEXT(csv_field(&fixture.arena, text, 3, 0), "4");
    CHECK_TEXT(csv_field(&fixture.arena, text, 4, 0), "");
    free(text);
    text = export_text(&fixture, &both, false);
    CHECK_TEXT(csv_field(&fixture.arena, text, 1, 0), "3");
    free(text);
    text = export_text(&fixture, &rows, false);
    CHECK_TEXT(value_of(&fixture.arena, text, 2, "name"), "layers.0");
    CHECK_TEXT(csv_field(&fixture.arena, text, 4, 0), "");
    free(text);
    fixture_release(&fixture);
}

static void test_mistakes(void)
{
    static const struct store_range none = {7, 9};
    static const struct {
        struct store_query query;
        const char *message;
    } rows[] = {
        {{.table = "runs"}, "no table 'runs'"},
        {{.table = "sqlite_schema"}, "no table 'sqlite_schema'"},
        {{.table = "run; DROP TABLE run"}, "no table"},
        {{.table = "run", .where = "n_gpu > 2"}, "no such column: n_gpu"},
        {{.table = "run", .where = "model = \"llama\""}, "no such column: llama"},
        {{.table = "run", .where = "1); DELETE FROM run; SELECT (1"}, "something stands behind it"},
        {{.table = "run", .where = ""}, "is not a condition"},
        {{.table = "run", .ranges = &none, .range_count = 1}, "no run 7"},
        {{.table = "meta", .ranges = &none, .range_count = 1}, "has no runs to choose"},
    };
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 2);
    struct store *store = fixture_open(&fixture, STORE_READ);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct store_rows *opened = NULL;
        check_context("%s", rows[i].message);
        CHECK_INT(store_rows_open(store, &rows[i].query, &opened, &fixture.diag), STATUS_INPUT);
        CHECK_TRUE(opened == NULL);
        CHECK_TRUE(strstr(fixture_message(&fixture), rows[i].message) != NULL);
    }
    check_context(NULL);
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), 2);
    fixture_release(&fixture);
}

/* Every column has its unit and type beside the CSV. */
static void test_metadata(void)
{
    struct fixture fixture;
    struct store_rows *rows = NULL;
    const struct store_query query = {.table = "v_scaling"};
    char *text = NULL;
    size_t size = 0;
    fixture_init(&fixture);
    fixture_fill(&fixture, 1);
    struct store *store = fixture_open(&fixture, STORE_READ);
    FILE *file = open_memstream(&text, &size);
    CHECK_INT(store_rows_open(store, &query, &rows, &fixture.diag), STATUS_OK);
    report_export_metadata(rows, "mine.csv", file);
    fclose(file);
    CHECK_TRUE(strstr(text, "\"url\": \"mine.csv\"") != NULL);
    CHECK_TRUE(strstr(text, "\"name\": \"step_time_s\",\n        \"titles\": \"step_time_s\",\n"
                            "        \"datatype\": \"number\",\n") != NULL);
    CHECK_TRUE(strstr(text, "\"schema:unitText\": \"tokens/s\"") != NULL);
    free(text);
    store_rows_close(rows);
    store_close(store);
    fixture_release(&fixture);
}

static void test_breakdown(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 3);
    CHECK_INT(sql_int(fixture.path,
                      "SELECT count(*) FROM (SELECT sum(seconds) AS s, sum(share) AS f, step_time_s"
                      " FROM v_breakdown JOIN run ON run.id = run_id GROUP BY run_id) WHERE"
                      " abs(s - step_time_s) < 1e-12 AND abs(f - 1) < 1e-12"),
              3);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_breakdown WHERE seconds < 0"), 0);
    /* 0.25 s idle, 1 ms of it copies, of 2.385 s. */
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_breakdown WHERE category = 'idle' AND"
                                    " abs(seconds - 0.249) < 1e-12 AND"
                                    " abs(share - 0.249 / 2.385) < 1e-12"),
              3);
    fixture_release(&fixture);
}

static void add_scaled(struct fixture *fixture, struct store *store, const char *nodes,
                       const char *seq_len, int64_t n_gpus, double tokens_per_s)
{
    struct outcome_origin origins[] = {{"train.seq_len", seq_len, "default"},
                                       {"nodes", nodes, "<command line>"},
                                       {"mesh.dp_shard", nodes, "default: what the mesh leaves"},
                                       {"cost.gpu_hour", nodes, "<command line>"}};
    fixture->outcome.origins = origins;
    fixture->outcome.origin_count = 4;
    fixture->outcome.n_gpus = n_gpus;
    fixture->outcome.tokens_per_s = tokens_per_s;
    fixture->outcome.config_hash.low = (uint64_t)n_gpus * 100 + (uint64_t)seq_len[0];
    CHECK_INT(fixture_add(fixture, store, 1), STATUS_OK);
    fixture->outcome.origins = NULL;
    fixture->outcome.origin_count = 0;
}

/* 8, 16 and 64 GPUs: 1,000, 1,900 and 6,400 tokens/s; another sequence length is another family. */
static void test_scaling(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    struct store *store = fixture_open(&fixture, STORE_WRITE);
    add_scaled(&fixture, store, "2", "4096", 16, 1900);
    add_scaled(&fixture, store, "1", "4096", 8, 990);
    add_scaled(&fixture, store, "1", "8192", 8, 500);
    add_scaled(&fixture, store, "1", "4096", 8, 1000); /* again: the later one counts */
    add_scaled(&fixture, store, "8", "4096", 64, 6400);
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_scaling"), 4);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_scaling WHERE base_run_id = 4 AND"
                                    " run_id IN (1, 4, 5)"),
              3);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_scaling WHERE (run_id = 1 AND"
                                    " abs(speedup - 1.9) < 1e-12 AND abs(efficiency - 0.95) <"
                                    " 1e-12) OR (run_id = 5 AND abs(speedup - 6.4) < 1e-12 AND"
                                    " abs(efficiency - 0.8) < 1e-12) OR (run_id = 4 AND speedup ="
                                    " 1 AND efficiency = 1) OR (run_id = 3 AND base_run_id = 3)"),
              4);
    fixture_release(&fixture);
}

const struct check_case store_export_cases[] = {
    {"quotes, line breaks, NULL come back", test_round_trip},
    {"rows that are chosen", test_choice},
    {"mistakes", test_mistakes},
    {"units beside a CSV", test_metadata},
    {"v_breakdown adds up", test_breakdown},
    {"v_scaling by hand", test_scaling},
    {0},
};
