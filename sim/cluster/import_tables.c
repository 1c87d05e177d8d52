/* cluster/import_tables.c: see import_tables.h. */
#include "cluster/import_tables.h"

#include <string.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "config/config.h"
#include "config/csv_table.h"

enum { MOST_COLUMNS = 16 };

struct table_reader {
    struct arena *arena;
    struct diag *diag;
    struct csv_table csv;
    int32_t columns[MOST_COLUMNS];
};

/* ---- cells -------------------------------------------------------------------------------- */

static const struct csv_cell *cell_of(const struct table_reader *reader, int32_t row,
                                      int32_t column)
{
    return &reader->csv.rows.items[row].items[reader->columns[column]];
}

static const char *text_of(const struct table_reader *reader, int32_t row, int32_t column)
{
    return cell_of(reader, row, column)->text;
}

static void refuse_cell(struct table_reader *reader, const struct csv_cell *cell, const char *hint)
{
    diag_add(reader->diag, DIAG_ERROR, cell->place, hint, "'%s' cannot be read", cell->text);
}

/* "" is 0. */
static double quantity_of(struct table_reader *reader, int32_t row, int32_t column)
{
    const struct csv_cell *cell = cell_of(reader, row, column);
    double value = 0;
    if (cell->text[0] != '\0' && units_parse(cell->text, DIM_BANDWIDTH, &value, NULL) != UNIT_OK)
        refuse_cell(reader, cell, units_accepted(DIM_BANDWIDTH));
    return value;
}

/* "" is -1. */
static int64_t count_of(struct table_reader *reader, int32_t row, int32_t column)
{
    const struct csv_cell *cell = cell_of(reader, row, column);
    int64_t value = -1;
    if (cell->text[0] != '\0' && !text_to_int64(cell->text, &value))
        refuse_cell(reader, cell, "a whole number");
    return value;
}

/* Four hexadecimal digits; "" is 0. */
static uint32_t id_of(struct table_reader *reader, int32_t row, int32_t column)
{
    static const char digits[] = "0123456789abcdef";
    const struct csv_cell *cell = cell_of(reader, row, column);
    uint32_t value = 0;
    for (const char *at = cell->text; *at != '\0'; at++) {
        const char *digit = strchr(digits, *at);
        if (digit == NULL || value > 0xFFFF) {
            refuse_cell(reader, cell, "hexadecimal, as 10de");
            return 0;
        }
        value = value << 4 | (uint32_t)(digit - digits);
    }
    return value;
}

/* "16 GT/s"; "" is 0. */
static double transfer_rate_of(struct table_reader *reader, int32_t row, int32_t column)
{
    const struct csv_cell *cell = cell_of(reader, row, column);
    const size_t length = strspn(cell->text, "0123456789.");
    double value = 0;
    if (cell->text[0] != '\0' &&
        (!text_to_double(arena_strndup(reader->arena, cell->text, length), &value) ||
         strcmp(cell->text + length, " GT/s") != 0))
        refuse_cell(reader, cell, "as '16 GT/s'");
    return value;
}

/* ---- tables ------------------------------------------------------------------------------- */

static const char *const gpu_columns[] = {"vendor",    "device", "what", "gpu",   "arch",
                                          "pcie",      "form",   "p2p",  "links", "link",
                                          "link_rate", "host",   "like"};
static const char *const cpu_columns[] = {"arch", "vendor", "family", "model",
                                          "what", "pcie",   "socket", "cpu"};
static const char *const nic_columns[] = {"vendor", "device", "name", "what", "kind", "rate"};
static const char *const nic_link_columns[] = {"kind", "rate", "link"};
static const char *const pcie_columns[] = {"pcie", "lane", "link"};

static void fill_gpu(struct table_reader *reader, int32_t row, void *out)
{
    *(struct gpu_row *)out = (struct gpu_row){
        .vendor = id_of(reader, row, 0),
        .device = id_of(reader, row, 1),
        .what = text_of(reader, row, 2),
        .gpu = text_of(reader, row, 3),
        .arch = text_of(reader, row, 4),
        .gt_per_s = transfer_rate_of(reader, row, 5),
        .is_module = strcmp(text_of(reader, row, 6), "module") == 0,
        .is_p2p = strcmp(text_of(reader, row, 7), "direct") == 0,
        .links = count_of(reader, row, 8),
        .link = text_of(reader, row, 9),
        .link_bytes_per_s = quantity_of(reader, row, 10),
        .host = text_of(reader, row, 11),
        .like = text_of(reader, row, 12),
    };
}

static void fill_cpu(struct table_reader *reader, int32_t row, void *out)
{
    *(struct cpu_row *)out = (struct cpu_row){
        .arch = text_of(reader, row, 0),
        .vendor = text_of(reader, row, 1),
        .family = count_of(reader, row, 2),
        .model = count_of(reader, row, 3),
        .what = text_of(reader, row, 4),
        .gt_per_s = transfer_rate_of(reader, row, 5),
        .socket = text_of(reader, row, 6),
        .cpu = text_of(reader, row, 7),
    };
}

static void fill_nic(struct table_reader *reader, int32_t row, void *out)
{
    *(struct nic_row *)out = (struct nic_row){
        .vendor = id_of(reader, row, 0),
        .device = id_of(reader, row, 1),
        .name = text_of(reader, row, 2),
        .what = text_of(reader, row, 3),
        .kind = text_of(reader, row, 4),
        .bytes_per_s = quantity_of(reader, row, 5),
    };
}

static void fill_nic_link(struct table_reader *reader, int32_t row, void *out)
{
    *(struct nic_link_row *)out = (struct nic_link_row){
        .kind = text_of(reader, row, 0),
        .bytes_per_s = quantity_of(reader, row, 1),
        .link = text_of(reader, row, 2),
    };
}

static void fill_pcie(struct table_reader *reader, int32_t row, void *out)
{
    *(struct pcie_row *)out = (struct pcie_row){
        .gt_per_s = transfer_rate_of(reader, row, 0),
        .lane_bytes_per_s = quantity_of(reader, row, 1),
        .link = text_of(reader, row, 2),
    };
}

struct table_kind {
    const char *file;
    const char *const *columns;
    int32_t column_count;
    size_t row_bytes;
    void (*fill)(struct table_reader *reader, int32_t row, void *out);
};

#define COLUMNS(list) (list), (int32_t)(sizeof(list) / sizeof((list)[0]))
static const struct table_kind gpu_kind = {"gpus.csv", COLUMNS(gpu_columns), sizeof(struct gpu_row),
                                           fill_gpu};
static const struct table_kind cpu_kind = {"cpus.csv", COLUMNS(cpu_columns), sizeof(struct cpu_row),
                                           fill_cpu};
static const struct table_kind nic_kind = {"nics.csv", COLUMNS(nic_columns), sizeof(struct nic_row),
                                           fill_nic};
static const struct table_kind nic_link_kind = {"nic_links.csv", COLUMNS(nic_link_columns),
                                                sizeof(struct nic_link_row), fill_nic_link};
static const struct table_kind pcie_kind = {"pcie.csv", COLUMNS(pcie_columns),
                                            sizeof(struct pcie_row), fill_pcie};

/* The rows of one file, `count` of them; NULL after a message. */
static void *load_table(struct import_tables *tables, const struct table_kind *kind, int32_t *count,
                        struct diag *diag)
{
    struct table_reader reader = {.arena = tables->arena, .diag = diag};
    const int32_t errors = diag->error_count;
    const char *path =
        data_path(tables->arena, tables->data_folders, "topologies/import", kind->file);
    if (path == NULL) {
        diag_world(diag, "cannot find topologies/import/%s in any data folder", kind->file);
        return NULL;
    }
    if (csv_load(tables->arena, path, &reader.csv, diag) != STATUS_OK ||
        csv_columns(&reader.csv, kind->columns, kind->column_count, kind->column_count,
                    reader.columns, diag) != STATUS_OK)
        return NULL;
    *count = reader.csv.rows.count;
    if (*count == 0)
        diag_world(diag, "'%s' holds no row", path);
    char *rows = arena_alloc(tables->arena, kind->row_bytes * (size_t)(*count + 1));
    for (int32_t k = 0; k < *count; k++)
        kind->fill(&reader, k, rows + kind->row_bytes * (size_t)k);
    return diag->error_count > errors ? NULL : rows;
}

enum status import_tables_load(struct arena *arena, const char *const *data_folders,
                               struct import_tables *tables, struct diag *diag)
{
    const int32_t errors = diag->error_count;
    *tables = (struct import_tables){.arena = arena, .data_folders = data_folders};
    tables->gpus = load_table(tables, &gpu_kind, &tables->gpu_count, diag);
    tables->cpus = load_table(tables, &cpu_kind, &tables->cpu_count, diag);
    tables->nics = load_table(tables, &nic_kind, &tables->nic_count, diag);
    tables->nic_links = load_table(tables, &nic_link_kind, &tables->nic_link_count, diag);
    tables->pcie = load_table(tables, &pcie_kind, &tables->pcie_count, diag);
    return diag->error_count > errors ? STATUS_WORLD : STATUS_OK;
}

/* ---- looking up --------------------------------------------------------------------------- */

const struct pcie_row *import_pcie_row(const struct import_tables *tables, double gt_per_s)
{
    const struct pcie_row *found = NULL;
    for (int32_t k = 0; k < tables->pcie_count; k++) {
        const struct pcie_row *row = &tables->pcie[k];
        if (found == NULL || (row->gt_per_s <= gt_per_s && row->gt_per_s > found->gt_per_s))
            found = row;
    }
    return found;
}

/* The tree of a file of the catalog, NULL when there is none that can be read. */
static struct node *load_catalog_file(const struct import_tables *tables, const char *folder,
                                      const char *name)
{
    struct node *root = NULL;
    struct diag unheard;
    diag_init(&unheard, tables->arena);
    const char *path = text_is_path(name) ? name
                                          : data_path(tables->arena, tables->data_folders, folder,
                                                      arena_printf(tables->arena, "%s.yaml", name));
    if (path == NULL || node_load(tables->arena, path, &root, &unheard) != STATUS_OK)
        return NULL;
    return root;
}

double import_link_bytes_per_s(const struct import_tables *tables, const char *name)
{
    double value = 0;
    const struct node *root = load_catalog_file(tables, "topologies/links", name);
    const struct node *node = root != NULL ? node_get(root, "bandwidth") : NULL;
    if (node == NULL || node->kind != NODE_SCALAR ||
        units_parse(node->text, DIM_BANDWIDTH, &value, NULL) != UNIT_OK)
        return 0;
    return value;
}

const struct node *import_machine_node(const struct import_tables *tables, const char *name,
                                       const char *key)
{
    const struct node *root = load_catalog_file(tables, "topologies", name);
    return root != NULL ? node_get(root, key) : NULL;
}

static bool has_alias(const struct import_tables *tables, const char *folder, const char *file,
                      const char *name)
{
    const struct node *root = load_catalog_file(tables, folder, file);
    const struct node *aliases = root != NULL ? node_get(root, "aliases") : NULL;
    if (aliases == NULL || aliases->kind != NODE_LIST)
        return false;
    for (int32_t k = 0; k < aliases->entries.count; k++) {
        const struct node *alias = aliases->entries.items[k].value;
        if (alias->kind == NODE_SCALAR && text_equal(alias->text, name))
            return true;
    }
    return false;
}

const char *import_catalog_name(const struct import_tables *tables, const char *folder,
                                const char *name)
{
    if (text_is_path(name))
        return name;
    const char *const *names = data_names(tables->arena, tables->data_folders, folder);
    for (int32_t k = 0; names[k] != NULL; k++) {
        if (strcmp(names[k], name) == 0)
            return names[k];
    }
    for (int32_t k = 0; names[k] != NULL; k++) {
        if (has_alias(tables, folder, names[k], name))
            return names[k];
    }
    return NULL;
}

const char *import_catalog_names(const struct import_tables *tables, const char *folder)
{
    const char *const *names = data_names(tables->arena, tables->data_folders, folder);
    const char *text = names[0] != NULL ? names[0] : "none";
    for (int32_t k = 1; names[0] != NULL && names[k] != NULL; k++)
        text = arena_printf(tables->arena, "%s, %s", text, names[k]);
    return text;
}
