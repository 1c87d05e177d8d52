/*
 * cluster/import_settle_nics.c: which NICs collectives use, and their rate.
 *
 * As NCCL does, each GPU uses the NICs that are nearest to it (below the same switch, else on the
 * same CPU, else any); a NIC that is nearest to no GPU is for something else (management, storage)
 * and is dropped. A cluster file has NICs of one rate: of several, those with the most bandwidth
 * together stay. How the rate is found: import_settle.c.
 */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "cluster/import_private.h"

struct nic_settler {
    struct machine_graph *graph;
    const struct import_tables *tables;
    const struct machine_facts *facts;
};

/* ---- nearest ------------------------------------------------------------------------------ */

static int32_t height_below(const struct machine_graph *graph, int32_t bridge, int32_t ancestor)
{
    int32_t height = 0;
    for (; bridge != NO_ITEM; bridge = graph->bridges.items[bridge].bridge, height++) {
        if (bridge == ancestor)
            return height;
    }
    return NO_ITEM;
}

/* Bridges on the way; far more over the CPU, and more again to another one. */
static int32_t distance(const struct machine_graph *graph, const struct pci_device *a,
                        const struct pci_device *b)
{
    enum { OVER_CPU = 1000 };
    int32_t up = 0;
    for (int32_t at = a->bridge; at != NO_ITEM; at = graph->bridges.items[at].bridge, up++) {
        const int32_t down = height_below(graph, b->bridge, at);
        if (down != NO_ITEM)
            return up + down;
    }
    return a->cpu == b->cpu && !a->is_anywhere && !b->is_anywhere ? OVER_CPU : 2 * OVER_CPU;
}

static const char *nic_name(const struct graph_nic *nic)
{
    if (nic->name[0] != '\0')
        return nic->name;
    return nic->pci.busid[0] != '\0' ? nic->pci.busid : "a NIC";
}

static void keep_marked(struct machine_graph *graph, const bool *is_kept, const char *why)
{
    int32_t kept = 0;
    for (int32_t k = 0; k < graph->nics.count; k++) {
        if (is_kept[k])
            graph->nics.items[kept++] = graph->nics.items[k];
        else
            graph_note(graph, ABOUT_NICS, NOTE_DROPPED, nic_name(&graph->nics.items[k]), "%s", why);
    }
    graph->nics.count = kept;
}

static void keep_nearest(struct machine_graph *graph)
{
    bool *is_near = ARENA_ARRAY(graph->arena, bool, graph->nics.count);
    int32_t *far = ARENA_ARRAY(graph->arena, int32_t, graph->nics.count);
    for (int32_t g = 0; g < graph->gpus.count; g++) {
        int32_t nearest = INT32_MAX;
        for (int32_t k = 0; k < graph->nics.count; k++) {
            far[k] = distance(graph, &graph->gpus.items[g].pci, &graph->nics.items[k].pci);
            nearest = far[k] < nearest ? far[k] : nearest;
        }
        for (int32_t k = 0; k < graph->nics.count; k++)
            is_near[k] |= far[k] == nearest;
    }
    keep_marked(graph, is_near, "NICs that no GPU is nearest to: NCCL does not use them");
}

/* ---- rates -------------------------------------------------------------------------------- */

static const struct nic_row *nic_row_of(const struct nic_settler *settler,
                                        const struct graph_nic *nic)
{
    const struct nic_row *by_name = NULL;
    for (int32_t k = 0; k < settler->tables->nic_count; k++) {
        const struct nic_row *row = &settler->tables->nics[k];
        if (row->device != 0 && row->vendor == nic->pci.vendor && row->device == nic->pci.device)
            return row;
        if (row->name[0] != '\0' && strncmp(nic->name, row->name, strlen(row->name)) == 0)
            by_name = row;
    }
    return by_name;
}

static double slot_bytes_per_s(const struct import_tables *tables, struct pcie_speed speed)
{
    return import_pcie_row(tables, speed.gt_per_s)->lane_bytes_per_s * speed.width;
}

/* The rate that networks have, next to `bytes_per_s`: 180 Gb/s is 200; itself when none is near. */
static double standard_rate(const struct import_tables *tables, double bytes_per_s)
{
    const double near = 0.12; /* of virtual functions: 180 of 200 */
    double best = bytes_per_s;
    double best_error = near;
    for (int32_t k = 0; k < tables->nic_link_count; k++) {
        const double rate = tables->nic_links[k].bytes_per_s;
        const double error = fabs(rate - bytes_per_s) / rate;
        if (error < best_error) {
            best = rate;
            best_error = error;
        }
    }
    return best;
}

static double largest_rate_of_slot(const struct nic_settler *settler, const char *kind,
                                   double bytes_per_s)
{
    double best = 0;
    for (int32_t k = 0; k < settler->tables->nic_link_count; k++) {
        const struct nic_link_row *row = &settler->tables->nic_links[k];
        if (strcmp(row->kind, kind) == 0 && row->bytes_per_s <= bytes_per_s &&
            row->bytes_per_s > best)
            best = row->bytes_per_s;
    }
    return best;
}

static const char *kind_of(const struct nic_row *row)
{
    return row != NULL ? row->kind : "rdma";
}

static const char *rate_text(struct arena *arena, double bytes_per_s)
{
    const double bytes_per_gbit = 1e9 / 8;
    return arena_printf(arena, "%g Gb/s", bytes_per_s / bytes_per_gbit);
}

/* NCCL writes this where the driver does not say the rate. */
static const double unknown_rate_bytes_per_s = 1.25e9;

static void settle_rate(struct nic_settler *settler, struct graph_nic *nic)
{
    struct machine_graph *graph = settler->graph;
    const struct nic_row *row = nic_row_of(settler, nic);
    const double said = nic->bytes_per_s;
    const bool is_unknown =
        said == unknown_rate_bytes_per_s && row != NULL && row->bytes_per_s > said;
    if (said > 0 && !is_unknown) {
        nic->bytes_per_s = standard_rate(settler->tables, said);
        if (nic->bytes_per_s != said)
            graph_note(graph, ABOUT_NICS, NOTE_CORRECTED, nic_name(nic),
                       "%s -> %s: no network has that rate", rate_text(graph->arena, said),
                       rate_text(graph->arena, nic->bytes_per_s));
        return;
    }
    if (row != NULL && row->bytes_per_s > 0) {
        nic->bytes_per_s = row->bytes_per_s;
        graph_note(graph, ABOUT_NICS, is_unknown ? NOTE_CORRECTED : NOTE_ASSUMED, nic_name(nic),
                   "%s: the rate of %s%s", rate_text(graph->arena, nic->bytes_per_s), row->what,
                   is_unknown ? ", not the 10 Gb/s that NCCL writes for an unknown one" : "");
        return;
    }
    struct pcie_speed speed = nic->pci.speed;
    if (!(speed.gt_per_s > 0))
        speed = (struct pcie_speed){settler->facts->row->gt_per_s, 16};
    nic->bytes_per_s =
        largest_rate_of_slot(settler, kind_of(row), slot_bytes_per_s(settler->tables, speed));
    graph_note(graph, ABOUT_NICS, NOTE_ASSUMED, nic_name(nic),
               "%s: the largest rate that PCIe %g GT/s x%d carries; --nic-link says better",
               rate_text(graph->arena, nic->bytes_per_s), speed.gt_per_s, (int)speed.width);
}

/* A slot carries its NIC, or the file has it wrong. */
static void settle_slot(struct nic_settler *settler, struct graph_nic *nic)
{
    struct machine_graph *graph = settler->graph;
    const struct pcie_speed said = nic->pci.speed;
    struct pcie_speed speed = said;
    if (!(speed.gt_per_s > 0))
        speed.gt_per_s = settler->facts->row->gt_per_s;
    if (speed.width == 0 || speed.width > 16)
        speed.width = 16;
    for (int32_t k = 0; k < settler->tables->pcie_count; k++) {
        const double rate = settler->tables->pcie[k].gt_per_s;
        if (slot_bytes_per_s(settler->tables, speed) >= nic->bytes_per_s)
            break;
        speed.width = 16;
        if (rate >= speed.gt_per_s)
            speed.gt_per_s = rate;
    }
    nic->pci.speed = speed;
    if (graph->has_pci && said.gt_per_s > 0 &&
        (said.gt_per_s != speed.gt_per_s || said.width != speed.width))
        graph_note(graph, ABOUT_PCIE, NOTE_CORRECTED, nic_name(nic),
                   "%g GT/s x%d -> %g GT/s x%d: it would not carry %s", said.gt_per_s,
                   (int)said.width, speed.gt_per_s, (int)speed.width,
                   rate_text(graph->arena, nic->bytes_per_s));
}

/* ---- one rate for all --------------------------------------------------------------------- */

static void keep_one_rate(struct machine_graph *graph)
{
    bool *is_kept = ARENA_ARRAY(graph->arena, bool, graph->nics.count);
    double best = 0;
    double best_sum = 0;
    for (int32_t k = 0; k < graph->nics.count; k++) {
        double sum = 0;
        for (int32_t j = 0; j < graph->nics.count; j++) {
            if (graph->nics.items[j].bytes_per_s == graph->nics.items[k].bytes_per_s)
                sum += graph->nics.items[j].bytes_per_s;
        }
        if (sum > best_sum) {
            best_sum = sum;
            best = graph->nics.items[k].bytes_per_s;
        }
    }
    for (int32_t k = 0; k < graph->nics.count; k++)
        is_kept[k] = graph->nics.items[k].bytes_per_s == best;
    keep_marked(graph, is_kept, "NICs of another rate: a cluster file has NICs of one");
}

/* Of the kind, else (a kind without any) of the first one. */
static const struct nic_link_row *nearest_link(const struct nic_settler *settler, const char *kind,
                                               double bytes_per_s)
{
    const struct nic_link_row *best = &settler->tables->nic_links[0];
    double best_error = (double)INFINITY;
    for (int32_t k = 0; k < settler->tables->nic_link_count; k++) {
        const struct nic_link_row *row = &settler->tables->nic_links[k];
        const double error = fabs(log(row->bytes_per_s / bytes_per_s));
        if (strcmp(row->kind, kind) == 0 && error < best_error) {
            best = row;
            best_error = error;
        }
    }
    return best;
}

static void choose_given(const struct nic_settler *settler, const struct import_options *options,
                         struct machine_facts *facts)
{
    struct machine_graph *graph = settler->graph;
    facts->nic_link = import_catalog_name(settler->tables, "topologies/links", options->nic_link);
    const double rate = import_link_bytes_per_s(settler->tables, facts->nic_link);
    for (int32_t k = 0; k < graph->nics.count; k++)
        graph->nics.items[k].bytes_per_s = rate;
    graph_note(graph, ABOUT_NICS, NOTE_ASSUMED, NULL, "%s as --nic-link says", facts->nic_link);
}

static void choose_link(const struct nic_settler *settler, bool is_guessed,
                        struct machine_facts *facts)
{
    struct machine_graph *graph = settler->graph;
    const struct graph_nic *first = &graph->nics.items[0];
    const struct nic_link_row *link =
        nearest_link(settler, kind_of(nic_row_of(settler, first)), first->bytes_per_s);
    facts->nic_link = link->link;
    if (import_link_bytes_per_s(settler->tables, link->link) != first->bytes_per_s)
        facts->nic_bytes_per_s = first->bytes_per_s;
    if (is_guessed)
        diag_add(
            graph->diag, DIAG_WARNING, first->pci.place, "give --nic-link NAME if that is wrong",
            "the file does not say the rate of the NICs: %d of %s assumed, by their PCIe slots",
            (int)graph->nics.count, rate_text(graph->arena, first->bytes_per_s));
}

void machine_settle_nics(struct machine_graph *graph, const struct import_tables *tables,
                         const struct import_options *options, struct machine_facts *facts)
{
    struct nic_settler settler = {.graph = graph, .tables = tables, .facts = facts};
    if (graph->nics.count == 0) {
        graph_warn(graph, ABOUT_NICS, NOTE_READ, NO_PLACE, "add 'nics' if there are some",
                   "the file holds no NIC: one host only");
        return;
    }
    keep_nearest(graph);
    if (options->nic_link != NULL) {
        choose_given(&settler, options, facts);
    } else {
        bool is_guessed = false;
        for (int32_t k = 0; k < graph->nics.count; k++) {
            const struct nic_row *row = nic_row_of(&settler, &graph->nics.items[k]);
            is_guessed |=
                !(graph->nics.items[k].bytes_per_s > 0) && (row == NULL || !(row->bytes_per_s > 0));
            settle_rate(&settler, &graph->nics.items[k]);
        }
        keep_one_rate(graph);
        choose_link(&settler, is_guessed, facts);
    }
    for (int32_t k = 0; k < graph->nics.count; k++)
        settle_slot(&settler, &graph->nics.items[k]);
}
