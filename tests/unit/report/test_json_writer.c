/* unit/report/test_json_writer.c: exact text of values, escapes and nesting. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/json_writer.h"
#include "report_tests.h"

/* What one call writes; the caller frees. */
static char *text_of(void (*write)(struct json_writer *json, const void *value), const void *value)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct json_writer json;
    json_init(&json, file);
    write(&json, value);
    fclose(file);
    return text;
}

static void write_double(struct json_writer *json, const void *value)
{
    json_double(json, *(const double *)value);
}

static void write_text(struct json_writer *json, const void *value)
{
    json_text(json, value);
}

static void test_doubles(void)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {2.385, "2.385"},
        {0.1, "0.1"},
        {0.0, "0"},
        {-0.0, "-0"},
        {-17.25, "-17.25"},
        {1.0 / 3, "0.3333333333333333"},    /* 16 digits */
        {0.1 + 0.2, "0.30000000000000004"}, /* 17 */
        {5e-324, "4.94065645841247e-324"},  /* the smallest: 15 digits already read back */
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {4.5e11, "450000000000"},
        {2.385e-5, "2.385e-05"},
        {(double)NAN, "null"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("row %zu", i);
        char *text = text_of(write_double, &rows[i].value);
        CHECK_TEXT(text, rows[i].text);
        if (!isnan(rows[i].value))
            CHECK_TRUE(strtod(text, NULL) == rows[i].value);
        free(text);
    }
    check_context(NULL);
}

static void test_texts(void)
{
    static const struct {
        const char *value, *text;
    } rows[] = {
        {"layers.0", "\"layers.0\""},
        {"", "\"\""},
        {NULL, "null"},
        {"a \"quoted\" \\ path", "\"a \\\"quoted\\\" \\\\ path\""},
        {"two\nlines\tand\r\b\f", "\"two\\nlines\\tand\\r\\b\\f\""},
        {"bell \x07 unit \x1f", "\"bell \\u0007 unit \\u001f\""},
        {"µs … 😀", "\"µs … 😀\""},
        {"bad \xff\xc3", "\"bad \\ufffd\\ufffd\""},
        {"overlong \xc0\xaf", "\"overlong \\ufffd\\ufffd\""},
        {"surrogate \xed\xa0\x80", "\"surrogate \\ufffd\\ufffd\\ufffd\""},
        {"cut \xe2\x82", "\"cut \\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("row %zu", i);
        char *text = text_of(write_text, rows[i].value);
        CHECK_TEXT(text, rows[i].text);
        free(text);
    }
    check_context(NULL);
}

static void test_nesting(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "a");
    json_int(&json, INT64_MIN);
    json_key(&json, "b");
    json_begin_array(&json);
    json_begin_array(&json);
    json_end_array(&json);
    json_begin_object(&json);
    json_key(&json, "fits");
    json_bool(&json, true);
    json_end_object(&json);
    json_bool(&json, false);
    json_end_array(&json);
    json_key(&json, "c");
    json_begin_object(&json);
    json_end_object(&json);
    json_end_object(&json);
    json_finish(&json);
    fclose(file);
    CHECK_TEXT(text, "{\n"
                     "  \"a\": -9223372036854775808,\n"
                     "  \"b\": [\n"
                     "    [],\n"
                     "    {\n"
                     "      \"fits\": true\n"
                     "    },\n"
                     "    false\n"
                     "  ],\n"
                     "  \"c\": {}\n"
                     "}\n");
    free(text);
}

const struct check_case json_writer_cases[] = {{"doubles read back equal", test_doubles},
                                               {"texts are escaped", test_texts},
                                               {"nesting and commas", test_nesting},
                                               {0}};
