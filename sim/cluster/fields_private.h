/* cluster/fields_private.h: rows and tables that the field files of this room share. */
#ifndef FSDPSIM_CLUSTER_FIELDS_PRIVATE_H
#define FSDPSIM_CLUSTER_FIELDS_PRIVATE_H

#include "cluster/cluster_config.h"

#define FIELD_REQUIRED_TEXT(type, member, text)                                                    \
    {                                                                                              \
        .key = #member, .kind = FIELD_TEXT, .offset = offsetof(type, member), .is_required = true, \
        .help = (text)                                                                             \
    }

/* What a link says, and what a port may say in its place. */
#define LINK_FIELDS(type, required)                                                                \
    {.key = "bandwidth",                                                                           \
     .kind = FIELD_QUANTITY,                                                                       \
     .dimension = DIM_BANDWIDTH,                                                                   \
     .offset = offsetof(type, bytes_per_s),                                                        \
     .is_required = (required),                                                                    \
     .min = 1e3,                                                                                   \
     .max = 1e15,                                                                                  \
     .help = "raw, one direction, of one port (a GPU's, a NIC's)"},                                \
        {.key = "step_latency",                                                                    \
         .kind = FIELD_QUANTITY,                                                                   \
         .dimension = DIM_TIME,                                                                    \
         .offset = offsetof(type, step_latency_s),                                                 \
         .is_required = (required),                                                                \
         .min = 0,                                                                                 \
         .max = 1,                                                                                 \
         .help = "one step of a ring over it: software, switches and cables included"},            \
    {                                                                                              \
        .key = "ring_efficiency", .kind = FIELD_REAL, .offset = offsetof(type, ring_efficiency),   \
        .is_required = (required), .min = 0.001, .max = 1,                                         \
        .help = "share of the raw bandwidth that a large ring collective reaches"                  \
    }

extern const struct field_table link_table;
extern const struct field_table cpu_table;
extern const struct field_table host_table;
extern const struct field_table fabric_table;
extern const struct field_table override_table;

#endif
