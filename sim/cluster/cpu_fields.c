/* cluster/cpu_fields.c: the fields of host-cost files. */
#include <stddef.h>

#include "cluster/fields_private.h"

static const struct field cost_fields[] = {
    {.key = "time",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct cost_config, time_s),
     .is_required = true,
     .min = 0,
     .max = 10,
     .help = "of the host thread, each time"},
    FIELD_REQUIRED_TEXT(struct cost_config, source, "where the time comes from"),
    {0}};
static const struct field_table cost_table = {.name = "cost",
                                              .help = "one thing the host thread is asked to do",
                                              .fields = cost_fields,
                                              .struct_bytes = sizeof(struct cost_config)};

#define FIELD_COST(index, word, text)                                                              \
    {                                                                                              \
        .key = (word), .kind = FIELD_STRUCT,                                                       \
        .offset = offsetof(struct cpu_config, cost) + (index) * sizeof(struct cost_config),        \
        .is_required = true, .table = &cost_table, .help = (text)                                  \
    }

static const struct field processor_fields[] = {
    {.key = "cores",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct processor_config, cores),
     .is_required = true,
     .min = 1,
     .max = 4096,
     .help = "physical cores"},
    {.key = "memory_bandwidth",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BANDWIDTH,
     .offset = offsetof(struct processor_config, memory_bytes_per_s),
     .is_required = true,
     .min = 1e3,
     .max = 1e15,
     .help = "raw, of its memory channels"},
    {.key = "core_bandwidth",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BANDWIDTH,
     .offset = offsetof(struct processor_config, core_bytes_per_s),
     .is_required = true,
     .min = 1e3,
     .max = 1e15,
     .help = "operands that one core reads and writes in an element-wise pass"},
    {.key = "fused_share",
     .kind = FIELD_REAL,
     .offset = offsetof(struct processor_config, fused_share),
     .is_required = true,
     .min = 0.001,
     .max = 1,
     .help = "of the memory bandwidth, in an optimizer of one pass"},
    {.key = "passes_share",
     .kind = FIELD_REAL,
     .offset = offsetof(struct processor_config, passes_share),
     .is_required = true,
     .min = 0.001,
     .max = 1,
     .help = "the same, in one of several passes with temporaries"},
    FIELD_REQUIRED_TEXT(struct processor_config, source, "where the figures come from"),
    {0}};
static const struct field_table processor_table = {.name = "processor",
                                                   .help = "one processor, as it computes",
                                                   .fields = processor_fields,
                                                   .struct_bytes = sizeof(struct processor_config)};

static const struct field cpu_fields[] = {
    FIELD_VERSION(struct cpu_config),
    FIELD_NAME(struct cpu_config),
    FIELD_COST(HOST_KERNEL, "kernel", "issue one kernel of an eager operation"),
    FIELD_COST(HOST_KERNEL_COMPILED, "kernel_compiled", "issue one kernel of a compiled region"),
    FIELD_COST(HOST_COMPILED_REGION, "compiled_region", "enter a compiled region: guards"),
    FIELD_COST(HOST_KERNEL_BACKWARD, "kernel_backward", "issue one kernel of an eager backward"),
    FIELD_COST(HOST_COLLECTIVE, "collective", "issue one collective"),
    FIELD_COST(HOST_STREAM_OP, "stream_op", "record an event or make a stream wait for one"),
    FIELD_COST(HOST_HOOK, "hook", "one hook of an FSDP unit"),
    FIELD_COST(HOST_HOOK_PARAM, "hook_param", "the same, for each parameter of the unit"),
    FIELD_COST(HOST_CHECKPOINT, "checkpoint",
               "entering a checkpointed region, in forward and again in backward"),
    FIELD_COST(HOST_LIMITER_WAKE, "limiter_wake",
               "fsdp1: from the event the limiter waits for to the issue of the next all-gather"),
    FIELD_COST(HOST_SYNC_WAKE, "sync_wake",
               "from the end of the kernels that the host waits for to its going on (.item())"),
    FIELD_COST(HOST_FLAT_VIEW, "flat_view",
               "fsdp1: one parameter becomes a view of the gathered flat one"),
    FIELD_COST(HOST_ORIG_PARAM, "orig_param",
               "fsdp1, use_orig_params: what one gather and free of a parameter add"),
    FIELD_COST(HOST_DDP_WALK, "ddp_walk",
               "ddp, find_unused_parameters: one node of the autograd graph"),
    FIELD_COST(HOST_ZERO_GRAD, "zero_grad",
               "zero1 to zero3: the hook of one parameter's gradient, and its part of a bucket"),
    FIELD_COST(HOST_ZERO_MODULE, "zero_module",
               "zero3: the hooks before and behind one submodule, in forward or in backward"),
    FIELD_COST(HOST_ZERO_FETCH, "zero_fetch", "zero3: gather, wait for and release one parameter"),
    FIELD_COST(HOST_STEP, "step", "Python between two steps"),
    FIELD_COST(HOST_OPTIMIZER, "optimizer", "one fused optimizer or clipping call"),
    FIELD_COST(HOST_OPTIMIZER_PARAM, "optimizer_param", "the same, for each parameter tensor"),
    {.key = "processor",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct cpu_config, processor),
     .table = &processor_table,
     .help = "what optimizers on the host (offload) need; absent: none can be simulated"},
    FIELD_COST(HOST_DEVICE_MALLOC, "device_malloc", "one cudaMalloc of the caching allocator"),
    FIELD_COST(HOST_DEVICE_MALLOC_PAGE, "device_malloc_page", "the same, for each 2 MiB of it"),
    FIELD_COST(HOST_DEVICE_FREE, "device_free", "one cudaFree, the GPU being idle"),
    FIELD_COST(HOST_DEVICE_FREE_PAGE, "device_free_page", "the same, for each 2 MiB of it"),
    {0}};
const struct field_table cpu_table = {.name = "cpu",
                                      .help =
                                          "what the host thread costs: topologies/cpus/NAME.yaml",
                                      .fields = cpu_fields,
                                      .struct_bytes = sizeof(struct cpu_config)};
