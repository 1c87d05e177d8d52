/*
 * config/field.h: field tables. A field is one row, and from that row come the parser, the error
 * message (accepted values, range, units, "did you mean"), the `schema` output and the reference
 * text: they cannot disagree. `config` knows no domain; each domain room owns its tables.
 *
 *   static const struct field nic_fields[] = {
 *       {.key = "count", .kind = FIELD_COUNT, .offset = offsetof(struct nics, count), .min = 1,
 *        .max = 64, .is_required = true, .help = "NICs a host"},
 *       {.key = "bandwidth", .kind = FIELD_QUANTITY, .dimension = DIM_BANDWIDTH,
 *        .offset = offsetof(struct nics, bytes_per_s), .is_required = true, .help = "per
 * direction"}, {0}};
 *
 * Values: FIELD_BOOL accepts true/false only. FIELD_COUNT is an integer without unit (digits, an
 * optional '-'; `1_000`, octal, hex, 1e3 are errors) or one of `choices` (words → values, as in
 * `gpus_per_node: all`). FIELD_REAL is a number without unit, or one of `choices`. FIELD_TEXT
 * and the items of FIELD_TEXT_LIST hold no control characters but line feed and tab, and none that
 * turn the direction of writing; one that `is_line` (a name, a summary: what is printed in tables)
 * is one line of 1 to 200 bytes; a scalar is a FIELD_TEXT_LIST of one. FIELD_QUANTITY
 * needs its unit, and may be quoted (JSON has no other way); the other numbers may not. null, `~`
 * and nothing mean "not set", what -s has of it always the default; in a file `null_means` says.
 *
 * min/max are inclusive and in SI; both 0 means no bound; max below min, or INFINITY, means no
 * upper bound ({.min = 1} is "at least 1"). For FIELD_LIST and FIELD_TEXT_LIST they bound the item
 * count.
 *
 * An absent map of a FIELD_STRUCT still gets the defaults of its table, unless that table has
 * required keys or is chosen by content (`choose`) and the field has no default_text: then the
 * struct stays zeroed. A FIELD_TEXT named "name" in a referenced file (or the root file) defaults
 * to its stem.
 */
#ifndef FSDPSIM_CONFIG_FIELD_H
#define FSDPSIM_CONFIG_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/units.h"
#include "config/node.h"

enum field_kind {
    FIELD_END = 0,
    FIELD_BOOL,      /* bool */
    FIELD_COUNT,     /* int64_t */
    FIELD_REAL,      /* double */
    FIELD_QUANTITY,  /* double, SI */
    FIELD_ENUM,      /* int, one of choices */
    FIELD_TEXT,      /* const char *, any scalar */
    FIELD_STRUCT,    /* a map → struct embedded at offset, by `table` (or `choose`) */
    FIELD_LIST,      /* a list of maps → struct config_list of structs, by `table` */
    FIELD_TEXT_LIST, /* a scalar or a list of them → struct config_list of const char * */
    FIELD_REF,       /* like FIELD_STRUCT; a scalar names a file: folder/NAME.yaml, or a path */
    FIELD_ANY,       /* const struct node *: kept as it is, for a reader of its own */
};

enum { FIELD_LINE_MAX_BYTES = 200 };

struct choice {
    const char *word;
    int64_t value;
    const char *help; /* may be NULL */
};

struct config_list {
    void *items;
    int64_t count;
};

struct field_table;
struct config;

/* What null in a file stands for. */
enum null_meaning {
    NULL_IS_DEFAULT, /* as if it were left out; a warning says so */
    NULL_IS_UNSET,   /* zero and "not set", whatever the default is */
    NULL_IS_WRONG    /* a mistake */
};

struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;
    bool is_required;
    const char *default_text; /* as it would be written in YAML; NULL: zero and "not set" */
    enum dimension dimension;
    double min, max;
    const struct choice *choices;    /* ends with {0} */
    const struct field_table *table; /* STRUCT, LIST, REF */
    /* STRUCT, REF: the table depends on what the map says (`model_type: llama`); NULL after
       adding a message. */
    const struct field_table *(*choose)(const struct node *map, struct diag *diag);
    /* STRUCT: a scalar stands for a map with this one key, so that `loss: fused` is
       `loss: {impl: fused}`; NULL: a scalar is an error. */
    const char *scalar_key;
    const char *folder;    /* REF: below the data folders */
    const char *also_json; /* REF: when set, a path may name a .json file too */
    bool is_line;          /* TEXT, TEXT_LIST: no line feed, no tab, not empty, no more than
                              FIELD_LINE_MAX_BYTES */
    const char *help;      /* one line */
    enum null_meaning null_means;
    bool
        is_expected; /* a foreign file (warns_unknown) that leaves it to its default is warned of */
};

struct field_table {
    const char *name;           /* "nics" */
    const char *help;           /* one line for schema */
    const struct field *fields; /* ends with {0} */
    size_t struct_bytes;
    const char *const *ignored_keys; /* accepted and skipped silently (cosmetic keys); NULL-ended */
    bool warns_unknown; /* one warning for all unknown keys instead of errors (foreign files) */
    /* Cross-checks of one struct, after binding; adds its messages. May be NULL. `path` is the
       dotted path of the map, "" for the root; use config_place(). */
    void (*check)(struct config *config, const char *path, void *bound);
};

/* What the files of a catalog begin with. */
#define FIELD_VERSION(type)                                                                        \
    {                                                                                              \
        .key = "version", .kind = FIELD_COUNT, .offset = offsetof(type, version),                  \
        .default_text = "1", .min = 1, .max = 1, .help = "of the file format"                      \
    }

#define FIELD_NAME(type)                                                                           \
    {                                                                                              \
        .key = "name", .kind = FIELD_TEXT, .offset = offsetof(type, name), .is_required = true,    \
        .is_line = true, .help = "as it is printed"                                                \
    }

#define FIELD_SUMMARY(type)                                                                        \
    {                                                                                              \
        .key = "summary", .kind = FIELD_TEXT, .offset = offsetof(type, summary), .is_line = true,  \
        .help = "one line for lists"                                                               \
    }

/* Prints the reference of a table: keys, kinds, units, ranges, defaults, help, nested tables. */
void schema_write(const struct field_table *table, FILE *file);

#endif
