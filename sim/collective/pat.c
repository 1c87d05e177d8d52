/* collective/pat.c: see pat.h. */
#include "collective/pat.h"

#include <math.h>

#include "collective/tree.h"

struct way pat_way(const struct scene *scene, enum protocol protocol)
{
    const struct collective_library *library = scene->library;
    const bool is_gather =
        scene->op == COLLECTIVE_ALL_GATHER || scene->op == COLLECTIVE_REDUCE_SCATTER;
    if (!is_gather || scene->per_host > 1 || protocol != PROTOCOL_SIMPLE ||
        !(library->pat_efficiency > 0))
        return (struct way){0};
    const double n = (double)scene->ranks;
    const int64_t levels = tree_levels(scene->hosts);
    struct offer offer = {.algorithm = ALGORITHM_PAT,
                          .protocol = protocol,
                          .rounds = levels,
                          .base_s = scene_base_s(scene, protocol),
                          .latency_s = (double)levels * scene_level_s(scene, protocol) /
                                           library->pat_overlap +
                                       n * library->pat_rank_latency_s,
                          .bytes = scene->bytes * (n - 1) / n,
                          .channels = scene_channels(scene)};
    const struct haul haul = {.traffic = scene->ring,
                              .in_host = 1,
                              .network = 1,
                              .in_host_share = library->pat_efficiency,
                              .network_share = library->pat_efficiency};
    offer_haul(scene, &offer, &haul);
    return way_of(&offer);
}
