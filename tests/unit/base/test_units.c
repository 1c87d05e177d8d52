/* tests/unit/base/test_units.c: reading quantities, seconds to picoseconds. */
#include "base/units.h"

#include "base/strbuf.h"
#include "suites.h"

static const struct {
    const char *text;
    enum dimension dimension;
    double expected;
} value_rows[] = {
    {"0", DIM_NONE, 0},
    {"-3.25", DIM_NONE, -3.25},
    {"1e9", DIM_NONE, 1e9},
    {"2.5e-3", DIM_NONE, 2.5e-3},
    {"1E+05", DIM_NONE, 1e5},
    {"0.1", DIM_NONE, 0.1},
    {"17 B", DIM_BYTES, 17},
    {"1.5kB", DIM_BYTES, 1500},
    {"3 MB", DIM_BYTES, 3e6},
    {"7 GB", DIM_BYTES, 7e9},
    {"2 TB", DIM_BYTES, 2e12},
    {"1 PB", DIM_BYTES, 1e15},
    {"3 KiB", DIM_BYTES, 3072},
    {"4 MiB", DIM_BYTES, 4194304},
    {"80 GiB", DIM_BYTES, 85899345920.0},
    {"0.5 TiB", DIM_BYTES, 549755813888.0},
    {"1 PiB", DIM_BYTES, 1125899906842624.0},
    {"25 B/s", DIM_BANDWIDTH, 25},
    {"6 kB/s", DIM_BANDWIDTH, 6e3},
    {"12 MB/s", DIM_BANDWIDTH, 12e6},
    {"450 GB/s", DIM_BANDWIDTH, 450e9},
    {"3.35TB/s", DIM_BANDWIDTH, 3.35e12},
    {"2 GiB/s", DIM_BANDWIDTH, 2147483648.0},
    {"400Gbps", DIM_BANDWIDTH, 50e9},
    {"400 Gb/s", DIM_BANDWIDTH, 50e9},
    {"400   Gbit/s", DIM_BANDWIDTH, 50e9},
    {"100 Mbps", DIM_BANDWIDTH, 12.5e6},
    {"64 kbit/s", DIM_BANDWIDTH, 8e3},
    {"8 bps", DIM_BANDWIDTH, 1},
    {"1.6 Tb/s", DIM_BANDWIDTH, 200e9},
    {"40 ps", DIM_TIME, 40e-12},
    {"700 ns", DIM_TIME, 7e-7},
    {"0.7 us", DIM_TIME, 7e-7},
    {"4.5 \xC2\xB5s", DIM_TIME, 4.5e-6},
    {"4.5\xCE\xBCs", DIM_TIME, 4.5e-6},
    {"12ms", DIM_TIME, 12e-3},
    {"2.385 s", DIM_TIME, 2.385},
    {"1.5 min", DIM_TIME, 90},
    {"2 h", DIM_TIME, 7200},
    {"-3 ms", DIM_TIME, -3e-3},
    {"5 FLOPS", DIM_FLOP_RATE, 5},
    {"67 TFLOPS", DIM_FLOP_RATE, 67e12},
    {"989.4 TFLOP/s", DIM_FLOP_RATE, 989.4e12},
    {"1.979 PFLOPS", DIM_FLOP_RATE, 1.979e15},
    {"3 GFLOP/s", DIM_FLOP_RATE, 3e9},
    {"50 Hz", DIM_FREQUENCY, 50},
    {"2 kHz", DIM_FREQUENCY, 2e3},
    {"1980 MHz", DIM_FREQUENCY, 1.98e9},
    {"1.98 GHz", DIM_FREQUENCY, 1.98e9},
    {"700 W", DIM_POWER, 700},
    {"10.2 kW", DIM_POWER, 10200},
    {"1.5 MW", DIM_POWER, 1.5e6},
    {"1e-3 GB/s", DIM_BANDWIDTH, 1e6},
    {"15T", DIM_TOKENS, 15e12},
    {"1.4 T tokens", DIM_TOKENS, 1.4e12},
    {"300B", DIM_TOKENS, 3e11},
    {"300 G", DIM_TOKENS, 3e11},
    {"26M", DIM_TOKENS, 26e6},
    {"7k tokens", DIM_TOKENS, 7e3},
    {"512 tokens", DIM_TOKENS, 512},
    {"2000000", DIM_TOKENS, 2e6},
};

static void test_values(void)
{
    for (size_t r = 0; r < sizeof(value_rows) / sizeof(value_rows[0]); r++) {
        double value = -1;
        check_context("'%s'", value_rows[r].text);
        CHECK_INT(units_parse(value_rows[r].text, value_rows[r].dimension, &value, NULL), UNIT_OK);
        CHECK_NEAR(value, value_rows[r].expected, 0);
    }
    check_context(NULL);
}

static const struct {
    const char *text;
    enum dimension dimension;
    enum unit_error expected;
} error_rows[] = {
    {"", DIM_TIME, UNIT_NOT_A_NUMBER},
    {" 5 s", DIM_TIME, UNIT_NOT_A_NUMBER},
    {"fast", DIM_TIME, UNIT_NOT_A_NUMBER},
    {"nan", DIM_NONE, UNIT_NOT_A_NUMBER},
    {".inf", DIM_NONE, UNIT_NOT_A_NUMBER},
    {"-inf s", DIM_TIME, UNIT_NOT_A_NUMBER},
    {"0x10", DIM_NONE, UNIT_NOT_A_NUMBER},
    {"0xA GB", DIM_BYTES, UNIT_NOT_A_NUMBER},
    {"0o17", DIM_NONE, UNIT_NOT_A_NUMBER},
    {"017", DIM_NONE, UNIT_NOT_A_NUMBER},
    {"-08 ms", DIM_TIME, UNIT_NOT_A_NUMBER},
    {"+5 ms", DIM_TIME, UNIT_NOT_A_NUMBER},
    {"1_000 B", DIM_BYTES, UNIT_NOT_A_NUMBER},
    {"1,5 GB", DIM_BYTES, UNIT_NOT_A_NUMBER},
    {"1.2.3", DIM_NONE, UNIT_NOT_A_NUMBER},
    {".5 s", DIM_TIME, UNIT_NOT_A_NUMBER},
    {"5. s", DIM_TIME, UNIT_NOT_A_NUMBER},
    {"--5 s", DIM_TIME, UNIT_NOT_A_NUMBER},
    {"5 ", DIM_NONE, UNIT_NOT_A_NUMBER},
    {"5%", DIM_NONE, UNIT_NOT_A_NUMBER},
    {"400", DIM_BANDWIDTH, UNIT_MISSING},
    {"400 ", DIM_BANDWIDTH, UNIT_MISSING},
    {"1e9", DIM_BYTES, UNIT_MISSING},
    {"400 gbps", DIM_BANDWIDTH, UNIT_UNKNOWN},
    {"400 GBps", DIM_BANDWIDTH, UNIT_UNKNOWN},
    {"5 KB", DIM_BYTES, UNIT_UNKNOWN},
    {"5 kiB", DIM_BYTES, UNIT_UNKNOWN},
    {"5 GB ", DIM_BYTES, UNIT_UNKNOWN},
    {"5 sec", DIM_TIME, UNIT_UNKNOWN},
    {"5 Ms", DIM_TIME, UNIT_UNKNOWN},
    {"5 kmin", DIM_TIME, UNIT_UNKNOWN},
    {"5e", DIM_NONE, UNIT_UNKNOWN},
    {"400 Gb", DIM_BANDWIDTH, UNIT_MISFIT},
    {"400 Gbit", DIM_BANDWIDTH, UNIT_MISFIT},
    {"400 GB", DIM_BANDWIDTH, UNIT_MISFIT},
    {"8 Gib", DIM_BYTES, UNIT_MISFIT},
    {"8 b", DIM_BYTES, UNIT_MISFIT},
    {"5 s", DIM_BANDWIDTH, UNIT_MISFIT},
    {"5 GB", DIM_NONE, UNIT_MISFIT},
    {"15 GB", DIM_TOKENS, UNIT_MISFIT},
    {"15 s", DIM_TOKENS, UNIT_MISFIT},
    {"15 Q", DIM_TOKENS, UNIT_UNKNOWN},
    {"15 token", DIM_TOKENS, UNIT_UNKNOWN},
    {"15 ", DIM_TOKENS, UNIT_NOT_A_NUMBER},
    {"1_5", DIM_TOKENS, UNIT_NOT_A_NUMBER},
    {"15T", DIM_BYTES, UNIT_UNKNOWN},
    {"1e300 T", DIM_TOKENS, UNIT_OVERFLOW},
    {"1e400", DIM_NONE, UNIT_OVERFLOW},
    {"1e300 PB", DIM_BYTES, UNIT_OVERFLOW},
    {"1e99999999999999999999 s", DIM_TIME, UNIT_OVERFLOW},
};

static void test_errors(void)
{
    for (size_t r = 0; r < sizeof(error_rows) / sizeof(error_rows[0]); r++) {
        double value = 0;
        check_context("'%s'", error_rows[r].text);
        CHECK_INT(units_parse(error_rows[r].text, error_rows[r].dimension, &value, NULL),
                  error_rows[r].expected);
    }
    check_context(NULL);
}

static void test_unit_start(void)
{
    double value = 0;
    size_t start = 99;
    CHECK_INT(units_parse("400 Gb", DIM_BANDWIDTH, &value, &start), UNIT_MISFIT);
    CHECK_INT(start, 4);
    CHECK_INT(units_parse("400", DIM_BANDWIDTH, &value, &start), UNIT_MISSING);
    CHECK_INT(start, 3);
    CHECK_INT(units_parse("x", DIM_BANDWIDTH, &value, &start), UNIT_NOT_A_NUMBER);
    CHECK_INT(start, 0);
}

/* What the hint of an error offers must be accepted. */
static void test_every_dimension_has_words(void)
{
    static const enum dimension all[] = {DIM_NONE,      DIM_BYTES,     DIM_BANDWIDTH, DIM_TIME,
                                         DIM_FLOP_RATE, DIM_FREQUENCY, DIM_POWER};
    static const char *const names[] = {"number",    "bytes",     "bandwidth", "time",
                                        "FLOP rate", "frequency", "power"};
    static const char *const offered[] = {"a number", "GiB", "Gb/s", "\xC2\xB5s",
                                          "TFLOP/s",  "GHz", "kW"};
    for (size_t d = 0; d < sizeof(all) / sizeof(all[0]); d++) {
        char text[32];
        double value = 0;
        CHECK_TEXT(dimension_name(all[d]), names[d]);
        CHECK_CONTAINS(units_accepted(all[d]), offered[d]);
        snprintf(text, sizeof(text), "2 %s", offered[d]);
        if (all[d] != DIM_NONE)
            CHECK_INT(units_parse(text, all[d], &value, NULL), UNIT_OK);
    }
}

static void test_ps_from_s(void)
{
    static const struct {
        double seconds;
        int64_t expected_ps;
    } rows[] = {
        {0, 0},
        {0.01, INT64_C(10000000000)}, /* 0.01 s is not exact in binary */
        {2.385, INT64_C(2385000000000)},
        {7e-7, 700000},
        {1e-12, 1},
        {1e-13, 1}, /* up */
        {1.25e-12, 2},
        {3.0000001e-6, 3000001},
        {3.0000000000001e-6, 3000000}, /* 3.3e-14 above: rounding, not time */
        {1e300, INT64_MAX / 4},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        check_context("%g s", rows[r].seconds);
        CHECK_INT(ps_from_s(rows[r].seconds), rows[r].expected_ps);
    }
    check_context(NULL);
    /* All milliseconds up to 100 s come out whole. */
    for (int64_t ms = 1; ms <= 100000; ms += 7)
        CHECK_INT(ps_from_s((double)ms / 1000), ms * 1000000000);
    CHECK_NEAR(s_from_ps(INT64_C(2385000000000)), 2.385, 0);
}

static void test_text_to_double(void)
{
    static const struct {
        const char *text;
        double expected;
    } good[] = {
        {"0", 0},
        {"-0.0", 0},
        {"1e-05", 1e-5},
        {"500000.0", 5e5},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"5e-324", 5e-324},
        {"0.00000000000000000000000000000000000000000000000000000000000000000001", 1e-68},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"9007199254740993", 9007199254740992.0},
    };
    static const char *const bad[] = {"",    " 1",  "1 ",  "+1",  "01",  "1.",    ".1",      "1e",
                                      "1e+", "0x1", "nan", "1_0", "1,0", "1e999", "infinity"};
    for (size_t r = 0; r < sizeof(good) / sizeof(good[0]); r++) {
        double value = -1;
        check_context("'%s'", good[r].text);
        CHECK_TRUE(text_to_double(good[r].text, &value));
        CHECK_NEAR(value, good[r].expected, 0);
    }
    for (size_t r = 0; r < sizeof(bad) / sizeof(bad[0]); r++) {
        double value = -1;
        check_context("'%s'", bad[r]);
        CHECK_TRUE(!text_to_double(bad[r], &value));
    }
    check_context(NULL);
}

static void test_text_to_int64(void)
{
    static const struct {
        const char *text;
        int64_t expected;
    } good[] = {{"0", 0},
                {"-7", -7},
                {"128256", 128256},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {"",
                                      "-",
                                      "+7",
                                      "007",
                                      "0x7",
                                      "1_000",
                                      "1e3",
                                      "7.0",
                                      " 7",
                                      "7 ",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
    for (size_t r = 0; r < sizeof(good) / sizeof(good[0]); r++) {
        int64_t value = -1;
        check_context("'%s'", good[r].text);
        CHECK_TRUE(text_to_int64(good[r].text, &value));
        CHECK_INT(value, good[r].expected);
    }
    for (size_t r = 0; r < sizeof(bad) / sizeof(bad[0]); r++) {
        int64_t value = -1;
        check_context("'%s'", bad[r]);
        CHECK_TRUE(!text_to_int64(bad[r], &value));
    }
    check_context(NULL);
}

const struct check_case units_cases[] = {
    {"values", test_values},
    {"errors", test_errors},
    {"where the unit starts", test_unit_start},
    {"every dimension has words", test_every_dimension_has_words},
    {"seconds to picoseconds", test_ps_from_s},
    {"text to double", test_text_to_double},
    {"text to int64", test_text_to_int64},
    {0}};
