/* tests/unit/cluster/import_fixture.c */
#include "import_fixture.h"

#include <string.h>

#include "check.h"

static const char *const folders[] = {FSDPSIM_SOURCE_DIR, NULL};

void import_text(struct imported *imported, enum import_format format, const char *name,
                 const char *text, const struct import_options *options)
{
    struct cluster_fixture *fixture = &imported->fixture;
    struct import_options all = *options;
    all.data_folders = folders;
    diag_init(&fixture->diag, &fixture->arena);
    imported->source = (struct source){name, text, strlen(text)};
    imported->status = import_machine(&fixture->arena, format, &imported->source, &all,
                                      &imported->yaml, &fixture->diag);
}

/* Loads the YAML that an import gave. */
void load_imported(struct imported *imported)
{
    struct cluster_fixture *fixture = &imported->fixture;
    imported->yaml_source = (struct source){"out.yaml", imported->yaml.text, imported->yaml.length};
    config_init(&fixture->config, &fixture->arena, &fixture->diag, folders);
    fixture->status =
        node_parse(&fixture->arena, &imported->yaml_source, &fixture->config.root, &fixture->diag);
    void *bound = arena_alloc(&fixture->arena, cluster_table.struct_bytes);
    if (fixture->status == STATUS_OK)
        fixture->status = config_bind(&fixture->config, &cluster_table, bound);
    if (fixture->status == STATUS_OK)
        fixture->status =
            cluster_build(&fixture->arena, &fixture->config, "", bound, &fixture->cluster);
}

void import_file(struct imported *imported, const char *file, const struct import_options *options)
{
    struct cluster_fixture *fixture = &imported->fixture;
    *imported = (struct imported){0};
    diag_init(&fixture->diag, &fixture->arena);
    const char *path =
        arena_printf(&fixture->arena, "%s/tests/topologies/%s", FSDPSIM_SOURCE_DIR, file);
    if (!CHECK_INT(strbuf_read_file(&imported->file, path, 1 << 24, &fixture->diag), STATUS_OK))
        return;
    const bool is_xml = strstr(file, ".xml") != NULL;
    import_text(imported, is_xml ? IMPORT_NCCL_TOPO : IMPORT_TOPO_M, file, imported->file.text,
                options);
    if (imported->status == STATUS_OK)
        load_imported(imported);
}

void imported_release(struct imported *imported)
{
    strbuf_release(&imported->file);
    strbuf_release(&imported->yaml);
    fixture_release(&imported->fixture);
}
