/*
 * schedule/fsdp_runs.c: what forward and backward play between two hooks.
 *
 * A module whose parameters are in one unit is one run each way. Where attention, MLP or linear
 * layers are units of their own, its kernels are cut where the unit changes: a Llama block with
 * `wrap: child` is norm | attention | residual, norm | MLP | residual. What it keeps and what it
 * holds beside is as ever: from its first run to its last.
 *
 * Recompute (activation checkpointing) stands in front of a module's backward, in the same segment.
 * It is runs of its own where hooks act in it: units inside the module that backward has not
 * reached yet are gathered for it and freed again; so is the block's unit itself where the
 * checkpoint is a reentrant one around it and not inside it. With per-child checkpointing the
 * recompute of a unit stands in front of the first run of its backward.
 */
#include <string.h>

#include "schedule/fsdp_private.h"

/* Issues of the modules of a kind that are cut alike. */
struct cut {
    int32_t *local; /* by path: units counted as they appear */
    struct {
        int32_t *items;
        int32_t count, capacity;
    } issues; /* in the order in which runs are made */
};

struct cutting {
    struct fsdp_builder *builder;
    int32_t module;
    struct cut *cut;
    int32_t taken; /* of cut->issues; −1: they are being made */
    int32_t named;
};

static int32_t unit_at(const struct cutting *cutting, const struct kernel *kernel)
{
    const struct fsdp_builder *builder = cutting->builder;
    const struct fsdp_module *module = &builder->modules[cutting->module];
    if (module->path_units == NULL)
        return module->unit;
    const int32_t kind_idx = builder->model->modules[cutting->module].kind_idx;
    return module->path_units[kind_path_of(&builder->paths[kind_idx], kernel)];
}

/* `forward_kernels`: a block's host syncs are in its longest run. */
static int32_t next_issue(struct cutting *cutting, const char *what, bool is_backward,
                          const struct kernel_list *kernels, int32_t forward_kernels)
{
    struct fsdp_builder *builder = cutting->builder;
    if (cutting->taken >= 0)
        return cutting->cut->issues.items[cutting->taken++];
    const char *name =
        arena_printf(builder->arena, "%s.%s.%d", builder->model->modules[cutting->module].name,
                     what, (int)cutting->named++);
    const int32_t issue = fsdp_add_module_issue(builder, name, is_backward, kernels->items,
                                                kernels->count, forward_kernels);
    *ARENA_PUSH(builder->arena, &cutting->cut->issues) = issue;
    return issue;
}

static int32_t end_of_run(const struct cutting *cutting, const struct kernel_list *list,
                          int32_t begin)
{
    const int32_t unit = unit_at(cutting, &list->items[begin]);
    int32_t end = begin;
    while (end < list->count && unit_at(cutting, &list->items[end]) == unit)
        end++;
    return end;
}

/* Cuts a list of kernels where the unit changes. */
static void add_list(struct cutting *cutting, const struct kernel_list *list, const char *what,
                     struct fsdp_run like, struct fsdp_runs *runs)
{
    const bool is_backward = runs == &cutting->builder->backward;
    const bool is_forward = !is_backward || like.is_recompute;
    int32_t longest = 0;
    for (int32_t begin = 0, end = 0; begin < list->count; begin = end) {
        end = end_of_run(cutting, list, begin);
        longest = end - begin > longest ? end - begin : longest;
    }
    cutting->named = 0;
    for (int32_t begin = 0, end = 0; begin < list->count; begin = end) {
        end = end_of_run(cutting, list, begin);
        const struct kernel_list part = {.items = &list->items[begin], .count = end - begin};
        const bool has_syncs = is_forward && end - begin == longest;
        like.unit = unit_at(cutting, &list->items[begin]);
        like.issue = next_issue(cutting, what, is_backward, &part, has_syncs ? part.count : 0);
        longest = has_syncs ? -1 : longest;
        *ARENA_PUSH(cutting->builder->arena, runs) = like;
    }
}

/* Per-child checkpointing: kernels of a unit run again where its backward begins. */
static struct kernel_list merge_recompute(const struct cutting *cutting,
                                          const struct module_kind *kind)
{
    struct arena *arena = cutting->builder->arena;
    struct kernel_list merged = {0};
    bool *is_done = ARENA_ARRAY(arena, bool, cutting->builder->unit_count);
    for (int32_t k = 0; k < kind->backward.count; k++) {
        const int32_t unit = unit_at(cutting, &kind->backward.items[k]);
        for (int32_t i = 0; !is_done[unit] && i < kind->recompute.count; i++)
            if (unit_at(cutting, &kind->recompute.items[i]) == unit)
                *ARENA_PUSH(arena, &merged) = kind->recompute.items[i];
        is_done[unit] = true;
        *ARENA_PUSH(arena, &merged) = kind->backward.items[k];
    }
    return merged;
}

/* Units of the paths of a module as they appear: the same for modules that are cut alike. */
static int32_t *count_locally(const struct fsdp_builder *builder, int32_t module, int32_t count)
{
    int32_t *local = ARENA_ARRAY(builder->arena, int32_t, count);
    const int32_t *units = builder->modules[module].path_units;
    int32_t seen = 0;
    for (int32_t i = 0; units != NULL && i < count; i++) {
        int32_t k = 0;
        while (units[k] != units[i])
            k++;
        local[i] = k < i ? local[k] : seen++;
    }
    return local;
}

/* The gradients of a unit's parameters in a module are made at its first run. */
static void add_grads(struct fsdp_builder *builder, int32_t module, int32_t begin)
{
    const struct module_kind *kind = fsdp_kind(builder, module);
    const char *name = builder->model->modules[module].name;
    for (int32_t r = begin; r < builder->backward.count; r++) {
        struct fsdp_run *run = &builder->backward.items[r];
        bool is_later = run->is_recompute;
        for (int32_t i = begin; i < r; i++)
            is_later = is_later || (!builder->backward.items[i].is_recompute &&
                                    builder->backward.items[i].unit == run->unit);
        int64_t numel = 0;
        int32_t count = 0;
        for (int32_t p = 0; !is_later && p < kind->param_count; p++) {
            if (fsdp_param_unit(builder, module, p) != run->unit || kind->params[p].is_frozen)
                continue;
            numel += kind->params[p].dim0 * kind->params[p].rest;
            count++;
        }
        run->grads = fsdp_add_module_grads(
            builder, ARENA_JOIN(builder->arena, name, ":", builder->units[run->unit].name),
            run->unit, numel, count);
    }
}

/* Begins a module: the segments of one of its kind that was cut alike are used again. */
static struct cutting begin_cut(struct fsdp_builder *builder, int32_t index, struct cut *cuts)
{
    const int32_t kind_idx = builder->model->modules[index].kind_idx;
    const int32_t paths = builder->paths[kind_idx].count;
    struct cut *cut = &cuts[kind_idx];
    int32_t *local = count_locally(builder, index, paths);
    const bool is_alike =
        cut->local != NULL && memcmp(cut->local, local, (size_t)paths * sizeof(*local)) == 0;
    if (!is_alike)
        *cut = (struct cut){.local = local};
    return (struct cutting){
        .builder = builder, .module = index, .cut = cut, .taken = is_alike ? 0 : -1};
}

static void cut_forward(struct fsdp_builder *builder, int32_t index, struct cut *cuts)
{
    struct cutting cutting = begin_cut(builder, index, cuts);
    add_list(&cutting, &fsdp_kind(builder, index)->forward, "forward",
             (struct fsdp_run){.module = index, .grads = -1}, &builder->forward);
}

static void cut_backward(struct fsdp_builder *builder, int32_t index, struct cut *cuts)
{
    const struct module_kind *kind = fsdp_kind(builder, index);
    struct cutting cutting = begin_cut(builder, index, cuts);
    const int32_t begin = builder->backward.count;
    struct fsdp_run run = {.module = index, .grads = -1};
    struct kernel_list backward = kind->backward;
    if (kind->is_recomputed && builder->settings->is_checkpoint_per_child) {
        backward = merge_recompute(&cutting, kind);
    } else if (kind->is_recomputed) {
        run.is_recompute = true;
        add_list(&cutting, &kind->recompute, "recompute", run, &builder->backward);
    }
    run.is_recompute = false;
    add_list(&cutting, &backward, "backward", run, &builder->backward);
    add_grads(builder, index, begin);
}

static bool is_cut(const struct fsdp_builder *builder, int32_t index)
{
    return builder->modules[index].path_units != NULL ||
           (builder->settings->is_checkpoint_reentrant &&
            !builder->settings->is_checkpoint_inside && fsdp_kind(builder, index)->is_recomputed);
}

/* Where modules begin and end, and units with what is inside them. */
static void find_spans(struct fsdp_builder *builder, struct fsdp_runs *runs)
{
    runs->first = ARENA_ARRAY(builder->arena, int32_t, builder->unit_count);
    runs->last = ARENA_ARRAY(builder->arena, int32_t, builder->unit_count);
    runs->last_own = ARENA_ARRAY(builder->arena, int32_t, builder->unit_count);
    for (int32_t unit = 0; unit < builder->unit_count; unit++)
        runs->first[unit] = runs->last[unit] = runs->last_own[unit] = -1;
    for (int32_t r = 0; r < runs->count; r++) {
        struct fsdp_run *run = &runs->items[r];
        run->begins = r == 0 || runs->items[r - 1].module != run->module;
        run->ends = r + 1 == runs->count || runs->items[r + 1].module != run->module;
        if (run->is_recompute || run->unit < 0)
            continue;
        runs->last_own[run->unit] = r;
        for (int32_t unit = run->unit; unit > 0; unit = builder->units[unit].parent) {
            runs->last[unit] = r;
            if (runs->first[unit] < 0)
                runs->first[unit] = r;
        }
    }
}

void fsdp_add_runs(struct fsdp_builder *builder)
{
    const struct model *model = builder->model;
    struct cut *cuts = ARENA_ARRAY(builder->arena, struct cut, model->kind_count);
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct fsdp_module *module = &builder->modules[i];
        if (is_cut(builder, i))
            cut_forward(builder, i, cuts);
        else
            *ARENA_PUSH(builder->arena, &builder->forward) = (struct fsdp_run){
                .module = i, .unit = module->unit, .issue = module->forward, .grads = -1};
    }
    cuts = ARENA_ARRAY(builder->arena, struct cut, model->kind_count);
    for (int32_t i = model->module_count - 1; i >= 0; i--) {
        const struct fsdp_module *module = &builder->modules[i];
        if (fsdp_kind(builder, i)->is_unreached)
            continue;
        if (is_cut(builder, i))
            cut_backward(builder, i, cuts);
        else
            *ARENA_PUSH(builder->arena, &builder->backward) =
                (struct fsdp_run){.module = i,
                                  .unit = module->unit,
                                  .issue = module->backward,
                                  .grads = module->grads};
    }
    find_spans(builder, &builder->forward);
    find_spans(builder, &builder->backward);
}

/* ---- playing -------------------------------------------------------------------------------- */

void fsdp_play_forward(struct fsdp_builder *builder, const struct fsdp_run *run)
{
    if (run->begins)
        fsdp_begin_forward(builder, run->module);
    fsdp_issue(builder, run->unit, run->issue);
    if (run->ends)
        fsdp_end_forward(builder, run->module);
}

void fsdp_play_backward(struct fsdp_builder *builder, const struct fsdp_run *run)
{
    if (run->begins)
        fsdp_begin_backward(builder, run->module);
    fsdp_alloc(builder, run->unit, run->grads);
    fsdp_issue(builder, run->unit, run->issue);
    if (run->ends)
        fsdp_end_backward(builder, run->module);
}

void fsdp_free_module_grads(struct fsdp_builder *builder, int32_t unit)
{
    for (int32_t r = builder->backward.count - 1; r >= 0; r--)
        if (builder->backward.items[r].unit == unit)
            fsdp_free(builder, unit, builder->backward.items[r].grads);
}

bool fsdp_is_inside(const struct fsdp_builder *builder, int32_t inner, int32_t unit)
{
    while (inner > 0 && inner != unit)
        inner = builder->units[inner].parent;
    return inner == unit;
}

int32_t fsdp_behind_recompute(const struct fsdp_builder *builder, int32_t run)
{
    while (builder->backward.items[run].is_recompute)
        run++;
    return run;
}

bool fsdp_is_under_checkpoint(const struct fsdp_builder *builder, int32_t unit)
{
    const struct policy_settings *settings = builder->settings;
    const int32_t module = builder->units[unit].first_module;
    const int32_t own = builder->modules[module].unit;
    return settings->is_checkpoint_reentrant && fsdp_kind(builder, module)->is_recomputed &&
           own > 0 && fsdp_is_inside(builder, unit, own) &&
           !(settings->is_checkpoint_inside && unit == own);
}

int32_t fsdp_begin_next(struct fsdp_builder *builder, int32_t run, bool is_before_recompute)
{
    int32_t next = -1;
    for (int32_t at = builder->backward.items[run].unit; at > 0; at = builder->units[at].parent)
        if (builder->backward.first[at] == run && !builder->units[at].has_begun &&
            !(is_before_recompute && fsdp_is_under_checkpoint(builder, at)))
            next = at;
    if (next > 0)
        builder->units[next].has_begun = true;
    return next;
}

/* Whether the next run of the recompute, on (1) or back (−1), is in the unit too. */
static bool goes_on(const struct fsdp_builder *builder, int32_t run, int32_t step, int32_t unit)
{
    const struct fsdp_runs *runs = &builder->backward;
    const int32_t module = runs->items[run].module;
    for (int32_t r = run + step; r >= 0 && r < runs->count; r += step) {
        const struct fsdp_run *other = &runs->items[r];
        if (other->module != module || !other->is_recompute)
            return false;
        if (fsdp_is_inside(builder, other->unit, unit))
            return true;
    }
    return false;
}

bool fsdp_recompute_enters(const struct fsdp_builder *builder, int32_t run, int32_t unit)
{
    return !goes_on(builder, run, -1, unit);
}

bool fsdp_recompute_leaves(const struct fsdp_builder *builder, int32_t run, int32_t unit)
{
    return !goes_on(builder, run, 1, unit);
}
