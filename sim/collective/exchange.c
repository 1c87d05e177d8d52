/* collective/exchange.c: see exchange.h. */
#include "collective/exchange.h"

#include <math.h>

/* The slowest single step: all are under way at a time. */
static double slowest_step_s(const struct scene *scene, enum protocol protocol)
{
    const struct cluster *cluster = scene->cluster;
    const struct hop_counts *hops = &scene->ring->hops;
    double step_s = hops->scale_up > 0 ? link_step_s(&cluster->scale_up_link, protocol) : 0;
    if (hops->pcie > 0)
        step_s = fmax(step_s, link_step_s(&cluster->tree.pcie, protocol));
    if (hops->host_memory > 0)
        step_s = fmax(step_s, link_step_s(&cluster->tree.staged, protocol));
    if (scene->hosts > 1)
        step_s = fmax(step_s, link_step_s(&cluster->nic_link, protocol));
    return step_s;
}

/* Along the group one rank of a host sends out of it, through no more NICs than its own. */
static double crowded(const struct scene *scene)
{
    const struct layout *layout = scene->layout;
    const double nics = (double)layout->nics_per_host;
    return nics / fmax(1, nics / (double)layout->gpus_per_host);
}

struct way exchange_way(const struct scene *scene, enum protocol protocol)
{
    const double n = (double)scene->ranks;
    const double efficiency =
        scene->library->name != NULL ? scene->library->exchange_efficiency : 1;
    const bool is_all = scene->op == COLLECTIVE_ALL_TO_ALL;
    struct offer offer = {.algorithm = ALGORITHM_RING,
                          .protocol = protocol,
                          .rounds = 1,
                          .base_s = scene_base_s(scene, protocol),
                          .latency_s = slowest_step_s(scene, protocol),
                          .bytes = is_all ? scene->bytes * (n - 1) / n : scene->bytes,
                          .channels = scene_channels(scene)};
    const struct haul haul = {.traffic = is_all ? layout_all_to_all(scene->layout, &scene->group)
                                                : scene->ring,
                              .in_host = 1,
                              .network = is_all ? 1 : crowded(scene),
                              .in_host_share = efficiency,
                              .network_share = efficiency};
    offer_haul(scene, &offer, &haul);
    if (protocol == PROTOCOL_SIMPLE && scene->hosts > 1)
        offer.latency_s += fmax(0, scene->cluster->nic_link.pipelined_latency_s -
                                       offer.bytes / offer_rate(&offer) / 2);
    return way_of(&offer);
}
