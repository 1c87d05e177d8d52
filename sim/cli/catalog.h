/*
 * cli/catalog.h: model, cluster, GPU and calibration files by themselves: what `list` shows and
 * `check --as` and `schema` read. One row a kind; configurations are not among them
 * (run/experiment.h reads those).
 */
#ifndef FSDPSIM_CLI_CATALOG_H
#define FSDPSIM_CLI_CATALOG_H

#include <stdio.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "model/model.h"

struct catalog_entry {
    struct config config;
    const char *summary;              /* "8,030,261,248 parameters" */
    struct cluster cluster;           /* of a cluster file */
    struct gpu gpu;                   /* of a GPU file */
    struct calibration calibration;   /* of a calibration file */
    const struct model_config *model; /* of a model file */
};

struct catalog_kind {
    const char *word, *plural; /* "gpu", "gpus" */
    const char *folder;        /* below the data folders */
    const struct field_table *const *tables;
    enum status (*load)(struct arena *arena, struct catalog_entry *entry);
};

/* By either word; NULL: there is none. */
const struct catalog_kind *catalog_find(const char *word);
void catalog_write_schema(const struct catalog_kind *kind, FILE *file);

/* The file of a shipped name, or the name itself when it is a path. */
const char *catalog_path(struct arena *arena, const struct catalog_kind *kind, const char *name);
/* Reads and checks one file, given by path or by shipped name; release it whatever the status. */
MUST_CHECK enum status catalog_load(struct arena *arena, const struct catalog_kind *kind,
                                    const char *name, struct catalog_entry *entry,
                                    struct diag *diag);
/* The same, with values in place of the file's: "hosts.max=2". */
MUST_CHECK enum status catalog_load_with(struct arena *arena, const struct catalog_kind *kind,
                                         const char *name, const char *const *overrides,
                                         int32_t count, struct catalog_entry *entry,
                                         struct diag *diag);
void catalog_release(struct catalog_entry *entry);

#endif
