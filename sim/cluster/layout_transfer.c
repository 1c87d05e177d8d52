/* cluster/layout_transfer.c: what one byte from one rank to another loads. */
#include <math.h>

#include "cluster/layout_private.h"

struct hauler {
    const struct layout *unfolded;
    double *per_byte, *effort; /* by resource */
};

static int32_t sample_of(const struct layout_graph *graph, int64_t host)
{
    int32_t sample = 0;
    while (graph->samples[sample].first_host != host)
        sample++;
    return sample;
}

static void take_wires(const struct hauler *hauler, int64_t host, const struct wire_loads *loads)
{
    const struct layout_parts *parts = hauler->unfolded->parts;
    const int32_t wires = parts->graph->host.wire_count;
    const int32_t *from = &parts->wire_resources[(ptrdiff_t)sample_of(parts->graph, host) * wires];
    for (int32_t i = 0; i < wires; i++) {
        if (from[i] < 0 || !(loads->per_byte[i] > 0))
            continue;
        hauler->per_byte[from[i]] += loads->per_byte[i];
        hauler->effort[from[i]] += loads->effort[i];
    }
}

static void add_in_host(struct arena *scratch, const struct hauler *hauler, int64_t from,
                        int64_t to, struct hop_counts *hops)
{
    const struct layout_graph *graph = hauler->unfolded->parts->graph;
    const struct wire_loads loads = wire_loads_new(scratch, &graph->host);
    host_graph_hop(&graph->host, (int32_t)(from % graph->gpus), (int32_t)(to % graph->gpus), 1,
                   &loads, hops);
    take_wires(hauler, from / graph->gpus, &loads);
}

/* To another host below the same scale-up switch: out of one port, into the other. */
static void add_in_domain(struct arena *scratch, const struct hauler *hauler, int64_t rank,
                          bool is_out)
{
    const struct layout_graph *graph = hauler->unfolded->parts->graph;
    const struct wire_loads loads = wire_loads_new(scratch, &graph->host);
    const int64_t port =
        (is_out ? graph->host.scale_up_out : graph->host.scale_up_in) + rank % graph->gpus;
    loads.per_byte[port] = 1;
    loads.effort[port] = 1 / graph->cluster->scale_up_link.ring_efficiency;
    take_wires(hauler, rank / graph->gpus, &loads);
}

/* Through the NICs of the rank's GPU in equal parts. */
static void add_network(struct arena *scratch, const struct hauler *hauler, int64_t rank,
                        bool is_out)
{
    const struct layout_graph *graph = hauler->unfolded->parts->graph;
    const int64_t host = rank / graph->gpus;
    const int32_t gpu = (int32_t)(rank % graph->gpus);
    const struct host_variant *variant =
        &graph->variants[graph->samples[sample_of(graph, host)].variant];
    const bool *own = &variant->attached[(ptrdiff_t)gpu * graph->host.nics];
    const struct wire_loads loads = wire_loads_new(scratch, &graph->host);
    double count = 0;
    for (int32_t nic = 0; nic < variant->nics; nic++)
        count += own[nic] ? 1 : 0;
    for (int32_t nic = 0; nic < variant->nics; nic++) {
        if (own[nic])
            host_graph_network(&graph->host, gpu, nic, 1 / count, is_out, &loads);
    }
    take_wires(hauler, host, &loads);
}

/* A ring of two hosts: up from one leaf, down to the other. */
static void add_fabric(struct arena *scratch, const struct hauler *hauler, int64_t from, int64_t to,
                       struct hop_counts *hops)
{
    struct layout_parts parts = *hauler->unfolded->parts;
    parts.first_host = from < to ? from : to;
    parts.host_step = from < to ? to - from : from - to;
    struct layout pair = *hauler->unfolded;
    pair.parts = &parts;
    pair.hosts = pair.ranks = 2;
    pair.gpus_per_host = 1;
    const struct group group = {.ranks = 2, .hosts = 2, .ranks_per_host = 1};
    const struct cluster *cluster = pair.cluster;
    struct fabric_load *loads =
        ARENA_ARRAY(scratch, struct fabric_load, cluster->fabric.level_count + 1);
    const int32_t count = fabric_traffic(&pair, &group, TRAFFIC_RING, loads, hops);
    for (int32_t i = 0; i < count; i++) {
        for (int32_t way = 0; way < 2; way++) {
            const double bytes = way == 0 ? loads[i].up : loads[i].down;
            hauler->per_byte[loads[i].resource + way] += bytes;
            hauler->effort[loads[i].resource + way] += bytes / cluster->nic_link.ring_efficiency;
        }
    }
}

static void list_loads(struct arena *arena, const struct hauler *hauler, struct traffic *traffic)
{
    int32_t count = 0;
    for (int32_t i = 0; i < hauler->unfolded->resource_count; i++)
        count += hauler->per_byte[i] > 0 ? 1 : 0;
    traffic->loads = ARENA_ARRAY(arena, struct traffic_load, count);
    for (int32_t i = 0; i < hauler->unfolded->resource_count; i++) {
        if (hauler->per_byte[i] > 0)
            traffic->loads[traffic->load_count++] =
                (struct traffic_load){i, hauler->per_byte[i], hauler->effort[i]};
    }
}

void layout_transfer(struct arena *arena, const struct layout *unfolded, int64_t from, int64_t to,
                     struct traffic *traffic)
{
    struct arena scratch = {0};
    const struct hauler hauler = {unfolded, ARENA_ARRAY(&scratch, double, unfolded->resource_count),
                                  ARENA_ARRAY(&scratch, double, unfolded->resource_count)};
    const int64_t gpus = unfolded->gpus_per_host, domain = unfolded->cluster->domain_hosts;
    const int64_t a = from / gpus, b = to / gpus;
    *traffic = (struct traffic){0};
    if (a == b) {
        add_in_host(&scratch, &hauler, from, to, &traffic->hops);
    } else if (domain > 1 && a / domain == b / domain) {
        traffic->hops.scale_up = 1;
        add_in_domain(&scratch, &hauler, from, true);
        add_in_domain(&scratch, &hauler, to, false);
    } else {
        traffic->hops.network = 1;
        add_network(&scratch, &hauler, from, true);
        add_network(&scratch, &hauler, to, false);
        add_fabric(&scratch, &hauler, a, b, &traffic->hops);
        traffic->extra_latency_s = fmax(
            unfolded->parts->graph->samples[sample_of(unfolded->parts->graph, a)].step_latency_s,
            unfolded->parts->graph->samples[sample_of(unfolded->parts->graph, b)].step_latency_s);
    }
    list_loads(arena, &hauler, traffic);
    arena_release(&scratch);
}
