/*
 * base/arena.h: memory by lifetime.
 *
 * Everything that lives as long as an experiment, a program or a run is carved from one arena and
 * given back by one call. Memory is zeroed and aligned to 16 bytes. Running out ends the process
 * (out_of_memory).
 */
#ifndef FSDPSIM_BASE_ARENA_H
#define FSDPSIM_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct arena_block;

/*
 * Blocks that arenas gave back, for the next ones: a process that makes and releases the same
 * arenas thousands of times neither asks the system for memory nor touches fresh pages each time.
 * Zero-initialise; set `pool` of an arena before its first use.
 */
struct arena_pool {
    struct arena_block *blocks;
    size_t bytes; /* in all; blocks beyond ARENA_POOL_MAX_BYTES go back to the system */
};
enum { ARENA_POOL_MAX_BYTES = 64 << 20 };
void arena_pool_release(struct arena_pool *pool);

/* Zero-initialise (`struct arena a = {0};` or arena_init). */
struct arena {
    struct arena_block *last;
    size_t used_bytes;       /* handed out in all */
    size_t block_bytes;      /* size of the next block */
    struct arena_pool *pool; /* where blocks come from and go to; NULL: the system */
};

void arena_init(struct arena *arena);
/* Gives everything back; accepts a zeroed arena; the arena may be used again. */
void arena_release(struct arena *arena);

void *arena_alloc(struct arena *arena, size_t bytes);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
/* Texts put together: ARENA_JOIN(arena, "saved(", name, ")"); many times faster than a format. */
char *arena_join(struct arena *arena, const char *const *parts, size_t count);
#define ARENA_JOIN(arena, ...)                                                                     \
    arena_join((arena), (const char *const[]){__VA_ARGS__},                                        \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count)                                                            \
    ((type *)arena_alloc((arena), sizeof(type) * (size_t)(count)))

/*
 * A growing array in an arena: declare `struct { T *items; int32_t count, capacity; } list`, then
 * ARENA_PUSH(arena, &list) gives a pointer to a new zeroed item. Old storage stays in the arena
 * until it is released (doubling, so at most twice the final size).
 */
#define ARENA_PUSH(arena, list)                                                                    \
    (((list)->count == (list)->capacity                                                            \
          ? (void)((list)->items = arena_grow((arena), (list)->items, sizeof(*(list)->items),      \
                                              &(list)->capacity))                                  \
          : (void)0),                                                                              \
     &(list)->items[(list)->count++])
void *arena_grow(struct arena *arena, const void *items, size_t item_bytes, int32_t *capacity);

#endif
