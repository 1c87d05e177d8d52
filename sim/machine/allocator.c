/* machine/allocator.c: see allocator.h. */
#include "machine/allocator.h"

#include <string.h>

enum { MEMORY_ROUND = 512 };
static const int64_t mib = INT64_C(1) << 20;
static const int64_t small_most = INT64_C(1) << 20;
static const int64_t small_segment = INT64_C(2) << 20;
static const int64_t shared_segment = INT64_C(20) << 20;
static const int64_t own_segment_least = INT64_C(10) << 20;
/* An expandable segment is longer than any memory; so far apart they never meet. */
static const int64_t endless = INT64_C(1) << 52;

struct memory_block {
    int64_t bytes, address;
    struct memory_block *before, *after; /* in its segment; after: also of spares */
    struct memory_pool *pool;
    bool is_free, is_mapped; /* not mapped: address space of an expandable segment */
};

struct block_entry {
    int64_t bytes, address;
    struct memory_block *block;
};

/* Sorted by (bytes, address). */
struct block_list {
    struct block_entry *items;
    int32_t count, capacity;
};

struct memory_pool {
    struct block_list free, unmapped;
    bool is_small;
};

static int64_t round_up(int64_t bytes, int64_t step)
{
    return (bytes + step - 1) / step * step;
}

int64_t allocator_round(const struct allocator_settings *settings, int64_t bytes)
{
    const int64_t divisions = settings->roundup_power2_divisions;
    if (divisions <= 1 || bytes <= MEMORY_ROUND * divisions)
        return round_up(bytes, MEMORY_ROUND);
    int64_t power = MEMORY_ROUND;
    while (power <= bytes / 2)
        power *= 2;
    return round_up(bytes, power / divisions);
}

/* The first entry of the list that is not before (bytes, address). */
static int32_t list_find(const struct block_list *list, int64_t bytes, int64_t address)
{
    int32_t begin = 0, end = list->count;
    while (begin < end) {
        const int32_t middle = begin + (end - begin) / 2;
        const struct block_entry *entry = &list->items[middle];
        if (entry->bytes < bytes || (entry->bytes == bytes && entry->address < address))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static void list_insert(struct arena *arena, struct block_list *list, struct memory_block *block)
{
    const int32_t at = list_find(list, block->bytes, block->address);
    (void)ARENA_PUSH(arena, list);
    struct block_entry *entry = list->items + at;
    memmove(entry + 1, entry, sizeof(*entry) * (size_t)(list->count - 1 - at));
    *entry = (struct block_entry){block->bytes, block->address, block};
}

static void list_remove(struct block_list *list, const struct memory_block *block)
{
    const int32_t at = list_find(list, block->bytes, block->address);
    BUG_IF(at >= list->count || list->items[at].block != block);
    list->count--;
    struct block_entry *entry = list->items + at;
    memmove(entry, entry + 1, sizeof(*entry) * (size_t)(list->count - at));
}

static struct block_list *list_of(struct memory_block *block)
{
    return block->is_mapped ? &block->pool->free : &block->pool->unmapped;
}

static struct memory_block *block_new(struct allocator *allocator, struct memory_pool *pool,
                                      int64_t address, int64_t bytes)
{
    struct memory_block *block = allocator->spare;
    if (block != NULL)
        allocator->spare = block->after;
    else
        block = ARENA_NEW(allocator->arena, struct memory_block);
    *block = (struct memory_block){
        .bytes = bytes, .address = address, .pool = pool, .is_free = true, .is_mapped = true};
    return block;
}

static void block_drop(struct allocator *allocator, struct memory_block *block)
{
    block->after = allocator->spare;
    allocator->spare = block;
}

/* Cuts the block behind its first bytes; returns the rest, which is free and in no list. */
static struct memory_block *block_cut(struct allocator *allocator, struct memory_block *block,
                                      int64_t bytes)
{
    struct memory_block *rest =
        block_new(allocator, block->pool, block->address + bytes, block->bytes - bytes);
    rest->is_mapped = block->is_mapped;
    rest->before = block;
    rest->after = block->after;
    if (rest->after != NULL)
        rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    return rest;
}

static bool can_join(const struct memory_block *a, const struct memory_block *b)
{
    return a != NULL && b != NULL && a->is_free && b->is_free && a->is_mapped == b->is_mapped;
}

/* Takes a listed neighbour into the block, which is in no list. */
static struct memory_block *block_join(struct allocator *allocator, struct memory_block *block,
                                       struct memory_block *neighbour)
{
    list_remove(list_of(neighbour), neighbour);
    struct memory_block *first = neighbour == block->before ? neighbour : block;
    struct memory_block *second = first == block ? neighbour : block;
    first->bytes += second->bytes;
    first->after = second->after;
    if (first->after != NULL)
        first->after->before = first;
    block_drop(allocator, second);
    return first;
}

/* Lists a free block, merged with its neighbours; returns what it has become. */
static struct memory_block *block_put(struct allocator *allocator, struct memory_block *block)
{
    if (can_join(block->before, block))
        block = block_join(allocator, block, block->before);
    if (can_join(block, block->after))
        block = block_join(allocator, block, block->after);
    list_insert(allocator->arena, list_of(block), block);
    return block;
}

/* What a block can grow to in its expandable segment. */
static int64_t reach(const struct memory_block *block)
{
    const bool grows = block->after != NULL && !block->after->is_mapped;
    return block->bytes + (grows ? block->after->bytes : 0);
}

static struct memory_block *find_free(const struct allocator *allocator,
                                      const struct memory_pool *pool, int64_t bytes)
{
    int32_t at = list_find(&pool->free, bytes, 0);
    if (at == pool->free.count)
        return NULL;
    if (allocator->settings.expandable_segments) {
        for (int32_t next = at + 1; next < pool->free.count; next++) {
            if (reach(pool->free.items[next].block) >= reach(pool->free.items[at].block))
                break;
            at = next;
        }
    }
    struct memory_block *block = pool->free.items[at].block;
    const int64_t most = allocator->settings.max_split_size_bytes;
    const bool is_oversize = most > 0 && bytes < most && block->bytes >= most;
    const bool is_wasteful = most > 0 && bytes >= most && block->bytes >= bytes + shared_segment;
    return is_oversize || is_wasteful ? NULL : block;
}

static bool reserve(struct allocator *allocator, int64_t bytes)
{
    if (bytes > allocator->limit_bytes - allocator->reserved_bytes)
        return false;
    allocator->reserved_bytes += bytes;
    allocator->calls.malloc_bytes += bytes;
    return true;
}

static struct memory_block *segment_new(struct allocator *allocator, struct memory_pool *pool,
                                        int64_t bytes)
{
    const int64_t segment = pool->is_small              ? small_segment
                            : bytes < own_segment_least ? shared_segment
                                                        : round_up(bytes, 2 * mib);
    if (!reserve(allocator, segment))
        return NULL;
    allocator->calls.malloc_count++;
    struct memory_block *block = block_new(allocator, pool, allocator->next_address, segment);
    /* Segments never touch: blocks merge inside theirs only. */
    allocator->next_address += segment + 2 * mib;
    list_insert(allocator->arena, &pool->free, block);
    return block;
}

static int64_t page_bytes(const struct memory_pool *pool)
{
    return pool->is_small ? small_segment : shared_segment;
}

/* Maps pages at the beginning of an unmapped block; returns the free block they belong to. */
static struct memory_block *map_pages(struct allocator *allocator, struct memory_block *block,
                                      int64_t bytes)
{
    const int64_t page = page_bytes(block->pool);
    const int64_t wanted = round_up(bytes, page);
    const int64_t mapped = wanted < block->bytes ? wanted : block->bytes;
    if (!reserve(allocator, mapped))
        return NULL;
    allocator->calls.malloc_count += mapped / page;
    list_remove(&block->pool->unmapped, block);
    if (mapped < block->bytes) {
        struct memory_block *rest = block_cut(allocator, block, mapped);
        list_insert(allocator->arena, &block->pool->unmapped, rest);
    }
    block->is_mapped = true;
    return block_put(allocator, block);
}

static bool has_room(const struct memory_block *block, int64_t bytes)
{
    int64_t room = 0;
    for (; block != NULL && block->is_free && room < bytes; block = block->after)
        room += block->bytes;
    return room >= bytes;
}

/* A free block of an expandable segment, grown until it holds the request. */
static struct memory_block *segment_expand(struct allocator *allocator, struct memory_pool *pool,
                                           int64_t bytes)
{
    struct memory_block *block = NULL;
    for (int32_t i = 0; i < pool->unmapped.count && block == NULL; i++) {
        struct memory_block *hole = pool->unmapped.items[i].block;
        if (hole->before != NULL && hole->before->is_free)
            hole = hole->before;
        if (has_room(hole, bytes))
            block = hole;
    }
    if (block == NULL) {
        block = block_new(allocator, pool, allocator->next_address, endless);
        block->is_mapped = false;
        allocator->next_address += 2 * endless;
        list_insert(allocator->arena, &pool->unmapped, block);
    }
    while (block != NULL && (!block->is_mapped || block->bytes < bytes)) {
        struct memory_block *hole = block->is_mapped ? block->after : block;
        BUG_IF(hole == NULL);
        const int64_t missing = bytes - (block->is_mapped ? block->bytes : 0);
        block = map_pages(allocator, hole, missing < hole->bytes ? missing : hole->bytes);
    }
    return block;
}

static bool is_split(const struct allocator *allocator, const struct memory_block *block,
                     int64_t bytes)
{
    const int64_t rest = block->bytes - bytes;
    if (block->pool->is_small || allocator->settings.expandable_segments)
        return rest >= MEMORY_ROUND;
    const int64_t most = allocator->settings.max_split_size_bytes;
    return (most == 0 || bytes < most) && rest > small_most;
}

void allocator_init(struct allocator *allocator, struct arena *arena,
                    const struct allocator_settings *settings, int32_t stream_count)
{
    *allocator = (struct allocator){
        .limit_bytes = INT64_MAX,
        .arena = arena,
        .settings = *settings,
        .pools = ARENA_ARRAY(arena, struct memory_pool, 2 * (int64_t)stream_count),
        .stream_count = stream_count};
    for (int32_t i = 0; i < stream_count; i++)
        allocator->pools[2 * (int64_t)i].is_small = true;
}

struct memory_block *allocator_malloc(struct allocator *allocator, int32_t stream, int64_t bytes)
{
    BUG_IF(stream < 0 || stream >= allocator->stream_count || bytes <= 0);
    const int64_t rounded = allocator_round(&allocator->settings, bytes);
    struct memory_pool *pool =
        &allocator->pools[2 * (int64_t)stream + (rounded <= small_most ? 0 : 1)];
    struct memory_block *block = find_free(allocator, pool, rounded);
    if (block == NULL)
        block = allocator->settings.expandable_segments ? segment_expand(allocator, pool, rounded)
                                                        : segment_new(allocator, pool, rounded);
    if (block == NULL)
        return NULL;
    list_remove(&pool->free, block);
    if (is_split(allocator, block, rounded)) {
        struct memory_block *rest = block_cut(allocator, block, rounded);
        list_insert(allocator->arena, &pool->free, rest);
    }
    block->is_free = false;
    allocator->used_bytes += block->bytes;
    return block;
}

void allocator_free(struct allocator *allocator, struct memory_block *block)
{
    BUG_IF(block->is_free);
    allocator->used_bytes -= block->bytes;
    block->is_free = true;
    block_put(allocator, block);
}

/* Unmaps the pages that lie wholly in a free block, which is in no list now. */
static void unmap_pages(struct allocator *allocator, struct memory_block *block)
{
    const int64_t page = page_bytes(block->pool);
    const int64_t origin = block->address / endless * endless;
    const int64_t begin = origin + round_up(block->address - origin, page);
    const int64_t end = origin + (block->address + block->bytes - origin) / page * page;
    if (begin >= end) {
        block_put(allocator, block);
        return;
    }
    if (begin > block->address) {
        struct memory_block *rest = block_cut(allocator, block, begin - block->address);
        list_insert(allocator->arena, &block->pool->free, block);
        block = rest;
    }
    if (end < block->address + block->bytes)
        list_insert(allocator->arena, &block->pool->free,
                    block_cut(allocator, block, end - block->address));
    block->is_mapped = false;
    allocator->reserved_bytes -= block->bytes;
    allocator->calls.free_bytes += block->bytes;
    allocator->calls.free_count += block->bytes / page;
    block_put(allocator, block);
}

static void pool_release(struct allocator *allocator, struct memory_pool *pool)
{
    const struct block_list held = pool->free;
    pool->free = (struct block_list){0};
    for (int32_t i = 0; i < held.count; i++) {
        struct memory_block *block = held.items[i].block;
        if (allocator->settings.expandable_segments) {
            unmap_pages(allocator, block);
        } else if (block->before == NULL && block->after == NULL) {
            allocator->reserved_bytes -= block->bytes;
            allocator->calls.free_bytes += block->bytes;
            allocator->calls.free_count++;
            block_drop(allocator, block);
        } else {
            list_insert(allocator->arena, &pool->free, block);
        }
    }
}

void allocator_release_cached(struct allocator *allocator)
{
    for (int32_t i = 0; i < 2 * allocator->stream_count; i++)
        pool_release(allocator, &allocator->pools[i]);
}

int64_t memory_block_bytes(const struct memory_block *block)
{
    return block->bytes;
}

int64_t memory_block_address(const struct memory_block *block)
{
    return block->address;
}
