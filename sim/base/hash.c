/* base/hash.c: see hash.h. */
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a offset basis and prime; the second lane rotates first and has a multiplier of its own. */
static const uint64_t high_basis = UINT64_C(0xcbf29ce484222325);
static const uint64_t high_prime = UINT64_C(0x00000100000001b3);
static const uint64_t low_basis = UINT64_C(0x9ae16a3b2f90404f);
static const uint64_t low_prime = UINT64_C(0x9fb21c651e98df25);

static inline uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline void feed(struct hash128 *hash, unsigned char byte)
{
    hash->high = (hash->high ^ byte) * high_prime;
    hash->low = (rotate_left(hash->low, 23) ^ byte) * low_prime;
}

void hash128_init(struct hash128 *hash)
{
    hash->high = high_basis;
    hash->low = low_basis;
}

void hash128_bytes(struct hash128 *hash, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++)
        feed(hash, byte[i]);
}

void hash128_u64(struct hash128 *hash, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        feed(hash, (unsigned char)(value >> (8 * i)));
}

void hash128_text(struct hash128 *hash, const char *text)
{
    const size_t length = strlen(text);
    hash128_u64(hash, length);
    hash128_bytes(hash, text, length);
}

/* MurmurHash3's 64-bit finaliser (fmix64). */
static uint64_t finalise(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

void hash128_double(struct hash128 *hash, double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    hash128_u64(hash, bits);
}

struct hash128 hash128_done(struct hash128 hash)
{
    hash.high = finalise(hash.high);
    hash.low = finalise(hash.low);
    hash.high += hash.low;
    hash.low += hash.high;
    return hash;
}

void hash128_format(struct hash128 hash, char out[33])
{
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}
