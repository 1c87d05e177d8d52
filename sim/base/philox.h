/*
 * base/philox.h: counter-based random numbers, Philox4x32-10.
 *
 * Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A stream is
 * named by (seed, point, rank, purpose); the i-th number of a stream is a pure function of those
 * and i, so results do not depend on workers, shards or order. Known-answer vectors from the
 * paper's reference implementation are in the unit test.
 */
#ifndef FSDPSIM_BASE_PHILOX_H
#define FSDPSIM_BASE_PHILOX_H

#include <stdint.h>

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

struct philox {
    uint32_t key[2];     /* seed and purpose, mixed */
    uint32_t counter[4]; /* [0..1] the running index, [2] rank, [3] point */
    uint32_t block[4];
    uint32_t used; /* numbers of block handed out, 4: none left */
};

void philox_init(struct philox *stream, uint64_t seed, uint32_t point, uint32_t rank,
                 uint32_t purpose);
uint32_t philox_u32(struct philox *stream);
uint64_t philox_u64(struct philox *stream);
/* The number that the (index + 1)-th philox_u64 of a new stream returns, whatever was drawn. */
uint64_t philox_u64_at(const struct philox *stream, uint64_t index);
double philox_unit(struct philox *stream);                /* [0, 1), 53 bits */
uint32_t philox_below(struct philox *stream, uint32_t n); /* [0, n), unbiased, n > 0 */

#endif
