/* report/report_topology.c: a cluster as a tree of text. */
#include "report/report_topology.h"

#include <inttypes.h>

#include "base/units.h"
#include "config/config.h"
#include "report/report_table_private.h"

static void add_link(struct arena *arena, struct topology *topology, const char *role,
                     const struct link *link, const char *const *data_folders)
{
    if (link->name == NULL || !(link->bytes_per_s > 0))
        return;
    const char *name = arena_printf(arena, "%s.yaml", link->name);
    struct topology_link *added = &topology->links[topology->link_count++];
    *added = (struct topology_link){.role = role, .link = link};
    if (data_path(arena, data_folders, "topologies/links", name) != NULL)
        added->file = arena_printf(arena, "topologies/links/%s", name);
}

void topology_init(struct arena *arena, const struct cluster *cluster,
                   const char *const *data_folders, struct topology *topology)
{
    const struct host_tree *tree = &cluster->tree;
    *topology = (struct topology){.cluster = cluster};
    const int64_t hosts = cluster->nic_count > 0 ? 2 : 1; /* NICs are there from two on */
    host_graph_build(arena, cluster, hosts, cluster->gpus_per_host, &topology->graph);
    topology->attached = host_graph_attach(arena, &topology->graph, (int32_t)topology->graph.nics);
    add_link(arena, topology, "scale-up port", &cluster->scale_up_link, data_folders);
    if (tree->has_pcie) {
        add_link(arena, topology, "PCIe slot", &tree->pcie, data_folders);
        if (tree->gpu_slot.name != tree->pcie.name)
            add_link(arena, topology, "GPU slot", &tree->gpu_slot, data_folders);
        if (tree->staged.name != tree->pcie.name)
            add_link(arena, topology, "through host memory", &tree->staged, data_folders);
    }
    if (tree->numa_count > 1)
        add_link(arena, topology, "socket link", &tree->socket, data_folders);
    add_link(arena, topology, "NIC", &cluster->nic_link, data_folders);
}

static const char *rate(char text[32], double bytes_per_s)
{
    return format_bandwidth(text, 32, bytes_per_s);
}

static void write_scale_up(const struct topology *topology, FILE *file)
{
    const struct cluster *cluster = topology->cluster;
    char text[32];
    switch (cluster->scale_up) {
    case SCALE_UP_NONE:
        fprintf(file, "  scale-up: none\n");
        return;
    case SCALE_UP_SWITCH:
        fprintf(file, "  scale-up: a switch, %s a GPU (%s)",
                rate(text, cluster->scale_up_link.bytes_per_s), cluster->scale_up_link.name);
        if (cluster->domain_hosts > 1)
            fprintf(file, ", over %" PRId64 " hosts in a row", cluster->domain_hosts);
        fprintf(file, "\n");
        return;
    case SCALE_UP_MESH:
    case SCALE_UP_LINKS:
        fprintf(file, "  scale-up: %s, %s a GPU (%s)\n",
                cluster->scale_up == SCALE_UP_MESH ? "each pair joined" : "links of some pairs",
                rate(text, cluster->scale_up_link.bytes_per_s), cluster->scale_up_link.name);
        return;
    }
}

static void write_gpu(const struct topology *topology, int64_t gpu, int indent, FILE *file)
{
    const struct cluster *cluster = topology->cluster;
    char text[32];
    fprintf(file, "%*sGPU %" PRId64, indent, "", gpu);
    if (cluster->tree.has_pcie)
        fprintf(file, "  slot %s", rate(text, cluster->tree.gpus[gpu].bytes_per_s));
    const char *separator = "  own NICs ";
    for (int32_t nic = 0; nic < topology->graph.nics; nic++) {
        if (!topology->attached[gpu * topology->graph.nics + nic])
            continue;
        fprintf(file, "%s%" PRId32, separator, nic);
        separator = ", ";
    }
    fprintf(file, "\n");
}

static void write_nic(const struct topology *topology, int64_t nic, int indent, FILE *file)
{
    const struct cluster *cluster = topology->cluster;
    char text[32];
    fprintf(file, "%*sNIC %" PRId64 "  wire %s", indent, "", nic,
            rate(text, cluster->nic_link.bytes_per_s));
    if (cluster->tree.has_pcie)
        fprintf(file, ", slot %s", rate(text, cluster->tree.nics[nic].bytes_per_s));
    fprintf(file, "\n");
}

/* What hangs on a switch, or (-1) on the root ports of a NUMA node. */
static void write_hanging(const struct topology *topology, int32_t on, int32_t numa, int indent,
                          FILE *file)
{
    const struct host_tree *tree = &topology->cluster->tree;
    char text[32];
    for (int32_t i = 0; i < tree->switch_count; i++) {
        const struct pci_switch *below = &tree->switches[i];
        if (below->parent != on || below->numa != numa)
            continue;
        fprintf(file, "%*s%s  PCIe switch, uplink %s\n", indent, "", below->name,
                rate(text, below->uplink_bytes_per_s));
        write_hanging(topology, i, numa, indent + 2, file);
    }
    for (int64_t i = 0; i < topology->cluster->gpus_per_host; i++)
        if (tree->gpus[i].on == on && tree->gpus[i].numa == numa)
            write_gpu(topology, i, indent, file);
    for (int64_t i = 0; i < topology->cluster->nic_count; i++)
        if (tree->nics[i].on == on && tree->nics[i].numa == numa)
            write_nic(topology, i, indent, file);
}

static void write_host(const struct topology *topology, FILE *file)
{
    const struct cluster *cluster = topology->cluster;
    const struct host_tree *tree = &cluster->tree;
    char text[32];
    fprintf(file, "host\n");
    write_scale_up(topology, file);
    if (!tree->has_pcie) {
        fprintf(file, "  PCIe: not described, no bottleneck\n");
        for (int64_t i = 0; i < cluster->gpus_per_host; i++)
            write_gpu(topology, i, 2, file);
        for (int64_t i = 0; i < cluster->nic_count; i++)
            write_nic(topology, i, 2, file);
        return;
    }
    static const char *const p2p[] = {
        [P2P_DIRECT] = "peer to peer",
        [P2P_SWITCH] = "peer to peer below a switch, otherwise through host memory",
        [P2P_HOST] = "GPU to GPU through host memory"};
    fprintf(file, "  PCIe: %s, %s\n", tree->pcie.name, p2p[tree->p2p]);
    if (tree->numa_count > 1)
        fprintf(file, "  socket links: %s between each two of %" PRId32 " NUMA nodes (%s)\n",
                rate(text, tree->socket.bytes_per_s), tree->numa_count, tree->socket.name);
    for (int32_t i = 0; i < tree->numa_count; i++) {
        fprintf(file, "  NUMA node %" PRId32, i);
        if (tree->memory_bytes_per_s > 0)
            fprintf(file, "  memory %s", rate(text, tree->memory_bytes_per_s));
        fprintf(file, "\n");
        write_hanging(topology, -1, i, 4, file);
    }
}

/* GB/s from row to column, where some pairs are joined. */
static void write_matrix(const struct topology *topology, FILE *file)
{
    const struct host_graph *graph = &topology->graph;
    if (graph->direct == NULL)
        return;
    struct table table = {0};
    table_init(&table, graph->gpus + 1, 1);
    table_row(&table);
    table_cell(&table, "GB/s");
    for (int32_t i = 0; i < graph->gpus; i++)
        table_cell(&table, "GPU %d", (int)i);
    for (int32_t a = 0; a < graph->gpus; a++) {
        table_row(&table);
        table_cell(&table, "GPU %d", (int)a);
        for (int32_t b = 0; b < graph->gpus; b++) {
            const int32_t wire = graph->direct[a * graph->gpus + b];
            if (wire >= 0)
                table_cell(&table, "%.6g", graph->wires[wire].capacity / 1e9);
            else
                table_cell(&table, a == b ? "" : "-");
        }
    }
    fprintf(file, "\nscale-up links\n");
    table_write(&table, file);
    table_release(&table);
}

static void write_fabric(const struct topology *topology, FILE *file)
{
    const struct cluster *cluster = topology->cluster;
    const struct fabric *fabric = &cluster->fabric;
    char text[32];
    if (cluster->nic_count == 0)
        return;
    fprintf(file, "\nfabric%s\n", fabric->has_rails ? "  rails: NIC i of a host on leaf i" : "");
    if (fabric->level_count == 0)
        fprintf(file, "  one switch joins all hosts without loss\n");
    double per_host = (double)cluster->nic_count * cluster->nic_link.bytes_per_s;
    for (int32_t i = 0; i < fabric->level_count; i++) {
        const struct fabric_level *level = &fabric->levels[i];
        per_host /= level->oversubscription;
        fprintf(file, "  %s %" PRId64 " hosts, uplinks %s (%g:1)\n",
                i == 0 ? "leaf of" : "group of", level->hosts,
                rate(text, per_host * (double)level->hosts), level->oversubscription);
    }
    if (fabric->level_count > 0)
        fprintf(file, "  hosts are %s\n",
                fabric->placement == PLACEMENT_PACKED ? "packed: neighbours share a leaf"
                                                      : "spread: neighbours are on other leaves");
    if (fabric->hop_latency_s > 0)
        fprintf(file, "  each switch beyond the first adds %.6g us\n", fabric->hop_latency_s * 1e6);
    if (fabric->source != NULL)
        fprintf(file, "  source: %s\n", fabric->source);
}

static void write_links(const struct topology *topology, FILE *file)
{
    char text[32];
    fprintf(file, "\nlinks\n");
    for (int32_t i = 0; i < topology->link_count; i++) {
        const struct topology_link *link = &topology->links[i];
        fprintf(file, "  %-20s %-22s %11s  %s\n", link->role, link->link->name,
                rate(text, link->link->bytes_per_s),
                link->file != NULL ? link->file : "written in the cluster's file");
        if (link->link->source != NULL)
            fprintf(file, "  %-20s   %s\n", "", link->link->source);
    }
}

void report_topology(const struct topology *topology, FILE *file)
{
    const struct cluster *cluster = topology->cluster;
    fprintf(file, "%s: %" PRId64 " x %s a host", cluster->name, cluster->gpus_per_host,
            cluster->gpu.name);
    if (cluster->nic_count > 0)
        fprintf(file, ", %" PRId64 " x %s", cluster->nic_count, cluster->nic_link.name);
    fprintf(file, ", %s%" PRId64 " host%s; rates are of one direction\n\n",
            cluster->max_hosts > 1 ? "1 to " : "", cluster->max_hosts,
            cluster->max_hosts > 1 ? "s" : "");
    write_host(topology, file);
    write_matrix(topology, file);
    write_fabric(topology, file);
    write_links(topology, file);
    if (cluster->override_count > 0)
        fprintf(file, "\n%" PRId64 " overrides: see the file, or 'fsdpsim check --resolved'\n",
                cluster->override_count);
}
