/* schedule/zero_fields.c: the YAML table `zero:`. Names and defaults are DeepSpeed's (those of
   stage 3 without the prefix `stage3_`); sizes are counts of elements. */
#include "schedule/policy.h"

#define ELEMENTS_MAX 1000000000000000.0 /* 1e15 */

static const struct choice overlap_choices[] = {
    {"auto", OVERLAP_AUTO, "true for zero3, false for zero1 and zero2"},
    {"true", OVERLAP_ON, "reduction runs beside backward, on a stream of its own"},
    {"false", OVERLAP_OFF, "backward waits for each bucket"},
    {0}};

static const struct choice offload_choices[] = {
    {"none", OFFLOAD_NONE, NULL}, {"cpu", OFFLOAD_CPU, NULL}, {"nvme", OFFLOAD_NVME, NULL}, {0}};

static const struct choice coordinator_choices[] = {
    {"traced", COORDINATOR_TRACED, "DeepSpeed from 0.6 on: gathers ahead along a trace"},
    {"blocking", COORDINATOR_BLOCKING, "before: the host waits for every gather"},
    {0}};

#define FIELD_ELEMENTS(member, text, words)                                                        \
    {                                                                                              \
        .key = #member, .kind = FIELD_COUNT, .offset = offsetof(struct zero_config, member),       \
        .default_text = (text), .min = 1, .max = ELEMENTS_MAX, .help = (words)                     \
    }
#define FIELD_FLAG(member, text, words)                                                            \
    {                                                                                              \
        .key = #member, .kind = FIELD_BOOL, .offset = offsetof(struct zero_config, member),        \
        .default_text = (text), .help = (words)                                                    \
    }

static const struct field zero_fields[] = {
    {.key = "overlap_comm",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct zero_config, overlap_comm),
     .default_text = "auto",
     .choices = overlap_choices,
     .help = "reduction beside backward"},
    FIELD_FLAG(contiguous_gradients, "true",
               "gradients are copied into one buffer as they are made"),
    FIELD_FLAG(reduce_scatter, "true", "each GPU gets its part; false: all-reduce"),
    FIELD_FLAG(use_multi_rank_bucket_allreduce, "true",
               "zero1, zero2: a bucket with parts of several GPUs is all-reduced in one piece; "
               "false: a reduction to each of them"),
    FIELD_ELEMENTS(reduce_bucket_size, "500000000", "elements reduced at a time"),
    FIELD_FLAG(
        allgather_partitions, "true",
        "zero1, zero2: updated parameters are gathered; false: each GPU broadcasts its part"),
    FIELD_ELEMENTS(allgather_bucket_size, "500000000",
                   "zero1, zero2: updated parameters gathered at a time"),
    FIELD_ELEMENTS(sub_group_size, "1000000000", "zero3: elements the optimizer takes at a time"),
    {.key = "prefetch_bucket_size",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct zero_config, prefetch_bucket_size),
     .default_text = "50000000",
     .min = 0,
     .max = ELEMENTS_MAX,
     .help = "zero3: elements gathered ahead at each module; 0: none"},
    {.key = "param_persistence_threshold",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct zero_config, param_persistence_threshold),
     .default_text = "100000",
     .min = 0,
     .max = ELEMENTS_MAX,
     .help = "zero3: parameters of at most so many elements stay whole on every GPU"},
    {.key = "max_live_parameters",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct zero_config, max_live_parameters),
     .default_text = "1000000000",
     .min = 0,
     .max = ELEMENTS_MAX,
     .help = "zero3: prefetch stops when so many elements are gathered"},
    {.key = "max_reuse_distance",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct zero_config, max_reuse_distance),
     .default_text = "1000000000",
     .min = 0,
     .max = ELEMENTS_MAX,
     .help = "zero3: a parameter used again within so many elements is not released"},
    {.key = "zero_hpz_partition_size",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct zero_config, hpz_partition_size),
     .default_text = "1",
     .min = 1,
     .max = 1 << 20,
     .help = "zero3: GPUs of a second partition of the parameters; 1: none"},
    {.key = "zero_quantized_weights",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct zero_config, quantized_weights),
     .default_text = "false",
     .help = "zero3: parameters are gathered in 8 bits"},
    {.key = "zero_quantized_gradients",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct zero_config, quantized_gradients),
     .default_text = "false",
     .help = "zero3: gradients are reduced in 4 bits"},
    {.key = "offload_optimizer",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct zero_config, offload_optimizer),
     .default_text = "none",
     .choices = offload_choices,
     .help = "where the optimizer and its state are"},
    {.key = "coordinator",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct zero_config, coordinator),
     .default_text = "traced",
     .choices = coordinator_choices,
     .help = "zero3: how parameters are fetched"},
    {.key = "offload_param",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct zero_config, offload_param),
     .default_text = "none",
     .choices = offload_choices,
     .help = "zero3: where the parameters are"},
    {0}};

const struct field_table zero_table = {.name = "zero",
                                       .help = "DeepSpeed's zero_optimization, with 'fsdp.api: "
                                               "zero1', 'zero2' or 'zero3'",
                                       .fields = zero_fields,
                                       .struct_bytes = sizeof(struct zero_config)};
