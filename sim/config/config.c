/* config/config.c: see config.h: the root file of a configuration. Binding is in bind.c. */
#include "config/config.h"

#include <string.h>

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
    const char *near = nearest_name(path, data_names(arena, config->data_folders, "configs"));
    diag_world(config->diag,
               "cannot open '%s': no such file, and no shipped config has that name%s", path,
               near != NULL ? arena_printf(arena, " (did you mean '%s'?)", near) : "");
    return NULL;
}

enum status config_load(struct config *config, const char *path)
{
    const char *file = find_root(config, path);
    if (file == NULL)
        return STATUS_WORLD;
    const bool is_stdin = strcmp(file, "-") == 0;
    config->root_folder = is_stdin ? "." : file_folder(config->arena, file);
    config->root_name = is_stdin ? NULL : file_stem(config->arena, file);
    return node_load(config->arena, file, &config->root, config->diag);
}
