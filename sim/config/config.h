/*
 * config/config.h: a checked configuration: files, overrides, origins.
 *
 *   config_init → config_load (root file) → config_override (each -s) → config_bind → use
 *
 * Loading keeps a tree; `-s a.b.c=value` edits it (a path that goes through a FIELD_REF first loads
 * the file it names, so `-s cluster.host.nics.bandwidth=100Gbps` merges into the loaded cluster;
 * shorter paths apply before longer ones, otherwise in the order given, last wins; `-s key=` resets
 * to the default; the value is YAML in flow form, so lists and maps can be given). Binding fills a
 * struct by field tables, reports every mistake, and records the origin of every value in force.
 */
#ifndef FSDPSIM_CONFIG_CONFIG_H
#define FSDPSIM_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hash.h"
#include "config/field.h"
#include "config/node.h"

struct config_origin {
    const char *path;   /* "fsdp.wrap", "cluster.overrides[0].host" */
    const char *value;  /* as text, canonical (quantities with unit) */
    const char *origin; /* "configs/x.yaml:12:5", "<command line>", "default", "file name" */
    struct place place; /* line 0 for a default */
    bool is_label;      /* the name of a file, not content: not hashed */
    bool is_hashed;
    struct hash128 hash; /* of path and value, once it is_hashed */
};

struct config_edit; /* one -s, parsed: config_private.h */

/*
 * What many configurations have in common, read and bound once: give it to each of them
 * (config.cache), one after the other, and release it after the last.
 *
 * Files, names of files and defaults are read once: what a file said when it was first read holds
 * (so standard input, which can be read only once, serves all). A map that stands in another file
 * (FIELD_REF), and each section of the root file, is bound once for each set of overrides that go
 * into it, with its nodes, origins and their hashes; unless there was something to say about it.
 * When all that is more than CONFIG_CACHE_MAX_BYTES, it is forgotten and begun anew.
 */
enum { CONFIG_CACHE_MAX_BYTES = 64 << 20 };
/* What a caller derived from what is bound, kept beside it. */
struct config_derived {
    void *value; /* NULL: nothing yet */
    void (*release)(void *value);
};
struct config_cache {
    struct arena arena;              /* of the files */
    const char *const *data_folders; /* NULL: not looked for yet */
    struct config_cached_file *files;
    struct config_cached_text *defaults, *names;
    struct arena memo_arena;
    struct config_memo *memos;
    struct arena_pool pool;        /* for arenas of what lives as long as one configuration */
    struct config_derived derived; /* from whole configurations: the caller's (run/shelf.h) */
};
/* Before the next configuration: none that was made with the cache may be used any more. */
void config_cache_next(struct config_cache *cache);
/* Of the map at a path, when the cache has it: to find or to put what follows from it (in
   cache->memo_arena); NULL: not kept. */
struct config_derived *config_derived(const struct config *config, const char *path);
void config_cache_release(struct config_cache *cache); /* accepts a zeroed cache */
/* data_folders_find, once. */
const char *const *config_cache_folders(struct config_cache *cache);

struct config {
    struct arena *arena;
    struct diag *diag;
    struct node *root;
    const char *const *data_folders; /* searched in order for FIELD_REF, NULL-ended */
    const char *root_folder; /* of the root file: paths in it are relative to it, then to the cwd */
    struct {
        const char **items;
        int32_t count, capacity;
    } override_texts;
    struct config_edit *edits, *last_edit; /* the same, parsed, in the order given */
    struct {
        struct config_origin *items;
        int32_t count, capacity;
    } origins;
    struct config_cache *cache; /* may be NULL */
    const char *root_name;      /* stem of the root file, NULL for standard input */
    int32_t ref_depth;          /* files that name files: how deep binding is now */
    bool has_world_failure;     /* a referenced file could not be read */
};

/*
 * The data folders: $FSDPSIM_DATA (colon-separated), then the source tree or installed share folder
 * found beside the shared library that this is part of and beside the running executable, then the
 * compiled-in prefix. Each holds models/, topologies/, configs/. NULL-ended list in the arena.
 */
const char *const *data_folders_find(struct arena *arena);

void config_init(struct config *config, struct arena *arena, struct diag *diag,
                 const char *const *data_folders);
/* `path`: a file, "-" for standard input, or the name of a shipped config (configs/NAME.yaml). */
MUST_CHECK enum status config_load(struct config *config, const char *path);
/* "key.sub=value", collected; applied by config_bind. A malformed one is a placed error. */
MUST_CHECK enum status config_override(struct config *config, const char *text);
/* Takes a key of the root file out of it, before binding: what it held, or NULL. */
const struct node *config_take(struct config *config, const char *key);
/* Applies the overrides, loads references, fills `out` (zeroed struct of table->struct_bytes). */
MUST_CHECK enum status config_bind(struct config *config, const struct field_table *table,
                                   void *out);

/*
 * Where the value in force of a dotted path ("a.b[2].c") stands (its default: NO_PLACE), for later
 * checks. Of a map that came from another file: where that file is named.
 */
struct place config_place(const struct config *config, const char *path);
/* The value in force as text, "" when there is none. */
const char *config_value(const struct config *config, const char *path);
/* Records a value that follows from others, for `check --resolved` and the stored run: "nodes",
   "4", "cluster's default"; a value that stands already (`gpus_per_node: all`) is replaced by what
   it means. */
void config_add_derived(struct config *config, const char *path, const char *value,
                        const char *origin);
/* Whether a value was written (in a file or by -s), as against defaulted or absent. */
bool config_is_set(const struct config *config, const char *path);
/* Whether `path` is a file from which a value in force was read, under whatever name. */
bool config_has_read(const struct config *config, const char *path);
/* Adds an error at the value of `path`; when it is a default or absent, at the map that would hold
 * it. */
void config_error(struct config *config, const char *path, const char *hint, const char *format,
                  ...) PRINTF_LIKE(4, 5);
void config_warn(struct config *config, const char *path, const char *hint, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* `check --resolved`: path, value, origin, one line each. */
void config_write_resolved(const struct config *config, FILE *file);
/*
 * Hash of every value in force (paths and canonical values, in table order; not the origins, and
 * not the names of files: the same content under another name has the same hash).
 */
struct hash128 config_hash(const struct config *config);
/* Of the values outside some sections ("cluster", NULL-ended), with the names of files. */
struct hash128 config_hash_without(const struct config *config, const char *const *sections);

/* Whether a reference names a file (it has a '/' or the ending of one) and not one that ships. */
bool text_is_path(const char *text);

/* DATA/FOLDER/FILE_NAME in the first data folder that has it, or NULL: for files that are not YAML.
 */
const char *data_path(struct arena *arena, const char *const *data_folders, const char *folder,
                      const char *file_name);

/* DATA/FOLDER in the first data folder that has it, or NULL. */
const char *data_folder_path(struct arena *arena, const char *const *data_folders,
                             const char *folder);
/* The paths of the files of a folder that end in `suffix`, sorted, NULL-ended; NULL: no folder. */
const char *const *folder_files(struct arena *arena, const char *folder, const char *suffix);

/* Names that ship in a data folder: files NAME.yaml (and NAME.json) of `folder`, sorted. */
const char *const *data_names(struct arena *arena, const char *const *data_folders,
                              const char *folder);

#endif
