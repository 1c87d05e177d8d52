/* base/philox.c: see philox.h. */
#include "base/philox.h"

#include "base/hash.h"

enum { ROUNDS = 10 };

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t a = (uint64_t)x0 * UINT32_C(0xD2511F53);
        const uint64_t b = (uint64_t)x2 * UINT32_C(0xCD9E8D57);
        x0 = (uint32_t)(b >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)b;
        x2 = (uint32_t)(a >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)a;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

void philox_init(struct philox *stream, uint64_t seed, uint32_t point, uint32_t rank,
                 uint32_t purpose)
{
    /* hash64_mix is a bijection of its second argument: the purposes of one seed never collide. */
    const uint64_t key = hash64_mix(seed, purpose);
    *stream = (struct philox){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)}, .counter = {0, 0, rank, point}, .used = 4};
}

uint32_t philox_u32(struct philox *stream)
{
    if (stream->used == 4) {
        philox4x32(stream->counter, stream->key, stream->block);
        stream->used = 0;
        stream->counter[0]++;
        if (stream->counter[0] == 0)
            stream->counter[1]++;
    }
    return stream->block[stream->used++];
}

uint64_t philox_u64(struct philox *stream)
{
    const uint64_t low = philox_u32(stream);
    return low | (uint64_t)philox_u32(stream) << 32;
}

uint64_t philox_u64_at(const struct philox *stream, uint64_t index)
{
    const uint64_t block = index / 2;
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), stream->counter[2],
                                 stream->counter[3]};
    uint32_t out[4];
    philox4x32(counter, stream->key, out);
    const uint32_t *half = &out[index % 2 * 2];
    return half[0] | (uint64_t)half[1] << 32;
}

double philox_unit(struct philox *stream)
{
    return (double)(philox_u64(stream) >> 11) * 0x1p-53;
}

uint32_t philox_below(struct philox *stream, uint32_t n)
{
    /* The high word of a product; draws in the incomplete last interval are repeated (Lemire,
       "Fast random integer generation in an interval", ACM TOMACS 29, 2019). */
    const uint32_t threshold = (UINT32_MAX - n + 1) % n;
    for (;;) {
        const uint64_t product = (uint64_t)philox_u32(stream) * n;
        if ((uint32_t)product >= threshold)
            return (uint32_t)(product >> 32);
    }
}
