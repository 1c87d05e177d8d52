/* cluster/link_fields.c: the fields of a link kind. */
#include <stddef.h>

#include "cluster/fields_private.h"

#define LINK_SOURCE(member, text)                                                                  \
    {                                                                                              \
        .key = #member, .kind = FIELD_TEXT, .offset = offsetof(struct link_sources, member),       \
        .help = (text)                                                                             \
    }
#define LINK_LATENCY(type, word, member, text)                                                     \
    {                                                                                              \
        .key = (word), .kind = FIELD_QUANTITY, .dimension = DIM_TIME,                              \
        .offset = offsetof(type, member), .default_text = "0 s", .min = 0, .max = 1,               \
        .help = (text)                                                                             \
    }
#define LINK_SHARE(type, word, member, text, standard)                                             \
    {                                                                                              \
        .key = (word), .kind = FIELD_REAL, .offset = offsetof(type, member),                       \
        .default_text = (standard), .min = 0, .max = 1, .help = (text)                             \
    }

static const struct field link_sources_fields[] = {
    FIELD_REQUIRED_TEXT(struct link_sources, bandwidth, "of the bandwidth"),
    FIELD_REQUIRED_TEXT(struct link_sources, step_latency, "of the step latency"),
    FIELD_REQUIRED_TEXT(struct link_sources, ring_efficiency, "of the ring efficiency"),
    {.key = "copy_efficiency",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct link_sources, copy_efficiency),
     .help = "of the copy efficiency"},
    LINK_SOURCE(protocols, "of what protocols LL and LL128 reach"),
    LINK_SOURCE(pipelined_latency, "of the pipelined latency"),
    LINK_SOURCE(tree_efficiency, "of the tree efficiency"),
    LINK_SOURCE(nvls_efficiency, "of the NVLS efficiency"),
    LINK_SOURCE(congestion, "of the congestion"),
    LINK_SOURCE(channels, "of the channels"),
    {0}};
static const struct field_table link_sources_table = {.name = "sources",
                                                      .help = "where each number comes from",
                                                      .fields = link_sources_fields,
                                                      .struct_bytes = sizeof(struct link_sources)};

static const struct field protocol_fields[] = {
    {.key = "step_latency",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct link_protocol, step_latency_s),
     .is_required = true,
     .min = 0,
     .max = 1,
     .help = "one step of a ring by this protocol"},
    {.key = "share",
     .kind = FIELD_REAL,
     .offset = offsetof(struct link_protocol, share),
     .is_required = true,
     .min = 0.001,
     .max = 1,
     .help = "of the rate that protocol Simple reaches over the link"},
    {0}};
static const struct field_table protocol_table = {.name = "protocol",
                                                  .help = "a protocol of NCCL over this link",
                                                  .fields = protocol_fields,
                                                  .struct_bytes = sizeof(struct link_protocol)};

static const struct field congestion_fields[] = {
    LINK_SHARE(struct congestion, "rate", rate_frac, "share of a ring's rate that is lost", "0"),
    LINK_LATENCY(struct congestion, "latency", latency_s, "longer step of a ring"),
    LINK_SHARE(struct congestion, "tree", tree_frac,
               "share of a tree's rate that is lost, from the second doubling on", "0"),
    {0}};
static const struct field_table congestion_table = {
    .name = "congestion",
    .help = "what each doubling of hosts beyond two costs while all NICs send",
    .fields = congestion_fields,
    .struct_bytes = sizeof(struct congestion)};

static const struct field link_fields[] = {
    FIELD_VERSION(struct link_config),
    FIELD_NAME(struct link_config),
    LINK_FIELDS(struct link_config, true),
    {.key = "copy_efficiency",
     .kind = FIELD_REAL,
     .offset = offsetof(struct link_config, copy_efficiency),
     .default_text = "1",
     .min = 0.001,
     .max = 1,
     .help = "share of the raw bandwidth that is payload: "
             "what a DMA copy reaches"},
    {.key = "ll",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct link_config, ll),
     .table = &protocol_table,
     .help = "protocol LL; absent: cannot be used"},
    {.key = "ll128",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct link_config, ll128),
     .table = &protocol_table,
     .help = "protocol LL128; absent: cannot be used"},
    LINK_LATENCY(struct link_config, "pipelined_latency", pipelined_latency_s,
                 "of a step, shown only as far as it is longer than half of the bytes' time"),
    LINK_SHARE(struct link_config, "tree_efficiency", tree_efficiency,
               "of trees over more than two hosts: share of what a ring reaches", "1"),
    LINK_SHARE(struct link_config, "nvls_efficiency", nvls_efficiency,
               "of all-reduces in the switch: share of the raw bandwidth; 0: none", "0"),
    {.key = "congestion",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct link_config, congestion),
     .table = &congestion_table,
     .help = "what each doubling of hosts beyond two costs while all NICs send"},
    {.key = "channels",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct link_config, channels),
     .default_text = "0",
     .min = 0,
     .max = 1024,
     .help = "of a collective inside a host, each holds an SM; 0: not stated"},
    {.key = "sources",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct link_config, sources),
     .is_required = true,
     .table = &link_sources_table,
     .help = "where each number comes from"},
    {0}};
const struct field_table link_table = {.name = "link",
                                       .help = "a link kind: topologies/links/NAME.yaml",
                                       .fields = link_fields,
                                       .struct_bytes = sizeof(struct link_config)};
