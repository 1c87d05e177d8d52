/*
 * schedule/fsdp_tree.h: a model as the tree of modules that wrapping works on, names as PyTorch
 * would print them, and which unit each module's parameters belong to.
 *
 *   (root)
 *     model                      the base model: all but the head
 *       embed_tokens
 *       layers                   a list, never a unit itself
 *         layers.0
 *           layers.0.self_attn
 *             layers.0.self_attn.q_proj
 *           layers.0.mlp …
 *       norm
 *     lm_head
 *
 * Inside a block a module stands here if kernels of its own read its parameters: attention, MLP,
 * norms, and their linear layers. Abstract units have nothing inside and no base model.
 *
 * The unit of a module's parameters is that of the nearest module above it, itself included, that
 * forms one; the root is unit 0.
 */
#ifndef FSDPSIM_SCHEDULE_FSDP_TREE_H
#define FSDPSIM_SCHEDULE_FSDP_TREE_H

#include "model/model.h"
#include "schedule/policy.h"

/* Modules inside a kind of block; path 0 is the block itself. */
struct kind_paths {
    struct kind_path {
        const char *path; /* "mlp.gate_proj"; "": the block */
        int32_t parent;
        int64_t numel; /* of its own parameters, without those below */
    } * items;
    int32_t count, capacity;
    int32_t *of_param; /* by parameter of the kind */
};

struct tree_node {
    const char *name; /* "layers.0.mlp" */
    int32_t parent;   /* −1: the root */
    int32_t module;   /* of the model; −1: above its modules */
    int32_t path;     /* of the module's kind */
    int64_t numel;    /* of all below */
    bool is_list;
    int32_t group; /* that forms a unit; 0: its parameters are its parent's */
};

struct module_tree {
    struct arena *arena;
    const struct model *model;
    struct kind_paths *paths; /* by kind */
    struct {
        struct tree_node *items;
        int32_t count, capacity;
    } nodes;               /* parents first, in forward order of modules */
    int32_t *module_nodes; /* by module: its node; those inside follow, in order of paths; −1 */
    int32_t group_count;   /* group 0 is the root */
};

/* `is_deep`: with what is inside blocks. */
void module_tree_build(struct arena *arena, const struct model *model, bool is_deep,
                       struct module_tree *tree);
const struct module_kind *module_tree_kind(const struct module_tree *tree, int32_t module);
/* The same, its nodes marked by `fsdp.wrap`; `wraps_adapters`: and each layer of an adapter. */
void module_tree_wrap(struct arena *arena, const struct model *model,
                      const struct wrap_config *wrap, bool wraps_adapters,
                      struct module_tree *tree);
/* The group that a node's parameters are in. */
int32_t module_tree_group(const struct module_tree *tree, int32_t node);
/* "norm+lm_head": whether one of the names joined by + is this one; `count`: how many there are. */
bool module_tree_matches(struct arena *arena, const char *name, const char *text, int32_t *count);
/* The path of the module that a kernel of this kind belongs to. */
int32_t kind_path_of(const struct kind_paths *paths, const struct kernel *kernel);

#endif
