/* config/cache.c: files that many configurations are read from, parsed once; see config.h. */
#include <string.h>

#include "config/config_private.h"

struct config_cached_file {
    struct config_cached_file *next;
    const char *path;
    const struct node
        *root; /* as parsed: every configuration gets a copy, since binding edits it */
};

/* The value of a FIELD_REF as it was bound. */
struct config_memo {
    struct config_memo *next;
    const char *key; /* the path, what was written there and where, the overrides below it */
    struct node *root;
    const void *bound;
    size_t bytes;
    const struct config_origin *origins;
    int32_t origin_count;
    struct config_derived derived;
};

static void release_derived(struct config_derived *derived)
{
    if (derived->value != NULL && derived->release != NULL)
        derived->release(derived->value);
    *derived = (struct config_derived){0};
}

/* What callers keep may point into what is bound: it goes first. */
static void forget(struct config_cache *cache)
{
    release_derived(&cache->derived);
    for (struct config_memo *memo = cache->memos; memo != NULL; memo = memo->next)
        release_derived(&memo->derived);
    cache->memos = NULL;
    arena_release(&cache->memo_arena);
}

void config_cache_next(struct config_cache *cache)
{
    if (cache->memo_arena.used_bytes > CONFIG_CACHE_MAX_BYTES)
        forget(cache);
}

void config_cache_release(struct config_cache *cache)
{
    forget(cache);
    arena_release(&cache->arena);
    arena_pool_release(&cache->pool);
    *cache = (struct config_cache){0};
}

const char *const *config_cache_folders(struct config_cache *cache)
{
    if (cache->data_folders == NULL)
        cache->data_folders = data_folders_find(&cache->arena);
    return cache->data_folders;
}

enum status file_load(struct config *config, const char *path, struct node **root)
{
    struct config_cache *cache = config->cache;
    if (cache == NULL)
        return node_load(config->arena, path, root, config->diag);
    const struct config_cached_file *file = cache->files;
    while (file != NULL && strcmp(file->path, path) != 0)
        file = file->next;
    if (file == NULL) {
        /* In the cache's arena: its names outlive this configuration. A file with mistakes is read
           again by the next, and its mistakes are told again. */
        struct node *parsed = NULL;
        const char *name = arena_strdup(&cache->arena, path);
        const enum status status = node_load(&cache->arena, name, &parsed, config->diag);
        if (status != STATUS_OK) {
            *root = parsed;
            return status;
        }
        struct config_cached_file *fresh = ARENA_NEW(&cache->arena, struct config_cached_file);
        *fresh = (struct config_cached_file){.next = cache->files, .path = name, .root = parsed};
        cache->files = fresh;
        file = fresh;
    }
    *root = node_copy(config->arena, file->root);
    return STATUS_OK;
}

/* ---- defaults and names ------------------------------------------------------------------- */

struct config_cached_text {
    struct config_cached_text *next;
    const char *folder, *text; /* of a default: no folder, and the text itself by its address */
    const struct node *node;
    const char *path;
};

const struct node *cached_default(const struct config *config, const char *text)
{
    if (config->cache == NULL)
        return NULL;
    for (const struct config_cached_text *one = config->cache->defaults; one != NULL;
         one = one->next)
        if (one->text == text)
            return one->node;
    return NULL;
}

void cache_default(const struct config *config, const char *text, const struct node *node)
{
    struct config_cache *cache = config->cache;
    struct config_cached_text *one = ARENA_NEW(&cache->arena, struct config_cached_text);
    *one = (struct config_cached_text){.next = cache->defaults, .text = text, .node = node};
    cache->defaults = one;
}

const char *cached_name(const struct config *config, const char *folder, const char *name)
{
    if (config->cache == NULL)
        return NULL;
    for (const struct config_cached_text *one = config->cache->names; one != NULL; one = one->next)
        if (strcmp(one->text, name) == 0 && strcmp(one->folder, folder) == 0)
            return one->path;
    return NULL;
}

void cache_name(const struct config *config, const char *folder, const char *name, const char *path)
{
    struct config_cache *cache = config->cache;
    if (cache == NULL || path == NULL)
        return;
    struct config_cached_text *one = ARENA_NEW(&cache->arena, struct config_cached_text);
    *one = (struct config_cached_text){.next = cache->names,
                                       .folder = folder,
                                       .text = arena_strdup(&cache->arena, name),
                                       .path = arena_strdup(&cache->arena, path)};
    cache->names = one;
}

/* ---- bound files -------------------------------------------------------------------------- */

static void add_edits(struct strbuf *key, const struct config *config, const char *path)
{
    const size_t length = strlen(path);
    int32_t at = 0;
    for (const struct config_edit *edit = config->edits; edit != NULL; edit = edit->next, at++)
        if (strncmp(edit->path, path, length) == 0 &&
            (edit->path[length] == '\0' || edit->path[length] == '.' || edit->path[length] == '['))
            strbuf_printf(key, "\n%s", config->override_texts.items[at]);
}

/* A section of the root file: what the file says there (once), and the overrides. */
static void add_section_key(struct strbuf *key, const struct config *config, const char *path)
{
    const struct source *file = config->root->place.source;
    strbuf_printf(key, "%s\nsection of %s", path, file != NULL ? file->name : "nothing");
    add_edits(key, config, path);
}

/* False for what stands in the root file itself, deeper than a section. */
static bool make_key(const struct config *config, const struct field *field,
                     const struct node *value, const char *path, struct strbuf *key)
{
    const bool is_name = field->kind == FIELD_REF && value->kind == NODE_SCALAR;
    if (config->cache == NULL)
        return false;
    if (!is_name && value->ref == NULL) {
        const bool is_section = config->ref_depth == 0 && strpbrk(path, ".[") == NULL;
        if (is_section)
            add_section_key(key, config, path);
        return is_section;
    }
    const struct place place = is_name ? value->place : value->ref_place;
    strbuf_printf(key, "%s\n%s\n%s:%d:%d:%d", path, is_name ? value->text : value->ref,
                  place.source != NULL ? place.source->name : "", (int)place.line,
                  (int)place.column, is_name && value->is_default);
    add_edits(key, config, path);
    return true;
}

bool memo_find(struct config *config, const struct field *field, struct node **value,
               const char *path, void *slot)
{
    struct strbuf key = {0};
    const struct config_memo *memo = NULL;
    if (make_key(config, field, *value, path, &key)) {
        memo = config->cache->memos;
        while (memo != NULL && strcmp(memo->key, key.text) != 0)
            memo = memo->next;
    }
    strbuf_release(&key);
    if (memo == NULL)
        return false;
    *value = memo->root;
    memcpy(slot, memo->bound, memo->bytes);
    origins_append(config, memo->origins, memo->origin_count);
    return true;
}

/* A place that outlives the configuration: the text of an override is its own. */
static struct place lasting_place(struct arena *arena, struct place place)
{
    if (place.source == NULL || strcmp(place.source->name, COMMAND_LINE_NAME) != 0)
        return place;
    struct source *source = ARENA_NEW(arena, struct source);
    *source = (struct source){COMMAND_LINE_NAME, arena_strdup(arena, place.source->text),
                              place.source->length};
    place.source = source;
    return place;
}

static struct node *lasting_copy(struct arena *arena, const struct node *node)
{
    struct node *copy = ARENA_NEW(arena, struct node);
    *copy = *node;
    copy->text = node->text != NULL ? arena_strdup(arena, node->text) : NULL;
    copy->ref = node->ref != NULL ? arena_strdup(arena, node->ref) : NULL;
    copy->place = node->is_default ? NO_PLACE : lasting_place(arena, node->place);
    copy->ref_place = lasting_place(arena, node->ref_place);
    copy->entries.items = NULL;
    copy->entries.capacity = node->entries.count;
    if (node->entries.count > 0)
        copy->entries.items = ARENA_ARRAY(arena, struct node_entry, node->entries.count);
    for (int32_t i = 0; i < node->entries.count; i++) {
        const struct node_entry *from = &node->entries.items[i];
        copy->entries.items[i] =
            (struct node_entry){.key = from->key != NULL ? arena_strdup(arena, from->key) : NULL,
                                .key_place = lasting_place(arena, from->key_place),
                                .value = lasting_copy(arena, from->value)};
    }
    return copy;
}

void memo_begin(struct config *config, const struct field *field, struct node **value,
                const char *path, struct memo_scope *scope)
{
    struct strbuf key = {0};
    *scope = (struct memo_scope){.arena = config->arena,
                                 .origins = config->origins.items,
                                 .origin_count = config->origins.count,
                                 .origin_capacity = config->origins.capacity,
                                 .message_count = config->diag->count};
    if (make_key(config, field, *value, path, &key)) {
        struct arena *arena = &config->cache->memo_arena;
        scope->key = arena_strdup(arena, key.text);
        *value = lasting_copy(arena, *value);
        config->arena = arena;
        config->origins.items = NULL;
        config->origins.count = config->origins.capacity = 0;
    }
    strbuf_release(&key);
}

static size_t bound_bytes(const struct config *config, const struct field *field,
                          const struct node *root)
{
    struct diag unheard;
    diag_init(&unheard, config->arena);
    const struct field_table *table =
        field->choose != NULL ? field->choose(root, &unheard) : field->table;
    return table->struct_bytes;
}

void memo_end(struct config *config, const struct memo_scope *scope, const struct field *field,
              struct node *root, const void *slot)
{
    if (scope->key == NULL)
        return;
    const bool is_kept = config->diag->count == scope->message_count && root->kind == NODE_MAP;
    const struct config_origin *origins = config->origins.items;
    const int32_t count = config->origins.count;
    if (is_kept) {
        struct config_memo *memo = ARENA_NEW(config->arena, struct config_memo);
        *memo = (struct config_memo){.next = config->cache->memos,
                                     .key = scope->key,
                                     .root = root,
                                     .bytes = bound_bytes(config, field, root),
                                     .origins = origins,
                                     .origin_count = count};
        memo->bound = memcpy(arena_alloc(config->arena, memo->bytes), slot, memo->bytes);
        for (int32_t i = 0; i < count; i++) {
            struct config_origin *one = &config->origins.items[i];
            one->is_hashed = !one->is_label;
            if (one->is_hashed)
                one->hash = origin_hash(one);
        }
        config->cache->memos = memo;
    }
    config->arena = scope->arena;
    config->origins.items = scope->origins;
    config->origins.count = scope->origin_count;
    config->origins.capacity = scope->origin_capacity;
    origins_append(config, origins, count);
}

struct config_derived *config_derived(const struct config *config, const char *path)
{
    const struct node *node = config->root != NULL ? node_get(config->root, path) : NULL;
    if (config->cache == NULL || node == NULL)
        return NULL;
    for (struct config_memo *memo = config->cache->memos; memo != NULL; memo = memo->next)
        if (memo->root == node)
            return &memo->derived;
    return NULL;
}
