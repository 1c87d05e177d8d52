/* tests/property/machine/mesh.c: see machine_property.h. */
#include "machine_property.h"

enum { UNITS = 4 };

static int64_t pick(struct philox *random, const int64_t *from, uint32_t count)
{
    return from[philox_below(random, count)];
}

static void draw_sizes(struct mesh *mesh, struct philox *random)
{
    static const int64_t hosts[] = {2, 4, 4, 8}, gpus[] = {2, 4, 8}, nics[] = {1, 2, 4, 8, 16};
    mesh->hosts = pick(random, hosts, 4);
    mesh->gpus = pick(random, gpus, 3);
    mesh->nics = pick(random, nics, 5);
    const int64_t ranks = mesh->hosts * mesh->gpus;
    do
        mesh->shard = INT64_C(1) << philox_below(random, 7);
    while (mesh->shard > ranks);
    mesh->replicas = ranks / mesh->shard;
}

static const char *draw_overrides(struct arena *arena, struct philox *random,
                                  const struct mesh *mesh)
{
    const char *text = "overrides=[";
    for (uint32_t left = philox_below(random, 3); left > 0; left--) {
        const int host = (int)philox_below(random, (uint32_t)mesh->hosts);
        const double frac = 0.5 + 0.1 * philox_below(random, 5);
        if (philox_below(random, 2) == 0)
            text = arena_printf(arena, "%s{host: %d, gpu: %d, clock_frac: %g},", text, host,
                                (int)philox_below(random, (uint32_t)mesh->gpus), frac);
        else
            text = arena_printf(arena, "%s{host: %d, nic_frac: %g},", text, host, frac);
    }
    return arena_printf(arena, "%s]", text);
}

static void find_groups(struct mesh *mesh)
{
    const struct layout size = {.gpus_per_host = mesh->gpus, .ranks = mesh->hosts * mesh->gpus};
    CHECK_TRUE(group_along(&size, mesh->shard, 1, &mesh->groups[0]));
    CHECK_TRUE(group_along(&size, mesh->replicas, mesh->shard, &mesh->groups[1]));
}

void mesh_draw(struct mesh *mesh, struct philox *random)
{
    struct arena texts = {0};
    *mesh = (struct mesh){0};
    draw_sizes(mesh, random);
    const char *const overrides[] = {draw_overrides(&texts, random, mesh),
                                     arena_printf(&texts, "host.nics.count=%d", (int)mesh->nics),
                                     arena_printf(&texts, "host.gpus=%d", (int)mesh->gpus),
                                     philox_below(random, 2)
                                         ? "collectives.algorithm=ring"
                                         : "collectives.algorithm=two_level_ring",
                                     NULL};
    fixture_init(&mesh->cluster, "dgx-h100", overrides);
    mesh->text = arena_printf(&mesh->cluster.arena, "%d x %d GPUs, %d NICs, shard %d, %s, %s",
                              (int)mesh->hosts, (int)mesh->gpus, (int)mesh->nics, (int)mesh->shard,
                              overrides[0], overrides[3]);
    arena_release(&texts);
    find_groups(mesh);
}

void mesh_make_whole(struct mesh *mesh)
{
    mesh->shard = mesh->hosts * mesh->gpus;
    mesh->replicas = 1;
    find_groups(mesh);
}

void mesh_release(struct mesh *mesh)
{
    fixture_release(&mesh->cluster);
}

void mesh_layout(struct mesh *mesh, bool is_folded, struct layout *layout)
{
    *layout = (struct layout){0};
    CHECK_INT(layout_build_for_groups(&mesh->cluster.arena, &mesh->cluster.cluster, mesh->hosts,
                                      mesh->gpus, is_folded, mesh->groups, 2, layout,
                                      &mesh->cluster.diag),
              STATUS_OK);
}

static void issue(struct toy *toy, int32_t stream, enum collective_op op, int32_t comm,
                  double bytes)
{
    struct collective *collective = ARENA_PUSH(&toy->arena, &toy->program->collectives);
    *collective = (struct collective){.op = op, .communicator = comm, .bytes = bytes};
    toy_op(toy, OP_COLLECTIVE, stream, toy->program->collectives.count - 1);
}

void mesh_step(const struct mesh *mesh, struct philox *random, struct toy *toy, bool is_serial)
{
    const int32_t gather = is_serial ? TOY_COMPUTE : TOY_GATHER;
    const int32_t scatter = is_serial ? TOY_COMPUTE : TOY_SCATTER;
    toy->program->communicators.items[0].group = mesh->groups[0];
    const int32_t replicas = toy_communicator(toy, "dp_replicate");
    toy->program->communicators.items[replicas].group = mesh->groups[1];
    const int32_t computed = toy_event(toy, "computed");
    const int32_t gathered = toy_event(toy, "gathered");
    toy_op(toy, OP_MARK, TOY_COMPUTE, 0);
    for (int32_t i = 0; i < 2 * UNITS; i++) {
        const double bytes = 1e8 * (0.5 + philox_unit(random));
        const double ms = 4 * philox_unit(random);
        struct kernel *kernel = ARENA_NEW(&toy->arena, struct kernel);
        *kernel = toy_kernel(ms, ms * 1e9 * philox_unit(random));
        issue(toy, gather, COLLECTIVE_ALL_GATHER, 0, bytes);
        toy_op(toy, OP_RECORD, gather, gathered);
        toy_op(toy, OP_WAIT, TOY_COMPUTE, gathered);
        toy_op(toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(toy, kernel, 1));
        if (i < UNITS)
            continue;
        toy_op(toy, OP_RECORD, TOY_COMPUTE, computed);
        toy_op(toy, OP_WAIT, scatter, computed);
        if (philox_below(random, 2) == 0)
            issue(toy, scatter, COLLECTIVE_REDUCE_SCATTER, 0, bytes);
        issue(toy, scatter, COLLECTIVE_ALL_REDUCE, replicas, bytes / (double)mesh->shard);
    }
    toy_op(toy, OP_MARK, TOY_COMPUTE, 1);
    toy_op(toy, OP_MARK, scatter, 2);
}
