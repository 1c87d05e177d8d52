/* tests/unit/base/test_philox.c: known answers are Random123's kat_vectors, philox4x32 with 10. */
#include "base/philox.h"

#include <stddef.h>

#include "suites.h"

static void test_known_answers(void)
{
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        uint32_t out[4];
        philox4x32(rows[r].counter, rows[r].key, out);
        for (int i = 0; i < 4; i++)
            CHECK_U64(out[i], rows[r].expected[i]);
    }
}

static void test_streams_differ(void)
{
    struct philox base, other[4];
    philox_init(&base, 11, 3, 5, 7);
    philox_init(&other[0], 12, 3, 5, 7);
    philox_init(&other[1], 11, 4, 5, 7);
    philox_init(&other[2], 11, 3, 6, 7);
    philox_init(&other[3], 11, 3, 5, 8);
    const uint64_t first = philox_u64(&base);
    for (int i = 0; i < 4; i++)
        CHECK_TRUE(philox_u64(&other[i]) != first);
    philox_init(&base, 11, 3, 5, 7);
    CHECK_U64(philox_u64(&base), first);
}

/* Any number by its index: what drawing one after the other gives. */
static void test_by_index(void)
{
    struct philox stream, again;
    philox_init(&stream, 11, 3, 5, 7);
    again = stream;
    for (uint64_t i = 0; i < 9; i++)
        CHECK_U64(philox_u64_at(&again, i), philox_u64(&stream));
    stream = again;
    stream.counter[1] = 6; /* blocks of two */
    CHECK_U64(philox_u64_at(&again, UINT64_C(6) << 33), philox_u64(&stream));
}

static void test_carry_of_the_index(void)
{
    struct philox stream;
    philox_init(&stream, 1, 0, 0, 0);
    stream.counter[0] = UINT32_MAX;
    philox_u32(&stream);
    CHECK_INT(stream.counter[0], 0);
    CHECK_INT(stream.counter[1], 1);
    CHECK_INT(stream.counter[2], 0);
}

/* Mean 1/2 and variance 1/12 of 200,000 numbers; 5 standard errors are 0.0032 and 0.0008. */
static void test_unit_is_uniform(void)
{
    enum { COUNT = 200000 };
    struct philox stream;
    double sum = 0, squares = 0;
    bool is_inside = true;
    philox_init(&stream, 2026, 0, 0, 0);
    for (int i = 0; i < COUNT; i++) {
        const double x = philox_unit(&stream);
        is_inside = is_inside && x >= 0 && x < 1;
        sum += x;
        squares += x * x;
    }
    const double mean = sum / COUNT;
    CHECK_TRUE(is_inside);
    CHECK_NEAR(mean, 0.5, 0.0064);
    CHECK_NEAR(squares / COUNT - mean * mean, 1.0 / 12, 0.01);
}

/* Each of 7 faces within 5 standard deviations (5 · sqrt(70,000 · 6/49) = 463) of 10,000. */
static void test_below_is_unbiased(void)
{
    int64_t seen[7] = {0};
    struct philox stream;
    philox_init(&stream, 2027, 0, 0, 0);
    for (int i = 0; i < 70000; i++)
        seen[philox_below(&stream, 7)]++;
    for (int i = 0; i < 7; i++)
        CHECK_NEAR((double)seen[i], 10000, 0.0463);
    for (int i = 0; i < 100; i++)
        CHECK_INT(philox_below(&stream, 1), 0);
    /* 3/4 of the range: without the repeats, low halves would come twice as often. */
    int64_t low = 0;
    for (int i = 0; i < 40000; i++)
        low += philox_below(&stream, UINT32_C(0xC0000000)) < UINT32_C(0x60000000) ? 1 : 0;
    CHECK_NEAR((double)low, 20000, 0.025);
}

const struct check_case philox_cases[] = {{"known answers", test_known_answers},
                                          {"streams differ", test_streams_differ},
                                          {"by index", test_by_index},
                                          {"carry of the index", test_carry_of_the_index},
                                          {"unit is uniform", test_unit_is_uniform},
                                          {"below is unbiased", test_below_is_unbiased},
                                          {0}};
