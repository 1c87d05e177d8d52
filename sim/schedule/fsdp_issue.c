/*
 * schedule/fsdp_issue.c: kernels as the host issues them: segments, and exchanges of tensor
 * parallelism between them.
 *
 * An exchange that is waited for stands on the compute stream, where it is in the way of what
 * follows. One that runs beside n kernels has a stream of its own: it waits for what was issued
 * before it, the n kernels follow at once, and what comes behind them waits for it.
 *
 *   ... | record, (wait, exchange, record) | n kernels | wait | ...
 *
 * Both kinds are on the communicator of the dimension tp, one at a time.
 *
 * Example, a Megatron block without sequence parallelism: forward 2 exchanges in 3 segments.
 */
#include "schedule/fsdp_private.h"

struct cutter {
    struct fsdp_builder *builder;
    const struct segment *whole;
    struct fsdp_issue *issue;
    int32_t longest; /* segment: the most of a block's forward; -1: none yet */
    int32_t longest_kernels;
};

static void push(struct cutter *cutter, enum op_kind kind, int stream, int32_t index)
{
    *ARENA_PUSH(cutter->builder->arena, &cutter->issue->ops) =
        (struct op){.kind = (uint8_t)kind, .stream = (uint8_t)stream, .unit = -1, .index = index};
}

/* Kernels from `begin` to before `end`; the host's waits of a block are in its longest segment, and
   a compiled region is entered once. */
static void cut(struct cutter *cutter, int32_t begin, int32_t end)
{
    struct fsdp_builder *builder = cutter->builder;
    struct segment part = *cutter->whole;
    const bool is_whole = begin == 0 && end == part.kernel_count;
    if (begin == end && !(is_whole && part.kernel_count == 0))
        return;
    part.kernels += begin;
    part.kernel_count = end - begin;
    part.is_compiled = part.is_compiled && cutter->issue->segments == 0;
    if (!is_whole) {
        const int32_t last = end < part.forward_kernels ? end : part.forward_kernels;
        const int32_t forward = last > begin ? last - begin : 0;
        part.name =
            arena_printf(builder->arena, "%s.cut%d", part.name, (int)cutter->issue->segments);
        part.forward_kernels = 0;
        if (forward > cutter->longest_kernels) {
            cutter->longest_kernels = forward;
            cutter->longest = builder->program->segments.count;
        }
    }
    push(cutter, OP_SEGMENT, FSDP_COMPUTE, fsdp_add_segment(builder, part));
    cutter->issue->segments++;
}

static int32_t tensor_communicator(struct fsdp_builder *builder)
{
    struct program *program = builder->program;
    if (builder->tensor_communicator > 0)
        return builder->tensor_communicator;
    *ARENA_PUSH(builder->arena, &program->communicators) =
        (struct communicator){.name = "tp",
                              .purpose = "tensor parallel",
                              .group = builder->settings->tensor_group,
                              .is_tensor_parallel = true};
    builder->tensor_communicator = program->communicators.count - 1;
    BUG_IF(builder->tensor_communicator == 0);
    return builder->tensor_communicator;
}

static int tensor_stream(struct fsdp_builder *builder)
{
    struct program *program = builder->program;
    if (builder->tensor_stream > 0)
        return builder->tensor_stream;
    *ARENA_PUSH(builder->arena, &program->streams) =
        (struct stream){.name = "tensor parallel", .role = STREAM_ALL_REDUCE};
    builder->tensor_stream = program->streams.count - 1;
    builder->exchange_ready = fsdp_add_event(builder, "exchange_ready", "tp");
    builder->exchanged = fsdp_add_event(builder, "exchanged", "tp");
    return builder->tensor_stream;
}

static int32_t add_exchange(struct fsdp_builder *builder, const struct kernel *kernel)
{
    static const enum collective_op ops[] = {[EXCHANGE_ALL_REDUCE] = COLLECTIVE_ALL_REDUCE,
                                             [EXCHANGE_ALL_GATHER] = COLLECTIVE_ALL_GATHER,
                                             [EXCHANGE_REDUCE_SCATTER] = COLLECTIVE_REDUCE_SCATTER};
    const int32_t index = fsdp_add_collective(builder, ops[kernel->exchange],
                                              tensor_communicator(builder), kernel->exchange_bytes);
    builder->program->collectives.items[index].is_average = false;
    return index;
}

/* The exchange at `at`; returns the first kernel that is not issued yet. */
static int32_t exchange(struct cutter *cutter, int32_t at)
{
    struct fsdp_builder *builder = cutter->builder;
    const struct kernel *kernel = &cutter->whole->kernels[at];
    const int32_t collective = add_exchange(builder, kernel);
    const int32_t left = cutter->whole->kernel_count - at - 1;
    const int32_t beside = kernel->beside_count < left ? kernel->beside_count : left;
    if (beside == 0) {
        push(cutter, OP_COLLECTIVE, FSDP_COMPUTE, collective);
        return at + 1;
    }
    const int stream = tensor_stream(builder);
    push(cutter, OP_RECORD, FSDP_COMPUTE, builder->exchange_ready);
    push(cutter, OP_WAIT, stream, builder->exchange_ready);
    push(cutter, OP_COLLECTIVE, stream, collective);
    push(cutter, OP_RECORD, stream, builder->exchanged);
    cut(cutter, at + 1, at + 1 + beside);
    push(cutter, OP_WAIT, FSDP_COMPUTE, builder->exchanged);
    return at + 1 + beside;
}

int32_t fsdp_add_issue(struct fsdp_builder *builder, struct segment whole)
{
    struct fsdp_issue *issue = ARENA_PUSH(builder->arena, &builder->issues);
    const int32_t index = builder->issues.count - 1;
    issue->whole = whole;
    struct cutter cutter = {
        .builder = builder, .whole = &issue->whole, .issue = issue, .longest = -1};
    int32_t begin = 0;
    for (int32_t at = 0; at < whole.kernel_count; at++) {
        if (whole.kernels[at].kind != KERNEL_EXCHANGE)
            continue;
        cut(&cutter, begin, at);
        begin = exchange(&cutter, at);
        at = begin - 1;
    }
    if (begin < whole.kernel_count || whole.kernel_count == 0)
        cut(&cutter, begin, whole.kernel_count);
    if (cutter.longest >= 0)
        builder->program->segments.items[cutter.longest].forward_kernels = cutter.longest_kernels;
    return index;
}

void fsdp_issue(struct fsdp_builder *builder, int32_t unit, int32_t index)
{
    const struct fsdp_issue *issue = &builder->issues.items[index];
    for (int32_t i = 0; i < issue->ops.count; i++) {
        struct op op = issue->ops.items[i];
        op.unit = unit;
        fsdp_add_op(builder, op);
    }
}
