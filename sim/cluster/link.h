/*
 * cluster/link.h: a kind of link, and what collectives reach over it: topologies/links/NAME.yaml.
 *
 * The wire carries `bytes_per_s` in one direction. A ring of protocol Simple reaches
 * `ring_efficiency` of it and takes `step_latency_s` a step; LL and LL128 take their own latency
 * and reach `share` of what Simple reaches (LL sends four bytes of flag with four of data; LL128
 * eight with 120, and needs a link that keeps 128 bytes together).
 *
 * `pipelined_latency_s` is the part of a Simple step that other chunks hide, up to eight of which
 * are under way: it shows only as far as it is longer than half of the bytes' time (ring.h).
 *
 * Congestion: what each doubling of the number of hosts beyond two costs on a network whose hosts
 * send with all their NICs, because equal-cost paths collide. With half of the NICs in use or
 * fewer, two flows fit one path and nothing is lost; in between it grows in proportion.
 *
 *   rate·(1 − rate_frac·log2(hosts/2)·overload),  step + latency_s·log2(hosts/2)·overload
 *   overload = max(0, 2·(NICs in use / NICs) − 1)
 */
#ifndef FSDPSIM_CLUSTER_LINK_H
#define FSDPSIM_CLUSTER_LINK_H

#include <stdint.h>

enum protocol { PROTOCOL_LL, PROTOCOL_LL128, PROTOCOL_SIMPLE, PROTOCOL_COUNT, PROTOCOL_AUTO };
const char *protocol_name(enum protocol protocol); /* "ll128" */

struct link_protocol {
    double step_latency_s;
    double share; /* of the rate of Simple; 0: cannot be used */
};

struct congestion {
    double rate_frac, latency_s; /* of rings */
    double tree_frac;            /* of the rate of trees, from the second doubling on */
};

struct link {
    const char *name;
    double bytes_per_s;     /* one direction, raw; scale-up: per GPU; NIC: per NIC */
    double step_latency_s;  /* one ring step over it, software included */
    double ring_efficiency; /* share of raw that a large ring collective reaches */
    double copy_efficiency; /* share of raw that is payload: what a DMA copy reaches */
    struct link_protocol ll, ll128;
    double pipelined_latency_s;
    double tree_efficiency; /* over more than two hosts: share of what a ring reaches */
    double nvls_efficiency; /* share of raw that a reduction in the switch reaches; 0: none */
    struct congestion congestion;
    int64_t channels;   /* of a collective inside one host, each holds an SM; 0: not stated */
    const char *source; /* of the bandwidth */
};

double link_step_s(const struct link *link, enum protocol protocol);
/* Of the rate of Simple, 0: the link cannot carry the protocol. */
double link_share(const struct link *link, enum protocol protocol);

#endif
