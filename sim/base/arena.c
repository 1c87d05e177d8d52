/*
 * base/arena.c: see arena.h. A list of blocks, each twice as large as the one before, to a limit.
 *
 * What is handed out is zeroed then, where it was used before: a small block costs what is taken of
 * it, not its size. Large ones come zeroed from the system and cost nothing until they are touched.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN_BYTES = 16,
    FIRST_BLOCK_BYTES = 8 << 10,
    LAST_BLOCK_BYTES = 4 << 20,
    LARGE_BLOCK_BYTES = 128 << 10
};

struct arena_block {
    struct arena_block *previous;
    size_t used_bytes, capacity_bytes;
    size_t dirty_bytes; /* the first of them may hold anything */
    _Alignas(ALIGN_BYTES) unsigned char bytes[];
};

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

static void block_give_back(struct arena_pool *pool, struct arena_block *block)
{
    if (pool == NULL || pool->bytes + block->capacity_bytes > ARENA_POOL_MAX_BYTES) {
        free(block);
        return;
    }
    if (block->dirty_bytes < block->used_bytes)
        block->dirty_bytes = block->used_bytes;
    block->used_bytes = 0;
    block->previous = pool->blocks;
    pool->blocks = block;
    pool->bytes += block->capacity_bytes;
}

void arena_release(struct arena *arena)
{
    struct arena_block *block = arena->last;
    while (block != NULL) {
        struct arena_block *previous = block->previous;
        block_give_back(arena->pool, block);
        block = previous;
    }
    arena_init(arena);
}

void arena_pool_release(struct arena_pool *pool)
{
    while (pool->blocks != NULL) {
        struct arena_block *block = pool->blocks;
        pool->blocks = block->previous;
        free(block);
    }
    pool->bytes = 0;
}

/* A block of at least this size and at most twice it, out of the pool; NULL: it has none. */
static struct arena_block *block_take(struct arena_pool *pool, size_t capacity_bytes)
{
    if (pool == NULL)
        return NULL;
    for (struct arena_block **at = &pool->blocks; *at != NULL; at = &(*at)->previous) {
        struct arena_block *block = *at;
        if (block->capacity_bytes < capacity_bytes || block->capacity_bytes / 2 > capacity_bytes)
            continue;
        *at = block->previous;
        pool->bytes -= block->capacity_bytes;
        return block;
    }
    return NULL;
}

static struct arena_block *block_new(struct arena_pool *pool, size_t capacity_bytes)
{
    struct arena_block *kept = block_take(pool, capacity_bytes);
    if (kept != NULL)
        return kept;
    const bool is_large = capacity_bytes >= LARGE_BLOCK_BYTES;
    const size_t bytes = sizeof(struct arena_block) + capacity_bytes;
    struct arena_block *block = is_large ? calloc(1, bytes) : malloc(bytes);
    if (block == NULL)
        out_of_memory(bytes);
    block->previous = NULL;
    block->used_bytes = 0;
    block->capacity_bytes = capacity_bytes;
    block->dirty_bytes = is_large ? 0 : capacity_bytes;
    return block;
}

static void *block_cut(struct arena_block *block, size_t bytes)
{
    void *place = block->bytes + block->used_bytes;
    if (block->dirty_bytes > block->used_bytes) {
        const size_t dirty = block->dirty_bytes - block->used_bytes;
        memset(place, 0, bytes < dirty ? bytes : dirty);
    }
    block->used_bytes += bytes;
    return place;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        BUG("an allocation of %zu bytes", bytes);
    bytes = (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    arena->used_bytes += bytes;

    struct arena_block *block = arena->last;
    if (block != NULL && block->capacity_bytes - block->used_bytes >= bytes)
        return block_cut(block, bytes);

    if (arena->block_bytes == 0)
        arena->block_bytes = FIRST_BLOCK_BYTES;
    if (block != NULL && bytes > arena->block_bytes / 2) {
        /* A block of its own, behind the last one, whose room stays in use. */
        struct arena_block *large = block_new(arena->pool, bytes);
        large->previous = block->previous;
        block->previous = large;
        return block_cut(large, bytes);
    }
    struct arena_block *fresh =
        block_new(arena->pool, bytes > arena->block_bytes ? bytes : arena->block_bytes);
    if (arena->block_bytes < LAST_BLOCK_BYTES)
        arena->block_bytes *= 2;
    fresh->previous = block;
    arena->last = fresh;
    return block_cut(fresh, bytes);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    char short_text[256];
    va_list arguments;
    BUG_IF(format == NULL);
    va_start(arguments, format);
    const int length = vsnprintf(short_text, sizeof(short_text), format, arguments);
    va_end(arguments);
    BUG_IF(length < 0);
    if ((size_t)length < sizeof(short_text))
        return arena_strndup(arena, short_text, (size_t)length);
    char *text = arena_alloc(arena, (size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

char *arena_join(struct arena *arena, const char *const *parts, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += strlen(parts[i]);
    char *text = arena_alloc(arena, length + 1);
    char *at = text;
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = strlen(parts[i]);
        memcpy(at, parts[i], bytes);
        at += bytes;
    }
    return text;
}

void *arena_grow(struct arena *arena, const void *items, size_t item_bytes, int32_t *capacity)
{
    const int32_t old = *capacity;
    if (old > INT32_MAX / 2)
        BUG("an array of more than %d items", (int)old);
    *capacity = old > 0 ? 2 * old : 8;
    void *grown = arena_alloc(arena, item_bytes * (size_t)*capacity);
    if (old > 0)
        memcpy(grown, items, item_bytes * (size_t)old);
    return grown;
}
