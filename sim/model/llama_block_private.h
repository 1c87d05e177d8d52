/* model/llama_block_private.h: one transformer block of the Llama family. */
#ifndef FSDPSIM_MODEL_LLAMA_BLOCK_PRIVATE_H
#define FSDPSIM_MODEL_LLAMA_BLOCK_PRIVATE_H

#include "model/model_private.h"

void llama_block_build(struct arena *arena, const struct llama_dims *dims,
                       const struct train_shape *shape, struct module_kind *kind);

#endif
