/* config/config.c: see config.h: the root file of a configuration. Binding is in bind.c. */
#include "config/config.h"

#include <string.h>
#include <sys/stat.h>

#include "base/shown_text.h"
#include "config/config_private.h"

void config_init(struct config *config, struct arena *arena, struct diag *diag,
                 const char *const *data_folders)
{
    *config = (struct config){
        .arena = arena, .diag = diag, .data_folders = data_folders, .root_folder = "."};
}

/* The file that `path` means: itself, or the shipped config of that name; NULL after a message. */
static const char *find_root(struct config *config, const char *path)
{
    struct arena *arena = config->arena;
    if (strcmp(path, "-") == 0 || text_is_path(path) || file_exists(path))
        return path;
    const char *shipped = data_file(arena, config->data_folders, "configs", path, false);
    if (shipped != NULL)
        return shipped;
    const char *obstacle = path_obstacle(path);
    if (obstacle != NULL) {
        diag_world(config->diag, "cannot open '%s': %s", path, obstacle);
        return NULL;
    }
    const char *near = nearest_name(path, data_names(arena, config->data_folders, "configs"));
    diag_world(config->diag,
               "cannot open '%s': no such file, and no shipped config has that name%s", path,
               near != NULL ? arena_printf(arena, " (did you mean '%s'?)", near) : "");
    return NULL;
}

static bool is_file_of(const struct source *source, const struct stat *file)
{
    struct stat about;
    return source != NULL && stat(source->name, &about) == 0 && about.st_dev == file->st_dev &&
           about.st_ino == file->st_ino;
}

bool config_has_read(const struct config *config, const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return false;
    const struct source *last = config->root != NULL ? config->root->place.source : NULL;
    bool is_read = is_file_of(last, &file);
    for (int32_t i = 0; i < config->origins.count && !is_read; i++) {
        const struct source *source = config->origins.items[i].place.source;
        if (source != last)
            is_read = is_file_of(source, &file);
        last = source;
    }
    return is_read;
}

enum status config_load(struct config *config, const char *path)
{
    const char *file = find_root(config, path);
    if (file == NULL)
        return STATUS_WORLD;
    const bool is_stdin = strcmp(file, "-") == 0;
    config->root_folder = is_stdin ? "." : file_folder(config->arena, file);
    config->root_name = is_stdin ? NULL : text_shown(config->arena, file_stem(config->arena, file));
    return file_load(config, file, &config->root);
}

const struct node *config_take(struct config *config, const char *key)
{
    struct node *root = config->root;
    if (root == NULL || root->kind != NODE_MAP)
        return NULL;
    for (int32_t i = 0; i < root->entries.count; i++) {
        struct node_entry *entry = &root->entries.items[i];
        if (strcmp(entry->key, key) != 0)
            continue;
        const struct node *value = entry->value;
        root->entries.count--;
        memmove(entry, entry + 1, sizeof(*entry) * (size_t)(root->entries.count - i));
        return value;
    }
    return NULL;
}
