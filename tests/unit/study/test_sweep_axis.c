/* tests/unit/study/test_sweep_axis.c: the words that a user writes for the values of a key. */
#include <string.h>

#include "base/strbuf.h"
#include "study/sweep_axis.h"
#include "study_tests.h"

/* The values of a text, one after the other with '|' between; after a mistake its message. */
static const char *values_of(struct arena *arena, const char *text)
{
    struct diag diag;
    struct sweep_axis axis = {.key = "nodes"};
    const struct source source = {"<command line>", text, strlen(text)};
    const struct place place = {&source, 1, 1, 1};
    diag_init(&diag, arena);
    const enum status status = axis_add(arena, &axis, text, place, &diag);
    CHECK_INT(status == STATUS_OK, diag.error_count == 0);
    if (status != STATUS_OK)
        return arena_printf(arena, "%d: %s", (int)diag.items[0].place.column, diag.items[0].text);
    const char *joined = "";
    for (int32_t i = 0; i < axis.values.count; i++)
        joined = arena_printf(arena, "%s%s%s", joined, i > 0 ? "|" : "", axis.values.items[i]);
    return joined;
}

static void check_rows(const char *const (*rows)[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena = {0};
        check_context("%s", rows[i][0]);
        CHECK_TEXT(values_of(&arena, rows[i][0]), rows[i][1]);
        arena_release(&arena);
    }
    check_context(NULL);
}

static void test_values(void)
{
    static const char *const rows[][2] = {
        {"1,2,4", "1|2|4"},
        {" 25Gbps , 400 Gbps ", "25Gbps|400 Gbps"},
        {"[q_proj, v_proj],[all-linear]", "[q_proj, v_proj]|[all-linear]"},
        {"{every: 2}, full", "{every: 2}|full"},
        {"\"a,b\",'c,d'", "\"a,b\"|'c,d'"},
        {"it's, that's", "it's|that's"},
        /* range leaves its end out, log2 and geom do not. */
        {"range(1,4,1)", "1|2|3"},
        {"range(4, 1, -1)", "4|3|2"},
        {"range(0,1,0.1)", "0|0.1|0.2|0.3|0.4|0.5|0.6|0.7|0.8|0.9"},
        {"range(100Gbps, 400Gbps, 100Gbps)", "100Gbps|200Gbps|300Gbps"},
        {"range(0.5us, 2us, 500ns)", "0.5us|1us|1.5us"},
        {"log2(1,8)", "1|2|4|8"},
        {"log2(3,3)", "3"},
        {"log2(25Gbps,800Gbps)", "25Gbps|50Gbps|100Gbps|200Gbps|400Gbps|800Gbps"},
        {"log2(512MiB, 2GiB)", "512MiB|1024MiB|2048MiB"},
        {"geom(1,100,3)", "1|10|100"},
        /* 100^(1/3) = 4.64, 100^(2/3) = 21.5 */
        {"geom(1,100,4)", "1|5|22|100"},
        {"geom(1.0,100,4)", "1|4.64158883361|21.5443469003|100"},
        {"geom(1,2,5)", "1|2"},
        {"geom(8 us, 2 us, 3)", "8us|4us|2us"},
        {"log2(1,4), 12, range(20,22,1)", "1|2|4|12|20|21"},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_mistakes(void)
{
    static const char *const rows[][2] = {
        {"1,,2", "3: an empty value for 'nodes'"},
        {"1,2,", "5: an empty value for 'nodes'"},
        {"log2(1,12)", "8: the end is not the start doubled some times: 'log2(1,12)'"},
        {"4, log2(1,x)", "11: not a number: 'x'"},
        {"log2(1)", "1: wrong number of arguments in 'log2(1)'"},
        {"range(1,2,3,4)", "1: wrong number of arguments in 'range(1,2,3,4)'"},
        {"range(1,2,0)", "1: no values in 'range(1,2,0)'"},
        {"range(1,4,-1)", "1: no values in 'range(1,4,-1)'"},
        {"log2(8,1)", "1: no values in 'log2(8,1)'"},
        {"log2(1e-300,1e300)", "1: no values in 'log2(1e-300,1e300)'"},
        {"geom(1e308,1e-308,7)", "1: no values in 'geom(1e308,1e-308,7)'"},
        {"log2(0,1)", "1: no values in 'log2(0,1)'"},
        {"geom(-1,4,3)", "1: no values in 'geom(-1,4,3)'"},
        {"geom(1,4,1)", "10: not a number of values: '1'"},
        {"geom(1,4,2.5)", "10: not a number of values: '2.5'"},
        {"range(0,1,0.000001)", "1: too many values in 'range(0,1,0.000001)'"},
        {"range(0,1,1e-320)", "1: no values in 'range(0,1,1e-320)'"},
        {"log2(1GB,2Gbps)", "10: units do not go together in 'log2(1GB,2Gbps)'"},
        {"linspace(1,2)", "1: unknown function in 'linspace(1,2)'"},
        {"[1,2", "1: a bracket or quote is not closed in '[1,2'"},
        {"log2(1", "1: a bracket or quote is not closed in 'log2(1'"},
        {"1)", "1: a bracket or quote is not closed in '1)'"},
        {"\"1", "1: a bracket or quote is not closed in '\"1'"},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_what_is_swept(void)
{
    CHECK_TRUE(axis_is_swept("1,2"));
    CHECK_TRUE(axis_is_swept(" log2(1,2)"));
    CHECK_TRUE(axis_is_swept("log2(1"));
    CHECK_TRUE(!axis_is_swept("1"));
    CHECK_TRUE(!axis_is_swept(""));
    CHECK_TRUE(!axis_is_swept("[1, 2]"));
    CHECK_TRUE(!axis_is_swept("{every: 2}"));
    CHECK_TRUE(!axis_is_swept("\"1,2\""));
}

const struct check_case sweep_axis_cases[] = {
    {"lists and functions", test_values},
    {"mistakes have a place", test_mistakes},
    {"one value is not swept", test_what_is_swept},
    {0},
};
