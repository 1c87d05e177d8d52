/* schedule/fsdp_wrap_check.c: what `fsdp.wrap` may ask for. */
#include <string.h>

#include "schedule/fsdp_tree.h"

static const char *known_modules(struct arena *arena, const struct module_tree *tree)
{
    const char *known = "modules are";
    for (int32_t i = 1; i < tree->nodes.count; i++) {
        const struct tree_node *node = &tree->nodes.items[i];
        const bool is_first = node->module < 0 || i == tree->module_nodes[node->module] ||
                              tree->nodes.items[node->parent].path == 0;
        /* Of blocks that are alike the first. */
        const bool is_again = node->module > 0 && module_tree_kind(tree, node->module) ==
                                                      module_tree_kind(tree, node->module - 1);
        if (is_first && !is_again && !node->is_list)
            known = arena_printf(arena, "%s%s %s", known, i > 1 ? "," : "", node->name);
    }
    return arena_printf(arena, "%s; * stands for one word between dots", known);
}

static bool names_any(const struct module_tree *tree, const char *entry)
{
    bool is_any = false;
    int32_t names = 0;
    for (int32_t i = 1; i < tree->nodes.count && !is_any; i++)
        is_any = !tree->nodes.items[i].is_list &&
                 module_tree_matches(tree->arena, tree->nodes.items[i].name, entry, &names);
    return is_any;
}

static void check_tied(struct config *config, const struct module_tree *tree)
{
    int32_t embedding = 0, head = 0;
    for (int32_t i = 0; i < tree->model->module_count && tree->model->is_tied; i++) {
        if (module_tree_kind(tree, i)->role == MODULE_EMBEDDING)
            embedding = module_tree_group(tree, tree->module_nodes[i]);
        if (module_tree_kind(tree, i)->role == MODULE_HEAD)
            head = module_tree_group(tree, tree->module_nodes[i]);
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
            if (node->is_list ||
                !module_tree_matches(config->arena, node->name, entries[i], &names))
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
    module_tree_wrap(config->arena, model, wrap, false, &tree);
    int *seen = ARENA_ARRAY(config->arena, int, tree.group_count); /* 1: trained, 2: frozen */
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct module_kind *kind = module_tree_kind(&tree, i);
        if (tree.module_nodes[i] < 0 || kind->numel == 0)
            continue;
        int *flags = &seen[module_tree_group(&tree, tree.module_nodes[i])];
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
    module_tree_wrap(config->arena, model, wrap, false, &tree);
    for (int64_t i = 0; i < wrap->modules.count; i++)
        if (!names_any(&tree, entries[i]))
            config_error(config, "fsdp.wrap.modules", known_modules(config->arena, &tree),
                         "model '%s' has no module '%s'", model->name, entries[i]);
    check_named_once(config, &tree, wrap);
    check_tied(config, &tree);
    return config->diag->error_count == errors_before ? STATUS_OK : STATUS_INPUT;
}
