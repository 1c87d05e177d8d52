/*
 * cluster/layout_fabric.c: uplinks of leaves and pods.
 *
 * At each level hosts are cut into groups of fabric.levels[i].hosts. A group's uplinks together
 * carry, each way, hosts · NIC bandwidth of a host / product of the oversubscriptions up to there.
 * Full groups are one resource, the last one, where it is not full, another.
 */
#include <math.h>

#include "cluster/layout_private.h"

int32_t fabric_resource_most(const struct cluster *cluster)
{
    return 4 * cluster->fabric.level_count;
}

/* Where a host stands in the order in which leaves are filled; spread leaves may have gaps. */
static int64_t host_position(const struct layout *layout, int64_t host)
{
    const struct fabric *fabric = &layout->cluster->fabric;
    const struct layout_parts *parts = layout->parts;
    const int64_t real = parts->first_host + host * parts->host_step;
    if (fabric->placement == PLACEMENT_PACKED)
        return real;
    const int64_t per_leaf = fabric->levels[0].hosts;
    const int64_t leaves = (parts->graph->hosts + per_leaf - 1) / per_leaf;
    return real % leaves * per_leaf + real / leaves;
}

static int64_t host_group(const struct layout *layout, int32_t level, int64_t host)
{
    return host_position(layout, host) / layout->cluster->fabric.levels[level].hosts;
}

static int64_t group_count(const struct layout *layout, int32_t level)
{
    const struct fabric *fabric = &layout->cluster->fabric;
    const int64_t hosts = layout->parts->graph->hosts;
    const int64_t leaves = (hosts + fabric->levels[0].hosts - 1) / fabric->levels[0].hosts;
    const int64_t per_group = fabric->levels[level].hosts / fabric->levels[0].hosts;
    return (leaves + per_group - 1) / per_group;
}

static double uplink_capacity(const struct layout *layout, int32_t level)
{
    const struct cluster *cluster = layout->cluster;
    double capacity = (double)cluster->fabric.levels[level].hosts * (double)cluster->nic_count *
                      cluster->nic_link.bytes_per_s;
    for (int32_t i = 0; i <= level; i++)
        capacity /= cluster->fabric.levels[i].oversubscription;
    return capacity;
}

static const char *level_name(struct arena *arena, int32_t level, bool is_up)
{
    const char *way = is_up ? "up" : "down";
    return level == 0 ? arena_printf(arena, "leaf uplinks %s", way)
                      : arena_printf(arena, "level %d uplinks %s", (int)level + 1, way);
}

static void add_level(struct layout *layout, int32_t level)
{
    const int64_t groups = group_count(layout, level);
    for (int way = 0; way < 2; way++) {
        struct resource *resource = &layout->resources[layout->resource_count++];
        *resource = (struct resource){.kind = way == 0 ? RESOURCE_FABRIC_UP : RESOURCE_FABRIC_DOWN,
                                      .name = level_name(layout->parts->arena, level, way == 0),
                                      .capacity = uplink_capacity(layout, level),
                                      .instances = groups};
    }
}

void fabric_add_resources(struct layout *layout)
{
    const struct fabric *fabric = &layout->cluster->fabric;
    if (fabric->level_count == 0 || layout->hosts <= fabric->levels[0].hosts)
        return;
    layout->parts->fabric_first = layout->resource_count;
    for (int32_t i = 0; i < fabric->level_count; i++)
        if (group_count(layout, i) > 1)
            add_level(layout, i);
}

struct fabric_sums { /* of one level: by group */
    double *up, *down;
};

/* Hosts that one scale-up switch joins have the same. */
static int64_t domain_of(const struct layout *layout, int64_t host)
{
    const struct layout_parts *parts = layout->parts;
    const int64_t domain = layout->cluster->domain_hosts;
    const int64_t real = parts->first_host + host * parts->host_step;
    return domain > 1 ? real / domain : real;
}

/* The next host on the ring of its group. */
static int64_t next_host(const struct layout *layout, const struct group *group, int64_t host)
{
    const int64_t stride = group_host_stride(layout, group);
    const int64_t block = group->hosts * stride;
    const int64_t place = host % block / stride;
    return host - place * stride + (place + 1) % group->hosts * stride;
}

/* Returns the switches beyond the first that all steps of the level's hosts pass. */
static double add_ring(const struct layout *layout, const struct group *group, int32_t level,
                       double amount, const struct fabric_sums *sums)
{
    double switches = 0;
    for (int64_t host = 0; host < layout->hosts; host++) {
        const int64_t next = next_host(layout, group, host);
        const bool is_in_domain = domain_of(layout, host) == domain_of(layout, next);
        const int64_t from = host_group(layout, level, host);
        const int64_t to = host_group(layout, level, next);
        if (from == to || is_in_domain)
            continue;
        sums->up[from] += amount;
        sums->down[to] += amount;
        switches += 2;
    }
    return switches;
}

static void add_all_to_all(const struct layout *layout, const struct group *group, int32_t level,
                           const struct fabric_sums *sums)
{
    const double gpus = (double)layout->gpus_per_host;
    struct arena scratch = {0};
    const int64_t stride = group_host_stride(layout, group);
    const int64_t block = group->hosts * stride;
    const int64_t groups = layout->hosts / group->hosts;
    const int64_t width = group_count(layout, level);
    double *members = ARENA_ARRAY(&scratch, double, groups *width); /* hosts of each in each */
    for (int64_t host = 0; host < layout->hosts; host++)
        members[(host / block * stride + host % stride) * width +
                host_group(layout, level, host)] += 1;
    for (int64_t i = 0; i < groups * width; i++) {
        const double away = (double)group->hosts - members[i];
        const double bytes =
            gpus * members[i] * away * (double)group->ranks_per_host / (double)(group->ranks - 1);
        sums->up[i % width] += bytes;
        sums->down[i % width] += bytes;
    }
    arena_release(&scratch);
}

static double most_of(const double *values, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, values[i]);
    return most;
}

int32_t fabric_traffic(const struct layout *layout, const struct group *group,
                       enum traffic_pattern pattern, struct fabric_load *loads,
                       struct hop_counts *hops)
{
    const struct fabric *fabric = &layout->cluster->fabric;
    if (layout->parts->fabric_first < 0 || group->hosts == 1 || pattern == TRAFFIC_STAR)
        return 0;
    const int64_t rings = layout->gpus_per_host / group->ranks_per_host;
    struct arena scratch = {0};
    int32_t count = 0;
    for (; count < fabric->level_count && group_count(layout, count) > 1; count++) {
        const int64_t groups = group_count(layout, count);
        const struct fabric_sums sums = {ARENA_ARRAY(&scratch, double, groups),
                                         ARENA_ARRAY(&scratch, double, groups)};
        if (pattern == TRAFFIC_RING) {
            const double switches = add_ring(layout, group, count, (double)rings, &sums);
            const double turn = (double)group->hosts;
            hops->fabric_switches += switches * turn / (double)layout->hosts * (turn - 1) / turn;
        } else {
            add_all_to_all(layout, group, count, &sums);
        }
        loads[count] = (struct fabric_load){layout->parts->fabric_first + 2 * count,
                                            most_of(sums.up, groups), most_of(sums.down, groups)};
    }
    arena_release(&scratch);
    return count;
}
