/* run/shelf.c: see shelf.h. A list, what was used last in front. */
#include "run/shelf.h"

#include <string.h>

struct shelf {
    struct shelved *first;
};

static void shelved_free(struct shelved *shelved)
{
    /* It lies in its own arena. */
    struct arena arena = shelved->arena;
    arena_release(&arena);
}

static void shelf_release(void *value)
{
    struct shelf *shelf = value;
    while (shelf->first != NULL) {
        struct shelved *shelved = shelf->first;
        shelf->first = shelved->next;
        shelved_free(shelved);
    }
}

static struct shelf *shelf_of(struct config_cache *cache)
{
    if (cache->derived.value == NULL)
        cache->derived = (struct config_derived){.value = ARENA_NEW(&cache->arena, struct shelf),
                                                 .release = shelf_release};
    return cache->derived.value;
}

struct shelved *shelf_find(struct config_cache *cache, struct hash128 key)
{
    struct shelf *shelf = shelf_of(cache);
    for (struct shelved **link = &shelf->first; *link != NULL; link = &(*link)->next) {
        struct shelved *shelved = *link;
        if (shelved->is_for_one || !hash128_equal(shelved->key, key))
            continue;
        *link = shelved->next;
        shelved->next = shelf->first;
        shelf->first = shelved;
        return shelved;
    }
    return NULL;
}

struct shelved *shelf_add(struct config_cache *cache, struct hash128 key)
{
    struct shelf *shelf = shelf_of(cache);
    struct arena arena = {.pool = &cache->pool};
    struct shelved *shelved = ARENA_NEW(&arena, struct shelved);
    *shelved = (struct shelved){.next = shelf->first, .key = key, .arena = arena};
    shelved->scores.arena = &shelved->arena;
    shelf->first = shelved;
    return shelved;
}

void shelf_trim(struct config_cache *cache)
{
    if (cache->derived.value == NULL)
        return;
    struct shelf *shelf = cache->derived.value;
    size_t bytes = 0;
    struct shelved **link = &shelf->first;
    while (*link != NULL) {
        struct shelved *shelved = *link;
        bytes += shelved->arena.used_bytes;
        if (!shelved->is_for_one && bytes <= SHELF_MAX_BYTES) {
            link = &shelved->next;
            continue;
        }
        *link = shelved->next;
        shelved_free(shelved);
    }
}

static bool is_same(const struct allocator_settings *a, const struct allocator_settings *b)
{
    return a->expandable_segments == b->expandable_segments &&
           a->max_split_size_bytes == b->max_split_size_bytes &&
           a->roundup_power2_divisions == b->roundup_power2_divisions;
}

const struct memory_record *shelved_memory(const struct shelved *shelved, int32_t steps,
                                           const struct allocator_settings *allocator)
{
    const struct memory_record *record = shelved->memories;
    while (record != NULL && (record->steps != steps || !is_same(&record->allocator, allocator)))
        record = record->next;
    return record;
}

static int64_t *copy_units(struct shelved *shelved, const int64_t *by_unit)
{
    const size_t count = (size_t)shelved->program->units.count + 1;
    int64_t *copy = ARENA_ARRAY(&shelved->arena, int64_t, count);
    memcpy(copy, by_unit, sizeof(*copy) * count);
    return copy;
}

void shelved_keep_memory(struct shelved *shelved, int32_t steps,
                         const struct allocator_settings *allocator,
                         const struct memory_facts *facts)
{
    struct memory_record *record = ARENA_NEW(&shelved->arena, struct memory_record);
    *record = (struct memory_record){
        .next = shelved->memories, .allocator = *allocator, .steps = steps, .facts = *facts};
    record->facts.peak.by_unit = copy_units(shelved, facts->peak.by_unit);
    record->facts.first_peak.by_unit = copy_units(shelved, facts->first_peak.by_unit);
    shelved->memories = record;
}
