/* tests/unit/base/test_arena.c */
#include "base/arena.h"

#include <string.h>

#include "suites.h"

static void test_zeroed_and_aligned(void)
{
    struct arena arena;
    arena_init(&arena);
    /* From one byte to far more than a block, so that each way to place them is taken. */
    for (size_t bytes = 1; bytes < (size_t)20 << 20; bytes = bytes * 3 + 1) {
        unsigned char *place = arena_alloc(&arena, bytes);
        CHECK_INT((uintptr_t)place % 16, 0);
        CHECK_INT(place[0] | place[bytes / 2] | place[bytes - 1], 0);
        memset(place, 0xA5, bytes);
        unsigned char *next = arena_alloc(&arena, 5);
        CHECK_INT(next[0] | next[4], 0);
    }
    arena_release(&arena);
    CHECK_INT(arena.used_bytes, 0);
    arena_release(&arena);
}

static void test_used_again_after_release(void)
{
    struct arena arena = {0};
    CHECK_TEXT(arena_strdup(&arena, "gather"), "gather");
    arena_release(&arena);
    CHECK_TEXT(arena_strndup(&arena, "scatter", 4), "scat");
    CHECK_TEXT(arena_printf(&arena, "%s of %d", "ring", 8), "ring of 8");
    CHECK_INT(arena.used_bytes, 16 + 16);
    arena_release(&arena);
}

static void test_growing_array(void)
{
    struct arena arena = {0};
    struct {
        int32_t *items;
        int32_t count, capacity;
    } list = {0};
    for (int32_t i = 0; i < 1000; i++) {
        int32_t *item = ARENA_PUSH(&arena, &list);
        CHECK_INT(*item, 0);
        *item = 7 * i + 3;
    }
    CHECK_INT(list.count, 1000);
    CHECK_INT(list.items[0], 3);
    CHECK_INT(list.items[999], 6996);
    arena_release(&arena);
}

const struct check_case arena_cases[] = {
    {"memory is zeroed and aligned", test_zeroed_and_aligned},
    {"used again after release", test_used_again_after_release},
    {"growing array", test_growing_array},
    {0}};
