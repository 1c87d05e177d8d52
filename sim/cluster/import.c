/* cluster/import.c: see import.h. */
#include "cluster/import.h"

#include "cluster/import_private.h"

enum status import_machine(struct arena *arena, enum import_format format,
                           const struct source *source, const struct import_options *options,
                           struct strbuf *yaml, struct diag *diag)
{
    struct machine_graph graph = {.arena = arena, .diag = diag, .source = source, .host_count = 1};
    struct import_tables tables;
    struct machine_facts facts;
    struct machine_plan plan;
    enum status status =
        format == IMPORT_NCCL_TOPO ? import_nccl_read(&graph) : import_topo_m_read(&graph);
    if (status == STATUS_OK)
        status = graph_finish(&graph);
    if (status == STATUS_OK)
        status = import_tables_load(arena, options->data_folders, &tables, diag);
    if (status == STATUS_OK)
        status = machine_settle(&graph, &tables, options, &facts);
    if (status != STATUS_OK)
        return status;
    machine_plan_build(&graph, &tables, &plan);
    machine_write(&graph, &tables, &facts, &plan, options, yaml);
    if (yaml->length <= NODE_MAX_BYTES)
        return STATUS_OK;
    diag_add(diag, DIAG_ERROR, (struct place){source, 1, 1, 1}, NULL,
             "too much for one host: its cluster file would be over 1 MiB");
    return STATUS_INPUT;
}
