/* cluster/cluster_fields.c: the fields of cluster, link and host-cost files. */
#include <stddef.h>

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

static const struct field link_sources_fields[] = {
    FIELD_REQUIRED_TEXT(struct link_sources, bandwidth, "of the bandwidth"),
    FIELD_REQUIRED_TEXT(struct link_sources, step_latency, "of the step latency"),
    FIELD_REQUIRED_TEXT(struct link_sources, ring_efficiency, "of the ring efficiency"),
    {0}};
static const struct field_table link_sources_table = {.name = "sources",
                                                      .help = "where each number comes from",
                                                      .fields = link_sources_fields,
                                                      .struct_bytes = sizeof(struct link_sources)};

static const struct field link_fields[] = {FIELD_VERSION(struct link_config),
                                           FIELD_NAME(struct link_config),
                                           LINK_FIELDS(struct link_config, true),
                                           {.key = "sources",
                                            .kind = FIELD_STRUCT,
                                            .offset = offsetof(struct link_config, sources),
                                            .is_required = true,
                                            .table = &link_sources_table,
                                            .help = "where each number comes from"},
                                           {0}};
static const struct field_table link_table = {.name = "link",
                                              .help = "a link kind: topologies/links/NAME.yaml",
                                              .fields = link_fields,
                                              .struct_bytes = sizeof(struct link_config)};

static const struct choice scale_up_kinds[] = {
    {"nvswitch", SCALE_UP_SWITCH, "every GPU reaches every other at the rate of its port"},
    {"switch", SCALE_UP_SWITCH, "the same, of another make"},
    {0}};

static const struct field scale_up_fields[] = {{.key = "kind",
                                                .kind = FIELD_ENUM,
                                                .offset = offsetof(struct port_config, kind),
                                                .is_required = true,
                                                .choices = scale_up_kinds,
                                                .help = "how the GPUs of a host are joined"},
                                               {.key = "link",
                                                .kind = FIELD_REF,
                                                .offset = offsetof(struct port_config, link),
                                                .is_required = true,
                                                .table = &link_table,
                                                .folder = "topologies/links",
                                                .help = "the link of one GPU"},
                                               LINK_FIELDS(struct port_config, false),
                                               {0}};
static const struct field_table scale_up_table = {
    .name = "scale_up",
    .help = "links between the GPUs of a host; absent: one GPU a host",
    .fields = scale_up_fields,
    .struct_bytes = sizeof(struct port_config)};

static const struct field nics_fields[] = {{.key = "count",
                                            .kind = FIELD_COUNT,
                                            .offset = offsetof(struct port_config, count),
                                            .is_required = true,
                                            .min = 1,
                                            .max = 1024,
                                            .help = "NICs a host, for collectives"},
                                           {.key = "link",
                                            .kind = FIELD_REF,
                                            .offset = offsetof(struct port_config, link),
                                            .is_required = true,
                                            .table = &link_table,
                                            .folder = "topologies/links",
                                            .help = "the link of one NIC"},
                                           LINK_FIELDS(struct port_config, false),
                                           {0}};
static const struct field_table nics_table = {.name = "nics",
                                              .help = "network of a host; absent: one host only",
                                              .fields = nics_fields,
                                              .struct_bytes = sizeof(struct port_config)};

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
    FIELD_COST(HOST_FLAT_VIEW, "flat_view",
               "fsdp1: one parameter becomes a view of the gathered flat one"),
    FIELD_COST(HOST_ORIG_PARAM, "orig_param",
               "fsdp1, use_orig_params: what one gather and free of a parameter add"),
    FIELD_COST(HOST_STEP, "step", "Python between two steps"),
    FIELD_COST(HOST_OPTIMIZER, "optimizer", "one fused optimizer or clipping call"),
    FIELD_COST(HOST_OPTIMIZER_PARAM, "optimizer_param", "the same, for each parameter tensor"),
    {0}};
static const struct field_table cpu_table = {
    .name = "cpu",
    .help = "what the host thread costs: topologies/cpus/NAME.yaml",
    .fields = cpu_fields,
    .struct_bytes = sizeof(struct cpu_config)};

static void host_check(struct config *config, const char *path, void *bound)
{
    const struct host_config *host = bound;
    if (host->gpus > 1 && host->scale_up.link.bytes_per_s <= 0)
        config_error(config, arena_printf(config->arena, "%s.gpus", path),
                     "a PCIe switch is 'scale_up: {kind: switch, link: …}'",
                     "more than one GPU a host needs 'scale_up'");
}

static const struct field host_fields[] = {
    {.key = "gpu",
     .kind = FIELD_REF,
     .offset = offsetof(struct host_config, gpu),
     .is_required = true,
     .table = &gpu_table,
     .folder = "topologies/gpus",
     .help = "every GPU of the host"},
    {.key = "gpus",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct host_config, gpus),
     .is_required = true,
     .min = 1,
     .max = 1024,
     .help = "GPUs a host"},
    {.key = "scale_up",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct host_config, scale_up),
     .table = &scale_up_table,
     .help = "links between the GPUs of a host; absent: one GPU a host"},
    {.key = "nics",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct host_config, nics),
     .table = &nics_table,
     .help = "network of a host; absent: one host only"},
    {.key = "cpu",
     .kind = FIELD_REF,
     .offset = offsetof(struct host_config, cpu),
     .is_required = true,
     .table = &cpu_table,
     .folder = "topologies/cpus",
     .help = "what the host thread costs"},
    {0}};
static const struct field_table host_table = {.name = "host",
                                              .help = "a host type",
                                              .fields = host_fields,
                                              .struct_bytes = sizeof(struct host_config),
                                              .check = host_check};

static void hosts_check(struct config *config, const char *path, void *bound)
{
    const struct hosts_config *hosts = bound;
    if (hosts->default_count > hosts->max_count)
        config_error(config, arena_printf(config->arena, "%s.default", path), NULL,
                     "default of %lld hosts is above the maximum of %lld",
                     (long long)hosts->default_count, (long long)hosts->max_count);
}

static const struct field hosts_fields[] = {{.key = "default",
                                             .kind = FIELD_COUNT,
                                             .offset = offsetof(struct hosts_config, default_count),
                                             .default_text = "1",
                                             .min = 1,
                                             .max = 1e9,
                                             .help = "hosts when a config does not say"},
                                            {.key = "max",
                                             .kind = FIELD_COUNT,
                                             .offset = offsetof(struct hosts_config, max_count),
                                             .is_required = true,
                                             .min = 1,
                                             .max = 1e9,
                                             .help = "most hosts that exist"},
                                            {0}};
static const struct field_table hosts_table = {.name = "hosts",
                                               .help = "how many hosts there are",
                                               .fields = hosts_fields,
                                               .struct_bytes = sizeof(struct hosts_config),
                                               .check = hosts_check};

static void fabric_check(struct config *config, const char *path, void *bound)
{
    const struct fabric_config *fabric = bound;
    if (fabric->oversubscription > 1 || fabric->oversubscription < 1)
        config_error(config, arena_printf(config->arena, "%s.oversubscription", path),
                     "give the NICs the bandwidth that is left under full load",
                     "oversubscription other than 1 is not built yet");
}

static const struct field fabric_fields[] = {
    {.key = "oversubscription",
     .kind = FIELD_REAL,
     .offset = offsetof(struct fabric_config, oversubscription),
     .default_text = "1",
     .min = 0,
     .max = 1000,
     .help = "host bandwidth over uplink bandwidth; 1: non-blocking, the only one built"},
    {0}};
static const struct field_table fabric_table = {.name = "fabric",
                                                .help = "the network between hosts",
                                                .fields = fabric_fields,
                                                .struct_bytes = sizeof(struct fabric_config),
                                                .check = fabric_check};

static const struct choice algorithms[] = {
    {"ring", ALGORITHM_RING, "one ring through all GPUs, in the host, then to the next"},
    {"two_level_ring", ALGORITHM_TWO_LEVEL_RING, "a ring in each host and rings across hosts"},
    {0}};

static const struct field collectives_fields[] = {
    {.key = "algorithm",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct collectives_config, algorithm),
     .default_text = "ring",
     .choices = algorithms,
     .help = "of all-gather, reduce-scatter, all-reduce"},
    {.key = "base",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct collectives_config, base_s),
     .is_required = true,
     .min = 0,
     .max = 1,
     .help = "of one collective, before its first step"},
    {.key = "channels_one_host",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct collectives_config, channels_one_host),
     .is_required = true,
     .min = 0,
     .max = 1024,
     .help = "SMs that a collective inside one host holds"},
    {.key = "channels",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct collectives_config, channels),
     .is_required = true,
     .min = 0,
     .max = 1024,
     .help = "SMs that a collective across hosts holds"},
    {.key = "hbm_bytes_per_bus_byte",
     .kind = FIELD_REAL,
     .offset = offsetof(struct collectives_config, hbm_bytes_per_bus_byte),
     .is_required = true,
     .min = 0,
     .max = 100,
     .help = "memory traffic of a GPU for each byte it sends"},
    {.key = "kernel_loss_per_hbm_share",
     .kind = FIELD_REAL,
     .offset = offsetof(struct collectives_config, kernel_loss_per_hbm_share),
     .default_text = "0",
     .min = 0,
     .max = 10,
     .help =
         "of a kernel's time, lost to shared caches for each share of the memory bandwidth that "
         "a transfer uses; the SMs it lacks come on top"},
    {.key = "comm_slowdown",
     .kind = FIELD_REAL,
     .offset = offsetof(struct collectives_config, comm_slowdown),
     .default_text = "1",
     .min = 1,
     .max = 10,
     .help = "time of a transfer between the GPUs of a host while kernels run there; 1: none"},
    {.key = "calibration",
     .kind = FIELD_REF,
     .offset = offsetof(struct collectives_config, calibration),
     .table = &calibration_config_table,
     .folder = "topologies/calibrations",
     .help = "measured collectives, over the model: 'fsdpsim calibrate nccl' writes them"},
    FIELD_REQUIRED_TEXT(struct collectives_config, source, "where the numbers come from"),
    {0}};
static const struct field_table collectives_table = {.name = "collectives",
                                                     .help = "how collectives are run",
                                                     .fields = collectives_fields,
                                                     .struct_bytes =
                                                         sizeof(struct collectives_config)};

static void override_check(struct config *config, const char *path, void *bound)
{
    const struct override_config *override = bound;
    if (override->gpu >= 0 && override->nic_frac < 1)
        config_error(config, arena_printf(config->arena, "%s.nic_frac", path),
                     "leave 'gpu' out, or give it in an override of its own",
                     "'nic_frac' is of a whole host, but 'gpu' names one");
}

static const struct choice gpu_choices[] = {{"all", -1, "every GPU of the host"}, {0}};

static const struct field override_fields[] = {
    {.key = "host",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct override_config, host),
     .is_required = true,
     .min = 0,
     .max = 1e9,
     .help = "which host, from 0"},
    {.key = "gpu",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct override_config, gpu),
     .default_text = "all",
     .min = 0,
     .max = 1023,
     .choices = gpu_choices,
     .help = "which GPU of it, from 0"},
    {.key = "clock_frac",
     .kind = FIELD_REAL,
     .offset = offsetof(struct override_config, clock_frac),
     .default_text = "1",
     .min = 0.001,
     .max = 1,
     .help = "compute-bound kernels run at this share of their rate"},
    {.key = "nic_frac",
     .kind = FIELD_REAL,
     .offset = offsetof(struct override_config, nic_frac),
     .default_text = "1",
     .min = 0.001,
     .max = 1,
     .help = "the host's NICs run at this share of their rate"},
    {0}};
static const struct field_table override_table = {.name = "override",
                                                  .help = "a GPU or a host that differs",
                                                  .fields = override_fields,
                                                  .struct_bytes = sizeof(struct override_config),
                                                  .check = override_check};

static void cluster_check(struct config *config, const char *path, void *bound)
{
    const struct cluster_config *cluster = bound;
    const struct override_config *overrides = cluster->overrides.items;
    const char *dot = path[0] ? "." : "";
    for (int64_t i = 0; i < cluster->overrides.count; i++) {
        const char *at =
            arena_printf(config->arena, "%s%soverrides[%lld]", path, dot, (long long)i);
        if (overrides[i].host >= cluster->hosts.max_count)
            config_error(config, arena_printf(config->arena, "%s.host", at), NULL,
                         "host %lld, but there are at most %lld hosts (counted from 0)",
                         (long long)overrides[i].host, (long long)cluster->hosts.max_count);
        if (overrides[i].gpu >= cluster->host.gpus)
            config_error(config, arena_printf(config->arena, "%s.gpu", at), NULL,
                         "GPU %lld, but a host has %lld (counted from 0)",
                         (long long)overrides[i].gpu, (long long)cluster->host.gpus);
    }
}

static const struct field cluster_fields[] = {
    FIELD_VERSION(struct cluster_config),
    FIELD_NAME(struct cluster_config),
    {.key = "summary",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct cluster_config, summary),
     .help = "one line for lists"},
    {.key = "host",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct cluster_config, host),
     .is_required = true,
     .table = &host_table,
     .help = "the host type"},
    {.key = "hosts",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct cluster_config, hosts),
     .is_required = true,
     .table = &hosts_table,
     .help = "how many hosts there are"},
    {.key = "fabric",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct cluster_config, fabric),
     .is_required = true,
     .table = &fabric_table,
     .help = "the network between hosts"},
    {.key = "collectives",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct cluster_config, collectives),
     .is_required = true,
     .table = &collectives_table,
     .help = "how collectives are run"},
    {.key = "overrides",
     .kind = FIELD_LIST,
     .offset = offsetof(struct cluster_config, overrides),
     .table = &override_table,
     .help = "GPUs and hosts that differ"},
    {0}};

const struct field_table cluster_table = {.name = "cluster",
                                          .help = "a cluster: topologies/NAME.yaml",
                                          .fields = cluster_fields,
                                          .struct_bytes = sizeof(struct cluster_config),
                                          .check = cluster_check};

const struct field_table *const cluster_tables[] = {&cluster_table, NULL};
