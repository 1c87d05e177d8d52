/* cluster/host_graph.c: wires of a host and routes over them. */
#include "cluster/host_graph.h"

#include <string.h>

enum { MAX_DEPTH = 64, FAR = 1000 /* another socket: beyond any depth of switches */ };

static const char *const kind_names[RESOURCE_KIND_COUNT] = {
    [RESOURCE_SM] = "SM",
    [RESOURCE_HBM] = "HBM",
    [RESOURCE_COPY_ENGINE] = "copy engine",
    [RESOURCE_SCALE_UP_OUT] = "scale-up out",
    [RESOURCE_SCALE_UP_IN] = "scale-up in",
    [RESOURCE_SCALE_UP_LINK] = "scale-up link",
    [RESOURCE_PCIE_UP] = "PCIe up",
    [RESOURCE_PCIE_DOWN] = "PCIe down",
    [RESOURCE_SOCKET] = "socket link",
    [RESOURCE_HOST_MEMORY] = "host memory",
    [RESOURCE_NIC_OUT] = "NIC out",
    [RESOURCE_NIC_IN] = "NIC in",
    [RESOURCE_FABRIC_UP] = "fabric up",
    [RESOURCE_FABRIC_DOWN] = "fabric down",
};

const char *resource_kind_name(enum resource_kind kind)
{
    return kind_names[kind];
}

struct wire_adder {
    struct arena *arena;
    struct host_graph *graph;
    int32_t capacity;
};

static struct wire *add_wire(struct wire_adder *adder, enum resource_kind kind, const char *name,
                             double capacity)
{
    struct host_graph *graph = adder->graph;
    BUG_IF(graph->wire_count >= adder->capacity);
    struct wire *wire = &graph->wires[graph->wire_count++];
    *wire = (struct wire){.kind = kind,
                          .name = name,
                          .capacity = capacity,
                          .copy_efficiency = 1,
                          .gpu = -1,
                          .nic = -1,
                          .peer = -1};
    return wire;
}

static const char *wire_name(struct wire_adder *adder, enum resource_kind kind, const char *of,
                             const struct link *link)
{
    return arena_printf(adder->arena, "%s%s (%s)", kind_names[kind], of,
                        link->name != NULL ? link->name : "none");
}

/* One wire a GPU or NIC; returns the first. */
static int32_t add_ports(struct wire_adder *adder, enum resource_kind kind, const char *of,
                         const struct link *link, bool is_gpu, int32_t count)
{
    const int32_t first = adder->graph->wire_count;
    const char *name = wire_name(adder, kind, of, link);
    for (int32_t i = 0; i < count; i++) {
        struct wire *wire = add_wire(adder, kind, name, link->bytes_per_s);
        *(is_gpu ? &wire->gpu : &wire->nic) = i;
    }
    return first;
}

static int32_t add_slots(struct wire_adder *adder, enum resource_kind kind, bool is_gpu,
                         int32_t count)
{
    const struct host_tree *tree = &adder->graph->cluster->tree;
    const struct link *link = is_gpu ? &tree->gpu_slot : &tree->pcie;
    const struct pci_slot *slots = is_gpu ? tree->gpus : tree->nics;
    const int32_t first = add_ports(adder, kind, is_gpu ? ", GPU" : ", NIC", link, is_gpu, count);
    for (int32_t i = 0; i < count; i++) {
        struct wire *wire = &adder->graph->wires[first + i];
        wire->copy_efficiency = link->copy_efficiency;
        wire->capacity = slots[i].bytes_per_s * link->copy_efficiency;
    }
    return first;
}

static int32_t add_uplinks(struct wire_adder *adder, enum resource_kind kind)
{
    const struct host_tree *tree = &adder->graph->cluster->tree;
    const int32_t first = adder->graph->wire_count;
    const char *name = wire_name(adder, kind, ", switch", &tree->pcie);
    for (int32_t i = 0; i < tree->switch_count; i++) {
        const double raw = tree->switches[i].uplink_bytes_per_s;
        add_wire(adder, kind, name, raw * tree->pcie.copy_efficiency)->copy_efficiency =
            tree->pcie.copy_efficiency;
    }
    return first;
}

static void add_pcie(struct wire_adder *adder)
{
    struct host_graph *graph = adder->graph;
    const struct host_tree *tree = &graph->cluster->tree;
    graph->gpu_up = add_slots(adder, RESOURCE_PCIE_UP, true, graph->gpus);
    graph->gpu_down = add_slots(adder, RESOURCE_PCIE_DOWN, true, graph->gpus);
    graph->nic_up = add_slots(adder, RESOURCE_PCIE_UP, false, graph->nics);
    graph->nic_down = add_slots(adder, RESOURCE_PCIE_DOWN, false, graph->nics);
    graph->switch_up = add_uplinks(adder, RESOURCE_PCIE_UP);
    graph->switch_down = add_uplinks(adder, RESOURCE_PCIE_DOWN);
    if (tree->numa_count > 1) {
        graph->socket = graph->wire_count;
        const char *name = wire_name(adder, RESOURCE_SOCKET, "", &tree->socket);
        for (int32_t i = 0; i < tree->numa_count * tree->numa_count; i++)
            add_wire(adder, RESOURCE_SOCKET, name, tree->socket.bytes_per_s);
    }
    if (tree->memory_bytes_per_s > 0) {
        graph->memory = graph->wire_count;
        for (int32_t i = 0; i < tree->numa_count; i++)
            add_wire(adder, RESOURCE_HOST_MEMORY, kind_names[RESOURCE_HOST_MEMORY],
                     tree->memory_bytes_per_s);
    }
}

static void add_direct(struct wire_adder *adder)
{
    struct host_graph *graph = adder->graph;
    const struct host_tree *tree = &graph->cluster->tree;
    const int32_t pairs = graph->gpus * graph->gpus;
    graph->direct = ARENA_ARRAY(adder->arena, int32_t, pairs);
    for (int32_t i = 0; i < pairs; i++)
        graph->direct[i] = -1;
    const char *name = wire_name(adder, RESOURCE_SCALE_UP_LINK, "", &graph->cluster->scale_up_link);
    for (int32_t i = 0; i < tree->direct_count; i++) {
        const struct direct_link *link = &tree->direct[i];
        for (int32_t way = 0; way < 2; way++) {
            const int32_t from = way == 0 ? link->a : link->b;
            const int32_t to = way == 0 ? link->b : link->a;
            if (from >= graph->gpus || to >= graph->gpus)
                continue;
            int32_t *known = &graph->direct[from * graph->gpus + to];
            if (*known >= 0) { /* written twice: side by side */
                graph->wires[*known].capacity += link->bytes_per_s;
                continue;
            }
            *known = graph->wire_count;
            struct wire *wire = add_wire(adder, RESOURCE_SCALE_UP_LINK, name, link->bytes_per_s);
            wire->gpu = from;
            wire->peer = to;
        }
    }
}

void host_graph_build(struct arena *arena, const struct cluster *cluster, int64_t hosts,
                      int64_t gpus, struct host_graph *graph)
{
    const struct host_tree *tree = &cluster->tree;
    *graph = (struct host_graph){.cluster = cluster,
                                 .gpus = (int32_t)gpus,
                                 .nics = hosts > 1 ? (int32_t)cluster->nic_count : 0,
                                 .scale_up_out = -1,
                                 .scale_up_in = -1,
                                 .gpu_up = -1,
                                 .gpu_down = -1,
                                 .nic_up = -1,
                                 .nic_down = -1,
                                 .switch_up = -1,
                                 .switch_down = -1,
                                 .socket = -1,
                                 .memory = -1};
    const int32_t numa = tree->numa_count;
    struct wire_adder adder = {.arena = arena,
                               .graph = graph,
                               .capacity = 4 * graph->gpus + 4 * graph->nics +
                                           2 * tree->direct_count + 2 * tree->switch_count +
                                           numa * numa + numa};
    graph->wires = ARENA_ARRAY(arena, struct wire, adder.capacity);
    const bool is_domain = cluster->domain_hosts > 1 && hosts > 1;
    if (cluster->scale_up == SCALE_UP_SWITCH && (gpus > 1 || is_domain)) {
        const struct link *link = &cluster->scale_up_link;
        graph->scale_up_out = add_ports(&adder, RESOURCE_SCALE_UP_OUT, "", link, true, graph->gpus);
        graph->scale_up_in = add_ports(&adder, RESOURCE_SCALE_UP_IN, "", link, true, graph->gpus);
    }
    if (tree->direct_count > 0)
        add_direct(&adder);
    if (tree->has_pcie)
        add_pcie(&adder);
    graph->nic_out =
        add_ports(&adder, RESOURCE_NIC_OUT, "", &cluster->nic_link, false, graph->nics);
    graph->nic_in = add_ports(&adder, RESOURCE_NIC_IN, "", &cluster->nic_link, false, graph->nics);
}

struct wire_loads wire_loads_new(struct arena *arena, const struct host_graph *graph)
{
    return (struct wire_loads){ARENA_ARRAY(arena, double, graph->wire_count + 1),
                               ARENA_ARRAY(arena, double, graph->wire_count + 1)};
}

/* `efficiency`: the share of the raw link that is reached; 0: all its payload. */
static void load_wire(const struct host_graph *graph, const struct wire_loads *loads, int32_t wire,
                      double amount, double efficiency)
{
    loads->per_byte[wire] += amount;
    loads->effort[wire] +=
        efficiency > 0 ? amount * graph->wires[wire].copy_efficiency / efficiency : amount;
}

/* Switches above a slot, nearest first. */
static int32_t chain_of(const struct host_tree *tree, const struct pci_slot *slot,
                        int32_t chain[MAX_DEPTH])
{
    int32_t depth = 0;
    for (int32_t at = slot->on; at >= 0 && depth < MAX_DEPTH; at = tree->switches[at].parent)
        chain[depth++] = at;
    return depth;
}

/* How many switches of each chain lie strictly below the lowest common one; false: only the root
   is common, and all of them count. */
static bool common_switch(const int32_t *a, int32_t *a_count, const int32_t *b, int32_t *b_count)
{
    for (int32_t i = 0; i < *a_count; i++) {
        for (int32_t k = 0; k < *b_count; k++) {
            if (a[i] != b[k])
                continue;
            *a_count = i;
            *b_count = k;
            return true;
        }
    }
    return false;
}

struct pci_way {
    int32_t up[MAX_DEPTH], down[MAX_DEPTH];
    int32_t up_count, down_count;
    bool is_below_switch; /* turns at a switch, not at the root */
    bool crosses_socket;
};

static struct pci_way pci_way_find(const struct host_tree *tree, const struct pci_slot *from,
                                   const struct pci_slot *to)
{
    struct pci_way way = {0};
    way.up_count = chain_of(tree, from, way.up);
    way.down_count = chain_of(tree, to, way.down);
    way.is_below_switch = common_switch(way.up, &way.up_count, way.down, &way.down_count);
    way.crosses_socket = !way.is_below_switch && from->numa != to->numa;
    return way;
}

static void load_socket(const struct host_graph *graph, int32_t from, int32_t to, double amount,
                        const struct wire_loads *loads)
{
    const struct host_tree *tree = &graph->cluster->tree;
    load_wire(graph, loads, graph->socket + from * tree->numa_count + to, amount,
              tree->socket.ring_efficiency);
}

/* Between slots over PCIe; `through_host`: written to the memory of the receiver's node and read.
 */
static void load_pcie(const struct host_graph *graph, const struct pci_slot *from,
                      const struct pci_slot *to, bool through_host, double amount,
                      double efficiency, const struct wire_loads *loads, int32_t first_wire,
                      int32_t last_wire)
{
    const struct host_tree *tree = &graph->cluster->tree;
    struct pci_way way = pci_way_find(tree, from, to);
    if (through_host) {
        way.up_count = chain_of(tree, from, way.up);
        way.down_count = chain_of(tree, to, way.down);
        way.crosses_socket = from->numa != to->numa;
        if (graph->memory >= 0)
            load_wire(graph, loads, graph->memory + to->numa, 2 * amount, 0);
    }
    /* What the kernel of a card loses on staged copies does not narrow the uplinks. */
    const double passing = through_host ? 0 : efficiency;
    load_wire(graph, loads, first_wire, amount, efficiency);
    for (int32_t i = 0; i < way.up_count; i++)
        load_wire(graph, loads, graph->switch_up + way.up[i], amount, passing);
    if (way.crosses_socket)
        load_socket(graph, from->numa, to->numa, amount, loads);
    for (int32_t i = 0; i < way.down_count; i++)
        load_wire(graph, loads, graph->switch_down + way.down[i], amount, passing);
    load_wire(graph, loads, last_wire, amount, efficiency);
}

static bool is_staged(const struct host_tree *tree, const struct pci_way *way)
{
    return tree->p2p == P2P_HOST || (tree->p2p == P2P_SWITCH && !way->is_below_switch);
}

static void hop_pcie(const struct host_graph *graph, int32_t a, int32_t b, double amount,
                     const struct wire_loads *loads, struct hop_counts *hops)
{
    const struct host_tree *tree = &graph->cluster->tree;
    const struct pci_slot *from = &tree->gpus[a];
    const struct pci_slot *to = &tree->gpus[b];
    const struct pci_way way = pci_way_find(tree, from, to);
    const bool through_host = is_staged(tree, &way);
    const struct link *link = through_host ? &tree->staged : &tree->pcie;
    load_pcie(graph, from, to, through_host, amount, link->ring_efficiency, loads,
              graph->gpu_up + a, graph->gpu_down + b);
    *(through_host ? &hops->host_memory : &hops->pcie) += 1;
    hops->socket += from->numa != to->numa && !way.is_below_switch ? 1 : 0;
}

/* Breadth first over direct links: the GPU before each on the shortest way from `a`. */
static bool find_relays(const struct host_graph *graph, int32_t a, int32_t b, int32_t *before)
{
    struct arena scratch = {0};
    int32_t *queue = ARENA_ARRAY(&scratch, int32_t, graph->gpus);
    int32_t head = 0;
    int32_t tail = 0;
    for (int32_t i = 0; i < graph->gpus; i++)
        before[i] = -1;
    before[a] = a;
    queue[tail++] = a;
    while (head < tail && before[b] < 0) {
        const int32_t at = queue[head++];
        for (int32_t next = 0; next < graph->gpus; next++) {
            if (before[next] >= 0 || graph->direct[at * graph->gpus + next] < 0)
                continue;
            before[next] = at;
            queue[tail++] = next;
        }
    }
    arena_release(&scratch);
    return before[b] >= 0;
}

static void hop_relayed(const struct host_graph *graph, int32_t a, int32_t b, double amount,
                        const struct wire_loads *loads, struct hop_counts *hops)
{
    struct arena scratch = {0};
    int32_t *before = ARENA_ARRAY(&scratch, int32_t, graph->gpus);
    if (graph->direct != NULL && find_relays(graph, a, b, before)) {
        for (int32_t at = b; at != a; at = before[at]) {
            load_wire(graph, loads, graph->direct[before[at] * graph->gpus + at], amount,
                      graph->cluster->scale_up_link.ring_efficiency);
            hops->scale_up += 1;
        }
    }
    arena_release(&scratch);
}

void host_graph_hop(const struct host_graph *graph, int32_t a, int32_t b, double amount,
                    const struct wire_loads *loads, struct hop_counts *hops)
{
    const double efficiency = graph->cluster->scale_up_link.ring_efficiency;
    if (graph->scale_up_out >= 0) {
        load_wire(graph, loads, graph->scale_up_out + a, amount, efficiency);
        load_wire(graph, loads, graph->scale_up_in + b, amount, efficiency);
        hops->scale_up += 1;
    } else if (graph->direct != NULL && graph->direct[a * graph->gpus + b] >= 0) {
        load_wire(graph, loads, graph->direct[a * graph->gpus + b], amount, efficiency);
        hops->scale_up += 1;
    } else if (graph->gpu_up >= 0) {
        hop_pcie(graph, a, b, amount, loads, hops);
    } else {
        hop_relayed(graph, a, b, amount, loads, hops);
    }
}

static int32_t slot_distance(const struct host_tree *tree, const struct pci_slot *a,
                             const struct pci_slot *b)
{
    const struct pci_way way = pci_way_find(tree, a, b);
    return 1 + way.up_count + way.down_count + (way.is_below_switch ? 0 : MAX_DEPTH) +
           (way.crosses_socket ? FAR : 0);
}

int32_t host_graph_distance(const struct host_graph *graph, int32_t a, int32_t b)
{
    if (graph->scale_up_out >= 0 ||
        (graph->direct != NULL && graph->direct[a * graph->gpus + b] >= 0))
        return 0;
    const struct host_tree *tree = &graph->cluster->tree;
    return graph->gpu_up >= 0 ? slot_distance(tree, &tree->gpus[a], &tree->gpus[b]) : 1;
}

static bool is_joined(const struct host_graph *graph, int32_t a, int32_t b)
{
    return graph->scale_up_out >= 0 ||
           (graph->direct != NULL && graph->direct[a * graph->gpus + b] >= 0);
}

/* The GPU next to the NIC that `gpu` reaches over scale-up links, where its own way is far. */
static int32_t proxy_of(const struct host_graph *graph, int32_t gpu, int32_t nic)
{
    const struct host_tree *tree = &graph->cluster->tree;
    int32_t nearest = slot_distance(tree, &tree->gpus[gpu], &tree->nics[nic]);
    if (nearest < FAR)
        return gpu;
    int32_t proxy = gpu;
    for (int32_t i = 0; i < graph->gpus; i++) {
        const int32_t distance = slot_distance(tree, &tree->gpus[i], &tree->nics[nic]);
        if (distance >= nearest || !is_joined(graph, gpu, i))
            continue;
        nearest = distance;
        proxy = i;
    }
    return proxy;
}

void host_graph_network(const struct host_graph *graph, int32_t gpu, int32_t nic, double amount,
                        bool is_out, const struct wire_loads *loads)
{
    const double nic_efficiency = graph->cluster->nic_link.ring_efficiency;
    load_wire(graph, loads, (is_out ? graph->nic_out : graph->nic_in) + nic, amount,
              nic_efficiency);
    if (graph->gpu_up < 0)
        return;
    const struct host_tree *tree = &graph->cluster->tree;
    const int32_t proxy = proxy_of(graph, gpu, nic);
    struct hop_counts ignored = {0};
    if (proxy != gpu)
        host_graph_hop(graph, is_out ? gpu : proxy, is_out ? proxy : gpu, amount, loads, &ignored);
    const bool through_host = tree->p2p == P2P_HOST;
    if (is_out)
        load_pcie(graph, &tree->gpus[proxy], &tree->nics[nic], through_host, amount, 0, loads,
                  graph->gpu_up + proxy, graph->nic_down + nic);
    else
        load_pcie(graph, &tree->nics[nic], &tree->gpus[proxy], through_host, amount, 0, loads,
                  graph->nic_up + nic, graph->gpu_down + proxy);
}

void host_graph_copy(const struct host_graph *graph, int32_t gpu, double amount, bool is_to_gpu,
                     const struct wire_loads *loads)
{
    if (graph->gpu_up < 0)
        return;
    const struct host_tree *tree = &graph->cluster->tree;
    const struct pci_slot *slot = &tree->gpus[gpu];
    int32_t chain[MAX_DEPTH];
    const int32_t depth = chain_of(tree, slot, chain);
    load_wire(graph, loads, (is_to_gpu ? graph->gpu_down : graph->gpu_up) + gpu, amount, 0);
    for (int32_t i = 0; i < depth; i++)
        load_wire(graph, loads, (is_to_gpu ? graph->switch_down : graph->switch_up) + chain[i],
                  amount, 0);
    if (graph->memory >= 0)
        load_wire(graph, loads, graph->memory + slot->numa, amount, 0);
}

/* n things shared out over g: whether thing `nic` is of member `gpu`. */
static bool is_proportional(int32_t gpu, int32_t gpus, int32_t nic, int32_t nics)
{
    const int64_t g = gpus;
    const int64_t n = nics;
    return n >= g ? nic * g / n == gpu : gpu * n / g == nic;
}

/* Of the GPUs from `first` on whose nearest NICs are the same, each takes its share of them. */
static void attach_alike(const bool *nearest, int32_t first, int32_t gpus, int32_t nics,
                         int32_t stride, bool *is_done, bool *attached)
{
    const size_t row_bytes = (size_t)nics * sizeof(bool);
    const bool *set = &nearest[(ptrdiff_t)first * nics];
    int32_t members = 0;
    int32_t near = 0;
    for (int32_t i = first; i < gpus; i++)
        members +=
            !is_done[i] && memcmp(&nearest[(ptrdiff_t)i * nics], set, row_bytes) == 0 ? 1 : 0;
    for (int32_t k = 0; k < nics; k++)
        near += set[k] ? 1 : 0;
    int32_t member = 0;
    for (int32_t i = first; i < gpus; i++) {
        if (is_done[i] || memcmp(&nearest[(ptrdiff_t)i * nics], set, row_bytes) != 0)
            continue;
        int32_t idx = 0;
        for (int32_t k = 0; k < nics; k++) {
            if (!set[k])
                continue;
            attached[i * stride + k] = is_proportional(member, members, idx++, near);
        }
        is_done[i] = true;
        member++;
    }
}

/* Without a tree, or where NICs are dealt out, none is nearer than another. */
static int32_t nic_distance(const struct host_tree *tree, int32_t gpu, int32_t nic)
{
    const bool is_known = tree->has_pcie && !tree->is_dealt;
    return is_known ? slot_distance(tree, &tree->gpus[gpu], &tree->nics[nic]) : 0;
}

static void find_nearest(const struct host_tree *tree, int32_t gpus, int32_t nics, bool *nearest)
{
    for (int32_t i = 0; i < gpus; i++) {
        int32_t least = INT32_MAX;
        for (int32_t pass = 0; pass < 2; pass++) {
            for (int32_t k = 0; k < nics; k++) {
                const int32_t distance = nic_distance(tree, i, k);
                least = pass == 0 && distance < least ? distance : least;
                nearest[i * nics + k] = distance <= least;
            }
        }
    }
}

/* A NIC that is no GPU's nearest is the GPU's that is nearest to it. */
static void attach_lonely(const struct host_tree *tree, int32_t gpus, int32_t nics, int32_t stride,
                          bool *attached)
{
    for (int32_t k = 0; k < nics; k++) {
        int32_t owner = -1;
        int32_t least = INT32_MAX;
        bool is_owned = false;
        for (int32_t i = 0; i < gpus; i++) {
            const int32_t distance = nic_distance(tree, i, k);
            is_owned |= attached[i * stride + k];
            owner = distance < least ? i : owner;
            least = distance < least ? distance : least;
        }
        if (!is_owned && owner >= 0)
            attached[owner * stride + k] = true;
    }
}

bool *host_graph_attach(struct arena *arena, const struct host_graph *graph, int32_t nics)
{
    const struct cluster *cluster = graph->cluster;
    const int32_t gpus = (int32_t)cluster->gpus_per_host;
    bool *attached = ARENA_ARRAY(arena, bool, gpus * graph->nics + 1);
    if (nics == 0)
        return attached;
    struct arena scratch = {0};
    bool *nearest = ARENA_ARRAY(&scratch, bool, gpus *nics);
    bool *is_done = ARENA_ARRAY(&scratch, bool, gpus);
    find_nearest(&cluster->tree, gpus, nics, nearest);
    for (int32_t i = 0; i < gpus; i++)
        if (!is_done[i])
            attach_alike(nearest, i, gpus, nics, graph->nics, is_done, attached);
    attach_lonely(&cluster->tree, gpus, nics, graph->nics, attached);
    arena_release(&scratch);
    return attached;
}
