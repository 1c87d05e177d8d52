/* cluster/layout_graph.c: representative hosts, what differs on them, and their colours. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/layout_private.h"
#include "cluster/partition.h"

enum seed_kind { KIND_HOST, KIND_GPU, KIND_NIC, KIND_WIRE };
enum edge_label { EDGE_HOST_GPU, EDGE_HOST_NIC, EDGE_GPU_NIC, EDGE_HOST_WIRE, EDGE_GPU_WIRE };

struct seed { /* nodes of one kind and value start with one colour */
    int32_t node;
    int kind;
    uint64_t value;
};

static uint64_t mix_real(uint64_t hash, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return hash64_mix(hash, bits);
}

static int compare_hosts(const void *left, const void *right)
{
    const struct host_sample *a = left;
    const struct host_sample *b = right;
    return (a->first_host > b->first_host) - (a->first_host < b->first_host);
}

static void samples_unfolded(struct arena *arena, struct layout_graph *graph)
{
    graph->samples = ARENA_ARRAY(arena, struct host_sample, graph->hosts);
    graph->sample_count = (int32_t)graph->hosts;
    for (int64_t i = 0; i < graph->hosts; i++)
        graph->samples[i] = (struct host_sample){.first_host = i, .count = 1};
}

/* The hosts of [from, to) without an override, as one. `listed` is sorted. */
static void add_plain(struct layout_graph *graph, int32_t listed, int64_t from, int64_t to)
{
    int64_t count = to - from;
    int64_t first = from;
    for (int32_t i = 0; i < listed; i++) {
        const int64_t host = graph->samples[i].first_host;
        if (host < from || host >= to)
            continue;
        count--;
        first += host == first ? 1 : 0;
    }
    if (count > 0)
        graph->samples[graph->sample_count++] =
            (struct host_sample){.first_host = first, .count = count};
}

/* Each overridden host by itself, all others as one, those of a scale-up domain that is not full as
   another. */
static void samples_folded(struct arena *arena, struct layout_graph *graph)
{
    const struct cluster *cluster = graph->cluster;
    struct host_sample *samples =
        ARENA_ARRAY(arena, struct host_sample, cluster->override_count + 2);
    int32_t listed = 0;
    for (int64_t i = 0; i < cluster->override_count; i++)
        if (cluster->overrides[i].host < graph->hosts)
            samples[listed++] =
                (struct host_sample){.first_host = cluster->overrides[i].host, .count = 1};
    qsort(samples, (size_t)listed, sizeof(*samples), compare_hosts);
    int32_t count = 0;
    for (int32_t i = 0; i < listed; i++)
        if (count == 0 || samples[count - 1].first_host != samples[i].first_host)
            samples[count++] = samples[i];
    graph->samples = samples;
    graph->sample_count = count;
    graph->overridden_count = count;
    const int64_t domain = cluster->domain_hosts > 1 ? cluster->domain_hosts : 1;
    const int64_t full = graph->hosts - graph->hosts % domain;
    add_plain(graph, count, 0, full);
    add_plain(graph, count, full, graph->hosts);
}

static struct host_sample *sample_of_host(const struct layout_graph *graph, int64_t host,
                                          bool is_folded)
{
    if (!is_folded)
        return &graph->samples[host];
    const struct host_sample key = {.first_host = host};
    struct host_sample *found =
        bsearch(&key, graph->samples, (size_t)graph->overridden_count, sizeof(key), compare_hosts);
    BUG_IF(found == NULL);
    return found;
}

static void plain_shares(struct arena *arena, const struct layout_graph *graph,
                         struct host_sample *sample)
{
    sample->gpus = ARENA_ARRAY(arena, struct gpu_shares, graph->gpus);
    sample->nics = ARENA_ARRAY(arena, double, graph->nics + 1);
    for (int64_t i = 0; i < graph->gpus; i++)
        sample->gpus[i] = (struct gpu_shares){1, 1, 1, 1, -1, 0};
    for (int64_t i = 0; i < graph->nics; i++)
        sample->nics[i] = 1;
}

static int32_t variant_find(struct layout_graph *graph, int32_t nics, int64_t domain_hosts)
{
    for (int32_t i = 0; i < graph->variant_count; i++)
        if (graph->variants[i].nics == nics && graph->variants[i].domain_hosts == domain_hosts)
            return i;
    graph->variants[graph->variant_count] =
        (struct host_variant){.nics = nics, .domain_hosts = domain_hosts};
    return graph->variant_count++;
}

static int64_t domain_hosts_of(const struct layout_graph *graph, int64_t host)
{
    const int64_t domain = graph->cluster->domain_hosts;
    if (domain <= 1)
        return 1;
    const int64_t first = host - host % domain;
    return graph->hosts - first < domain ? graph->hosts - first : domain;
}

static void apply_override(const struct layout_graph *graph, const struct override *override,
                           struct host_sample *sample)
{
    for (int64_t i = 0; i < graph->gpus; i++) {
        if (override->gpu >= 0 && override->gpu != i)
            continue;
        struct gpu_shares *gpu = &sample->gpus[i];
        gpu->clock *= override->clock_frac;
        gpu->hbm *= override->hbm_frac;
        gpu->scale_up *= override->scale_up_frac;
        gpu->pcie *= override->pcie_frac;
        gpu->type = override->gpu_type >= 0 ? override->gpu_type : gpu->type;
        gpu->load += override->load; /* in any order */
    }
    for (int64_t i = 0; i < graph->nics; i++)
        if (override->nic < 0 || override->nic == i)
            sample->nics[i] *= override->nic_frac;
    sample->step_latency_s += override->step_latency_s;
}

static void apply_overrides(struct arena *arena, struct layout_graph *graph, bool is_folded)
{
    struct host_sample plain;
    plain_shares(arena, graph, &plain);
    for (int32_t i = 0; i < graph->sample_count; i++) {
        struct host_sample *sample = &graph->samples[i];
        sample->gpus = plain.gpus;
        sample->nics = plain.nics;
        sample->variant =
            variant_find(graph, (int32_t)graph->nics, domain_hosts_of(graph, sample->first_host));
    }
    const struct cluster *cluster = graph->cluster;
    for (int64_t i = 0; i < cluster->override_count; i++) {
        const struct override *override = &cluster->overrides[i];
        if (override->host >= graph->hosts)
            continue;
        struct host_sample *sample = sample_of_host(graph, override->host, is_folded);
        if (sample->gpus == plain.gpus)
            plain_shares(arena, graph, sample);
        apply_override(graph, override, sample);
        const struct host_variant *variant = &graph->variants[sample->variant];
        if (override->nics > 0 && override->nics < variant->nics)
            sample->variant = variant_find(graph, (int32_t) override->nics, variant->domain_hosts);
    }
}

static void mix_shape(struct arena *scratch, const struct layout_graph *graph,
                      const struct host_variant *variant, const struct host_shape *shape,
                      uint64_t *signatures)
{
    const struct wire_loads loads = wire_loads_new(scratch, &graph->host);
    struct hop_counts hops = {0};
    host_traffic_add(&graph->host, variant->attached, shape, &loads, &hops);
    for (int32_t i = 0; i < graph->host.wire_count; i++)
        signatures[i] = mix_real(mix_real(signatures[i], loads.per_byte[i]), loads.effort[i]);
}

/* Every shape that tiles the GPUs of a host, in the host and beyond. */
static const uint64_t *find_signatures(struct arena *arena, const struct layout_graph *graph,
                                       const struct host_variant *variant)
{
    struct arena scratch = {0};
    uint64_t *signatures = ARENA_ARRAY(arena, uint64_t, graph->host.wire_count);
    struct host_shape shape = {.pattern = TRAFFIC_RING,
                               .gpu_step = 1,
                               .gpu_count = (int32_t)graph->gpus,
                               .domain_hosts = 1};
    for (int32_t ranks = 1; ranks <= graph->gpus; ranks++) {
        for (int32_t stride = 1; (int64_t)stride * ranks <= graph->gpus; stride++) {
            if (graph->gpus % ((int64_t)stride * ranks) != 0)
                continue;
            shape.ranks = shape.ranks_per_host = ranks;
            shape.gpu_stride = stride;
            shape.is_leaving = false;
            if (ranks > 1)
                mix_shape(&scratch, graph, variant, &shape, signatures);
            shape.is_leaving = true;
            if (graph->hosts > 1 && (ranks > 1 || stride == 1))
                mix_shape(&scratch, graph, variant, &shape, signatures);
        }
    }
    arena_release(&scratch);
    return signatures;
}

/* What a GPU's own traffic to the network loads: unlike ways make unlike ranks. */
static const uint64_t *find_ways(struct arena *arena, const struct layout_graph *graph,
                                 const struct host_variant *variant)
{
    struct arena scratch = {0};
    uint64_t *ways = ARENA_ARRAY(arena, uint64_t, graph->gpus);
    for (int64_t gpu = 0; gpu < graph->gpus && graph->hosts > 1; gpu++) {
        const struct wire_loads loads = wire_loads_new(&scratch, &graph->host);
        struct hop_counts hops = {0};
        const struct host_shape shape = {.pattern = TRAFFIC_RING,
                                         .first_gpu = (int32_t)gpu,
                                         .gpu_step = 1,
                                         .gpu_count = 1,
                                         .ranks_per_host = 1,
                                         .gpu_stride = 1,
                                         .domain_hosts = 1,
                                         .ranks = graph->hosts,
                                         .is_leaving = true};
        host_traffic_add(&graph->host, variant->attached, &shape, &loads, &hops);
        for (int32_t i = 0; i < graph->host.wire_count; i++) {
            if (!(loads.per_byte[i] > 0))
                continue;
            const uint64_t kind = (uint64_t)graph->host.wires[i].kind;
            /* A sum: the order of wires says nothing. */
            ways[gpu] += mix_real(hash64_mix(kind, variant->signatures[i]), loads.per_byte[i]);
        }
    }
    arena_release(&scratch);
    return ways;
}

static void build_variants(struct arena *arena, struct layout_graph *graph)
{
    for (int32_t i = 0; i < graph->variant_count; i++) {
        struct host_variant *variant = &graph->variants[i];
        variant->attached = host_graph_attach(arena, &graph->host, variant->nics);
        bool *has_nic = ARENA_ARRAY(arena, bool, graph->nics + 1);
        for (int64_t gpu = 0; gpu < graph->gpus; gpu++)
            for (int64_t nic = 0; nic < graph->nics; nic++)
                has_nic[nic] |= variant->attached[gpu * graph->nics + nic];
        variant->has_nic = has_nic;
        if (graph->loose_count == 0)
            continue;
        variant->signatures = find_signatures(arena, graph, variant);
        variant->ways = find_ways(arena, graph, variant);
    }
}

double sample_wire_capacity(const struct layout_graph *graph, int32_t sample, int32_t wire)
{
    const struct wire *of = &graph->host.wires[wire];
    const struct host_sample *host = &graph->samples[sample];
    switch (of->kind) {
    case RESOURCE_SCALE_UP_OUT:
    case RESOURCE_SCALE_UP_IN:
        return of->capacity * host->gpus[of->gpu].scale_up;
    case RESOURCE_SCALE_UP_LINK: {
        const double a = host->gpus[of->gpu].scale_up;
        const double b = host->gpus[of->peer].scale_up;
        return of->capacity * (a < b ? a : b);
    }
    case RESOURCE_PCIE_UP:
    case RESOURCE_PCIE_DOWN:
        return of->gpu >= 0 ? of->capacity * host->gpus[of->gpu].pcie : of->capacity;
    case RESOURCE_NIC_OUT:
    case RESOURCE_NIC_IN:
        return of->capacity * host->nics[of->nic];
    case RESOURCE_SM:
    case RESOURCE_HBM:
    case RESOURCE_COPY_ENGINE:
    case RESOURCE_SOCKET:
    case RESOURCE_HOST_MEMORY:
    case RESOURCE_FABRIC_UP:
    case RESOURCE_FABRIC_DOWN:
    case RESOURCE_KIND_COUNT:
        break;
    }
    return of->capacity;
}

static int compare_seeds(const void *left, const void *right)
{
    const struct seed *a = left;
    const struct seed *b = right;
    if (a->kind != b->kind)
        return a->kind - b->kind;
    return (a->value > b->value) - (a->value < b->value);
}

static uint64_t wire_value(const struct layout_graph *graph, int32_t sample, int32_t wire)
{
    const struct host_variant *variant = &graph->variants[graph->samples[sample].variant];
    const uint64_t hash =
        mix_real((uint64_t)graph->host.wires[wire].kind, sample_wire_capacity(graph, sample, wire));
    return variant->signatures != NULL ? hash64_mix(hash, variant->signatures[wire]) : hash;
}

/* By name: two overrides may name the same kind of GPU. */
static uint64_t gpu_value(const struct cluster *cluster, int32_t type)
{
    uint64_t hash = 1;
    const char *name = type < 0 ? "" : cluster->other_gpus[type].name;
    for (; *name != '\0'; name++)
        hash = hash64_mix(hash, (unsigned char)*name);
    return hash;
}

static void seed_sample(const struct layout_graph *graph, int32_t sample, struct seed *seeds)
{
    const struct host_sample *host = &graph->samples[sample];
    const struct host_variant *variant = &graph->variants[host->variant];
    int32_t node = graph_node(graph, sample, 0);
    seeds[0] = (struct seed){node, KIND_HOST,
                             mix_real((uint64_t)variant->domain_hosts, host->step_latency_s)};
    struct seed *gpus = &seeds[1];
    struct seed *nics = &gpus[graph->gpus];
    struct seed *wires = &nics[graph->nics];
    for (int64_t i = 0; i < graph->gpus; i++) {
        const struct gpu_shares *gpu = &host->gpus[i];
        gpus[i] = (struct seed){
            ++node, KIND_GPU,
            mix_real(mix_real(gpu_value(graph->cluster, gpu->type) + gpu->load, gpu->clock),
                     gpu->hbm)};
    }
    for (int64_t i = 0; i < graph->nics; i++)
        nics[i] = (struct seed){++node, KIND_NIC, variant->has_nic[i] ? 1 : 0};
    for (int32_t i = 0; i < graph->loose_count; i++)
        wires[i] = (struct seed){++node, KIND_WIRE, wire_value(graph, sample, graph->loose[i])};
    for (int32_t i = 0; i < graph->host.wire_count; i++) { /* ports speak for their owners */
        const struct wire *wire = &graph->host.wires[i];
        if (wire->kind == RESOURCE_SCALE_UP_LINK)
            continue;
        if (wire->gpu >= 0)
            gpus[wire->gpu].value = hash64_mix(gpus[wire->gpu].value, wire_value(graph, sample, i));
        else if (wire->nic >= 0 && variant->has_nic[wire->nic])
            nics[wire->nic].value = hash64_mix(nics[wire->nic].value, wire_value(graph, sample, i));
    }
}

static void seed_colours(struct arena *scratch, const struct layout_graph *graph)
{
    const int32_t count = graph_node(graph, graph->sample_count, 0);
    struct seed *seeds = ARENA_ARRAY(scratch, struct seed, count);
    for (int32_t i = 0; i < graph->sample_count; i++)
        seed_sample(graph, i, &seeds[graph_node(graph, i, 0)]);
    qsort(seeds, (size_t)count, sizeof(*seeds), compare_seeds);
    int32_t colour = 0;
    for (int32_t i = 0; i < count; i++) {
        if (i > 0 && compare_seeds(&seeds[i - 1], &seeds[i]) != 0)
            colour++;
        graph->colours[seeds[i].node] = colour;
    }
}

struct edges {
    struct partition_edge *items;
    int32_t count, capacity;
};

static void add_edge(struct arena *scratch, struct edges *edges, int32_t a, int32_t b, int label)
{
    *ARENA_PUSH(scratch, edges) = (struct partition_edge){a, b, label};
}

/* The shared wires that a GPU's copies to and from the host pass. */
static void connect_copies(struct arena *scratch, const struct layout_graph *graph, int32_t sample,
                           int64_t gpu, const struct wire_loads *loads, struct edges *edges)
{
    memset(loads->per_byte, 0, sizeof(double) * (size_t)graph->host.wire_count);
    host_graph_copy(&graph->host, (int32_t)gpu, 1, true, loads);
    host_graph_copy(&graph->host, (int32_t)gpu, 1, false, loads);
    for (int32_t i = 0; i < graph->loose_count; i++)
        if (loads->per_byte[graph->loose[i]] > 0)
            add_edge(scratch, edges, graph_node(graph, sample, 1 + gpu),
                     graph_node(graph, sample, 1 + graph->gpus + graph->nics + i), EDGE_GPU_WIRE);
}

static void connect_host(struct arena *scratch, const struct layout_graph *graph, int32_t sample,
                         const struct wire_loads *loads, struct edges *edges)
{
    const struct host_variant *variant = &graph->variants[graph->samples[sample].variant];
    const int32_t host = graph_node(graph, sample, 0);
    const int64_t first_nic = 1 + graph->gpus;
    for (int64_t gpu = 0; gpu < graph->gpus; gpu++) {
        const int32_t gpu_node = graph_node(graph, sample, 1 + gpu);
        add_edge(scratch, edges, host, gpu_node, EDGE_HOST_GPU);
        for (int64_t nic = 0; nic < graph->nics; nic++)
            if (variant->attached[gpu * graph->nics + nic])
                add_edge(scratch, edges, gpu_node, graph_node(graph, sample, first_nic + nic),
                         EDGE_GPU_NIC);
        connect_copies(scratch, graph, sample, gpu, loads, edges);
    }
    for (int64_t nic = 0; nic < graph->nics; nic++)
        if (variant->has_nic[nic])
            add_edge(scratch, edges, host, graph_node(graph, sample, first_nic + nic),
                     EDGE_HOST_NIC);
    for (int32_t i = 0; i < graph->loose_count; i++)
        add_edge(scratch, edges, host, graph_node(graph, sample, first_nic + graph->nics + i),
                 EDGE_HOST_WIRE);
}

static void refine_colours(struct layout_graph *graph)
{
    struct arena scratch = {0};
    struct edges edges = {0};
    const struct wire_loads loads = wire_loads_new(&scratch, &graph->host);
    seed_colours(&scratch, graph);
    for (int32_t i = 0; i < graph->sample_count; i++)
        connect_host(&scratch, graph, i, &loads, &edges);
    graph->colour_count = partition_refine(&scratch, graph_node(graph, graph->sample_count, 0),
                                           edges.items, edges.count, graph->colours);
    arena_release(&scratch);
}

/* Whether two NICs of a host are one GPU's alone and alike. */
static bool is_twin(const struct layout_graph *graph, int32_t sample, int64_t a, int64_t b)
{
    const struct host_sample *host = &graph->samples[sample];
    const bool *attached = graph->variants[host->variant].attached;
    if (host->nics[a] < host->nics[b] || host->nics[a] > host->nics[b] || graph->host.nic_up >= 0)
        return false;
    int32_t owners = 0;
    for (int64_t gpu = 0; gpu < graph->gpus; gpu++) {
        const bool has_a = attached[gpu * graph->nics + a];
        const bool has_b = attached[gpu * graph->nics + b];
        if (has_a != has_b)
            return false;
        owners += has_a ? 1 : 0;
    }
    return owners == 1;
}

/* Every node its own colour, but NICs of one GPU alone are one resource with several instances. */
static void distinct_colours(struct layout_graph *graph)
{
    const int32_t count = graph_node(graph, graph->sample_count, 0);
    for (int32_t i = 0; i < count; i++)
        graph->colours[i] = i;
    graph->colour_count = count;
    for (int32_t sample = 0; sample < graph->sample_count; sample++) {
        for (int64_t nic = 1; nic < graph->nics; nic++)
            if (is_twin(graph, sample, nic - 1, nic))
                graph->colours[graph_node(graph, sample, 1 + graph->gpus + nic)] =
                    graph->colours[graph_node(graph, sample, graph->gpus + nic)];
    }
}

static void list_loose(struct arena *arena, struct layout_graph *graph)
{
    graph->loose = ARENA_ARRAY(arena, int32_t, graph->host.wire_count);
    for (int32_t i = 0; i < graph->host.wire_count; i++) {
        const struct wire *wire = &graph->host.wires[i];
        const bool is_own_socket =
            wire->kind == RESOURCE_SOCKET &&
            (i - graph->host.socket) % (graph->cluster->tree.numa_count + 1) == 0;
        if ((wire->peer >= 0 || (wire->gpu < 0 && wire->nic < 0)) && !is_own_socket)
            graph->loose[graph->loose_count++] = i;
    }
}

void layout_graph_build(struct arena *arena, const struct cluster *cluster, int64_t hosts,
                        int64_t gpus_per_host, bool is_folded, struct layout_graph *graph)
{
    *graph = (struct layout_graph){.cluster = cluster, .hosts = hosts, .gpus = gpus_per_host};
    host_graph_build(arena, cluster, hosts, gpus_per_host, &graph->host);
    graph->nics = graph->host.nics;
    list_loose(arena, graph);
    if (is_folded)
        samples_folded(arena, graph);
    else
        samples_unfolded(arena, graph);
    graph->variants = ARENA_ARRAY(arena, struct host_variant, 2 * (cluster->override_count + 1));
    apply_overrides(arena, graph, is_folded);
    build_variants(arena, graph);
    graph->colours = ARENA_ARRAY(arena, int32_t, graph_node(graph, graph->sample_count, 0));
    if (is_folded)
        refine_colours(graph);
    else
        distinct_colours(graph);
}
