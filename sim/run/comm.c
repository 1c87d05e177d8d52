/* run/comm.c: see comm.h. */
#include "run/comm.h"

#include <inttypes.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cluster/group.h"
#include "schedule/program.h"

static const char folder[] = "topologies";

/* NULL after a message. */
static const char *cluster_path(struct comm_machine *machine, const char *name)
{
    if (text_is_path(name) || strcmp(name, "-") == 0)
        return name;
    const char *file = arena_printf(&machine->arena, "%s.yaml", name);
    const char *path = data_path(&machine->arena, machine->config.data_folders, folder, file);
    if (path != NULL)
        return path;
    const char *nearest =
        nearest_name(name, data_names(&machine->arena, machine->config.data_folders, folder));
    diag_add(machine->diag, DIAG_ERROR, NO_PLACE,
             nearest != NULL ? arena_printf(&machine->arena, "did you mean '%s'?", nearest)
                             : "'fsdpsim list clusters' lists them; a path has a '/' or ends in "
                               "'.yaml'",
             "no cluster '%s'", text_shown(&machine->arena, name));
    return NULL;
}

enum status comm_machine_load(struct comm_machine *machine, const char *name,
                              const char *const *overrides, int32_t override_count,
                              struct diag *diag)
{
    *machine = (struct comm_machine){.diag = diag};
    config_init(&machine->config, &machine->arena, diag, data_folders_find(&machine->arena));
    const char *path = cluster_path(machine, name);
    enum status status = path != NULL ? config_load(&machine->config, path) : STATUS_INPUT;
    for (int32_t i = 0; i < override_count && status == STATUS_OK; i++)
        status = config_override(&machine->config, overrides[i]);
    void *bound = arena_alloc(&machine->arena, cluster_table.struct_bytes);
    if (status == STATUS_OK)
        status = config_bind(&machine->config, &cluster_table, bound);
    if (status == STATUS_OK)
        status = cluster_build(&machine->arena, &machine->config, "", bound, &machine->cluster);
    return status;
}

enum status comm_machine_shape(struct comm_machine *machine, int64_t nodes, int64_t gpus_per_node)
{
    const struct cluster *cluster = &machine->cluster;
    const int64_t hosts = nodes > 0 ? nodes : cluster->default_hosts;
    const int64_t gpus = gpus_per_node > 0 ? gpus_per_node : cluster->gpus_per_host;
    if (hosts > cluster->max_hosts)
        diag_add(machine->diag, DIAG_ERROR, NO_PLACE, NULL,
                 "%" PRId64 " nodes: cluster '%s' has at most %" PRId64, hosts, cluster->name,
                 cluster->max_hosts);
    if (gpus > cluster->gpus_per_host)
        diag_add(machine->diag, DIAG_ERROR, NO_PLACE, NULL,
                 "%" PRId64 " GPUs per node: a host of cluster '%s' has %" PRId64, gpus,
                 cluster->name, cluster->gpus_per_host);
    if (hosts > cluster->max_hosts || gpus > cluster->gpus_per_host)
        return STATUS_INPUT;
    return layout_build(&machine->arena, cluster, hosts, gpus, true, &machine->layout,
                        machine->diag);
}

static const struct program *program_of(struct arena *arena, const struct layout *layout,
                                        enum collective_op op, double bytes)
{
    struct program *program = ARENA_NEW(arena, struct program);
    program->policy = "comm";
    *ARENA_PUSH(arena, &program->streams) = (struct stream){"comm", STREAM_ALL_GATHER, true};
    *ARENA_PUSH(arena, &program->communicators) =
        (struct communicator){.name = "all", .purpose = "comm", .group = group_whole(layout)};
    *ARENA_PUSH(arena, &program->collectives) = (struct collective){.op = op, .bytes = bytes};
    *ARENA_PUSH(arena, &program->step) = (struct op){.kind = OP_COLLECTIVE, .unit = -1};
    return program;
}

enum status comm_play(struct comm_machine *machine, enum collective_op op, double bytes,
                      enum network_mode network, double *time_s)
{
    struct arena arena = {0};
    struct machine_result result = {0};
    const struct program *program = program_of(&arena, &machine->layout, op, bytes);
    const struct machine_setup setup = {.layout = &machine->layout,
                                        .programs = &program,
                                        .program_count = 1,
                                        .network = network,
                                        .ideal = {.host = true},
                                        .steps = 1};
    const enum status status = machine_play(&arena, &setup, &result, machine->diag);
    *time_s = s_from_ps(result.end_ps);
    arena_release(&arena);
    return status;
}

void comm_machine_release(struct comm_machine *machine)
{
    cluster_release(&machine->cluster);
    arena_release(&machine->arena);
}
