/* study/spread.c: see spread.h. */
#include "study/spread.h"

#include <math.h>

#include "base/strbuf.h"
#include "config/csv_table.h"

static const char folder[] = "results/measured";
static const char any[] = "any";

const char *spread_part_name(enum spread_part part)
{
    static const char *const names[SPREAD_COUNT] = {[SPREAD_GEMM] = "gemm",
                                                    [SPREAD_ATTENTION] = "attention",
                                                    [SPREAD_MEMORY] = "memory",
                                                    [SPREAD_ONE_HOST] = "collective one host",
                                                    [SPREAD_HOSTS] = "collective hosts"};
    return names[part];
}

/* ---- the facts ---------------------------------------------------------------------------- */

struct spread_fact {
    double spread;
    const char *source;
};

struct basis_fact {
    double measured, derived, assumed;
    const char *source;
};

struct spread_file {
    int64_t version;
    struct spread_fact repeat, host, network_unstated;
    struct basis_fact clock, kernels;
};

#define SHARE(type, member, is_needed, what)                                                       \
    {                                                                                              \
        .key = #member, .kind = FIELD_REAL, .offset = offsetof(type, member),                      \
        .is_required = (is_needed), .min = 0, .max = 1, .help = (what)                             \
    }
#define SOURCE(type)                                                                               \
    {                                                                                              \
        .key = "source", .kind = FIELD_TEXT, .offset = offsetof(type, source),                     \
        .is_required = true, .help = "what it rests on"                                            \
    }

static const struct field fact_fields[] = {
    SHARE(struct spread_fact, spread, true, "standard deviation, a share of the time"),
    SOURCE(struct spread_fact),
    {0}};
static const struct field_table fact_table = {.name = "spread",
                                              .help = "one spread",
                                              .fields = fact_fields,
                                              .struct_bytes = sizeof(struct spread_fact)};

static const struct field basis_fields[] = {
    SHARE(struct basis_fact, measured, false, "of a part that was measured on the GPU"),
    SHARE(struct basis_fact, derived, true, "of one that is derived from a relative"),
    SHARE(struct basis_fact, assumed, true, "of one without data"),
    SOURCE(struct basis_fact),
    {0}};
static const struct field_table basis_table = {.name = "spread by basis",
                                               .help = "spreads by what a GPU file rests on",
                                               .fields = basis_fields,
                                               .struct_bytes = sizeof(struct basis_fact)};

#define PART(member, its_table, what)                                                              \
    {                                                                                              \
        .key = #member, .kind = FIELD_STRUCT, .offset = offsetof(struct spread_file, member),      \
        .is_required = true, .table = &(its_table), .help = (what)                                 \
    }

static const struct field file_fields[] = {
    FIELD_VERSION(struct spread_file),
    PART(repeat, fact_table, "the same run again"),
    PART(host, fact_table, "time in which the GPU waits for the host"),
    PART(network_unstated, fact_table, "communication over a network that is assumed"),
    PART(clock, basis_table, "sustained clock"),
    PART(kernels, basis_table, "kernels of a part"),
    {0}};
static const struct field_table file_table = {.name = "spreads",
                                              .help = "what is not known of a prediction",
                                              .fields = file_fields,
                                              .struct_bytes = sizeof(struct spread_file)};

static void take_basis(const struct basis_fact *fact, double *spreads)
{
    spreads[BASIS_MEASURED] = fact->measured;
    spreads[BASIS_DERIVED] = fact->derived;
    spreads[BASIS_ASSUMED] = fact->assumed;
}

static enum status load_facts(struct arena *arena, const char *const *data_folders,
                              struct spreads *spreads, struct diag *diag)
{
    struct config *config = ARENA_NEW(arena, struct config);
    struct spread_file file = {0};
    const char *path = data_path(arena, data_folders, folder, "spread.yaml");
    if (path == NULL)
        return STATUS_OK;
    config_init(config, arena, diag, data_folders);
    enum status status = config_load(config, path);
    if (status == STATUS_OK)
        status = config_bind(config, &file_table, &file);
    spreads->is_known = status == STATUS_OK;
    spreads->repeat = file.repeat.spread;
    spreads->host = file.host.spread;
    spreads->network_unstated = file.network_unstated.spread;
    take_basis(&file.clock, spreads->clock);
    take_basis(&file.kernels, spreads->kernels);
    return status;
}

/* ---- the table ---------------------------------------------------------------------------- */

static bool part_find(const char *name, enum spread_part *part)
{
    for (int i = 0; i < SPREAD_COUNT; i++) {
        *part = (enum spread_part)i;
        if (text_equal(spread_part_name(*part), name))
            return true;
    }
    return false;
}

static enum status load_rows(struct arena *arena, const char *path, struct spread_rows *rows,
                             struct diag *diag)
{
    static const char *const names[] = {"part", "gpu", "n", "spread"};
    struct csv_table csv = {0};
    int32_t at[4];
    enum status status = csv_load(arena, path, &csv, diag);
    if (status == STATUS_OK)
        status = csv_columns(&csv, names, 4, 4, at, diag);
    for (int32_t k = 0; k < csv.rows.count && status == STATUS_OK; k++) {
        const struct csv_cell *cells = csv.rows.items[k].items;
        struct spread_row row = {.gpu = cells[at[1]].text};
        const bool is_good = part_find(cells[at[0]].text, &row.part) &&
                             text_to_int64(cells[at[2]].text, &row.n) && row.n > 0 &&
                             text_to_double(cells[at[3]].text, &row.spread) && row.spread >= 0 &&
                             row.spread <= 1;
        if (is_good) {
            *ARENA_PUSH(arena, rows) = row;
            continue;
        }
        diag_add(diag, DIAG_ERROR, cells[0].place, "the file is generated: results/README.md",
                 "no spread of a part");
        status = STATUS_INPUT;
    }
    return status;
}

enum status spreads_load(struct arena *arena, const char *const *data_folders,
                         struct spreads *spreads, struct diag *diag)
{
    const char *path = data_path(arena, data_folders, folder, "spread.csv");
    *spreads = (struct spreads){0};
    const enum status status = load_facts(arena, data_folders, spreads, diag);
    return status == STATUS_OK && path != NULL ? load_rows(arena, path, &spreads->rows, diag)
                                               : status;
}

double spread_find(const struct spreads *spreads, enum spread_part part, const char *gpu)
{
    double found = (double)NAN;
    for (int32_t k = 0; k < spreads->rows.count; k++) {
        const struct spread_row *row = &spreads->rows.items[k];
        if (row->part != part)
            continue;
        if (text_equal(row->gpu, gpu))
            return row->spread;
        if (text_equal(row->gpu, any))
            found = row->spread;
    }
    return found;
}
