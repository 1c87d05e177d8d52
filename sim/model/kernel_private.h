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
};

void emit_gemm(struct kernel_sink *sink, const char *name, int64_t m, int64_t n, int64_t k);
/* A memory-bound kernel. */
void emit_bytes(struct kernel_sink *sink, const char *name, enum kernel_kind kind, double bytes);

struct attention_shape {
    int64_t batch, sequence, heads, head_dim;
    double bytes;
};
/* Flash attention, causal: forward 2 products of s·s·d a head, backward 5, of which half is done.
 */
void emit_attention(struct kernel_sink *sink, const char *name, struct attention_shape shape);

#endif
