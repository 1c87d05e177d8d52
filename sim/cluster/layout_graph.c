/* cluster/layout_graph.c: representative hosts, what differs on them, and their colours. */
#include <stdlib.h>

#include "cluster/layout_private.h"
#include "cluster/partition.h"

enum seed_kind { KIND_HOST, KIND_GPU, KIND_NIC };
enum edge_label { EDGE_HOST_GPU, EDGE_HOST_NIC, EDGE_GPU_NIC };

struct seed { /* nodes of one kind and value start with one colour */
    int32_t node;
    int kind;
    double value;
};

static bool is_attached(const struct cluster *cluster, int64_t gpu, int64_t nic)
{
    int64_t g = cluster->gpus_per_host;
    int64_t n = cluster->nic_count;
    return n >= g ? nic * g / n == gpu : gpu * n / g == nic;
}

int64_t gpu_first_nic(const struct cluster *cluster, int64_t gpu)
{
    int64_t g = cluster->gpus_per_host;
    int64_t n = cluster->nic_count;
    return n >= g ? (gpu * n + g - 1) / g : gpu * n / g;
}

int64_t nics_in_use(const struct cluster *cluster, int64_t hosts, int64_t gpus_per_host)
{
    if (hosts <= 1 || cluster->nic_count == 0)
        return 0;
    if (gpus_per_host >= cluster->gpus_per_host)
        return cluster->nic_count;
    int64_t last = gpu_first_nic(cluster, gpus_per_host - 1);
    return cluster->nic_count >= cluster->gpus_per_host ? gpu_first_nic(cluster, gpus_per_host)
                                                        : last + 1;
}

static int compare_hosts(const void *left, const void *right)
{
    const struct host_sample *a = left;
    const struct host_sample *b = right;
    return (a->first_host > b->first_host) - (a->first_host < b->first_host);
}

static void samples_unfolded(struct arena *arena, int64_t hosts, struct layout_graph *graph)
{
    graph->samples = ARENA_ARRAY(arena, struct host_sample, hosts);
    graph->sample_count = (int32_t)hosts;
    for (int64_t i = 0; i < hosts; i++)
        graph->samples[i] = (struct host_sample){.first_host = i, .count = 1};
}

/* Each overridden host by itself, all others as one. */
static void samples_folded(struct arena *arena, const struct cluster *cluster, int64_t hosts,
                           struct layout_graph *graph)
{
    struct host_sample *samples =
        ARENA_ARRAY(arena, struct host_sample, cluster->override_count + 1);
    int32_t listed = 0;
    for (int64_t i = 0; i < cluster->override_count; i++) {
        if (cluster->overrides[i].host < hosts)
            samples[listed++] =
                (struct host_sample){.first_host = cluster->overrides[i].host, .count = 1};
    }
    qsort(samples, (size_t)listed, sizeof(*samples), compare_hosts);
    int32_t count = 0;
    int64_t free_host = 0; /* lowest host without an override */
    for (int32_t i = 0; i < listed; i++) {
        if (count > 0 && samples[count - 1].first_host == samples[i].first_host)
            continue;
        free_host += samples[i].first_host == free_host ? 1 : 0;
        samples[count++] = samples[i];
    }
    if (count < hosts) {
        samples[count] = (struct host_sample){.first_host = free_host, .count = hosts - count};
        count++;
    }
    graph->samples = samples;
    graph->sample_count = count;
}

static int32_t sample_of_host(const struct layout_graph *graph, int64_t host, bool is_folded)
{
    if (!is_folded)
        return (int32_t)host;
    for (int32_t i = 0; i < graph->sample_count; i++) {
        if (graph->samples[i].first_host == host)
            return i;
    }
    BUG("overridden host is not a sample");
}

static void apply_overrides(const struct cluster *cluster, int64_t hosts, bool is_folded,
                            struct layout_graph *graph)
{
    for (int64_t i = 0; i < cluster->override_count; i++) {
        const struct override *override = &cluster->overrides[i];
        if (override->host >= hosts)
            continue;
        int32_t sample = sample_of_host(graph, override->host, is_folded);
        for (int64_t gpu = 0; gpu < graph->gpus; gpu++) {
            if (override->gpu < 0 || override->gpu == gpu)
                graph->values[graph_node(graph, sample, 1 + gpu)] *= override->clock_frac;
        }
        for (int64_t nic = 0; nic < graph->nics; nic++)
            graph->values[graph_node(graph, sample, 1 + graph->gpus + nic)] *= override->nic_frac;
    }
}

static int compare_seeds(const void *left, const void *right)
{
    const struct seed *a = left;
    const struct seed *b = right;
    if (a->kind != b->kind)
        return a->kind - b->kind;
    return (a->value > b->value) - (a->value < b->value);
}

static int node_kind(const struct layout_graph *graph, int64_t within)
{
    if (within == 0)
        return KIND_HOST;
    return within <= graph->gpus ? KIND_GPU : KIND_NIC;
}

static void seed_colours(struct arena *scratch, const struct layout_graph *graph)
{
    int64_t per_sample = 1 + graph->gpus + graph->nics;
    int32_t count = graph_node(graph, graph->sample_count, 0);
    struct seed *seeds = ARENA_ARRAY(scratch, struct seed, count);
    for (int32_t i = 0; i < count; i++)
        seeds[i] = (struct seed){i, node_kind(graph, i % per_sample), graph->values[i]};
    qsort(seeds, (size_t)count, sizeof(*seeds), compare_seeds);
    int32_t colour = 0;
    for (int32_t i = 0; i < count; i++) {
        if (i > 0 && compare_seeds(&seeds[i - 1], &seeds[i]) != 0)
            colour++;
        graph->colours[seeds[i].node] = colour;
    }
}

static int32_t connect_host(const struct cluster *cluster, const struct layout_graph *graph,
                            int32_t sample, struct partition_edge *edges)
{
    int32_t count = 0;
    int32_t host = graph_node(graph, sample, 0);
    for (int64_t gpu = 0; gpu < graph->gpus; gpu++) {
        int32_t gpu_node = graph_node(graph, sample, 1 + gpu);
        edges[count++] = (struct partition_edge){host, gpu_node, EDGE_HOST_GPU};
        for (int64_t nic = 0; nic < graph->nics; nic++) {
            int32_t nic_node = graph_node(graph, sample, 1 + graph->gpus + nic);
            if (is_attached(cluster, gpu, nic))
                edges[count++] = (struct partition_edge){gpu_node, nic_node, EDGE_GPU_NIC};
        }
    }
    for (int64_t nic = 0; nic < graph->nics; nic++)
        edges[count++] = (struct partition_edge){
            host, graph_node(graph, sample, 1 + graph->gpus + nic), EDGE_HOST_NIC};
    return count;
}

static void refine_colours(const struct cluster *cluster, struct layout_graph *graph)
{
    struct arena scratch = {0};
    seed_colours(&scratch, graph);
    /* A GPU has one NIC or the NICs are shared out: attachments number max(gpus, nics). */
    int64_t most = 2 * (graph->gpus + graph->nics) * graph->sample_count;
    struct partition_edge *edges = ARENA_ARRAY(&scratch, struct partition_edge, most + 1);
    int32_t count = 0;
    for (int32_t i = 0; i < graph->sample_count; i++)
        count += connect_host(cluster, graph, i, &edges[count]);
    graph->colour_count = partition_refine(&scratch, graph_node(graph, graph->sample_count, 0),
                                           edges, count, graph->colours);
    arena_release(&scratch);
}

/* Every node its own colour, but NICs of one GPU alone are one resource with several instances. */
static void distinct_colours(const struct cluster *cluster, struct layout_graph *graph)
{
    int32_t count = graph_node(graph, graph->sample_count, 0);
    for (int32_t i = 0; i < count; i++)
        graph->colours[i] = i;
    graph->colour_count = count;
    if (cluster->nic_count < cluster->gpus_per_host)
        return;
    for (int32_t sample = 0; sample < graph->sample_count; sample++) {
        for (int64_t nic = 0; nic < graph->nics; nic++) {
            int64_t gpu = nic * cluster->gpus_per_host / cluster->nic_count;
            int64_t first = gpu_first_nic(cluster, gpu);
            graph->colours[graph_node(graph, sample, 1 + graph->gpus + nic)] =
                graph_node(graph, sample, 1 + graph->gpus + first);
        }
    }
}

void layout_graph_build(struct arena *arena, const struct cluster *cluster, int64_t hosts,
                        int64_t gpus_per_host, bool is_folded, struct layout_graph *graph)
{
    *graph = (struct layout_graph){.gpus = gpus_per_host,
                                   .nics = nics_in_use(cluster, hosts, gpus_per_host)};
    if (is_folded)
        samples_folded(arena, cluster, hosts, graph);
    else
        samples_unfolded(arena, hosts, graph);
    int32_t count = graph_node(graph, graph->sample_count, 0);
    graph->values = ARENA_ARRAY(arena, double, count);
    graph->colours = ARENA_ARRAY(arena, int32_t, count);
    for (int32_t i = 0; i < count; i++)
        graph->values[i] = 1;
    apply_overrides(cluster, hosts, is_folded, graph);
    if (is_folded)
        refine_colours(cluster, graph);
    else
        distinct_colours(cluster, graph);
}
