/* cluster/layout.c: classes of ranks and of resources from the colours of the layout's graph. */
#include "cluster/layout.h"

#include <stdlib.h>

#include "base/units.h"
#include "cluster/layout_private.h"

int32_t *rank_class_resource(struct rank_class *class, int32_t which)
{
    int32_t *const all[RANK_RESOURCE_COUNT] = {
        &class->sm,           &class->hbm,         &class->copy_engine_h2d, &class->copy_engine_d2h,
        &class->scale_up_out, &class->scale_up_in, &class->pcie_up,         &class->pcie_down,
        &class->nic_out,      &class->nic_in};
    return all[which];
}

struct colour {         /* what one colour of the graph became */
    int32_t rank_class; /* before the classes are sorted */
    int64_t first_rank; /* names the class after */
    int32_t host_class;
    int64_t nics_per_host;
    int32_t resources[RESOURCE_KIND_COUNT]; /* of its wires, by kind; -1: none yet */
};

struct layout_builder {
    struct arena *arena;
    struct layout *layout;
    const struct layout_graph *graph;
    struct colour *colours;
    int32_t resource_capacity;
};

static enum status check_size(const struct cluster *cluster, int64_t hosts, int64_t gpus_per_host,
                              bool is_folded, struct diag *diag)
{
    int32_t before = diag->error_count;
    if (hosts < 1 || hosts > cluster->max_hosts)
        diag_add(diag, DIAG_ERROR, cluster->place, NULL, "%lld hosts of '%s', which has 1 to %lld",
                 (long long)hosts, cluster->name, (long long)cluster->max_hosts);
    if (gpus_per_host < 1 || gpus_per_host > cluster->gpus_per_host)
        diag_add(diag, DIAG_ERROR, cluster->place, NULL,
                 "%lld GPUs a host of '%s', which has 1 to %lld", (long long)gpus_per_host,
                 cluster->name, (long long)cluster->gpus_per_host);
    if (hosts > 1 && cluster->nic_count == 0)
        diag_add(diag, DIAG_ERROR, cluster->place, "give its host 'nics'",
                 "cluster '%s' has no NICs: at most 1 host", cluster->name);
    if (diag->error_count > before)
        return STATUS_INPUT;
    if (!is_folded && hosts > LAYOUT_MAX_UNFOLDED_RANKS / gpus_per_host) {
        char size[32];
        double each = (double)sizeof(struct rank_class) +
                      RESOURCE_KIND_COUNT * (double)sizeof(struct resource);
        format_gib(size, sizeof(size), each * (double)hosts * (double)gpus_per_host);
        diag_add(diag, DIAG_ERROR, cluster->place, "leave 'fold' at 'auto'",
                 "%lld x %lld ranks unfolded need %s for the layout alone; at most %d are built",
                 (long long)hosts, (long long)gpus_per_host, size, LAYOUT_MAX_UNFOLDED_RANKS);
        return STATUS_INPUT;
    }
    return STATUS_OK;
}

static void warn_overrides(const struct cluster *cluster, int64_t hosts, int64_t gpus_per_host,
                           struct diag *diag)
{
    for (int64_t i = 0; i < cluster->override_count; i++) {
        const struct override *override = &cluster->overrides[i];
        if (override->host >= hosts || override->gpu >= gpus_per_host)
            diag_add(diag, DIAG_WARNING, override->place, NULL,
                     "override without effect: %lld hosts with %lld GPUs each are in use",
                     (long long)hosts, (long long)gpus_per_host);
    }
}

static int32_t add_resource(struct layout_builder *builder, enum resource_kind kind,
                            const char *name, double capacity, int64_t instances)
{
    struct layout *layout = builder->layout;
    BUG_IF(layout->resource_count >= builder->resource_capacity);
    layout->resources[layout->resource_count] =
        (struct resource){.kind = kind, .name = name, .capacity = capacity, .instances = instances};
    return layout->resource_count++;
}

/* One pass over the GPU nodes: counts, lowest ranks, members a host. */
static void collect_classes(struct layout_builder *builder)
{
    struct layout *layout = builder->layout;
    const struct layout_graph *graph = builder->graph;
    for (int32_t s = 0; s < graph->sample_count; s++) {
        const struct host_sample *sample = &graph->samples[s];
        for (int64_t gpu = 0; gpu < graph->gpus; gpu++) {
            int32_t node = graph_node(graph, s, 1 + gpu);
            struct colour *colour = &builder->colours[graph->colours[node]];
            int64_t rank = sample->first_host * graph->gpus + gpu;
            if (colour->rank_class < 0) {
                colour->rank_class = layout->class_count;
                colour->first_rank = rank;
                layout->classes[layout->class_count++] = (struct rank_class){
                    .clock_frac = sample->gpus[gpu].clock, .load = sample->gpus[gpu].load};
            }
            if (rank < colour->first_rank)
                colour->first_rank = rank;
            struct rank_class *class = &layout->classes[colour->rank_class];
            class->count += sample->count;
            class->first_rank = colour->first_rank;
        }
    }
}

static int compare_classes(const void *left, const void *right)
{
    const struct rank_class *a = left;
    const struct rank_class *b = right;
    return (a->first_rank > b->first_rank) - (a->first_rank < b->first_rank);
}

/* A GPU of the cluster, or a copy with memory at a share of its rate. */
static const struct gpu *class_gpu(struct layout_builder *builder, const struct gpu_shares *shares)
{
    const struct layout *layout = builder->layout;
    const struct cluster *cluster = layout->cluster;
    const struct gpu *gpu = shares->type < 0 ? &cluster->gpu : &cluster->other_gpus[shares->type];
    if (shares->hbm >= 1)
        return gpu;
    const double rate = gpu->hbm_bytes_per_s * shares->hbm;
    for (int32_t i = 0; i < layout->class_count; i++) {
        const struct gpu *known = layout->classes[i].gpu;
        if (known != NULL && known->name == gpu->name && known->hbm_bytes_per_s <= rate &&
            known->hbm_bytes_per_s >= rate)
            return known;
    }
    struct gpu *slower = ARENA_NEW(builder->arena, struct gpu);
    *slower = *gpu; /* borrows the curves */
    slower->hbm_bytes_per_s = rate;
    return slower;
}

static void add_gpu_resources(struct layout_builder *builder, struct rank_class *class)
{
    const int64_t count = class->count;
    class->sm = add_resource(builder, RESOURCE_SM, "SM", 1, count);
    class->hbm = add_resource(builder, RESOURCE_HBM, "HBM", class->gpu->hbm_bytes_per_s, count);
    class->copy_engine_h2d =
        add_resource(builder, RESOURCE_COPY_ENGINE, "copy engine H2D", 1, count);
    class->copy_engine_d2h =
        add_resource(builder, RESOURCE_COPY_ENGINE, "copy engine D2H", 1, count);
}

static int64_t count_colour(const struct layout_graph *graph, int32_t sample, int64_t from,
                            int64_t count, int32_t colour)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        found += graph->colours[graph_node(graph, sample, from + i)] == colour ? 1 : 0;
    return found;
}

/* The node that a wire belongs to: its GPU, its NIC, or its own; -1: it is not there. */
static int32_t wire_node(const struct layout_graph *graph, int32_t sample, int32_t wire,
                         const int32_t *loose_place)
{
    const struct wire *of = &graph->host.wires[wire];
    if (loose_place[wire] >= 0)
        return graph_node(graph, sample, 1 + graph->gpus + graph->nics + loose_place[wire]);
    if (of->gpu >= 0)
        return graph_node(graph, sample, 1 + of->gpu);
    if (of->nic >= 0 && sample_has_nic(graph, sample, of->nic))
        return graph_node(graph, sample, 1 + graph->gpus + of->nic);
    return -1;
}

static void collect_sample(struct layout_builder *builder, int32_t sample,
                           const int32_t *loose_place, int32_t *wire_resources)
{
    const struct layout_graph *graph = builder->graph;
    struct layout *layout = builder->layout;
    int32_t *to = &wire_resources[(ptrdiff_t)sample * graph->host.wire_count];
    for (int32_t i = 0; i < graph->host.wire_count; i++) {
        const struct wire *wire = &graph->host.wires[i];
        const int32_t node = wire_node(graph, sample, i, loose_place);
        to[i] = -1;
        if (node < 0)
            continue;
        int32_t *resource = &builder->colours[graph->colours[node]].resources[wire->kind];
        if (*resource < 0)
            *resource = add_resource(builder, wire->kind, wire->name,
                                     sample_wire_capacity(graph, sample, i), 0);
        layout->resources[*resource].instances += graph->samples[sample].count;
        to[i] = *resource;
    }
}

/* Resources of every wire colour, in node order. */
static void collect_wires(struct layout_builder *builder)
{
    const struct layout_graph *graph = builder->graph;
    int32_t *loose_place = ARENA_ARRAY(builder->arena, int32_t, graph->host.wire_count + 1);
    for (int32_t i = 0; i < graph->host.wire_count; i++)
        loose_place[i] = -1;
    for (int32_t i = 0; i < graph->loose_count; i++)
        loose_place[graph->loose[i]] = i;
    int32_t *wire_resources = ARENA_ARRAY(
        builder->arena, int32_t, (int64_t)graph->sample_count * graph->host.wire_count + 1);
    for (int32_t s = 0; s < graph->sample_count; s++)
        collect_sample(builder, s, loose_place, wire_resources);
    builder->layout->parts->wire_resources = wire_resources;
}

/* What a class sees of its host: from the sample in which its lowest rank lives. */
static void describe_class(struct layout_builder *builder, struct rank_class *class, int32_t sample,
                           int64_t gpu, int32_t *host_classes)
{
    const struct layout_graph *graph = builder->graph;
    const int32_t node = graph_node(graph, sample, 1 + gpu);
    const struct colour *own = &builder->colours[graph->colours[node]];
    class->per_host = count_colour(graph, sample, 1, graph->gpus, graph->colours[node]);
    BUG_IF(class->per_host == 0);
    class->hosts = class->count / class->per_host;
    struct colour *host = &builder->colours[graph->colours[graph_node(graph, sample, 0)]];
    if (host->host_class < 0)
        host->host_class = (*host_classes)++;
    class->host_class = host->host_class;
    class->scale_up_out = own->resources[RESOURCE_SCALE_UP_OUT];
    class->scale_up_in = own->resources[RESOURCE_SCALE_UP_IN];
    class->pcie_up = own->resources[RESOURCE_PCIE_UP];
    class->pcie_down = own->resources[RESOURCE_PCIE_DOWN];
    class->nic_out = -1;
    class->nic_in = -1;
    const struct host_variant *variant = &graph->variants[graph->samples[sample].variant];
    int64_t nic = 0;
    while (nic < graph->nics && !variant->attached[gpu * graph->nics + nic])
        nic++;
    if (nic == graph->nics)
        return;
    const int32_t nic_colour = graph->colours[graph_node(graph, sample, 1 + graph->gpus + nic)];
    struct colour *colour = &builder->colours[nic_colour];
    if (colour->nics_per_host == 0)
        colour->nics_per_host =
            count_colour(graph, sample, 1 + graph->gpus, graph->nics, nic_colour);
    class->nic_out = colour->resources[RESOURCE_NIC_OUT];
    class->nic_in = colour->resources[RESOURCE_NIC_IN];
    class->nics_per_host = (double)colour->nics_per_host;
    class->ranks_per_nic = (double)class->per_host / class->nics_per_host;
}

static void describe_classes(struct layout_builder *builder, struct rank_class **by_colour)
{
    const struct layout_graph *graph = builder->graph;
    int32_t host_classes = 0;
    bool *is_done = ARENA_ARRAY(builder->arena, bool, graph->colour_count);
    for (int32_t s = 0; s < graph->sample_count; s++) {
        for (int64_t gpu = 0; gpu < graph->gpus; gpu++) {
            const int32_t colour = graph->colours[graph_node(graph, s, 1 + gpu)];
            if (!is_done[colour])
                describe_class(builder, by_colour[colour], s, gpu, &host_classes);
            is_done[colour] = true;
        }
    }
}

/* The class of every GPU colour, and the GPU of every class. */
static struct rank_class **name_classes(struct layout_builder *builder)
{
    struct layout *layout = builder->layout;
    const struct layout_graph *graph = builder->graph;
    struct rank_class **by_colour =
        ARENA_ARRAY(builder->arena, struct rank_class *, graph->colour_count);
    for (int32_t s = 0; s < graph->sample_count; s++) {
        for (int64_t gpu = 0; gpu < graph->gpus; gpu++) {
            const int32_t colour = graph->colours[graph_node(graph, s, 1 + gpu)];
            if (by_colour[colour])
                continue;
            struct rank_class key = {.first_rank = builder->colours[colour].first_rank};
            by_colour[colour] = bsearch(&key, layout->classes, (size_t)layout->class_count,
                                        sizeof(key), compare_classes);
            BUG_IF(!by_colour[colour]);
            by_colour[colour]->gpu = class_gpu(builder, &graph->samples[s].gpus[gpu]);
        }
    }
    return by_colour;
}

static void build_classes(struct layout_builder *builder)
{
    struct layout *layout = builder->layout;
    const struct layout_graph *graph = builder->graph;
    builder->colours = ARENA_ARRAY(builder->arena, struct colour, graph->colour_count);
    for (int32_t i = 0; i < graph->colour_count; i++) {
        builder->colours[i] = (struct colour){.rank_class = -1, .host_class = -1};
        for (int kind = 0; kind < RESOURCE_KIND_COUNT; kind++)
            builder->colours[i].resources[kind] = -1;
    }
    layout->classes =
        ARENA_ARRAY(builder->arena, struct rank_class, (int64_t)graph->sample_count * graph->gpus);
    collect_classes(builder);
    qsort(layout->classes, (size_t)layout->class_count, sizeof(struct rank_class), compare_classes);
    struct rank_class **by_colour = name_classes(builder);
    builder->resource_capacity =
        8 * layout->class_count +
        graph->sample_count * (4 * (int32_t)graph->nics + graph->loose_count) +
        fabric_resource_most(layout->cluster);
    layout->resources = ARENA_ARRAY(builder->arena, struct resource, builder->resource_capacity);
    for (int32_t i = 0; i < layout->class_count; i++)
        add_gpu_resources(builder, &layout->classes[i]);
    collect_wires(builder);
    describe_classes(builder, by_colour);
    layout->parts->copies = ARENA_ARRAY(builder->arena, struct traffic *, 2 * layout->class_count);
}

static int64_t count_nics(const struct layout_graph *graph)
{
    int64_t count = 0;
    const bool *attached = graph->variants[0].attached;
    for (int64_t nic = 0; nic < graph->nics; nic++) {
        bool is_used = false;
        for (int64_t gpu = 0; gpu < graph->gpus; gpu++)
            is_used |= attached[gpu * graph->nics + nic];
        count += is_used ? 1 : 0;
    }
    return count;
}

enum status layout_build(struct arena *arena, const struct cluster *cluster, int64_t hosts,
                         int64_t gpus_per_host, bool is_folded, struct layout *layout,
                         struct diag *diag)
{
    enum status status = check_size(cluster, hosts, gpus_per_host, is_folded, diag);
    if (status != STATUS_OK)
        return status;
    warn_overrides(cluster, hosts, gpus_per_host, diag);
    struct layout_graph *graph = ARENA_NEW(arena, struct layout_graph);
    layout_graph_build(arena, cluster, hosts, gpus_per_host, is_folded, graph);
    struct layout_parts *parts = ARENA_NEW(arena, struct layout_parts);
    *parts = (struct layout_parts){
        .arena = arena, .graph = graph, .fabric_first = -1, .host_step = 1, .gpu_step = 1};
    const int64_t domain = cluster->domain_hosts > 1 ? cluster->domain_hosts : 1;
    *layout = (struct layout){.cluster = cluster,
                              .hosts = hosts,
                              .gpus_per_host = gpus_per_host,
                              .ranks = hosts * gpus_per_host,
                              .nics_per_host = count_nics(graph),
                              .domain_hosts = domain < hosts ? domain : hosts,
                              .parts = parts};
    struct layout_builder builder = {.arena = arena, .layout = layout, .graph = graph};
    build_classes(&builder);
    fabric_add_resources(layout);
    return STATUS_OK;
}
