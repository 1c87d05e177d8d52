/* collective/scene.c: see scene.h. */
#include "collective/scene.h"

#include <math.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The group's part of a host, or of the hosts that a scale-up switch joins. */
static const struct traffic *find_inside(const struct scene *scene)
{
    const struct group *group = &scene->group;
    if (scene->hosts == 1)
        return scene->ring;
    const bool is_tiled = group->hosts % scene->hosts == 0;
    const int64_t hosts = is_tiled ? group->hosts / scene->hosts : 1;
    const struct group part = {.ranks = hosts * group->ranks_per_host,
                               .hosts = hosts,
                               .ranks_per_host = group->ranks_per_host,
                               .stride = group->stride};
    return part.ranks > 1 ? layout_ring(scene->layout, &part) : NULL;
}

static const struct link *pcie_link(const struct scene *scene)
{
    const struct cluster *cluster = scene->cluster;
    const struct hop_counts *hops = &scene->ring->hops;
    if (hops->host_memory > 0)
        return &cluster->tree.staged;
    return hops->pcie > 0 ? &cluster->tree.pcie : &cluster->nic_link;
}

struct scene scene_of(const struct layout *layout, const struct group *group, enum collective_op op,
                      double bytes, const struct plan_options *options)
{
    const struct cluster *cluster = layout->cluster;
    struct scene scene = {.layout = layout,
                          .cluster = cluster,
                          .library = &cluster->library,
                          .group = *group,
                          .op = op,
                          .bytes = bytes,
                          .is_average = options->is_average,
                          .is_latency_free = options->is_latency_free,
                          .ranks = group->ranks};
    const int64_t domain = layout->domain_hosts > 1 ? least(layout->domain_hosts, group->hosts) : 1;
    scene.hosts = (group->hosts + domain - 1) / domain;
    scene.per_host = group->ranks / scene.hosts;
    scene.ring = layout_ring(layout, group);
    scene.inside = find_inside(&scene);
    scene.pcie = pcie_link(&scene);
    if (scene.hosts > 2)
        scene.doublings = log2((double)scene.hosts / 2);
    if (scene.hosts > 1 && cluster->nic_count > 0)
        scene.overload =
            fmax(0, 2 * (double)layout->nics_per_host / (double)cluster->nic_count - 1);
    return scene;
}

bool scene_has_protocol(const struct scene *scene, enum protocol protocol)
{
    const struct cluster *cluster = scene->cluster;
    const struct hop_counts *hops = &scene->ring->hops;
    if (cluster->protocol != PROTOCOL_AUTO && cluster->protocol != protocol)
        return false;
    if (scene->library->name == NULL || scene->is_latency_free)
        return protocol == PROTOCOL_SIMPLE;
    return (hops->scale_up <= 0 || link_share(&cluster->scale_up_link, protocol) > 0) &&
           (hops->pcie <= 0 || link_share(&cluster->tree.pcie, protocol) > 0) &&
           (hops->host_memory <= 0 || link_share(&cluster->tree.staged, protocol) > 0) &&
           (scene->hosts == 1 || link_share(&cluster->nic_link, protocol) > 0);
}

double scene_base_s(const struct scene *scene, enum protocol protocol)
{
    return cluster_base_s(scene->cluster, protocol);
}

double scene_hops_s(const struct scene *scene, const struct traffic *ring, enum protocol protocol)
{
    const struct cluster *cluster = scene->cluster;
    const struct hop_counts *hops = &ring->hops;
    const struct link *out = &cluster->nic_link;
    const double jam_s = protocol == PROTOCOL_SIMPLE
                             ? out->congestion.latency_s * scene->doublings * scene->overload
                             : 0;
    return hops->scale_up * link_step_s(&cluster->scale_up_link, protocol) +
           hops->pcie * link_step_s(&cluster->tree.pcie, protocol) +
           hops->host_memory * link_step_s(&cluster->tree.staged, protocol) +
           hops->network * (link_step_s(out, protocol) + jam_s) +
           hops->fabric_switches * cluster->fabric.hop_latency_s + ring->extra_latency_s;
}

double scene_pipelined_s(const struct scene *scene, const struct traffic *ring,
                         enum protocol protocol)
{
    const struct cluster *cluster = scene->cluster;
    const struct hop_counts *hops = &ring->hops;
    if (protocol != PROTOCOL_SIMPLE)
        return 0;
    return hops->scale_up * cluster->scale_up_link.pipelined_latency_s +
           hops->pcie * cluster->tree.pcie.pipelined_latency_s +
           hops->host_memory * cluster->tree.staged.pipelined_latency_s +
           hops->network * cluster->nic_link.pipelined_latency_s;
}

double scene_level_s(const struct scene *scene, enum protocol protocol)
{
    const struct link *out = &scene->cluster->nic_link;
    return link_step_s(out, protocol) +
           (protocol == PROTOCOL_SIMPLE ? out->pipelined_latency_s : 0);
}

int64_t scene_channels(const struct scene *scene)
{
    return cluster_channels(scene->cluster, scene->hosts > 1 ? scene->layout->nics_per_host : 0);
}

static bool is_pcie(enum resource_kind kind)
{
    return kind == RESOURCE_PCIE_UP || kind == RESOURCE_PCIE_DOWN || kind == RESOURCE_SOCKET ||
           kind == RESOURCE_HOST_MEMORY;
}

bool traffic_is_network(const struct traffic *traffic, enum resource_kind kind)
{
    if (is_pcie(kind))
        return !(traffic->hops.pcie > 0 || traffic->hops.host_memory > 0);
    return kind == RESOURCE_NIC_OUT || kind == RESOURCE_NIC_IN || kind == RESOURCE_FABRIC_UP ||
           kind == RESOURCE_FABRIC_DOWN;
}

/* What the protocol reaches over a wire, of what Simple does. */
static double wire_share(const struct scene *scene, enum resource_kind kind, enum protocol protocol)
{
    const bool is_scale_up = kind == RESOURCE_SCALE_UP_OUT || kind == RESOURCE_SCALE_UP_IN ||
                             kind == RESOURCE_SCALE_UP_LINK;
    if (is_scale_up)
        return link_share(&scene->cluster->scale_up_link, protocol);
    return link_share(
        traffic_is_network(scene->ring, kind) ? &scene->cluster->nic_link : scene->pcie, protocol);
}

void offer_haul(const struct scene *scene, struct offer *offer, const struct haul *haul)
{
    if (offer->haul_count == 0)
        offer->host_cap = offer->network_cap = (double)INFINITY;
    offer->hauls[offer->haul_count++] = *haul;
    for (int32_t i = 0; i < haul->traffic->load_count; i++) {
        const struct traffic_load *load = &haul->traffic->loads[i];
        const struct resource *resource = &scene->layout->resources[load->resource];
        const bool is_network = traffic_is_network(haul->traffic, resource->kind);
        const double times = is_network ? haul->network : haul->in_host;
        if (!(times > 0))
            continue;
        double share = is_network ? haul->network_share : haul->in_host_share;
        double effort = load->effort;
        if (haul->is_raw && !is_network)
            effort = load->per_byte;
        else
            share *= wire_share(scene, resource->kind, offer->protocol);
        double *cap = is_network ? &offer->network_cap : &offer->host_cap;
        *cap = fmin(*cap, resource->capacity / (effort * times) * share);
    }
}

double offer_rate(const struct offer *offer)
{
    return fmin(offer->host_cap, offer->network_cap);
}

double offer_time_s(const struct offer *offer)
{
    return offer->base_s + offer->latency_s + offer->bytes / offer_rate(offer);
}

struct way way_of(const struct offer *offer)
{
    struct way way = {0};
    way_add(&way, offer);
    return way;
}

void way_add(struct way *way, const struct offer *offer)
{
    if (way->count == WAY_MAX_OFFERS)
        BUG("a collective of more than %d parts", WAY_MAX_OFFERS);
    way->offers[way->count++] = *offer;
    way->time_s += offer_time_s(offer);
}
