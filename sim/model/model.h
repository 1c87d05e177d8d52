/*
 * model/model.h: a network as modules → parameters, kernels, activations.
 *
 * `struct model_config` is what a file says (a Hugging Face config.json as it is, or our
 * `family: abstract`); `model_build` derives from it and from how it is trained the list of modules
 * in forward order. Equal modules share one `module_kind`, so a model costs O(kinds) to build.
 *
 * Letters: h hidden, q = heads·head_dim, k key/value width, f FFN width, a heads, V vocabulary, s
 * sequence, T tokens a microbatch, B bytes of the compute dtype.
 *
 * Llama block, per token forward FLOP (no bias): 2·(h·q + 2·h·k + q·h + 3·h·f) in GEMMs and
 * 2·s·q in causal attention (half of the full 4·s·q); backward GEMMs twice that, flash attention
 * backward 2.5 times its forward (fsdp_semantics.md 117). Llama-3-8B: 436,207,616 FLOP a token in
 * the GEMMs of a block.
 *
 * Saved activations, flash attention and fused RMSNorm (ibid. 107): bytes per token =
 * B·(4h + 2q + 2k + 4f) + 4a + 8, which for q = h in bf16 is 12h + 4k + 8f + 4a + 8 (Llama-3-8B:
 * 168,072). They are the inputs and outputs of both norms, q, k, v, the attention output, gate, up,
 * silu(gate) and the product; fp32 log-sum-exp a head; fp32 1/rms a norm. The eager reference is
 * torchtitan (nn.RMSNorm is one kernel), not Hugging Face eager (ibid. 108, 24h + 8f); compiled
 * blocks use the same count, although a compiler may recompute silu(gate) and keep 2f·B less.
 *
 * Loss, unchunked with fp32 upcast (ibid. 104): logits B·T·V (output of the head), fp32 copy 4·T·V
 * (freed after log-softmax), saved log-softmax 4·T·V, backward 4·T·V + 4·T·V.
 *
 * Eager kernels: every op reads and writes its own operands, rotary in fp32 (cast, multiply, cast).
 * Compiled, block by block: residual add + norm, rotary of q and k, silu·mul and the sums of
 * gradients are fused; embedding, final norm, head and loss are as in eager.
 *
 * Left out so far: other families, selective checkpointing, attention other than flash, dropout,
 * fusion by implementation (they come with the kernel tables).
 */
#ifndef FSDPSIM_MODEL_MODEL_H
#define FSDPSIM_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "config/field.h"
#include "model/kernel.h"

enum model_family { FAMILY_LLAMA, FAMILY_ABSTRACT };

/* Llama-like, Hugging Face names and defaults (transformers LlamaConfig: 32 layers, 4096, …). */
struct llama_config {
    int64_t hidden_size, intermediate_size, num_hidden_layers;
    int64_t num_attention_heads, num_key_value_heads, head_dim; /* 0: heads; hidden/heads */
    int64_t vocab_size;
    bool tie_word_embeddings, attention_bias, mlp_bias;
    const char *hidden_act;
};

/* family: abstract: numbers given directly. */
struct abstract_unit {
    int64_t repeat; /* this many such units in a row */
    int64_t parameters;
    double forward_s, backward_s;  /* compute per microbatch */
    double saved_activation_bytes; /* per microbatch, kept from forward to backward */
    double input_activation_bytes; /* all that full checkpointing keeps of it */
};
struct abstract_config {
    int64_t repeat;           /* the whole list of units, so many times */
    struct config_list units; /* struct abstract_unit */
    double flop_per_token;    /* 0: 6·parameters; for MFU only */
};

struct model_config {
    enum model_family family;
    const char *name; /* `name:`, else the file's stem, else NULL (then the built model is named
                         after its family) */
    struct llama_config llama;
    struct abstract_config abstract;
};

/* FIELD_REF helper: chooses the table by `family:` or `model_type:`; unknown ones are errors that
   list the known. The bound struct is struct model_config. */
const struct field_table *model_choose_table(const struct node *map, struct diag *diag);
/* Every table, for `schema model`; NULL-ended. */
extern const struct field_table *const model_tables[];

/* How the model is trained, as far as kernels and activations depend on it. */
enum activation_checkpointing {
    CHECKPOINT_NONE,
    CHECKPOINT_FULL,         /* a block's input is kept, the block runs again in backward */
    CHECKPOINT_EVERY,        /* full, on every checkpoint_every-th block */
    CHECKPOINT_SELECTIVE_OP, /* torchtitan: outputs of every second matmul and of attention are kept
                              */
    CHECKPOINT_PER_CHILD     /* attention, MLP, norms each checkpointed for themselves */
};
enum loss_impl {
    LOSS_EAGER, /* logits, upcast, log-softmax, nll: tensors of tokens × vocabulary */
    LOSS_FUSED, /* one fused cross-entropy kernel over the logits (Liger, Apex, foak) */
    LOSS_LINEAR /* fused with the head's matmul, in chunks: no logits in memory */
};
enum float8_recipe { FLOAT8_NONE, FLOAT8_TENSORWISE, FLOAT8_ROWWISE };
struct train_shape {
    int64_t seq_len;
    int64_t decoder_seq_len;  /* encoder-decoder models; 0: seq_len */
    int64_t micro_batch;      /* sequences */
    enum dtype compute_dtype; /* param_dtype of mixed precision */
    enum activation_checkpointing checkpointing;
    int64_t checkpoint_every;
    enum attention_impl attention;
    enum loss_impl loss;
    int64_t loss_chunks;       /* of LOSS_EAGER: pieces the loss is computed in */
    bool loss_upcast;          /* fp32 logits in the loss */
    bool is_compiled;          /* norm, SwiGLU, rotary and residual kernels fused */
    bool has_fused_kernels;    /* hand-fused norm, rotary, activation (Liger, Apex, foak) */
    enum float8_recipe float8; /* linear layers of the blocks in float8, dynamic scaling */
};

struct param {
    const char *name;   /* "self_attn.q_proj.weight" */
    int64_t dim0, rest; /* rows, and elements a row: FSDP2 shards dim 0 */
};

enum module_role { MODULE_EMBEDDING, MODULE_BLOCK, MODULE_NORM, MODULE_HEAD, MODULE_LOSS };

struct module_kind {
    enum module_role role;
    struct param *params;
    int32_t param_count;
    int64_t numel; /* sum of params */
    struct kernel_list forward, backward;
    /*
     * Kept from forward to backward, in bytes; a tensor between two modules is counted by the one
     * that reads it. With full checkpointing of a block: its input only; `recompute_saved_bytes` is
     * then the full set that stands during its backward. The input is part of both, so recomputing
     * allocates recompute_saved_bytes − saved_bytes.
     */
    int64_t saved_bytes, recompute_saved_bytes;
    bool is_recomputed; /* backward first runs `forward` again */
    /*
     * Largest extra live at once beside the saved set (all of it, until the module is done) and,
     * in forward, the output. Backward includes the gradient that comes in and the one that goes
     * out, not the gradients of parameters (formulas: llama_block.c). One exception: the gradient
     * of the logits (the head's output_bytes) is a tensor of its own, which lives from when the
     * loss's backward has given up its temporaries to the end of the head's backward; neither
     * counts it beside its peak.
     */
    int64_t forward_temp_bytes;
    int64_t backward_temp_bytes;
    int64_t output_bytes;
    double model_flop;     /* forward, counted as the MFU conventions do (full attention) */
    int32_t host_op_count; /* ops of the forward before fusion; eager: one a kernel */
};

struct module {
    int32_t kind_idx;
    const char *name; /* "layers.17" */
};

struct model {
    const char *name;
    enum model_family family;
    struct module_kind *kinds;
    int32_t kind_count;
    struct module *modules; /* forward order; the loss is the last one (no parameters;
                               abstract: no kernels either) */
    int32_t module_count;
    int64_t parameters;                 /* exact; tied weights once */
    int64_t input_embedding_parameters; /* 0 when tied to the output */
    int64_t layers, heads, head_dim;
    bool is_tied;
    int64_t tokens; /* per GPU and microbatch: seq_len × micro_batch */
    int64_t seq_len;
    /* Model FLOP per token, forward + backward, convention `torchtitan`:
       6·(N − untied input embedding) + 6·L·heads·(d_qk + d_v)·s. */
    double flop_per_token;
};

/* Everything is owned by `arena`; names are borrowed from `config`. STATUS_INPUT when the sizes are
   beyond what 64-bit counts can hold or the dtype is not one to train in. */
MUST_CHECK enum status model_build(struct arena *arena, const struct model_config *config,
                                   const struct train_shape *shape, struct model **model,
                                   struct diag *diag);

/* Parameters in closed form, without building kernels (for `memory`, `list`). */
int64_t model_config_parameters(const struct model_config *config);

#endif
