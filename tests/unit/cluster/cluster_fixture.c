/* tests/unit/cluster/cluster_fixture.c */
#include "cluster_fixture.h"

#include "check.h"

static enum status load(struct cluster_fixture *fixture, const char *name,
                        const char *const *overrides)
{
    static const char *const folders[] = {FSDPSIM_SOURCE_DIR, NULL};
    config_init(&fixture->config, &fixture->arena, &fixture->diag, folders);
    const char *path =
        arena_printf(&fixture->arena, "%s/topologies/%s.yaml", FSDPSIM_SOURCE_DIR, name);
    enum status status = config_load(&fixture->config, path);
    for (int i = 0; status == STATUS_OK && overrides && overrides[i]; i++)
        status = config_override(&fixture->config, overrides[i]);
    void *bound = arena_alloc(&fixture->arena, cluster_table.struct_bytes);
    if (status == STATUS_OK)
        status = config_bind(&fixture->config, &cluster_table, bound);
    if (status == STATUS_OK)
        status = cluster_build(&fixture->arena, &fixture->config, "", bound, &fixture->cluster);
    return status;
}

void fixture_init(struct cluster_fixture *fixture, const char *name, const char *const *overrides)
{
    *fixture = (struct cluster_fixture){0};
    diag_init(&fixture->diag, &fixture->arena);
    fixture->status = load(fixture, name, overrides);
}

void fixture_release(struct cluster_fixture *fixture)
{
    cluster_release(&fixture->cluster);
    arena_release(&fixture->arena);
}

static enum status load_gpu(struct gpu_fixture *fixture, const char *name)
{
    static const char *const folders[] = {FSDPSIM_SOURCE_DIR, NULL};
    config_init(&fixture->config, &fixture->arena, &fixture->diag, folders);
    const char *path =
        arena_printf(&fixture->arena, "%s/topologies/gpus/%s.yaml", FSDPSIM_SOURCE_DIR, name);
    void *bound = arena_alloc(&fixture->arena, gpu_table.struct_bytes);
    enum status status = config_load(&fixture->config, path);
    if (status == STATUS_OK)
        status = config_bind(&fixture->config, &gpu_table, bound);
    if (status == STATUS_OK)
        status = gpu_build(&fixture->arena, &fixture->config, "", bound, &fixture->gpu);
    return status;
}

void gpu_fixture_init(struct gpu_fixture *fixture, const char *name)
{
    *fixture = (struct gpu_fixture){0};
    diag_init(&fixture->diag, &fixture->arena);
    fixture->status = load_gpu(fixture, name);
}

void gpu_fixture_release(struct gpu_fixture *fixture)
{
    gpu_release(&fixture->gpu);
    arena_release(&fixture->arena);
}

const char *fixture_messages(struct cluster_fixture *fixture)
{
    const char *all = "";
    for (int32_t i = 0; i < fixture->diag.count; i++)
        all = arena_printf(&fixture->arena, "%s%s\n", all, fixture->diag.items[i].text);
    return all;
}

struct layout fixture_layout(struct cluster_fixture *fixture, int64_t hosts, bool is_folded)
{
    struct layout layout = {0};
    CHECK_INT(fixture->status, STATUS_OK);
    enum status status =
        layout_build(&fixture->arena, &fixture->cluster, hosts, fixture->cluster.gpus_per_host,
                     is_folded, &layout, &fixture->diag);
    if (!CHECK_INT(status, STATUS_OK))
        CHECK_TEXT(fixture_messages(fixture), "");
    return layout;
}
