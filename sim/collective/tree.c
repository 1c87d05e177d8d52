/* collective/tree.c: see tree.h. */
#include "collective/tree.h"

#include <math.h>

int64_t tree_levels(int64_t hosts)
{
    int64_t levels = 0;
    for (; hosts > 1; hosts /= 2)
        levels++;
    return levels;
}

/* Over many hosts the edges of a tree cross the whole network; those of a ring do not. */
static double net_efficiency(const struct scene *scene)
{
    const struct link *link = &scene->cluster->nic_link;
    if (scene->hosts == 2)
        return scene->library->tree_two_hosts > 0 ? scene->library->tree_two_hosts : 1;
    return link->tree_efficiency / (1 + link->congestion.tree_frac * fmax(0, scene->doublings - 1));
}

struct way tree_way(const struct scene *scene, enum protocol protocol)
{
    const struct collective_library *library = scene->library;
    if (scene->op != COLLECTIVE_ALL_REDUCE || scene->ranks < 3 || !(library->tree_efficiency > 0))
        return (struct way){0};
    const double n = (double)scene->ranks;
    const bool is_half = scene->hosts == 2 && library->tree_two_hosts > 0;
    const int64_t levels = tree_levels(scene->hosts);
    struct offer offer = {.algorithm = ALGORITHM_TREE,
                          .protocol = protocol,
                          .rounds = 2 * (scene->per_host - 1 + levels),
                          .base_s = scene_base_s(scene, protocol),
                          .latency_s = 2 * (double)levels * scene_level_s(scene, protocol),
                          .bytes = 2 * scene->bytes * (n - 1) / n,
                          .channels = scene_channels(scene)};
    const double whole = n / (n - 1); /* 2·S of each byte that is sent on average */
    if (scene->inside != NULL) {
        const struct haul chain = {
            .traffic = scene->inside, .in_host = whole, .in_host_share = library->tree_efficiency};
        offer.latency_s += 2 * scene_hops_s(scene, scene->inside, protocol);
        offer_haul(scene, &offer, &chain);
    }
    if (scene->hosts > 1) {
        const struct haul across = {.traffic = scene->ring,
                                    .network = (is_half ? 0.5 : 1) * whole,
                                    .network_share = net_efficiency(scene)};
        offer_haul(scene, &offer, &across);
    }
    return way_of(&offer);
}
