/*
 * schedule/fsdp_units.c: units from the groups of a wrapped tree (fsdp_wrap.c), numbered in the
 * order in which forward reaches them, outer before inner.
 */
#include <string.h>

#include "schedule/fsdp_private.h"
#include "schedule/fsdp_tree.h"

struct numbering {
    struct fsdp_builder *builder;
    const struct module_tree *tree;
    int32_t *units; /* by group; −1: not reached yet */
    int32_t module; /* that forward is at */
};

/* The nodes of a unit give it its name: "norm+lm_head", of many the first and the last. */
static void name_unit(struct numbering *numbering, int32_t group)
{
    const struct module_tree *tree = numbering->tree;
    struct arena *arena = tree->arena;
    const char *name = NULL, *last = NULL;
    int32_t count = 0;
    for (int32_t i = 0; i < tree->nodes.count; i++) {
        if (tree->nodes.items[i].group != group)
            continue;
        last = tree->nodes.items[i].name;
        count++;
        if (count == 1)
            name = last;
        else if (count <= 3)
            name = arena_printf(arena, "%s+%s", name, last);
    }
    if (count > 3)
        name = arena_printf(arena, "%.*s..%s", (int)strcspn(name, "+"), name, last);
    numbering->builder->units[numbering->units[group]].name = name;
}

/* The unit of a node, numbered behind those above it. */
static int32_t unit_of(struct numbering *numbering, int32_t node)
{
    enum { MOST_ABOVE = 16 };
    const struct module_tree *tree = numbering->tree;
    int32_t above[MOST_ABOVE], depth = 0;
    for (int32_t at = node; at > 0; at = tree->nodes.items[at].parent)
        if (tree->nodes.items[at].group != 0) {
            BUG_IF(depth == MOST_ABOVE);
            above[depth++] = tree->nodes.items[at].group;
        }
    struct fsdp_builder *builder = numbering->builder;
    int32_t unit = 0;
    while (depth > 0) {
        int32_t *slot = &numbering->units[above[--depth]];
        if (*slot < 0) {
            *slot = builder->unit_count++;
            builder->units[*slot].parent = unit;
            builder->units[*slot].first_module = numbering->module;
            name_unit(numbering, above[depth]);
        }
        unit = *slot;
    }
    return unit;
}

static void place_module(struct numbering *numbering, int32_t index)
{
    struct fsdp_builder *builder = numbering->builder;
    const struct module_tree *tree = numbering->tree;
    const struct module_kind *kind = module_tree_kind(tree, index);
    const struct kind_paths *paths = &tree->paths[builder->model->modules[index].kind_idx];
    struct fsdp_module *module = &builder->modules[index];
    const int32_t node = tree->module_nodes[index];
    numbering->module = index;
    module->unit = unit_of(numbering, node);
    module->path_units = NULL;
    bool is_divided = false;
    for (int32_t i = 1; i < paths->count; i++)
        is_divided = is_divided || tree->nodes.items[node + i].group != 0;
    if (is_divided) {
        module->path_units = ARENA_ARRAY(builder->arena, int32_t, paths->count);
        for (int32_t k = 0; k < kind->forward.count; k++) /* in the order of forward */
            (void)unit_of(numbering, node + kind_path_of(paths, &kind->forward.items[k]));
        for (int32_t i = 0; i < paths->count; i++)
            module->path_units[i] = unit_of(numbering, node + i);
    }
    for (int32_t p = 0; p < kind->param_count; p++) {
        const int32_t unit = is_divided ? module->path_units[paths->of_param[p]] : module->unit;
        builder->units[unit].param_count++;
        builder->units[unit].parameters += kind->params[p].dim0 * kind->params[p].rest;
    }
}

int32_t fsdp_param_unit(const struct fsdp_builder *builder, int32_t index, int32_t param)
{
    const struct fsdp_module *module = &builder->modules[index];
    if (module->path_units == NULL)
        return module->unit;
    return module
        ->path_units[builder->paths[builder->model->modules[index].kind_idx].of_param[param]];
}

void fsdp_assign_units(struct fsdp_builder *builder, bool wraps_adapters)
{
    const int32_t module_count = builder->model->module_count;
    struct module_tree tree;
    module_tree_wrap(builder->arena, builder->model, &builder->settings->fsdp.wrap, wraps_adapters,
                     &tree);
    builder->paths = tree.paths;
    builder->units = ARENA_ARRAY(builder->arena, struct fsdp_unit, tree.group_count);
    builder->modules = ARENA_ARRAY(builder->arena, struct fsdp_module, module_count);
    builder->unit_count = 1;
    builder->units[0].name = "root";
    struct numbering numbering = {.builder = builder,
                                  .tree = &tree,
                                  .units = ARENA_ARRAY(builder->arena, int32_t, tree.group_count)};
    for (int32_t i = 0; i < tree.group_count; i++)
        numbering.units[i] = i == 0 ? 0 : -1;
    for (int32_t i = 0; i < module_count; i++) {
        builder->modules[i].unit = -1;
        if (tree.module_nodes[i] >= 0)
            place_module(&numbering, i);
    }
}
