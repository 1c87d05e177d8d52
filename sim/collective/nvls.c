/* collective/nvls.c: see nvls.h. */
#include "collective/nvls.h"

#include <math.h>

#include "collective/tree.h"

static bool can_run(const struct scene *scene, enum protocol protocol)
{
    const struct collective_library *library = scene->library;
    return scene->op == COLLECTIVE_ALL_REDUCE && !scene->is_average &&
           protocol == PROTOCOL_SIMPLE && library->nvls_latency_s > 0 &&
           scene->per_host >= library->nvls_min_gpus &&
           scene->cluster->scale_up == SCALE_UP_SWITCH &&
           scene->cluster->scale_up_link.nvls_efficiency > 0;
}

struct way nvls_way(const struct scene *scene, enum protocol protocol)
{
    if (!can_run(scene, protocol))
        return (struct way){0};
    const struct collective_library *library = scene->library;
    const double sent = 1 + 1 / (double)scene->per_host;
    const bool is_one_host = scene->hosts == 1;
    const bool is_half = scene->hosts == 2 && library->tree_two_hosts > 0;
    const double levels = (double)tree_levels(scene->hosts);
    struct offer offer = {.algorithm = is_one_host ? ALGORITHM_NVLS : ALGORITHM_NVLS_TREE,
                          .protocol = protocol,
                          .rounds = 2 * (1 + tree_levels(scene->hosts)),
                          .base_s = scene_base_s(scene, protocol),
                          .latency_s = library->nvls_latency_s,
                          .bytes = scene->bytes * sent,
                          .channels = library->nvls_channels};
    const struct haul star = {.traffic = layout_star(scene->layout, &scene->group),
                              .in_host = 1,
                              .in_host_share = scene->cluster->scale_up_link.nvls_efficiency *
                                               (is_one_host ? 1 : library->nvls_tree_efficiency),
                              .is_raw = true};
    offer_haul(scene, &offer, &star);
    if (!is_one_host) {
        const struct haul across = {
            .traffic = scene->ring, .network = (is_half ? 1 : 2) / sent, .network_share = 1};
        offer.latency_s +=
            2 * levels * (library->nvls_level_latency_s + scene_level_s(scene, protocol));
        offer_haul(scene, &offer, &across);
    }
    return way_of(&offer);
}
