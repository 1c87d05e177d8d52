/* schedule/ddp_fields.c: the YAML table `ddp:`. Names and defaults are PyTorch's. */
#include "schedule/policy.h"

static const struct field ddp_fields[] = {
    {.key = "bucket_cap_mb",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct ddp_config, bucket_cap_mb),
     .default_text = "25",
     .min = 1,
     .max = 1 << 20,
     .help = "MiB at which a bucket of gradients is full; the first one is full at 1 MiB"},
    {.key = "gradient_as_bucket_view",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct ddp_config, gradient_as_bucket_view),
     .default_text = "false",
     .help = "gradients are views of the buckets, not copies beside them"},
    {.key = "find_unused_parameters",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct ddp_config, find_unused_parameters),
     .default_text = "false",
     .help = "walk the graph before each backward, and agree on what was used"},
    {.key = "static_graph",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct ddp_config, static_graph),
     .default_text = "false",
     .help = "the graph never changes: find_unused_parameters walks it in the first step only"},
    {.key = "no_sync",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct ddp_config, no_sync),
     .default_text = "false",
     .help = "microbatches before the last run under no_sync(): gradients are reduced once a step"},
    {0}};

const struct field_table ddp_table = {.name = "ddp",
                                      .help = "DistributedDataParallel, with 'fsdp.api: ddp'",
                                      .fields = ddp_fields,
                                      .struct_bytes = sizeof(struct ddp_config)};
