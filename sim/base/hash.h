/*
 * base/hash.h: 128-bit content hash (two independent 64-bit lanes, MurmurHash3 finalisers over
 * FNV-1a style mixing; not cryptographic) and the 64-bit running fingerprint of the event
 * trajectory. Integers are fed as values, so the result does not depend on byte order or struct
 * padding.
 */
#ifndef FSDPSIM_BASE_HASH_H
#define FSDPSIM_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash128 {
    uint64_t high, low;
};

void hash128_init(struct hash128 *hash);
void hash128_bytes(struct hash128 *hash, const void *bytes, size_t count);
void hash128_text(struct hash128 *hash, const char *text); /* length is mixed in */
void hash128_u64(struct hash128 *hash, uint64_t value);
void hash128_double(struct hash128 *hash, double value); /* its bits */
struct hash128 hash128_done(struct hash128 hash);
static inline bool hash128_equal(struct hash128 a, struct hash128 b)
{
    return a.high == b.high && a.low == b.low;
}
/* 32 hexadecimal digits and NUL. */
void hash128_format(struct hash128 hash, char out[33]);

static inline uint64_t hash64_mix(uint64_t hash, uint64_t value)
{
    uint64_t x = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 29);
}

#endif
