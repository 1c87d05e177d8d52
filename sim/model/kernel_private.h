/*
 * model/kernel_private.h: appending kernels to a list (inside this room).
 *
 * A matrix product y = x·Wᵀ of `rows` output and `columns` input features over T tokens is (m, n,
 * k) = (T, rows, columns); its input gradient (T, columns, rows), its weight gradient (rows,
 * columns, T).
 */
#ifndef FSDPSIM_MODEL_KERNEL_PRIVATE_H
#define FSDPSIM_MODEL_KERNEL_PRIVATE_H

#include "base/arena.h"
#include "model/kernel.h"

/* Where kernels go, and what they have in common. */
struct kernel_sink {
    struct arena *arena;
    struct kernel_list *list;
    enum kernel_pass pass;
    enum dtype dtype;
    enum kernel_impl impl; /* of single memory-bound kernels */
    bool is_frozen;        /* no passes for the gradients of weights */
};

struct gemm_shape {
    int64_t m, n, k;
    int64_t batch; /* 0: one */
    double flop;   /* 0: 2·batch·m·n·k */
    enum product product;
};
void emit_gemm(struct kernel_sink *sink, const char *name, struct gemm_shape shape);
/* A memory-bound kernel. */
void emit_bytes(struct kernel_sink *sink, const char *name, enum kernel_kind kind, double bytes);
/* The host reads what the last kernel wrote before it issues another (.item(), nonzero). */
void emit_host_wait(struct kernel_sink *sink);

struct attention_shape {
    int64_t batch, queries, keys, heads, qk_dim, v_dim;
    int64_t window; /* 0: none */
    bool is_causal;
    enum attention_impl impl;
    double bytes;
};
/*
 * Fused attention: forward a product with head width qk_dim and one with v_dim; backward those
 * again, and their gradients: 3 of qk_dim, 2 of v_dim. A causal mask halves, a window of w keys
 * leaves w·s − w²/2 of the s²/2 pairs.
 */
void emit_attention(struct kernel_sink *sink, const char *name, struct attention_shape shape);

/* "q_proj" + ".input_grad", in the arena. */
const char *join_names(struct arena *arena, const char *a, const char *b);

#endif
