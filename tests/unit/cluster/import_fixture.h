/* tests/unit/cluster/import_fixture.h: a foreign file, imported, and the YAML of it loaded as any.
 */
#ifndef FSDPSIM_TESTS_IMPORT_FIXTURE_H
#define FSDPSIM_TESTS_IMPORT_FIXTURE_H

#include "cluster/import.h"
#include "cluster_fixture.h"

struct imported {
    struct cluster_fixture fixture; /* its status: of loading what was imported */
    struct strbuf file, yaml;
    struct source source, yaml_source;
    enum status status; /* of the import alone */
};

/* Zero `imported` first. */
void import_text(struct imported *imported, enum import_format format, const char *name,
                 const char *text, const struct import_options *options);
void load_imported(struct imported *imported);
/* A file of tests/topologies, imported and, when that went well, loaded. */
void import_file(struct imported *imported, const char *file, const struct import_options *options);
void imported_release(struct imported *imported);

#endif
