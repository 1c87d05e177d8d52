/* study/validate_gpus.c: GPU files by the words that measured tables use. */
#include "base/strbuf.h"
#include "cluster/gpu_config.h"
#include "study/validate_private.h"

/* The file `name`.yaml; `bound` is its struct. Its messages are nobody's: the row is skipped. */
static enum status file_bind(struct gpu_shelf *shelf, const char *name, struct config **config,
                             struct gpu_config **bound)
{
    struct diag *diag = ARENA_NEW(shelf->arena, struct diag);
    *config = ARENA_NEW(shelf->arena, struct config);
    *bound = ARENA_NEW(shelf->arena, struct gpu_config);
    diag_init(diag, shelf->arena);
    config_init(*config, shelf->arena, diag, shelf->data_folders);
    const char *path = data_path(shelf->arena, shelf->data_folders, "topologies/gpus",
                                 arena_printf(shelf->arena, "%s.yaml", name));
    if (path == NULL)
        return STATUS_INPUT;
    enum status status = config_load(*config, path);
    return status == STATUS_OK ? config_bind(*config, &gpu_table, *bound) : status;
}

/* The name of the file that has `word` as an alias, or `word`. */
static const char *file_name(struct gpu_shelf *shelf, const char *word)
{
    const char *const *names = data_names(shelf->arena, shelf->data_folders, "topologies/gpus");
    for (int32_t i = 0; names[i] != NULL; i++)
        if (text_equal(names[i], word))
            return word;
    for (int32_t i = 0; names[i] != NULL; i++) {
        struct config *config;
        struct gpu_config *bound;
        if (file_bind(shelf, names[i], &config, &bound) != STATUS_OK)
            continue;
        const char *const *aliases = bound->aliases.items;
        for (int64_t k = 0; k < bound->aliases.count; k++)
            if (text_equal(aliases[k], word))
                return names[i];
    }
    return word;
}

static enum status load(struct gpu_shelf *shelf, const char *word, struct gpu *gpu)
{
    struct config *config;
    struct gpu_config *bound;
    enum status status = file_bind(shelf, file_name(shelf, word), &config, &bound);
    if (status == STATUS_OK)
        status = gpu_build(shelf->arena, config, "", bound, gpu);
    return status;
}

const struct loaded_gpu *gpu_shelf_take(struct gpu_shelf *shelf, const char *word)
{
    for (int32_t i = 0; i < shelf->count; i++)
        if (text_equal(shelf->items[i].word, word))
            return &shelf->items[i];
    struct loaded_gpu *loaded = ARENA_PUSH(shelf->arena, shelf);
    loaded->word = word;
    if (load(shelf, word, &loaded->gpu) != STATUS_OK)
        loaded->problem = arena_printf(shelf->arena, "no GPU file of the name '%s'", word);
    return loaded;
}

void gpu_shelf_release(struct gpu_shelf *shelf)
{
    for (int32_t i = 0; i < shelf->count; i++)
        gpu_release(&shelf->items[i].gpu);
}

void exclusion_count(struct arena *arena, struct validate_exclusions *list, const char *reason)
{
    for (int32_t i = 0; i < list->count; i++) {
        if (text_equal(list->items[i].reason, reason)) {
            list->items[i].rows++;
            return;
        }
    }
    *ARENA_PUSH(arena, list) = (struct validate_exclusion){reason, 1};
}
