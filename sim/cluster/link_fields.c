/* cluster/link_fields.c: the fields of a link kind. */
#include <stddef.h>

#include "cluster/fields_private.h"

static const struct field link_sources_fields[] = {
    FIELD_REQUIRED_TEXT(struct link_sources, bandwidth, "of the bandwidth"),
    FIELD_REQUIRED_TEXT(struct link_sources, step_latency, "of the step latency"),
    FIELD_REQUIRED_TEXT(struct link_sources, ring_efficiency, "of the ring efficiency"),
    {.key = "copy_efficiency",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct link_sources, copy_efficiency),
     .help = "of the copy efficiency"},
    {0}};
static const struct field_table link_sources_table = {.name = "sources",
                                                      .help = "where each number comes from",
                                                      .fields = link_sources_fields,
                                                      .struct_bytes = sizeof(struct link_sources)};

static const struct field link_fields[] = {FIELD_VERSION(struct link_config),
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
