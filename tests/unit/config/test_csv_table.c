/* tests/unit/config/test_csv_table.c: CSV text → cells with places, and every malformed table. */
#include <string.h>

#include "config/csv_table.h"
#include "fixture.h"

struct parsed {
    struct arena arena;
    struct diag diag;
    struct source source;
    struct csv_table table;
    enum status status;
};

static void parse(struct parsed *parsed, const char *text)
{
    *parsed = (struct parsed){.source = {"t.csv", text, strlen(text)}};
    diag_init(&parsed->diag, &parsed->arena);
    parsed->status = csv_parse(&parsed->arena, &parsed->source, &parsed->table, &parsed->diag);
}

static void release(struct parsed *parsed)
{
    arena_release(&parsed->arena);
}

static const struct csv_cell *cell(const struct parsed *parsed, int32_t row, int32_t column)
{
    return &parsed->table.rows.items[row].items[column];
}

static void test_cells(void)
{
    struct parsed parsed;
    parse(&parsed,
          "\xEF\xBB\xBF"
          "gpu, n ,notes\r\nH100,8,\"a \"\"b\"\", c\"\r\n\r\né,,\"two\nlines\"\n,4,  x y ");
    CHECK_INT(parsed.status, STATUS_OK);
    CHECK_INT(parsed.table.header.count, 3);
    CHECK_TEXT(parsed.table.header.items[1].text, "n");
    CHECK_INT(csv_column(&parsed.table, "notes"), 2);
    CHECK_INT(csv_column(&parsed.table, "note"), -1);
    CHECK_INT(parsed.table.rows.count, 3);
    CHECK_TEXT(cell(&parsed, 0, 2)->text, "a \"b\", c");
    CHECK_INT(cell(&parsed, 0, 2)->place.line, 2);
    CHECK_INT(cell(&parsed, 0, 2)->place.column, 8);
    CHECK_INT(cell(&parsed, 0, 2)->place.length, 12);
    CHECK_TEXT(cell(&parsed, 1, 0)->text, "é");
    CHECK_TEXT(cell(&parsed, 1, 1)->text, "");
    CHECK_INT(cell(&parsed, 1, 1)->place.column, 3);
    CHECK_TEXT(cell(&parsed, 1, 2)->text, "two\nlines");
    CHECK_INT(cell(&parsed, 2, 1)->place.line, 6);
    CHECK_TEXT(cell(&parsed, 2, 2)->text, "x y");
    release(&parsed);
}

static void test_mistakes(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "t.csv:1:1: error: an empty table"},
        {"\n\r\n", "error: an empty table"},
        {"a,b\n1\n", "t.csv:2:1: error: this row has 1 cells, the header names 2 columns"},
        {"a,b\n1,2,3\n", "t.csv:2:5: error: this row has 3 cells, the header names 2 columns"},
        {"a,a\n", "t.csv:1:3: error: column 'a' is named twice"},
        {"a,,b\n", "t.csv:1:3: error: a column without a name"},
        {"a,b\n1,\"x\n", "t.csv:2:3: error: this quote is never closed"},
        {"a,b\n\"x\"y,2\n", "t.csv:2:4: error: text after the closing quote"},
        {"a,b\nx\"y,2\n", "t.csv:2:2: error: a quote inside a cell that does not start with one"},
        {"a,b\n\x80,2\n", "t.csv:2:1: error: bytes that are not UTF-8"},
        {"a,b\n1,\r2\n", "t.csv:2:3: error"},
    };
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct parsed parsed;
        check_context("%s", rows[k].text);
        parse(&parsed, rows[k].text);
        CHECK_INT(parsed.status, STATUS_INPUT);
        CHECK_CONTAINS(diag_text(&parsed.diag, &parsed.arena), rows[k].says);
        release(&parsed);
    }
    check_context(NULL);
}

/* All required columns that are absent are named at once; others may be absent. */
static void test_columns(void)
{
    static const char *const names[] = {"gpu", "us", "kernel", "n", "notes"};
    int32_t columns[5];
    struct parsed parsed;
    parse(&parsed, "n,gpu\n");
    CHECK_INT(csv_columns(&parsed.table, names, 5, 1, columns, &parsed.diag), STATUS_OK);
    CHECK_INT(columns[0], 1);
    CHECK_INT(columns[1], -1);
    CHECK_INT(columns[3], 0);
    CHECK_INT(csv_columns(&parsed.table, names, 5, 3, columns, &parsed.diag), STATUS_INPUT);
    const char *said = diag_text(&parsed.diag, &parsed.arena);
    CHECK_CONTAINS(said, "t.csv:1:1: error: there is no column 'us'");
    CHECK_CONTAINS(said, "t.csv:1:1: error: there is no column 'kernel'");
    CHECK_TRUE(strstr(said, "'notes'") == NULL);
    release(&parsed);
}

const struct check_case csv_table_cases[] = {{"cells and places", test_cells},
                                             {"malformed tables", test_mistakes},
                                             {"columns", test_columns},
                                             {0}};
