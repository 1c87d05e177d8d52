/* cluster/host_fields.c: the fields of a host: GPUs, their links, PCIe, NUMA nodes, NICs. */
#include <stddef.h>

#include "cluster/fields_private.h"

#define FIELD_LINK(type, member, needed, text)                                                     \
    {                                                                                              \
        .key = #member, .kind = FIELD_REF, .offset = offsetof(type, member),                       \
        .is_required = (needed), .table = &link_table, .folder = "topologies/links",               \
        .help = (text)                                                                             \
    }
#define FIELD_INDICES(type, member, text)                                                          \
    {                                                                                              \
        .key = #member, .kind = FIELD_TEXT_LIST, .offset = offsetof(type, member), .help = (text)  \
    }
#define FIELD_LANES(type, member, text)                                                            \
    {                                                                                              \
        .key = #member, .kind = FIELD_COUNT, .offset = offsetof(type, member),                     \
        .default_text = "16", .min = 1, .max = 32, .help = (text)                                  \
    }

static const struct field direct_fields[] = {
    {.key = "gpus",
     .kind = FIELD_TEXT_LIST,
     .offset = offsetof(struct direct_config, gpus),
     .is_required = true,
     .min = 1,
     .max = 2,
     .help = "the two GPUs it joins: [0, 3], or 0-1"},
    {.key = "count",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct direct_config, count),
     .default_text = "1",
     .min = 1,
     .max = 64,
     .help = "links side by side between the two"},
    {.key = "bandwidth",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BANDWIDTH,
     .offset = offsetof(struct direct_config, bytes_per_s),
     .min = 1e3,
     .max = 1e15,
     .help = "raw, one direction, of all of them; absent: count times the port's over the most "
             "links a GPU has"},
    {0}};
static const struct field_table direct_table = {.name = "links",
                                                .help = "a pair of GPUs joined directly",
                                                .fields = direct_fields,
                                                .struct_bytes = sizeof(struct direct_config)};

static const struct choice scale_up_kinds[] = {
    {"nvswitch", SCALE_UP_SWITCH, "every GPU reaches every other at the rate of its port"},
    {"switch", SCALE_UP_SWITCH, "the same, of another make"},
    {"mesh", SCALE_UP_MESH, "each pair is joined directly; a port is shared equally by all peers"},
    {"links", SCALE_UP_LINKS, "the pairs of 'links' are joined directly, others are not"},
    {0}};

static const struct field scale_up_fields[] = {
    {.key = "kind",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct port_config, kind),
     .is_required = true,
     .choices = scale_up_kinds,
     .help = "how the GPUs of a host are joined"},
    FIELD_LINK(struct port_config, link, true, "the link of one GPU: its whole port"),
    LINK_FIELDS(struct port_config, false),
    {.key = "links",
     .kind = FIELD_LIST,
     .offset = offsetof(struct port_config, links),
     .table = &direct_table,
     .help = "of kind 'links': the pairs that are joined"},
    {.key = "domain_hosts",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct port_config, domain_hosts),
     .default_text = "1",
     .min = 1,
     .max = 4096,
     .help = "hosts in a row that one switch joins: 18 trays of 4 GPUs in an NVL72"},
    {0}};
static const struct field_table scale_up_table = {
    .name = "scale_up",
    .help = "links between the GPUs of a host; absent: none but PCIe",
    .fields = scale_up_fields,
    .struct_bytes = sizeof(struct port_config)};

static const struct field nics_fields[] = {
    {.key = "count",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct port_config, count),
     .is_required = true,
     .min = 1,
     .max = 1024,
     .help = "NICs a host, for collectives; where they hang: 'pcie'"},
    FIELD_LINK(struct port_config, link, true, "the link of one NIC"),
    LINK_FIELDS(struct port_config, false),
    {0}};
static const struct field_table nics_table = {.name = "nics",
                                              .help = "network of a host; absent: one host only",
                                              .fields = nics_fields,
                                              .struct_bytes = sizeof(struct port_config)};

/* What hangs somewhere: behind a switch or on root ports. */
#define HANGING_FIELDS                                                                             \
    FIELD_INDICES(struct hanging_config, gpus, "GPUs here, from 0: 0-1, or [0, 2-3]"),             \
        FIELD_INDICES(struct hanging_config, nics, "NICs here, the same way"),                     \
        {.key = "numa",                                                                            \
         .kind = FIELD_COUNT,                                                                      \
         .offset = offsetof(struct hanging_config, numa),                                          \
         .default_text = "0",                                                                      \
         .min = 0,                                                                                 \
         .max = 63,                                                                                \
         .help = "the NUMA node it belongs to, from 0"},                                           \
        FIELD_LANES(struct hanging_config, gpu_lanes, "lanes of each GPU's slot, of 16"),          \
        FIELD_LANES(struct hanging_config, nic_lanes, "lanes of each NIC's slot, of 16")

static const struct field roots_fields[] = {HANGING_FIELDS, {0}};
static const struct field_table roots_table = {.name = "roots",
                                               .help = "GPUs and NICs on root ports of a NUMA node",
                                               .fields = roots_fields,
                                               .struct_bytes = sizeof(struct hanging_config)};

static const struct field switches_fields[] = {
    {.key = "name",
     .kind = FIELD_TEXT,
     .is_line = true,
     .offset = offsetof(struct hanging_config, name),
     .help = "for 'parent' of others and for messages"},
    {.key = "parent",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct hanging_config, parent),
     .help = "name of the switch above it; absent: a root port of its NUMA node"},
    HANGING_FIELDS,
    FIELD_LANES(struct hanging_config, uplink_lanes, "lanes of its uplink"),
    {.key = "uplink_bandwidth",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BANDWIDTH,
     .offset = offsetof(struct hanging_config, uplink_bytes_per_s),
     .min = 1e3,
     .max = 1e15,
     .help = "raw, one direction, of its uplink, where it is not lanes of the PCIe link"},
    {0}};
static const struct field_table switches_table = {.name = "switches",
                                                  .help = "a PCIe switch",
                                                  .fields = switches_fields,
                                                  .struct_bytes = sizeof(struct hanging_config)};

static const struct choice p2p_words[] = {
    {"direct", P2P_DIRECT, "GPUs read and write each other over PCIe"},
    {"switch", P2P_SWITCH, "only below a common PCIe switch, otherwise through host memory"},
    {"host", P2P_HOST, "not allowed (GeForce): every copy goes through host memory"},
    {0}};

static const struct field pcie_fields[] = {
    FIELD_LINK(struct pcie_config, link, true, "the link of a slot of 16 lanes"),
    FIELD_LINK(struct pcie_config, gpu_link, false,
               "the link of a GPU to its root where it is another (NVLink-C2C)"),
    FIELD_LINK(struct pcie_config, staged, false,
               "latency and efficiency of copies through host memory; absent: those of 'link'"),
    {.key = "p2p",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct pcie_config, p2p),
     .default_text = "direct",
     .choices = p2p_words,
     .help = "how GPUs that no scale-up link joins exchange data"},
    {.key = "switches",
     .kind = FIELD_LIST,
     .offset = offsetof(struct pcie_config, switches),
     .table = &switches_table,
     .help = "PCIe switches and what hangs below them"},
    {.key = "roots",
     .kind = FIELD_LIST,
     .offset = offsetof(struct pcie_config, roots),
     .table = &roots_table,
     .help = "GPUs and NICs on root ports; whatever is named nowhere is spread evenly over the "
             "root ports of the NUMA nodes"},
    {0}};
static const struct field_table pcie_table = {
    .name = "pcie",
    .help = "the PCIe tree of a host; absent: PCIe is no bottleneck",
    .fields = pcie_fields,
    .struct_bytes = sizeof(struct pcie_config)};

static void numa_check(struct config *config, const char *path, void *bound)
{
    const struct numa_config *numa = bound;
    if (numa->count > 1 && numa->link.bytes_per_s <= 0)
        config_error(config, arena_printf(config->arena, "%s.count", path),
                     "name the link between sockets: 'link: upi-skylake', …",
                     "%lld NUMA nodes need a 'link' between them", (long long)numa->count);
}

static const struct field numa_fields[] = {
    {.key = "count",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct numa_config, count),
     .default_text = "1",
     .min = 1,
     .max = 64,
     .help = "NUMA nodes; each pair is joined by one 'link'"},
    FIELD_LINK(struct numa_config, link, false, "between two NUMA nodes: QPI, UPI, xGMI"),
    {.key = "memory_bandwidth",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BANDWIDTH,
     .offset = offsetof(struct numa_config, memory_bytes_per_s),
     .min = 1e3,
     .max = 1e15,
     .help = "of the host memory of one NUMA node; absent: no bottleneck"},
    {0}};
static const struct field_table numa_table = {.name = "numa",
                                              .help = "sockets: NUMA nodes and what joins them",
                                              .fields = numa_fields,
                                              .struct_bytes = sizeof(struct numa_config),
                                              .check = numa_check};

static void host_check(struct config *config, const char *path, void *bound)
{
    const struct host_config *host = bound;
    if (host->gpus > 1 && host->scale_up.link.bytes_per_s <= 0 && host->pcie.link.bytes_per_s <= 0)
        config_error(config, arena_printf(config->arena, "%s.gpus", path),
                     "GPUs that reach each other over PCIe alone need 'pcie: {link: …}'",
                     "more than one GPU a host needs 'scale_up' or 'pcie'");
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
     .help = "links between the GPUs of a host; absent: none but PCIe"},
    {.key = "pcie",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct host_config, pcie),
     .table = &pcie_table,
     .help = "the PCIe tree; absent: PCIe is no bottleneck"},
    {.key = "numa",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct host_config, numa),
     .table = &numa_table,
     .help = "sockets: NUMA nodes and what joins them"},
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
    {.key = "cpus",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct host_config, cpus),
     .default_text = "2",
     .min = 1,
     .max = 64,
     .help = "processors of that kind a host"},
    {.key = "cores",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct host_config, cores),
     .min = 1,
     .max = 1 << 16,
     .help = "physical cores that a job may use; absent: those of the processors"},
    {.key = "memory",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BYTES,
     .offset = offsetof(struct host_config, memory_bytes),
     .min = 1e6,
     .max = 1e16,
     .help = "of a host; absent: not known, nothing is compared with it"},
    {.key = "memory_bandwidth",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BANDWIDTH,
     .offset = offsetof(struct host_config, memory_bytes_per_s),
     .min = 1e3,
     .max = 1e15,
     .help = "raw, of a host's memory; absent: that of the processors"},
    FIELD_LINK(struct host_config, copy_link, false,
               "without 'pcie': the link between a GPU and the host's memory, not shared"),
    {.key = "source",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct host_config, source),
     .help = "where cores and memory come from"},
    {0}};
const struct field_table host_table = {.name = "host",
                                       .help = "a host type",
                                       .fields = host_fields,
                                       .struct_bytes = sizeof(struct host_config),
                                       .check = host_check};
