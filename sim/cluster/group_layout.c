/*
 * cluster/group_layout.c: colour refinement over the unfolded layout, and the layout of its
 * colours.
 *
 * A shared thing (resource, host, group, part of a group on one host) sums its members' mixed
 * colours: a sum does not depend on their order.
 */
#include "cluster/group_layout.h"

#include <string.h>

#include "base/hash.h"
#include "cluster/layout_private.h"

/* What a hash is about, so that equal values in different roles differ. */
enum salt {
    SALT_RESOURCE = 11,
    SALT_HOST,
    SALT_PART,
    SALT_GROUP,
    SALT_NEXT,
    SALT_PREVIOUS,
    SALT_WIRE
};

struct refinement {
    struct arena *scratch;
    const struct layout *unfolded;
    const struct group *groups;
    int32_t group_count;
    uint64_t *ranks, *next_ranks;
    uint64_t *resources, *resource_sums;
    bool *is_rank_own; /* by resource: of a rank's class */
    uint64_t *hosts, *host_sums;
    uint64_t *parts, *wholes; /* of the group at work: (group, host) by rank's first, group */
};

/* Colours of things → dense numbers, by open addressing. */
struct numbering {
    uint64_t *keys;
    int32_t *numbers; /* plus one; 0: free */
    uint64_t mask;
    int32_t count;
};

static struct numbering numbering_new(struct arena *arena, int64_t most)
{
    uint64_t size = 16;
    while (size < 2 * (uint64_t)most)
        size *= 2;
    return (struct numbering){.keys = ARENA_ARRAY(arena, uint64_t, size),
                              .numbers = ARENA_ARRAY(arena, int32_t, size),
                              .mask = size - 1};
}

static void numbering_clear(struct numbering *numbering)
{
    memset(numbering->numbers, 0, sizeof(*numbering->numbers) * (size_t)(numbering->mask + 1));
    numbering->count = 0;
}

static int32_t number_of(struct numbering *numbering, uint64_t key)
{
    uint64_t at = key & numbering->mask;
    for (; numbering->numbers[at] != 0; at = (at + 1) & numbering->mask) {
        if (numbering->keys[at] == key)
            return numbering->numbers[at] - 1;
    }
    numbering->keys[at] = key;
    numbering->numbers[at] = ++numbering->count;
    return numbering->count - 1;
}

static uint64_t hash_double(uint64_t hash, double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    return hash64_mix(hash, bits);
}

static void seed(struct refinement *state)
{
    const struct layout *layout = state->unfolded;
    const struct layout_graph *graph = layout->parts->graph;
    for (int64_t i = 0; i < layout->ranks; i++) {
        const struct host_sample *host = &graph->samples[i / layout->gpus_per_host];
        const uint64_t *ways = graph->variants[host->variant].ways;
        uint64_t hash = hash_double(1, layout->classes[i].clock_frac);
        hash = hash64_mix(hash, layout->classes[i].load);
        for (const char *name = layout->classes[i].gpu->name; *name != '\0'; name++)
            hash = hash64_mix(hash, (unsigned char)*name);
        if (ways != NULL)
            hash = hash64_mix(hash, ways[i % layout->gpus_per_host]);
        for (int32_t g = 0; g < state->group_count; g++) {
            if (state->groups[g].order == GROUP_STAGES)
                hash = hash64_mix(hash, (uint64_t)group_place(&state->groups[g], i));
        }
        state->ranks[i] = hash;
    }
    for (int32_t i = 0; i < layout->resource_count; i++) {
        const struct resource *resource = &layout->resources[i];
        const uint64_t kind = hash64_mix((uint64_t)resource->kind, (uint64_t)resource->instances);
        state->resources[i] = hash_double(kind, resource->capacity);
    }
}

/* A rank on its own has resource r at place i of its class in the unfolded layout. */
static int32_t resource_at(const struct layout *unfolded, int64_t rank, int32_t which)
{
    return *rank_class_resource(&unfolded->classes[rank], which);
}

static void refine_machine(struct refinement *state)
{
    const struct layout *layout = state->unfolded;
    memset(state->resource_sums, 0, sizeof(uint64_t) * (size_t)layout->resource_count);
    memset(state->host_sums, 0, sizeof(uint64_t) * (size_t)layout->hosts);
    for (int64_t i = 0; i < layout->ranks; i++) {
        state->host_sums[i / layout->gpus_per_host] += hash64_mix(state->ranks[i], SALT_HOST);
        for (int32_t j = 0; j < RANK_RESOURCE_COUNT; j++) {
            const int32_t resource = resource_at(layout, i, j);
            if (resource >= 0)
                state->resource_sums[resource] +=
                    hash64_mix(state->ranks[i], (uint64_t)SALT_RESOURCE * 100 + (uint64_t)j);
        }
    }
    for (int32_t i = 0; i < layout->resource_count; i++)
        state->resources[i] = hash64_mix(state->resources[i], state->resource_sums[i]);
    for (int64_t i = 0; i < layout->hosts; i++)
        state->hosts[i] = hash64_mix(state->hosts[i], state->host_sums[i]);
    for (int64_t i = 0; i < layout->ranks; i++) {
        uint64_t hash = hash64_mix(state->ranks[i], state->hosts[i / layout->gpus_per_host]);
        for (int32_t j = 0; j < RANK_RESOURCE_COUNT; j++) {
            const int32_t resource = resource_at(layout, i, j);
            hash = hash64_mix(hash, resource < 0 ? 0 : state->resources[resource]);
        }
        state->next_ranks[i] = hash;
    }
}

/* The neighbour at `hop`, and whether it is on the same host. */
static uint64_t neighbour(const struct refinement *state, const struct group *group, int64_t rank,
                          int64_t hop, enum salt salt)
{
    const int64_t peer = group_neighbour(group, rank, hop);
    const int64_t gpus = state->unfolded->gpus_per_host;
    const uint64_t label = (uint64_t)salt * 2 + (peer / gpus == rank / gpus ? 1 : 0);
    return hash64_mix(state->ranks[peer], label);
}

/* Parts are numbered by the group's first rank on each of its hosts, wholes by its first rank. */
static void refine_groups(struct refinement *state, const struct group *group)
{
    const int64_t count = state->unfolded->ranks;
    const int64_t per_host = group->ranks_per_host;
    memset(state->parts, 0, sizeof(uint64_t) * (size_t)count);
    memset(state->wholes, 0, sizeof(uint64_t) * (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t part = i - group_place(group, i) % per_host * group_stride(group);
        state->parts[part] += hash64_mix(state->ranks[i], SALT_PART);
    }
    for (int64_t i = 0; i < count; i++) {
        if (group_place(group, i) % per_host == 0)
            state->wholes[group_of_rank(group, i)] += hash64_mix(state->parts[i], SALT_GROUP);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t part = i - group_place(group, i) % per_host * group_stride(group);
        uint64_t hash = hash64_mix(state->next_ranks[i], state->parts[part]);
        hash = hash64_mix(hash, state->wholes[group_of_rank(group, i)]);
        if (group->order != GROUP_UNORDERED) {
            hash = hash64_mix(hash, neighbour(state, group, i, 1, SALT_NEXT));
            hash = hash64_mix(hash, neighbour(state, group, i, -1, SALT_PREVIOUS));
        }
        state->next_ranks[i] = hash;
    }
}

/* Colours of ranks and resources, refined until no class splits. */
static void refine(struct refinement *state, struct numbering *numbering)
{
    const int64_t ranks = state->unfolded->ranks;
    seed(state);
    for (int32_t before = 0;;) {
        refine_machine(state);
        for (int32_t g = 0; g < state->group_count; g++)
            refine_groups(state, &state->groups[g]);
        uint64_t *swap = state->ranks;
        state->ranks = state->next_ranks;
        state->next_ranks = swap;
        numbering_clear(numbering);
        for (int64_t i = 0; i < ranks; i++)
            (void)number_of(numbering, state->ranks[i]);
        if (numbering->count == before)
            return;
        before = numbering->count;
    }
}

/* Wires that are no rank's own are alike on alike hosts when they carry the same there. */
static void colour_wires(struct refinement *state)
{
    const struct layout *layout = state->unfolded;
    const struct layout_parts *parts = layout->parts;
    const struct layout_graph *graph = parts->graph;
    for (int32_t host = 0; host < graph->sample_count; host++) {
        const uint64_t *signatures = graph->variants[graph->samples[host].variant].signatures;
        for (int32_t i = 0; i < graph->host.wire_count; i++) {
            const int32_t resource = parts->wire_resources[host * graph->host.wire_count + i];
            if (resource < 0 || state->is_rank_own[resource])
                continue;
            uint64_t hash = hash64_mix(state->resources[resource], SALT_WIRE);
            hash = hash64_mix(hash, state->hosts[host]);
            state->resources[resource] = hash64_mix(hash, signatures != NULL ? signatures[i] : 0);
            state->is_rank_own[resource] = true; /* twins are one resource: once */
        }
    }
    for (int32_t i = 0; i < layout->resource_count; i++)
        if (!state->is_rank_own[i]) /* uplinks of the fabric */
            state->resources[i] = hash64_mix(state->resources[i], (uint64_t)i);
}

static void find_rank_own(const struct refinement *state)
{
    for (int64_t i = 0; i < state->unfolded->ranks; i++) {
        for (int32_t j = 0; j < RANK_RESOURCE_COUNT; j++) {
            const int32_t resource = resource_at(state->unfolded, i, j);
            if (resource >= 0)
                state->is_rank_own[resource] = true;
        }
    }
}

static struct refinement refinement_new(struct arena *scratch, const struct layout *unfolded,
                                        const struct group *groups, int32_t group_count)
{
    const int64_t ranks = unfolded->ranks;
    return (struct refinement){
        .scratch = scratch,
        .unfolded = unfolded,
        .groups = groups,
        .group_count = group_count,
        .ranks = ARENA_ARRAY(scratch, uint64_t, ranks),
        .next_ranks = ARENA_ARRAY(scratch, uint64_t, ranks),
        .resources = ARENA_ARRAY(scratch, uint64_t, unfolded->resource_count),
        .resource_sums = ARENA_ARRAY(scratch, uint64_t, unfolded->resource_count),
        .is_rank_own = ARENA_ARRAY(scratch, bool, unfolded->resource_count),
        .hosts = ARENA_ARRAY(scratch, uint64_t, unfolded->hosts),
        .host_sums = ARENA_ARRAY(scratch, uint64_t, unfolded->hosts),
        .parts = ARENA_ARRAY(scratch, uint64_t, ranks),
        .wholes = ARENA_ARRAY(scratch, uint64_t, ranks),
    };
}

struct quotient {
    struct layout *layout;
    const struct refinement *state;
    int32_t *class_of, *resource_of; /* -1: not met */
    struct numbering ranks, resources, hosts;
    int64_t *last_host; /* by class: the last host met, plus one */
};

static void add_resource(struct quotient *quotient, int32_t from)
{
    struct layout *layout = quotient->layout;
    const struct layout *unfolded = quotient->state->unfolded;
    if (quotient->resource_of[from] >= 0)
        return;
    const int32_t to = number_of(&quotient->resources, quotient->state->resources[from]);
    if (to == layout->resource_count) {
        layout->resources[layout->resource_count++] = unfolded->resources[from];
        layout->resources[to].instances = 0;
    }
    layout->resources[to].instances += unfolded->resources[from].instances;
    quotient->resource_of[from] = to;
}

/* Classes appear in the order of their lowest rank, as layout.h wants them. */
static void add_rank(struct quotient *quotient, int64_t rank)
{
    struct layout *layout = quotient->layout;
    const struct layout *unfolded = quotient->state->unfolded;
    const int64_t host = rank / layout->gpus_per_host;
    const int32_t idx = number_of(&quotient->ranks, quotient->state->ranks[rank]);
    struct rank_class *class = &layout->classes[idx];
    if (idx == layout->class_count) {
        layout->class_count++;
        *class = unfolded->classes[rank];
        class->count = class->hosts = 0;
        class->host_class = number_of(&quotient->hosts, quotient->state->hosts[host]);
    }
    class->count++;
    class->hosts += quotient->last_host[idx] != host + 1 ? 1 : 0;
    quotient->last_host[idx] = host + 1;
    quotient->class_of[rank] = idx;
    for (int32_t i = 0; i < RANK_RESOURCE_COUNT; i++) {
        const int32_t from = resource_at(unfolded, rank, i);
        if (from >= 0)
            add_resource(quotient, from);
    }
}

static void finish_class(const struct quotient *quotient, struct rank_class *class)
{
    for (int32_t i = 0; i < RANK_RESOURCE_COUNT; i++) {
        int32_t *resource = rank_class_resource(class, i);
        *resource = *resource < 0 ? -1 : quotient->resource_of[*resource];
    }
    class->per_host = class->count / class->hosts;
    if (class->nic_out < 0)
        return;
    const int64_t nics = quotient->layout->resources[class->nic_out].instances;
    class->nics_per_host = (double)nics / (double)class->hosts;
    class->ranks_per_nic = (double)class->per_host / class->nics_per_host;
}

/* Numbers of what was counted are as large as the layout they are of. */
static void fold(struct arena *arena, const struct layout *unfolded, const struct group *groups,
                 int32_t group_count, struct layout *layout, struct layout_ranks *each)
{
    struct arena scratch = {0};
    struct refinement state = refinement_new(&scratch, unfolded, groups, group_count);
    struct numbering ranks = numbering_new(&scratch, unfolded->ranks);
    refine(&state, &ranks);
    find_rank_own(&state);
    colour_wires(&state);
    *layout = *unfolded;
    layout->classes = ARENA_ARRAY(arena, struct rank_class, ranks.count);
    layout->class_count = layout->resource_count = 0;
    numbering_clear(&ranks);
    struct quotient quotient = {.layout = layout,
                                .state = &state,
                                .class_of = ARENA_ARRAY(arena, int32_t, unfolded->ranks),
                                .resource_of =
                                    ARENA_ARRAY(arena, int32_t, unfolded->resource_count),
                                .ranks = ranks,
                                .resources = numbering_new(&scratch, unfolded->resource_count),
                                .hosts = numbering_new(&scratch, unfolded->hosts),
                                .last_host = ARENA_ARRAY(&scratch, int64_t, unfolded->ranks)};
    for (int32_t i = 0; i < unfolded->resource_count; i++) {
        quotient.resource_of[i] = -1;
        (void)number_of(&quotient.resources, state.resources[i]);
    }
    layout->resources = ARENA_ARRAY(arena, struct resource, quotient.resources.count);
    numbering_clear(&quotient.resources);
    for (int64_t i = 0; i < unfolded->ranks; i++)
        add_rank(&quotient, i);
    for (int32_t i = 0; i < unfolded->resource_count; i++)
        add_resource(&quotient, i);
    for (int32_t i = 0; i < layout->class_count; i++)
        finish_class(&quotient, &layout->classes[i]);
    layout->parts =
        layout_parts_renumbered(arena, unfolded, quotient.resource_of, layout->class_count);
    *each = (struct layout_ranks){unfolded, quotient.class_of, quotient.resource_of};
    arena_release(&scratch);
}

static void keep_each(struct arena *arena, const struct layout *unfolded, struct layout_ranks *each)
{
    int32_t *ranks = ARENA_ARRAY(arena, int32_t, unfolded->ranks);
    int32_t *resources = ARENA_ARRAY(arena, int32_t, unfolded->resource_count);
    for (int32_t i = 0; i < unfolded->ranks; i++)
        ranks[i] = i;
    for (int32_t i = 0; i < unfolded->resource_count; i++)
        resources[i] = i;
    *each = (struct layout_ranks){unfolded, ranks, resources};
}

enum status layout_build_for_groups(struct arena *arena, const struct cluster *cluster,
                                    int64_t hosts, int64_t gpus_per_host, bool is_folded,
                                    const struct group *groups, int32_t group_count,
                                    struct layout *layout, struct diag *diag)
{
    bool is_needed = false;
    for (int32_t i = 0; i < group_count; i++)
        is_needed |= groups[i].ranks > 1 && (groups[i].ranks != hosts * gpus_per_host ||
                                             groups[i].order != GROUP_UNORDERED);
    if (!is_needed)
        return layout_build(arena, cluster, hosts, gpus_per_host, is_folded, layout, diag);
    struct layout *unfolded = ARENA_NEW(arena, struct layout);
    const enum status status =
        layout_build(arena, cluster, hosts, gpus_per_host, false, unfolded, diag);
    if (status != STATUS_OK)
        return status;
    struct layout_ranks *each = ARENA_NEW(arena, struct layout_ranks);
    if (is_folded) {
        fold(arena, unfolded, groups, group_count, layout, each);
    } else {
        *layout = *unfolded;
        keep_each(arena, unfolded, each);
    }
    layout->each = each;
    return STATUS_OK;
}
