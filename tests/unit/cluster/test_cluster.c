/* tests/unit/cluster/test_cluster.c: what the shipped files say, and what is refused. */
#include "check.h"
#include "cluster/traffic.h"
#include "cluster_fixture.h"
#include "cluster_tests.h"

/* On one host, two, more than a leaf: ranks alike are one class, and rings have a rate. */
static void check_layouts(struct cluster_fixture *fixture)
{
    static const int64_t sizes[] = {1, 2, 40};
    for (int i = 0; i < 3; i++) {
        if (sizes[i] > fixture->cluster.max_hosts)
            continue;
        const struct layout layout = fixture_layout(fixture, sizes[i], true);
        const struct group all = group_whole(&layout);
        CHECK_TRUE(layout.class_count <= layout.gpus_per_host);
        if (layout.ranks == 1)
            continue;
        const struct traffic *ring = layout_ring(&layout, &all);
        CHECK_TRUE(ring->load_count > 0);
        for (int32_t k = 0; k < ring->load_count; k++) {
            const double capacity = layout.resources[ring->loads[k].resource].capacity;
            CHECK_TRUE(capacity / ring->loads[k].effort > 1e6);
        }
        const struct hop_counts *hops = &ring->hops;
        CHECK_NEAR(hops->scale_up + hops->pcie + hops->host_memory + hops->network,
                   (double)(layout.ranks - 1), 1e-9);
    }
}

static void test_every_shipped_cluster_loads(void)
{
    struct arena arena = {0};
    static const char *const folders[] = {FSDPSIM_SOURCE_DIR, NULL};
    const char *const *names = data_names(&arena, folders, "topologies");
    int count = 0;
    for (; names[count]; count++) {
        check_context("%s", names[count]);
        struct cluster_fixture fixture;
        fixture_init(&fixture, names[count], NULL);
        CHECK_INT(fixture.status, STATUS_OK);
        CHECK_TEXT(fixture_messages(&fixture), "");
        CHECK_TEXT(fixture.cluster.name, names[count]);
        check_layouts(&fixture);
        fixture_release(&fixture);
    }
    check_context(NULL);
    CHECK_TRUE(count >= 80);
    arena_release(&arena);
}

static void test_dgx_h100(void)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", NULL);
    const struct cluster *cluster = &fixture.cluster;
    CHECK_INT(fixture.status, STATUS_OK);
    CHECK_INT(cluster->gpus_per_host, 8);
    CHECK_INT(cluster->gpu.memory_bytes, INT64_C(81559) * 1024 * 1024);
    CHECK_NEAR(cluster->gpu.peak_flop_per_s[DTYPE_BF16], 989.4e12, 1e-12);
    CHECK_NEAR(cluster->scale_up_link.bytes_per_s, 450e9, 1e-12);
    CHECK_NEAR(cluster->nic_link.bytes_per_s, 50e9, 1e-12);
    CHECK_NEAR(cluster->nic_link.ring_efficiency, 0.975, 1e-12);
    CHECK_NEAR(cluster->host_cost_s[HOST_KERNEL_COMPILED], 7e-6, 1e-12);
    CHECK_TEXT(cluster_summary(&fixture.arena, cluster),
               "8 x h100-sxm5-80gb, nvlink4 450 GB/s, 8 x ndr400 50 GB/s, 1 to 4096 hosts");
    fixture_release(&fixture);
}

static void test_port_overrides_link(void)
{
    static const char *const overrides[] = {"host.nics.bandwidth=100Gbps",
                                            "host.nics.step_latency=0us",
                                            "host.scale_up.ring_efficiency=0.7", NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", overrides);
    CHECK_INT(fixture.status, STATUS_OK);
    CHECK_TEXT(fixture_messages(&fixture), "");
    CHECK_NEAR(fixture.cluster.nic_link.bytes_per_s, 12.5e9, 1e-12);
    CHECK_NEAR(fixture.cluster.nic_link.step_latency_s, 0, 0);
    CHECK_NEAR(fixture.cluster.nic_link.ring_efficiency, 0.975, 1e-12);
    CHECK_NEAR(fixture.cluster.scale_up_link.ring_efficiency, 0.7, 1e-12);
    CHECK_NEAR(fixture.cluster.scale_up_link.bytes_per_s, 450e9, 1e-12);
    fixture_release(&fixture);
}

/* The links and the GPUs of `folder`, each put into `key` of a host. */
static void check_parts(const char *folder, const char *key)
{
    struct arena arena = {0};
    static const char *const folders[] = {FSDPSIM_SOURCE_DIR, NULL};
    const char *const *names = data_names(&arena, folders, folder);
    for (int i = 0; names[i]; i++) {
        check_context("%s=%s", key, names[i]);
        const char *const overrides[] = {arena_printf(&arena, "%s=%s", key, names[i]), NULL};
        struct cluster_fixture fixture;
        fixture_init(&fixture, "dgx-h100", overrides);
        CHECK_INT(fixture.status, STATUS_OK);
        CHECK_TEXT(fixture_messages(&fixture), "");
        fixture_release(&fixture);
    }
    check_context(NULL);
    CHECK_TRUE(names[0] != NULL);
    arena_release(&arena);
}

static void test_every_part_loads(void)
{
    check_parts("topologies/gpus", "host.gpu");
    check_parts("topologies/links", "host.nics.link");
    check_parts("topologies/links", "host.scale_up.link");
    check_parts("topologies/cpus", "host.cpu");
}

static void test_other_link_by_name(void)
{
    static const char *const overrides[] = {"host.nics.link=ethernet25", NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", overrides);
    CHECK_INT(fixture.status, STATUS_OK);
    CHECK_TEXT(fixture.cluster.nic_link.name, "ethernet25");
    CHECK_NEAR(fixture.cluster.nic_link.bytes_per_s, 3.125e9, 1e-12);
    fixture_release(&fixture);
}

static const struct {
    const char *cluster, *override, *message;
} refusals[] = {
    {"dgx-h100", "fabric={oversubscription: 2}", "oversubscription is of a leaf's uplinks"},
    {"dgx-h100", "hosts.default=5000", "default of 5000 hosts is above the maximum of 4096"},
    {"dgx-h100", "overrides=[{host: 4096}]", "host 4096, but there are at most 4096 hosts"},
    {"dgx-h100", "overrides=[{host: 1, gpu: 8}]", "GPU 8, but a host has 8"},
    {"dgx-h100", "overrides=[{host: 1, gpu: 2, nic_frac: 0.5}]", "'nic_frac' is of NICs"},
    {"dgx-h100", "overrides=[{host: 1, nic: 2}]", "'nic' without what differs about it"},
    {"dgx-h100", "overrides=[{host: 1, nic: 8, nic_frac: 0.5}]", "NIC 8, but a host has 8"},
    {"dgx-h100", "overrides=[{host: 1, nics: 9}]", "9 NICs, but a host has 8"},
    {"dgx-h100", "overrides=[{host: 1, gpu: 0, nics: 2}]", "'nics' is of a whole host"},
    {"dgx-h100", "overrides=[{host: 1, gpu: 0, step_latency: 2 us}]",
     "'step_latency' is of a whole host"},
    {"dgx-h100", "host.numa={count: 2}", "2 NUMA nodes need a 'link' between them"},
    {"dgx-h100", "host.scale_up.links=[{gpus: 0-1}]", "'links' belong to kind 'links'"},
    {"dgx-h100", "host.scale_up={kind: mesh, link: nvlink4, domain_hosts: 2}",
     "only a switch joins the GPUs of several hosts"},
    {"dgx-h100", "host.scale_up={kind: links, link: nvlink4, links: [{gpus: 0-2}]}",
     "a link joins two GPUs"},
    {"dgx-1-v100", "host.scale_up.links=[{gpus: 0-1}, {gpus: [1, 0]}]",
     "GPUs 1 and 0 are joined twice"},
    /* NVLink 2: 6 x 25 GB/s. */
    {"dgx-1-v100", "host.scale_up.links=[{gpus: 0-1, bandwidth: 151 GB/s}]",
     "the links of GPU 0 add up to 151 GB/s, but its port has 150 GB/s"},
    {"dgx-1-v100",
     "host.scale_up.links=[{gpus: 0-1, bandwidth: 100 GB/s}, {gpus: 1-2, bandwidth: 60 GB/s}]",
     "the links of GPU 1 add up to 160 GB/s"},
    {"dgx-1-v100", "host.pcie.switches=[{gpus: 0-1, uplink_lanes: 17}]",
     "no PCIe link has 17 lanes"},
    {"dgx-1-v100", "host.pcie.switches=[{gpus: 0-1, gpu_lanes: 3}]", "no PCIe link has 3 lanes"},
    {"dgx-1-v100", "host.pcie.roots=[{nics: 0, nic_lanes: 24}]", "no PCIe link has 24 lanes"},
    {"dgx-h100", "host.scale_up={kind: links, link: nvlink4, links: [{gpus: [1, 1]}]}",
     "a link joins two GPUs"},
    {"dgx-h100", "host.scale_up={kind: links, link: nvlink4, links: [{gpus: [1, 8]}]}",
     "GPU 8, but a host has 8"},
    {"dgx-h100", "host.pcie={link: pcie5, switches: [{gpus: 0-3}, {gpus: [7, 3]}]}",
     "GPU 3 hangs in two places"},
    {"dgx-h100", "host.pcie={link: pcie5, roots: [{gpus: 3-1}]}", "'3-1' names no GPUs"},
    {"dgx-h100", "host.pcie={link: pcie5, roots: [{nics: x}]}", "'x' names no NICs"},
    {"dgx-h100", "host.pcie={link: pcie5, roots: [{numa: 2}]}", "NUMA node 2, but the host has"},
    {"dgx-h100", "host.pcie={link: pcie5, switches: [{name: a, parent: b}]}",
     "no switch of the name 'b' above"},
    {"dgx-h100", "host.pcie={link: pcie5, switches: [{name: a}, {name: a}]}",
     "two switches are named 'a'"},
    {"dgx-h100", "fabric={levels: [{hosts: 8}]}", "levels above leaves, but no leaves"},
    {"dgx-h100", "fabric={hosts_per_leaf: 32, levels: [{hosts: 48}]}",
     "48 hosts are no multiple of the 32"},
    {"10gbe-single-gpu", "host.gpus=2", "more than one GPU a host needs 'scale_up' or 'pcie'"},
    {"ideal-8x400", "host.gpu.gemm.points=[{gflop: 3, share: 0.5}, {gflop: 2, share: 0.6}]",
     "'gflop' must grow from point to point"},
    {"ideal-8x400", "host.gpu.gemm.points=[]", "'gemm' needs either 'grid' or 'points'"},
    {"ideal-8x400", "host.gpu.gemm.grid=a40", "'gemm' needs either 'grid' or 'points'"},
    {"dgx-h100", "host.gpu.gemm.grid=nowhere", "no grid of that name"},
    {"dgx-h100", "host.gpu.hbm_shares.rows=[{kind: norm, forward: 1, backward: 1, source: x}]",
     "'hbm_shares' has no row for 'gemm'"},
    {"dgx-h100", "host.gpu.attention=attention-hoper",
     "unknown name 'attention-hoper' for 'attention'"},
    {"dgx-h100", "host.nics.link=ndr40", "ndr40"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        check_context("%s", refusals[i].override);
        const char *const overrides[] = {refusals[i].override, NULL};
        struct cluster_fixture fixture;
        fixture_init(&fixture, refusals[i].cluster, overrides);
        CHECK_TRUE(fixture.status == STATUS_INPUT);
        CHECK_CONTAINS(fixture_messages(&fixture), refusals[i].message);
        fixture_release(&fixture);
    }
    check_context(NULL);
}

static void test_names(void)
{
    CHECK_TEXT(host_cost_name(HOST_OPTIMIZER_PARAM), "optimizer_param");
    CHECK_TEXT(resource_kind_name(RESOURCE_NIC_OUT), "NIC out");
    struct cluster zeroed = {0};
    cluster_release(&zeroed);
}

const struct check_case cluster_cases[] = {
    {"every shipped cluster loads", test_every_shipped_cluster_loads},
    {"every GPU, link and CPU loads", test_every_part_loads},
    {"dgx-h100", test_dgx_h100},
    {"a port stands in for its link", test_port_overrides_link},
    {"another link by name", test_other_link_by_name},
    {"refused", test_refused},
    {"names", test_names},
    {0}};
