/*
 * report/trace_collective.c: collectives as PyTorch's profiler and NCCL name them.
 *
 * NCCL launches one kernel a collective and reduction type, whatever algorithm and protocol runs in
 * it, so all say RING_LL. Elements: bytes over those of the type that the policy moves: gathers in
 * param_dtype, reductions in reduce_dtype. Example: an all-gather of 436,224,000 bytes of bf16 over
 * 8 ranks: in 27,264,000, out 218,112,000.
 */
#include "report/trace_private.h"

static enum dtype moved_dtype(const struct trace *trace, enum collective_op op)
{
    const struct precision_config *precision = &trace->experiment->train.precision;
    const bool is_reduction = op == COLLECTIVE_REDUCE_SCATTER || op == COLLECTIVE_ALL_REDUCE;
    return (enum dtype)(is_reduction ? precision->reduce_dtype : precision->param_dtype);
}

static const char *torch_dtype(enum dtype dtype)
{
    static const char *const names[DTYPE_COUNT] = {[DTYPE_FP32] = "Float",
                                                   [DTYPE_BF16] = "BFloat16",
                                                   [DTYPE_FP16] = "Half",
                                                   [DTYPE_FP8] = "Float8_e4m3fn",
                                                   [DTYPE_FP64] = "Double"};
    return names[dtype];
}

static const char *nccl_dtype(enum dtype dtype)
{
    static const char *const names[DTYPE_COUNT] = {[DTYPE_FP32] = "f32",
                                                   [DTYPE_BF16] = "bf16",
                                                   [DTYPE_FP16] = "f16",
                                                   [DTYPE_FP8] = "f8e4m3",
                                                   [DTYPE_FP64] = "f64"};
    return names[dtype];
}

static const struct collective *collective_of(const struct trace *trace, const struct op *op)
{
    return op->kind == OP_COLLECTIVE ? &trace->program->collectives.items[op->index] : NULL;
}

const char *trace_nccl_name(const struct trace *trace, const struct op *op, char *text, size_t size)
{
    const struct collective *collective = collective_of(trace, op);
    const char *dtype =
        collective != NULL ? nccl_dtype(moved_dtype(trace, collective->op)) : nccl_dtype(0);
    switch (collective != NULL ? collective->op : COLLECTIVE_SEND_RECV) {
    case COLLECTIVE_ALL_GATHER:
        snprintf(text, size, "ncclDevKernel_AllGather_RING_LL");
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        snprintf(text, size, "ncclDevKernel_ReduceScatter_Sum_%s_RING_LL", dtype);
        break;
    case COLLECTIVE_ALL_REDUCE:
        snprintf(text, size, "ncclDevKernel_AllReduce_Sum_%s_RING_LL", dtype);
        break;
    case COLLECTIVE_BROADCAST:
        snprintf(text, size, "ncclDevKernel_Broadcast_RING_LL");
        break;
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_SEND_RECV:
    case COLLECTIVE_OP_COUNT:
        snprintf(text, size, "ncclDevKernel_SendRecv");
        break;
    }
    return text;
}

static const char *torch_name(const struct trace *trace, const struct op *op)
{
    static const char *const names[COLLECTIVE_OP_COUNT] = {
        [COLLECTIVE_ALL_GATHER] = "_allgather_base",
        [COLLECTIVE_REDUCE_SCATTER] = "_reduce_scatter_base",
        [COLLECTIVE_ALL_REDUCE] = "allreduce",
        [COLLECTIVE_BROADCAST] = "broadcast",
        [COLLECTIVE_ALL_TO_ALL] = "all_to_allv",
        [COLLECTIVE_SEND_RECV] = "batch_isend_irecv"};
    const struct collective *collective = collective_of(trace, op);
    if (collective != NULL)
        return names[collective->op];
    return op->kind == OP_SEND ? "send" : "recv";
}

/* The members of the rank's group, of more than 30 the first and the last: as PyTorch shortens. */
static void put_ranks(struct trace *trace, const struct group *group)
{
    enum { SHOWN = 30 };
    const int64_t first = group_first_rank(group, group_of_rank(group, trace->rank));
    put_raw(trace->out, "[");
    for (int64_t i = 0; i < group->ranks; i++) {
        if (group->ranks > SHOWN && i == SHOWN - 1) {
            put_raw(trace->out, ", ...");
            i = group->ranks - 1;
        }
        put_raw(trace->out, i > 0 ? ", " : "");
        put_int(trace->out, first + i * group_stride(group));
    }
    put_raw(trace->out, "]");
}

/* Elements that one rank puts in and gets out. */
static void element_args(struct trace *trace, const struct collective *collective, int64_t ranks)
{
    const enum dtype dtype = moved_dtype(trace, collective->op);
    const int64_t all = (int64_t)(collective->bytes / (double)dtype_bytes(dtype));
    const bool is_gather = collective->op == COLLECTIVE_ALL_GATHER;
    const bool is_scatter = collective->op == COLLECTIVE_REDUCE_SCATTER;
    arg_text(trace, "dtype", torch_dtype(dtype));
    arg_int(trace, "In msg nelems", is_gather ? all / ranks : all);
    arg_int(trace, "Out msg nelems", is_scatter ? all / ranks : all);
    arg_int(trace, "In msg bytes",
            (int64_t)collective->bytes / (is_gather && ranks > 0 ? ranks : 1));
    arg_int(trace, "Out msg bytes",
            (int64_t)collective->bytes / (is_scatter && ranks > 0 ? ranks : 1));
}

void trace_collective_args(struct trace *trace, const struct op *op)
{
    const struct collective *collective = collective_of(trace, op);
    const int32_t idx = collective != NULL
                            ? collective->communicator
                            : trace->program->transfers.items[op->index].communicator;
    const struct communicator *communicator = &trace->program->communicators.items[idx];
    arg_text(trace, "Collective name", torch_name(trace, op));
    if (collective != NULL)
        element_args(trace, collective, communicator->group.ranks);
    else
        arg_int(trace, "bytes", (int64_t)trace->program->transfers.items[op->index].bytes);
    arg_int(trace, "Group size", communicator->group.ranks);
    arg_key(trace, "Process Group Name");
    put_raw(trace->out, "\"");
    put_int(trace->out, idx);
    put_raw(trace->out, "\"");
    arg_text(trace, "Process Group Description", communicator->name);
    arg_key(trace, "Process Group Ranks");
    put_raw(trace->out, "\"");
    put_ranks(trace, &communicator->group);
    put_raw(trace->out, "\"");
}

void trace_process_groups(struct trace *trace)
{
    for (int32_t i = 0; i < trace->program->communicators.count; i++) {
        const struct communicator *communicator = &trace->program->communicators.items[i];
        put_raw(trace->out, i > 0 ? ", {\"pg_name\": \"" : "{\"pg_name\": \"");
        put_int(trace->out, i);
        put_raw(trace->out, "\", \"pg_desc\": \"");
        put_escaped(trace->out, communicator->name);
        put_raw(trace->out, "\", \"backend_config\": \"cuda:nccl\", \"pg_size\": ");
        put_int(trace->out, communicator->group.ranks);
        put_raw(trace->out, ", \"ranks\": \"");
        put_ranks(trace, &communicator->group);
        put_raw(trace->out, "\"}");
    }
}
