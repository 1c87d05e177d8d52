/*
 * model/kernel.h: what a GPU is asked to do, without any time.
 *
 * A kernel is FLOP, bytes and shape. How long it takes is the business of the GPU
 * (cluster/gpu.h: gpu_kernel_s). `flop` counts matrix multiplications only (GEMM, attention): the
 * few operations an element of a memory-bound kernel never decide its time. `bytes` is the traffic
 * with HBM if every operand is moved once.
 *
 * Example, q_proj of Llama-3-8B on 8,192 tokens in bf16: m = 8192, n = 4096, k = 4096, so
 * 274,877,906,944 FLOP and 2·(mk + nk + mn) = 167,772,160 bytes. Its input gradient is (m, k, n)
 * and its weight gradient (n, k, m): the same FLOP each.
 */
#ifndef FSDPSIM_MODEL_KERNEL_H
#define FSDPSIM_MODEL_KERNEL_H

#include <stdint.h>

enum dtype { DTYPE_FP32, DTYPE_BF16, DTYPE_FP16, DTYPE_FP8, DTYPE_FP64, DTYPE_COUNT };
int64_t dtype_bytes(enum dtype dtype);
const char *dtype_name(enum dtype dtype);

enum kernel_kind {
    KERNEL_GEMM,      /* m × n × k, flop = 2·batch·m·n·k */
    KERNEL_ATTENTION, /* fused attention; flop counts the causal half only once */
    KERNEL_NORM,      /* memory-bound kinds: their share of HBM differs by implementation */
    KERNEL_ELEMENTWISE,
    KERNEL_SOFTMAX_LOSS,
    KERNEL_EMBEDDING,
    KERNEL_COPY_IN,   /* FSDP: shards → all-gather buffer, with cast */
    KERNEL_COPY_OUT,  /* FSDP: all-gather buffer → parameters (split_with_sizes_copy) */
    KERNEL_CHUNK_CAT, /* FSDP: gradients → reduce-scatter input, with cast */
    KERNEL_CAST,
    KERNEL_OPTIMIZER, /* fused AdamW: one pass */
    KERNEL_REDUCE,    /* gradient norm */
    KERNEL_GIVEN,     /* abstract models: the duration is an input (`given_s`) */
    KERNEL_KIND_COUNT
};
const char *kernel_kind_name(enum kernel_kind kind);

/* Kernels that FSDP itself adds: counted as compute, and apart as copy_s. */
static inline int kernel_is_copy(enum kernel_kind kind)
{
    return kind == KERNEL_COPY_IN || kind == KERNEL_COPY_OUT || kind == KERNEL_CHUNK_CAT ||
           kind == KERNEL_CAST;
}

enum kernel_pass { PASS_FORWARD, PASS_BACKWARD };

struct kernel {
    const char *name; /* "q_proj", "rms_norm" */
    enum kernel_kind kind;
    enum kernel_pass pass; /* attention and norms differ by pass */
    enum dtype dtype;      /* of the operands (GEMM: the tensor-core dtype) */
    double flop;
    double bytes;
    int64_t m, n, k, batch; /* GEMM shape; attention: m = n = sequence, k = head_dim,
                               batch = b·heads; 0 for the others */
    double given_s;         /* KERNEL_GIVEN */
};

struct kernel_list {
    struct kernel *items;
    int32_t count, capacity;
};

/* Sums over a list. */
double kernel_list_flop(const struct kernel_list *list);
double kernel_list_bytes(const struct kernel_list *list);

#endif
