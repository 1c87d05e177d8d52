/*
 * model/block.h: kernels, parameters and activations of one transformer block (inside this room).
 *
 *   x → norm → attention → (norm) → + x = y;   y → norm → MLP → (norm) → + y
 *
 * or, parallel, both parts from the norm of x. Each part is a `child`: kernels, the bytes autograd
 * keeps of it (its input included, which is the norm's output), the width of what goes in. A child
 * is also the unit of checkpointing by child.
 */
#ifndef FSDPSIM_MODEL_BLOCK_H
#define FSDPSIM_MODEL_BLOCK_H

#include "model/fusion.h"
#include "model/tensor_parallel.h"

enum block_part { PART_NORM, PART_ATTENTION, PART_MLP, PART_OUTSIDE };

enum { BLOCK_CHILDREN_MAX = 9 };

struct block_child {
    enum block_part part;
    const char *name;
    int64_t saved_bytes; /* kept for its backward, input included */
    int64_t input_bytes; /* 0: the input is another child's already (parallel blocks) */
    int32_t kernel_end;  /* in the forward list: its kernels end before this one */
    int32_t needed_end;  /* from this one on they leave nothing that the backward reads */
};

struct block {
    struct arena *arena;
    const struct network *net;
    const struct train_shape *shape;
    const struct block_spec *spec;
    struct module_kind *kind;
    enum fusion_mode mode, activation_mode;
    enum attention_impl attention; /* in force: relative positions have the eager one only */
    int64_t tokens, element_bytes;
    int64_t stream_tokens; /* of norms and residuals: a part with sequence parallelism */
    int64_t hidden_bytes;  /* of these, h wide */
    int64_t input_bytes;   /* what a part keeps of its input */
    struct kernel_sink forward, backward;
    const char *prefix; /* of the part being built: "self_attn." */
    double lora_flop;   /* of the adapters, forward */
    struct block_child children[BLOCK_CHILDREN_MAX];
    int32_t child_count;
    int32_t needed_end; /* of the part being built */
    struct {
        struct param *items;
        int32_t count, capacity;
    } params;
    double attention_flop; /* model FLOP of the attention itself, forward */
};

/* y = x·Wᵀ (+ bias) over `tokens`. */
struct linear {
    const char *name;
    int64_t outputs, inputs, tokens;
    bool has_bias;
    bool shares_input; /* the linear before it reads the same tensor: one float8 cast if compiled */
    bool is_row_parallel;   /* it writes the part's output */
    bool follows_attention; /* what it reads is written by attention: nothing fuses with that */
};
void linear_forward(struct block *block, const struct linear *linear);
void linear_backward(struct block *block, const struct linear *linear);

/* float8.c: casts around a linear layer's products, and what these are. */
struct float8_products {
    enum product forward, input_grad, weight_grad;
};
bool float8_is_rowwise(const struct train_shape *shape);
struct float8_products float8_products(const struct train_shape *shape);
void float8_forward(struct block *block, const struct linear *linear);
void float8_backward(struct block *block, const struct linear *linear);
void float8_after_input_grad(struct block *block, const struct linear *linear);
void float8_after_weight_grad(struct block *block, const struct linear *linear);

/* lora.c: what adapters add to a linear layer, and what freezing takes away. */
bool lora_is_on(const struct train_shape *shape);
bool lora_has_target(const struct train_shape *shape, const char *linear);
void lora_dequantize(struct block *block, struct kernel_sink *sink, const struct linear *linear);
void lora_forward(struct block *block, const struct linear *linear);
/* Before the base's product, and behind it. */
void lora_backward(struct block *block, const struct linear *linear);
void lora_sum_gradients(struct block *block, const struct linear *linear);
/* Whether autograd keeps the layer's input as it is: for its weight's gradient or an adapter's. */
bool linear_keeps_input(const struct block *block, const struct linear *linear);
/* … and does not let go of it when its backward is done. */
bool linear_holds_input(const struct block *block, const struct linear *linear);
/* What an adapter keeps besides. */
int64_t lora_saved_bytes(const struct block *block, const struct linear *linear);
/* Of the largest weight of the block, dequantised. */
int64_t lora_weight_bytes(const struct block *block);
/* Marks the params of a built kind: what is frozen, what of it packed. */
void lora_freeze(const struct train_shape *shape, struct module_kind *kind);
double lora_scale_bytes(const struct lora_shape *lora);

/* An operation over `elements`, in the sink. */
void block_op(struct block *block, struct kernel_sink *sink, enum fusion_op op, const char *name,
              double elements);

/* One of the MLP's activations, which may be fused or not by itself. */
void block_activation(struct block *block, struct kernel_sink *sink, enum fusion_op op,
                      const char *name, double elements);

/* Bytes autograd keeps of a norm over `elements` in `rows`, without its output. */
int64_t norm_saved_bytes(const struct block *block, int64_t elements, int64_t rows);

/* The ends of a part in forward and backward (tensor_parallel.h): its input, the linear layer that
   writes its output, the gradient of its input, which so many linear layers read. */
int32_t part_enter(struct block *block);
void part_write(struct block *block, const struct linear *linear);
void part_write_backward(struct block *block, const struct linear *linear);
void part_enter_backward(struct block *block, int reader_count);
/* Whether exchanges run beside products; gathers too? Not those whose readers want scales of rows:
   inductor does not find the pattern (pytorch issue 149990). */
bool part_is_async(const struct block *block);
bool part_gathers_beside(const struct block *block);

/* block_heads.c: norms of q and k, rotary, and for MLA the assembly of heads from their two parts;
   heads that pass through there for each of the rank's own. */
void shape_heads(struct block *block, struct kernel_sink *sink);
int64_t gathered_heads(const struct block *block);

/* q, k, v → context → o. */
struct attention_part {
    bool is_cross;
    int64_t tokens, seq_len, key_tokens, key_seq_len;
};
void attention_forward(struct block *block, const struct attention_part *part);
void attention_backward(struct block *block, const struct attention_part *part);
int64_t attention_saved_bytes(const struct block *block, const struct attention_part *part);
/* Whether keys and values are copied for all heads of a group. */
bool repeats_keys(const struct block *block);
bool attention_keeps_input(const struct block *block, const struct attention_part *part);
int attention_reader_count(const struct block *block);
double attention_gemm_flop(const struct block *block, const struct attention_part *part);
/* (query, key) pairs times heads, whole microbatch. */
double attention_score_count(const struct block *block, const struct attention_part *part);

/* Of an MoE block whose experts are a loop: what stands between router and residual. */
void expert_loop_forward(struct block *block);
void expert_loop_backward(struct block *block);

void mlp_forward(struct block *block);
void mlp_backward(struct block *block);
int64_t mlp_saved_bytes(const struct block *block);
bool mlp_keeps_input(const struct block *block);
int mlp_reader_count(const struct block *block);
double mlp_gemm_flop(const struct block *block);
/* Tensors of FFN width alive at once, per token: while passing forward, and new ones in backward.
 */
int64_t mlp_passing_width(const struct block *block);
int64_t mlp_backward_width(const struct block *block);

/* Sums of children, checkpointing, peaks. */
void block_memory(struct block *block);

/* Fills a zeroed kind. */
void block_build(struct arena *arena, const struct network *net, const struct train_shape *shape,
                 const struct block_spec *spec, enum activation_checkpointing checkpointing,
                 struct module_kind *kind);

#endif
