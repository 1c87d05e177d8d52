/*
 * model/fusion.h: which operation becomes which memory-bound kernels (inside this room).
 *
 * The table in fusion.c has a row an operation and a column a mode: eager PyTorch, torch.compile
 * (inductor), hand-fused kernels (Liger, Apex, foak). A cell lists the passes of forward and
 * backward, each with the operands it moves per element. Where inductor fuses an operation into its
 * neighbour the cell is empty and the neighbour's cell carries the operands.
 *
 * Example, RMSNorm of n elements in bf16: hand-fused 4n bytes in one kernel; eager in seven passes
 * 36n bytes (cast to fp32 6, square 8, mean 4, scale 8, cast 6, weight 4).
 */
#ifndef FSDPSIM_MODEL_FUSION_H
#define FSDPSIM_MODEL_FUSION_H

#include "model/kernel_private.h"
#include "model/model.h"

enum fusion_mode { FUSION_EAGER, FUSION_COMPILED, FUSION_HAND, FUSION_MODE_COUNT };
enum fusion_mode fusion_mode_of(const struct train_shape *shape);

enum fusion_op {
    FUSION_RMS_NORM,          /* first of its block or alone: nothing to fuse with before it */
    FUSION_RMS_NORM_RESIDUAL, /* after a residual sum, which compiled code does inside */
    FUSION_LAYER_NORM,
    FUSION_LAYER_NORM_RESIDUAL,
    FUSION_RESIDUAL,        /* last of a block */
    FUSION_RESIDUAL_INSIDE, /* before a norm */
    FUSION_GRAD_SUM,        /* gradients of one tensor that several operations read */
    FUSION_ROTARY,          /* also partial: elements are the rotated ones */
    FUSION_ROTARY_COMPLEX,  /* as a product of complex numbers */
    FUSION_ACTIVATION,      /* silu, gelu, relu: one operation of PyTorch */
    FUSION_GATED_ACTIVATION,
    FUSION_GELU_NEW, /* composed of eight */
    FUSION_GATED_GELU_NEW,
    FUSION_DROPOUT,
    FUSION_BIAS_GRAD,    /* the bias itself rides in the GEMM */
    FUSION_SCORES_MASK,  /* eager attention: scale and mask */
    FUSION_SOFTMAX,      /* in the compute dtype */
    FUSION_SOFTMAX_WIDE, /* in fp32, and back */
    FUSION_SCORES_DROPOUT,
    /* Float8, whose layouts float8.c explains. One scale a tensor: */
    FUSION_FP8_TENSORWISE,        /* its largest element, then the cast */
    FUSION_FP8_TENSORWISE_TURNED, /* the scale is known: cast to the other layout */
    FUSION_FP8_TENSORWISE_BOTH,   /* largest element, then both layouts at once */
    FUSION_FP8_TURN,              /* of a float8 tensor */
    /* One scale a row: */
    FUSION_FP8_ROWWISE,        /* found and applied in one pass when compiled */
    FUSION_FP8_ROWWISE_INSIDE, /* in the kernel that makes the tensor */
    FUSION_FP8_ROWWISE_TURNED, /* rows of the other layout: turned, then cast */
    FUSION_FP8_ROWWISE_BOTH,   /* cast and turned at once, then what was turned is cast */
    FUSION_FP8_RESCALE,        /* the product of two scales, put on a result */
    FUSION_COPY,               /* reorder in memory: heads apart, q, k, v together */
    FUSION_OP_COUNT
};

/* Elements of one operation, and what some passes read besides. */
struct fusion_size {
    double elements;
    double tokens;       /* rows a norm reduces over */
    double weight_bytes; /* a norm's weight, a rotary table */
    double reader_count; /* operations whose gradients a norm's backward adds up */
};
/* Appends the kernels of `op` for the sink's pass and dtype; names are NAME or NAME.pass. */
void emit_op(struct kernel_sink *sink, enum fusion_mode mode, enum fusion_op op, const char *name,
             struct fusion_size size);

/* Of a norm; RMSNorm as PyTorch's one kernel is LayerNorm's template (layer_norm_kernel.cu). */
enum fusion_op fusion_norm_op(const struct train_shape *shape, enum norm_kind norm,
                              bool follows_residual);
/* Bytes autograd keeps of a norm of `elements` in `rows`, without its output. */
int64_t fusion_norm_saved_bytes(const struct train_shape *shape, enum fusion_mode mode,
                                enum norm_kind norm, int64_t element_bytes, int64_t elements,
                                int64_t rows, bool is_frozen);

#endif
