/* cluster/cluster_fields.c: the fields of cluster files. */
#include <stddef.h>

#include "cluster/fields_private.h"

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

static const struct choice algorithms[] = {
    {"auto", ALGORITHM_AUTO, "the fastest that the library has; without a library, ring"},
    {"ring", ALGORITHM_RING, "one ring through all GPUs, in the host, then to the next"},
    {"tree", ALGORITHM_TREE, "all-reduce: a chain in each host, two trees across hosts"},
    {"nvls", ALGORITHM_NVLS, "all-reduce in the switch of one host"},
    {"nvlstree", ALGORITHM_NVLS_TREE, "all-reduce: in the switches, trees across hosts"},
    {"pat", ALGORITHM_PAT, "all-gather, reduce-scatter: trees, one GPU a host"},
    {"two_level_ring", ALGORITHM_TWO_LEVEL_RING, "a ring in each host and rings across hosts"},
    {0}};

static const struct choice protocols[] = {
    {"auto", PROTOCOL_AUTO, "the fastest that all links can carry"},
    {"ll", PROTOCOL_LL, "four bytes of flag with four of data: short messages"},
    {"ll128", PROTOCOL_LL128, "eight bytes of flag with 120 of data"},
    {"simple", PROTOCOL_SIMPLE, "flags apart from the data: long messages"},
    {0}};

static const struct choice channel_choices[] = {{"auto", -1, "by the links and the library"}, {0}};

static const struct field collectives_fields[] = {
    {.key = "library",
     .kind = FIELD_REF,
     .offset = offsetof(struct collectives_config, library),
     .table = &library_table,
     .folder = "topologies/libraries",
     .help = "which library runs them; absent: plain rings"},
    {.key = "algorithm",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct collectives_config, algorithm),
     .default_text = "auto",
     .choices = algorithms,
     .help = "as NCCL_ALGO; collectives that it does not know stay on rings"},
    {.key = "protocol",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct collectives_config, protocol),
     .default_text = "auto",
     .choices = protocols,
     .help = "as NCCL_PROTO"},
    {.key = "base",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct collectives_config, base_s),
     .min = 0,
     .max = 1,
     .help = "of one collective, before its first step; absent: the library's, or none"},
    {.key = "channels_one_host",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct collectives_config, channels_one_host),
     .default_text = "auto",
     .min = 0,
     .max = 1024,
     .choices = channel_choices,
     .help = "SMs that a collective inside one host holds"},
    {.key = "channels",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct collectives_config, channels),
     .default_text = "auto",
     .min = 0,
     .max = 1024,
     .choices = channel_choices,
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
static void collectives_check(struct config *config, const char *path, void *bound)
{
    const struct collectives_config *collectives = bound;
    const bool needs_library = collectives->algorithm != ALGORITHM_AUTO &&
                               collectives->algorithm != ALGORITHM_RING &&
                               collectives->algorithm != ALGORITHM_TWO_LEVEL_RING;
    if (collectives->library.library.name != NULL)
        return;
    if (needs_library)
        config_error(config, arena_printf(config->arena, "%s.algorithm", path),
                     "library: nccl, or algorithm: ring or two_level_ring",
                     "this algorithm needs 'library'");
    if (collectives->protocol == PROTOCOL_LL || collectives->protocol == PROTOCOL_LL128)
        config_error(config, arena_printf(config->arena, "%s.protocol", path), "library: nccl",
                     "this protocol needs 'library'");
}

static const struct field_table collectives_table = {.name = "collectives",
                                                     .help = "how collectives are run",
                                                     .fields = collectives_fields,
                                                     .struct_bytes =
                                                         sizeof(struct collectives_config),
                                                     .check = collectives_check};

#define FIELD_STORAGE(name, field, explains)                                                       \
    {                                                                                              \
        .key = (name), .kind = FIELD_QUANTITY, .dimension = DIM_BANDWIDTH,                         \
        .offset = offsetof(struct storage, field), .min = 1, .max = 1e15, .help = (explains)       \
    }
static const struct field storage_fields[] = {
    FIELD_STORAGE("read", read, "of one host"),
    FIELD_STORAGE("write", write, "of one host"),
    FIELD_STORAGE("shared_read", shared_read, "of all hosts together: a shared file system"),
    FIELD_STORAGE("shared_write", shared_write, "of all hosts together"),
    {0}};

static const struct field_table storage_table = {
    .name = "storage",
    .help = "what data is read from and checkpoints are written to",
    .fields = storage_fields,
    .struct_bytes = sizeof(struct storage)};

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
        if (overrides[i].nic >= cluster->host.nics.count)
            config_error(config, arena_printf(config->arena, "%s.nic", at), NULL,
                         "NIC %lld, but a host has %lld (counted from 0)",
                         (long long)overrides[i].nic, (long long)cluster->host.nics.count);
        if (overrides[i].nics > cluster->host.nics.count)
            config_error(config, arena_printf(config->arena, "%s.nics", at), NULL,
                         "%lld NICs, but a host has %lld", (long long)overrides[i].nics,
                         (long long)cluster->host.nics.count);
    }
}

static const struct field cluster_fields[] = {
    FIELD_VERSION(struct cluster_config),
    FIELD_NAME(struct cluster_config),
    FIELD_SUMMARY(struct cluster_config),
    {.key = "source",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct cluster_config, source),
     .help = "where what hangs where comes from"},
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
     .table = &fabric_table,
     .help = "the network between hosts"},
    {.key = "collectives",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct cluster_config, collectives),
     .is_required = true,
     .table = &collectives_table,
     .help = "how collectives are run"},
    {.key = "storage",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct cluster_config, storage),
     .table = &storage_table,
     .help = "bandwidth of storage, for train.checkpoint and train.data_loader"},
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
