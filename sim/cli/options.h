/*
 * cli/options.h: the one table of options: parsing, --help, the man page and shell completion are
 * read from it. The same flag means the same under every verb.
 *
 * `--name value`, `--name=value`, `-n value`, `-nvalue`; options and files in any order; `--` ends
 * the options; no abbreviations. A wrong one is an error that names the nearest right one.
 */
#ifndef FSDPSIM_CLI_OPTIONS_H
#define FSDPSIM_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cli/verb.h"

struct text_list {
    const char **items;
    int32_t count, capacity;
};

/* What the command line said; all options of all verbs. */
struct options {
    bool is_help, is_quiet, is_plain; /* plain: no colour */
    bool is_json, is_dot, has_units, is_resolved, is_man;
    bool is_unstored;       /* --no-db */
    const char *db;         /* NULL: the default place */
    const char *dump_path;  /* NULL: no dump; "-": standard output */
    const char *trace_path; /* NULL: no trace */
    bool is_why;
    const char *table, *runs, *where; /* of db export; NULL: not given */
    bool overwrites;
    const char *budget; /* a quantity of bytes, NULL: none */
    bool has_ddp_buckets;
    const char *hidden_share; /* a fraction, NULL: not given */
    const char *kind;         /* check --as; NULL: a configuration */
    int64_t top;              /* 0: all */
    int64_t depth;            /* 0: not given */
    bool is_markdown;
    const char *svg;                         /* NULL: no picture */
    const char *torchtitan_log;              /* NULL: none */
    const char *update;                      /* a folder of results; NULL: none */
    int64_t limit;                           /* 0: not given */
    const char *source;                      /* part of a name, NULL: all */
    const char *op, *algorithm, *protocol;   /* NULL: not given */
    const char *begin, *end, *step;          /* sizes, NULL: not given */
    const char *network, *output, *cluster;  /* NULL: not given */
    int64_t factor;                          /* 0: not given */
    int64_t nodes, ranks, gpus_per_node;     /* 0: not given */
    const char *gpu, *nic_link, *cpu, *name; /* of import; NULL: not given */
    const char *model;                       /* the same */
    int64_t seq_len;                         /* 0: not given */
    bool is_csv, is_zip, is_rerun, retries_failed, is_dry_run, has_detail; /* of sweep */
    int64_t sobol;                                                         /* 0: not given */
    const char *tornado;                                                   /* NULL: not given */
    int64_t samples;                                                       /* 0: not given */
    int64_t jobs;                                                          /* 0: not given */
    const char *map, *line, *scaling, *shard;                              /* NULL: not given */
    struct text_list vary, until;                                          /* of solve */
    bool is_smallest, is_largest;                                          /* the same */
    const char *tolerance; /* a fraction, NULL: not given */
    struct text_list facts;
    struct text_list overrides;
    struct text_list conditions;
};

enum option_kind {
    OPTION_FLAG, /* bool */
    OPTION_TEXT, /* const char *, the last one counts */
    OPTION_LIST, /* struct text_list, repeatable */
    OPTION_COUNT /* int64_t, at least 1 */
};

struct option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;  /* in struct options */
    uint32_t verbs; /* bits 1 << enum verb_id */
    bool is_hidden;
    const char *value_name; /* "FILE"; NULL for a flag */
    const char *help;
};

extern const struct option option_table[]; /* ends with name NULL */
bool option_belongs(const struct option *option, const struct verb *verb);

/* Reads argv[from…]; what is no option goes to `arguments`. */
MUST_CHECK enum status options_parse(struct arena *arena, const struct verb *verb, int argc,
                                     char **argv, int from, struct options *options,
                                     struct text_list *arguments, struct diag *diag);

#endif
