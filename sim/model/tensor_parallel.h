/*
 * model/tensor_parallel.h: a network cut over t ranks of tensor parallelism (inside this room).
 *
 * Shoeybi et al. 2019 (arXiv 1909.08053, section 3): the linear layers that read a part's input are
 * cut by outputs (q, k, v, gate, up: column-parallel), the one that writes its output by inputs (o,
 * down: row-parallel). A rank has a/t heads, f/t of the FFN, V/t rows of embedding and head; norms
 * whole. What a rank computes in between needs no other; at both ends of a part they exchange a
 * tensor of T·h:
 *
 *                    without                with sequence parallelism (Korthikanti et al. 2022,
 *                                           arXiv 2205.05198, section 4.2.2)
 *   forward, in      nothing                all-gather
 *   forward, out     all-reduce             reduce-scatter
 *   backward, out    nothing                all-gather of the gradient
 *   backward, in     all-reduce             reduce-scatter of the gradient
 *
 * With sequence parallelism norms, dropout and residuals work on T/t tokens. The embedding's output
 * and the head's input are exchanged the same way; with a split loss each token's maximum, sum and
 * target logit (three all-reduces of 4·T bytes), else the logits are gathered.
 *
 * Styles:
 * - dtensor (parallelize_module of PyTorch, as torchtitan's parallelize_llama calls it): a part's
 *   input is gathered once and kept; the gradients of its readers are summed, then reduced; each
 *   norm's weight gradient is all-reduced; everything is waited for at once. With tensorwise float8
 *   activations are cast before they are gathered (Float8ColwiseParallel of torchao): a byte an
 *   element. The sequence is dimension 1 of the tensors, while NCCL works on dimension 0: what is
 *   gathered is put together, and what is scattered taken apart, by a copy of the whole
 *   (_functional_collectives.py, all_gather_tensor and reduce_scatter_tensor; torchtitan PR 437).
 * Async (_micro_pipeline_tp): gathers run beside the products that read them, reduce-scatters
 * beside the product that writes them, whose parts are then summed by a kernel
 *   (torch/distributed/_symmetric_memory); nothing is copied. With rowwise float8 gathers are left
 *   as they are (pytorch issue 149990).
 * - megatron (ColumnParallelLinear and RowParallelLinear of Megatron-LM, flash-attention,
 *   InternEvo): each column-parallel layer reduces the gradient of its input by itself, beside the
 *   product of its weight's gradient; with sequence parallelism T/t of the input is kept, and
 *   gathered again in backward beside the product of the input's gradient.
 *
 * Activations of a GPT-2 block, eager, in bf16 (ibid. table 2): s·b·h·(10 + 24/t + 5·a·s/(h·t)),
 * with sequence parallelism s·b·h·(34/t + 5·a·s/(h·t)).
 *
 * Example, Llama-3-8B on t = 8, T = 8192 in bf16: a rank has 4 heads, 1 key head, f = 1792; a
 * part exchanges 67,108,864 bytes four times a step.
 *
 * Left out: Megatron's all-reduce of the norms' gradients at the end of a step (their bytes are
 * 1/12h of the block's); experts, latent and cross attention, parallel blocks (refused).
 */
#ifndef FSDPSIM_MODEL_TENSOR_PARALLEL_H
#define FSDPSIM_MODEL_TENSOR_PARALLEL_H

#include "model/kernel_private.h"
#include "model/network.h"

static inline int64_t tensor_ranks(const struct train_shape *shape)
{
    return shape->tensor_parallel.ranks > 1 ? shape->tensor_parallel.ranks : 1;
}
/* Ranks that the tokens of norms and residuals are split over. */
static inline int64_t sequence_ranks(const struct train_shape *shape)
{
    return shape->tensor_parallel.has_sequence ? tensor_ranks(shape) : 1;
}
/* Whether a part's input is kept as it was gathered. */
static inline bool keeps_gathered(const struct train_shape *shape)
{
    return shape->tensor_parallel.style == TENSOR_PARALLEL_DTENSOR;
}
/* Whether each column-parallel layer exchanges by itself. */
static inline bool exchanges_by_layer(const struct train_shape *shape)
{
    return tensor_ranks(shape) > 1 && shape->tensor_parallel.style == TENSOR_PARALLEL_MEGATRON;
}

/* NULL, or why a network cannot be cut so (in the arena). */
const char *tensor_parallel_refusal(struct arena *arena, const struct network *net,
                                    const struct train_shape *shape);
/* What one rank has. */
struct network tensor_parallel_cut(const struct network *net, const struct train_shape *shape);

/*
 * The exchanges of `elements` in all: what a rank needs of the others' input, what it adds to its
 * output, and the gradients the other way. Each returns its place in the sink's list, or -1 where
 * there is none, for `exchange_beside`; `is_piped`: such a one, which is not copied.
 */
struct exchanged {
    const char *name; /* in the arena, or constant */
    double elements;
    bool is_piped;
};
int32_t exchange_enter(struct kernel_sink *sink, const struct train_shape *shape,
                       struct exchanged what);
int32_t exchange_leave(struct kernel_sink *sink, const struct train_shape *shape,
                       struct exchanged what);
int32_t exchange_enter_backward(struct kernel_sink *sink, const struct train_shape *shape,
                                struct exchanged what);
int32_t exchange_leave_backward(struct kernel_sink *sink, const struct train_shape *shape,
                                struct exchanged what);
/* An all-reduce of something small: each is waited for. */
void exchange_sum(struct kernel_sink *sink, const struct train_shape *shape, const char *name,
                  double bytes);
/* An all-gather to so many bytes. */
void exchange_gather(struct kernel_sink *sink, const struct train_shape *shape, const char *name,
                     double bytes);
/* The exchange runs beside what was emitted behind it; the second: up to the first product. */
void exchange_beside(struct kernel_sink *sink, int32_t exchange);
void exchange_beside_product(struct kernel_sink *sink, int32_t exchange);

/* Whether what is exchanged is copied besides. */
bool exchanges_by_copy(const struct train_shape *shape);
/* Whether activations are cast to float8 before they are gathered, and each rank casts its own. */
bool exchanges_float8(const struct train_shape *shape);

#endif
