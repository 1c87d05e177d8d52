/*
 * foreign/foreign_private.h: what the readers of foreign configurations share.
 *
 * A reader walks a map with a table of the keys that the tool knows (foreign_classify says what has
 * no counterpart), reads the values that it needs, and sets lines of the result.
 */
#ifndef FSDPSIM_FOREIGN_FOREIGN_PRIVATE_H
#define FSDPSIM_FOREIGN_FOREIGN_PRIVATE_H

#include "config/field.h"
#include "config/node.h"
#include "foreign/foreign.h"

struct foreign_line {
    const char *path, *value; /* "fsdp.cpu_offload.params" */
    const char *note;         /* "read: …", "assumed: …" */
};

struct foreign {
    struct arena *arena;
    struct diag *diag;
    const struct foreign_options *options;
    struct {
        struct foreign_line *items;
        int32_t count, capacity;
    } lines;
    struct {
        const char **items;
        int32_t count, capacity;
    } dropped; /* lines of comments */
    struct {
        const char **items;
        int32_t count, capacity;
    } silent; /* keys without an effect */
};

enum foreign_use {
    FOREIGN_USED,
    FOREIGN_SILENT, /* changes neither time nor memory of a step */
    FOREIGN_DROPPED /* changes it, and has no counterpart: `why` */
};

struct foreign_key { /* tables end with {0} */
    const char *key;
    enum foreign_use use;
    const char *why;
};

/* foreign.c */
/*
 * Says of each key of the map what becomes of it. `section`: for messages, NULL: the file itself.
 * Without a map nothing.
 */
void foreign_classify(struct foreign *foreign, const struct node *map,
                      const struct foreign_key *keys, const char *section);
/* A key that asks for nothing: null, false, none, 0, an empty list. */
bool foreign_is_off(const struct node *value);
/* A key that changes nothing as it stands. */
void foreign_ignore(struct foreign *foreign, const struct node_entry *entry);
/* A key that is known, but not here. */
void foreign_drop(struct foreign *foreign, const struct node_entry *entry, const char *why);

/* foreign_read.c: NULL or false where the key is absent, null or "auto"; wrong values are errors.
 */
const struct node_entry *foreign_entry(const struct node *map, const char *key);
const struct node *foreign_map(struct foreign *foreign, const struct node *map, const char *key);
bool foreign_is_auto(const struct node *map, const char *key);
/* There, and neither null nor "auto". */
bool foreign_is_written(const struct node *map, const char *key);
const char *foreign_text(struct foreign *foreign, const struct node *map, const char *key);
bool foreign_bool(struct foreign *foreign, const struct node *map, const char *key, bool *value);
/* From `least` on; 5e8 is a count too. */
bool foreign_count(struct foreign *foreign, const struct node *map, const char *key, int64_t least,
                   int64_t *value);
bool foreign_real(struct foreign *foreign, const struct node *map, const char *key, double *value);
/* One of the words, in capitals or not; words end with {0}. */
bool foreign_word(struct foreign *foreign, const struct node *map, const char *key,
                  const struct choice *words, int *value);

/* foreign_write.c */
void foreign_set(struct foreign *foreign, const char *path, const char *value, const char *note);
/* "read: key: text" of an entry. */
const char *foreign_read_note(struct foreign *foreign, const struct node_entry *entry);
/* Assumed, with a warning: the file does not say what shapes the result. */
void foreign_assume(struct foreign *foreign, const char *path, const char *value, const char *why);
/* The same with a note: what the tool itself takes where nothing is written. */
void foreign_default(struct foreign *foreign, const char *path, const char *value, const char *why);
void foreign_write(const struct foreign *foreign, const char *title, struct strbuf *out);

/* accelerate.c, deepspeed.c: the keys of a file, and a reader that fills the lines. */
extern const struct foreign_key accelerate_keys[], deepspeed_keys[];
void accelerate_read(struct foreign *foreign, const struct node *root);
void deepspeed_read(struct foreign *foreign, const struct node *root);
/* What accelerate's `deepspeed_config` and DeepSpeed's `zero_optimization` share. */
int64_t deepspeed_set_stage(struct foreign *foreign, const struct node *map, const char *key,
                            int64_t fallback);
/* Neither file says whether the model checkpoints. */
void deepspeed_set_checkpointing(struct foreign *foreign);
void deepspeed_set_offload(struct foreign *foreign, const struct node *map, const char *key,
                           const char *path, int64_t least_stage, int64_t stage);

#endif
