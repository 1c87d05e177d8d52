/* cluster/import_graph.c: notes; GPUs in order, links by pairs: see import_private.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/import_private.h"

/* ---- notes -------------------------------------------------------------------------------- */

/* False: there are so many notes already that this one is not kept. */
static bool add_note(struct machine_graph *graph, enum note_about about, enum note_kind kind,
                     const char *device, const char *text)
{
    enum { SHOWN_DEVICES = 4, MOST_NOTES = 128 };
    struct arena *arena = graph->arena;
    struct import_note *note = NULL;
    for (int32_t k = 0; k < graph->notes.count && note == NULL; k++) {
        struct import_note *one = &graph->notes.items[k];
        if (one->about == about && one->kind == kind && strcmp(one->text, text) == 0)
            note = one;
    }
    if (note == NULL && graph->notes.count >= MOST_NOTES)
        return false;
    if (note == NULL) {
        note = ARENA_PUSH(arena, &graph->notes);
        *note =
            (struct import_note){.about = about, .kind = kind, .text = arena_strdup(arena, text)};
    }
    if (device == NULL)
        return true;
    if (note->device_count < SHOWN_DEVICES)
        note->devices = note->devices == NULL
                            ? arena_strdup(arena, device)
                            : arena_printf(arena, "%s, %s", note->devices, device);
    note->device_count++;
    return true;
}

void graph_note(struct machine_graph *graph, enum note_about about, enum note_kind kind,
                const char *device, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    (void)add_note(graph, about, kind, device, text);
}

void graph_warn(struct machine_graph *graph, enum note_about about, enum note_kind kind,
                struct place place, const char *hint, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (add_note(graph, about, kind, NULL, text))
        diag_add(graph->diag, DIAG_WARNING, place, hint, "%s", text);
}

const char *graph_gpu_name(const struct machine_graph *graph, int32_t gpu)
{
    const char *busid = graph->gpus.items[gpu].pci.busid;
    return busid[0] != '\0' ? busid : arena_printf(graph->arena, "GPU %d", (int)gpu);
}

/* ---- one host ----------------------------------------------------------------------------- */

static const char *host_of(const struct machine_graph *graph, const struct pci_device *pci)
{
    return graph->cpus.items[pci->cpu].host;
}

/* A dump of a whole NVLink domain holds all its hosts: the first stays, the others are counted. */
static enum status keep_first_host(struct machine_graph *graph)
{
    const char *first = host_of(graph, &graph->gpus.items[0].pci);
    int32_t gpus = 0;
    int32_t nics = 0;
    for (int32_t k = 0; k < graph->gpus.count; k++)
        gpus += strcmp(host_of(graph, &graph->gpus.items[k].pci), first) == 0;
    BUG_IF(gpus == 0); /* the first one's host has at least that one */
    graph->host_count = graph->gpus.count / gpus;
    if (gpus == graph->gpus.count)
        return STATUS_OK;
    if (graph->gpus.count % gpus != 0) {
        diag_add(graph->diag, DIAG_ERROR, graph->gpus.items[0].pci.place,
                 "a cluster file describes one kind of host: keep the 'cpu's of one 'host_hash'",
                 "the first host has %d of the file's %d GPUs: hosts differ", (int)gpus,
                 (int)graph->gpus.count);
        return STATUS_INPUT;
    }
    /* The lists keep their order, so the first host's devices move to the front. */
    int32_t *moved = ARENA_ARRAY(graph->arena, int32_t, graph->gpus.count);
    gpus = 0;
    for (int32_t k = 0; k < graph->gpus.count; k++) {
        moved[k] = NO_ITEM;
        if (strcmp(host_of(graph, &graph->gpus.items[k].pci), first) != 0)
            continue;
        moved[k] = gpus;
        graph->gpus.items[gpus++] = graph->gpus.items[k];
    }
    graph->gpus.count = gpus;
    int32_t links = 0;
    for (int32_t k = 0; k < graph->links.count; k++) {
        graph->links.items[links] = graph->links.items[k];
        graph->links.items[links].from = moved[graph->links.items[k].from];
        links += graph->links.items[links].from != NO_ITEM;
    }
    graph->links.count = links;
    for (int32_t k = 0; k < graph->nics.count; k++) {
        if (strcmp(host_of(graph, &graph->nics.items[k].pci), first) == 0)
            graph->nics.items[nics++] = graph->nics.items[k];
    }
    graph->nics.count = nics;
    graph_note(graph, ABOUT_FILE, NOTE_READ, NULL,
               "a scale-up domain of %d hosts with %d GPUs each; the first is described here",
               (int)graph->host_count, (int)gpus);
    return STATUS_OK;
}

/* ---- order -------------------------------------------------------------------------------- */

static int32_t compare_text(const char *a, const char *b)
{
    const size_t la = strlen(a);
    const size_t lb = strlen(b);
    if (la != lb) /* domains without leading zeros */
        return la < lb ? -1 : 1;
    return strcmp(a, b);
}

struct gpu_order {
    const struct graph_gpu *gpu;
    int32_t idx;
    bool has_devs;
};

static int compare_gpus(const void *left, const void *right)
{
    const struct gpu_order *a = left;
    const struct gpu_order *b = right;
    if (a->has_devs && a->gpu->dev != b->gpu->dev)
        return a->gpu->dev < b->gpu->dev ? -1 : 1;
    const int32_t order = a->has_devs ? 0 : compare_text(a->gpu->pci.busid, b->gpu->pci.busid);
    return order != 0 ? (order < 0 ? -1 : 1) : (a->idx < b->idx ? -1 : 1);
}

/* In order: no number twice; those that are not 0, 1, 2, … are said. */
static void check_devs(struct machine_graph *graph)
{
    const struct graph_gpu *gpus = graph->gpus.items;
    const char *numbers = "";
    bool is_renumbered = false;
    for (int32_t k = 0; k < graph->gpus.count; k++) {
        if (k > 0 && gpus[k].dev == gpus[k - 1].dev) {
            diag_add(graph->diag, DIAG_ERROR, gpus[k].pci.place, NULL, "two GPUs are number %lld",
                     (long long)gpus[k].dev);
            diag_add(graph->diag, DIAG_NOTE, gpus[k - 1].pci.place, NULL, "first here");
        }
        is_renumbered |= gpus[k].dev != k;
        if (k < 32)
            numbers = arena_printf(graph->arena, "%s%s%lld", numbers, k > 0 ? ", " : "",
                                   (long long)gpus[k].dev);
    }
    if (is_renumbered)
        graph_note(graph, ABOUT_GPU, NOTE_CORRECTED, NULL,
                   "numbered from 0 here: the file's GPUs are %s%s", numbers,
                   graph->gpus.count > 32 ? ", ..." : "");
}

static void order_gpus(struct machine_graph *graph)
{
    const int32_t count = graph->gpus.count;
    struct gpu_order *order = ARENA_ARRAY(graph->arena, struct gpu_order, count);
    struct graph_gpu *sorted = ARENA_ARRAY(graph->arena, struct graph_gpu, count);
    int32_t *moved = ARENA_ARRAY(graph->arena, int32_t, count);
    bool has_devs = true;
    for (int32_t k = 0; k < count; k++)
        has_devs = has_devs && graph->gpus.items[k].dev >= 0;
    for (int32_t k = 0; k < count; k++)
        order[k] = (struct gpu_order){&graph->gpus.items[k], k, has_devs};
    qsort(order, (size_t)count, sizeof(*order), compare_gpus);
    for (int32_t k = 0; k < count; k++) {
        sorted[k] = *order[k].gpu;
        moved[order[k].idx] = k;
    }
    graph->gpus.items = sorted;
    graph->gpus.capacity = count;
    for (int32_t k = 0; k < graph->links.count; k++) {
        struct graph_link *link = &graph->links.items[k];
        link->from = moved[link->from];
        if (link->to != NO_ITEM)
            link->to = moved[link->to];
    }
    if (has_devs)
        check_devs(graph);
    else
        graph_note(graph, ABOUT_GPU, NOTE_ASSUMED, NULL, "GPUs are numbered by their bus ids");
}

/* ---- links -------------------------------------------------------------------------------- */

static void resolve_target(struct machine_graph *graph, struct graph_link *link)
{
    if (link->to != NO_ITEM || link->is_to_switch)
        return;
    for (int32_t k = 0; k < graph->gpus.count; k++) {
        if (strcmp(graph->gpus.items[k].pci.busid, link->target) == 0)
            link->to = k;
    }
    if (link->to == NO_ITEM)
        graph_warn(graph, ABOUT_SCALE_UP, NOTE_DROPPED, link->place, NULL,
                   "a link of GPU %d to '%s', which the file does not hold", (int)link->from,
                   link->target);
    if (link->to == link->from)
        graph_warn(graph, ABOUT_SCALE_UP, NOTE_DROPPED, link->place, NULL,
                   "a link of GPU %d to itself", (int)link->from);
}

/* Both ends of a link say how many there are; where they differ the smaller number counts. */
static void settle_pairs(struct machine_graph *graph)
{
    const int32_t count = graph->gpus.count;
    for (int32_t a = 0; a < count; a++) {
        for (int32_t b = a + 1; b < count; b++) {
            int32_t *ab = &graph->pair_links[a * count + b];
            int32_t *ba = &graph->pair_links[b * count + a];
            if (*ab == *ba)
                continue;
            const int32_t smaller = *ab < *ba ? *ab : *ba;
            const int32_t larger = *ab < *ba ? *ba : *ab;
            const int32_t taken = smaller > 0 ? smaller : larger;
            graph_warn(graph, ABOUT_SCALE_UP, NOTE_CORRECTED, graph->gpus.items[a].pci.place, NULL,
                       "links between GPU %d and GPU %d: one says %d, the other %d; %d taken",
                       (int)a, (int)b, (int)*ab, (int)*ba, (int)taken);
            *ab = taken;
            *ba = taken;
        }
    }
}

static void join_links(struct machine_graph *graph)
{
    const int32_t count = graph->gpus.count;
    enum { MOST = 4096 };
    graph->pair_links = ARENA_ARRAY(graph->arena, int32_t, (size_t)count * (size_t)count);
    graph->switch_links = ARENA_ARRAY(graph->arena, int32_t, count);
    for (int32_t k = 0; k < graph->links.count; k++) {
        struct graph_link *link = &graph->links.items[k];
        resolve_target(graph, link);
        int32_t *sum = NULL;
        if (link->is_to_switch)
            sum = &graph->switch_links[link->from];
        else if (link->to != NO_ITEM && link->to != link->from)
            sum = &graph->pair_links[link->from * count + link->to];
        if (sum != NULL)
            *sum = *sum + link->count < MOST ? *sum + (int32_t)link->count : MOST;
    }
    settle_pairs(graph);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int compare_busids(const void *left, const void *right)
{
    const struct pci_device *const *a = left;
    const struct pci_device *const *b = right;
    const int32_t order = strcmp((*a)->busid, (*b)->busid);
    if (order != 0)
        return order < 0 ? -1 : 1;
    return (*a)->place.line < (*b)->place.line ? -1 : (*a)->place.line > (*b)->place.line;
}

/* Of one host no two devices share a bus id; several nets of one NIC do. */
static void check_busids(struct machine_graph *graph)
{
    const int32_t count = graph->gpus.count + graph->bridges.count;
    const struct pci_device **all = ARENA_ARRAY(graph->arena, const struct pci_device *, count);
    for (int32_t k = 0; k < graph->gpus.count; k++)
        all[k] = &graph->gpus.items[k].pci;
    for (int32_t k = 0; k < graph->bridges.count; k++)
        all[graph->gpus.count + k] = &graph->bridges.items[k];
    qsort(all, (size_t)count, sizeof(const struct pci_device *), compare_busids);
    for (int32_t k = 1; k < count; k++) {
        const struct pci_device *a = all[k - 1];
        const struct pci_device *b = all[k];
        if (a->busid[0] == '\0' || strcmp(a->busid, b->busid) != 0 ||
            strcmp(host_of(graph, a), host_of(graph, b)) != 0)
            continue;
        diag_add(graph->diag, DIAG_ERROR, b->place, NULL, "'%s' stands twice", b->busid);
        diag_add(graph->diag, DIAG_NOTE, a->place, NULL, "first here");
    }
}

static void check_counts(struct machine_graph *graph)
{
    const struct place place = {graph->source, 1, 1, 1};
    if (graph->gpus.count == 0)
        diag_add(graph->diag, DIAG_ERROR, place,
                 "a PCI device is a GPU by its 'class' (0x03..., AMD's also 0x12...) or by a 'gpu' "
                 "in it",
                 "the file holds no GPU%s",
                 graph->unclassed_count == 0
                     ? ""
                     : arena_printf(graph->arena, ": %d PCI devices have no 'class' to tell by",
                                    (int)graph->unclassed_count));
    if (graph->gpus.count > MAX_IMPORTED_GPUS || graph->nics.count > MAX_IMPORTED_NICS ||
        graph->cpus.count > MAX_IMPORTED_CPUS * 64)
        diag_add(graph->diag, DIAG_ERROR, place, "1024 GPUs, 1024 NICs at most",
                 "%d GPUs and %d NICs below %d CPUs", (int)graph->gpus.count,
                 (int)graph->nics.count, (int)graph->cpus.count);
}

enum status graph_finish(struct machine_graph *graph)
{
    const int32_t errors = graph->diag->error_count;
    check_counts(graph);
    if (graph->diag->error_count == errors)
        check_busids(graph);
    if (graph->diag->error_count > errors)
        return STATUS_INPUT;
    const enum status status = keep_first_host(graph);
    if (status != STATUS_OK)
        return status;
    order_gpus(graph);
    if (graph->diag->error_count > errors)
        return STATUS_INPUT;
    join_links(graph);
    return STATUS_OK;
}
