/* cluster/layout.c: classes of ranks and of resources from the colours of the layout's graph. */
#include "cluster/layout.h"

#include <stdlib.h>

#include "base/units.h"
#include "cluster/layout_private.h"

static const char *const kind_names[RESOURCE_KIND_COUNT] = {
    [RESOURCE_SM] = "SM",
    [RESOURCE_HBM] = "HBM",
    [RESOURCE_COPY_ENGINE] = "copy engine",
    [RESOURCE_SCALE_UP_OUT] = "scale-up out",
    [RESOURCE_SCALE_UP_IN] = "scale-up in",
    [RESOURCE_NIC_OUT] = "NIC out",
    [RESOURCE_NIC_IN] = "NIC in",
};

const char *resource_kind_name(enum resource_kind kind)
{
    return kind_names[kind];
}

int32_t *rank_class_resource(struct rank_class *class, int32_t which)
{
    int32_t *const all[RANK_RESOURCE_COUNT] = {
        &class->sm,           &class->hbm,         &class->copy_engine_h2d, &class->copy_engine_d2h,
        &class->scale_up_out, &class->scale_up_in, &class->nic_out,         &class->nic_in};
    return all[which];
}

struct colour {         /* what one colour of the graph became */
    int32_t rank_class; /* before the classes are sorted */
    int64_t first_rank; /* names the class after */
    int32_t host_class;
    int32_t nic_out, nic_in;
    int64_t nics_per_host;
};

struct layout_builder {
    struct arena *arena;
    struct layout *layout;
    struct layout_graph graph;
    struct colour *colours;
    int32_t resource_capacity;
    const char *scale_up_names[2];
    const char *nic_names[2];
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
    const struct layout_graph *graph = &builder->graph;
    for (int32_t s = 0; s < graph->sample_count; s++) {
        const struct host_sample *sample = &graph->samples[s];
        for (int64_t gpu = 0; gpu < graph->gpus; gpu++) {
            int32_t node = graph_node(graph, s, 1 + gpu);
            struct colour *colour = &builder->colours[graph->colours[node]];
            int64_t rank = sample->first_host * graph->gpus + gpu;
            if (colour->rank_class < 0) {
                colour->rank_class = layout->class_count;
                colour->first_rank = rank;
                layout->classes[layout->class_count++] =
                    (struct rank_class){.clock_frac = graph->values[node]};
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

/* NIC resources of every NIC colour, in node order. */
static void collect_nics(struct layout_builder *builder)
{
    const struct layout_graph *graph = &builder->graph;
    const struct link *link = &builder->layout->cluster->nic_link;
    for (int32_t s = 0; s < graph->sample_count; s++) {
        for (int64_t nic = 0; nic < graph->nics; nic++) {
            int32_t node = graph_node(graph, s, 1 + graph->gpus + nic);
            struct colour *colour = &builder->colours[graph->colours[node]];
            double capacity = link->bytes_per_s * graph->values[node];
            if (colour->nic_out < 0) {
                colour->nic_out =
                    add_resource(builder, RESOURCE_NIC_OUT, builder->nic_names[0], capacity, 0);
                colour->nic_in =
                    add_resource(builder, RESOURCE_NIC_IN, builder->nic_names[1], capacity, 0);
            }
            builder->layout->resources[colour->nic_out].instances += graph->samples[s].count;
            builder->layout->resources[colour->nic_in].instances += graph->samples[s].count;
        }
    }
}

static void add_gpu_resources(struct layout_builder *builder, struct rank_class *class)
{
    const struct cluster *cluster = builder->layout->cluster;
    int64_t count = class->count;
    class->sm = add_resource(builder, RESOURCE_SM, "SM", 1, count);
    class->hbm = add_resource(builder, RESOURCE_HBM, "HBM", cluster->gpu.hbm_bytes_per_s, count);
    class->copy_engine_h2d =
        add_resource(builder, RESOURCE_COPY_ENGINE, "copy engine H2D", 1, count);
    class->copy_engine_d2h =
        add_resource(builder, RESOURCE_COPY_ENGINE, "copy engine D2H", 1, count);
    class->scale_up_out = -1;
    class->scale_up_in = -1;
    if (cluster->scale_up == SCALE_UP_NONE || builder->graph.gpus < 2)
        return;
    double capacity = cluster->scale_up_link.bytes_per_s;
    class->scale_up_out =
        add_resource(builder, RESOURCE_SCALE_UP_OUT, builder->scale_up_names[0], capacity, count);
    class->scale_up_in =
        add_resource(builder, RESOURCE_SCALE_UP_IN, builder->scale_up_names[1], capacity, count);
}

static int64_t count_colour(const struct layout_graph *graph, int32_t sample, int64_t from,
                            int64_t count, int32_t colour)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        found += graph->colours[graph_node(graph, sample, from + i)] == colour ? 1 : 0;
    return found;
}

/* What a class sees of its host: from the sample in which its lowest rank lives. */
static void describe_class(struct layout_builder *builder, struct rank_class *class, int32_t sample,
                           int64_t gpu, int32_t *host_classes)
{
    const struct layout_graph *graph = &builder->graph;
    int32_t node = graph_node(graph, sample, 1 + gpu);
    class->per_host = count_colour(graph, sample, 1, graph->gpus, graph->colours[node]);
    BUG_IF(class->per_host == 0);
    class->hosts = class->count / class->per_host;
    struct colour *host = &builder->colours[graph->colours[graph_node(graph, sample, 0)]];
    if (host->host_class < 0)
        host->host_class = (*host_classes)++;
    class->host_class = host->host_class;
    class->nic_out = -1;
    class->nic_in = -1;
    if (graph->nics == 0)
        return;
    int64_t nic = 1 + graph->gpus + gpu_first_nic(builder->layout->cluster, gpu);
    int32_t nic_colour = graph->colours[graph_node(graph, sample, nic)];
    struct colour *colour = &builder->colours[nic_colour];
    if (colour->nics_per_host == 0)
        colour->nics_per_host =
            count_colour(graph, sample, 1 + graph->gpus, graph->nics, nic_colour);
    class->nic_out = colour->nic_out;
    class->nic_in = colour->nic_in;
    class->nics_per_host = (double)colour->nics_per_host;
    class->ranks_per_nic = (double)class->per_host / class->nics_per_host;
}

static void describe_classes(struct layout_builder *builder)
{
    struct layout *layout = builder->layout;
    const struct layout_graph *graph = &builder->graph;
    int32_t host_classes = 0;
    for (int32_t i = 0; i < layout->class_count; i++)
        add_gpu_resources(builder, &layout->classes[i]);
    collect_nics(builder);
    struct rank_class **by_colour =
        ARENA_ARRAY(builder->arena, struct rank_class *, graph->colour_count);
    for (int32_t s = 0; s < graph->sample_count; s++) {
        for (int64_t gpu = 0; gpu < graph->gpus; gpu++) {
            int32_t colour = graph->colours[graph_node(graph, s, 1 + gpu)];
            if (by_colour[colour])
                continue;
            struct rank_class key = {.first_rank = builder->colours[colour].first_rank};
            by_colour[colour] = bsearch(&key, layout->classes, (size_t)layout->class_count,
                                        sizeof(key), compare_classes);
            BUG_IF(!by_colour[colour]);
            describe_class(builder, by_colour[colour], s, gpu, &host_classes);
        }
    }
}

static void name_links(struct layout_builder *builder)
{
    const struct cluster *cluster = builder->layout->cluster;
    for (int i = 0; i < 2; i++) {
        builder->scale_up_names[i] =
            arena_printf(builder->arena, "scale-up %s (%s)", i == 0 ? "out" : "in",
                         cluster->scale_up_link.name ? cluster->scale_up_link.name : "none");
        builder->nic_names[i] =
            arena_printf(builder->arena, "NIC %s (%s)", i == 0 ? "out" : "in",
                         cluster->nic_link.name ? cluster->nic_link.name : "none");
    }
}

enum status layout_build(struct arena *arena, const struct cluster *cluster, int64_t hosts,
                         int64_t gpus_per_host, bool is_folded, struct layout *layout,
                         struct diag *diag)
{
    enum status status = check_size(cluster, hosts, gpus_per_host, is_folded, diag);
    if (status != STATUS_OK)
        return status;
    warn_overrides(cluster, hosts, gpus_per_host, diag);
    *layout = (struct layout){.cluster = cluster,
                              .hosts = hosts,
                              .gpus_per_host = gpus_per_host,
                              .ranks = hosts * gpus_per_host,
                              .nics_per_host = nics_in_use(cluster, hosts, gpus_per_host)};
    struct layout_builder builder = {.arena = arena, .layout = layout};
    layout_graph_build(arena, cluster, hosts, gpus_per_host, is_folded, &builder.graph);
    const struct layout_graph *graph = &builder.graph;
    builder.colours = ARENA_ARRAY(arena, struct colour, graph->colour_count);
    for (int32_t i = 0; i < graph->colour_count; i++)
        builder.colours[i] =
            (struct colour){.rank_class = -1, .host_class = -1, .nic_out = -1, .nic_in = -1};
    int64_t gpu_nodes = graph->sample_count * graph->gpus;
    layout->classes = ARENA_ARRAY(arena, struct rank_class, gpu_nodes);
    collect_classes(&builder);
    qsort(layout->classes, (size_t)layout->class_count, sizeof(struct rank_class), compare_classes);
    builder.resource_capacity =
        6 * layout->class_count + 2 * graph->sample_count * (int32_t)graph->nics;
    layout->resources = ARENA_ARRAY(arena, struct resource, builder.resource_capacity);
    name_links(&builder);
    describe_classes(&builder);
    return STATUS_OK;
}
