/* tests/unit/config/test_node.c: YAML text → tree, and every YAML feature that is refused. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static void test_places(void)
{
    struct fixture fixture;
    fixture_parse(&fixture, "# é\nhost:\n  gpus: 8\n  \"na é\": 'x y'\nlist: [a, {b: ~}]\n", 0);
    CHECK_INT(fixture.status, STATUS_OK);
    const struct node *host = node_get(fixture.config.root, "host");
    const struct node *gpus = node_get(host, "gpus");
    const struct node *name = node_get(host, "na é");
    CHECK_INT(host->kind, NODE_MAP);
    CHECK_INT(host->place.line, 3);
    CHECK_INT(host->place.column, 3);
    CHECK_INT(host->place.length, 4);
    CHECK_TEXT(gpus->text, "8");
    CHECK_INT(gpus->place.line, 3);
    CHECK_INT(gpus->place.column, 9);
    CHECK_INT(gpus->place.length, 1);
    CHECK_TEXT(name->text, "x y");
    CHECK_TRUE(name->is_quoted);
    CHECK_INT(name->place.column, 11);
    CHECK_INT(name->place.length, 5);
    const struct node *list = node_get(fixture.config.root, "list");
    CHECK_INT(list->kind, NODE_LIST);
    CHECK_INT(list->entries.count, 2);
    CHECK_TEXT(list->entries.items[0].value->text, "a");
    CHECK_INT(node_get(list->entries.items[1].value, "b")->kind, NODE_NULL);
    CHECK_TRUE(node_get(list, "b") == NULL);
    CHECK_TRUE(node_get(host, "gpu") == NULL);
    fixture_release(&fixture);
}

static void test_nulls(void)
{
    static const struct {
        const char *text;
        enum node_kind kind;
    } rows[] = {{"a:", NODE_NULL},         {"a: ~", NODE_NULL},      {"a: null", NODE_NULL},
                {"a: Null", NODE_NULL},    {"a: NULL", NODE_NULL},   {"a: ''", NODE_SCALAR},
                {"a: \"~\"", NODE_SCALAR}, {"a: nULL", NODE_SCALAR}, {"a: 'null'", NODE_SCALAR}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        check_context("%s", rows[i].text);
        fixture_parse(&fixture, rows[i].text, 0);
        CHECK_INT(fixture.status, STATUS_OK);
        CHECK_INT(node_get(fixture.config.root, "a")->kind, rows[i].kind);
        fixture_release(&fixture);
    }
    check_context(NULL);
}

static void test_line_ends_and_mark(void)
{
    struct fixture fixture;
    fixture_parse(&fixture,
                  "\xEF\xBB\xBF"
                  "a: 1\r\nb:\r\n  c: |\r\n    two\r\n    lines\r\n",
                  0);
    CHECK_INT(fixture.status, STATUS_OK);
    const struct node *b = node_get(fixture.config.root, "b");
    CHECK_INT(node_get(fixture.config.root, "a")->place.column, 4);
    CHECK_INT(b->place.line, 3);
    CHECK_TEXT(node_get(b, "c")->text, "two\nlines\n");
    CHECK_TRUE(node_get(b, "c")->is_quoted);
    fixture_release(&fixture);
}

static void test_json(void)
{
    struct fixture fixture;
    fixture_parse(&fixture,
                  "{\n\t\"hidden_size\": 4096,\n\t\"rope_scaling\": null,\"a\":[1,2],\n"
                  "  \"rms_norm_eps\": 1e-05, \"act\": \"si\\u006cu\\/\"\n}\n",
                  0);
    CHECK_TEXT(fixture.messages, "");
    CHECK_TEXT(node_get(fixture.config.root, "hidden_size")->text, "4096");
    CHECK_INT(node_get(fixture.config.root, "rope_scaling")->kind, NODE_NULL);
    CHECK_INT(node_get(fixture.config.root, "a")->entries.count, 2);
    CHECK_TEXT(node_get(fixture.config.root, "act")->text, "silu/");
    fixture_release(&fixture);
}

/* Each text is refused with exactly these messages. */
static const struct {
    const char *text, *messages;
} refused[] = {
    {"a: 1\nb: 2\na: 3\n", "t.yaml:3:1: error: duplicate key 'a'\n"
                           "    3 | a: 3\n"
                           "      | ^\n"
                           "t.yaml:1:1: note: first written here\n"
                           "    1 | a: 1\n"
                           "      | ^\n"},
    {"a: &x [1, *x]\n", "t.yaml:1:4: error: anchors are not accepted\n"
                        "    1 | a: &x [1, *x]\n"
                        "      |    ^^\n"
                        "      = write the value out where it is needed\n"
                        "t.yaml:1:11: error: aliases are not accepted\n"
                        "    1 | a: &x [1, *x]\n"
                        "      |           ^^\n"
                        "      = write the value out where it is needed\n"},
    {"<<: {a: 1}\n", "t.yaml:1:1: error: merge keys ('<<') are not accepted\n"
                     "    1 | <<: {a: 1}\n"
                     "      | ^^\n"
                     "      = write the keys out where they are needed\n"},
    {"a: !!str 5\n", "t.yaml:1:4: error: tags are not accepted\n"
                     "    1 | a: !!str 5\n"
                     "      |    ^^^^^\n"
                     "      = the field says what a value is\n"},
    {"a: !foo {b: 1}\n", "t.yaml:1:4: error: tags are not accepted\n"
                         "    1 | a: !foo {b: 1}\n"
                         "      |    ^^^^\n"
                         "      = the field says what a value is\n"},
    {"a: 1\n---\nb: 2\n", "t.yaml:2:1: error: a second document starts here\n"
                          "    2 | ---\n"
                          "      | ^^^\n"
                          "      = one file holds one document\n"},
    {"[a]: 1\n", "t.yaml:1:1: error: a key must be a word, not a map, a list or an alias\n"
                 "    1 | [a]: 1\n"
                 "      | ^\n"},
    {"? {x: 1}\n: 1\n", "t.yaml:1:3: error: a key must be a word, not a map, a list or an "
                        "alias\n"
                        "    1 | ? {x: 1}\n"
                        "      |   ^\n"},
    {"*a : 1\n", "t.yaml:1:1: error: a key must be a word, not a map, a list or an alias\n"
                 "    1 | *a : 1\n"
                 "      | ^^\n"},
    {"'': 1\n", "t.yaml:1:1: error: a key is empty\n"
                "    1 | '': 1\n"
                "      | ^^\n"},
    {"&k a: 1\n", "t.yaml:1:1: error: anchors are not accepted\n"
                  "    1 | &k a: 1\n"
                  "      | ^^\n"
                  "      = write the value out where it is needed\n"},
    {"# nothing\n", "t.yaml:1:1: error: the document is empty\n"
                    "    1 | # nothing\n"
                    "      | ^\n"},
    {"---\n...\n", "t.yaml:1:1: error: the document is empty\n"
                   "    1 | ---\n"
                   "      | ^\n"},
    {"a: \"x\\0y\"\n", "t.yaml:1:4: error: a text holds a NUL character\n"
                       "    1 | a: \"x\\0y\"\n"
                       "      |    ^^^^^^\n"},
    {"a: b: c\n", "t.yaml:1:5: error: mapping values are not allowed in this context\n"
                  "    1 | a: b: c\n"
                  "      |     ^\n"
                  "      = put a text that holds ': ' in quotes, or check the indentation\n"},
    {"a:\n\tb: 1\n", "t.yaml:2:1: error: found character that cannot start any token\n"
                     "    2 | \tb: 1\n"
                     "      | ^\n"
                     "      = a tab cannot indent: use spaces\n"},
    {"a: @x\n", "t.yaml:1:4: error: found character that cannot start any token\n"
                "    1 | a: @x\n"
                "      |    ^\n"
                "      = put a text that starts with this character in quotes\n"},
    {"a:\n  - 1\n  b: 2\n", "t.yaml:3:3: error: did not find expected '-' indicator\n"
                            "    3 |   b: 2\n"
                            "      |   ^\n"
                            "t.yaml:2:3: note: while parsing a block collection\n"
                            "    2 |   - 1\n"
                            "      |   ^\n"},
    {"a: \xff\n", "t.yaml:1:4: error: bytes that are not UTF-8\n"
                  "    1 | a: \xff\n"
                  "      |    ^\n"},
    {"é: \xed\xa0\x80\n", "t.yaml:1:4: error: bytes that are not UTF-8\n"
                          "    1 | é: \xed\xa0\x80\n"
                          "      |    ^\n"},
    {"a: \xc0\x80\n", "t.yaml:1:4: error: bytes that are not UTF-8\n"
                      "    1 | a: \xc0\x80\n"
                      "      |    ^\n"},
    {"a: 1\rb: 2\n", "t.yaml:1:5: error: a carriage return without a line feed\n"
                     "    1 | a: 1\n"
                     "      |     ^\n"},
    {"a: \xe2\x80\xa8\n", "t.yaml:1:4: error: a line break that is not a line feed\n"
                          "    1 | a: \xe2\x80\xa8\n"
                          "      |    ^\n"},
    {"a: \x07\n", "t.yaml:1:4: error: a control character in the text\n"
                  "    1 | a: ?\n"
                  "      |    ^\n"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct fixture fixture;
        check_context("row %zu", i);
        fixture_parse(&fixture, refused[i].text, 0);
        CHECK_TEXT(fixture.messages, refused[i].messages);
        CHECK_INT(fixture.status, STATUS_INPUT);
        fixture_release(&fixture);
    }
    check_context(NULL);
}

static void test_nul_byte(void)
{
    struct fixture fixture;
    fixture_parse(&fixture, "a: 1\nb: \0 2\n", 11);
    CHECK_CONTAINS(fixture.messages, "t.yaml:2:4: error: a NUL byte in the text\n");
    fixture_release(&fixture);
}

/* A text of `bytes`: `pattern` over and over. */
static char *repeated(const char *pattern, size_t bytes)
{
    char *text = malloc(bytes + 1);
    const size_t length = strlen(pattern);
    for (size_t i = 0; i < bytes; i++)
        text[i] = pattern[i % length];
    text[bytes] = '\0';
    return text;
}

/* libyaml alone would need minutes: the bound on depth must act while reading. */
static void test_depth(void)
{
    static const char *const patterns[] = {"[", "{a: ", "- ", "[{a: "};
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        struct fixture fixture;
        char *text = repeated(patterns[i], NODE_MAX_BYTES);
        check_context("%s", patterns[i]);
        fixture_parse(&fixture, text, 0);
        CHECK_CONTAINS(fixture.messages, "error: nesting is deeper than 64: reading stops here\n");
        CHECK_INT(fixture.status, STATUS_INPUT);
        fixture_release(&fixture);
        free(text);
    }
    check_context(NULL);
}

static void test_depth_64_is_fine(void)
{
    struct fixture fixture;
    char text[2 * NODE_MAX_DEPTH + 3] = {0};
    memset(text, '[', NODE_MAX_DEPTH);
    memset(text + NODE_MAX_DEPTH, ']', NODE_MAX_DEPTH);
    fixture_parse(&fixture, text, 0);
    CHECK_INT(fixture.status, STATUS_OK);
    fixture_release(&fixture);
    memset(text, '[', NODE_MAX_DEPTH + 1);
    memset(text + NODE_MAX_DEPTH + 1, ']', NODE_MAX_DEPTH + 1);
    fixture_parse(&fixture, text, 0);
    CHECK_CONTAINS(fixture.messages, "t.yaml:1:65: error: nesting is deeper than 64");
    fixture_release(&fixture);
}

static void test_size(void)
{
    struct fixture fixture;
    char *text = repeated("#", NODE_MAX_BYTES + 1);
    fixture_parse(&fixture, text, 0);
    CHECK_CONTAINS(fixture.messages,
                   "t.yaml:1:1: error: the text has 1048577 bytes: at most 1048576 are read\n");
    fixture_release(&fixture);
    free(text);
}

/* 100,000 keys, then a duplicate: found without comparing every pair. */
static void test_many_keys(void)
{
    struct fixture fixture;
    const size_t size = 1000000;
    char *text = malloc(size);
    size_t length = 0;
    for (int i = 0; i < 90000; i++)
        length += (size_t)snprintf(text + length, size - length, "k%d: 1\n", i);
    fixture_parse(&fixture, text, 0);
    CHECK_INT(fixture.status, STATUS_OK);
    CHECK_INT(fixture.config.root->entries.count, 90000);
    fixture_release(&fixture);
    snprintf(text + length, size - length, "k44444: 2\n");
    fixture_parse(&fixture, text, 0);
    CHECK_CONTAINS(fixture.messages, "t.yaml:90001:1: error: duplicate key 'k44444'\n");
    CHECK_CONTAINS(fixture.messages, "t.yaml:44445:1: note: first written here\n");
    fixture_release(&fixture);
    free(text);
}

static void test_stops_after_many_mistakes(void)
{
    struct fixture fixture;
    char *text = repeated("a: 1\n", 5000);
    fixture_parse(&fixture, text, 0);
    CHECK_INT(fixture.diag.error_count, 100);
    CHECK_CONTAINS(fixture.messages, "and 80 more errors\n");
    fixture_release(&fixture);
    free(text);
}

const struct check_case node_cases[] = {{"places", test_places},
                                        {"nulls", test_nulls},
                                        {"line ends and byte order mark", test_line_ends_and_mark},
                                        {"json", test_json},
                                        {"refused", test_refused},
                                        {"NUL byte", test_nul_byte},
                                        {"depth", test_depth},
                                        {"depth 64 is fine", test_depth_64_is_fine},
                                        {"size", test_size},
                                        {"many keys", test_many_keys},
                                        {"many mistakes", test_stops_after_many_mistakes},
                                        {0}};
