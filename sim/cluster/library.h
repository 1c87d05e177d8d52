/*
 * cluster/library.h: how a library of collectives (NCCL, RCCL) behaves, whatever the links:
 * topologies/libraries/NAME.yaml. What depends on a kind of link stands in the link (link.h).
 *
 * A cluster names one as `collectives: {library: nccl}`. Without a library collectives are plain
 * rings (of protocol Simple, `collectives.base` before the first step): ideal machines.
 */
#ifndef FSDPSIM_CLUSTER_LIBRARY_H
#define FSDPSIM_CLUSTER_LIBRARY_H

#include <stdint.h>

#include "cluster/link.h"
#include "config/field.h"

struct collective_library {
    const char *name;              /* NULL: none */
    double base_s[PROTOCOL_COUNT]; /* kernel, proxies, the first flags: once a collective */
    double fill_chunks;            /* ring.h: of all-gather, reduce-scatter */
    double fill_chunks_reduced;    /* … of all-reduce */
    double tree_efficiency;        /* tree.h: inside a host; 0: no trees */
    double tree_two_hosts;         /* … over exactly two; 0: their NICs carry what a ring's do */
    double nvls_latency_s;         /* nvls.h; 0: no reduction in switches */
    double nvls_level_latency_s;
    double nvls_tree_efficiency;
    int64_t nvls_min_gpus, nvls_channels;
    double pat_efficiency; /* pat.h; 0: no PAT */
    double pat_overlap, pat_rank_latency_s;
    double exchange_efficiency; /* all-to-all, send and receive: share of what a ring reaches */
    int64_t channels_per_nic;
};

struct library_sources {
    const char *base, *fill, *tree, *nvls, *pat, *exchange, *channels;
};

struct library_config { /* as bound */
    int64_t version;
    struct collective_library library;
    struct library_sources sources;
};
extern const struct field_table library_table;

#endif
