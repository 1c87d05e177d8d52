/* schedule/fsdp_tree.c: the tree of modules that wrapping works on. */
#include <string.h>

#include "schedule/fsdp_tree.h"

static size_t word_length(const char *text)
{
    const char *dot = strchr(text, '.');
    return dot != NULL ? (size_t)(dot - text) : strlen(text);
}

/* ---- inside a block ------------------------------------------------------------------------- */

/* The words of a kernel's name that name a module: "q_proj" of "q_proj.input_grad", and
   "q_proj.lora_A" of "q_proj.lora_A.input_grad", since an adapter's layer is a module too. */
static size_t stem_length(const char *name)
{
    const size_t first = word_length(name);
    if (name[first] == '\0')
        return first;
    const char *second = name + first + 1;
    const size_t length = word_length(second);
    const bool is_adapter = length == strlen("lora_A") && (strncmp(second, "lora_A", length) == 0 ||
                                                           strncmp(second, "lora_B", length) == 0);
    return is_adapter ? first + 1 + length : first;
}

/* "self_attn" + "q_proj" is "self_attn.q_proj", "self_attn" alone if that is all; `length`: of a
   path that may be longer. */
static bool is_path(const char *path, size_t length, const struct kernel *kernel, bool with_stem)
{
    if (kernel->part == NULL)
        return false;
    const size_t part = strlen(kernel->part), stem = stem_length(kernel->name);
    if (strncmp(path, kernel->part, part) != 0)
        return false;
    if (!with_stem)
        return length == part;
    return length == part + 1 + stem && path[part] == '.' &&
           strncmp(path + part + 1, kernel->name, stem) == 0;
}

int32_t kind_path_of(const struct kind_paths *paths, const struct kernel *kernel)
{
    int32_t found = 0;
    for (int32_t i = 1; i < paths->count; i++) {
        const char *path = paths->items[i].path;
        if (is_path(path, strlen(path), kernel, true))
            return i;
        if (is_path(path, strlen(path), kernel, false))
            found = i;
    }
    return found;
}

static bool has_kernels(const struct module_kind *kind, const char *path, size_t length)
{
    for (int32_t k = 0; k < kind->forward.count; k++)
        if (is_path(path, length, &kind->forward.items[k], false) ||
            is_path(path, length, &kind->forward.items[k], true))
            return true;
    return false;
}

static int32_t find_path(const struct kind_paths *paths, const char *path, size_t length)
{
    for (int32_t i = 1; i < paths->count; i++)
        if (strlen(paths->items[i].path) == length &&
            strncmp(paths->items[i].path, path, length) == 0)
            return i;
    return 0;
}

/* The path of a parameter's module, added with those above it; 0: the block. */
static int32_t add_path(struct arena *arena, const struct module_kind *kind, const char *name,
                        struct kind_paths *paths)
{
    int32_t parent = 0;
    for (size_t end = word_length(name); name[end] != '\0';
         end += 1 + word_length(name + end + 1)) {
        if (!has_kernels(kind, name, end))
            continue;
        const int32_t known = find_path(paths, name, end);
        if (known == 0)
            *ARENA_PUSH(arena, paths) =
                (struct kind_path){.path = arena_strndup(arena, name, end), .parent = parent};
        parent = known != 0 ? known : paths->count - 1;
    }
    return parent;
}

static void list_paths(struct arena *arena, const struct module_kind *kind, bool is_deep,
                       struct kind_paths *paths)
{
    *ARENA_PUSH(arena, paths) = (struct kind_path){.path = "", .parent = -1};
    paths->of_param = ARENA_ARRAY(arena, int32_t, kind->param_count > 0 ? kind->param_count : 1);
    for (int32_t p = 0; p < kind->param_count; p++) {
        const struct param *param = &kind->params[p];
        if (is_deep && kind->role == MODULE_BLOCK)
            paths->of_param[p] = add_path(arena, kind, param->name, paths);
        paths->items[paths->of_param[p]].numel += param->dim0 * param->rest;
    }
}

/* ---- the whole model ------------------------------------------------------------------------ */

static int32_t add_node(struct module_tree *tree, struct tree_node node)
{
    *ARENA_PUSH(tree->arena, &tree->nodes) = node;
    return tree->nodes.count - 1;
}

static void add_numel(struct module_tree *tree, int32_t node, int64_t numel)
{
    for (; node >= 0; node = tree->nodes.items[node].parent)
        tree->nodes.items[node].numel += numel;
}

static void add_module(struct module_tree *tree, int32_t module, int32_t parent)
{
    const struct module *listed = &tree->model->modules[module];
    const struct kind_paths *paths = &tree->paths[listed->kind_idx];
    const int32_t first = tree->nodes.count;
    tree->module_nodes[module] = first;
    for (int32_t i = 0; i < paths->count; i++) {
        const struct kind_path *path = &paths->items[i];
        const char *name =
            i == 0 ? listed->name : ARENA_JOIN(tree->arena, listed->name, ".", path->path);
        const int32_t node =
            add_node(tree, (struct tree_node){.name = name,
                                              .parent = i == 0 ? parent : first + path->parent,
                                              .module = module,
                                              .path = i});
        add_numel(tree, node, path->numel);
    }
}

void module_tree_build(struct arena *arena, const struct model *model, bool is_deep,
                       struct module_tree *tree)
{
    *tree = (struct module_tree){.arena = arena, .model = model, .group_count = 1};
    tree->paths = ARENA_ARRAY(arena, struct kind_paths, model->kind_count);
    tree->module_nodes = ARENA_ARRAY(arena, int32_t, model->module_count);
    for (int32_t i = 0; i < model->kind_count; i++)
        list_paths(arena, &model->kinds[i], is_deep, &tree->paths[i]);
    const int32_t root = add_node(tree, (struct tree_node){.name = "", .parent = -1, .module = -1});
    int32_t base = root, list = root;
    if (is_deep && model->family != FAMILY_ABSTRACT) {
        base = add_node(tree, (struct tree_node){.name = "model", .parent = root, .module = -1});
        list = add_node(tree, (struct tree_node){
                                  .name = "layers", .parent = base, .module = -1, .is_list = true});
    }
    for (int32_t i = 0; i < model->module_count; i++) {
        tree->module_nodes[i] = -1;
        const enum module_role role = model->kinds[model->modules[i].kind_idx].role;
        if (role != MODULE_LOSS)
            add_module(tree, i, role == MODULE_BLOCK ? list : role == MODULE_HEAD ? root : base);
    }
}
