/* tests/unit/base/test_units_format.c: writing quantities. */
#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "base/philox.h"
#include "base/units.h"
#include "suites.h"

static void test_human_forms(void)
{
    static const struct {
        char *(*format)(char *out, size_t size, double value);
        double value;
        const char *expected;
    } rows[] = {
        {format_seconds, 0, "0 s"},
        {format_seconds, 1.2341, "1.234 s"},
        {format_seconds, 12.3456, "12.346 s"},
        {format_seconds, 0.01234, "12.3 ms"},
        {format_seconds, 0.1234, "123 ms"},
        {format_seconds, 0.00234, "2.34 ms"},
        {format_seconds, 0.00099996, "1.00 ms"},
        {format_seconds, 0.99996, "1.000 s"},
        {format_seconds, 4.56e-6, "4.56 us"},
        {format_seconds, 78.9e-9, "78.9 ns"},
        {format_seconds, 3e-12, "3.00 ps"},
        {format_seconds, -0.01234, "-12.3 ms"},
        {format_gib, 0, "0 B"},
        {format_gib, 1000, "1000 B"},
        {format_gib, 1536, "1.5 KiB"},
        {format_gib, 34.5 * 1048576, "34.5 MiB"},
        {format_gib, 79.6 * 1073741824.0, "79.6 GiB"},
        {format_gib, 2048 * 1073741824.0, "2048.0 GiB"},
        {format_bytes, 999, "999 B"},
        {format_bytes, 1500, "1.5 kB"},
        {format_bytes, 436.2e6, "436.2 MB"},
        {format_bytes, 999.99e6, "1.0 GB"},
        {format_bytes, 16.06e9, "16.1 GB"},
        {format_bytes, 3.2e12, "3.2 TB"},
        {format_bandwidth, 50e9, "50 GB/s"},
        {format_bandwidth, 3.35e12, "3.35 TB/s"},
        {format_bandwidth, 12.5e6, "12.5 MB/s"},
        {format_bandwidth, 999.99e6, "1 GB/s"},
        {format_bandwidth, 7, "7 B/s"},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        char out[64];
        CHECK_TEXT(rows[r].format(out, sizeof(out), rows[r].value), rows[r].expected);
    }
}

static void test_count(void)
{
    static const struct {
        int64_t count;
        const char *expected;
    } rows[] = {{0, "0"},
                {999, "999"},
                {1000, "1,000"},
                {-803, "-803"},
                {-123456, "-123,456"},
                {INT64_C(8030261248), "8,030,261,248"},
                {INT64_MIN, "-9,223,372,036,854,775,808"}};
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        char out[64];
        CHECK_TEXT(format_count(out, sizeof(out), rows[r].count), rows[r].expected);
    }
}

static void test_quantity(void)
{
    static const struct {
        double value;
        enum dimension dimension;
        const char *expected;
    } rows[] = {
        {80 * 1073741824.0, DIM_BYTES, "80 GiB"},
        {24e9, DIM_BYTES, "24 GB"},
        {512, DIM_BYTES, "512 B"},
        {50e9, DIM_BANDWIDTH, "50 GB/s"},
        {3.35e12, DIM_BANDWIDTH, "3.35 TB/s"},
        {7e-7, DIM_TIME, "700 ns"},
        {2.385, DIM_TIME, "2.385 s"},
        {0, DIM_TIME, "0 s"},
        {989.4e12, DIM_FLOP_RATE, "989.4 TFLOPS"},
        {1.98e9, DIM_FREQUENCY, "1.98 GHz"},
        {700, DIM_POWER, "700 W"},
        {0.1, DIM_NONE, "0.1"},
        {-2.5, DIM_NONE, "-2.5"},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        char out[64];
        CHECK_TEXT(format_quantity(out, sizeof(out), rows[r].value, rows[r].dimension),
                   rows[r].expected);
    }
}

/* Any double, from 1e-20 to 1e20, is read back to the last bit. */
static void test_quantity_round_trip(void)
{
    static const enum dimension all[] = {DIM_NONE,      DIM_BYTES,     DIM_BANDWIDTH, DIM_TIME,
                                         DIM_FLOP_RATE, DIM_FREQUENCY, DIM_POWER};
    struct philox random;
    philox_init(&random, 20261, 0, 0, 0);
    for (int i = 0; i < 20000; i++) {
        char out[64];
        const double value =
            (philox_unit(&random) + 0.1) * pow(10, (double)philox_below(&random, 41) - 20);
        const enum dimension dimension = all[philox_below(&random, 7)];
        double again = 0;
        format_quantity(out, sizeof(out), value, dimension);
        check_context("%s", out);
        CHECK_INT(units_parse(out, dimension, &again, NULL), UNIT_OK);
        CHECK_TRUE(again == value);
    }
    check_context(NULL);
}

/* A program around the library may have set a locale with a decimal comma. */
static void test_decimal_comma(void)
{
    char out[64];
    double value = 0;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL)
        printf("(no locale with a decimal comma here) ");
    CHECK_TEXT(format_seconds(out, sizeof(out), 1.2341), "1.234 s");
    CHECK_TEXT(format_quantity(out, sizeof(out), 3.35e12, DIM_BANDWIDTH), "3.35 TB/s");
    CHECK_INT(units_parse("2.5 ms", DIM_TIME, &value, NULL), UNIT_OK);
    CHECK_NEAR(value, 2.5e-3, 0);
    setlocale(LC_NUMERIC, "C");
}

const struct check_case units_format_cases[] = {
    {"human forms", test_human_forms},     {"count", test_count},
    {"quantity", test_quantity},           {"quantity round trip", test_quantity_round_trip},
    {"decimal comma", test_decimal_comma}, {0}};
