/*
 * model/outer.h: what stands around the blocks: embedding, final norm, head, loss (inside this
 * room). Compiling is block by block, so these run as in eager mode, or hand-fused.
 */
#ifndef FSDPSIM_MODEL_OUTER_H
#define FSDPSIM_MODEL_OUTER_H

#include "model/fusion.h"
#include "model/tensor_parallel.h"

struct outer {
    struct arena *arena;
    const struct network *net;
    const struct train_shape *shape;
    enum fusion_mode mode;
    int64_t tokens, seq_len; /* of the stream this module stands in */
    int64_t stream_tokens;   /* of them, those of a rank with sequence parallelism */
    int64_t element_bytes;
    int64_t hidden_bytes; /* of the stream, h wide */
    int64_t input_bytes;  /* what the head keeps of its input */
};

struct outer outer_of(struct arena *arena, const struct network *net,
                      const struct train_shape *shape, int64_t seq_len);

/* Tokens, positions, segments; the second use of a shared table (T5's decoder) has no parameters.
 */
void outer_embedding(const struct outer *outer, bool owns_table, struct module_kind *kind);
void outer_patch_embedding(const struct outer *outer, struct module_kind *kind);
/* `has_readers`: its output is what cross attention reads, kept once for all blocks. */
void outer_norm(const struct outer *outer, bool has_readers, struct module_kind *kind);
/* Columns of the logits that the loss reads: a rank's of tensor parallelism where it is split. */
int64_t outer_loss_classes(const struct outer *outer);
/* Logits over the vocabulary. */
void outer_head(const struct outer *outer, struct module_kind *kind);
/* One product a sequence: BERT's pooler, ViT's classifier. */
void outer_pooled_head(const struct outer *outer, struct module_kind *kind);
/* Cross entropy of `rows` over `classes`; 0 classes: none. */
void outer_loss(const struct outer *outer, int64_t rows, int64_t classes, struct module_kind *kind);

void outer_add_param(void *context, const struct network_param *param);

/* How the fused linear loss cuts the tokens: Liger's rule, as many chunks as the vocabulary is
   wider than the hidden state, in powers of two of tokens. */
int64_t linear_loss_chunks(const struct outer *outer);

#endif
