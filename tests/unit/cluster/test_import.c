/*
 * tests/unit/cluster/test_import.c: machines as NCCL and nvidia-smi describe them, imported, loaded
 * as any cluster file and compared with what a person reads in them; and what no machine is.
 */
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "cluster_tests.h"
#include "import_fixture.h"

/* ---- what a person reads in each file ----------------------------------------------------- */

enum { ANY_KIND = -1 };

struct fact {
    const char *file, *gpu_flag;
    const char *gpu;
    int32_t gpus, nics;
    double nic_gbit_per_s;
    int32_t switches, numa;
    int kind;             /* enum scale_up_kind */
    double port_gb_per_s; /* of a GPU towards the others; 0: not looked at */
};

static const struct fact facts[] = {
    {"aws_p4d.xml", NULL, "a100-sxm4-40gb", 8, 4, 100, 4, 2, SCALE_UP_SWITCH, 300},
    {"aws_p4de.xml", NULL, "a100-sxm4-80gb", 8, 4, 100, 4, 2, SCALE_UP_SWITCH, 300},
    {"aws_p5_48xl.xml", "h100-sxm5-80gb", "h100-sxm5-80gb", 8, 32, 100, 8, 1, SCALE_UP_SWITCH, 450},
    {"azure_ndv2.xml", "v100-sxm2-32gb", "v100-sxm2-32gb", 8, 1, 100, 0, 2, ANY_KIND, 150},
    {"azure_ndv4.xml", "a100-sxm4-40gb", "a100-sxm4-40gb", 8, 8, 200, 4, 4, SCALE_UP_SWITCH, 300},
    {"azure_ndv5.xml", "h100-sxm5-80gb", "h100-sxm5-80gb", 8, 8, 400, 8, 2, SCALE_UP_SWITCH, 450},
    {"oci_bm_gpu4_8_a100.xml", "a100-sxm4-40gb", "a100-sxm4-40gb", 8, 8, 200, 4, 4, SCALE_UP_SWITCH,
     300},
    {"oci_bm_gpu_b4_8_a100.xml", "a100-sxm4-40gb", "a100-sxm4-40gb", 8, 8, 200, 4, 4,
     SCALE_UP_SWITCH, 300},
    {"amd_8p_940.xml", NULL, "mi300x", 8, 8, 400, 8, 2, SCALE_UP_MESH, 448},
    {"amd_8p_940vm.xml", NULL, "mi300x", 8, 8, 400, 0, 2, SCALE_UP_MESH, 448},
    {"amd_8p1h.xml", NULL, "mi250x-gcd", 8, 4, 200, 6, 2, SCALE_UP_LINKS, 350},
    {"amd_16p1h.xml", NULL, "mi250x-gcd", 16, 8, 200, 12, 4, SCALE_UP_LINKS, 350},
    {"amd_4p3l_2h.xml", "mi210", "mi210", 8, 1, 200, 0, 4, SCALE_UP_LINKS, 138},
    {"amd_4p2h_2nic.xml", "mi210", "mi210", 8, 2, 100, 2, 1, SCALE_UP_LINKS, 92},
    {"amd_8p_pcie_2nic.xml", "mi210", "mi210", 8, 2, 100, 2, 1, SCALE_UP_NONE, 0},
    {"dgx1v_hybrid_cube_mesh_reconstructed.xml", NULL, "v100-sxm2-32gb", 8, 4, 100, 4, 2,
     SCALE_UP_LINKS, 150},
    {"dgx_a100_reconstructed.xml", NULL, "a100-sxm4-40gb", 8, 8, 200, 4, 4, SCALE_UP_SWITCH, 300},
    {"h200_flat_vm_extended.xml", NULL, "h200-sxm-141gb", 8, 8, 400, 0, 1, SCALE_UP_SWITCH, 450},
    {"gb300_tray_reconstructed.xml", NULL, "gb300", 4, 0, 0, 0, 2, SCALE_UP_SWITCH, 900},
    {"workstation_2x_a6000_nvlink_bridge.xml", NULL, "rtx-a6000", 2, 1, 200, 0, 2, SCALE_UP_MESH,
     56.25},
    {"a100_4gpu_polaris_topo_m.txt", "a100-sxm4-40gb", "a100-sxm4-40gb", 4, 2, 200, 0, 4,
     SCALE_UP_MESH, 300},
    {"a800_8gpu_9nic_topo_m.txt", "a800-sxm4-80gb", "a800-sxm4-80gb", 8, 8, 200, 8, 2,
     SCALE_UP_SWITCH, 200},
    {"dgx1v_topo_m.txt", "v100", "v100-sxm2-32gb", 8, 4, 100, 4, 2, SCALE_UP_LINKS, 150},
    {"v100_sxm2_8gpu_1nic_topo_m.txt", "v100-sxm2-32gb", "v100-sxm2-32gb", 8, 1, 100, 0, 2,
     SCALE_UP_LINKS, 150},
    {"gb200_tray_topo_m.txt", "gb200", "gb200", 4, 6, 400, 0, 2, SCALE_UP_SWITCH, 900},
    {"gcp_a3ultra_8gpu_8nic_topo_m.txt", "h200", "h200-sxm-141gb", 8, 8, 400, 4, 2, SCALE_UP_SWITCH,
     450},
    {"h100_hgx_8nic_topo_m.txt", "h100", "h100-sxm5-80gb", 8, 8, 400, 8, 2, SCALE_UP_SWITCH, 450},
    {"pcie_4gpu_phb_topo_m.txt", "rtx-5090", "rtx-5090", 4, 0, 0, 0, 1, SCALE_UP_NONE, 0},
    {"pcie_6gpu_2socket_topo_m.txt", "l40s", "l40s", 6, 0, 0, 3, 2, SCALE_UP_NONE, 0},
    {"rtx3090_pair_nvlink_topo_m.txt", "rtx-3090", "rtx-3090", 2, 0, 0, 0, 1, SCALE_UP_MESH, 56.25},
};

static void check_fact(const struct fact *fact)
{
    struct imported imported;
    import_file(&imported, fact->file, &(struct import_options){.gpu = fact->gpu_flag});
    const struct cluster *cluster = &imported.fixture.cluster;
    check_context("%s", fact->file);
    if (CHECK_INT(imported.status, STATUS_OK) && CHECK_INT(imported.fixture.status, STATUS_OK)) {
        CHECK_TEXT(cluster->gpu.name, fact->gpu);
        CHECK_INT(cluster->gpus_per_host, fact->gpus);
        CHECK_INT(cluster->nic_count, fact->nics);
        CHECK_NEAR(cluster->nic_link.bytes_per_s, fact->nic_gbit_per_s * 1e9 / 8, 1e-12);
        CHECK_INT(cluster->tree.switch_count, fact->switches);
        CHECK_INT(cluster->tree.numa_count, fact->numa);
        if (fact->kind != ANY_KIND)
            CHECK_INT(cluster->scale_up, fact->kind);
        CHECK_NEAR(cluster->scale_up_link.bytes_per_s, fact->port_gb_per_s * 1e9, 1e-12);
    } else {
        CHECK_TEXT(fixture_messages(&imported.fixture), "");
        CHECK_TEXT(imported.yaml.text, "");
    }
    check_context(NULL);
    imported_release(&imported);
}

static void test_facts(void)
{
    for (size_t k = 0; k < sizeof(facts) / sizeof(facts[0]); k++)
        check_fact(&facts[k]);
}

/* ---- pairs of GPUs ------------------------------------------------------------------------ */

struct pair_fact {
    const char *file, *gpu_flag;
    int32_t a, b;
    double gb_per_s; /* one direction, 0: not joined */
};

static const struct pair_fact pair_facts[] = {
    /* 25 GB/s a link; NV2 between 0 and 3, NV1 between 0 and 1, SYS between 0 and 5 */
    {"dgx1v_topo_m.txt", "v100-sxm2-32gb", 0, 3, 50},
    {"dgx1v_topo_m.txt", "v100-sxm2-32gb", 0, 1, 25},
    {"dgx1v_topo_m.txt", "v100-sxm2-32gb", 0, 5, 0},
    {"dgx1v_topo_m.txt", "v100-sxm2-32gb", 2, 6, 25},
    {"dgx1v_hybrid_cube_mesh_reconstructed.xml", NULL, 0, 3, 50},
    {"dgx1v_hybrid_cube_mesh_reconstructed.xml", NULL, 0, 4, 50},
    {"dgx1v_hybrid_cube_mesh_reconstructed.xml", NULL, 3, 7, 25},
    {"dgx1v_hybrid_cube_mesh_reconstructed.xml", NULL, 0, 7, 0},
    /* 50 GB/s a link: 4 in a package, 2 or 1 to others */
    {"amd_8p1h.xml", NULL, 0, 1, 200},
    {"amd_8p1h.xml", NULL, 0, 4, 100},
    {"amd_8p1h.xml", NULL, 0, 6, 50},
    {"amd_8p1h.xml", NULL, 0, 2, 0},
    {"amd_16p1h.xml", NULL, 3, 7, 100},
    /* two hives of four: none between them */
    {"amd_4p3l_2h.xml", "mi210", 0, 3, 46},
    {"amd_4p3l_2h.xml", "mi210", 3, 4, 0},
    /* rings 0-1-3-2 and 4-5-7-6 */
    {"amd_4p2h_2nic.xml", "mi210", 0, 2, 46},
    {"amd_4p2h_2nic.xml", "mi210", 0, 3, 0},
    {"amd_8p_940.xml", NULL, 2, 5, 64},
    {"a100_4gpu_polaris_topo_m.txt", "a100-sxm4-40gb", 1, 2, 100},
    {"workstation_2x_a6000_nvlink_bridge.xml", NULL, 0, 1, 56.25},
};

static void test_pairs(void)
{
    for (size_t k = 0; k < sizeof(pair_facts) / sizeof(pair_facts[0]); k++) {
        const struct pair_fact *fact = &pair_facts[k];
        struct imported imported;
        import_file(&imported, fact->file, &(struct import_options){.gpu = fact->gpu_flag});
        const struct host_tree *tree = &imported.fixture.cluster.tree;
        double found = 0;
        for (int32_t i = 0; i < tree->direct_count; i++) {
            if (tree->direct[i].a == fact->a && tree->direct[i].b == fact->b)
                found += tree->direct[i].bytes_per_s;
        }
        check_context("%s: %d-%d", fact->file, (int)fact->a, (int)fact->b);
        CHECK_NEAR(found, fact->gb_per_s * 1e9, 1e-12);
        imported_release(&imported);
    }
    check_context(NULL);
}

/* A template says nothing of links: they are those of the shipped machine with that GPU. */
static void test_links_of_templates(void)
{
    struct imported imported;
    struct cluster_fixture shipped;
    import_file(&imported, "azure_ndv2.xml", &(struct import_options){.gpu = "v100-sxm2-32gb"});
    fixture_init(&shipped, "dgx-1-v100", NULL);
    const struct host_tree *tree = &imported.fixture.cluster.tree;
    CHECK_INT(imported.fixture.cluster.scale_up, shipped.cluster.scale_up);
    if (CHECK_INT(tree->direct_count, shipped.cluster.tree.direct_count)) {
        for (int32_t k = 0; k < tree->direct_count; k++)
            CHECK_NEAR(tree->direct[k].bytes_per_s, shipped.cluster.tree.direct[k].bytes_per_s, 0);
    }
    fixture_release(&shipped);
    imported_release(&imported);
}

/* ---- where devices hang ------------------------------------------------------------------- */

struct slot_fact {
    const char *file, *gpu_flag;
    int32_t gpu, nic; /* below one switch; nic -1: of the GPU alone */
    bool is_together;
    int32_t numa;         /* of the GPU */
    double slot_gt_per_s; /* of the GPU, times lanes / 16 */
    double uplink_gt_per_s;
};

static const struct slot_fact slot_facts[] = {
    /* A100 in Gen4 slots behind a switch on a Gen3 CPU; the file says 8 GT/s for all */
    {"aws_p4d.xml", NULL, 2, 1, true, 0, 16, 8},
    {"aws_p4d.xml", NULL, 6, 3, true, 1, 16, 8},
    {"aws_p4d.xml", NULL, 6, 1, false, 1, 16, 8},
    {"aws_p5_48xl.xml", "h100-sxm5-80gb", 3, 13, true, 0, 32, 16},
    {"azure_ndv2.xml", "v100-sxm2-32gb", 5, -1, false, 1, 8, 0},
    /* GPUs by bus id: 0001 and 0002 are on the second CPU of the file, which is NUMA node 1 */
    {"azure_ndv4.xml", "a100-sxm4-40gb", 0, 2, true, 1, 16, 16},
    {"azure_ndv4.xml", "a100-sxm4-40gb", 2, 0, true, 0, 16, 16},
    {"azure_ndv5.xml", "h100-sxm5-80gb", 4, 4, true, 1, 32, 32},
    {"dgx_a100_reconstructed.xml", NULL, 0, 1, true, 1, 16, 16}, /* node 3: second of 1, 3, 5, 7 */
    {"amd_8p_940.xml", NULL, 7, 7, true, 1, 32, 32},
    {"amd_8p1h.xml", NULL, 2, -1, false, 0, 8, 16},      /* x8 above the GPU */
    {"amd_4p2h_2nic.xml", "mi210", 5, 1, true, 0, 8, 8}, /* a card of 16 in a slot of 8 GT/s */
    {"h200_flat_vm_extended.xml", NULL, 3, -1, false, 0, 32, 0}, /* QEMU shows 16 */
    {"gcp_a3ultra_8gpu_8nic_topo_m.txt", "h200-sxm-141gb", 3, 2, true, 0, 32, 32},
    {"gcp_a3ultra_8gpu_8nic_topo_m.txt", "h200-sxm-141gb", 3, 4, false, 0, 32, 32},
    {"dgx1v_topo_m.txt", "v100-sxm2-32gb", 4, 1, true, 1, 8, 8}, /* the second column is mlx5_2 */
    {"a100_4gpu_polaris_topo_m.txt", "a100-sxm4-40gb", 0, -1, false, 3, 16, 0},
    {"a800_8gpu_9nic_topo_m.txt", "a800-sxm4-80gb", 4, 0, true, 1, 16, 16}, /* NIC1; NIC0 is gone */
    {"pcie_6gpu_2socket_topo_m.txt", "l40s", 5, -1, false, 1, 16, 16},
};

static void test_slots(void)
{
    const double lane_bytes_per_gt = 16.0 * 128 / 130 / 8 * 1e9; /* of 16 lanes, a GT/s */
    for (size_t k = 0; k < sizeof(slot_facts) / sizeof(slot_facts[0]); k++) {
        const struct slot_fact *fact = &slot_facts[k];
        struct imported imported;
        import_file(&imported, fact->file, &(struct import_options){.gpu = fact->gpu_flag});
        const struct host_tree *tree = &imported.fixture.cluster.tree;
        check_context("%s: GPU %d, NIC %d", fact->file, (int)fact->gpu, (int)fact->nic);
        if (CHECK_INT(imported.fixture.status, STATUS_OK) && CHECK_TRUE(tree->has_pcie)) {
            const struct pci_slot *slot = &tree->gpus[fact->gpu];
            CHECK_INT(slot->numa, fact->numa);
            CHECK_NEAR(slot->bytes_per_s, fact->slot_gt_per_s * lane_bytes_per_gt, 0.001);
            if (fact->nic >= 0)
                CHECK_INT(slot->on == tree->nics[fact->nic].on && slot->on >= 0, fact->is_together);
            if (fact->uplink_gt_per_s > 0 && CHECK_TRUE(slot->on >= 0))
                CHECK_NEAR(tree->switches[slot->on].uplink_bytes_per_s,
                           fact->uplink_gt_per_s * lane_bytes_per_gt, 0.001);
        }
        imported_release(&imported);
    }
    check_context(NULL);
}

/* ---- what the comments say ---------------------------------------------------------------- */

struct comment_fact {
    const char *file, *gpu_flag;
    const char *parts[3];
};

static const struct comment_fact comment_facts[] = {
    {"aws_p4d.xml",
     NULL,
     {"read: PCI id 10de:20b0 is A100 SXM4 40GB", "corrected: 8 GT/s x16 -> 16 GT/s x16",
      "assumed: 100 Gb/s: the rate of EFA of p4d"}},
    {"azure_ndv2.xml",
     "v100-sxm2-32gb",
     {"corrected: 16 GT/s x16 -> 8 GT/s x16: more than the GPU's generation has",
      "assumed: the file says nothing of links between GPUs: as in 'dgx-1-v100'",
      "the largest rate that PCIe 8 GT/s x16 carries"}},
    {"h200_flat_vm_extended.xml",
     NULL,
     {"corrected: 16 GT/s x16 -> 32 GT/s x16: a module sits on a board of its generation",
      "it would not carry 400 Gb/s", NULL}},
    {"a800_8gpu_9nic_topo_m.txt",
     "a800-sxm4-80gb",
     {"dropped: NICs that no GPU is nearest to: NCCL does not use them (NIC0)",
      "NV8 to each of 7 peers is more than A800 SXM4 80GB has: a switch", NULL}},
    {"amd_16p1h.xml", NULL, {"corrected: 32 GT/s x16 -> 16 GT/s x16: more than the GPU's", NULL}},
    {"oci_bm_gpu4_8_a100.xml", "a100", {"read: NUMA nodes 1, 3, 5, 7, here from 0", NULL}},
    {"gb200_tray_topo_m.txt", "gb200", {"spread over the NUMA nodes: SYS to all", NULL}},
};

/* Comments are broken into lines: joined again. */
static const char *joined(struct arena *arena, const char *yaml)
{
    char *out = arena_strdup(arena, yaml);
    char *to = out;
    for (const char *at = yaml; *at != '\0'; at++) {
        const char *next = at + 1 + strspn(at[0] == '\n' ? at + 1 : "", " ");
        if (*at == '\n' && strncmp(next, "#   ", 4) == 0) {
            *to++ = ' ';
            at = next + 3;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    return out;
}

static void test_comments(void)
{
    for (size_t k = 0; k < sizeof(comment_facts) / sizeof(comment_facts[0]); k++) {
        const struct comment_fact *fact = &comment_facts[k];
        struct imported imported;
        import_file(&imported, fact->file, &(struct import_options){.gpu = fact->gpu_flag});
        check_context("%s", fact->file);
        if (CHECK_INT(imported.status, STATUS_OK)) {
            const char *text = joined(&imported.fixture.arena, imported.yaml.text);
            for (int i = 0; i < 3 && fact->parts[i] != NULL; i++)
                CHECK_CONTAINS(text, fact->parts[i]);
        }
        imported_release(&imported);
    }
    check_context(NULL);
}

/* ---- small machines, written here --------------------------------------------------------- */

#define GPU_PCI(busid, speed, width)                                                               \
    "<pci busid=\"" busid "\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\""              \
    " link_speed=\"" speed "\" link_width=\"" width "\">"
#define CX7_PCI(busid, speed, width)                                                               \
    "<pci busid=\"" busid "\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\""              \
    " link_speed=\"" speed "\" link_width=\"" width "\">"
#define CPU                                                                                        \
    "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">"

/* As clouds' virtual machines show themselves: every bridge 2.5 GT/s x1, and the rate of the NIC
   less what a virtual function may use. */
static void test_virtual_machine(void)
{
    static const char text[] =
        "<system version=\"1\">" CPU
        "<pci busid=\"0000:01:00.0\" class=\"0x060400\" vendor=\"0x1b36\" device=\"0x000c\""
        " link_speed=\"2.5 GT/s PCIe\" link_width=\"1\">" GPU_PCI(
            "0000:02:00.0", "32.0 GT/s PCIe",
            "16") "<gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">"
                  "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" "
                  "tclass=\"0x068000\"/></gpu></pci>" CX7_PCI(
                      "0000:03:00.0", "2.5 GT/s PCIe",
                      "1") "<nic><net name=\"mlx5_0\" dev=\"0\" "
                           "speed=\"180000\"/></nic></pci></pci>"
                           "<pci busid=\"0000:04:00.0\" class=\"0x060400\" link_speed=\"2.5 GT/s "
                           "PCIe\""
                           " link_width=\"1\">" GPU_PCI(
                               "0000:05:00.0", "2.5 GT/s PCIe",
                               "1") "<gpu dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\">"
                                    "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" "
                                    "tclass=\"0x068000\"/></gpu></pci>" CX7_PCI(
                                        "0000:06:00.0", "32.0 GT/s PCIe",
                                        "16") "<nic><net name=\"mlx5_1\" dev=\"1\" "
                                              "speed=\"180000\"/></nic></pci></pci></cpu></system>";
    struct imported imported = {0};
    import_text(&imported, IMPORT_NCCL_TOPO, "vm.xml", text, &(struct import_options){0});
    if (CHECK_INT(imported.status, STATUS_OK)) {
        load_imported(&imported);
        const struct cluster *cluster = &imported.fixture.cluster;
        CHECK_INT(imported.fixture.status, STATUS_OK);
        CHECK_NEAR(cluster->nic_link.bytes_per_s, 25e9, 1e-12);
        CHECK_INT(cluster->tree.switch_count, 2);
        for (int32_t k = 0; k < 2 && cluster->tree.has_pcie; k++) {
            CHECK_NEAR(cluster->tree.gpus[k].bytes_per_s, 63e9, 0.001);
            CHECK_NEAR(cluster->tree.switches[k].uplink_bytes_per_s, 63e9, 0.001);
            CHECK_INT(cluster->tree.gpus[k].on, k);
        }
        CHECK_CONTAINS(imported.yaml.text, "180 Gb/s -> 200 Gb/s");
        CHECK_CONTAINS(imported.yaml.text, "2.5 GT/s x1 -> 32 GT/s x16: an emulated port");
    }
    imported_release(&imported);
}

/* Two trays of one NVLink domain in one dump: one host, and a domain of two. */
static void test_domain(void)
{
    static const char text[] =
        "<system version=\"2\">"
        "<cpu host_hash=\"0xa\" numaid=\"0\" arch=\"arm64\">"
        "<pci busid=\"0008:06:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x31c2\""
        " link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"103\">"
        "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>"
        "<c2c bw=\"44712\" count=\"5\"/></gpu></pci></cpu>"
        "<cpu host_hash=\"0xb\" numaid=\"0\" arch=\"arm64\">"
        "<pci busid=\"0008:06:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x31c2\""
        " link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"103\">"
        "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>"
        "<c2c bw=\"44712\" count=\"5\"/></gpu></pci></cpu></system>";
    struct imported imported = {0};
    import_text(&imported, IMPORT_NCCL_TOPO, "domain.xml", text, &(struct import_options){0});
    if (CHECK_INT(imported.status, STATUS_OK)) {
        load_imported(&imported);
        CHECK_TEXT(fixture_messages(&imported.fixture), "the file holds no NIC: one host only\n");
        CHECK_TEXT(imported.fixture.cluster.gpu.name, "gb300");
        CHECK_INT(imported.fixture.cluster.gpus_per_host, 1);
        CHECK_INT(imported.fixture.cluster.domain_hosts, 2);
    }
    imported_release(&imported);
}

/* Escapes of the terminal, a prompt before, legends after, a lost last cell, a row without cores.
 */
static void test_as_people_keep_it(void)
{
    static const char text[] =
        "$ nvidia-smi topo -m\n"
        "\033[4m\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\r\n"
        "GPU0\t X \tNV12\tPXB\tSYS\t0-31\t0\t\tN/A\r\n"
        "GPU1\tNV12\t X \tSYS\r\n"
        "NIC0\tPXB\tSYS\t X \tSYS\r\n"
        "NIC1\tSYS\tPHB\tSYS\t X \r\n"
        "\r\n"
        "Legend:\r\n"
        "\r\n"
        "  X    = Self\r\n"
        "  SYS  = Connection traversing PCIe as well as the SMP interconnect\r\n"
        "\r\n"
        "NIC Legend:\r\n"
        "\r\n"
        "  NIC0: mlx5_4\r\n"
        "  NIC1: mlx5_bond_0\r\n";
    struct imported imported = {0};
    import_text(&imported, IMPORT_TOPO_M, "paste.txt", text,
                &(struct import_options){.gpu = "a100-pcie-80gb", .nic_link = "edr100"});
    if (CHECK_INT(imported.status, STATUS_OK)) {
        load_imported(&imported);
        const struct cluster *cluster = &imported.fixture.cluster;
        CHECK_TEXT(fixture_messages(&imported.fixture), "");
        CHECK_NEAR(cluster->scale_up_link.bytes_per_s, 300e9, 1e-12); /* a bridge of 12 links */
        CHECK_INT(cluster->scale_up, SCALE_UP_MESH);
        CHECK_INT(cluster->tree.switch_count, 1);
        CHECK_INT(cluster->tree.gpus[0].on, 0);
        CHECK_INT(cluster->tree.nics[0].on, 0);
        CHECK_INT(cluster->tree.gpus[1].on, -1);
        CHECK_NEAR(cluster->nic_link.bytes_per_s, 12.5e9, 1e-12);
        CHECK_CONTAINS(imported.yaml.text, "mlx5_4, mlx5_bond_0");
    }
    imported_release(&imported);
}

/* ---- what is refused ---------------------------------------------------------------------- */

struct refusal {
    const char *text;
    enum import_format format;
    int32_t line, column;
    const char *says;
};

#define SYSTEM(inside) "<system version=\"1\">\n" inside "</system>\n"

static const struct refusal refusals[] = {
    {"", IMPORT_NCCL_TOPO, 1, 1, "this is not XML: no element found"},
    {"<system>\n <cpu>\n</system>", IMPORT_NCCL_TOPO, 3, 3, "this is not XML: mismatched tag"},
    {"<!DOCTYPE system [<!ENTITY a \"b\">]>\n<system/>", IMPORT_NCCL_TOPO, 1, 1,
     "document types, and so entities, are refused"},
    {"<!DOCTYPE system SYSTEM \"file:///etc/passwd\">\n<system/>", IMPORT_NCCL_TOPO, 1, 1,
     "document types, and so entities, are refused"},
    {"<system>\n  &x;</system>", IMPORT_NCCL_TOPO, 2, 3, "this is not XML: undefined entity"},
    {"<graphs version=\"1\"/>", IMPORT_NCCL_TOPO, 1, 1,
     "a topology starts with 'system', this with 'graphs'"},
    {SYSTEM(""), IMPORT_NCCL_TOPO, 1, 1, "the file holds no GPU"},
    {SYSTEM("<cpu numaid=\"zero\"/>\n"), IMPORT_NCCL_TOPO, 2, 14, "'numaid' of 'cpu' is 'zero'"},
    {SYSTEM("<cpu>\n<pci busid=\"81:00.0\" class=\"0x030200\"/></cpu>\n"), IMPORT_NCCL_TOPO, 3, 13,
     "'busid' of 'pci' is '81:00.0'"},
    {SYSTEM("<cpu>\n<pci class=\"0x030200\"/></cpu>\n"), IMPORT_NCCL_TOPO, 3, 1,
     "'pci' has no 'busid'"},
    {SYSTEM("<cpu><pci busid=\"0000:81:00.0\"\n  class=\"0xnone\"/></cpu>\n"), IMPORT_NCCL_TOPO, 3,
     10, "'class' of 'pci' is '0xnone'"},
    {SYSTEM("<cpu><pci busid=\"0000:81:00.0\" link_speed=\"fast\"/></cpu>\n"), IMPORT_NCCL_TOPO, 2,
     44, "'link_speed' of 'pci' is 'fast'"},
    {SYSTEM("<cpu><pci busid=\"0000:81:00.0\" class=\"0x030200\"/>\n"
            "<pci busid=\"0000:81:00.0\" class=\"0x030200\"/></cpu>\n"),
     IMPORT_NCCL_TOPO, 3, 1, "'0000:81:00.0' stands twice"},
    {"", IMPORT_TOPO_M, 1, 1, "there is no matrix of 'nvidia-smi topo -m' here"},
    {"\tGPU0\tGPU1\nGPU0\t X \tNVX\nGPU1\tSYS\t X \n", IMPORT_TOPO_M, 2, 10,
     "'NVX' is no cell of the matrix (row 'GPU0', column 'GPU1')"},
    {"\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV2\t X \n", IMPORT_TOPO_M, 3, 6,
     "'GPU1' to 'GPU0' is NV2, but the other way it is NV4"},
    {"\tGPU0\tGPU0\nGPU0\t X \n", IMPORT_TOPO_M, 1, 7, "column 'GPU0' stands twice"},
    {"\tGPU0\tGPU1\nGPU0\tSYS\t X \nGPU1\tSYS\t X \n", IMPORT_TOPO_M, 2, 6,
     "row 'GPU0' has no X below its own column"},
    {"\tGPU0\tGPU1\tGPU2\nGPU0\t X \tSYS\nGPU1\tSYS\t X \nGPU2\t\n", IMPORT_TOPO_M, 4, 1,
     "no cell says how 'GPU2' and 'GPU0' are joined"},
};

static void test_refusals(void)
{
    for (size_t k = 0; k < sizeof(refusals) / sizeof(refusals[0]); k++) {
        const struct refusal *refusal = &refusals[k];
        struct imported imported = {0};
        import_text(&imported, refusal->format, "bad", refusal->text,
                    &(struct import_options){.gpu = "l40s"});
        const struct diag *diag = &imported.fixture.diag;
        const struct diag_message *first = NULL;
        for (int32_t i = 0; i < diag->count && first == NULL; i++)
            first = diag->items[i].level == DIAG_ERROR ? &diag->items[i] : NULL;
        check_context("%s", refusal->says);
        CHECK_INT(imported.status, STATUS_INPUT);
        if (CHECK_TRUE(first != NULL)) {
            CHECK_TEXT(first->text, refusal->says);
            CHECK_INT(first->place.line, refusal->line);
            CHECK_INT(first->place.column, refusal->column);
        }
        imported_release(&imported);
    }
    check_context(NULL);
}

/* Deep and wide XML stops at a limit, at once. */
static void test_limits(void)
{
    struct strbuf text = {0};
    for (int k = 0; k < 100000; k++)
        strbuf_add(&text, "<a>");
    struct imported deep = {0};
    import_text(&deep, IMPORT_NCCL_TOPO, "deep.xml", text.text, &(struct import_options){0});
    CHECK_INT(deep.status, STATUS_INPUT);
    CHECK_TEXT(fixture_messages(&deep.fixture), "elements are nested too deep\n");
    imported_release(&deep);
    strbuf_release(&text);
    strbuf_add(&text, "<system>");
    for (int k = 0; k < 70000; k++)
        strbuf_add(&text, "<a/>");
    struct imported wide = {0};
    import_text(&wide, IMPORT_NCCL_TOPO, "wide.xml", text.text, &(struct import_options){0});
    CHECK_INT(wide.status, STATUS_INPUT);
    CHECK_TEXT(fixture_messages(&wide.fixture), "too many elements\n");
    imported_release(&wide);
    strbuf_release(&text);
}

const struct check_case import_cases[] = {
    {"what a person reads in each file", test_facts},
    {"links between pairs of GPUs", test_pairs},
    {"links of templates", test_links_of_templates},
    {"where devices hang, and how fast", test_slots},
    {"what the comments say", test_comments},
    {"a virtual machine", test_virtual_machine},
    {"a domain of several hosts", test_domain},
    {"a matrix as people keep it", test_as_people_keep_it},
    {"what is refused", test_refusals},
    {"limits", test_limits},
    {0},
};
