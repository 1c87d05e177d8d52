/*
 * model/model_tree.h: a built model as a tree: `fsdpsim model show`.
 *
 * Depth 0 is the model, 1 its kinds of modules with how often each stands, 2 the parts of a block
 * (attention, MLP, norms), 3 single parameters. Figures of a row are of all its copies together.
 * FLOP are the forward's as the MFU conventions count them (full attention), per token of the
 * model; activations are what stays from forward to backward, per token.
 *
 * Example, Llama-3.1-8B: 32 blocks of 218,112,000 parameters are 6,979,584,000, 86.9 % of the
 * model's 8,030,261,248.
 */
#ifndef FSDPSIM_MODEL_MODEL_TREE_H
#define FSDPSIM_MODEL_MODEL_TREE_H

#include "model/model.h"

enum { MODEL_TREE_MAX_DEPTH = 3 };

struct model_tree_row {
    const char *name;
    int32_t depth;
    int64_t count; /* copies; 1 for the model and for parts and parameters of one module */
    int64_t parameters, active_parameters;
    double parameter_share; /* of the model's */
    double flop_per_token, flop_share;
    double saved_bytes_per_token;
};

struct model_tree {
    struct model_tree_row *items;
    int32_t count, capacity;
};

void model_tree_build(struct arena *arena, const struct model *model, int32_t depth,
                      struct model_tree *tree);

/* A sequence that any model can be shown at: 2,048, or what a position table allows, or the tokens
   of a picture. */
int64_t model_show_seq_len(const struct model_config *config);

#endif
