/* model/kernel.c: names, sizes and sums of kernels. */
#include "model/kernel.h"

#include "base/status.h"

int64_t dtype_bytes(enum dtype dtype)
{
    static const int64_t bytes[DTYPE_COUNT] = {
        [DTYPE_FP32] = 4, [DTYPE_BF16] = 2, [DTYPE_FP16] = 2, [DTYPE_FP8] = 1, [DTYPE_FP64] = 8};
    BUG_IF((unsigned)dtype >= DTYPE_COUNT);
    return bytes[dtype];
}

const char *dtype_name(enum dtype dtype)
{
    static const char *const names[DTYPE_COUNT] = {[DTYPE_FP32] = "fp32",
                                                   [DTYPE_BF16] = "bf16",
                                                   [DTYPE_FP16] = "fp16",
                                                   [DTYPE_FP8] = "fp8",
                                                   [DTYPE_FP64] = "fp64"};
    BUG_IF((unsigned)dtype >= DTYPE_COUNT);
    return names[dtype];
}

const char *kernel_kind_name(enum kernel_kind kind)
{
    static const char *const names[KERNEL_KIND_COUNT] = {
        [KERNEL_GEMM] = "gemm",
        [KERNEL_ATTENTION] = "attention",
        [KERNEL_NORM] = "norm",
        [KERNEL_ELEMENTWISE] = "elementwise",
        [KERNEL_SOFTMAX_LOSS] = "softmax_loss",
        [KERNEL_EMBEDDING] = "embedding",
        [KERNEL_COPY_IN] = "copy_in",
        [KERNEL_COPY_OUT] = "copy_out",
        [KERNEL_CHUNK_CAT] = "chunk_cat",
        [KERNEL_CAST] = "cast",
        [KERNEL_OPTIMIZER] = "optimizer",
        [KERNEL_REDUCE] = "reduce",
        [KERNEL_GIVEN] = "given",
        [KERNEL_EXCHANGE] = "exchange",
    };
    BUG_IF((unsigned)kind >= KERNEL_KIND_COUNT);
    return names[kind];
}

double kernel_list_flop(const struct kernel_list *list)
{
    double sum = 0.0;
    for (int32_t i = 0; i < list->count; i++)
        sum += list->items[i].flop;
    return sum;
}

double kernel_list_bytes(const struct kernel_list *list)
{
    double sum = 0.0;
    for (int32_t i = 0; i < list->count; i++)
        sum += list->items[i].bytes;
    return sum;
}
