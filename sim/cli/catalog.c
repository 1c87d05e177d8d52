/* cli/catalog.c: see catalog.h. */
#include "cli/catalog.h"

#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "cluster/calibration_config.h"
#include "cluster/gpu.h"
#include "model/model.h"

static enum status load_model(struct arena *arena, struct catalog_entry *entry)
{
    const struct field_table *table = model_choose_table(entry->config.root, entry->config.diag);
    if (table == NULL)
        return STATUS_INPUT;
    struct model_config *model = arena_alloc(arena, table->struct_bytes);
    const enum status status = config_bind(&entry->config, table, model);
    if (status != STATUS_OK)
        return status;
    char count[32];
    int64_t parameters = model_config_parameters(model);
    int64_t active_parameters = model_config_active_parameters(model);
    entry->model = model;
    entry->summary =
        arena_printf(arena, "%s parameters", format_count(count, sizeof(count), parameters));
    if (active_parameters != parameters)
        entry->summary = arena_printf(arena, "%s, %s active", entry->summary,
                                      format_count(count, sizeof(count), active_parameters));
    return STATUS_OK;
}

static enum status load_cluster(struct arena *arena, struct catalog_entry *entry)
{
    void *bound = arena_alloc(arena, cluster_table.struct_bytes);
    enum status status = config_bind(&entry->config, &cluster_table, bound);
    if (status == STATUS_OK)
        status = cluster_build(arena, &entry->config, "", bound, &entry->cluster);
    if (status == STATUS_OK)
        entry->summary = cluster_summary(arena, &entry->cluster);
    return status;
}

/* "measured gemm, attention; assumed clock": what the times of a GPU rest on. */
static char *basis_text(struct arena *arena, const struct gpu *gpu)
{
    char *text = arena_strdup(arena, "");
    for (int basis = BASIS_COUNT - 1; basis >= 0; basis--) {
        bool is_first = true;
        for (int part = 0; part < GPU_PART_COUNT; part++) {
            if ((int)gpu->basis[part] != basis)
                continue;
            if (is_first)
                text =
                    arena_printf(arena, "%s; %s", text, gpu_basis_name((enum gpu_basis_word)basis));
            text = arena_printf(arena, "%s%s %s", text, is_first ? "" : ",",
                                gpu_part_name((enum gpu_part)part));
            is_first = false;
        }
    }
    return text;
}

static enum status load_gpu(struct arena *arena, struct catalog_entry *entry)
{
    void *bound = arena_alloc(arena, gpu_table.struct_bytes);
    enum status status = config_bind(&entry->config, &gpu_table, bound);
    if (status == STATUS_OK)
        status = gpu_build(arena, &entry->config, "", bound, &entry->gpu);
    if (status != STATUS_OK)
        return status;
    char memory[32], bandwidth[32];
    format_gib(memory, sizeof(memory), (double)entry->gpu.memory_bytes);
    format_bandwidth(bandwidth, sizeof(bandwidth), entry->gpu.hbm_bytes_per_s);
    /* Before Ampere there is no bf16. */
    const enum dtype dtype = entry->gpu.peak_flop_per_s[DTYPE_BF16] > 0 ? DTYPE_BF16 : DTYPE_FP16;
    entry->summary =
        arena_printf(arena, "%.0f TFLOP/s %s, %s at %s%s", entry->gpu.peak_flop_per_s[dtype] / 1e12,
                     dtype_name(dtype), memory, bandwidth, basis_text(arena, &entry->gpu));
    return STATUS_OK;
}

static enum status load_calibration(struct arena *arena, struct catalog_entry *entry)
{
    struct calibration_config *bound = ARENA_NEW(arena, struct calibration_config);
    enum status status = config_bind(&entry->config, &calibration_config_table, bound);
    if (status == STATUS_OK)
        status = calibration_build(arena, &entry->config, "", bound, &entry->calibration);
    if (status == STATUS_OK)
        entry->summary = arena_printf(arena, "%lld tables%s%s", (long long)bound->tables.count,
                                      bound->summary != NULL ? ": " : "",
                                      bound->summary != NULL ? bound->summary : "");
    return status;
}

static const struct catalog_kind kinds[] = {
    {"model", "models", "models", model_tables, load_model},
    {"cluster", "clusters", "topologies", cluster_tables, load_cluster},
    {"gpu", "gpus", "topologies/gpus", gpu_tables, load_gpu},
    {"calibration", "calibrations", "topologies/calibrations", calibration_tables,
     load_calibration},
};

const struct catalog_kind *catalog_find(const char *word)
{
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        if (text_equal(kinds[k].word, word) || text_equal(kinds[k].plural, word))
            return &kinds[k];
    }
    return NULL;
}

void catalog_write_schema(const struct catalog_kind *kind, FILE *file)
{
    for (int k = 0; kind->tables[k] != NULL; k++) {
        if (k > 0)
            fputc('\n', file);
        schema_write(kind->tables[k], file);
    }
}

const char *catalog_path(struct arena *arena, const struct catalog_kind *kind, const char *name)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    if (strchr(name, '/') != NULL || access(name, F_OK) == 0)
        return name;
    for (const char *const *folder = data_folders_find(arena); *folder != NULL; folder++) {
        for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++) {
            const char *path =
                arena_printf(arena, "%s/%s/%s%s", *folder, kind->folder, name, endings[k]);
            if (access(path, F_OK) == 0)
                return path;
        }
    }
    return name;
}

enum status catalog_load(struct arena *arena, const struct catalog_kind *kind, const char *name,
                         struct catalog_entry *entry, struct diag *diag)
{
    return catalog_load_with(arena, kind, name, NULL, 0, entry, diag);
}

enum status catalog_load_with(struct arena *arena, const struct catalog_kind *kind,
                              const char *name, const char *const *overrides, int32_t count,
                              struct catalog_entry *entry, struct diag *diag)
{
    *entry = (struct catalog_entry){.summary = ""};
    config_init(&entry->config, arena, diag, data_folders_find(arena));
    enum status status = config_load(&entry->config, catalog_path(arena, kind, name));
    for (int32_t k = 0; k < count && status == STATUS_OK; k++)
        status = config_override(&entry->config, overrides[k]);
    return status == STATUS_OK ? kind->load(arena, entry) : status;
}

void catalog_release(struct catalog_entry *entry)
{
    calibration_release(&entry->calibration);
    cluster_release(&entry->cluster);
    gpu_release(&entry->gpu);
}
