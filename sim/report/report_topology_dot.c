/* report/report_topology_dot.c: a cluster as Graphviz text and as JSON. */
#include <inttypes.h>

#include "base/units.h"
#include "report/json_writer.h"
#include "report/report_topology.h"

static void write_edge(FILE *file, const char *from, int64_t a, const char *to, int64_t b,
                       double bytes_per_s)
{
    char text[32];
    fprintf(file, "  %s%" PRId64 " -- %s%" PRId64 " [label=\"%s\"];\n", from, a, to, b,
            format_bandwidth(text, sizeof(text), bytes_per_s));
}

static void write_slots(const struct topology *topology, FILE *file)
{
    const struct cluster *cluster = topology->cluster;
    const struct host_tree *tree = &cluster->tree;
    for (int32_t i = 0; i < tree->numa_count; i++)
        fprintf(file, "  numa%" PRId32 " [label=\"NUMA node %" PRId32 "\", shape=house];\n", i, i);
    for (int32_t i = 0; i < tree->switch_count; i++) {
        const struct pci_switch *of = &tree->switches[i];
        fprintf(file, "  switch%" PRId32 " [label=\"%s\", shape=diamond];\n", i, of->name);
        write_edge(file, of->parent >= 0 ? "switch" : "numa",
                   of->parent >= 0 ? of->parent : of->numa, "switch", i, of->uplink_bytes_per_s);
    }
    for (int64_t i = 0; i < cluster->gpus_per_host; i++)
        write_edge(file, tree->gpus[i].on >= 0 ? "switch" : "numa",
                   tree->gpus[i].on >= 0 ? tree->gpus[i].on : tree->gpus[i].numa, "gpu", i,
                   tree->gpus[i].bytes_per_s);
    for (int64_t i = 0; i < cluster->nic_count; i++)
        write_edge(file, tree->nics[i].on >= 0 ? "switch" : "numa",
                   tree->nics[i].on >= 0 ? tree->nics[i].on : tree->nics[i].numa, "nic", i,
                   tree->nics[i].bytes_per_s);
    for (int32_t a = 0; a < tree->numa_count; a++)
        for (int32_t b = a + 1; b < tree->numa_count; b++)
            write_edge(file, "numa", a, "numa", b, tree->socket.bytes_per_s);
}

static void write_attached(const struct topology *topology, FILE *file)
{
    const struct host_graph *graph = &topology->graph;
    for (int32_t gpu = 0; gpu < graph->gpus; gpu++)
        for (int32_t nic = 0; nic < graph->nics; nic++)
            if (topology->attached[gpu * graph->nics + nic])
                fprintf(file, "  gpu%" PRId32 " -- nic%" PRId32 " [style=dotted];\n", gpu, nic);
}

static void write_scale_up(const struct topology *topology, FILE *file)
{
    const struct cluster *cluster = topology->cluster;
    const struct host_tree *tree = &cluster->tree;
    if (cluster->scale_up == SCALE_UP_SWITCH) {
        fprintf(file, "  scaleup0 [label=\"%s switch\", shape=diamond];\n",
                cluster->scale_up_link.name);
        for (int64_t i = 0; i < cluster->gpus_per_host; i++)
            write_edge(file, "gpu", i, "scaleup", 0, cluster->scale_up_link.bytes_per_s);
    }
    for (int32_t i = 0; i < tree->direct_count; i++)
        write_edge(file, "gpu", tree->direct[i].a, "gpu", tree->direct[i].b,
                   tree->direct[i].bytes_per_s);
}

void report_topology_dot(const struct topology *topology, FILE *file)
{
    const struct cluster *cluster = topology->cluster;
    fprintf(file, "graph \"%s\" {\n  layout=dot;\n  node [shape=box];\n", cluster->name);
    for (int64_t i = 0; i < cluster->gpus_per_host; i++)
        fprintf(file, "  gpu%" PRId64 " [label=\"GPU %" PRId64 "\\n%s\"];\n", i, i,
                cluster->gpu.name);
    for (int64_t i = 0; i < cluster->nic_count; i++)
        fprintf(file, "  nic%" PRId64 " [label=\"NIC %" PRId64 "\", shape=ellipse];\n", i, i);
    write_scale_up(topology, file);
    if (cluster->tree.has_pcie)
        write_slots(topology, file);
    else
        write_attached(topology, file);
    if (cluster->nic_count > 0)
        fprintf(file, "  fabric0 [label=\"fabric\", shape=doubleoctagon];\n");
    for (int64_t i = 0; i < cluster->nic_count; i++)
        write_edge(file, "nic", i, "fabric", 0, cluster->nic_link.bytes_per_s);
    fprintf(file, "}\n");
}

static void json_slots(struct json_writer *json, const char *key, const struct pci_slot *slots,
                       int64_t count)
{
    json_key(json, key);
    json_begin_array(json);
    for (int64_t i = 0; i < count; i++) {
        json_begin_object(json);
        json_key(json, "switch");
        if (slots[i].on >= 0)
            json_int(json, slots[i].on);
        else
            json_text(json, NULL);
        json_key(json, "numa");
        json_int(json, slots[i].numa);
        json_key(json, "bytes_per_s");
        json_double(json, slots[i].bytes_per_s);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_pcie(struct json_writer *json, const struct cluster *cluster)
{
    static const char *const p2p[] = {
        [P2P_DIRECT] = "direct", [P2P_SWITCH] = "switch", [P2P_HOST] = "host"};
    const struct host_tree *tree = &cluster->tree;
    json_key(json, "pcie");
    json_begin_object(json);
    json_key(json, "p2p");
    json_text(json, p2p[tree->p2p]);
    json_key(json, "numa_nodes");
    json_int(json, tree->numa_count);
    json_key(json, "switches");
    json_begin_array(json);
    for (int32_t i = 0; i < tree->switch_count; i++) {
        json_begin_object(json);
        json_key(json, "name");
        json_text(json, tree->switches[i].name);
        json_key(json, "parent");
        if (tree->switches[i].parent >= 0)
            json_int(json, tree->switches[i].parent);
        else
            json_text(json, NULL);
        json_key(json, "numa");
        json_int(json, tree->switches[i].numa);
        json_key(json, "uplink_bytes_per_s");
        json_double(json, tree->switches[i].uplink_bytes_per_s);
        json_end_object(json);
    }
    json_end_array(json);
    json_slots(json, "gpus", tree->gpus, cluster->gpus_per_host);
    json_slots(json, "nics", tree->nics, cluster->nic_count);
    json_end_object(json);
}

static void json_links(struct json_writer *json, const struct topology *topology)
{
    json_key(json, "links");
    json_begin_array(json);
    for (int32_t i = 0; i < topology->link_count; i++) {
        const struct topology_link *link = &topology->links[i];
        json_begin_object(json);
        json_key(json, "role");
        json_text(json, link->role);
        json_key(json, "name");
        json_text(json, link->link->name);
        json_key(json, "bytes_per_s");
        json_double(json, link->link->bytes_per_s);
        json_key(json, "file");
        json_text(json, link->file);
        json_key(json, "source");
        json_text(json, link->link->source);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_direct(struct json_writer *json, const struct host_tree *tree)
{
    json_key(json, "pairs");
    json_begin_array(json);
    for (int32_t i = 0; i < tree->direct_count; i++) {
        json_begin_object(json);
        json_key(json, "gpus");
        json_begin_array(json);
        json_int(json, tree->direct[i].a);
        json_int(json, tree->direct[i].b);
        json_end_array(json);
        json_key(json, "bytes_per_s");
        json_double(json, tree->direct[i].bytes_per_s);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_fabric(struct json_writer *json, const struct fabric *fabric)
{
    json_key(json, "fabric");
    json_begin_object(json);
    json_key(json, "rails");
    json_bool(json, fabric->has_rails);
    json_key(json, "placement");
    json_text(json, fabric->placement == PLACEMENT_PACKED ? "packed" : "spread");
    json_key(json, "hop_latency_s");
    json_double(json, fabric->hop_latency_s);
    json_key(json, "levels");
    json_begin_array(json);
    for (int32_t i = 0; i < fabric->level_count; i++) {
        json_begin_object(json);
        json_key(json, "hosts");
        json_int(json, fabric->levels[i].hosts);
        json_key(json, "oversubscription");
        json_double(json, fabric->levels[i].oversubscription);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

void report_topology_json(const struct topology *topology, FILE *file)
{
    static const char *const kinds[] = {[SCALE_UP_NONE] = "none",
                                        [SCALE_UP_SWITCH] = "switch",
                                        [SCALE_UP_MESH] = "mesh",
                                        [SCALE_UP_LINKS] = "links"};
    const struct cluster *cluster = topology->cluster;
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, 1);
    json_key(&json, "name");
    json_text(&json, cluster->name);
    json_key(&json, "gpu");
    json_text(&json, cluster->gpu.name);
    json_key(&json, "gpus_per_host");
    json_int(&json, cluster->gpus_per_host);
    json_key(&json, "nics_per_host");
    json_int(&json, cluster->nic_count);
    json_key(&json, "max_hosts");
    json_int(&json, cluster->max_hosts);
    json_key(&json, "scale_up");
    json_begin_object(&json);
    json_key(&json, "kind");
    json_text(&json, kinds[cluster->scale_up]);
    json_key(&json, "port_bytes_per_s");
    json_double(&json, cluster->scale_up_link.bytes_per_s);
    json_key(&json, "domain_hosts");
    json_int(&json, cluster->domain_hosts);
    json_direct(&json, &cluster->tree);
    json_end_object(&json);
    if (cluster->tree.has_pcie)
        json_pcie(&json, cluster);
    json_fabric(&json, &cluster->fabric);
    json_links(&json, topology);
    json_end_object(&json);
    json_finish(&json);
}
