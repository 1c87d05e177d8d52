/* model/model_private.h: what the files of this room share. */
#ifndef FSDPSIM_MODEL_MODEL_PRIVATE_H
#define FSDPSIM_MODEL_MODEL_PRIVATE_H

#include "model/model.h"

/*
 * Bounds that keep every int64 count and byte sum exact and far from overflow: parameters times the
 * 24 bytes of the widest training state, and the saved activations of a whole model, stay below
 * 2^61.
 */
#define MODEL_MAX_PARAMETERS 3.6e16
#define MODEL_MAX_ACTIVATION_BYTES 1.15e18
#define MODEL_MAX_TOKENS 1e12
#define MODEL_MAX_MODULES 65536

/* A Llama configuration with its defaults filled in, in the letters of model.h. */
struct llama_dims {
    int64_t h, f, layers, a, kv_heads, d, q, k, vocab;
    bool is_tied, has_attention_bias, has_mlp_bias;
};
struct llama_dims llama_dims_of(const struct llama_config *llama);

/* In double, so that they can be judged before the exact counts are taken. */
double llama_parameters_estimate(const struct llama_dims *dims);
double abstract_parameters_estimate(const struct abstract_config *abstract);
double abstract_saved_estimate(const struct abstract_config *abstract);
double abstract_module_estimate(const struct abstract_config *abstract);

int64_t llama_parameters(const struct llama_dims *dims);
int64_t abstract_parameters(const struct abstract_config *abstract);

/* Fill a zeroed model whose name, family, tokens and seq_len stand; sizes have been judged. */
void llama_build(struct arena *arena, const struct llama_dims *dims,
                 const struct train_shape *shape, struct model *model);
void abstract_build(struct arena *arena, const struct abstract_config *abstract,
                    const struct train_shape *shape, struct model *model);

#endif
