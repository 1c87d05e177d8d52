/* cluster/host_traffic.c: patterns of groups of GPUs as loads on wires. */
#include "cluster/host_traffic.h"

#include <math.h>

struct host_group { /* one group's part of a host */
    const struct host_graph *graph;
    const bool *attached;
    const struct host_shape *shape;
    const struct wire_loads *loads;
    struct hop_counts *hops;
    int32_t *members;
    int32_t *nics; /* attached to members */
    int32_t count, nic_count;
    struct arena *scratch;
};

static bool is_own(const struct host_group *group, int32_t gpu, int32_t nic)
{
    return group->attached[gpu * group->graph->nics + nic];
}

static void find_nics(struct host_group *group)
{
    group->nic_count = 0;
    for (int32_t nic = 0; nic < group->graph->nics; nic++) {
        bool is_any = false;
        for (int32_t i = 0; i < group->count; i++)
            is_any |= is_own(group, group->members[i], nic);
        if (is_any)
            group->nics[group->nic_count++] = nic;
    }
}

/* Out and in through each NIC, from and to the members whose own it is, in equal parts. */
static void add_network(const struct host_group *group, double amount)
{
    for (int32_t k = 0; k < group->nic_count; k++) {
        int32_t owners = 0;
        for (int32_t i = 0; i < group->count; i++)
            owners += is_own(group, group->members[i], group->nics[k]) ? 1 : 0;
        const double each = amount / (double)group->nic_count / (double)owners;
        for (int32_t i = 0; i < group->count; i++) {
            if (!is_own(group, group->members[i], group->nics[k]))
                continue;
            host_graph_network(group->graph, group->members[i], group->nics[k], each, true,
                               group->loads);
            host_graph_network(group->graph, group->members[i], group->nics[k], each, false,
                               group->loads);
        }
    }
}

static void add_ring_shared(const struct host_group *group, const struct host_ring *ring)
{
    const double r = (double)group->count;
    const double part = group->shape->is_leaving ? (r - 1) / r : 1;
    struct hop_counts ignored = {0};
    for (int32_t a = 0; a < group->count; a++) {
        for (int32_t b = 0; b < group->count; b++) {
            const double share = ring->share[a * group->count + b];
            if (share > 0)
                host_graph_hop(group->graph, group->members[a], group->members[b], part * share,
                               group->loads, &ignored);
        }
    }
    group->hops->scale_up += part * r;
}

/* Round the ring from `entry` to the one before it, over count − 1 hops. */
static void add_chain(const struct host_group *group, const int32_t *order, int32_t entry,
                      double amount)
{
    struct hop_counts hops = {0};
    for (int32_t i = 0; i + 1 < group->count; i++)
        host_graph_hop(group->graph, order[(entry + i) % group->count],
                       order[(entry + i + 1) % group->count], amount, group->loads, &hops);
    group->hops->scale_up += amount * hops.scale_up;
    group->hops->pcie += amount * hops.pcie;
    group->hops->host_memory += amount * hops.host_memory;
    group->hops->socket += amount * hops.socket;
}

/* Where the ring is cut for a NIC: so that it comes in and leaves at the NIC's own, if it can. */
static int32_t find_entry(const struct host_group *group, const int32_t *order, int32_t nic)
{
    int32_t entry = 0;
    for (int32_t i = group->count - 1; i >= 0; i--)
        entry = is_own(group, order[i], nic) ? i : entry;
    for (int32_t i = group->count - 1; i >= 0; i--) {
        const int32_t before = (i + group->count - 1) % group->count;
        if (is_own(group, order[i], nic) && is_own(group, order[before], nic))
            return i;
    }
    return entry;
}

static void add_ring_ordered(const struct host_group *group, const int32_t *order)
{
    if (!group->shape->is_leaving) {
        for (int32_t i = 0; i < group->count; i++)
            host_graph_hop(group->graph, order[i], order[(i + 1) % group->count], 1, group->loads,
                           group->hops);
        return;
    }
    for (int32_t k = 0; k < group->nic_count; k++) {
        const int32_t nic = group->nics[k];
        const double share = 1 / (double)group->nic_count;
        const int32_t entry = find_entry(group, order, nic);
        const int32_t exit = (entry + group->count - 1) % group->count;
        host_graph_network(group->graph, order[entry], nic, share, false, group->loads);
        add_chain(group, order, entry, share);
        host_graph_network(group->graph, order[exit], nic, share, true, group->loads);
    }
}

static void add_ring_switched(const struct host_group *group)
{
    const struct host_graph *graph = group->graph;
    const double d = (double)group->shape->domain_hosts;
    const double members = (double)group->count * d;
    const bool is_leaving = group->shape->is_leaving;
    const double part = is_leaving ? (members - 1) / members : 1;
    struct hop_counts ignored = {0};
    if (members > 1) { /* whoever the next is, one port sends and one receives */
        for (int32_t i = 0; i < group->count; i++)
            host_graph_hop(graph, group->members[i], group->members[(i + 1) % group->count], part,
                           group->loads, &ignored);
        group->hops->scale_up += part * (double)group->count;
    }
    if (is_leaving)
        add_network(group, 1 / d);
}

static void add_ring(const struct host_group *group)
{
    if (group->graph->scale_up_out >= 0) {
        add_ring_switched(group);
        return;
    }
    struct host_ring ring = {.count = group->count};
    if (group->count > 1)
        host_ring_find(group->scratch, group->graph, group->members, group->count, &ring);
    if (ring.order != NULL) {
        add_ring_ordered(group, ring.order);
        return;
    }
    if (ring.share != NULL)
        add_ring_shared(group, &ring);
    if (group->shape->is_leaving)
        add_network(group, 1);
}

static void add_star(const struct host_group *group)
{
    struct hop_counts hops = {0};
    if (group->graph->scale_up_out < 0)
        return;
    for (int32_t i = 0; i < group->count; i++)
        host_graph_hop(group->graph, group->members[i], group->members[i], 1, group->loads, &hops);
    group->hops->scale_up += 1;
}

static void add_all_to_all(const struct host_group *group)
{
    const double others = (double)(group->shape->ranks - 1);
    const double d = (double)group->shape->domain_hosts;
    struct hop_counts hops = {0};
    for (int32_t a = 0; a < group->count; a++) {
        for (int32_t b = 0; b < group->count; b++)
            if (a != b)
                host_graph_hop(group->graph, group->members[a], group->members[b], 1 / others,
                               group->loads, &hops);
        if (d > 1) /* to the other hosts of the domain, and from them */
            host_graph_hop(group->graph, group->members[a], group->members[a],
                           (double)group->count * (d - 1) / others, group->loads, &hops);
    }
    if (!group->shape->is_leaving)
        return;
    const double leaving = ((double)group->shape->ranks - (double)group->count * d) / others;
    for (int32_t a = 0; a < group->count; a++) {
        int32_t own = 0;
        for (int32_t k = 0; k < group->nic_count; k++)
            own += is_own(group, group->members[a], group->nics[k]) ? 1 : 0;
        for (int32_t k = 0; k < group->nic_count; k++) {
            const int32_t nic = group->nics[k];
            if (!is_own(group, group->members[a], nic))
                continue;
            const double each = leaving / (double)own;
            host_graph_network(group->graph, group->members[a], nic, each, true, group->loads);
            host_graph_network(group->graph, group->members[a], nic, each, false, group->loads);
        }
    }
}

static void add_group(const struct host_group *group)
{
    switch (group->shape->pattern) {
    case TRAFFIC_RING:
        add_ring(group);
        return;
    case TRAFFIC_STAR:
        add_star(group);
        return;
    case TRAFFIC_ALL_TO_ALL:
        add_all_to_all(group);
        return;
    }
}

static void take_worse(struct hop_counts *most, const struct hop_counts *one)
{
    most->scale_up = fmax(most->scale_up, one->scale_up);
    most->pcie = fmax(most->pcie, one->pcie);
    most->host_memory = fmax(most->host_memory, one->host_memory);
    most->socket = fmax(most->socket, one->socket);
}

void host_traffic_add(const struct host_graph *graph, const bool *attached,
                      const struct host_shape *shape, const struct wire_loads *loads,
                      struct hop_counts *hops)
{
    struct arena scratch = {0};
    const int32_t block = shape->ranks_per_host * shape->gpu_stride;
    struct host_group group = {.graph = graph,
                               .attached = attached,
                               .shape = shape,
                               .loads = loads,
                               .members = ARENA_ARRAY(&scratch, int32_t, shape->ranks_per_host),
                               .nics = ARENA_ARRAY(&scratch, int32_t, graph->nics + 1),
                               .count = shape->ranks_per_host,
                               .scratch = &scratch};
    for (int32_t first = 0; first + block <= shape->gpu_count; first += block) {
        for (int32_t offset = 0; offset < shape->gpu_stride; offset++) {
            struct hop_counts one = {0};
            group.hops = &one;
            for (int32_t i = 0; i < group.count; i++)
                group.members[i] =
                    shape->first_gpu + (first + offset + i * shape->gpu_stride) * shape->gpu_step;
            find_nics(&group);
            add_group(&group);
            take_worse(hops, &one);
        }
    }
    arena_release(&scratch);
}
