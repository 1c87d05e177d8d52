/* tests/unit/cluster/test_import_tables.c: what topologies/import/ names is there. */
#include <string.h>

#include "cluster/import_tables.h"
#include "cluster_tests.h"

static const char *const folders[] = {FSDPSIM_SOURCE_DIR, NULL};

struct loaded {
    struct arena arena;
    struct diag diag;
    struct import_tables tables;
};

static bool load(struct loaded *loaded)
{
    *loaded = (struct loaded){0};
    diag_init(&loaded->diag, &loaded->arena);
    return CHECK_INT(import_tables_load(&loaded->arena, folders, &loaded->tables, &loaded->diag),
                     STATUS_OK);
}

static void check_name(const struct import_tables *tables, const char *folder, const char *name)
{
    check_context("%s/%s", folder, name);
    const char *found = import_catalog_name(tables, folder, name);
    if (CHECK_TRUE(found != NULL))
        CHECK_TEXT(found, name); /* no alias */
}

static void test_gpus(void)
{
    struct loaded loaded;
    if (load(&loaded)) {
        const struct import_tables *tables = &loaded.tables;
        for (int32_t k = 0; k < tables->gpu_count; k++) {
            const struct gpu_row *row = &tables->gpus[k];
            if (row->gpu[0] != '\0')
                check_name(tables, "topologies/gpus", row->gpu);
            if (row->links > 0)
                check_name(tables, "topologies/links", row->link);
            check_context("%s", row->what);
            CHECK_TRUE(import_machine_node(tables, row->like, "host") != NULL);
            CHECK_TRUE(import_machine_node(tables, row->like, "collectives") != NULL);
            CHECK_INT(row->links > 0, row->link_bytes_per_s > 0);
            CHECK_TRUE(import_pcie_row(tables, row->gt_per_s)->gt_per_s == row->gt_per_s);
        }
    }
    check_context(NULL);
    arena_release(&loaded.arena);
}

static void test_hosts(void)
{
    struct loaded loaded;
    if (load(&loaded)) {
        const struct import_tables *tables = &loaded.tables;
        for (int32_t k = 0; k < tables->cpu_count; k++) {
            check_name(tables, "topologies/cpus", tables->cpus[k].cpu);
            check_name(tables, "topologies/links", tables->cpus[k].socket);
        }
        for (int32_t k = 0; k < tables->nic_link_count; k++)
            check_name(tables, "topologies/links", tables->nic_links[k].link);
        for (int32_t k = 0; k < tables->nic_count; k++) {
            bool has_kind = false;
            for (int32_t j = 0; j < tables->nic_link_count; j++)
                has_kind |= strcmp(tables->nics[k].kind, tables->nic_links[j].kind) == 0;
            check_context("%s", tables->nics[k].what);
            CHECK_TRUE(has_kind);
        }
    }
    check_context(NULL);
    arena_release(&loaded.arena);
}

/* 16 lanes of the table are the link of the catalog. */
static void test_pcie(void)
{
    struct loaded loaded;
    if (load(&loaded)) {
        for (int32_t k = 0; k < loaded.tables.pcie_count; k++) {
            const struct pcie_row *row = &loaded.tables.pcie[k];
            if (row->link[0] == '\0')
                continue;
            check_context("%s", row->link);
            CHECK_NEAR(16 * row->lane_bytes_per_s,
                       import_link_bytes_per_s(&loaded.tables, row->link), 0.002);
        }
    }
    check_context(NULL);
    arena_release(&loaded.arena);
}

const struct check_case import_table_cases[] = {
    {"GPUs", test_gpus},
    {"hosts", test_hosts},
    {"PCIe", test_pcie},
    {0},
};
