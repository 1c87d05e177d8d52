/*
 * model/model.h: a network as modules → parameters, kernels, activations.
 *
 * `struct model_config` is what a file says (a Hugging Face config.json as it is, or our
 * `family: decoder` / `family: abstract`); `model_build` derives from it and from how it is trained
 * the list of modules in forward order. Equal modules share one `module_kind`, so a model costs
 * O(kinds) to build.
 *
 * Letters: h hidden, q = heads·head_dim, k key/value width, f FFN width, a heads, V vocabulary, s
 * sequence, T tokens a microbatch, B bytes of the compute dtype.
 *
 * A block is attention (self, and cross in a T5 decoder) and an MLP (plain, gated, experts), each
 * with its norm and residual. Per token forward FLOP of a gated block: 2·(h·q + 2·h·k + q·h +
 * 3·h·f) in GEMMs and 2·s·q in causal attention (half of the full 4·s·q; without a mask all of it;
 * eager attention computes the full square); backward GEMMs twice that, flash attention backward
 * 2.5 times its forward (fsdp_semantics.md 117). Llama-3-8B: 436,207,616 FLOP a token in the GEMMs
 * of a block.
 *
 * Saved activations (ibid. 106-110) are counted tensor by tensor, as autograd keeps them:
 * - Llama block in bf16, flash attention, norm in one kernel: 12h + 4k + 8f + 4a + 8 bytes a token
 *   (Llama-3-8B: 168,072); inductor and Liger recompute silu(gate): 6f instead of 8f.
 * - the same in eager mode, RMSNorm composed of PyTorch operations (fp32 copy of the input,
 *   normalised tensor): 20h + 4k + 8f + 4a + 8, which for k = h is the 24h + 8f of 108.
 * - eager attention: 2 bytes a score in bf16, 4 more where softmax runs in fp32, 3 with dropout
 *   (mask and dropped copy): the 5as/h of Korthikanti et al. for a GPT-2 block.
 *
 * Loss, unchunked with fp32 upcast (ibid. 104): logits B·T·V (output of the head), fp32 copy 4·T·V
 * (freed after log-softmax), saved log-softmax 4·T·V, backward 4·T·V + 4·T·V. In n chunks the
 * copies that do not stay are 1/n of that.
 *
 * Which operation becomes which kernels, eager, compiled or hand-fused: the table in fusion.c.
 * Compiling is block by block: embedding, final norm, head and loss are as in eager.
 *
 * Adapters on a frozen base (LoRA, QLoRA): lora.c.
 *
 * Left out: mixture of experts as a loop over experts (kernels are grouped GEMMs with tokens spread
 * evenly), the vision part of multimodal files, attention to cached keys.
 */
#ifndef FSDPSIM_MODEL_MODEL_H
#define FSDPSIM_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "config/field.h"
#include "model/kernel.h"

enum model_family { FAMILY_TRANSFORMER, FAMILY_ABSTRACT };

/* What `model_type` of a config.json says; TYPE_DECODER: `family: decoder`. */
enum model_type {
    TYPE_DECODER,
    TYPE_LLAMA,
    TYPE_MISTRAL,
    TYPE_MIXTRAL,
    TYPE_QWEN2,
    TYPE_QWEN2_MOE,
    TYPE_QWEN3,
    TYPE_QWEN3_MOE,
    TYPE_GEMMA,
    TYPE_GEMMA2,
    TYPE_GEMMA3,
    TYPE_PHI,
    TYPE_PHI3,
    TYPE_DEEPSEEK_V2,
    TYPE_DEEPSEEK_V3,
    TYPE_GPT_OSS,
    TYPE_GPT2,
    TYPE_GPT_BIGCODE,
    TYPE_GPT_NEOX,
    TYPE_OPT,
    TYPE_BLOOM,
    TYPE_FALCON,
    TYPE_MPT,
    TYPE_T5,
    TYPE_BERT,
    TYPE_VIT,
    MODEL_TYPE_COUNT
};

enum norm_kind { NORM_RMS, NORM_LAYER };
enum position_kind {
    POSITION_ROTARY,
    POSITION_LEARNED,
    POSITION_ALIBI,
    POSITION_RELATIVE, /* T5: a table of buckets added to the scores */
    POSITION_NONE
};
/* Silu, gelu and relu cost the same; gelu_new is composed of eight operations in eager mode. */
enum activation_kind { ACTIVATION_SMOOTH, ACTIVATION_RELU, ACTIVATION_GELU_NEW };
enum mpt_attention { MPT_MULTIHEAD, MPT_MULTIQUERY, MPT_GROUPED };
enum bert_head { BERT_HEAD_POOLER, BERT_HEAD_LM };

/* How the blocks of a decoder are made, where no key of a config.json says it. */
struct decoder_traits {
    int norm, position;      /* enum norm_kind, position_kind */
    int64_t norms_per_layer; /* 1: shared by both parts; 2; 4: before and after each part */
    bool is_parallel;        /* attention and MLP read the same input */
    bool is_gated;           /* gate and up projections */
    bool has_qkv_bias, has_o_bias, has_mlp_bias, has_head_bias, has_norm_bias, has_qk_norm;
    bool has_fused_qkv, has_fused_gate_up; /* one GEMM */
    bool is_weight_transposed;             /* GPT-2's Conv1D keeps (in, out): rows are inputs */
    bool has_embedding_norm, has_embedding_scale;
    bool has_native_softmax; /* eager attention: softmax in the compute dtype, not in fp32 */
};

/*
 * What a file of any transformer says, under one set of names (Hugging Face's Llama names where it
 * has one). Which keys fill them and what they default to differs by model_type: model_fields.c.
 */
struct decoder_config {
    int64_t hidden_size, intermediate_size, num_hidden_layers;  /* f 0: 4h */
    int64_t num_attention_heads, num_key_value_heads, head_dim; /* 0: heads; hidden/heads */
    int64_t vocab_size, max_position_embeddings;
    bool tie_word_embeddings, attention_bias, mlp_bias;
    const char *hidden_act;
    double embedding_dropout, attention_dropout, hidden_dropout; /* probabilities */
    double rotary_frac;                                          /* of a head, 0: all of it */

    int64_t sliding_window;         /* 0: none */
    int64_t sliding_window_pattern; /* every so many layers one is full; 0: none is */
    int64_t max_window_layers;      /* the layers before this one are full */
    bool use_sliding_window;
    struct config_list layer_types; /* const char *: full_attention, sliding_attention */
    double final_logit_softcapping;

    int64_t num_experts, num_experts_per_tok, moe_intermediate_size, n_shared_experts;
    int64_t shared_expert_intermediate_size, first_k_dense_replace, moe_layer_freq;
    struct config_list mlp_only_layers;

    int64_t q_lora_rank, kv_lora_rank, qk_rope_head_dim, qk_nope_head_dim, v_head_dim; /* MLA */

    int attn_type;                                              /* MPT, enum mpt_attention */
    double expansion_ratio;                                     /* MPT */
    bool no_bias, learned_pos_emb, alibi, qk_ln, multi_query;   /* MPT, Falcon */
    bool new_decoder_architecture, parallel_attn, has_bias;     /* Falcon, OPT */
    int64_t num_ln_in_parallel_attn;                            /* Falcon */
    bool use_parallel_residual;                                 /* GPT-NeoX */
    bool do_layer_norm_before, removes_final_norm;              /* OPT */
    int64_t word_embed_proj_dim;                                /* OPT */
    int64_t num_decoder_layers, relative_attention_num_buckets; /* T5 */
    int64_t type_vocab_size;                                    /* BERT */
    int head;                                                   /* BERT, enum bert_head */
    int64_t image_size, patch_size, num_channels, num_labels;   /* ViT */

    struct decoder_traits traits; /* family: decoder only */
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
    int type;         /* enum model_type of a transformer */
    const char *name; /* `name:`, else the file's stem, else NULL (then the built model is named
                         after its type) */
    struct decoder_config decoder;
    struct abstract_config abstract;
};

/* FIELD_REF helper: chooses the table by `family:` or `model_type:`; unknown ones are errors that
   list the known; a multimodal file is read at its `text_config`. The bound struct is struct
   model_config. */
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
enum expert_impl {
    EXPERTS_GROUPED, /* one product a projection over tokens sorted by expert */
    EXPERTS_LOOP     /* expert by expert, the host waiting for the number of its tokens */
};
enum kept_output {
    OUTPUT_DROPPED,          /* when the loss is taken out of it */
    OUTPUT_UNTIL_BACKWARD,   /* it lives until backward is over */
    OUTPUT_UNTIL_NEXT_OUTPUT /* and until the next forward has given another */
};
enum loss_upcast { UPCAST_NONE, UPCAST_LOSS, UPCAST_MODEL };
enum fused_kernels { FUSED_NONE, FUSED_ALL, FUSED_NORM_ROTARY };
enum quantization {
    QUANTIZE_NONE,
    QUANTIZE_NF4 /* the frozen linear layers of the blocks in 4 bits, blocks of 64 weights */
};
/* Low-rank adapters beside linear layers; everything else is frozen. */
struct lora_shape {
    int64_t rank;               /* 0: no adapters, all is trained */
    struct config_list targets; /* const char *: q_proj, ...; or the one word all-linear */
    double dropout;
    bool has_wide_input; /* cast to fp32 and back around the dropout */
    bool has_fused_scale;
    bool copies_output; /* of the base product, before the sum */
    enum quantization quantization;
    bool has_double_quant; /* the scales in 8 bits, a second scale for 256 of them */
    bool holds_inputs;     /* of products with packed weights, until their graph is gone */
};
/* Which framework's tensor parallelism: what is exchanged when (tensor_parallel.h). */
enum tensor_parallel_style { TENSOR_PARALLEL_DTENSOR, TENSOR_PARALLEL_MEGATRON };
struct tensor_parallel_shape {
    int64_t ranks; /* 0 or 1: none */
    enum tensor_parallel_style style;
    bool has_sequence;  /* norms, dropout and residuals on a part of the sequence */
    bool has_loss;      /* logits stay split over the vocabulary */
    bool is_async;      /* dtensor: exchanges run beside the products that feed on them */
    bool gathers_heads; /* dtensor: q and k are gathered before their norms */
};
enum rotary_form { ROTARY_REAL, ROTARY_COMPLEX };
enum float8_recipe { FLOAT8_NONE, FLOAT8_TENSORWISE, FLOAT8_ROWWISE, FLOAT8_ROWWISE_GW_HP };
struct train_shape {
    int64_t seq_len;
    int64_t decoder_seq_len;  /* encoder-decoder models; 0: seq_len */
    int64_t micro_batch;      /* sequences */
    enum dtype compute_dtype; /* param_dtype of mixed precision */
    enum activation_checkpointing checkpointing;
    int64_t checkpoint_every;
    bool stops_early;      /* recompute ends with the last tensor that the backward reads */
    bool reruns_attention; /* selective: fused attention is not kept either */
    bool is_reentrant;     /* recompute's output stays until the backward of the block is over */
    enum attention_impl attention;
    bool checks_packing; /* each attention reads on the host whether sequences are packed */
    enum loss_impl loss;
    int64_t loss_chunks;          /* of LOSS_EAGER: pieces the loss is computed in */
    bool loss_upcast;             /* fp32 logits in the loss */
    bool model_upcasts;           /* they take the place of those that the head made */
    enum kept_output kept_output; /* what the training loop does with the model's output */
    bool caches_keys;             /* in which the keys and values of all blocks are */
    bool loss_shifted;            /* and a copy of them without each sequence's last token */
    int64_t loss_metrics; /* cross entropies of the logits beside the loss, without gradient */
    enum expert_impl experts;
    enum rotary_form rotary;    /* complex numbers: not fused when compiled */
    bool is_compiled;           /* norm, SwiGLU, rotary and residual kernels fused */
    bool has_fused_kernels;     /* hand-fused norm, rotary, activation (Liger, Apex) */
    bool has_eager_activation;  /* of these not the activation (foak) */
    enum float8_recipe float8;  /* linear layers of the blocks in float8, dynamic scaling */
    bool gathers_float8;        /* their weights are cast before they are gathered */
    bool has_fused_norms;       /* eager: RMSNorm is one kernel, as LayerNorm is */
    bool has_cooperative_norms; /* norms need all SMs at once, but for norm_sm_margin */
    int64_t norm_sm_margin;
    struct lora_shape lora;
    struct tensor_parallel_shape tensor_parallel;
    struct config_list frozen; /* const char *: modules that are not trained; not with adapters */
};

struct param {
    const char *name;   /* "self_attn.q_proj.weight" */
    int64_t dim0, rest; /* rows, and elements a row: FSDP2 shards dim 0 */
    bool is_frozen;     /* no gradient, no optimizer state */
    bool is_packed;     /* frozen, and stored in 4 bits an element */
    bool is_float8;     /* cast to float8 before it is gathered */
};

enum module_role { MODULE_EMBEDDING, MODULE_BLOCK, MODULE_NORM, MODULE_HEAD, MODULE_LOSS };

/* Attention, MLP, norms of a block: for the tree of a model. */
struct module_part {
    const char *name; /* that its parameters' names begin with; "": the sums around them */
    double model_flop;
    int64_t saved_bytes;
};

struct module_kind {
    enum module_role role;
    const char *label; /* "block", "block.moe", "encoder.block" */
    struct param *params;
    int32_t param_count;
    int64_t numel;        /* sum of params */
    int64_t active_numel; /* of them, what one token passes */
    int64_t frozen_numel; /* of them, what gets no gradient */
    int32_t frozen_count; /* params that get none */
    bool is_unreached;    /* backward ends behind it: nothing up to it is trained */
    struct module_part *parts;
    int32_t part_count; /* blocks only */
    struct kernel_list forward, backward;
    /*
     * Kept from forward to backward, in bytes; a tensor between two modules is counted by the one
     * that reads it. A module that recomputes (checkpointing) keeps less (its input, and what the
     * policy saves); `recompute_saved_bytes` then stands during its backward. The one is part of
     * the other, so recomputing allocates recompute_saved_bytes − saved_bytes.
     */
    int64_t saved_bytes, recompute_saved_bytes;
    bool is_recomputed;           /* backward first runs `recompute` */
    struct kernel_list recompute; /* what of `forward` runs again; may share its items */
    double recompute_flop;        /* of model_flop, the part that runs again */
    /*
     * Largest extra live at once beside the saved set (all of it, until the module is done) and,
     * in forward, the output. Backward includes the gradient that comes in and the one that goes
     * out, not the gradients of parameters (formulas: block_memory.c). One exception: the gradient
     * of the logits (the head's output_bytes) is a tensor of its own, which lives from when the
     * loss's backward has given up its temporaries to the end of the head's backward; neither
     * counts it beside its peak.
     */
    int64_t forward_temp_bytes;
    int64_t backward_temp_bytes;
    int64_t output_bytes;
    /* What is saved, and the extra, are tensors of about this size (a block: its output; a loss: a
       chunk's fp32 logits); 0: one tensor. */
    int64_t piece_bytes;
    int64_t kept_bytes;    /* of the model's output: the loss's logits, a block's keys and values */
    double model_flop;     /* forward, counted as the MFU conventions do (full attention) */
    int32_t host_op_count; /* kernels of the forward */
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
    int64_t active_parameters;          /* of them, what one token passes (experts: top_k) */
    int64_t frozen_parameters;          /* of them, what is not trained */
    int64_t rank_parameters;            /* of them, what a rank of tensor parallelism has */
    int64_t rank_trained_parameters;    /* … and trains */
    double packed_scale_bytes;          /* of a packed weight, beside its half byte */
    int64_t input_embedding_parameters; /* 0 when tied to the output */
    int64_t layers, heads, head_dim;    /* head_dim: mean of query's and value's */
    int64_t hidden_size, vocab_size;    /* 0: abstract */
    bool is_tied;
    int64_t tensor_ranks; /* that share it; kinds are those of one of them, totals of all */
    int64_t tokens; /* per GPU, or ranks that share it, and microbatch: seq_len × micro_batch */
    int64_t seq_len;
    /* Model FLOP per token, forward + backward, convention `torchtitan`: 6·(active N − untied input
       embedding) + 6·L·heads·(d_qk + d_v)·s; a frozen parameter counts 4, not 6. Encoders (T5,
       BERT, ViT): three times the forward of the modules, over `tokens`. */
    double flop_per_token;
};

/* NULL, or why `shape` asks for a tensor parallelism that the network does not allow. model_build
   wants it asked. */
const char *model_cut_refusal(struct arena *arena, const struct model_config *config,
                              const struct train_shape *shape);

/* Everything is owned by `arena`; names are borrowed from `config`. STATUS_INPUT when the sizes are
   beyond what 64-bit counts can hold or the dtype is not one to train in. */
MUST_CHECK enum status model_build(struct arena *arena, const struct model_config *config,
                                   const struct train_shape *shape, struct model **model,
                                   struct diag *diag);

/* Parameters without building kernels (for `memory`, `list`). */
int64_t model_config_parameters(const struct model_config *config);
/* Of them, what one token passes: all, but for experts that are not chosen. */
int64_t model_config_active_parameters(const struct model_config *config);

#endif
