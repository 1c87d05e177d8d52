/*
 * collective/scene.h: what every algorithm sees of a collective, and what it answers.
 *
 * A scene is a collective over a group: n ranks on k hosts with g each, S bytes, and what a ring
 * over the group, or over its part of one host, loads the wires with (cluster/traffic.h). Hosts
 * that one scale-up switch joins (an NVL72) count as one.
 *
 * An offer is one way to run it (algorithm and protocol): work `bytes` a rank, hauls (a pattern of
 * traffic, and how many times its loads each of these bytes makes inside hosts and between them),
 * latency. Alone it takes
 *
 *   time = base + latency + bytes / min(host_cap, network_cap)
 *   cap = min over wires of capacity / (effort · times) · share
 *
 * where effort counts the share of the link that a ring of protocol Simple reaches, `share` what
 * the protocol and the algorithm reach of that. The caps hold what software loses. Wires keep their
 * raw capacity, so that two collectives at a time can fill one. A way is an offer, or several one
 * after the other.
 */
#ifndef FSDPSIM_COLLECTIVE_SCENE_H
#define FSDPSIM_COLLECTIVE_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/traffic.h"
#include "collective/plan.h"

struct scene {
    const struct layout *layout;
    const struct cluster *cluster;
    const struct collective_library *library;
    struct group group;
    enum collective_op op;
    double bytes; /* S */
    bool is_average, is_latency_free;
    int64_t ranks, hosts, per_host; /* n, k, g */
    const struct traffic *ring;     /* over all */
    const struct traffic *inside;   /* over the g of a host, NULL: alone there */
    const struct link *pcie;        /* whose protocols PCIe wires follow: host_graph.h */
    double doublings;               /* log2(k / 2), 0 for fewer than 3 hosts */
    double overload;                /* link.h: congestion */
};

struct haul {
    const struct traffic *traffic;
    double in_host, network; /* times its loads */
    double in_host_share, network_share;
    bool is_raw; /* in-host share of the raw capacity, not of what a ring reaches */
};

enum { OFFER_MAX_HAULS = 2, WAY_MAX_OFFERS = 4 };

struct offer {
    enum collective_algorithm algorithm;
    enum protocol protocol;
    int64_t rounds;
    double base_s, latency_s;
    double bytes; /* sent by each rank */
    struct haul hauls[OFFER_MAX_HAULS];
    int32_t haul_count;
    double host_cap, network_cap; /* bytes/s alone; INFINITY: nothing passes there */
    int64_t channels;
};

struct way {
    struct offer offers[WAY_MAX_OFFERS];
    int32_t count; /* 0: this algorithm cannot run it */
    double time_s;
};

struct scene scene_of(const struct layout *layout, const struct group *group, enum collective_op op,
                      double bytes, const struct plan_options *options);

/* Whether every link that the group uses carries the protocol. */
bool scene_has_protocol(const struct scene *scene, enum protocol protocol);
double scene_base_s(const struct scene *scene, enum protocol protocol);
/* All hops of a ring, one after the other; pipelined: only what other chunks can hide. */
double scene_hops_s(const struct scene *scene, const struct traffic *ring, enum protocol protocol);
double scene_pipelined_s(const struct scene *scene, const struct traffic *ring,
                         enum protocol protocol);
/* One step between hosts, and what of it other chunks can hide. */
double scene_level_s(const struct scene *scene, enum protocol protocol);
/* SMs held. */
int64_t scene_channels(const struct scene *scene);

/* … and the PCIe wires on the way to a NIC, where no hop between GPUs passes PCIe. */
bool traffic_is_network(const struct traffic *traffic, enum resource_kind kind);

/* Adds a haul and lowers the caps by it. */
void offer_haul(const struct scene *scene, struct offer *offer, const struct haul *haul);
double offer_rate(const struct offer *offer);
double offer_time_s(const struct offer *offer);
/* A way of one offer. */
struct way way_of(const struct offer *offer);
void way_add(struct way *way, const struct offer *offer);

#endif
