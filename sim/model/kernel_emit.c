/* model/kernel_emit.c: FLOP and bytes of GEMMs and of fused attention. */
#include "model/kernel_private.h"

#include <string.h>

const char *join_names(struct arena *arena, const char *a, const char *b)
{
    size_t length = 0;
    char *text = arena_alloc(arena, strlen(a) + strlen(b) + 1);
    while (*a != '\0')
        text[length++] = *a++;
    while (*b != '\0')
        text[length++] = *b++;
    return text;
}

static struct kernel *push(struct kernel_sink *sink, const char *name, enum kernel_kind kind)
{
    struct kernel *kernel = ARENA_PUSH(sink->arena, sink->list);
    kernel->name = name;
    kernel->kind = kind;
    kernel->pass = sink->pass;
    kernel->dtype = sink->dtype;
    kernel->impl = sink->impl;
    return kernel;
}

void emit_gemm(struct kernel_sink *sink, const char *name, struct gemm_shape shape)
{
    struct kernel *kernel = push(sink, name, KERNEL_GEMM);
    double rows = (double)shape.m, columns = (double)shape.n, inner = (double)shape.k;
    double output_bytes = (double)dtype_bytes(sink->dtype);
    kernel->product = shape.product;
    if (shape.product != PRODUCT_PLAIN)
        kernel->dtype = DTYPE_FP8;
    kernel->m = shape.m;
    kernel->n = shape.n;
    kernel->k = shape.k;
    kernel->batch = shape.batch > 0 ? shape.batch : 1;
    double batch = (double)kernel->batch;
    kernel->flop = shape.flop > 0.0 ? shape.flop : 2.0 * batch * rows * columns * inner;
    kernel->bytes = batch * ((double)dtype_bytes(kernel->dtype) * (rows * inner + inner * columns) +
                             output_bytes * rows * columns);
}

void emit_bytes(struct kernel_sink *sink, const char *name, enum kernel_kind kind, double bytes)
{
    push(sink, name, kind)->bytes = bytes;
}

void emit_host_wait(struct kernel_sink *sink)
{
    sink->list->items[sink->list->count - 1].host_waits = true;
}

/* (query, key) pairs that count, of one head. */
static double attention_pairs(const struct attention_shape *shape)
{
    double queries = (double)shape->queries, keys = (double)shape->keys;
    double window = (double)shape->window;
    if (!shape->is_causal)
        return queries * keys;
    if (shape->window > 0 && shape->window < shape->keys)
        return window * queries - window * window / 2.0;
    return queries * keys / 2.0;
}

void emit_attention(struct kernel_sink *sink, const char *name, struct attention_shape shape)
{
    bool is_forward = sink->pass == PASS_FORWARD;
    double qk_products = is_forward ? 1.0 : 3.0, v_products = is_forward ? 1.0 : 2.0;
    struct kernel *kernel = push(sink, name, KERNEL_ATTENTION);
    kernel->m = shape.queries;
    kernel->n = shape.keys;
    kernel->k = shape.qk_dim;
    kernel->batch = shape.batch * shape.heads;
    kernel->attention = shape.impl;
    kernel->is_causal = shape.is_causal;
    kernel->flop = 2.0 * (double)kernel->batch * attention_pairs(&shape) *
                   (qk_products * (double)shape.qk_dim + v_products * (double)shape.v_dim);
    kernel->bytes = shape.bytes;
}
