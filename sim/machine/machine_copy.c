/*
 * machine/machine_copy.c: copies between host and device, and on the device.
 *
 * A copy of B bytes between a GPU and the memory of its NUMA node goes over all PCIe wires between
 * the two (cluster/traffic.h), through one copy engine a direction and the GPU's memory. Alone it
 * runs at the payload rate of its slot, of which it is a full user of the engine; every member of
 * the rank class copies at the same time, so that a switch's uplink carries all of theirs. Its
 * weight is that rate: what shares a wire slows by the same factor. A cluster without a PCIe tree
 * may name a `copy_link`: a link of each GPU's own.
 *
 * Host memory that is not pinned is staged by one core, which reads and writes every byte
 * (cluster/host_compute.h): the copy runs no faster than that.
 *
 * On the device it reads and writes every byte: 2·B of memory traffic at up to half its bandwidth.
 *
 * Example: 1 GB to the host over PCIe 4.0 x16 at 26 GB/s: 38 ms; four GPUs below one such uplink:
 * 154 ms; not pinned, with a core of 22 GB/s: 91 ms.
 *
 * Left out: the launch of some microseconds, ranks of one class that copy at different times.
 */
#include <math.h>

#include "cluster/traffic.h"
#include "machine/machine_private.h"

/* One direction of a GPU's slot; -1: the cluster has no PCIe tree. */
static int32_t slot_of(const struct rank_class *rank_class, enum copy_kind kind)
{
    return copy_is_to_gpu(kind) ? rank_class->pcie_down : rank_class->pcie_up;
}

double copy_rate(const struct layout *layout, const struct rank_class *rank_class,
                 enum copy_kind kind)
{
    if (kind == COPY_D2D)
        return layout->resources[rank_class->hbm].capacity / 2;
    const struct link *link = &layout->cluster->copy_link;
    const int32_t slot = slot_of(rank_class, kind);
    const double rate =
        slot >= 0 ? layout->resources[slot].capacity : link->bytes_per_s * link->copy_efficiency;
    const bool is_pinned = kind == COPY_H2D || kind == COPY_D2H;
    return is_pinned ? rate
                     : fmin(rate, host_compute_staging_bytes_per_s(&layout->cluster->compute));
}

/* Demands of a copy at `rate` alone on the wires of the host's PCIe tree. */
static void add_wires(struct machine *machine, struct class_state *class, enum copy_kind kind,
                      struct copy_path *path)
{
    const struct layout *layout = machine->setup->layout;
    const struct traffic *traffic = layout_copy(layout, class->idx, copy_is_to_gpu(kind));
    path->demands = ARENA_ARRAY(machine->arena, struct demand, traffic->load_count + 2);
    for (int32_t i = 0; i < traffic->load_count; i++)
        path->demands[path->demand_count++] =
            (struct demand){traffic->loads[i].resource, traffic->loads[i].per_byte};
}

double machine_copies_alone_s(const struct layout *layout, enum copy_kind kind, double bytes)
{
    struct arena scratch = {0};
    double *per_byte = ARENA_ARRAY(&scratch, double, layout->resource_count + 1);
    double seconds = 0;
    bool is_known = true;
    for (int32_t i = 0; i < layout->class_count; i++) {
        const struct rank_class *rank_class = &layout->classes[i];
        const double rate = copy_rate(layout, rank_class, kind);
        is_known = is_known && rate > 0;
        seconds = fmax(seconds, bytes / rate);
        if (kind == COPY_D2D || slot_of(rank_class, kind) < 0)
            continue;
        const struct traffic *traffic = layout_copy(layout, i, copy_is_to_gpu(kind));
        for (int32_t k = 0; k < traffic->load_count; k++)
            per_byte[traffic->loads[k].resource] += traffic->loads[k].per_byte;
    }
    for (int32_t i = 0; i < layout->resource_count; i++)
        if (per_byte[i] > 0)
            seconds = fmax(seconds, bytes * per_byte[i] / layout->resources[i].capacity);
    arena_release(&scratch);
    return is_known ? seconds : (double)NAN;
}

static enum status path_set_up(struct machine *machine, struct class_state *class,
                               enum copy_kind kind)
{
    const struct layout *layout = machine->setup->layout;
    const struct cluster *cluster = layout->cluster;
    const struct rank_class *rank_class = class->rank_class;
    struct copy_path *path = &class->copies[kind];
    path->rate = copy_rate(layout, rank_class, kind);
    if (!(path->rate > 0)) {
        diag_add(machine->diag, DIAG_ERROR, cluster->place,
                 "give its host 'copy_link', or 'pcie'; for pageable memory its cpu a 'processor'",
                 "copies between host and device: cluster '%s' says nothing of PCIe",
                 cluster->name);
        return STATUS_INPUT;
    }
    if (slot_of(rank_class, kind) >= 0)
        add_wires(machine, class, kind, path);
    else
        path->demands = ARENA_ARRAY(machine->arena, struct demand, 2);
    const int32_t engine =
        copy_is_to_gpu(kind) ? rank_class->copy_engine_h2d : rank_class->copy_engine_d2h;
    path->demands[path->demand_count++] = (struct demand){engine, 1 / path->rate};
    path->demands[path->demand_count++] = (struct demand){rank_class->hbm, 1};
    return STATUS_OK;
}

static void device_path_set_up(struct machine *machine, struct class_state *class)
{
    const struct rank_class *rank_class = class->rank_class;
    struct copy_path *path = &class->copies[COPY_D2D];
    path->rate = copy_rate(machine->setup->layout, rank_class, COPY_D2D);
    path->demands = ARENA_ARRAY(machine->arena, struct demand, 2);
    path->demands[path->demand_count++] = (struct demand){rank_class->hbm, 2};
    if (rank_class->copy_engine_h2d >= 0)
        path->demands[path->demand_count++] =
            (struct demand){rank_class->copy_engine_h2d, 1 / path->rate};
}

enum status copies_set_up(struct machine *machine)
{
    for (int32_t i = 0; i < machine->class_count; i++) {
        struct class_state *class = &machine->classes[i];
        device_path_set_up(machine, class);
        for (int kind = 0; kind < COPY_KIND_COUNT; kind++) {
            if (kind == COPY_D2D || !class->score->has_copies[kind])
                continue;
            if (path_set_up(machine, class, (enum copy_kind)kind) != STATUS_OK)
                return STATUS_INPUT;
        }
    }
    return STATUS_OK;
}

bool copy_start(struct machine *machine, struct lane *lane)
{
    if (lane->at->op->bytes <= 0)
        return true;
    const struct copy_path *path = &lane->class->copies[lane->at->op->index];
    struct activity *activity = &lane->activity;
    activity->work = (double)lane->at->op->bytes;
    activity->weight = activity->cap = path->rate;
    activity->demands = path->demands;
    activity->demand_count = path->demand_count;
    lane->copy_frac = 0;
    jitter_begin(machine, lane, lane_issue_ps(lane));
    lane_start_activity(machine, lane, ACTIVITY_MEMCPY);
    return false;
}
