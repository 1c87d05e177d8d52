/* cluster/partition.c: colour refinement by sorting signatures. */
#include "cluster/partition.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct signature {
    int32_t node, colour;
    int32_t key_count;
    int64_t *keys; /* label and neighbour's colour, sorted */
};

struct half_edge {
    int32_t node, neighbour, label;
};

struct refinement {
    int32_t node_count, half_count;
    struct signature *signatures;
    const struct half_edge *halves; /* by node */
    int64_t *keys;
};

static int compare_int64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_halves(const void *left, const void *right)
{
    const struct half_edge *a = left;
    const struct half_edge *b = right;
    return compare_int64(a->node, b->node);
}

static int compare_keys(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;
    return compare_int64(*a, *b);
}

static int compare_content(const struct signature *a, const struct signature *b)
{
    int order = compare_int64(a->colour, b->colour);
    if (order == 0)
        order = compare_int64(a->key_count, b->key_count);
    for (int32_t i = 0; order == 0 && i < a->key_count; i++)
        order = compare_int64(a->keys[i], b->keys[i]);
    return order;
}

static int compare_signatures(const void *left, const void *right)
{
    const struct signature *a = left;
    const struct signature *b = right;
    int order = compare_content(a, b);
    return order != 0 ? order : compare_int64(a->node, b->node);
}

static struct refinement refinement_new(struct arena *scratch, int32_t node_count,
                                        const struct partition_edge *edges, int32_t edge_count)
{
    struct half_edge *halves = ARENA_ARRAY(scratch, struct half_edge, 2 * (int64_t)edge_count + 1);
    int32_t count = 0;
    for (int32_t i = 0; i < edge_count; i++) {
        halves[count++] = (struct half_edge){edges[i].a, edges[i].b, edges[i].label};
        halves[count++] = (struct half_edge){edges[i].b, edges[i].a, edges[i].label};
    }
    qsort(halves, (size_t)count, sizeof(*halves), compare_halves);
    return (struct refinement){
        .node_count = node_count,
        .half_count = count,
        .halves = halves,
        .signatures = ARENA_ARRAY(scratch, struct signature, node_count + 1),
        .keys = ARENA_ARRAY(scratch, int64_t, (int64_t)count + 1),
    };
}

/* One round: colours become 0 … count − 1 in the order of the sorted signatures. */
static int32_t refine_once(struct refinement *state, int32_t *colours)
{
    int32_t half = 0;
    for (int32_t node = 0; node < state->node_count; node++) {
        struct signature *signature = &state->signatures[node];
        *signature =
            (struct signature){.node = node, .colour = colours[node], .keys = &state->keys[half]};
        for (; half < state->half_count && state->halves[half].node == node; half++) {
            const struct half_edge *edge = &state->halves[half];
            signature->keys[signature->key_count++] =
                (int64_t)edge->label * (INT64_C(1) << 32) + colours[edge->neighbour];
        }
        qsort(signature->keys, (size_t)signature->key_count, sizeof(int64_t), compare_keys);
    }
    qsort(state->signatures, (size_t)state->node_count, sizeof(struct signature),
          compare_signatures);
    int32_t count = 0;
    for (int32_t i = 0; i < state->node_count; i++) {
        const struct signature *signature = &state->signatures[i];
        bool is_new = i == 0 || compare_content(&state->signatures[i - 1], signature) != 0;
        count += is_new ? 1 : 0;
        colours[signature->node] = count - 1;
    }
    return count;
}

static void number_by_appearance(struct arena *scratch, int32_t node_count, int32_t *colours,
                                 int32_t colour_count)
{
    int32_t *number = ARENA_ARRAY(scratch, int32_t, colour_count + 1); /* plus one; 0: unseen */
    int32_t seen = 0;
    for (int32_t i = 0; i < node_count; i++) {
        if (number[colours[i]] == 0)
            number[colours[i]] = ++seen;
        colours[i] = number[colours[i]] - 1;
    }
}

int32_t partition_refine(struct arena *scratch, int32_t node_count,
                         const struct partition_edge *edges, int32_t edge_count, int32_t *colours)
{
    struct refinement state = refinement_new(scratch, node_count, edges, edge_count);
    int32_t before = -1;
    int32_t count = 0;
    while (count != before) {
        before = count;
        count = refine_once(&state, colours);
    }
    number_by_appearance(scratch, node_count, colours, count);
    return count;
}
