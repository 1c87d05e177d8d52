/*
 * tests/unit/cluster/test_traffic.c: routes and ring loads of machines people own, by hand.
 *
 * The hand: draw the host, send one byte from every rank to the next, and count on every wire.
 */
#include <string.h>

#include "check.h"
#include "cluster/traffic.h"
#include "cluster_fixture.h"
#include "cluster_tests.h"

enum { MAX_CHECKS = 10 };

struct expected_load {
    enum resource_kind kind;
    const char *part;   /* of the resource's name; NULL: any */
    double least, most; /* per byte, over the resources of that kind that carry anything */
    double rate;        /* bytes/s of the slowest of them alone; 0: not checked */
};

static void check_load(const struct layout *layout, const struct traffic *traffic,
                       const struct expected_load *expected)
{
    double least = 1e300;
    double most = 0;
    double rate = 1e300;
    for (int32_t i = 0; i < traffic->load_count; i++) {
        const struct traffic_load *load = &traffic->loads[i];
        const struct resource *resource = &layout->resources[load->resource];
        if (resource->kind != expected->kind ||
            (expected->part != NULL && strstr(resource->name, expected->part) == NULL))
            continue;
        least = load->per_byte < least ? load->per_byte : least;
        most = load->per_byte > most ? load->per_byte : most;
        const double alone = resource->capacity / load->effort;
        rate = alone < rate ? alone : rate;
    }
    check_context("%s %s", resource_kind_name(expected->kind),
                  expected->part != NULL ? expected->part : "");
    CHECK_NEAR(most, expected->most, 1e-12);
    if (most > 0)
        CHECK_NEAR(least, expected->least, 1e-12);
    if (expected->rate > 0)
        CHECK_NEAR(rate, expected->rate, 1e-9);
}

static void check_hops(const struct hop_counts *hops, const struct hop_counts *expected)
{
    check_context("hops");
    CHECK_NEAR(hops->scale_up, expected->scale_up, 1e-12);
    CHECK_NEAR(hops->pcie, expected->pcie, 1e-12);
    CHECK_NEAR(hops->host_memory, expected->host_memory, 1e-12);
    CHECK_NEAR(hops->socket, expected->socket, 1e-12);
    CHECK_NEAR(hops->network, expected->network, 1e-12);
    CHECK_NEAR(hops->fabric_switches, expected->fabric_switches, 1e-12);
}

struct machine_row {
    const char *what, *cluster;
    const char *overrides[8];
    int64_t hosts;
    struct group group; /* ranks 0: all */
    struct hop_counts hops;
    struct expected_load loads[MAX_CHECKS];
};

static void check_machine(const struct machine_row *row, bool is_folded)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, row->cluster, row->overrides);
    if (!CHECK_INT(fixture.status, STATUS_OK)) {
        CHECK_TEXT(fixture_messages(&fixture), "");
        fixture_release(&fixture);
        return;
    }
    const struct layout layout = fixture_layout(&fixture, row->hosts, is_folded);
    const struct group group = row->group.ranks > 0 ? row->group : group_whole(&layout);
    const struct traffic *traffic = layout_ring(&layout, &group);
    check_hops(&traffic->hops, &row->hops);
    for (int i = 0; i < MAX_CHECKS && row->loads[i].most > 0; i++)
        check_load(&layout, traffic, &row->loads[i]);
    double found = 0; /* nothing else carries anything */
    for (int32_t i = 0; i < traffic->load_count; i++) {
        const struct resource *resource = &layout.resources[traffic->loads[i].resource];
        bool is_expected = false;
        for (int k = 0; k < MAX_CHECKS && row->loads[k].most > 0; k++)
            is_expected |= row->loads[k].kind == resource->kind;
        found += is_expected ? 0 : 1;
    }
    check_context("%s: other resources", row->what);
    CHECK_NEAR(found, 0, 0);
    fixture_release(&fixture);
}

static void check_machines(const struct machine_row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        printf("%s\n", rows[i].what);
        check_machine(&rows[i], true);
        check_machine(&rows[i], false);
    }
    check_context(NULL);
}

#define CHECK_MACHINES(rows) check_machines((rows), (int)(sizeof(rows) / sizeof((rows)[0])))

/* 25 GB/s a link; nvlink2 reaches 0.93 of 150 GB/s a GPU. */
static const char cube_mesh[] =
    "host.scale_up={kind: links, link: nvlink2, links: ["
    "{gpus: [0, 1]}, {gpus: [0, 2]}, {gpus: [0, 3], count: 2}, {gpus: [0, 4], count: 2},"
    "{gpus: [1, 2], count: 2}, {gpus: [1, 3]}, {gpus: [1, 5], count: 2},"
    "{gpus: [2, 3], count: 2}, {gpus: [2, 6]}, {gpus: [3, 7]},"
    "{gpus: [4, 5]}, {gpus: [4, 6]}, {gpus: [4, 7], count: 2},"
    "{gpus: [5, 6], count: 2}, {gpus: [5, 7]}, {gpus: [6, 7], count: 2}]}";

static void test_direct_links(void)
{
    static const struct machine_row rows[] = {
        {.what = "DGX-1V: two rings of double links and one of single ones, both ways: each single "
                 "link 1/6 of a byte, each double 2/6",
         .cluster = "dgx-1-v100",
         .overrides = {cube_mesh},
         .hosts = 1,
         .hops = {.scale_up = 7},
         .loads = {{RESOURCE_SCALE_UP_LINK, NULL, 1.0 / 6, 2.0 / 6, 139.5e9}}},
        {.what = "DGX-1V, the quads: rings 0-1-2-3 and 0-2-1-3 both ways, so two of the bytes' "
                 "four quarters over 0-3 and 1-2",
         .cluster = "dgx-1-v100",
         .overrides = {cube_mesh},
         .hosts = 1,
         .group = {.ranks = 4, .hosts = 1, .ranks_per_host = 4},
         .hops = {.scale_up = 3},
         .loads = {{RESOURCE_SCALE_UP_LINK, NULL, 1.0 / 4, 1.0 / 2, 0}}},
        {.what = "Polaris: 4 A100, each pair joined: a third of the bytes over each link",
         .cluster = "a100-40gb-4gpu",
         .overrides = {"host.scale_up.kind=mesh", "host.scale_up.ring_efficiency=1"},
         .hosts = 1,
         .hops = {.scale_up = 3},
         .loads = {{RESOURCE_SCALE_UP_LINK, NULL, 1.0 / 3, 1.0 / 3, 300e9}}},
        {.what = "two of the four have one pair's links, 100 GB/s",
         .cluster = "a100-40gb-4gpu",
         .overrides = {"host.scale_up.kind=mesh", "host.scale_up.ring_efficiency=1"},
         .hosts = 1,
         .group = {.ranks = 2, .hosts = 1, .ranks_per_host = 2},
         .hops = {.scale_up = 1},
         .loads = {{RESOURCE_SCALE_UP_LINK, NULL, 1, 1, 100e9}}},
        {.what = "MI300X: 7 peers of 64 GB/s, two hosts: 7/8 of the hops stay, an eighth a NIC",
         .cluster = "mi300x-8gpu",
         .overrides = {"host.pcie=", "host.scale_up.kind=mesh", "host.scale_up.ring_efficiency=1",
                       "host.nics={count: 8, link: ndr400, ring_efficiency: 1}"},
         .hosts = 2,
         .hops = {.scale_up = 14, .network = 1},
         .loads = {{RESOURCE_SCALE_UP_LINK, NULL, 1.0 / 8, 1.0 / 8, 512e9},
                   {RESOURCE_NIC_OUT, NULL, 1.0 / 8, 1.0 / 8, 400e9},
                   {RESOURCE_NIC_IN, NULL, 1.0 / 8, 1.0 / 8, 400e9}}},
    };
    CHECK_MACHINES(rows);
}

/* Cards of 31.5 GB/s without peer to peer: a card reaches 0.165 of its slot, uplinks carry all. */
#define GEFORCE(gpus, tree)                                                                        \
    "host.gpus=" #gpus, "host.scale_up=", "host.nics=",                                            \
        "host.numa={count: 2, link: {name: upi, bandwidth: 20 GB/s, step_latency: 0 s, "           \
        "ring_efficiency: 1, sources: {bandwidth: x, step_latency: x, ring_efficiency: x}}, "      \
        "memory_bandwidth: 100 GB/s}",                                                             \
        "host.pcie={p2p: host, link: pcie4-host, " tree "}"

static const struct machine_row pcie_rows[] = {
    {.what = "two 4090 below one switch: its uplink carries the bytes of both, twice slower",
     .cluster = "rtx-4090-pcie",
     .overrides = {GEFORCE(2, "switches: [{gpus: 0-1}]")},
     .hosts = 1,
     .hops = {.host_memory = 1},
     .loads = {{RESOURCE_PCIE_UP, "GPU", 1, 1, 31.5e9 * 0.165},
               {RESOURCE_PCIE_DOWN, "GPU", 1, 1, 31.5e9 * 0.165},
               {RESOURCE_PCIE_UP, "switch", 2, 2, 31.5e9 / 2},
               {RESOURCE_PCIE_DOWN, "switch", 2, 2, 31.5e9 / 2},
               {RESOURCE_HOST_MEMORY, NULL, 4, 4, 25e9}}},
    {.what = "two 4090 on two sockets",
     .cluster = "rtx-4090-pcie",
     .overrides = {GEFORCE(2, "roots: [{gpus: 0, numa: 0}, {gpus: 1, numa: 1}]")},
     .hosts = 1,
     .hops = {.host_memory = 1, .socket = 1},
     .loads = {{RESOURCE_PCIE_UP, "GPU", 1, 1, 31.5e9 * 0.165},
               {RESOURCE_PCIE_DOWN, "GPU", 1, 1, 31.5e9 * 0.165},
               {RESOURCE_SOCKET, NULL, 1, 1, 20e9},
               {RESOURCE_HOST_MEMORY, NULL, 2, 2, 50e9}}},
    {.what = "four 4090, two below a switch on each socket",
     .cluster = "rtx-4090-pcie",
     .overrides = {GEFORCE(4, "switches: [{gpus: 0-1}, {gpus: 2-3, numa: 1}]")},
     .hosts = 1,
     .hops = {.host_memory = 3, .socket = 1.5},
     .loads = {{RESOURCE_PCIE_UP, "GPU", 1, 1, 31.5e9 * 0.165},
               {RESOURCE_PCIE_DOWN, "GPU", 1, 1, 31.5e9 * 0.165},
               {RESOURCE_PCIE_UP, "switch", 2, 2, 31.5e9 / 2},
               {RESOURCE_PCIE_DOWN, "switch", 2, 2, 31.5e9 / 2},
               {RESOURCE_SOCKET, NULL, 1, 1, 20e9},
               {RESOURCE_HOST_MEMORY, NULL, 4, 4, 25e9}}},
    {.what = "the same with the sockets dealt out: the ring is ordered by nearness, 0-2-1-3",
     .cluster = "rtx-4090-pcie",
     .overrides = {GEFORCE(4, "switches: [{gpus: [0, 2]}, {gpus: [1, 3], numa: 1}]")},
     .hosts = 1,
     .hops = {.host_memory = 3, .socket = 1.5},
     .loads = {{RESOURCE_PCIE_UP, "GPU", 1, 1, 31.5e9 * 0.165},
               {RESOURCE_PCIE_DOWN, "GPU", 1, 1, 31.5e9 * 0.165},
               {RESOURCE_PCIE_UP, "switch", 2, 2, 0},
               {RESOURCE_PCIE_DOWN, "switch", 2, 2, 0},
               {RESOURCE_SOCKET, NULL, 1, 1, 20e9},
               {RESOURCE_HOST_MEMORY, NULL, 4, 4, 25e9}}},
    {.what = "peer to peer below the switches: the uplinks carry what changes the socket",
     .cluster = "rtx-4090-pcie",
     .overrides = {GEFORCE(4, "switches: [{gpus: 0-1}, {gpus: 2-3, numa: 1}]"),
                   "host.pcie.p2p=direct", "host.pcie.link=pcie4"},
     .hosts = 1,
     .hops = {.pcie = 3, .socket = 1.5},
     .loads = {{RESOURCE_PCIE_UP, "GPU", 1, 1, 31.5e9 * 0.8},
               {RESOURCE_PCIE_DOWN, "GPU", 1, 1, 31.5e9 * 0.8},
               {RESOURCE_PCIE_UP, "switch", 1, 1, 31.5e9 * 0.8},
               {RESOURCE_PCIE_DOWN, "switch", 1, 1, 31.5e9 * 0.8},
               {RESOURCE_SOCKET, NULL, 1, 1, 20e9}}},
    {.what = "pairs with bridges: PCIe for every second hop",
     .cluster = "rtx-4090-pcie",
     .overrides = {"host.gpus=4", "host.nics=", "host.pcie={link: pcie4}",
                   "host.scale_up={kind: links, link: nvlink3, "
                   "links: [{gpus: [0, 2]}, {gpus: [1, 3]}]}"},
     .hosts = 1,
     .hops = {.scale_up = 1.5, .pcie = 1.5},
     .loads = {{RESOURCE_SCALE_UP_LINK, NULL, 1, 1, 300e9 * 0.79},
               {RESOURCE_PCIE_UP, NULL, 1, 1, 31.5e9 * 0.8},
               {RESOURCE_PCIE_DOWN, NULL, 1, 1, 31.5e9 * 0.8}}},
    {.what = "DGX A100: two GPUs and two NICs below each switch, four hosts: an eighth of a byte "
             "through each NIC and its slot, nothing up to the sockets",
     .cluster = "dgx-a100",
     .overrides = {"host.numa={count: 2, link: pcie4}",
                   "host.pcie={link: pcie4, switches: [{gpus: 0-1, nics: 0-1}, {gpus: 2-3, "
                   "nics: 2-3}, {gpus: 4-5, nics: 4-5, numa: 1}, {gpus: 6-7, nics: 6-7, numa: "
                   "1}]}"},
     .hosts = 4,
     .hops = {.scale_up = 28, .network = 3},
     .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 7.0 / 8, 7.0 / 8, 300e9 * 0.79 * 8 / 7},
               {RESOURCE_SCALE_UP_IN, NULL, 7.0 / 8, 7.0 / 8, 0},
               {RESOURCE_PCIE_UP, NULL, 1.0 / 8, 1.0 / 8, 0},
               {RESOURCE_PCIE_DOWN, NULL, 1.0 / 8, 1.0 / 8, 0},
               {RESOURCE_NIC_OUT, NULL, 1.0 / 8, 1.0 / 8, 0},
               {RESOURCE_NIC_IN, NULL, 1.0 / 8, 1.0 / 8, 0}}},
    {.what = "a NIC on the other socket is reached through the GPU beside it (PXN)",
     .cluster = "dgx-a100",
     .overrides = {"host.gpus=2", "host.nics={count: 1, link: hdr200}",
                   "host.numa={count: 2, link: pcie4}",
                   "host.pcie={link: pcie4, roots: [{gpus: 0}, {gpus: 1, nics: 0, numa: 1}]}"},
     .hosts = 2,
     .group = {.ranks = 2, .hosts = 2, .ranks_per_host = 1},
     .hops = {.network = 1},
     .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 1, 1, 0},
               {RESOURCE_SCALE_UP_IN, NULL, 1, 1, 0},
               {RESOURCE_PCIE_UP, NULL, 2, 2, 0},
               {RESOURCE_PCIE_DOWN, NULL, 2, 2, 0},
               {RESOURCE_NIC_OUT, NULL, 2, 2, 0},
               {RESOURCE_NIC_IN, NULL, 2, 2, 0}}},
};

static void test_pcie(void)
{
    CHECK_MACHINES(pcie_rows);
}

#define NVL72 "host.gpus=4", "host.nics.count=4", "host.scale_up.domain_hosts=18"
#define LEAVES(placement)                                                                          \
    "host.pcie=", "fabric={hosts_per_leaf: 4, oversubscription: 4, placement: " placement "}",     \
        "host.nics.ring_efficiency=1"
static const struct machine_row fabric_rows[] = {
    {.what = "NVL72: 18 trays of 4 are one domain",
     .cluster = "gb200-nvl72",
     .overrides = {NVL72},
     .hosts = 18,
     .hops = {.scale_up = 71},
     .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 1, 1, 900e9 * 0.78},
               {RESOURCE_SCALE_UP_IN, NULL, 1, 1, 900e9 * 0.78}}},
    {.what = "two of them: left once by 72, through 72 NICs",
     .cluster = "gb200-nvl72",
     .overrides = {NVL72},
     .hosts = 36,
     .hops = {.scale_up = 142, .network = 1},
     .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 71.0 / 72, 71.0 / 72, 0},
               {RESOURCE_SCALE_UP_IN, NULL, 71.0 / 72, 71.0 / 72, 0},
               {RESOURCE_NIC_OUT, NULL, 1.0 / 72, 1.0 / 72, 0},
               {RESOURCE_NIC_IN, NULL, 1.0 / 72, 1.0 / 72, 0}}},
    {.what = "one and a third of them: 24 NICs carry what leaves the smaller",
     .cluster = "gb200-nvl72",
     .overrides = {NVL72},
     .hosts = 24,
     .hops = {.scale_up = 94, .network = 1},
     .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 23.0 / 24, 71.0 / 72, 0},
               {RESOURCE_SCALE_UP_IN, NULL, 23.0 / 24, 71.0 / 72, 0},
               {RESOURCE_NIC_OUT, NULL, 1.0 / 72, 1.0 / 24, 0},
               {RESOURCE_NIC_IN, NULL, 1.0 / 72, 1.0 / 24, 0}}},
    {.what = "4 hosts a leaf, 4:1, packed: a ring leaves each leaf once; the uplinks have the "
             "400 GB/s of one host",
     .cluster = "dgx-h100",
     .overrides = {LEAVES("packed")},
     .hosts = 16,
     .hops = {.scale_up = 112, .network = 15, .fabric_switches = 2 * 4 * 15.0 / 16},
     .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 7.0 / 8, 7.0 / 8, 0},
               {RESOURCE_SCALE_UP_IN, NULL, 7.0 / 8, 7.0 / 8, 0},
               {RESOURCE_NIC_OUT, NULL, 1.0 / 8, 1.0 / 8, 400e9},
               {RESOURCE_NIC_IN, NULL, 1.0 / 8, 1.0 / 8, 400e9},
               {RESOURCE_FABRIC_UP, "leaf", 1, 1, 400e9},
               {RESOURCE_FABRIC_DOWN, "leaf", 1, 1, 400e9}}},
    {.what = "spread: every host's bytes leave its leaf, four times as many",
     .cluster = "dgx-h100",
     .overrides = {LEAVES("spread")},
     .hosts = 16,
     .hops = {.scale_up = 112, .network = 15, .fabric_switches = 2 * 16 * 15.0 / 16},
     .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 7.0 / 8, 7.0 / 8, 0},
               {RESOURCE_SCALE_UP_IN, NULL, 7.0 / 8, 7.0 / 8, 0},
               {RESOURCE_NIC_OUT, NULL, 1.0 / 8, 1.0 / 8, 400e9},
               {RESOURCE_NIC_IN, NULL, 1.0 / 8, 1.0 / 8, 400e9},
               {RESOURCE_FABRIC_UP, "leaf", 4, 4, 100e9},
               {RESOURCE_FABRIC_DOWN, "leaf", 4, 4, 100e9}}},
    {.what = "pods of 8 hosts above, another 2:1: the pod's uplinks have the rate of a host too",
     .cluster = "dgx-h100",
     .overrides = {LEAVES("packed"), "fabric.levels=[{hosts: 8, oversubscription: 2}]"},
     .hosts = 16,
     .hops = {.scale_up = 112, .network = 15, .fabric_switches = (2 * 4 + 2 * 2) * 15.0 / 16},
     .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 7.0 / 8, 7.0 / 8, 0},
               {RESOURCE_SCALE_UP_IN, NULL, 7.0 / 8, 7.0 / 8, 0},
               {RESOURCE_NIC_OUT, NULL, 1.0 / 8, 1.0 / 8, 400e9},
               {RESOURCE_NIC_IN, NULL, 1.0 / 8, 1.0 / 8, 400e9},
               {RESOURCE_FABRIC_UP, NULL, 1, 1, 400e9},
               {RESOURCE_FABRIC_DOWN, NULL, 1, 1, 400e9}}},
    {.what = "one leaf is enough for four hosts",
     .cluster = "dgx-h100",
     .overrides = {LEAVES("packed")},
     .hosts = 4,
     .hops = {.scale_up = 28, .network = 3},
     .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 7.0 / 8, 7.0 / 8, 0},
               {RESOURCE_SCALE_UP_IN, NULL, 7.0 / 8, 7.0 / 8, 0},
               {RESOURCE_NIC_OUT, NULL, 1.0 / 8, 1.0 / 8, 400e9},
               {RESOURCE_NIC_IN, NULL, 1.0 / 8, 1.0 / 8, 400e9}}},
};

static void test_fabric(void)
{
    CHECK_MACHINES(fabric_rows);
}

#define SLOT(name, reach)                                                                          \
    "{name: " name ", bandwidth: 31.5 GB/s, step_latency: 5 us, ring_efficiency: " reach           \
    ", sources: {bandwidth: x, step_latency: x, ring_efficiency: x}}"

#define PLAIN                                                                                      \
    "host.pcie=", "fabric={}", "host.scale_up.ring_efficiency=1", "host.nics.ring_efficiency=1"

/* One part that differs bounds the ring through it. */
static void test_overrides(void)
{
    static const struct machine_row rows[] = {
        {.what = "half of one GPU's NVLinks are down: 225 of 450 GB/s",
         .cluster = "dgx-h100",
         .overrides = {PLAIN, "overrides=[{host: 0, gpu: 5, scale_up_frac: 0.5}]"},
         .hosts = 1,
         .hops = {.scale_up = 7},
         .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 1, 1, 225e9},
                   {RESOURCE_SCALE_UP_IN, NULL, 1, 1, 225e9}}},
        {.what = "one NIC of 16 at half rate: its eighth of the bytes takes twice as long",
         .cluster = "dgx-h100",
         .overrides = {PLAIN, "overrides=[{host: 1, nic: 3, nic_frac: 0.5}]"},
         .hosts = 2,
         .hops = {.scale_up = 14, .network = 1},
         .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 7.0 / 8, 7.0 / 8, 0},
                   {RESOURCE_SCALE_UP_IN, NULL, 7.0 / 8, 7.0 / 8, 0},
                   {RESOURCE_NIC_OUT, NULL, 1.0 / 8, 1.0 / 8, 200e9},
                   {RESOURCE_NIC_IN, NULL, 1.0 / 8, 1.0 / 8, 200e9}}},
        {.what = "a host with two of its eight NICs: a half through each",
         .cluster = "dgx-h100",
         .overrides = {PLAIN, "overrides=[{host: 0, nics: 2}]"},
         .hosts = 2,
         .hops = {.scale_up = 14, .network = 1},
         .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 7.0 / 8, 7.0 / 8, 0},
                   {RESOURCE_SCALE_UP_IN, NULL, 7.0 / 8, 7.0 / 8, 0},
                   {RESOURCE_NIC_OUT, NULL, 1.0 / 8, 1.0 / 2, 100e9},
                   {RESOURCE_NIC_IN, NULL, 1.0 / 8, 1.0 / 2, 100e9}}},
        {.what = "a slot that trained at 4 of 16 lanes carries an eighth: 7.875 of 31.5 GB/s",
         .cluster = "dgx-a100",
         .overrides = {"host.scale_up.ring_efficiency=1", "host.nics.ring_efficiency=1",
                       "host.pcie={link: " SLOT("direct", "1") "}",
                       "overrides=[{host: 0, gpu: 7, pcie_frac: 0.25}]"},
         .hosts = 2,
         .hops = {.scale_up = 14, .network = 1},
         .loads = {{RESOURCE_SCALE_UP_OUT, NULL, 7.0 / 8, 7.0 / 8, 0},
                   {RESOURCE_SCALE_UP_IN, NULL, 7.0 / 8, 7.0 / 8, 0},
                   {RESOURCE_PCIE_UP, NULL, 1.0 / 8, 1.0 / 8, 63e9},
                   {RESOURCE_PCIE_DOWN, NULL, 1.0 / 8, 1.0 / 8, 63e9},
                   {RESOURCE_NIC_OUT, NULL, 1.0 / 8, 1.0 / 8, 200e9},
                   {RESOURCE_NIC_IN, NULL, 1.0 / 8, 1.0 / 8, 200e9}}},
    };
    CHECK_MACHINES(rows);
}

/* A hop more on one host of four is on every way round; of two groups of two, on one. */
static void test_step_latency(void)
{
    static const char *const overrides[] = {"overrides=[{host: 1, step_latency: 5 us}, "
                                            "{host: 2, step_latency: 3 us}]",
                                            NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", overrides);
    const struct layout layout = fixture_layout(&fixture, 4, true);
    const struct group all = group_whole(&layout);
    CHECK_NEAR(layout_ring(&layout, &all)->extra_latency_s, 8e-6, 1e-12);
    const struct group halves = {.ranks = 16, .hosts = 2, .ranks_per_host = 8};
    CHECK_NEAR(layout_ring(&layout, &halves)->extra_latency_s, 5e-6, 1e-12);
    fixture_release(&fixture);
}

/* Two GPUs below a switch of 31.5 GB/s: copies of both share the uplink, 15.75 GB/s each, while a
   ring between them passes below it. */
static void test_copies(void)
{
    static const char *const overrides[] = {
        "host.gpus=4", "host.scale_up=", "host.nics=",
        "host.pcie={link: pcie4, switches: [{gpus: 0-1}, {gpus: 2-3}]}", NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "rtx-4090-pcie", overrides);
    CHECK_INT(fixture.status, STATUS_OK);
    const struct layout layout = fixture_layout(&fixture, 1, true);
    CHECK_INT(layout.class_count, 1);
    const struct expected_load down[] = {{RESOURCE_PCIE_DOWN, "GPU", 1, 1, 0},
                                         {RESOURCE_PCIE_DOWN, "switch", 2, 2, 0},
                                         {RESOURCE_PCIE_UP, NULL, 0, 0, 0}};
    const struct expected_load up[] = {{RESOURCE_PCIE_UP, "GPU", 1, 1, 0},
                                       {RESOURCE_PCIE_UP, "switch", 2, 2, 0},
                                       {RESOURCE_PCIE_DOWN, NULL, 0, 0, 0}};
    for (int i = 0; i < 3; i++) {
        check_load(&layout, layout_copy(&layout, 0, true), &down[i]);
        check_load(&layout, layout_copy(&layout, 0, false), &up[i]);
    }
    const struct group pairs = {.ranks = 2, .hosts = 1, .ranks_per_host = 2};
    const struct expected_load ring = {RESOURCE_PCIE_UP, "switch", 0, 0, 0};
    check_load(&layout, layout_ring(&layout, &pairs), &ring);
    check_context(NULL);
    fixture_release(&fixture);
}

const struct check_case traffic_cases[] = {{"links between GPUs", test_direct_links},
                                           {"PCIe trees", test_pcie},
                                           {"domains, leaves, pods", test_fabric},
                                           {"what differs", test_overrides},
                                           {"one more hop", test_step_latency},
                                           {"copies", test_copies},
                                           {0}};
