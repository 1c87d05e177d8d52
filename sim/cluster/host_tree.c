/* cluster/host_tree.c: from `host.pcie`, `host.numa`, `host.scale_up.links` to the tree. */
#include "cluster/host_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cluster/cluster_config.h"

enum { SLOT_LANES = 16 };

struct tree_builder {
    struct arena *arena;
    struct config *config;
    const char *path; /* of the host */
    const struct host_config *host;
    struct host_tree *tree;
    bool *has_gpu, *has_nic; /* placed already */
    /* Counts that -s gives for a tree of a file: what the tree names and is not there is left out.
     */
    bool is_recounted;
};

struct link link_from(const struct link_config *from)
{
    return (struct link){.name = from->name,
                         .bytes_per_s = from->bytes_per_s,
                         .step_latency_s = from->step_latency_s,
                         .ring_efficiency = from->ring_efficiency,
                         .copy_efficiency = from->copy_efficiency,
                         .ll = from->ll,
                         .ll128 = from->ll128,
                         .pipelined_latency_s = from->pipelined_latency_s,
                         .tree_efficiency = from->tree_efficiency,
                         .nvls_efficiency = from->nvls_efficiency,
                         .congestion = from->congestion,
                         .channels = from->channels,
                         .source = from->sources.bandwidth};
}

static bool parse_index(const char *text, size_t length, int64_t *value)
{
    *value = 0;
    if (length == 0 || length > 6)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *value = *value * 10 + (text[i] - '0');
    }
    return true;
}

/* "3" or "0-1": first and last, both below `count`. */
static bool parse_range(struct tree_builder *builder, const char *path, const char *text,
                        const char *what, int64_t count, int64_t *first, int64_t *last)
{
    const char *dash = strchr(text, '-');
    const size_t length = dash == NULL ? strlen(text) : (size_t)(dash - text);
    bool is_good = parse_index(text, length, first);
    *last = *first;
    if (is_good && dash != NULL)
        is_good = parse_index(dash + 1, strlen(dash + 1), last);
    if (!is_good || *last < *first) {
        config_error(builder->config, path, "a number from 0, or a range: 0-3", "'%s' names no %ss",
                     text, what);
        return false;
    }
    if (*last >= count && builder->is_recounted) {
        *last = count - 1;
        return *first <= *last;
    }
    if (*last >= count) {
        config_error(builder->config, path, NULL, "%s %lld, but a host has %lld (counted from 0)",
                     what, (long long)*last, (long long)count);
        return false;
    }
    return true;
}

static void place_slots(struct tree_builder *builder, const char *path,
                        const struct config_list *list, const char *what, int64_t count,
                        struct pci_slot slot, struct pci_slot *slots, bool *is_placed)
{
    const char *const *texts = list->items;
    for (int64_t i = 0; i < list->count; i++) {
        int64_t first;
        int64_t last;
        if (!parse_range(builder, path, texts[i], what, count, &first, &last))
            continue;
        for (int64_t k = first; k <= last; k++) {
            if (is_placed[k])
                config_error(builder->config, path, NULL, "%s %lld hangs in two places", what,
                             (long long)k);
            is_placed[k] = true;
            slots[k] = slot;
        }
    }
}

/* PCIe links have 1, 2, 4, 8, 12, 16 or 32 lanes. */
static void check_lanes(struct tree_builder *builder, const char *path, const char *key,
                        int64_t lanes)
{
    const bool is_power_of_2 = lanes > 0 && (lanes & (lanes - 1)) == 0;
    if (!is_power_of_2 && lanes != 12)
        config_error(builder->config, arena_printf(builder->config->arena, "%s.%s", path, key),
                     "accepted: 1, 2, 4, 8, 12, 16, 32", "no PCIe link has %lld lanes",
                     (long long)lanes);
}

static void place_hanging(struct tree_builder *builder, const char *path,
                          const struct hanging_config *from, int32_t on)
{
    struct host_tree *tree = builder->tree;
    struct arena *arena = builder->config->arena;
    if (from->numa >= tree->numa_count)
        config_error(builder->config, arena_printf(arena, "%s.numa", path),
                     "'numa: {count: …, link: …}' of the host says how many there are",
                     "NUMA node %lld, but the host has %d (counted from 0)", (long long)from->numa,
                     (int)tree->numa_count);
    const int32_t numa = on >= 0 ? tree->switches[on].numa : (int32_t)from->numa;
    check_lanes(builder, path, "gpu_lanes", from->gpu_lanes);
    check_lanes(builder, path, "nic_lanes", from->nic_lanes);
    const double gpu = tree->gpu_slot.bytes_per_s * (double)from->gpu_lanes / SLOT_LANES;
    const double nic = tree->pcie.bytes_per_s * (double)from->nic_lanes / SLOT_LANES;
    place_slots(builder, arena_printf(arena, "%s.gpus", path), &from->gpus, "GPU",
                builder->host->gpus, (struct pci_slot){on, numa, gpu}, tree->gpus,
                builder->has_gpu);
    place_slots(builder, arena_printf(arena, "%s.nics", path), &from->nics, "NIC",
                builder->host->nics.count, (struct pci_slot){on, numa, nic}, tree->nics,
                builder->has_nic);
}

static int32_t switch_find(const struct host_tree *tree, const char *name)
{
    for (int32_t i = 0; i < tree->switch_count; i++)
        if (tree->switches[i].name != NULL && text_equal(tree->switches[i].name, name))
            return i;
    return -1;
}

/* A parent stands above its children in the list, so there are no circles. */
static void add_switch(struct tree_builder *builder, int64_t idx)
{
    struct host_tree *tree = builder->tree;
    const struct hanging_config *from =
        &((const struct hanging_config *)builder->host->pcie.switches.items)[idx];
    struct arena *arena = builder->config->arena;
    const char *path = arena_printf(arena, "%s.pcie.switches[%lld]", builder->path, (long long)idx);
    if (from->name != NULL && switch_find(tree, from->name) >= 0)
        config_error(builder->config, arena_printf(arena, "%s.name", path), NULL,
                     "two switches are named '%s'", from->name);
    int32_t parent = -1;
    if (from->parent != NULL) {
        parent = switch_find(tree, from->parent);
        if (parent < 0)
            config_error(builder->config, arena_printf(arena, "%s.parent", path),
                         "a parent stands above its children in the list",
                         "no switch of the name '%s' above", from->parent);
    }
    check_lanes(builder, path, "uplink_lanes", from->uplink_lanes);
    double uplink = tree->pcie.bytes_per_s * (double)from->uplink_lanes / SLOT_LANES;
    tree->switches[tree->switch_count] = (struct pci_switch){
        .name = from->name != NULL ? from->name
                                   : arena_printf(builder->arena, "switch %lld", (long long)idx),
        .parent = parent,
        .numa = parent >= 0 ? tree->switches[parent].numa : (int32_t)from->numa,
        .uplink_bytes_per_s = from->uplink_bytes_per_s > 0 ? from->uplink_bytes_per_s : uplink};
    place_hanging(builder, path, from, tree->switch_count++);
}

static const char *source_of(const struct tree_builder *builder, const char *key)
{
    const struct place place = config_place(
        builder->config, arena_printf(builder->config->arena, "%s.%s", builder->path, key));
    return place.source != NULL ? place.source->name : "";
}

static bool is_given_apart(const struct tree_builder *builder, const char *key)
{
    static const char command_line[] = "<command line>";
    return text_equal(source_of(builder, key), command_line) &&
           !text_equal(source_of(builder, "pcie.link"), command_line);
}

/* NIC j beside GPU ⌊j·g/n⌋, or beside the first of its GPUs, whatever the tree says. */
static void deal_nics(struct tree_builder *builder)
{
    struct host_tree *tree = builder->tree;
    const int64_t gpus = builder->host->gpus;
    const int64_t nics = builder->host->nics.count;
    tree->is_dealt = true;
    for (int64_t i = 0; i < nics; i++) {
        const int64_t gpu = nics >= gpus ? i * gpus / nics : (i * gpus + nics - 1) / nics;
        tree->nics[i] =
            (struct pci_slot){tree->gpus[gpu].on, tree->gpus[gpu].numa, tree->pcie.bytes_per_s};
    }
}

static void spread_rest(const bool *is_placed, int64_t count, int32_t numa_count,
                        double bytes_per_s, struct pci_slot *slots)
{
    for (int64_t i = 0; i < count; i++)
        if (!is_placed[i])
            slots[i] = (struct pci_slot){-1, (int32_t)(i * numa_count / count), bytes_per_s};
}

static void build_pcie(struct tree_builder *builder)
{
    const struct pcie_config *pcie = &builder->host->pcie;
    struct host_tree *tree = builder->tree;
    const int64_t gpus = builder->host->gpus;
    const int64_t nics = builder->host->nics.count;
    tree->has_pcie = true;
    tree->p2p = (enum p2p)pcie->p2p;
    tree->pcie = link_from(&pcie->link);
    tree->gpu_slot = pcie->gpu_link.bytes_per_s > 0 ? link_from(&pcie->gpu_link) : tree->pcie;
    tree->staged = pcie->staged.bytes_per_s > 0 ? link_from(&pcie->staged) : tree->pcie;
    tree->switches = ARENA_ARRAY(builder->arena, struct pci_switch, pcie->switches.count);
    tree->gpus = ARENA_ARRAY(builder->arena, struct pci_slot, gpus);
    tree->nics = ARENA_ARRAY(builder->arena, struct pci_slot, nics);
    builder->has_gpu = ARENA_ARRAY(builder->arena, bool, gpus);
    builder->has_nic = ARENA_ARRAY(builder->arena, bool, nics);
    builder->is_recounted =
        is_given_apart(builder, "nics.count") || is_given_apart(builder, "gpus");
    for (int64_t i = 0; i < pcie->switches.count; i++)
        add_switch(builder, i);
    const struct hanging_config *roots = pcie->roots.items;
    for (int64_t i = 0; i < pcie->roots.count; i++)
        place_hanging(builder,
                      arena_printf(builder->config->arena, "%s.pcie.roots[%lld]", builder->path,
                                   (long long)i),
                      &roots[i], -1);
    spread_rest(builder->has_gpu, gpus, tree->numa_count, tree->gpu_slot.bytes_per_s, tree->gpus);
    spread_rest(builder->has_nic, nics, tree->numa_count, tree->pcie.bytes_per_s, tree->nics);
    if (builder->is_recounted)
        deal_nics(builder);
}

/* Two texts of one GPU each, or one range of two. */
static bool parse_pair(struct tree_builder *builder, const char *path,
                       const struct config_list *list, struct direct_link *direct)
{
    const char *const *texts = list->items;
    int64_t found[2] = {0, 0};
    int32_t count = 0;
    for (int64_t i = 0; i < list->count; i++) {
        int64_t first;
        int64_t last;
        if (!parse_range(builder, path, texts[i], "GPU", builder->host->gpus, &first, &last))
            return false;
        for (int64_t k = first; k <= last; k++) {
            if (count < 2)
                found[count] = k;
            count++;
        }
    }
    if (count != 2 || found[0] == found[1]) {
        config_error(builder->config, path, "two different ones: [0, 3], or 0-1",
                     "a link joins two GPUs");
        return false;
    }
    direct->a = (int32_t)found[0];
    direct->b = (int32_t)found[1];
    return true;
}

static bool is_pair_known(const struct host_tree *tree, const struct direct_link *pair)
{
    for (int32_t i = 0; i < tree->direct_count; i++) {
        const struct direct_link *one = &tree->direct[i];
        if ((one->a == pair->a && one->b == pair->b) || (one->a == pair->b && one->b == pair->a))
            return true;
    }
    return false;
}

/* The links of a GPU share its port, so together they are not faster than it. */
static void check_ports(struct tree_builder *builder, double port_bytes_per_s)
{
    const double rounding = 1e-6;
    double *sums = ARENA_ARRAY(builder->arena, double, builder->host->gpus);
    for (int32_t i = 0; i < builder->tree->direct_count; i++) {
        const struct direct_link *direct = &builder->tree->direct[i];
        sums[direct->a] += direct->bytes_per_s;
        sums[direct->b] += direct->bytes_per_s;
    }
    for (int32_t gpu = 0; gpu < builder->host->gpus; gpu++) {
        if (sums[gpu] <= port_bytes_per_s * (1 + rounding))
            continue;
        char sum[32];
        char port[32];
        format_bandwidth(sum, sizeof(sum), sums[gpu]);
        format_bandwidth(port, sizeof(port), port_bytes_per_s);
        config_error(builder->config,
                     arena_printf(builder->config->arena, "%s.scale_up.links", builder->path),
                     "'link' and 'bandwidth' of 'scale_up' are of the whole port of a GPU",
                     "the links of GPU %d add up to %s, but its port has %s", (int)gpu, sum, port);
        return;
    }
}

static void build_links(struct tree_builder *builder, double port_bytes_per_s)
{
    const struct config_list *list = &builder->host->scale_up.links;
    const struct direct_config *from = list->items;
    struct host_tree *tree = builder->tree;
    tree->direct = ARENA_ARRAY(builder->arena, struct direct_link, list->count);
    int64_t *links = ARENA_ARRAY(builder->arena, int64_t, builder->host->gpus);
    int64_t *counts = ARENA_ARRAY(builder->arena, int64_t, list->count);
    int64_t most = 1;
    for (int64_t i = 0; i < list->count; i++) {
        const char *path = arena_printf(builder->config->arena, "%s.scale_up.links[%lld].gpus",
                                        builder->path, (long long)i);
        struct direct_link *direct = &tree->direct[tree->direct_count];
        if (!parse_pair(builder, path, &from[i].gpus, direct))
            continue;
        if (is_pair_known(tree, direct)) {
            config_error(builder->config, path, "once, with the 'count' of all its links",
                         "GPUs %d and %d are joined twice", (int)direct->a, (int)direct->b);
            continue;
        }
        direct->bytes_per_s = from[i].bytes_per_s;
        counts[tree->direct_count++] = from[i].count;
        links[direct->a] += from[i].count;
        links[direct->b] += from[i].count;
        most = links[direct->a] > most ? links[direct->a] : most;
        most = links[direct->b] > most ? links[direct->b] : most;
    }
    for (int32_t i = 0; i < tree->direct_count; i++)
        if (!(tree->direct[i].bytes_per_s > 0))
            tree->direct[i].bytes_per_s = port_bytes_per_s * (double)counts[i] / (double)most;
    check_ports(builder, port_bytes_per_s);
}

static void build_mesh(struct tree_builder *builder, double port_bytes_per_s)
{
    struct host_tree *tree = builder->tree;
    const int64_t gpus = builder->host->gpus;
    tree->direct = ARENA_ARRAY(builder->arena, struct direct_link, gpus * (gpus - 1) / 2);
    for (int32_t a = 0; a < gpus; a++)
        for (int32_t b = a + 1; b < gpus; b++)
            tree->direct[tree->direct_count++] =
                (struct direct_link){a, b, port_bytes_per_s / (double)(gpus - 1)};
}

enum status host_tree_build(struct arena *arena, struct config *config, const char *path,
                            const struct host_config *host, double port_bytes_per_s,
                            struct host_tree *tree)
{
    const int32_t before = config->diag->error_count;
    const bool has_scale_up = host->scale_up.link.bytes_per_s > 0;
    *tree = (struct host_tree){.numa_count = host->numa.count > 0 ? (int32_t)host->numa.count : 1,
                               .socket = link_from(&host->numa.link),
                               .memory_bytes_per_s = host->numa.memory_bytes_per_s};
    struct tree_builder builder = {
        .arena = arena, .config = config, .path = path, .host = host, .tree = tree};
    if (has_scale_up && host->scale_up.kind == SCALE_UP_LINKS)
        build_links(&builder, port_bytes_per_s);
    else if (has_scale_up && host->scale_up.kind == SCALE_UP_MESH)
        build_mesh(&builder, port_bytes_per_s);
    if (host->scale_up.links.count > 0 && host->scale_up.kind != SCALE_UP_LINKS)
        config_error(config, arena_printf(config->arena, "%s.scale_up.links", path),
                     "write 'kind: links'", "'links' belong to kind 'links'");
    if (host->scale_up.domain_hosts > 1 && host->scale_up.kind != SCALE_UP_SWITCH)
        config_error(config, arena_printf(config->arena, "%s.scale_up.domain_hosts", path), NULL,
                     "only a switch joins the GPUs of several hosts");
    if (host->pcie.link.bytes_per_s > 0)
        build_pcie(&builder);
    return config->diag->error_count > before ? STATUS_INPUT : STATUS_OK;
}
