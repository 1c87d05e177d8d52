/* model/kernel_private.h: FLOP and bytes of GEMMs and of causal flash attention. */
#include "model/kernel_private.h"

static struct kernel *push(struct kernel_sink *sink, const char *name, enum kernel_kind kind)
{
    struct kernel *kernel = ARENA_PUSH(sink->arena, sink->list);
    kernel->name = name;
    kernel->kind = kind;
    kernel->pass = sink->pass;
    kernel->dtype = sink->dtype;
    return kernel;
}

void emit_gemm(struct kernel_sink *sink, const char *name, int64_t m, int64_t n, int64_t k)
{
    double rows = (double)m, columns = (double)n, inner = (double)k;
    struct kernel *kernel = push(sink, name, KERNEL_GEMM);
    kernel->m = m;
    kernel->n = n;
    kernel->k = k;
    kernel->batch = 1;
    kernel->flop = 2.0 * rows * columns * inner;
    kernel->bytes =
        (double)dtype_bytes(sink->dtype) * (rows * inner + inner * columns + rows * columns);
}

void emit_bytes(struct kernel_sink *sink, const char *name, enum kernel_kind kind, double bytes)
{
    push(sink, name, kind)->bytes = bytes;
}

void emit_attention(struct kernel_sink *sink, const char *name, struct attention_shape shape)
{
    double products = sink->pass == PASS_FORWARD ? 2.0 : 5.0;
    double s = (double)shape.sequence;
    struct kernel *kernel = push(sink, name, KERNEL_ATTENTION);
    kernel->m = shape.sequence;
    kernel->n = shape.sequence;
    kernel->k = shape.head_dim;
    kernel->batch = shape.batch * shape.heads;
    kernel->flop = products * 2.0 * (double)kernel->batch * s * s * (double)shape.head_dim / 2.0;
    kernel->bytes = shape.bytes;
}
