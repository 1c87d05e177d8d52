/* collective/ring.c: see ring.h. */
#include "collective/ring.h"

#include <math.h>

struct lap {
    const struct traffic *ring;
    double passes, steps; /* steps of all passes */
    double bytes, fill;
};

static struct offer lap_offer(const struct scene *scene, const struct lap *lap,
                              enum protocol protocol)
{
    const struct link *out = &scene->cluster->nic_link;
    const double filled = lap->steps / (lap->steps + lap->fill);
    const double jam =
        protocol == PROTOCOL_SIMPLE
            ? 1 / (1 + out->congestion.rate_frac * scene->doublings * scene->overload)
            : 1;
    struct offer offer = {.algorithm = ALGORITHM_RING,
                          .protocol = protocol,
                          .rounds = (int64_t)lap->steps,
                          .base_s = scene_base_s(scene, protocol),
                          .latency_s = lap->passes * scene_hops_s(scene, lap->ring, protocol),
                          .bytes = lap->bytes,
                          .channels = scene_channels(scene)};
    const struct haul haul = {.traffic = lap->ring,
                              .in_host = 1,
                              .network = 1,
                              .in_host_share = filled,
                              .network_share = filled * jam};
    offer_haul(scene, &offer, &haul);
    const double hidden_s = offer.bytes / offer_rate(&offer) / 2;
    offer.latency_s +=
        fmax(0, lap->passes * scene_pipelined_s(scene, lap->ring, protocol) - hidden_s);
    return offer;
}

struct way ring_way(const struct scene *scene, enum protocol protocol)
{
    const bool is_reduced = scene->op == COLLECTIVE_ALL_REDUCE;
    const double passes = is_reduced ? 2 : 1;
    const double n = (double)scene->ranks;
    const double sent = scene->op == COLLECTIVE_BROADCAST ? 1 : (n - 1) / n;
    const struct lap lap = {.ring = scene->ring,
                            .passes = passes,
                            .steps = passes * (n - 1),
                            .bytes = passes * scene->bytes * sent,
                            .fill = is_reduced ? scene->library->fill_chunks_reduced
                                               : scene->library->fill_chunks};
    const struct offer offer = lap_offer(scene, &lap, protocol);
    return way_of(&offer);
}

static void add_lap(struct way *way, const struct scene *scene, const struct group *group,
                    double bytes, enum protocol protocol)
{
    const double n = (double)group->ranks;
    const struct lap lap = {.ring = layout_ring(scene->layout, group),
                            .passes = 1,
                            .steps = n - 1,
                            .bytes = bytes * (n - 1) / n,
                            .fill = scene->library->fill_chunks};
    struct offer offer = lap_offer(scene, &lap, protocol);
    offer.algorithm = ALGORITHM_TWO_LEVEL_RING;
    if (way->count > 0) /* one kernel: one base */
        offer.base_s = 0;
    way_add(way, &offer);
}

struct way two_level_ring_way(const struct scene *scene, enum protocol protocol)
{
    const int64_t g = scene->group.ranks_per_host;
    const int64_t stride = group_stride(&scene->group);
    const struct group inside = {.ranks = g, .hosts = 1, .ranks_per_host = g, .stride = stride};
    const struct group across = {.ranks = scene->group.hosts,
                                 .hosts = scene->group.hosts,
                                 .ranks_per_host = 1,
                                 .stride = stride * g};
    struct way way = {0};
    if (scene->op != COLLECTIVE_ALL_GATHER) {
        add_lap(&way, scene, &inside, scene->bytes, protocol);
        add_lap(&way, scene, &across, scene->bytes / (double)g, protocol);
    }
    if (scene->op != COLLECTIVE_REDUCE_SCATTER) {
        add_lap(&way, scene, &across, scene->bytes / (double)g, protocol);
        add_lap(&way, scene, &inside, scene->bytes, protocol);
    }
    return way;
}
