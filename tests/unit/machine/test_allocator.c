/*
 * tests/unit/machine/test_allocator.c: segments worked out by hand from the rules of PyTorch's
 * caching allocator (fsdp_semantics.md 115; the constants of c10/cuda/CUDACachingAllocator.cpp).
 */
#include "machine/allocator.h"

#include "check.h"
#include "suites.h"

static const int64_t kib = 1024, mib = INT64_C(1) << 20;

struct fixture {
    struct arena arena;
    struct allocator allocator;
};

static void begin(struct fixture *fixture, struct allocator_settings settings, int32_t streams)
{
    *fixture = (struct fixture){0};
    allocator_init(&fixture->allocator, &fixture->arena, &settings, streams);
}

static struct memory_block *take(struct fixture *fixture, int32_t stream, int64_t bytes)
{
    return allocator_malloc(&fixture->allocator, stream, bytes);
}

static void give(struct fixture *fixture, struct memory_block *block)
{
    allocator_free(&fixture->allocator, block);
}

static void holds(const struct fixture *fixture, int64_t reserved, int64_t used)
{
    CHECK_INT(fixture->allocator.reserved_bytes, reserved);
    CHECK_INT(fixture->allocator.used_bytes, used);
}

static void test_rounding(void)
{
    const struct allocator_settings plain = {0}, four = {.roundup_power2_divisions = 4};
    static const int64_t rows[][3] = {/* bytes, plain, four steps between powers of two */
                                      {1, 512, 512},
                                      {1537, 2048, 2048},
                                      {2049, 2560, 2560},
                                      {1200 * 1024, 1200 * 1024, 1280 * 1024},
                                      {1048576, 1048576, 1048576},
                                      {1048577, 1049088, 1310720}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(allocator_round(&plain, rows[i][0]), rows[i][1]);
        CHECK_INT(allocator_round(&four, rows[i][0]), rows[i][2]);
    }
}

/* Small requests share segments of 2 MiB; what is left of 512 B or more is split off. */
static void test_small(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){0}, 1);
    struct memory_block *first = take(&f, 0, 1000);
    CHECK_INT(memory_block_bytes(first), 1024);
    holds(&f, 2 * mib, 1024);
    struct memory_block *whole = take(&f, 0, mib);
    holds(&f, 2 * mib, mib + 1024);
    /* 1 MiB - 1 KiB are left. */
    take(&f, 0, mib - 512);
    holds(&f, 4 * mib, 2 * mib + 512);
    give(&f, first);
    give(&f, whole);
    /* The two are neighbours and behind them the rest of the segment: all is one block again. The
       next takes the 1 MiB + 512 B of the second segment, which fit better. */
    CHECK_TRUE(memory_block_address(take(&f, 0, mib)) > 0);
    CHECK_INT(memory_block_address(take(&f, 0, mib)), 0);
    holds(&f, 4 * mib, 3 * mib - 512);
    arena_release(&f.arena);
}

/* 1 to 10 MiB share 20 MiB; from 10 MiB a segment of its own, in steps of 2 MiB. */
static void test_large(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){0}, 1);
    take(&f, 0, mib + 1);
    holds(&f, 20 * mib, mib + 512);
    take(&f, 0, 10 * mib - 512);
    holds(&f, 20 * mib, 11 * mib);
    take(&f, 0, 10 * mib);
    holds(&f, 30 * mib, 21 * mib);
    /* 13 MiB + 1: 14 MiB, of which less than 1 MiB is left: not split. */
    struct memory_block *unsplit = take(&f, 0, 13 * mib + 1);
    CHECK_INT(memory_block_bytes(unsplit), 14 * mib);
    holds(&f, 44 * mib, 35 * mib);
    arena_release(&f.arena);
}

/* A remainder of exactly 1 MiB stays, one of 512 B more is split off. */
static void test_split(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){0}, 1);
    struct memory_block *block = take(&f, 0, 12 * mib);
    give(&f, block);
    block = take(&f, 0, 11 * mib);
    CHECK_INT(memory_block_bytes(block), 12 * mib);
    give(&f, block);
    block = take(&f, 0, 11 * mib - 512);
    CHECK_INT(memory_block_bytes(block), 11 * mib - 512);
    holds(&f, 12 * mib, 11 * mib - 512);
    arena_release(&f.arena);
}

/* The smallest free block that holds the request; of equal ones the first. */
static void test_best_fit(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){0}, 1);
    struct memory_block *blocks[4];
    static const int64_t sizes[4] = {40, 16, 24, 16};
    for (int i = 0; i < 4; i++)
        blocks[i] = take(&f, 0, sizes[i] * mib);
    const int64_t second = memory_block_address(blocks[1]);
    const int64_t third = memory_block_address(blocks[2]);
    for (int i = 0; i < 4; i++)
        give(&f, blocks[i]);
    CHECK_INT(memory_block_address(take(&f, 0, 15 * mib)), second);
    CHECK_INT(memory_block_address(take(&f, 0, 17 * mib)), third);
    /* 41 MiB fit nowhere, though 63 MiB are free. */
    take(&f, 0, 41 * mib);
    CHECK_INT(f.allocator.reserved_bytes, (96 + 42) * mib);
    arena_release(&f.arena);
}

/* Blocks merge inside their segment and never over its end. */
static void test_coalescing(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){0}, 1);
    struct memory_block *a = take(&f, 0, 6 * mib), *b = take(&f, 0, 6 * mib);
    struct memory_block *c = take(&f, 0, 6 * mib);
    holds(&f, 20 * mib, 18 * mib);
    give(&f, a);
    give(&f, c); /* with the 2 MiB behind it: 8 MiB */
    take(&f, 0, 7 * mib);
    holds(&f, 20 * mib, 14 * mib); /* all 8: 1 MiB is not split off */
    give(&f, b);                   /* with the 6 MiB before it: 12 MiB */
    CHECK_INT(memory_block_address(take(&f, 0, 12 * mib)), 0);
    holds(&f, 20 * mib, 20 * mib);
    arena_release(&f.arena);
}

/* What one stream freed serves no other. */
static void test_streams(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){0}, 2);
    give(&f, take(&f, 0, 64 * mib));
    take(&f, 1, 64 * mib);
    CHECK_INT(f.allocator.reserved_bytes, 128 * mib);
    take(&f, 0, 64 * mib);
    holds(&f, 128 * mib, 128 * mib);
    arena_release(&f.arena);
}

/* Only what is wholly free goes back to the driver. */
static void test_release(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){0}, 2);
    f.allocator.limit_bytes = 100 * mib;
    struct memory_block *held = take(&f, 0, 6 * mib);
    give(&f, take(&f, 1, 64 * mib));
    CHECK_TRUE(take(&f, 0, 17 * mib) == NULL);
    allocator_release_cached(&f.allocator);
    holds(&f, 20 * mib, 6 * mib);
    CHECK_INT(f.allocator.calls.malloc_count, 2);
    CHECK_INT(f.allocator.calls.free_count, 1);
    CHECK_INT(f.allocator.calls.free_bytes, 64 * mib);
    CHECK_TRUE(take(&f, 0, 79 * mib) != NULL); /* 80 MiB */
    holds(&f, 100 * mib, 86 * mib);            /* unsplit: 1 MiB is left */
    give(&f, held);
    arena_release(&f.arena);
}

/* One segment a pool, mapped in pages of 20 MiB, that grows instead of leaving holes. */
static void test_expandable(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){.expandable_segments = true}, 1);
    struct memory_block *a = take(&f, 0, 12 * mib);
    holds(&f, 20 * mib, 12 * mib);
    struct memory_block *b = take(&f, 0, 12 * mib); /* 8 MiB are there, a page is added */
    holds(&f, 40 * mib, 24 * mib);
    CHECK_INT(memory_block_address(b), 12 * mib);
    give(&f, a);
    give(&f, b);
    take(&f, 0, 47 * mib); /* plain segments would be 12, 12 and 48 */
    holds(&f, 60 * mib, 47 * mib);
    take(&f, 0, 100);
    holds(&f, 62 * mib, 47 * mib + 512);
    arena_release(&f.arena);
}

/* A block at the end can grow, so a request takes another one that holds it. */
static void test_expandable_fit(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){.expandable_segments = true}, 1);
    struct memory_block *a = take(&f, 0, 30 * mib);
    take(&f, 0, 2 * mib);
    struct memory_block *c = take(&f, 0, 8 * mib);
    CHECK_INT(f.allocator.reserved_bytes, 40 * mib);
    give(&f, a);
    give(&f, c);
    /* 8 MiB would fit better, but could become any size. */
    CHECK_INT(memory_block_address(take(&f, 0, 7 * mib)), 0);
    arena_release(&f.arena);
}

/* Pages that lie wholly in free blocks are unmapped, and the hole is the first to be used. */
static void test_expandable_release(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){.expandable_segments = true}, 1);
    struct memory_block *a = take(&f, 0, 70 * mib);
    struct memory_block *b = take(&f, 0, 10 * mib);
    holds(&f, 80 * mib, 80 * mib);
    give(&f, a);
    allocator_release_cached(&f.allocator); /* of 0 to 70 the pages 0 to 60 */
    holds(&f, 20 * mib, 10 * mib);
    CHECK_INT(f.allocator.calls.free_count, 3);
    CHECK_INT(memory_block_address(take(&f, 0, 55 * mib)), 0);
    holds(&f, 80 * mib, 65 * mib);
    give(&f, b);
    arena_release(&f.arena);
}

/* No block of 64 MiB or more is split, nor serves a smaller request. */
static void test_max_split(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){.max_split_size_bytes = 64 * mib}, 1);
    struct memory_block *block = take(&f, 0, 100 * mib);
    give(&f, block);
    take(&f, 0, 40 * mib);
    CHECK_INT(f.allocator.reserved_bytes, 140 * mib);
    block = take(&f, 0, 81 * mib); /* within 20 MiB: whole */
    CHECK_INT(memory_block_bytes(block), 100 * mib);
    give(&f, block);
    take(&f, 0, 80 * mib); /* 20 MiB smaller: not this one */
    CHECK_INT(f.allocator.reserved_bytes, 220 * mib);
    arena_release(&f.arena);
}

/* Used again, structs and memory: nothing grows over a thousand equal steps. */
static void test_steady(void)
{
    struct fixture f;
    begin(&f, (struct allocator_settings){0}, 1);
    size_t used = 0;
    for (int step = 0; step < 1000; step++) {
        struct memory_block *a = take(&f, 0, 700 * kib), *b = take(&f, 0, 3 * mib);
        struct memory_block *c = take(&f, 0, 33 * mib);
        give(&f, b);
        give(&f, a);
        give(&f, c);
        if (step == 1)
            used = f.arena.used_bytes;
    }
    CHECK_INT(f.arena.used_bytes, used);
    holds(&f, (2 + 20 + 34) * mib, 0);
    CHECK_INT(f.allocator.calls.malloc_count, 3);
    arena_release(&f.arena);
}

const struct check_case allocator_cases[] = {
    {"sizes are rounded", test_rounding},
    {"small blocks share 2 MiB", test_small},
    {"large ones 20 MiB, or have their own", test_large},
    {"what is split off", test_split},
    {"best fit", test_best_fit},
    {"neighbours merge", test_coalescing},
    {"a pool for each stream", test_streams},
    {"release of cached segments", test_release},
    {"expandable segments grow", test_expandable},
    {"an expandable end is kept for last", test_expandable_fit},
    {"expandable pages are unmapped", test_expandable_release},
    {"max_split_size", test_max_split},
    {"a thousand equal steps", test_steady},
    {0}};
