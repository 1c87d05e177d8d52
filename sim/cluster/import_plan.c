/*
 * cluster/import_plan.c: from devices and bridges to what a cluster file says: switches with what
 * hangs on them, root ports, NUMA nodes from 0.
 *
 * A bridge with one thing below it is part of the way to that thing (a port, a retimer, one level
 * of a switch that is two PCI devices): the slowest on the way counts. One with several is a
 * switch. Rates become lanes of the host's PCIe link, the generation of the fastest GPU slot: 16
 * GT/s x8 is 4 lanes of 32 GT/s.
 *
 *   8 GT/s [ 8 GT/s [ GPU ] , NIC ]  →  one switch with an uplink of 8 GT/s, GPU and NIC below
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/import_private.h"

struct planner {
    struct machine_graph *graph;
    const struct import_tables *tables;
    struct machine_plan *plan;
    int32_t *branches;  /* by bridge: how many things hang directly on it */
    int32_t *as_switch; /* by bridge: the switch that it is, NO_ITEM: none */
    int32_t *as_numa;   /* by CPU */
};

/* ---- NUMA nodes --------------------------------------------------------------------------- */

struct numa_order {
    int64_t id;
    int32_t cpu;
};

static int compare_numa(const void *left, const void *right)
{
    const struct numa_order *a = left;
    const struct numa_order *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

/* Those of the host that the GPUs are of, in the order of the file's numbers. */
static void number_cpus(struct planner *planner)
{
    struct machine_graph *graph = planner->graph;
    const int32_t count = graph->cpus.count;
    const char *host = graph->cpus.items[graph->gpus.items[0].pci.cpu].host;
    struct numa_order *order = ARENA_ARRAY(graph->arena, struct numa_order, count);
    int64_t *ids = ARENA_ARRAY(graph->arena, int64_t, count);
    int32_t kept = 0;
    planner->as_numa = ARENA_ARRAY(graph->arena, int32_t, count);
    for (int32_t k = 0; k < count; k++) {
        if (strcmp(graph->cpus.items[k].host, host) == 0)
            order[kept++] = (struct numa_order){graph->cpus.items[k].numa, k};
    }
    qsort(order, (size_t)kept, sizeof(*order), compare_numa);
    for (int32_t k = 0; k < kept; k++) {
        planner->as_numa[order[k].cpu] = k < MAX_IMPORTED_CPUS ? k : MAX_IMPORTED_CPUS - 1;
        ids[k] = order[k].id;
    }
    planner->plan->numa_count = kept < MAX_IMPORTED_CPUS ? kept : MAX_IMPORTED_CPUS;
    planner->plan->numa_ids = ids;
    if (kept > MAX_IMPORTED_CPUS)
        graph_note(graph, ABOUT_NUMA, NOTE_DROPPED, NULL, "NUMA nodes beyond %d",
                   (int)MAX_IMPORTED_CPUS);
}

/* ---- switches ----------------------------------------------------------------------------- */

static double rate_of(const struct planner *planner, struct pcie_speed speed)
{
    return import_pcie_row(planner->tables, speed.gt_per_s)->lane_bytes_per_s * speed.width;
}

/* From `*at` up to the next switch, which it becomes (NO_ITEM: the CPU): the slowest on the way. */
static double climb(const struct planner *planner, int32_t *at, double rate)
{
    while (*at != NO_ITEM && planner->branches[*at] < 2) {
        const struct pci_device *bridge = &planner->graph->bridges.items[*at];
        const double one = rate_of(planner, bridge->speed);
        rate = one < rate ? one : rate;
        *at = bridge->bridge;
    }
    return rate;
}

static int32_t lanes_of(const struct planner *planner, double rate)
{
    enum { MOST_LANES = 32 };
    const double lanes = rate / planner->plan->pcie->lane_bytes_per_s;
    if (lanes < 1)
        return 1;
    return lanes > MOST_LANES ? MOST_LANES : (int32_t)(lanes + 0.5);
}

/* Things directly on each bridge: devices, and bridges that lead to some. */
static void count_branches(struct planner *planner)
{
    struct machine_graph *graph = planner->graph;
    planner->branches = ARENA_ARRAY(graph->arena, int32_t, graph->bridges.count);
    for (int32_t k = 0; k < graph->gpus.count; k++) {
        if (graph->gpus.items[k].pci.bridge != NO_ITEM)
            planner->branches[graph->gpus.items[k].pci.bridge]++;
    }
    for (int32_t k = 0; k < graph->nics.count; k++) {
        if (graph->nics.items[k].pci.bridge != NO_ITEM)
            planner->branches[graph->nics.items[k].pci.bridge]++;
    }
    /* Parents stand before children, so children are complete first from the back. */
    for (int32_t k = graph->bridges.count - 1; k >= 0; k--) {
        if (planner->branches[k] > 0 && graph->bridges.items[k].bridge != NO_ITEM)
            planner->branches[graph->bridges.items[k].bridge]++;
    }
}

static void find_switches(struct planner *planner)
{
    struct machine_graph *graph = planner->graph;
    struct machine_plan *plan = planner->plan;
    planner->as_switch = ARENA_ARRAY(graph->arena, int32_t, graph->bridges.count);
    plan->switches = ARENA_ARRAY(graph->arena, struct plan_switch, graph->bridges.count);
    for (int32_t k = 0; k < graph->bridges.count; k++) {
        const struct pci_device *bridge = &graph->bridges.items[k];
        planner->as_switch[k] = NO_ITEM;
        if (planner->branches[k] < 2)
            continue;
        int32_t above = bridge->bridge;
        const double rate = climb(planner, &above, rate_of(planner, bridge->speed));
        planner->as_switch[k] = plan->switch_count;
        plan->switches[plan->switch_count++] =
            (struct plan_switch){.busid = bridge->busid,
                                 .parent = above == NO_ITEM ? NO_ITEM : planner->as_switch[above],
                                 .numa = planner->as_numa[bridge->cpu],
                                 .uplink_lanes = lanes_of(planner, rate)};
    }
}

static struct plan_slot place(const struct planner *planner, const struct pci_device *pci)
{
    int32_t at = pci->bridge;
    const double rate = climb(planner, &at, rate_of(planner, pci->speed));
    return (struct plan_slot){.group = at == NO_ITEM ? NO_ITEM : planner->as_switch[at],
                              .numa = pci->is_anywhere ? NO_ITEM : planner->as_numa[pci->cpu],
                              .lanes = lanes_of(planner, rate)};
}

/* The link of the fastest slot of a GPU that the catalog has. */
static const struct pcie_row *host_link(const struct planner *planner)
{
    const struct machine_graph *graph = planner->graph;
    double fastest = 0;
    const struct pcie_row *found = NULL;
    for (int32_t k = 0; k < graph->gpus.count; k++) {
        const double one = graph->gpus.items[k].pci.speed.gt_per_s;
        fastest = one > fastest ? one : fastest;
    }
    for (int32_t k = 0; k < planner->tables->pcie_count; k++) {
        const struct pcie_row *row = &planner->tables->pcie[k];
        if (row->link[0] == '\0')
            continue;
        if (found == NULL || (row->gt_per_s <= fastest && row->gt_per_s > found->gt_per_s))
            found = row;
    }
    return found;
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* An entry of the file has one width for its GPUs and one for its NICs: the smallest. */
static void even_out(struct planner *planner, struct plan_slot *slots, int32_t count,
                     const char *what)
{
    for (int32_t k = 0; k < count; k++) {
        for (int32_t j = 0; j < count; j++) {
            if (slots[k].group == NO_ITEM || slots[j].group != slots[k].group ||
                slots[j].lanes >= slots[k].lanes)
                continue;
            graph_note(planner->graph, ABOUT_PCIE, NOTE_ASSUMED, NULL,
                       "slots of %d and %d lanes for %s of one switch: the smaller for all",
                       (int)slots[j].lanes, (int)slots[k].lanes, what);
            slots[k].lanes = slots[j].lanes;
        }
    }
}

void machine_plan_build(struct machine_graph *graph, const struct import_tables *tables,
                        struct machine_plan *plan)
{
    struct planner planner = {.graph = graph, .tables = tables, .plan = plan};
    *plan = (struct machine_plan){0};
    plan->pcie = host_link(&planner);
    number_cpus(&planner);
    count_branches(&planner);
    find_switches(&planner);
    plan->gpus = ARENA_ARRAY(graph->arena, struct plan_slot, graph->gpus.count);
    plan->nics = ARENA_ARRAY(graph->arena, struct plan_slot, graph->nics.count);
    for (int32_t k = 0; k < graph->gpus.count; k++)
        plan->gpus[k] = place(&planner, &graph->gpus.items[k].pci);
    for (int32_t k = 0; k < graph->nics.count; k++)
        plan->nics[k] = place(&planner, &graph->nics.items[k].pci);
    even_out(&planner, plan->gpus, graph->gpus.count, "GPUs");
    even_out(&planner, plan->nics, graph->nics.count, "NICs");
}
