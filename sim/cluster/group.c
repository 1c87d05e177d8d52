/* cluster/group.c: classes of groups, and what one group sees, from the ranks of a layout. */
#include "cluster/group.h"

#include "cluster/layout_private.h"

bool group_along(const struct layout *layout, int64_t ranks, int64_t stride, struct group *group)
{
    const int64_t gpus = layout->gpus_per_host;
    if (ranks < 1 || stride < 1 || layout->ranks % (ranks * stride) != 0)
        return false;
    *group = (struct group){.ranks = ranks, .hosts = 1, .ranks_per_host = ranks, .stride = stride};
    if (ranks == 1)
        return true;
    if (stride >= gpus) {
        group->hosts = ranks;
        group->ranks_per_host = 1;
        return stride % gpus == 0;
    }
    if (ranks * stride <= gpus)
        return gpus % (ranks * stride) == 0;
    group->hosts = ranks * stride / gpus;
    group->ranks_per_host = gpus / stride;
    return gpus % stride == 0 && ranks * stride % gpus == 0;
}

struct group group_whole(const struct layout *view)
{
    return (struct group){
        .ranks = view->ranks, .hosts = view->hosts, .ranks_per_host = view->gpus_per_host};
}

struct splitter {
    struct arena *arena;
    const struct layout *layout;
    struct group_split *split;
    int64_t *members; /* by rank class: in the group at work */
    int64_t *hosts;   /* … and hosts that hold them */
    int64_t *last_host;
    int32_t *seen; /* by resource of the unfolded layout: 1 + the group class that used it */
    int64_t *used; /* by resource: its instances that the group at work uses */
};

static void use_resources(struct splitter *splitter, int32_t item, struct rank_class rank)
{
    const struct layout_ranks *each = splitter->layout->each;
    for (int32_t i = 0; i < RANK_OWN_RESOURCES; i++) {
        const int32_t resource = *rank_class_resource(&rank, i);
        if (resource < 0 || splitter->seen[resource] == item + 1)
            continue;
        splitter->seen[resource] = item + 1;
        splitter->used[each->resource_of[resource]] +=
            each->unfolded->resources[resource].instances;
    }
}

/* Goes over the members of the first group of the class; returns the number of rank classes. */
static int32_t count_members(struct splitter *splitter, int32_t item, int32_t *classes)
{
    const struct layout *layout = splitter->layout;
    const struct group *group = &splitter->split->group;
    const int64_t first = splitter->split->items[item].first_rank;
    int32_t count = 0;
    for (int64_t i = 0; i < group->ranks; i++) {
        const int64_t rank = first + i * group_stride(group);
        const int64_t host = rank / layout->gpus_per_host;
        const int32_t class = layout->each->class_of[rank];
        if (splitter->members[class]++ == 0)
            classes[count++] = class;
        if (splitter->last_host[class] != host + 1)
            splitter->hosts[class]++;
        splitter->last_host[class] = host + 1;
        use_resources(splitter, item, layout->each->unfolded->classes[rank]);
    }
    return count;
}

/* NICs of the group at work on one of its hosts. */
static int64_t count_nics(const struct splitter *splitter, const int32_t *classes, int32_t count)
{
    const struct layout *layout = splitter->layout;
    int64_t nics = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t nic = layout->classes[classes[i]].nic_out;
        bool is_counted = nic < 0;
        for (int32_t j = 0; j < i && !is_counted; j++)
            is_counted = layout->classes[classes[j]].nic_out == nic;
        nics += is_counted ? 0 : splitter->used[nic];
    }
    return nics / splitter->split->group.hosts;
}

static struct rank_class seen_class(const struct splitter *splitter, int32_t class)
{
    struct rank_class seen = splitter->layout->classes[class];
    seen.count = splitter->members[class];
    seen.hosts = splitter->hosts[class];
    seen.per_host = seen.count / seen.hosts;
    if (splitter->split->group.hosts == 1) {
        seen.nic_out = seen.nic_in = -1;
        seen.ranks_per_nic = seen.nics_per_host = 0;
    } else if (seen.nic_out >= 0) {
        seen.nics_per_host = (double)splitter->used[seen.nic_out] / (double)seen.hosts;
        seen.ranks_per_nic = (double)seen.per_host / seen.nics_per_host;
    }
    return seen;
}

static void share_resources(struct splitter *splitter, struct group_class *item)
{
    const int32_t count = splitter->layout->resource_count;
    struct group_share *shares = ARENA_ARRAY(splitter->arena, struct group_share, count);
    for (int32_t i = 0; i < count; i++) {
        if (splitter->used[i] == 0)
            continue;
        /* n of I · n / N: see finish_shares. */
        shares[item->share_count++] = (struct group_share){i, (double)splitter->used[i]};
        splitter->used[i] = 0;
    }
    item->shares = shares;
}

static void describe_item(struct splitter *splitter, int32_t item_idx)
{
    const struct layout *layout = splitter->layout;
    struct group_split *split = splitter->split;
    struct group_class *item = &split->items[item_idx];
    const int64_t most =
        split->group.ranks < layout->class_count ? split->group.ranks : layout->class_count;
    int32_t *classes = ARENA_ARRAY(splitter->arena, int32_t, most);
    struct layout *view = ARENA_NEW(splitter->arena, struct layout);
    *view = *layout;
    view->each = NULL;
    view->hosts = split->group.hosts;
    view->gpus_per_host = split->group.ranks_per_host;
    view->ranks = split->group.ranks;
    view->parts = layout_parts_renumbered(splitter->arena, layout->each->unfolded,
                                          layout->each->resource_of, 0);
    layout_parts_view(layout->each->unfolded, &split->group, item->first_rank, view->parts);
    view->class_count = count_members(splitter, item_idx, classes);
    layout_view_used(view, layout->each->unfolded, splitter->used);
    view->nics_per_host =
        split->group.hosts > 1 ? count_nics(splitter, classes, view->class_count) : 0;
    view->classes = ARENA_ARRAY(splitter->arena, struct rank_class, view->class_count);
    for (int32_t i = 0; i < view->class_count; i++) {
        view->classes[i] = seen_class(splitter, classes[i]);
        split->item_of[classes[i]] = item_idx;
        split->seat_of[classes[i]] = i;
    }
    item->classes = classes;
    item->view = view;
    share_resources(splitter, item);
    for (int32_t i = 0; i < view->class_count; i++)
        splitter->members[classes[i]] = splitter->hosts[classes[i]] =
            splitter->last_host[classes[i]] = 0;
}

/* Instances are known only now; what one group has to itself is not listed. */
static void finish_shares(const struct layout *layout, struct group_class *item)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < item->share_count; i++) {
        struct group_share *share = &item->shares[i];
        share->groups *= (double)item->instances;
        share->groups /= (double)layout->resources[share->resource].instances;
        if (share->groups < 1 || share->groups > 1)
            item->shares[kept++] = *share;
    }
    item->share_count = kept;
}

static void split_whole(struct arena *arena, const struct layout *layout, struct group_split *split)
{
    int32_t *classes = ARENA_ARRAY(arena, int32_t, layout->class_count);
    for (int32_t i = 0; i < layout->class_count; i++)
        classes[i] = split->seat_of[i] = i;
    split->items = ARENA_NEW(arena, struct group_class);
    split->items[split->count++] =
        (struct group_class){.instances = 1, .view = layout, .classes = classes};
}

static struct splitter splitter_new(struct arena *arena, struct arena *scratch,
                                    const struct layout *layout, struct group_split *split)
{
    return (struct splitter){
        .arena = arena,
        .layout = layout,
        .split = split,
        .members = ARENA_ARRAY(scratch, int64_t, layout->class_count),
        .hosts = ARENA_ARRAY(scratch, int64_t, layout->class_count),
        .last_host = ARENA_ARRAY(scratch, int64_t, layout->class_count),
        .seen = ARENA_ARRAY(scratch, int32_t, layout->each->unfolded->resource_count),
        .used = ARENA_ARRAY(scratch, int64_t, layout->resource_count)};
}

/* Groups of one: each class by itself, nothing to move. */
static void split_single(struct arena *arena, const struct layout *layout,
                         struct group_split *split)
{
    int32_t *classes = ARENA_ARRAY(arena, int32_t, layout->class_count);
    struct layout *views = ARENA_ARRAY(arena, struct layout, layout->class_count);
    struct rank_class *members = ARENA_ARRAY(arena, struct rank_class, layout->class_count);
    split->items = ARENA_ARRAY(arena, struct group_class, layout->class_count);
    split->count = layout->class_count;
    for (int32_t i = 0; i < layout->class_count; i++) {
        members[i] = layout->classes[i];
        members[i].count = members[i].hosts = members[i].per_host = 1;
        views[i] = *layout;
        views[i].hosts = views[i].gpus_per_host = views[i].ranks = 1;
        views[i].nics_per_host = 0;
        views[i].classes = &members[i];
        views[i].class_count = 1;
        classes[i] = split->item_of[i] = i;
        split->items[i] = (struct group_class){.instances = layout->classes[i].count,
                                               .first_rank = layout->classes[i].first_rank,
                                               .view = &views[i],
                                               .classes = &classes[i]};
    }
}

void group_split_build(struct arena *arena, const struct layout *layout, const struct group *group,
                       struct group_split *split)
{
    *split = (struct group_split){.group = *group,
                                  .item_of = ARENA_ARRAY(arena, int32_t, layout->class_count),
                                  .seat_of = ARENA_ARRAY(arena, int32_t, layout->class_count)};
    if (group->ranks == layout->ranks) {
        split_whole(arena, layout, split);
        return;
    }
    if (group->ranks == 1) {
        split_single(arena, layout, split);
        return;
    }
    if (layout->each == NULL)
        BUG("the layout was not built for groups of %lld ranks", (long long)group->ranks);
    struct arena scratch = {0};
    struct splitter splitter = splitter_new(arena, &scratch, layout, split);
    for (int32_t i = 0; i < layout->class_count; i++)
        split->item_of[i] = -1;
    split->items = ARENA_ARRAY(arena, struct group_class, layout->class_count);
    for (int64_t i = 0; i < layout->ranks / group->ranks; i++) {
        const int64_t first = group_first_rank(group, i);
        int32_t item = split->item_of[layout->each->class_of[first]];
        if (item < 0) {
            item = split->count++;
            split->items[item].first_rank = first;
            describe_item(&splitter, item);
        }
        split->items[item].instances++;
    }
    for (int32_t i = 0; i < split->count; i++)
        finish_shares(layout, &split->items[i]);
    arena_release(&scratch);
}

const struct layout *group_view(struct arena *arena, const struct layout *layout,
                                const struct group *group, int64_t first_rank)
{
    struct arena scratch = {0};
    struct group_class item = {.instances = 1, .first_rank = first_rank};
    struct group_split split = {.group = *group,
                                .items = &item,
                                .count = 1,
                                .item_of = ARENA_ARRAY(&scratch, int32_t, layout->class_count),
                                .seat_of = ARENA_ARRAY(&scratch, int32_t, layout->class_count)};
    struct splitter splitter = splitter_new(arena, &scratch, layout, &split);
    describe_item(&splitter, 0);
    arena_release(&scratch);
    return item.view;
}
