/* tests/unit/base/test_hash.c */
#include "base/hash.h"

#include <string.h>

#include "suites.h"

static struct hash128 hash_of(const char *text)
{
    struct hash128 hash;
    hash128_init(&hash);
    hash128_bytes(&hash, text, strlen(text));
    return hash128_done(hash);
}

static void test_pieces(void)
{
    struct hash128 hash;
    hash128_init(&hash);
    hash128_bytes(&hash, "reduce", 6);
    hash128_bytes(&hash, "", 0);
    hash128_bytes(&hash, "_scatter", 8);
    const struct hash128 whole = hash_of("reduce_scatter");
    hash = hash128_done(hash);
    CHECK_U64(hash.high, whole.high);
    CHECK_U64(hash.low, whole.low);
}

static void test_values_are_little_endian_bytes(void)
{
    struct hash128 hash;
    hash128_init(&hash);
    hash128_u64(&hash, UINT64_C(0x6867666564636261));
    hash = hash128_done(hash);
    CHECK_U64(hash.high, hash_of("abcdefgh").high);
    CHECK_U64(hash.low, hash_of("abcdefgh").low);
}

static void test_length_is_mixed_in(void)
{
    struct hash128 a, b;
    hash128_init(&a);
    hash128_init(&b);
    hash128_text(&a, "ab");
    hash128_text(&a, "c");
    hash128_text(&b, "a");
    hash128_text(&b, "bc");
    CHECK_TRUE(hash128_done(a).high != hash128_done(b).high);
    CHECK_TRUE(hash128_done(a).low != hash128_done(b).low);
}

/* 65,536 neighbours: no lane repeats, and a changed input bit changes half of the output bits. */
static void test_neighbours(void)
{
    int64_t flipped = 0;
    for (uint64_t i = 0; i < 65536; i++) {
        struct hash128 a, b;
        hash128_init(&a);
        hash128_init(&b);
        hash128_u64(&a, i);
        hash128_u64(&b, i ^ (UINT64_C(1) << (i % 64)));
        a = hash128_done(a);
        b = hash128_done(b);
        flipped += __builtin_popcountll(a.high ^ b.high) + __builtin_popcountll(a.low ^ b.low);
    }
    CHECK_NEAR((double)flipped / 65536, 64, 0.01);
}

static void test_format(void)
{
    char text[33];
    hash128_format((struct hash128){UINT64_C(0x0123456789abcdef), 42}, text);
    CHECK_TEXT(text, "0123456789abcdef000000000000002a");
}

static void test_mix_depends_on_order(void)
{
    CHECK_TRUE(hash64_mix(hash64_mix(0, 3), 5) != hash64_mix(hash64_mix(0, 5), 3));
    CHECK_U64(hash64_mix(0, 0), 0);
}

const struct check_case hash_cases[] = {
    {"pieces", test_pieces},
    {"values are little-endian bytes", test_values_are_little_endian_bytes},
    {"length is mixed in", test_length_is_mixed_in},
    {"neighbours", test_neighbours},
    {"format", test_format},
    {"mix depends on order", test_mix_depends_on_order},
    {0}};
