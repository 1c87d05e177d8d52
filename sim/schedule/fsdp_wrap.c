/*
 * schedule/fsdp_wrap.c: `fsdp.wrap`: which modules form a unit.
 *
 * Every policy marks nodes of the tree of modules (fsdp_tree.h): a node with a group of its own is
 * a unit, nodes of one group are one together. `size` is PyTorch's size_based_auto_wrap_policy:
 * bottom-up, a module becomes a unit when what of it is in no unit yet has min_num_params or more;
 * lists of modules and the root never do.
 *
 * Example, Qwen2.5-7B, 100,000,000: the embedding and the head (545e6 each), the MLP of each block
 * (204e6; its linear layers of 68e6 are too small), and, since attention of a block has 29e6 only,
 * the base model with the attention of all blocks, 823e6.
 *
 * Units are numbered in the order in which forward reaches them, outer before inner.
 */
#include <string.h>

#include "model/module_name.h"
#include "schedule/fsdp_private.h"
#include "schedule/fsdp_tree.h"

static const struct module_kind *kind_of(const struct module_tree *tree, int32_t module)
{
    return &tree->model->kinds[tree->model->modules[module].kind_idx];
}

static bool is_head_role(enum module_role role)
{
    return role == MODULE_NORM || role == MODULE_HEAD;
}

/* ---- policies ------------------------------------------------------------------------------- */

static void wrap_blocks(struct module_tree *tree, int64_t every)
{
    int64_t blocks = 0;
    for (int32_t i = 0; i < tree->model->module_count; i++) {
        if (kind_of(tree, i)->role != MODULE_BLOCK)
            continue;
        if (blocks++ % every == 0)
            tree->group_count++;
        tree->nodes.items[tree->module_nodes[i]].group = tree->group_count - 1;
    }
}

/* The embedding is a unit, norm and head are one; tied weights must be together: all three. */
static void wrap_as_torchtitan(struct module_tree *tree)
{
    int32_t embedding = 0, head = 0;
    wrap_blocks(tree, 1);
    for (int32_t i = 0; i < tree->model->module_count; i++) {
        const enum module_role role = kind_of(tree, i)->role;
        if (role != MODULE_EMBEDDING && !is_head_role(role))
            continue;
        int32_t *group = is_head_role(role) && !tree->model->is_tied ? &head : &embedding;
        if (*group == 0)
            *group = tree->group_count++;
        tree->nodes.items[tree->module_nodes[i]].group = *group;
    }
}

/* A block, and in it attention and MLP: whatever has linear layers of its own. */
static void wrap_children(struct module_tree *tree)
{
    wrap_blocks(tree, 1);
    for (int32_t i = 1; i < tree->nodes.count; i++) {
        struct tree_node *node = &tree->nodes.items[i];
        const struct tree_node *parent = &tree->nodes.items[node->parent];
        if (parent->module >= 0 && parent->path > 0 && parent->group == 0 &&
            tree->nodes.items[parent->parent].path == 0)
            tree->nodes.items[node->parent].group = tree->group_count++;
    }
}

static bool holds_tied_weights(const struct module_tree *tree, int32_t node)
{
    const int32_t module = tree->nodes.items[node].module;
    if (!tree->model->is_tied || module < 0)
        return false;
    const enum module_role role = kind_of(tree, module)->role;
    return role == MODULE_EMBEDDING || role == MODULE_HEAD;
}

static void wrap_by_size(struct module_tree *tree, int64_t min_num_params)
{
    int64_t *wrapped = ARENA_ARRAY(tree->arena, int64_t, tree->nodes.count);
    for (int32_t i = tree->nodes.count - 1; i > 0; i--) {
        struct tree_node *node = &tree->nodes.items[i];
        const bool is_unit = node->numel - wrapped[i] >= min_num_params && !node->is_list &&
                             !holds_tied_weights(tree, i);
        if (is_unit)
            node->group = tree->group_count++;
        wrapped[node->parent] += is_unit ? node->numel : wrapped[i];
    }
}

/* "norm+lm_head": whether one of the names joined by + is this one; `count`: how many there are. */
static bool matches_any(struct arena *arena, const char *name, const char *text, int32_t *count)
{
    bool is_match = false;
    *count = 0;
    for (const char *at = text; at != NULL;
         at = strchr(at, '+') != NULL ? strchr(at, '+') + 1 : NULL) {
        const char *end = strchr(at, '+');
        const size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        is_match = is_match || module_name_matches(name, arena_strndup(arena, at, length));
        ++*count;
    }
    return is_match;
}

/* Modules that an entry of `modules` names; each a unit, or with + all of them one. */
static int32_t wrap_named(struct module_tree *tree, const char *entry)
{
    int32_t matches = 0, names = 0;
    for (int32_t i = 1; i < tree->nodes.count; i++) {
        struct tree_node *node = &tree->nodes.items[i];
        if (node->is_list || !matches_any(tree->arena, node->name, entry, &names))
            continue;
        if (names == 1 || matches == 0)
            tree->group_count++;
        node->group = tree->group_count - 1;
        matches++;
    }
    return matches;
}

static bool is_deep(const struct wrap_config *wrap)
{
    return wrap->policy == WRAP_CHILD || wrap->policy == WRAP_SIZE || wrap->policy == WRAP_MODULES;
}

static void wrap_tree(struct arena *arena, const struct model *model,
                      const struct wrap_config *wrap, struct module_tree *tree)
{
    module_tree_build(arena, model, is_deep(wrap), tree);
    const char *const *entries = wrap->modules.items;
    switch ((enum wrap_policy)wrap->policy) {
    case WRAP_BLOCK:
        wrap_blocks(tree, wrap->every);
        break;
    case WRAP_TORCHTITAN:
        wrap_as_torchtitan(tree);
        break;
    case WRAP_CHILD:
        wrap_children(tree);
        break;
    case WRAP_SIZE:
        wrap_by_size(tree, wrap->min_num_params);
        break;
    case WRAP_MODULES:
        for (int64_t i = 0; i < wrap->modules.count; i++)
            (void)wrap_named(tree, entries[i]);
        break;
    }
}

/* ---- from nodes to units -------------------------------------------------------------------- */

struct numbering {
    struct fsdp_builder *builder;
    const struct module_tree *tree;
    int32_t *units; /* by group; −1: not reached yet */
    int32_t module; /* that forward is at */
};

static int32_t group_of(const struct module_tree *tree, int32_t node)
{
    while (node > 0 && tree->nodes.items[node].group == 0)
        node = tree->nodes.items[node].parent;
    return node > 0 ? tree->nodes.items[node].group : 0;
}

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
    const struct module_kind *kind = kind_of(tree, index);
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

void fsdp_assign_units(struct fsdp_builder *builder)
{
    const int32_t module_count = builder->model->module_count;
    struct module_tree tree;
    wrap_tree(builder->arena, builder->model, &builder->settings->fsdp.wrap, &tree);
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

/* ---- what a configuration may ask for ------------------------------------------------------- */

static const char *known_modules(struct arena *arena, const struct module_tree *tree)
{
    const char *known = "modules are";
    for (int32_t i = 1; i < tree->nodes.count; i++) {
        const struct tree_node *node = &tree->nodes.items[i];
        const bool is_first = node->module < 0 || i == tree->module_nodes[node->module] ||
                              tree->nodes.items[node->parent].path == 0;
        /* Of blocks that are alike the first. */
        const bool is_again =
            node->module > 0 && kind_of(tree, node->module) == kind_of(tree, node->module - 1);
        if (is_first && !is_again && !node->is_list)
            known = arena_printf(arena, "%s%s %s", known, i > 1 ? "," : "", node->name);
    }
    return arena_printf(arena, "%s; * stands for one word between dots", known);
}

static void check_tied(struct config *config, const struct module_tree *tree)
{
    int32_t embedding = 0, head = 0;
    for (int32_t i = 0; i < tree->model->module_count && tree->model->is_tied; i++) {
        if (kind_of(tree, i)->role == MODULE_EMBEDDING)
            embedding = group_of(tree, tree->module_nodes[i]);
        if (kind_of(tree, i)->role == MODULE_HEAD)
            head = group_of(tree, tree->module_nodes[i]);
    }
    if (embedding != head)
        config_error(config, "fsdp.wrap.modules", "join their names: embed_tokens+norm+lm_head",
                     "embedding and head share weights, so they must be in one unit");
}

/* A module forms one unit only: PyTorch's fully_shard raises where it is given one again. */
static void check_named_once(struct config *config, const struct module_tree *tree,
                             const struct wrap_config *wrap)
{
    const char *const *entries = wrap->modules.items;
    const char **named_by = ARENA_ARRAY(config->arena, const char *, tree->nodes.count);
    for (int64_t i = 0; i < wrap->modules.count; i++) {
        bool is_told = false;
        int32_t names = 0;
        for (int32_t k = 1; k < tree->nodes.count; k++) {
            const struct tree_node *node = &tree->nodes.items[k];
            if (node->is_list || !matches_any(config->arena, node->name, entries[i], &names))
                continue;
            if (named_by[k] != NULL && !is_told)
                config_error(config, "fsdp.wrap.modules", "each module in one entry",
                             "'%s' would be in two units: of '%s' and of '%s'", node->name,
                             named_by[k], entries[i]);
            is_told = is_told || named_by[k] != NULL;
            named_by[k] = entries[i];
        }
    }
}

/* A flat parameter without original ones is trained or frozen as a whole. */
static void check_uniform(struct config *config, const struct model *model,
                          const struct wrap_config *wrap)
{
    struct module_tree tree;
    wrap_tree(config->arena, model, wrap, &tree);
    int *seen = ARENA_ARRAY(config->arena, int, tree.group_count); /* 1: trained, 2: frozen */
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct module_kind *kind = kind_of(&tree, i);
        if (tree.module_nodes[i] < 0 || kind->numel == 0)
            continue;
        int *flags = &seen[group_of(&tree, tree.module_nodes[i])];
        const int flag = kind->frozen_numel > 0 ? 2 : 1;
        if (*flags != 0 && *flags != flag) {
            config_error(config, "train.frozen", "'fsdp.use_orig_params: true', or another 'wrap'",
                         "fsdp1 cannot flatten frozen and trained parameters together: '%s'",
                         model->modules[i].name);
            return;
        }
        *flags = flag;
    }
}

enum status wrap_check(struct config *config, const struct model *model,
                       const struct wrap_config *wrap, bool needs_uniform)
{
    const int32_t errors_before = config->diag->error_count;
    if (needs_uniform)
        check_uniform(config, model, wrap);
    const char *const *entries = wrap->modules.items;
    if (wrap->policy == WRAP_CHILD && model->family == FAMILY_ABSTRACT)
        config_error(config, "fsdp.wrap", "'wrap: block'",
                     "the units of an abstract model have nothing inside");
    if (wrap->policy != WRAP_MODULES)
        return config->diag->error_count == errors_before ? STATUS_OK : STATUS_INPUT;
    struct module_tree tree;
    module_tree_build(config->arena, model, true, &tree);
    for (int64_t i = 0; i < wrap->modules.count; i++)
        if (wrap_named(&tree, entries[i]) == 0)
            config_error(config, "fsdp.wrap.modules", known_modules(config->arena, &tree),
                         "model '%s' has no module '%s'", model->name, entries[i]);
    check_named_once(config, &tree, wrap);
    check_tied(config, &tree);
    return config->diag->error_count == errors_before ? STATUS_OK : STATUS_INPUT;
}
