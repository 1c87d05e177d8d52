/*
 * machine/allocator.h: PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, 2.x).
 *
 * Sizes are rounded up to 512 B. Each stream has a pool of small blocks (requests up to 1 MiB) and
 * one of large blocks; a free block serves requests of its own pool only. A request takes the
 * smallest free block that holds it (of equal ones that of the lowest address); what is left over
 * is split off when it is at least 512 B (small) or more than 1 MiB (large). When none fits a
 * segment is asked of the driver:
 *
 *   request        ≤ 1 MiB    < 10 MiB    more
 *   segment        2 MiB      20 MiB      the request, rounded up to 2 MiB
 *
 * A freed block merges with free neighbours of its segment. Segments go back to the driver only by
 * allocator_release_cached (what PyTorch does when the driver has no more), those that are wholly
 * free. Reserved is the sum of all segments.
 *
 * expandable_segments: one segment a pool, without an end, of which pages of 2 MiB (small) or 20
 * MiB (large) are mapped as needed; what is left over of a block is always split off; releasing
 * unmaps the pages that lie wholly in free blocks. max_split_size: no block of that size or more is
 * split, and none serves a smaller request, or one that is 20 MiB smaller. roundup_power2_divisions
 * n: requests over n·512 B are rounded up to one of n steps between two powers of two.
 *
 * Example: 3 MiB, then 12 MiB, then 3 MiB on one stream: a segment of 20 MiB, one of 12 MiB, and
 * the second 3 MiB out of the first: reserved 32 MiB, active 18 MiB.
 *
 * Cost: a search by bisection; inserting moves pointers of the free blocks behind, of which a
 * training step has some hundred.
 *
 * Left out: garbage_collection_threshold, private pools (CUDA graphs), and with max_split_size the
 * release of single oversize blocks before that of all. Addresses of segments rise in the order in
 * which they were asked for.
 */
#ifndef FSDPSIM_MACHINE_ALLOCATOR_H
#define FSDPSIM_MACHINE_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* As PYTORCH_CUDA_ALLOC_CONF names them. */
struct allocator_settings {
    bool expandable_segments;
    int64_t max_split_size_bytes;     /* 0: no limit */
    int64_t roundup_power2_divisions; /* a power of two; 0, 1: off */
};

struct memory_block;

/* Calls of the driver, since the beginning. */
struct driver_calls {
    int64_t malloc_count, malloc_bytes, free_count, free_bytes;
};

struct allocator {
    int64_t limit_bytes; /* of what is reserved; INT64_MAX: none */
    int64_t reserved_bytes;
    int64_t used_bytes; /* blocks in use, whole */
    struct driver_calls calls;
    struct arena *arena;
    struct allocator_settings settings;
    struct memory_pool *pools; /* by stream, small before large */
    int32_t stream_count;
    struct memory_block *spare; /* structs to use again */
    int64_t next_address;
};

void allocator_init(struct allocator *allocator, struct arena *arena,
                    const struct allocator_settings *settings, int32_t stream_count);
/* NULL: a new segment would exceed the limit. bytes at least 1. */
struct memory_block *allocator_malloc(struct allocator *allocator, int32_t stream, int64_t bytes);
void allocator_free(struct allocator *allocator, struct memory_block *block);
/* Gives back all that can be given back. */
void allocator_release_cached(struct allocator *allocator);

/* What a request of so many bytes takes: 1,537 → 2,048. */
int64_t allocator_round(const struct allocator_settings *settings, int64_t bytes);

/* For tests: a block's size and place; those of one segment lie side by side. */
int64_t memory_block_bytes(const struct memory_block *block);
int64_t memory_block_address(const struct memory_block *block);

#endif
