/* config/cache.c: files that many configurations are read from, parsed once; see config.h. */
#include <string.h>

#include "config/config_private.h"

struct config_cached_file {
    struct config_cached_file *next;
    const char *path;
    const struct node
        *root; /* as parsed: every configuration gets a copy, since binding edits it */
};

void config_cache_release(struct config_cache *cache)
{
    arena_release(&cache->arena);
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
