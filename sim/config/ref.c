/*
 * config/ref.c: names of files: data folders, shipped names, paths, and the file that a FIELD_REF
 * names.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config_private.h"

static bool has_suffix(const char *text, const char *suffix)
{
    const size_t length = strlen(text);
    const size_t suffix_length = strlen(suffix);
    return length > suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

bool text_is_path(const char *text)
{
    return strchr(text, '/') != NULL || has_suffix(text, ".yaml") || has_suffix(text, ".yml") ||
           has_suffix(text, ".json");
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

const char *path_obstacle(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return errno == ENOENT || errno == ENOTDIR ? NULL : strerror(errno);
    return S_ISDIR(about.st_mode) ? "it is a folder" : NULL;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0 && !is_folder(path);
}

const char *file_join(struct arena *arena, const char *folder, const char *name)
{
    if (name[0] == '/' || folder[0] == '\0' || strcmp(folder, ".") == 0)
        return name;
    return arena_printf(arena, "%s%s%s", folder, has_suffix(folder, "/") ? "" : "/", name);
}

const char *file_folder(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return ".";
    return slash == path ? "/" : arena_strndup(arena, path, (size_t)(slash - path));
}

const char *file_stem(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    /* As Hugging Face lays its repositories out: the model's name is that of the folder. */
    if (slash != NULL && strncmp(name, "config.", 7) == 0 && dot == name + 6) {
        const char *folder = file_folder(arena, path);
        slash = strrchr(folder, '/');
        folder = slash != NULL ? slash + 1 : folder;
        if (folder[0] != '\0' && strcmp(folder, ".") != 0 && strcmp(folder, "..") != 0)
            return arena_strdup(arena, folder);
    }
    const bool is_ours = dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 ||
                                         strcmp(dot, ".json") == 0);
    return is_ours ? arena_strndup(arena, name, (size_t)(dot - name)) : arena_strdup(arena, name);
}

/* ---- data folders ------------------------------------------------------------------------- */

struct text_list {
    const char **items;
    int32_t count, capacity;
};

static void add_once(struct arena *arena, struct text_list *list, const char *text)
{
    for (int32_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return;
    *ARENA_PUSH(arena, list) = text;
}

static const char *const *ended(struct arena *arena, struct text_list *list)
{
    *ARENA_PUSH(arena, list) = NULL;
    return list->items;
}

/* Below the working folder as a relative path: messages stay short and the same on every machine.
 */
static const char *from_here(struct arena *arena, const char *folder)
{
    char here[4096];
    if (getcwd(here, sizeof(here)) == NULL)
        return folder;
    const size_t length = strlen(here);
    if (strncmp(folder, here, length) != 0)
        return folder;
    if (folder[length] == '\0')
        return ".";
    return folder[length] == '/' && length > 1 ? arena_strdup(arena, folder + length + 1) : folder;
}

static void add_data_folder(struct arena *arena, struct text_list *list, const char *folder)
{
    if (is_folder(folder))
        add_once(arena, list, from_here(arena, folder));
}

static void add_from_environment(struct arena *arena, struct text_list *list)
{
    const char *folders = getenv("FSDPSIM_DATA");
    while (folders != NULL && *folders != '\0') {
        const size_t length = strcspn(folders, ":");
        if (length > 0)
            add_data_folder(arena, list, arena_strndup(arena, folders, length));
        folders += length + (folders[length] == ':');
    }
}

/* Of a program or library: PREFIX/share beside PREFIX/bin, PREFIX/lib or PREFIX/lib/TRIPLET, or the
   source tree (or a build folder in it). */
static void add_beside(struct arena *arena, struct text_list *list, const char *path)
{
    const char *folder = file_folder(arena, path);
    const char *prefix = file_folder(arena, folder);
    add_data_folder(arena, list, file_join(arena, prefix, "share/fsdpsim"));
    if (has_suffix(prefix, "/lib"))
        add_data_folder(arena, list, file_join(arena, file_folder(arena, prefix), "share/fsdpsim"));
    for (const char *at = folder;; at = file_folder(arena, at)) {
        if (is_folder(file_join(arena, at, "topologies")) &&
            is_folder(file_join(arena, at, "models"))) {
            add_data_folder(arena, list, at);
            return;
        }
        if (strcmp(at, "/") == 0 || strcmp(at, ".") == 0)
            return;
    }
}

static void add_beside_executable(struct arena *arena, struct text_list *list)
{
    char link[4096];
    const ssize_t length = readlink("/proc/self/exe", link, sizeof(link) - 1);
    if (length <= 0)
        return;
    link[length] = '\0';
    add_beside(arena, list, link);
}

/* "7f12a000-7f12b000 r--p 00000000 08:01 1234    /usr/lib/libx.so": whether the range holds
   `address`. */
static bool is_mapping_of(const char *line, uintptr_t address)
{
    uintptr_t bounds[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        for (; isxdigit((unsigned char)*line) != 0; line++)
            bounds[i] = bounds[i] << 4 | (uintptr_t)(*line <= '9' ? *line - '0' : *line - 'a' + 10);
        line++;
    }
    return address >= bounds[0] && address < bounds[1];
}

/* The program is another's when this code came to it in a shared library. */
static void add_beside_library(struct arena *arena, struct text_list *list)
{
    static const char here[] = "in this object";
    enum { MAPS_MAX_BYTES = 4 << 20 };
    struct diag quiet;
    struct strbuf maps = {0};
    diag_init(&quiet, arena);
    if (strbuf_read_file(&maps, "/proc/self/maps", MAPS_MAX_BYTES, &quiet) != STATUS_OK)
        goto out;
    for (char *line = maps.text; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        const char *path = strchr(line, '/');
        if (path != NULL && is_mapping_of(line, (uintptr_t)here)) {
            add_beside(arena, list, arena_strdup(arena, path));
            break;
        }
        line = end != NULL ? end + 1 : NULL;
    }
out:
    strbuf_release(&maps);
}

const char *const *data_folders_find(struct arena *arena)
{
    struct text_list list = {0};
    add_from_environment(arena, &list);
    add_beside_library(arena, &list);
    add_beside_executable(arena, &list);
#ifdef FSDPSIM_DATADIR
    add_data_folder(arena, &list, FSDPSIM_DATADIR);
#endif
    return ended(arena, &list);
}

const char *data_file(struct arena *arena, const char *const *data_folders, const char *folder,
                      const char *name, bool also_json)
{
    for (; data_folders != NULL && *data_folders != NULL; data_folders++) {
        const char *base = file_join(arena, file_join(arena, *data_folders, folder), name);
        const char *path = arena_printf(arena, "%s.yaml", base);
        if (file_exists(path))
            return path;
        path = arena_printf(arena, "%s.json", base);
        if (also_json && file_exists(path))
            return path;
    }
    return NULL;
}

const char *data_path(struct arena *arena, const char *const *data_folders, const char *folder,
                      const char *file_name)
{
    for (; data_folders != NULL && *data_folders != NULL; data_folders++) {
        const char *path = file_join(arena, file_join(arena, *data_folders, folder), file_name);
        if (file_exists(path))
            return path;
    }
    return NULL;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *const *names_in(struct arena *arena, const char *const *data_folders,
                                   const char *folder, bool also_json)
{
    struct text_list list = {0};
    for (; data_folders != NULL && *data_folders != NULL; data_folders++) {
        DIR *open = opendir(file_join(arena, *data_folders, folder));
        if (open == NULL)
            continue;
        for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
            const char *name = entry->d_name;
            if (name[0] != '.' &&
                (has_suffix(name, ".yaml") || (also_json && has_suffix(name, ".json"))))
                add_once(arena, &list, file_stem(arena, name));
        }
        closedir(open);
    }
    if (list.count > 1)
        qsort(list.items, (size_t)list.count, sizeof(*list.items), compare_texts);
    return ended(arena, &list);
}

const char *const *data_names(struct arena *arena, const char *const *data_folders,
                              const char *folder)
{
    return names_in(arena, data_folders, folder, true);
}

const char *data_folder_path(struct arena *arena, const char *const *data_folders,
                             const char *folder)
{
    for (; data_folders != NULL && *data_folders != NULL; data_folders++) {
        const char *path = file_join(arena, *data_folders, folder);
        if (is_folder(path))
            return path;
    }
    return NULL;
}

const char *const *folder_files(struct arena *arena, const char *folder, const char *suffix)
{
    struct text_list list = {0};
    DIR *open = opendir(folder);
    if (open == NULL)
        return NULL;
    for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        /* Not as it stands in the entry, which the next one replaces. */
        const char *path = file_join(arena, folder, arena_strdup(arena, entry->d_name));
        if (entry->d_name[0] != '.' && has_suffix(entry->d_name, suffix) && file_exists(path))
            *ARENA_PUSH(arena, &list) = path;
    }
    closedir(open);
    if (list.count > 1)
        qsort(list.items, (size_t)list.count, sizeof(*list.items), compare_texts);
    return ended(arena, &list);
}

/* ---- aliases ------------------------------------------------------------------------------ */

struct alias {
    const char *word, *name; /* what people write; the file that it means, without ending */
};

struct alias_list {
    struct alias *items;
    int32_t count, capacity;
};

static bool contains_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (; *text != '\0'; text++)
        if (strncasecmp(text, word, length) == 0)
            return true;
    return false;
}

/* Of one file; its own mistakes are for whoever loads it. */
static void add_aliases(struct arena *arena, struct alias_list *list, const char *path,
                        const char *name, const char *word)
{
    struct diag quiet;
    struct strbuf text = {0};
    struct node *root = NULL;
    diag_init(&quiet, arena);
    if (strbuf_read_file(&text, path, NODE_MAX_BYTES, &quiet) != STATUS_OK)
        goto out;
    if (word != NULL && !contains_word(text.text, word))
        goto out;
    const struct source source = {.name = path, .text = text.text, .length = text.length};
    if (node_parse(arena, &source, &root, &quiet) != STATUS_OK || root->kind != NODE_MAP)
        goto out;
    const struct node *words = node_get(root, "aliases");
    for (int32_t i = 0; words != NULL && words->kind == NODE_LIST && i < words->entries.count; i++)
        if (words->entries.items[i].value->kind == NODE_SCALAR)
            *ARENA_PUSH(arena, list) = (struct alias){
                .word = arena_strdup(arena, words->entries.items[i].value->text), .name = name};
out:
    strbuf_release(&text);
}

/* The aliases of all files of a folder; with `word`, of those files that contain it. */
static struct alias_list folder_aliases(struct config *config, const char *folder, const char *word)
{
    struct alias_list list = {0};
    if (folder == NULL)
        return list;
    for (const char *const *names = names_in(config->arena, config->data_folders, folder, false);
         *names != NULL; names++)
        add_aliases(config->arena, &list,
                    data_file(config->arena, config->data_folders, folder, *names, false), *names,
                    word);
    return list;
}

/* The file that has the name among its top-level `aliases`, in any case; NULL when none has, and
   after the error that several have. */
static const char *alias_file(struct config *config, const struct field *field,
                              const struct node *name, bool *is_ambiguous)
{
    const struct alias *found = NULL;
    const struct alias_list list = folder_aliases(config, field->folder, name->text);
    for (int32_t i = 0; i < list.count; i++) {
        const struct alias *alias = &list.items[i];
        if (strcasecmp(alias->word, name->text) != 0)
            continue;
        if (found != NULL && strcmp(found->name, alias->name) != 0) {
            *is_ambiguous = true;
            diag_add(config->diag, DIAG_ERROR, name->place, NULL,
                     "%s for '%s' is an alias of '%s' and of '%s'",
                     node_describe(config->arena, name), field->key, found->name, alias->name);
            return NULL;
        }
        found = alias;
    }
    return found == NULL
               ? NULL
               : data_file(config->arena, config->data_folders, field->folder, found->name, false);
}

static const char *const *names_and_aliases(struct config *config, const struct field *field,
                                            const char *const *names)
{
    struct text_list list = {0};
    for (; *names != NULL; names++)
        add_once(config->arena, &list, *names);
    const struct alias_list aliases = folder_aliases(config, field->folder, NULL);
    for (int32_t i = 0; i < aliases.count; i++)
        add_once(config->arena, &list, aliases.items[i].word);
    return ended(config->arena, &list);
}

/* ---- FIELD_REF ---------------------------------------------------------------------------- */

/* The file that a path means, or NULL after an error. */
static const char *find_path(struct config *config, const struct field *field,
                             const struct node *name)
{
    struct arena *arena = config->arena;
    const char *written_in = name->place.source != NULL ? name->place.source->name : "";
    /* "<command line>" and "<stdin>" stand in no folder. */
    const bool is_in_file = written_in[0] != '<' && !name->is_default;
    const char *beside = file_join(
        arena, is_in_file ? file_folder(arena, written_in) : config->root_folder, name->text);
    const char *first = is_in_file ? beside : name->text;
    const char *second = is_in_file ? name->text : beside;
    if (has_suffix(name->text, ".json") && field->also_json == NULL) {
        diag_add(config->diag, DIAG_ERROR, name->place, NULL,
                 "'%s' names a JSON file: accepted is a YAML file", field->key);
        return NULL;
    }
    if (file_exists(first))
        return first;
    if (file_exists(second))
        return second;
    bool is_ambiguous = false;
    const char *alias = alias_file(config, field, name, &is_ambiguous);
    if (alias != NULL || is_ambiguous)
        return alias; /* "…-2.4TB/s-500W" only looks like a path */
    const char *obstacle = path_obstacle(first);
    if (obstacle == NULL)
        obstacle = path_obstacle(second);
    if (obstacle != NULL) {
        diag_add(config->diag, DIAG_ERROR, name->place, NULL, "cannot read %s for '%s': %s",
                 node_describe(arena, name), field->key, obstacle);
        return NULL;
    }
    const bool is_one = strcmp(first, second) == 0;
    diag_add(config->diag, DIAG_ERROR, name->place,
             is_one ? NULL : arena_printf(arena, "looked for %s and %s", first, second),
             "'%s' names no file: %s", field->key, node_describe(arena, name));
    return NULL;
}

static const char *find_name(struct config *config, const struct field *field,
                             const struct node *name)
{
    struct arena *arena = config->arena;
    const bool also_json = field->also_json != NULL;
    const char *path = name->text[0] == '\0' ? NULL
                                             : data_file(arena, config->data_folders, field->folder,
                                                         name->text, also_json);
    bool is_ambiguous = false;
    if (path == NULL && name->text[0] != '\0')
        path = alias_file(config, field, name, &is_ambiguous);
    if (path != NULL || is_ambiguous)
        return path;
    const char *const *names = names_in(arena, config->data_folders, field->folder, also_json);
    const bool has_folders = config->data_folders != NULL && config->data_folders[0] != NULL;
    const char *label = arena_printf(arena, "names in %s/ (or write a path)", field->folder);
    const char *hint = "no data folder was found: set FSDPSIM_DATA, or write a path";
    if (has_folders) {
        const char *alias = nearest_name(name->text, names_and_aliases(config, field, names));
        const char *near = nearest_name(name->text, names);
        /* An alias that is nearer than every file goes first; the list stays one of files. */
        hint = near == NULL && alias != NULL ? arena_printf(arena, "did you mean '%s'? %s", alias,
                                                            suggestion(arena, "", names, label))
                                             : suggestion(arena, name->text, names, label);
    }
    diag_add(config->diag, DIAG_ERROR, name->place, hint, "unknown name %s for '%s'",
             node_describe(arena, name), field->key);
    return NULL;
}

enum status ref_load(struct config *config, const struct field *field, struct node **slot)
{
    const struct node *name = *slot;
    if (config->ref_depth >= CONFIG_MAX_REF_DEPTH) {
        diag_add(config->diag, DIAG_ERROR, name->place, NULL, "files name each other in a circle");
        return STATUS_INPUT;
    }
    const bool is_path = text_is_path(name->text);
    const char *path = is_path ? NULL : cached_name(config, field->folder, name->text);
    if (path == NULL) {
        path = is_path ? find_path(config, field, name) : find_name(config, field, name);
        if (!is_path)
            cache_name(config, field->folder, name->text, path);
    }
    if (path == NULL)
        return STATUS_INPUT;
    struct node *root = NULL;
    const enum status status = file_load(config, path, &root);
    config->has_world_failure |= status == STATUS_WORLD;
    if (status != STATUS_OK)
        return status;
    root->ref = name->text;
    root->ref_place = name->is_default ? NO_PLACE : name->place;
    *slot = root;
    return STATUS_OK;
}
