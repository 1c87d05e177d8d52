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

/* In double, so that they can be judged before the exact counts are taken. */
double abstract_parameters_estimate(const struct abstract_config *abstract);
double abstract_saved_estimate(const struct abstract_config *abstract);
double abstract_module_estimate(const struct abstract_config *abstract);

int64_t abstract_parameters(const struct abstract_config *abstract);

/* Fill a zeroed model whose name, family, tokens and seq_len stand; sizes have been judged. */
struct network;
void transformer_build(struct arena *arena, const struct network *net,
                       const struct train_shape *shape, struct model *model);
void abstract_build(struct arena *arena, const struct abstract_config *abstract,
                    const struct train_shape *shape, struct model *model);

#endif
