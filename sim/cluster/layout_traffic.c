/* cluster/layout_traffic.c: what groups of ranks load the resources of a layout with. */
#include <math.h>

#include "cluster/layout_private.h"

static bool is_same_group(const struct group *a, const struct group *b)
{
    return a->ranks == b->ranks && a->hosts == b->hosts && a->ranks_per_host == b->ranks_per_host &&
           group_stride(a) == group_stride(b);
}

static void check_group(const struct layout *layout, const struct group *group)
{
    const int64_t hosts = group->hosts * group_host_stride(layout, group);
    const int64_t gpus = group->ranks_per_host * group_gpu_stride(layout, group);
    if (group->ranks != group->hosts * group->ranks_per_host || group->ranks < 1)
        BUG("group of %lld ranks on %lld hosts with %lld each", (long long)group->ranks,
            (long long)group->hosts, (long long)group->ranks_per_host);
    if (hosts > layout->hosts || gpus > layout->gpus_per_host || layout->hosts % hosts != 0 ||
        layout->gpus_per_host % gpus != 0)
        BUG("groups of %lld ranks on %lld hosts do not tile the layout", (long long)group->ranks,
            (long long)group->hosts);
}

/* The shape of a group's part of a host of this variant. */
static struct host_shape shape_of(const struct layout *layout, const struct host_variant *variant,
                                  const struct group *group, enum traffic_pattern pattern)
{
    const struct layout_parts *parts = layout->parts;
    const int64_t step = group_host_stride(layout, group) * parts->host_step;
    int64_t domain = (variant->domain_hosts + step - 1) / step;
    domain = domain < group->hosts ? domain : group->hosts;
    return (struct host_shape){.pattern = pattern,
                               .first_gpu = (int32_t)parts->first_gpu,
                               .gpu_step = (int32_t)parts->gpu_step,
                               .gpu_count = (int32_t)layout->gpus_per_host,
                               .ranks_per_host = (int32_t)group->ranks_per_host,
                               .gpu_stride = (int32_t)group_gpu_stride(layout, group),
                               .domain_hosts = domain,
                               .ranks = group->ranks,
                               .is_leaving = group->hosts > domain};
}

struct resource_sums { /* by resource: of any one instance, the most */
    double *per_byte, *effort;
};

static int32_t renumbered(const struct layout_parts *parts, int32_t resource)
{
    return parts->resource_of != NULL ? parts->resource_of[resource] : resource;
}

static void take_wires(const struct layout *layout, int32_t sample, const struct wire_loads *loads,
                       const struct resource_sums *sums)
{
    const struct layout_parts *parts = layout->parts;
    const int32_t wires = parts->graph->host.wire_count;
    const int32_t *from = &parts->wire_resources[(ptrdiff_t)sample * wires];
    for (int32_t i = 0; i < wires; i++) {
        if (from[i] < 0 || !(loads->per_byte[i] > 0))
            continue;
        const int32_t to = renumbered(parts, from[i]);
        sums->per_byte[to] = fmax(sums->per_byte[to], loads->per_byte[i]);
        sums->effort[to] = fmax(sums->effort[to], loads->effort[i]);
    }
}

static struct resource_sums sums_new(struct arena *arena, const struct layout *layout)
{
    return (struct resource_sums){ARENA_ARRAY(arena, double, layout->resource_count),
                                  ARENA_ARRAY(arena, double, layout->resource_count)};
}

static void list_loads(const struct layout *layout, const struct resource_sums *sums,
                       struct traffic *traffic)
{
    int32_t count = 0;
    for (int32_t i = 0; i < layout->resource_count; i++)
        count += sums->per_byte[i] > 0 ? 1 : 0;
    traffic->loads = ARENA_ARRAY(layout->parts->arena, struct traffic_load, count);
    for (int32_t i = 0; i < layout->resource_count; i++)
        if (sums->per_byte[i] > 0)
            traffic->loads[traffic->load_count++] =
                (struct traffic_load){i, sums->per_byte[i], sums->effort[i]};
}

static void add_hops(struct hop_counts *sum, const struct hop_counts *one, double times)
{
    sum->scale_up += times * one->scale_up;
    sum->pcie += times * one->pcie;
    sum->host_memory += times * one->host_memory;
    sum->socket += times * one->socket;
}

/* Of a whole turn to those that a byte makes: one hop fewer, across hosts if there is one. */
static void drop_hop(const struct layout *layout, const struct group *group,
                     struct hop_counts *hops)
{
    const int64_t hosts = layout->parts->graph->hosts;
    const int64_t most =
        layout->cluster->domain_hosts < hosts ? layout->cluster->domain_hosts : hosts;
    const struct host_variant full = {.domain_hosts = most > 1 ? most : 1};
    const int64_t domain = shape_of(layout, &full, group, TRAFFIC_RING).domain_hosts;
    const double n = (double)group->ranks;
    if (group->hosts > domain) {
        const int64_t domains = (group->hosts + domain - 1) / domain;
        hops->network = (double)domains - 1;
        return;
    }
    const double part = (n - 1) / n;
    hops->scale_up *= part;
    hops->pcie *= part;
    hops->host_memory *= part;
    hops->socket *= part;
}

/* Whether a host of the graph is in the layout, and which it is there. */
static bool find_host(const struct layout *layout, int64_t real, int64_t *host)
{
    const struct layout_parts *parts = layout->parts;
    *host = (real - parts->first_host) / parts->host_step;
    return real >= parts->first_host && (real - parts->first_host) % parts->host_step == 0 &&
           *host < layout->hosts;
}

/* The most that overridden hosts of one group add. */
static double extra_latency(const struct layout *layout, const struct group *group)
{
    const struct layout_graph *graph = layout->parts->graph;
    const int64_t stride = group_host_stride(layout, group);
    struct arena scratch = {0};
    double *sums = ARENA_ARRAY(&scratch, double, layout->hosts / group->hosts);
    double most = 0;
    for (int32_t i = 0; i < graph->sample_count && group->hosts > 1; i++) {
        int64_t host;
        if (!(graph->samples[i].step_latency_s > 0) ||
            !find_host(layout, graph->samples[i].first_host, &host))
            continue;
        double *sum = &sums[host / (group->hosts * stride) * stride + host % stride];
        *sum += graph->samples[i].step_latency_s;
        most = fmax(most, *sum);
    }
    arena_release(&scratch);
    return most;
}

static void take_fabric(const struct layout *layout, const struct group *group,
                        enum traffic_pattern pattern, struct hop_counts *hops,
                        const struct resource_sums *sums)
{
    struct arena scratch = {0};
    struct fabric_load *loads =
        ARENA_ARRAY(&scratch, struct fabric_load, layout->cluster->fabric.level_count + 1);
    const int32_t count = fabric_traffic(layout, group, pattern, loads, hops);
    const double efficiency = layout->cluster->nic_link.ring_efficiency;
    for (int32_t i = 0; i < 2 * count; i++) {
        const struct fabric_load *load = &loads[i / 2];
        const int32_t to = renumbered(layout->parts, load->resource + i % 2);
        const double bytes = i % 2 == 0 ? load->up : load->down;
        sums->per_byte[to] = fmax(sums->per_byte[to], bytes);
        sums->effort[to] = fmax(sums->effort[to], bytes / efficiency);
    }
    arena_release(&scratch);
}

/* Goes over the graph's representatives that the layout has: all of them, or a view's hosts. */
static void find_traffic(const struct layout *layout, const struct group *group,
                         enum traffic_pattern pattern, struct traffic *traffic)
{
    struct arena scratch = {0};
    const struct layout_graph *graph = layout->parts->graph;
    const struct resource_sums sums = sums_new(&scratch, layout);
    struct wire_loads *loads = ARENA_ARRAY(&scratch, struct wire_loads, graph->variant_count);
    struct hop_counts *hops = ARENA_ARRAY(&scratch, struct hop_counts, graph->variant_count);
    for (int32_t i = 0; i < graph->sample_count; i++) {
        const struct host_sample *sample = &graph->samples[i];
        const struct host_variant *variant = &graph->variants[sample->variant];
        int64_t host;
        if (!find_host(layout, sample->first_host, &host))
            continue;
        struct wire_loads *of = &loads[sample->variant];
        if (of->per_byte == NULL) {
            const struct host_shape shape = shape_of(layout, variant, group, pattern);
            *of = wire_loads_new(&scratch, &graph->host);
            host_traffic_add(&graph->host, variant->attached, &shape, of, &hops[sample->variant]);
        }
        take_wires(layout, i, of, &sums);
        const double share = (double)sample->count / (double)layout->hosts;
        add_hops(&traffic->hops, &hops[sample->variant], share * (double)group->hosts);
    }
    if (pattern == TRAFFIC_RING) {
        drop_hop(layout, group, &traffic->hops);
        traffic->extra_latency_s = extra_latency(layout, group);
    }
    take_fabric(layout, group, pattern, &traffic->hops, &sums);
    list_loads(layout, &sums, traffic);
    arena_release(&scratch);
}

static const struct traffic *traffic_of(const struct layout *layout, const struct group *group,
                                        enum traffic_pattern pattern)
{
    struct layout_parts *parts = layout->parts;
    for (struct traffic_entry *entry = parts->entries; entry != NULL; entry = entry->next)
        if (entry->pattern == pattern && is_same_group(&entry->group, group))
            return &entry->traffic;
    check_group(layout, group);
    struct traffic_entry *entry = ARENA_NEW(parts->arena, struct traffic_entry);
    *entry = (struct traffic_entry){.pattern = pattern, .group = *group, .next = parts->entries};
    parts->entries = entry;
    find_traffic(layout, group, pattern, &entry->traffic);
    return &entry->traffic;
}

const struct traffic *layout_ring(const struct layout *layout, const struct group *group)
{
    return traffic_of(layout, group, TRAFFIC_RING);
}

const struct traffic *layout_star(const struct layout *layout, const struct group *group)
{
    return traffic_of(layout, group, TRAFFIC_STAR);
}

const struct traffic *layout_all_to_all(const struct layout *layout, const struct group *group)
{
    return traffic_of(layout, group, TRAFFIC_ALL_TO_ALL);
}

/* Whether a rank beside the class's first on its host is of it. */
static bool is_member(const struct layout *layout, int32_t class_idx, int32_t sample, int64_t gpu)
{
    const struct layout_graph *graph = layout->parts->graph;
    const int64_t first = layout->classes[class_idx].first_rank;
    if (layout->each != NULL)
        return layout->each->class_of[first - first % graph->gpus + gpu] == class_idx;
    return graph->colours[graph_node(graph, sample, 1 + gpu)] ==
           graph->colours[graph_node(graph, sample, 1 + first % graph->gpus)];
}

/* From a sample in which the class lives: all its members there copy at once. */
static void find_copy(const struct layout *layout, int32_t class_idx, bool is_to_gpu,
                      struct traffic *traffic)
{
    struct arena scratch = {0};
    const struct layout_graph *graph = layout->parts->graph;
    const struct resource_sums sums = sums_new(&scratch, layout);
    const int64_t host = layout->classes[class_idx].first_rank / graph->gpus;
    int32_t sample = 0;
    while (graph->samples[sample].first_host != host)
        sample++;
    const struct wire_loads loads = wire_loads_new(&scratch, &graph->host);
    for (int64_t gpu = 0; gpu < graph->gpus; gpu++)
        if (is_member(layout, class_idx, sample, gpu))
            host_graph_copy(&graph->host, (int32_t)gpu, 1, is_to_gpu, &loads);
    take_wires(layout, sample, &loads, &sums);
    list_loads(layout, &sums, traffic);
    arena_release(&scratch);
}

const struct traffic *layout_copy(const struct layout *layout, int32_t class_idx, bool is_to_gpu)
{
    struct layout_parts *parts = layout->parts;
    struct traffic **known = &parts->copies[2 * class_idx + (is_to_gpu ? 1 : 0)];
    if (*known == NULL) {
        *known = ARENA_NEW(parts->arena, struct traffic);
        find_copy(layout, class_idx, is_to_gpu, *known);
    }
    return *known;
}

struct layout_parts *layout_parts_renumbered(struct arena *arena, const struct layout *unfolded,
                                             const int32_t *resource_of, int32_t class_count)
{
    struct layout_parts *parts = ARENA_NEW(arena, struct layout_parts);
    *parts = *unfolded->parts;
    parts->arena = arena;
    parts->entries = NULL;
    parts->copies = ARENA_ARRAY(arena, struct traffic *, 2 * class_count);
    parts->resource_of = resource_of;
    return parts;
}

void layout_parts_view(const struct layout *unfolded, const struct group *group, int64_t first_rank,
                       struct layout_parts *view)
{
    view->first_host = first_rank / unfolded->gpus_per_host;
    view->host_step = group_host_stride(unfolded, group);
    view->first_gpu = first_rank % unfolded->gpus_per_host;
    view->gpu_step = group_gpu_stride(unfolded, group);
}

void layout_view_used(const struct layout *view, const struct layout *unfolded, int64_t *used)
{
    struct arena scratch = {0};
    struct layout plain = *view; /* the same hosts, resources numbered as in the unfolded layout */
    struct layout_parts parts = *view->parts;
    struct traffic traffic = {0};
    const struct group all = group_whole(view);
    parts.arena = &scratch;
    parts.resource_of = NULL;
    plain.parts = &parts;
    plain.resource_count = unfolded->resource_count;
    find_traffic(&plain, &all, TRAFFIC_RING, &traffic);
    for (int32_t i = 0; i < traffic.load_count; i++) {
        const int32_t from = traffic.loads[i].resource;
        used[view->parts->resource_of[from]] += unfolded->resources[from].instances;
    }
    arena_release(&scratch);
}
