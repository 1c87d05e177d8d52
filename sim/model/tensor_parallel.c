/* model/tensor_parallel.c: what a rank has of a network, and what ranks exchange. */
#include "model/tensor_parallel.h"

#include <inttypes.h>

static const char *refuse_kind(const struct network *net, const struct train_shape *shape)
{
    if (net->kind != NETWORK_DECODER)
        return "tensor parallelism cuts decoders, not encoders";
    if (net->experts > 0)
        return "tensor parallelism of experts cannot be simulated yet";
    if (net->kv_lora > 0)
        return "tensor parallelism of latent attention cannot be simulated yet";
    if (net->traits.is_parallel)
        return "tensor parallelism of blocks whose attention and MLP run side by side cannot be "
               "simulated yet";
    if (net->embedding_width != net->h)
        return "tensor parallelism of an embedding narrower than the model cannot be simulated yet";
    if (shape->tensor_parallel.gathers_heads && !net->traits.has_qk_norm)
        return "'gather_heads' is about norms of queries and keys, which this model lacks";
    if (shape->loss == LOSS_LINEAR)
        return "the linear loss ('impl: linear') cannot be cut over the vocabulary";
    return NULL;
}

static const char *indivisible(struct arena *arena, int64_t ranks, int64_t count, const char *what)
{
    return count % ranks == 0 ? NULL
                              : arena_printf(arena, "%" PRId64 " ranks cannot share %" PRId64 " %s",
                                             ranks, count, what);
}

const char *tensor_parallel_refusal(struct arena *arena, const struct network *net,
                                    const struct train_shape *shape)
{
    const int64_t ranks = tensor_ranks(shape);
    const bool repeats_keys = !keeps_gathered(shape) && ranks % net->kv_heads == 0;
    const struct {
        int64_t count;
        const char *what;
    } rows[] = {{net->a, "heads"},
                {repeats_keys ? ranks : net->kv_heads, "key and value heads"},
                {net->f, "columns of the MLP"},
                {sequence_ranks(shape) > 1 ? shape->seq_len : ranks, "tokens of a sequence"}};
    const char *text = refuse_kind(net, shape);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && text == NULL; i++)
        text = indivisible(arena, ranks, rows[i].count, rows[i].what);
    return text;
}

struct network tensor_parallel_cut(const struct network *net, const struct train_shape *shape)
{
    const int64_t ranks = tensor_ranks(shape);
    struct network cut = *net;
    cut.a /= ranks;
    cut.kv_heads = net->kv_heads > ranks ? net->kv_heads / ranks : 1;
    cut.f /= ranks;
    cut.vocab = (net->vocab + ranks - 1) / ranks;
    cut.q = cut.a * net->d_qk;
    cut.k = cut.kv_heads * net->d_qk;
    cut.v = cut.kv_heads * net->d_v;
    cut.context = cut.a * net->d_v;
    return cut;
}

bool exchanges_float8(const struct train_shape *shape)
{
    return sequence_ranks(shape) > 1 && keeps_gathered(shape) && shape->float8 == FLOAT8_TENSORWISE;
}

static int32_t emit(struct kernel_sink *sink, enum exchange exchange, const char *name,
                    double bytes)
{
    emit_bytes(sink, name, KERNEL_EXCHANGE, 0.0);
    struct kernel *kernel = &sink->list->items[sink->list->count - 1];
    kernel->exchange = exchange;
    kernel->exchange_bytes = bytes;
    return sink->list->count - 1;
}

static double whole_bytes(const struct kernel_sink *sink, const struct exchanged *what)
{
    return what->elements * (double)dtype_bytes(sink->dtype);
}

bool exchanges_by_copy(const struct train_shape *shape)
{
    return sequence_ranks(shape) > 1 && keeps_gathered(shape);
}

static void copy(struct kernel_sink *sink, const struct train_shape *shape,
                 const struct exchanged *what, const char *suffix)
{
    if (exchanges_by_copy(shape) && !what->is_piped)
        emit_bytes(sink, join_names(sink->arena, what->name, suffix), KERNEL_ELEMENTWISE,
                   2.0 * whole_bytes(sink, what));
}

int32_t exchange_enter(struct kernel_sink *sink, const struct train_shape *shape,
                       struct exchanged what)
{
    if (sequence_ranks(shape) == 1)
        return -1;
    const int32_t at = emit(sink, EXCHANGE_ALL_GATHER, what.name, whole_bytes(sink, &what));
    copy(sink, shape, &what, ".cat");
    return at;
}

int32_t exchange_leave(struct kernel_sink *sink, const struct train_shape *shape,
                       struct exchanged what)
{
    if (tensor_ranks(shape) == 1)
        return -1;
    const bool is_split = sequence_ranks(shape) > 1;
    copy(sink, shape, &what, ".chunk");
    return emit(sink, is_split ? EXCHANGE_REDUCE_SCATTER : EXCHANGE_ALL_REDUCE, what.name,
                whole_bytes(sink, &what));
}

int32_t exchange_leave_backward(struct kernel_sink *sink, const struct train_shape *shape,
                                struct exchanged what)
{
    return exchange_enter(sink, shape, what);
}

int32_t exchange_enter_backward(struct kernel_sink *sink, const struct train_shape *shape,
                                struct exchanged what)
{
    return exchange_leave(sink, shape, what);
}

void exchange_sum(struct kernel_sink *sink, const struct train_shape *shape, const char *name,
                  double bytes)
{
    if (tensor_ranks(shape) > 1)
        (void)emit(sink, EXCHANGE_ALL_REDUCE, name, bytes);
}

void exchange_gather(struct kernel_sink *sink, const struct train_shape *shape, const char *name,
                     double bytes)
{
    if (tensor_ranks(shape) > 1)
        (void)emit(sink, EXCHANGE_ALL_GATHER, name, bytes);
}

void exchange_beside(struct kernel_sink *sink, int32_t exchange)
{
    if (exchange >= 0)
        sink->list->items[exchange].beside_count = sink->list->count - exchange - 1;
}

void exchange_beside_product(struct kernel_sink *sink, int32_t exchange)
{
    int32_t end = exchange + 1;
    if (exchange < 0)
        return;
    while (end < sink->list->count && sink->list->items[end].kind != KERNEL_GEMM)
        end++;
    if (end < sink->list->count)
        sink->list->items[exchange].beside_count = end - exchange;
}
