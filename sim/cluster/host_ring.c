/* cluster/host_ring.c: packs rings into links, or finds an order over PCIe. */
#include "cluster/host_ring.h"

#include <float.h>
#include <math.h>

enum { MAX_STEPS = 20000 /* of one search: ample for 16 GPUs, a bound for more */ };

struct packing {
    const struct host_graph *graph;
    const int32_t *members;
    int32_t count;
    double *left;  /* by place · count + place: capacity not used yet */
    int32_t *path; /* places */
    bool *is_used;
    double least;      /* the narrowest link allowed */
    double negligible; /* what rounding leaves over of a link */
    int32_t steps;
};

/* Depth first: extends path[0 … depth − 1] to a cycle over links of at least `least`. */
static bool close_cycle(struct packing *packing, int32_t depth)
{
    const int32_t at = packing->path[depth - 1];
    const double *row = &packing->left[(ptrdiff_t)at * packing->count];
    if (packing->steps++ > MAX_STEPS)
        return false;
    if (depth == packing->count)
        return row[packing->path[0]] >= packing->least;
    for (int32_t next = 0; next < packing->count; next++) {
        if (packing->is_used[next] || row[next] < packing->least)
            continue;
        packing->is_used[next] = true;
        packing->path[depth] = next;
        if (close_cycle(packing, depth + 1))
            return true;
        packing->is_used[next] = false;
    }
    return false;
}

static bool find_cycle(struct packing *packing, double least)
{
    for (int32_t i = 0; i < packing->count; i++)
        packing->is_used[i] = false;
    packing->path[0] = 0;
    packing->is_used[0] = true;
    packing->least = least;
    packing->steps = 0;
    return close_cycle(packing, 1);
}

/* The widest link that is narrower than `below`; 0: none. */
static double next_width(struct packing *packing, double below)
{
    double widest = 0;
    for (int32_t i = 0; i < packing->count * packing->count; i++)
        if (packing->left[i] < packing->negligible)
            packing->left[i] = 0;
    for (int32_t i = 0; i < packing->count * packing->count; i++)
        if (packing->left[i] < below && packing->left[i] > widest)
            widest = packing->left[i];
    return widest;
}

/* Takes the widest cycle out of what is left; returns its width, 0: there is none. */
static double take_cycle(struct packing *packing, double *sent)
{
    double width = next_width(packing, DBL_MAX);
    while (width > 0 && !find_cycle(packing, width))
        width = next_width(packing, width);
    for (int32_t i = 0; width > 0 && i < packing->count; i++) {
        const int32_t a = packing->path[i];
        const int32_t b = packing->path[(i + 1) % packing->count];
        const int32_t there = a * packing->count + b;
        const int32_t back = b * packing->count + a;
        sent[there] += width;
        packing->left[there] -= width;
        if (packing->count > 2) { /* two members: there and back is one way round */
            sent[back] += width;
            packing->left[back] -= width;
        }
    }
    return width;
}

static bool is_mesh(const struct packing *packing)
{
    double first = 0;
    for (int32_t a = 0; a < packing->count; a++) {
        for (int32_t b = 0; b < packing->count; b++) {
            const double width = packing->left[a * packing->count + b];
            if (a == b)
                continue;
            first = first > 0 ? first : width;
            if (!(width > 0) || width < first || width > first)
                return false;
        }
    }
    return true;
}

/* Shares of each pair; NULL: no cycle over links. */
static const double *pack_rings(struct arena *arena, const struct host_graph *graph,
                                const int32_t *members, int32_t count)
{
    double *share = ARENA_ARRAY(arena, double, count *count);
    struct packing packing = {.graph = graph,
                              .members = members,
                              .count = count,
                              .left = ARENA_ARRAY(arena, double, count *count),
                              .path = ARENA_ARRAY(arena, int32_t, count),
                              .is_used = ARENA_ARRAY(arena, bool, count)};
    for (int32_t a = 0; a < count; a++) {
        for (int32_t b = 0; b < count; b++) {
            const int32_t wire = graph->direct[members[a] * graph->gpus + members[b]];
            packing.left[a * count + b] = wire >= 0 ? graph->wires[wire].capacity : 0;
        }
    }
    if (is_mesh(&packing)) {
        for (int32_t i = 0; i < count * count; i++)
            share[i] = i % (count + 1) == 0 ? 0 : 1.0 / (double)(count - 1);
        return share;
    }
    packing.negligible = 1e-9 * next_width(&packing, DBL_MAX);
    double total = 0;
    double width = take_cycle(&packing, share);
    while (width > 0) {
        total += count > 2 ? 2 * width : width;
        width = take_cycle(&packing, share);
    }
    if (!(total > 0))
        return NULL;
    for (int32_t i = 0; i < count * count; i++)
        share[i] /= total;
    return share;
}

/* What the ring reaches of its slowest wire, and its length as a tie-break. */
static double order_cost(const struct host_graph *graph, const int32_t *order, int32_t count)
{
    struct arena scratch = {0};
    const struct wire_loads loads = wire_loads_new(&scratch, graph);
    struct hop_counts hops = {0};
    double length = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t next = order[(i + 1) % count];
        host_graph_hop(graph, order[i], next, 1, &loads, &hops);
        length += host_graph_distance(graph, order[i], next);
    }
    double slowest = 0;
    for (int32_t i = 0; i < graph->wire_count; i++)
        if (loads.effort[i] > 0)
            slowest = fmax(slowest, loads.effort[i] / graph->wires[i].capacity);
    arena_release(&scratch);
    return slowest * (1 + 1e-9 * length);
}

static void order_nearest(const struct host_graph *graph, const int32_t *members, int32_t count,
                          bool *is_used, int32_t *order)
{
    order[0] = members[0];
    is_used[0] = true;
    for (int32_t i = 1; i < count; i++) {
        int32_t best = -1;
        int32_t least = INT32_MAX;
        for (int32_t k = 0; k < count; k++) {
            if (is_used[k])
                continue;
            const int32_t distance = host_graph_distance(graph, order[i - 1], members[k]);
            best = distance < least ? k : best;
            least = distance < least ? distance : least;
        }
        is_used[best] = true;
        order[i] = members[best];
    }
}

void host_ring_find(struct arena *arena, const struct host_graph *graph, const int32_t *members,
                    int32_t count, struct host_ring *ring)
{
    *ring = (struct host_ring){.count = count};
    if (graph->scale_up_out < 0 && graph->direct != NULL)
        ring->share = pack_rings(arena, graph, members, count);
    if (ring->share != NULL)
        return;
    int32_t *given = ARENA_ARRAY(arena, int32_t, count);
    for (int32_t i = 0; i < count; i++)
        given[i] = members[i];
    ring->order = given;
    if (graph->scale_up_out >= 0)
        return;
    int32_t *nearest = ARENA_ARRAY(arena, int32_t, count);
    order_nearest(graph, members, count, ARENA_ARRAY(arena, bool, count), nearest);
    if (order_cost(graph, nearest, count) < order_cost(graph, given, count))
        ring->order = nearest;
}
