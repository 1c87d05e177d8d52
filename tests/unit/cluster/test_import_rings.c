/*
 * tests/unit/cluster/test_import_rings.c: an imported machine carries rings as the shipped one of
 * that kind does, and as fast as its links allow, by hand.
 */
#include "cluster/traffic.h"
#include "cluster_tests.h"
#include "import_fixture.h"

/* Bytes/s of a ring over all ranks, each sending one byte: the slowest wire, raw or as it is
   reached. */
static double ring_rate(struct cluster_fixture *fixture, int64_t hosts, bool is_raw)
{
    if (!CHECK_INT(fixture->status, STATUS_OK))
        return 0;
    const struct layout layout = fixture_layout(fixture, hosts, true);
    const struct group group = group_whole(&layout);
    const struct traffic *traffic = layout_ring(&layout, &group);
    double rate = 1e300;
    for (int32_t k = 0; k < traffic->load_count; k++) {
        const struct traffic_load *load = &traffic->loads[k];
        const double one =
            layout.resources[load->resource].capacity / (is_raw ? load->per_byte : load->effort);
        rate = one < rate ? one : rate;
    }
    return rate;
}

struct shipped_pair {
    const char *file, *gpu_flag, *shipped;
    int64_t hosts;
    const char *nic_flag;
};

static const struct shipped_pair shipped_pairs[] = {
    {"dgx1v_hybrid_cube_mesh_reconstructed.xml", NULL, "dgx-1-v100", 1, NULL},
    {"dgx1v_hybrid_cube_mesh_reconstructed.xml", NULL, "dgx-1-v100", 2, NULL},
    {"dgx1v_topo_m.txt", "v100-sxm2-32gb", "dgx-1-v100", 1, NULL},
    {"dgx1v_topo_m.txt", "v100-sxm2-32gb", "dgx-1-v100", 4, NULL},
    {"dgx_a100_reconstructed.xml", NULL, "dgx-a100-40gb", 1, NULL},
    {"dgx_a100_reconstructed.xml", NULL, "dgx-a100-40gb", 4, NULL},
    {"azure_ndv4.xml", "a100-sxm4-40gb", "dgx-a100-40gb", 1, NULL},
    {"azure_ndv4.xml", "a100-sxm4-40gb", "dgx-a100-40gb", 2, NULL},
    {"azure_ndv5.xml", "h100-sxm5-80gb", "dgx-h100", 1, NULL},
    {"azure_ndv5.xml", "h100-sxm5-80gb", "dgx-h100", 8, NULL},
    {"aws_p4d.xml", NULL, "p4d-a100-40gb", 1, NULL},
    {"aws_p4d.xml", NULL, "p4d-a100-40gb", 2, "efa100-p4d"},
    {"aws_p5_48xl.xml", "h100-sxm5-80gb", "dgx-h100", 1, NULL},
    {"h100_hgx_8nic_topo_m.txt", "h100-sxm5-80gb", "dgx-h100", 2, NULL},
    {"gcp_a3ultra_8gpu_8nic_topo_m.txt", "h200-sxm-141gb", "dgx-h200", 2, NULL},
    {"h200_flat_vm_extended.xml", NULL, "dgx-h200", 2, NULL},
    {"a800_8gpu_9nic_topo_m.txt", "a800-sxm4-80gb", "a800-8gpu", 1, NULL},
    {"a800_8gpu_9nic_topo_m.txt", "a800-sxm4-80gb", "a800-8gpu", 2, NULL},
    {"amd_8p_940.xml", NULL, "mi300x-8gpu", 1, NULL},
    {"amd_8p_940.xml", NULL, "mi300x-8gpu", 2, NULL},
};

static void test_as_shipped(void)
{
    for (size_t k = 0; k < sizeof(shipped_pairs) / sizeof(shipped_pairs[0]); k++) {
        const struct shipped_pair *pair = &shipped_pairs[k];
        struct imported imported;
        struct cluster_fixture shipped;
        import_file(&imported, pair->file,
                    &(struct import_options){.gpu = pair->gpu_flag, .nic_link = pair->nic_flag});
        fixture_init(&shipped, pair->shipped, NULL);
        check_context("%s, %d hosts", pair->file, (int)pair->hosts);
        CHECK_NEAR(ring_rate(&imported.fixture, pair->hosts, false),
                   ring_rate(&shipped, pair->hosts, false), 1e-9);
        fixture_release(&shipped);
        imported_release(&imported);
    }
    check_context(NULL);
}

struct hand {
    const char *file, *gpu_flag;
    int64_t hosts;
    double gb_per_s; /* raw */
};

static const struct hand hands[] = {
    /* 6 links of 25 GB/s, all in rings; across hosts 4 x 12.5 GB/s for 8 GPUs, of which the ring
       passes once: 8 bytes leave the host for each that a GPU sends on, over 4 NICs */
    {"dgx1v_topo_m.txt", "v100-sxm2-32gb", 1, 150},
    {"dgx1v_topo_m.txt", "v100-sxm2-32gb", 2, 50},
    {"dgx_a100_reconstructed.xml", NULL, 1, 300},
    {"dgx_a100_reconstructed.xml", NULL, 2, 200},
    {"aws_p4d.xml", NULL, 2, 50},
    /* 7 links of 64 GB/s */
    {"amd_8p_940.xml", NULL, 1, 448},
    /* three peers with 4 links of 25 GB/s each */
    {"a100_4gpu_polaris_topo_m.txt", "a100-sxm4-40gb", 1, 300},
    {"workstation_2x_a6000_nvlink_bridge.xml", NULL, 1, 56.25},
    /* the NIC (25) hangs on the other socket, behind a link of 22 */
    {"workstation_2x_a6000_nvlink_bridge.xml", NULL, 2, 22},
    {"rtx3090_pair_nvlink_topo_m.txt", "rtx-3090", 1, 56.25},
};

static void test_by_hand(void)
{
    for (size_t k = 0; k < sizeof(hands) / sizeof(hands[0]); k++) {
        const struct hand *hand = &hands[k];
        struct imported imported;
        import_file(&imported, hand->file, &(struct import_options){.gpu = hand->gpu_flag});
        check_context("%s, %d hosts", hand->file, (int)hand->hosts);
        CHECK_NEAR(ring_rate(&imported.fixture, hand->hosts, true), hand->gb_per_s * 1e9, 1e-9);
        imported_release(&imported);
    }
    check_context(NULL);
}

const struct check_case import_ring_cases[] = {
    {"as the shipped machine", test_as_shipped},
    {"by hand", test_by_hand},
    {0},
};
