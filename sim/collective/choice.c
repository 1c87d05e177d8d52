/* collective/choice.c: see choice.h. */
#include "collective/choice.h"

#include <stddef.h>

#include "collective/exchange.h"
#include "collective/nvls.h"
#include "collective/pat.h"
#include "collective/ring.h"
#include "collective/tree.h"

typedef struct way way_maker(const struct scene *scene, enum protocol protocol);

static const struct {
    enum collective_algorithm algorithm;
    way_maker *make;
    bool is_automatic; /* nvls_way is NVLS or NVLSTree by the hosts: tried once */
} algorithms[] = {
    {ALGORITHM_RING, ring_way, true}, {ALGORITHM_TREE, tree_way, true},
    {ALGORITHM_NVLS, nvls_way, true}, {ALGORITHM_NVLS_TREE, nvls_way, false},
    {ALGORITHM_PAT, pat_way, true},   {ALGORITHM_TWO_LEVEL_RING, two_level_ring_way, false}};

static void try_protocols(const struct scene *scene, way_maker *make, struct way *best)
{
    for (int protocol = 0; protocol < PROTOCOL_COUNT; protocol++) {
        if (!scene_has_protocol(scene, (enum protocol)protocol))
            continue;
        const struct way way = make(scene, (enum protocol)protocol);
        if (way.count > 0 && (best->count == 0 || way.time_s < best->time_s))
            *best = way;
    }
}

static bool is_exchange(enum collective_op op)
{
    return op == COLLECTIVE_ALL_TO_ALL || op == COLLECTIVE_SEND_RECV;
}

static bool is_wanted(const struct scene *scene, size_t i)
{
    const enum collective_algorithm wanted = scene->cluster->algorithm;
    if (scene->op == COLLECTIVE_BROADCAST)
        return false;
    if (algorithms[i].algorithm == ALGORITHM_TWO_LEVEL_RING &&
        (scene->hosts == 1 || scene->per_host == 1))
        return false;
    return wanted == ALGORITHM_AUTO ? algorithms[i].is_automatic
                                    : wanted == algorithms[i].algorithm;
}

struct way choose_way(const struct scene *scene)
{
    struct way best = {0};
    if (is_exchange(scene->op)) {
        try_protocols(scene, exchange_way, &best);
    } else {
        for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
            if (is_wanted(scene, i))
                try_protocols(scene, algorithms[i].make, &best);
        if (best.count == 0)
            try_protocols(scene, ring_way, &best);
    }
    if (best.count == 0) /* a protocol was asked for that a link does not carry */
        best = is_exchange(scene->op) ? exchange_way(scene, PROTOCOL_SIMPLE)
                                      : ring_way(scene, PROTOCOL_SIMPLE);
    return best;
}
