/*
 * config/node.h: YAML text → a tree of nodes that remember where they were written.
 *
 * One document; maps, lists and scalars. Rejected while reading, all with a place: duplicate keys
 * (note: first place), anchors, aliases, '<<', tags, a second document, texts over 1 MiB, nesting
 * over 64 (libyaml 0.2.5 is quadratic in depth: reading stops there), non-scalar keys, an empty
 * document, bytes that are not UTF-8, control characters, a CR without LF (and the other line
 * breaks that only YAML 1.1 knows: they would move the line numbers). A byte order mark and CRLF
 * are fine. Reading goes on after a mistake where it can, and stops after 100. JSON is YAML, so a
 * Hugging Face config.json is read by the same code. What a scalar means is decided later by its
 * field (config/field.h): nothing is a boolean by itself.
 */
#ifndef FSDPSIM_CONFIG_NODE_H
#define FSDPSIM_CONFIG_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"

enum { NODE_MAX_BYTES = 1 << 20, NODE_MAX_DEPTH = 64, NODE_FOREIGN_MAX_BYTES = 64 << 20 };

enum node_kind { NODE_NULL, NODE_SCALAR, NODE_MAP, NODE_LIST };

struct node;

struct node_entry { /* of a map: key and value; of a list: key is NULL */
    const char *key;
    struct place key_place;
    struct node *value;
};

struct node {
    enum node_kind kind;
    bool is_quoted;     /* scalar in '' or "": never null, true or a number by accident */
    bool is_used;       /* a field has read it */
    bool is_default;    /* from a field's default_text, not written by the user */
    struct place place; /* of the value; for a map the place of its first key */
    const char *text;   /* scalar */
    const char *ref; /* what was written where a referenced file now stands (`cluster: dgx-h100`) */
    struct place ref_place; /* and where it was written; line 0 when it was a default */
    struct {
        struct node_entry *items;
        int32_t count, capacity;
    } entries;
};

/* Parses `source->text`; the source and its text must live as long as the tree. */
MUST_CHECK enum status node_parse(struct arena *arena, const struct source *source,
                                  struct node **root, struct diag *diag);
/* The same for what other programs write (JSON of thousands of entries): up to
   NODE_FOREIGN_MAX_BYTES. After an error `root` holds what came before it, or NULL. */
MUST_CHECK enum status node_parse_foreign(struct arena *arena, const struct source *source,
                                          struct node **root, struct diag *diag);
/* Reads and parses a file; `-` is standard input, in messages "<stdin>". */
MUST_CHECK enum status node_load(struct arena *arena, const char *path, struct node **root,
                                 struct diag *diag);

/* A copy of the whole tree, sharing its texts. */
struct node *node_copy(struct arena *arena, const struct node *node);
/* The whole tree in flow form on one line. */
const char *node_flow_text(struct arena *arena, const struct node *node);

struct node *node_get(const struct node *map, const char *key); /* NULL when absent */

#endif
