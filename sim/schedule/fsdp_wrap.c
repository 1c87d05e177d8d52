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
 */
#include <string.h>

#include "model/module_name.h"
#include "schedule/fsdp_private.h"
#include "schedule/fsdp_tree.h"

const struct module_kind *module_tree_kind(const struct module_tree *tree, int32_t module)
{
    return &tree->model->kinds[tree->model->modules[module].kind_idx];
}

static bool is_head_role(enum module_role role)
{
    return role == MODULE_NORM || role == MODULE_HEAD;
}

static void wrap_blocks(struct module_tree *tree, int64_t every)
{
    int64_t blocks = 0;
    for (int32_t i = 0; i < tree->model->module_count; i++) {
        if (module_tree_kind(tree, i)->role != MODULE_BLOCK)
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
        const enum module_role role = module_tree_kind(tree, i)->role;
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
    const enum module_role role = module_tree_kind(tree, module)->role;
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

bool module_tree_matches(struct arena *arena, const char *name, const char *text, int32_t *count)
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
static void wrap_named(struct module_tree *tree, const char *entry)
{
    int32_t matches = 0, names = 0;
    for (int32_t i = 1; i < tree->nodes.count; i++) {
        struct tree_node *node = &tree->nodes.items[i];
        if (node->is_list || !module_tree_matches(tree->arena, node->name, entry, &names))
            continue;
        if (names == 1 || matches == 0)
            tree->group_count++;
        node->group = tree->group_count - 1;
        matches++;
    }
}

/* PEFT's fsdp_auto_wrap_policy: whatever has a weight that is trained, and nothing inside, is a
   unit beside those of the policy. */
static void wrap_adapters(struct module_tree *tree)
{
    for (int32_t i = 0; i < tree->model->module_count; i++) {
        const struct module_kind *kind = module_tree_kind(tree, i);
        const struct kind_paths *paths = &tree->paths[tree->model->modules[i].kind_idx];
        for (int32_t p = 0; kind->frozen_numel > 0 && p < kind->param_count; p++) {
            const int32_t path = paths->of_param[p];
            if (!kind->params[p].is_frozen && path > 0)
                tree->nodes.items[tree->module_nodes[i] + path].group = tree->group_count++;
        }
    }
}

static bool is_deep(const struct wrap_config *wrap)
{
    return wrap->policy == WRAP_CHILD || wrap->policy == WRAP_SIZE || wrap->policy == WRAP_MODULES;
}

void module_tree_wrap(struct arena *arena, const struct model *model,
                      const struct wrap_config *wrap, bool wraps_adapters, struct module_tree *tree)
{
    module_tree_build(arena, model, is_deep(wrap) || wraps_adapters, tree);
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
            wrap_named(tree, entries[i]);
        break;
    }
    if (wraps_adapters)
        wrap_adapters(tree);
}

int32_t module_tree_group(const struct module_tree *tree, int32_t node)
{
    while (node > 0 && tree->nodes.items[node].group == 0)
        node = tree->nodes.items[node].parent;
    return node > 0 ? tree->nodes.items[node].group : 0;
}
