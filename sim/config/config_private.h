/*
 * config/config_private.h: what the files of this room share.
 *
 *   node.c, node_text.c    text → tree → text     override.c  -s → edits of the tree
 *   field.c                a row in words         ref.c       names → files, data folders
 *   bind.c, bind_value.c   tree → structs         origin.c    what is in force, and from where
 *   config.c               the front door         schema.c    the reference of a table
 *   cache.c                files read once
 */
#ifndef FSDPSIM_CONFIG_CONFIG_PRIVATE_H
#define FSDPSIM_CONFIG_CONFIG_PRIVATE_H

#include "base/strbuf.h"
#include "config/config.h"

#define COMMAND_LINE_NAME "<command line>"

/* Beyond these, more messages help nobody and cost time. */
enum { CONFIG_MAX_MISTAKES = 100, CONFIG_MAX_REF_DEPTH = 16 };

/* One step of a dotted path: a key, or an index into a list when key is NULL. */
struct path_part {
    const char *key;
    int64_t index;
    struct place place;
};

struct config_edit {
    struct config_edit *next;
    struct {
        struct path_part *items;
        int32_t count, capacity;
    } parts;
    const char *path;   /* the parts in one text, as paths of values are written */
    struct node *value; /* NODE_NULL: back to the default */
};

/* node.c, node_text.c */
/* Size and characters of a source; adds the first mistake. */
bool text_check(const struct source *source, size_t max_bytes, struct diag *diag);
/* As node_parse, from byte `offset` on; a text without content gives a NODE_NULL. */
MUST_CHECK enum status node_parse_part(struct arena *arena, const struct source *source,
                                       size_t offset, struct node **root, struct diag *diag);
struct node_entry *node_entry_find(const struct node *map, const char *key);
/* node_load, or a copy of what the cache of the configuration has of it. */
MUST_CHECK enum status file_load(struct config *config, const char *path, struct node **root);
/* A text as it would be written, inside [] and {} or not: plain when that reads back the same, else
   in double quotes. */
void strbuf_add_scalar(struct strbuf *buf, const char *text, bool is_inside);
/* "a map", "a list", "nothing" or the scalar in quotes. */
const char *node_describe(struct arena *arena, const struct node *node);
/* The first character that a text may not hold (see base/shown_text.h; line feeds are fine), or 0.
 */
uint32_t text_hidden_character(const char *text);
/* Characters of UTF-8 text up to `bytes`. */
int32_t utf8_length(const char *text, size_t bytes);

/* field.c */
const struct field *field_find(const struct field_table *table, const char *key);
const struct choice *choice_find(const struct choice *choices, const char *word);
bool table_has_required(const struct field_table *table);
/* Whether `value` lies in min … max; the bounds in words ("from 1 to 64"), "" when there are none.
 */
bool field_is_in_range(const struct field *field, double value);
const char *field_range(struct arena *arena, const struct field *field);
/* "an integer from 1 to 64 or 'all'" */
const char *field_accepted(struct arena *arena, const struct field *field);
/* NULL-ended lists for nearest_name. */
const char *const *table_keys(struct arena *arena, const struct field_table *table);
const char *const *choice_words(struct arena *arena, const struct choice *choices);
/* "did you mean 'NEAR'? LABEL: a, b, c": the first part only when something is near. */
const char *suggestion(struct arena *arena, const char *word, const char *const *names,
                       const char *label);

/* bind_value.c: reads one scalar into `slot` and records its origin, or adds an error. */
void bind_value(struct config *config, const struct field *field, const char *path,
                const struct node *node, void *slot);
/* The error "'KEY' must be ACCEPTED, not …". */
void bind_wrong_kind(struct config *config, const struct field *field, const char *path,
                     const struct node *node, const char *hint);

/* bind.c */
struct node *default_node(struct config *config, const struct field *field, const char *path);
const char *path_join(struct arena *arena, const char *parent, const char *key);

/* ref.c: *slot is a scalar; on success it is the root of the file that it names. */
MUST_CHECK enum status ref_load(struct config *config, const struct field *field,
                                struct node **slot);
/* "x" of "a/x.yaml"; "MyModel" of "MyModel/config.json". */
const char *file_stem(struct arena *arena, const char *path);
const char *file_folder(struct arena *arena, const char *path);
const char *file_join(struct arena *arena, const char *folder, const char *name);
bool file_exists(const char *path);
/* Why what is there cannot be read as a file: "it is a folder", or the system's words; NULL:
   nothing is there, or it can. */
const char *path_obstacle(const char *path);
/* DATA/FOLDER/NAME.yaml (or .json) in the first data folder that has it, or NULL. */
const char *data_file(struct arena *arena, const char *const *data_folders, const char *folder,
                      const char *name, bool also_json);

/* cache.c */
/* The parsed default_text of a field; NULL: not kept. */
const struct node *cached_default(const struct config *config, const char *text);
void cache_default(const struct config *config, const char *text, const struct node *node);
/* The file that a shipped name stands for in a folder; NULL: not kept. */
const char *cached_name(const struct config *config, const char *folder, const char *name);
void cache_name(const struct config *config, const char *folder, const char *name,
                const char *path);
/* A miss is bound between memo_begin and memo_end, in the cache's memory. */
struct memo_scope {
    const char *key; /* NULL: it is not to be kept */
    struct arena *arena;
    struct config_origin *origins;
    int32_t origin_count, origin_capacity, message_count;
};
bool memo_find(struct config *config, const struct field *field, struct node **value,
               const char *path, void *slot);
void memo_begin(struct config *config, const struct field *field, struct node **value,
                const char *path, struct memo_scope *scope);
void memo_end(struct config *config, const struct memo_scope *scope, const struct field *field,
              struct node *root, const void *slot);
/* origin.c */
struct hash128 origin_hash(const struct config_origin *origin);
void origins_append(struct config *config, const struct config_origin *items, int32_t count);

/* override.c */
MUST_CHECK enum status edits_apply(struct config *config, const struct field_table *table);

/* origin.c */
void origin_add(struct config *config, const char *path, const char *value,
                const struct node *node);
void origin_add_label(struct config *config, const char *path, const char *value,
                      const char *origin, struct place place);

/* A scalar where `field` is a STRUCT with a scalar_key becomes the map it stands for. */
void expand_scalar(struct config *config, const struct field *field, struct node **value);

#endif
