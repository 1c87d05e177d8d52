/* schedule/mesh.c: the device mesh: dimensions, their product, what can be played. */
#include <inttypes.h>

#include "schedule/policy.h"

static const struct field mesh_fields[] = {
    {.key = "pp",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct mesh_config, pp),
     .default_text = "1",
     .min = 1,
     .max = 1 << 20,
     .help = "pipeline stages"},
    {.key = "dp_replicate",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct mesh_config, dp_replicate),
     .default_text = "1",
     .min = 1,
     .max = 1 << 20,
     .help = "replicas of the sharded model (HSDP)"},
    {.key = "dp_shard",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct mesh_config, dp_shard),
     .default_text = "-1",
     .min = -1,
     .max = 1 << 20,
     .help = "GPUs a unit is sharded over; -1: all that the other dimensions leave"},
    {.key = "cp",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct mesh_config, cp),
     .default_text = "1",
     .min = 1,
     .max = 1 << 20,
     .help = "context parallel"},
    {.key = "ep",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct mesh_config, ep),
     .default_text = "1",
     .min = 1,
     .max = 1 << 20,
     .help = "expert parallel"},
    {.key = "tp",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct mesh_config, tp),
     .default_text = "1",
     .min = 1,
     .max = 1 << 20,
     .help = "tensor parallel"},
    {0}};

const struct field_table mesh_table = {.name = "mesh",
                                       .help = "device mesh; the product is the number of GPUs",
                                       .fields = mesh_fields,
                                       .struct_bytes = sizeof(struct mesh_config)};

enum { DIMENSION_COUNT = 6 };

struct dimension_row {
    const char *name;
    int64_t size;
};

static void list_dimensions(const struct mesh_config *mesh, struct dimension_row rows[])
{
    const struct dimension_row all[DIMENSION_COUNT] = {{"pp", mesh->pp},
                                                       {"dp_replicate", mesh->dp_replicate},
                                                       {"dp_shard", mesh->dp_shard},
                                                       {"cp", mesh->cp},
                                                       {"ep", mesh->ep},
                                                       {"tp", mesh->tp}};
    for (int i = 0; i < DIMENSION_COUNT; i++)
        rows[i] = all[i];
}

/* "pp 4 × tp 8 = 32": every dimension but dp_shard that is not 1. */
static const char *describe_factors(struct arena *arena, const struct dimension_row rows[],
                                    int64_t product)
{
    const char *text = "";
    for (int i = 0; i < DIMENSION_COUNT; i++) {
        if (rows[i].size == 1 || rows[i].size == -1)
            continue;
        text = arena_printf(arena, "%s%s%s %" PRId64, text, text[0] != '\0' ? " x " : "",
                            rows[i].name, rows[i].size);
    }
    return text[0] == '\0' ? "1" : arena_printf(arena, "%s = %" PRId64, text, product);
}

/* The mesh key an error should point at: one that was written, else the mesh itself. */
static const char *blamed_path(const struct config *config, const char *path,
                               const struct dimension_row rows[])
{
    for (int i = DIMENSION_COUNT - 1; i >= 0; i--) {
        const char *key = arena_printf(config->arena, "%s.%s", path, rows[i].name);
        if (rows[i].size != 1 && config_is_set(config, key))
            return key;
    }
    return path;
}

void mesh_follow_strategy(struct config *config, const struct fsdp_config *fsdp,
                          struct mesh_config *mesh, int64_t nodes, int64_t gpus_per_node)
{
    const int strategy = fsdp->sharding_strategy;
    const bool is_hybrid = strategy == SHARDING_HYBRID || strategy == SHARDING_HYBRID_GRAD_OP;
    if (fsdp->api != API_FSDP1 || !(is_hybrid || strategy == SHARDING_NONE) ||
        config_is_set(config, "mesh.dp_shard") || config_is_set(config, "mesh.dp_replicate"))
        return;
    mesh->dp_replicate = is_hybrid ? nodes : nodes * gpus_per_node;
    config_add_derived(config, "mesh.dp_replicate",
                       arena_printf(config->arena, "%" PRId64, mesh->dp_replicate),
                       is_hybrid ? "hybrid: sharded inside a host" : "no_shard");
}

enum status mesh_resolve(struct config *config, const char *path, struct mesh_config *mesh,
                         int64_t gpus)
{
    if (mesh->dp_shard == 0) {
        config_error(config, arena_printf(config->arena, "%s.dp_shard", path),
                     "-1 (all that is left) or at least 1", "'dp_shard' cannot be 0");
        return STATUS_INPUT;
    }
    struct dimension_row rows[DIMENSION_COUNT];
    list_dimensions(mesh, rows);
    int64_t product = 1;
    for (int i = 0; i < DIMENSION_COUNT; i++) {
        if (rows[i].size == -1)
            continue;
        /* Each size is below 2^20 and the product stops at the first excess, so no overflow. */
        product *= rows[i].size;
        if (product > gpus)
            break;
    }
    const bool is_open = mesh->dp_shard == -1;
    if (is_open ? (product <= gpus && gpus % product == 0) : product == gpus) {
        if (is_open)
            mesh->dp_shard = gpus / product;
        return STATUS_OK;
    }
    const char *factors = describe_factors(config->arena, rows, product);
    const char *hint;
    if (is_open)
        hint = "'dp_shard: -1' needs a whole number: change the other dimensions or 'nodes'";
    else if (product < gpus && gpus % product == 0)
        hint = arena_printf(config->arena,
                            "a factor of %" PRId64 " is missing: 'dp_shard: %" PRId64
                            "', or 'dp_shard: -1' for all that is left",
                            gpus / product, mesh->dp_shard * (gpus / product));
    else
        hint = "set 'dp_shard: -1' to take all that the other dimensions leave";
    config_error(config, blamed_path(config, path, rows), hint,
                 "the mesh does not match the %" PRId64 " GPUs: %s%s", gpus, factors,
                 is_open ? " does not divide them" : "");
    return STATUS_INPUT;
}
