/*
 * tests/property/allocator/test_allocator_random.c: random sequences of requests and frees against
 * a second allocator that is written from the rules alone: segments are lists of the live intervals
 * in them, free blocks are the gaps between those, and every request looks at every gap.
 */
#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "check.h"
#include "machine/allocator.h"

enum {
    SEED = 41147,
    SEQUENCE_COUNT = 400,
    STEP_COUNT = 300,
    STREAM_COUNT = 3,
    LIVE_MAX = 60,
    SEGMENT_MAX = 400,
};

static const int64_t mib = INT64_C(1) << 20;

struct live {
    struct memory_block *block; /* NULL: none */
    int64_t address, bytes;     /* as the allocator says */
    int32_t segment;            /* of the second allocator */
    int64_t begin, end;         /* in it */
};

struct naive_segment {
    bool is_there, is_small;
    int32_t stream;
    int64_t bytes;
};

struct twin {
    struct arena arena;
    struct allocator allocator;
    struct allocator_settings settings;
    int64_t limit;
    struct live live[LIVE_MAX];
    struct naive_segment segments[SEGMENT_MAX];
    int32_t segment_count;
};

static int64_t naive_reserved(const struct twin *twin)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < twin->segment_count; i++)
        sum += twin->segments[i].is_there ? twin->segments[i].bytes : 0;
    return sum;
}

/* Where the gap at `from` of a segment ends: at the next live interval or the segment's end. */
static int64_t gap_end(const struct twin *twin, int32_t segment, int64_t from)
{
    int64_t end = twin->segments[segment].bytes;
    for (int32_t i = 0; i < LIVE_MAX; i++) {
        const struct live *live = &twin->live[i];
        if (live->block != NULL && live->segment == segment && live->begin >= from &&
            live->begin < end)
            end = live->begin;
    }
    return end;
}

/* The end of the live interval that holds or touches `from` from the left; `from`: none. */
static int64_t live_end(const struct twin *twin, int32_t segment, int64_t from)
{
    for (int32_t i = 0; i < LIVE_MAX; i++) {
        const struct live *live = &twin->live[i];
        if (live->block != NULL && live->segment == segment && live->begin <= from &&
            live->end > from)
            return live->end;
    }
    return from;
}

struct gap {
    int32_t segment; /* -1: none */
    int64_t begin, bytes;
};

/* The smallest gap that holds the request: the first of equal ones. */
static struct gap find_gap(const struct twin *twin, int32_t stream, bool is_small, int64_t bytes)
{
    struct gap best = {.segment = -1};
    for (int32_t i = 0; i < twin->segment_count; i++) {
        const struct naive_segment *segment = &twin->segments[i];
        if (!segment->is_there || segment->stream != stream || segment->is_small != is_small)
            continue;
        int64_t at = 0;
        while (at < segment->bytes) {
            const int64_t begin = live_end(twin, i, at);
            if (begin > at) {
                at = begin;
                continue;
            }
            const int64_t end = gap_end(twin, i, begin);
            if (end - begin >= bytes && (best.segment < 0 || end - begin < best.bytes))
                best = (struct gap){i, begin, end - begin};
            at = end;
        }
    }
    const int64_t most = twin->settings.max_split_size_bytes;
    if (best.segment >= 0 && most > 0 &&
        ((bytes < most && best.bytes >= most) || (bytes >= most && best.bytes >= bytes + 20 * mib)))
        best.segment = -1;
    return best;
}

/* Sets what `live` takes; false: the limit is reached. */
static bool naive_malloc(struct twin *twin, int32_t stream, int64_t asked, struct live *live)
{
    const int64_t bytes = (asked + 511) / 512 * 512;
    const bool is_small = bytes <= mib;
    struct gap gap = find_gap(twin, stream, is_small, bytes);
    if (gap.segment < 0) {
        int64_t segment = 20 * mib;
        if (is_small)
            segment = 2 * mib;
        else if (bytes >= 10 * mib)
            segment = (bytes + 2 * mib - 1) / (2 * mib) * (2 * mib);
        if (naive_reserved(twin) + segment > twin->limit)
            return false;
        CHECK_TRUE(twin->segment_count < SEGMENT_MAX);
        gap = (struct gap){twin->segment_count++, 0, segment};
        twin->segments[gap.segment] = (struct naive_segment){true, is_small, stream, segment};
    }
    const int64_t rest = gap.bytes - bytes;
    const int64_t most = twin->settings.max_split_size_bytes;
    const bool is_cut = is_small ? rest >= 512 : rest > mib && (most == 0 || bytes < most);
    live->segment = gap.segment;
    live->begin = gap.begin;
    live->end = gap.begin + (is_cut ? bytes : gap.bytes);
    return true;
}

static void naive_release(struct twin *twin)
{
    for (int32_t i = 0; i < twin->segment_count; i++) {
        bool is_used = false;
        for (int32_t k = 0; k < LIVE_MAX; k++)
            is_used |= twin->live[k].block != NULL && twin->live[k].segment == i;
        twin->segments[i].is_there &= is_used;
    }
}

/* Of many sizes, so that every kind of segment and split is met. */
static int64_t random_bytes(struct philox *random)
{
    switch (philox_below(random, 5)) {
    case 0:
        return 1 + (int64_t)philox_below(random, 4096);
    case 1:
        return 1 + (int64_t)philox_below(random, 1 << 20);
    case 2:
        return 1 + (int64_t)philox_below(random, 12 << 20);
    case 3:
        return (1 + (int64_t)philox_below(random, 24)) * mib;
    default:
        return 1 + (int64_t)philox_below(random, 90 << 20);
    }
}

static void check_whole(const struct twin *twin)
{
    int64_t used = 0;
    for (int32_t i = 0; i < LIVE_MAX; i++) {
        const struct live *a = &twin->live[i];
        if (a->block == NULL)
            continue;
        used += a->bytes;
        for (int32_t k = 0; k < i; k++) {
            const struct live *b = &twin->live[k];
            if (b->block != NULL)
                CHECK_TRUE(a->address + a->bytes <= b->address ||
                           b->address + b->bytes <= a->address);
        }
    }
    CHECK_INT(twin->allocator.used_bytes, used);
    CHECK_TRUE(twin->allocator.reserved_bytes >= used);
    CHECK_TRUE(twin->allocator.reserved_bytes <= twin->limit);
}

static void one_malloc(struct twin *twin, struct philox *random, struct live *live)
{
    const int32_t stream = (int32_t)philox_below(random, STREAM_COUNT);
    const int64_t bytes = random_bytes(random);
    struct memory_block *block = allocator_malloc(&twin->allocator, stream, bytes);
    if (!twin->settings.expandable_segments)
        CHECK_TRUE(naive_malloc(twin, stream, bytes, live) == (block != NULL));
    if (block == NULL) {
        allocator_release_cached(&twin->allocator);
        naive_release(twin);
        return;
    }
    live->block = block;
    live->bytes = memory_block_bytes(block);
    live->address = memory_block_address(block);
    CHECK_TRUE(live->bytes >= bytes);
    if (!twin->settings.expandable_segments)
        CHECK_INT(live->bytes, live->end - live->begin);
}

static void play(struct twin *twin, struct philox *random)
{
    for (int32_t step = 0; step < STEP_COUNT; step++) {
        struct live *live = &twin->live[philox_below(random, LIVE_MAX)];
        if (live->block != NULL) {
            allocator_free(&twin->allocator, live->block);
            live->block = NULL;
        } else {
            one_malloc(twin, random, live);
        }
        if (!twin->settings.expandable_segments)
            CHECK_INT(twin->allocator.reserved_bytes, naive_reserved(twin));
        if (step % 37 == 0)
            check_whole(twin);
    }
    for (int32_t i = 0; i < LIVE_MAX; i++)
        if (twin->live[i].block != NULL)
            allocator_free(&twin->allocator, twin->live[i].block);
    CHECK_INT(twin->allocator.used_bytes, 0);
    allocator_release_cached(&twin->allocator);
    CHECK_INT(twin->allocator.reserved_bytes, 0);
    CHECK_INT(twin->allocator.calls.malloc_bytes, twin->allocator.calls.free_bytes);
    CHECK_INT(twin->allocator.calls.malloc_count, twin->allocator.calls.free_count);
}

static void test_sequences(void)
{
    static struct twin twin;
    struct philox random;
    philox_init(&random, SEED, 0, 0, 0);
    printf("seed %d\n", SEED);
    for (int32_t i = 0; i < SEQUENCE_COUNT; i++) {
        memset(&twin, 0, sizeof(twin));
        check_context("sequence %d", i);
        twin.settings.expandable_segments = i % 3 == 2;
        twin.settings.max_split_size_bytes = i % 4 == 3 ? 32 * mib : 0;
        twin.limit = i % 2 == 0 ? INT64_MAX : 400 * mib;
        allocator_init(&twin.allocator, &twin.arena, &twin.settings, STREAM_COUNT);
        twin.allocator.limit_bytes = twin.limit;
        play(&twin, &random);
        arena_release(&twin.arena);
    }
    check_context(NULL);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {{"random sequences", test_sequences}, {0}};
    const struct check_suite suites[] = {{"allocator", cases}, {0}};
    return check_main(argc, argv, suites);
}
