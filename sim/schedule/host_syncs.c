/*
 * schedule/host_syncs.c: the host waits for the GPU inside blocks.
 *
 * Routing of experts reads how many tokens each one gets, attention whether its sequences are
 * packed, a loss is logged (.item()): the host stops until compute has drained, and what it would
 * have issued meanwhile, the next unit's all-gather first of all, is issued late
 * (pytorch/torchtitan issue 1581, huggingface/transformers issue 39213). Prefetch that lives on the
 * host running ahead is lost; explicit prefetch is issued before the block and is not. Kernels
 * behind a wait begin as the host issues them again.
 *
 * It waits behind each kernel that says so (`host_waits`), and `train.host_syncs` times more: with
 * n of them the K kernels of a block's forward are cut behind kernel K/(n + 1), 2 K/(n + 1), …. So
 * also where the forward runs again in backward. An abstract unit's time is cut into equal parts.
 * Each part of a compiled block is a region of its own, since a wait breaks the graph.
 *
 * Example: forward 0.4 ms, gather 0.3 ms, one wait: the next gather begins 0.2 ms before the end of
 * the block and is seen for 0.1 ms.
 *
 * The copy of what it reads, and waking up, are one cost of the host (`sync_wake`).
 */
#include "schedule/program.h"

struct part {
    int32_t segment; /* of the program */
    bool waits;      /* behind it */
};

struct parts {
    struct part *items;
    int32_t count, capacity; /* 0: not cut */
};

struct cutter {
    struct arena *arena;
    struct program *program;
    struct parts *parts; /* by segment */
    int32_t syncs;       /* spread over each block's forward */
    int32_t event;
};

/* Kernels given by their time alone count as many, and are cut into equal parts. */
static const struct segment *refine(struct cutter *cutter, const struct segment *segment)
{
    const int32_t pieces = cutter->syncs + 1;
    bool is_given = segment->forward_kernels < pieces;
    for (int32_t i = 0; i < segment->forward_kernels; i++)
        is_given = is_given && segment->kernels[i].kind == KERNEL_GIVEN;
    if (!is_given)
        return segment;
    struct segment *fine = ARENA_NEW(cutter->arena, struct segment);
    const int32_t added = segment->forward_kernels * cutter->syncs;
    struct kernel *kernels =
        ARENA_ARRAY(cutter->arena, struct kernel, segment->kernel_count + added);
    int32_t count = 0;
    for (int32_t i = 0; i < segment->kernel_count; i++) {
        const bool is_cut = i < segment->forward_kernels;
        for (int32_t k = 0; k < (is_cut ? pieces : 1); k++) {
            kernels[count] = segment->kernels[i];
            kernels[count++].given_s /= is_cut ? pieces : 1;
        }
    }
    *fine = *segment;
    fine->kernels = kernels;
    fine->kernel_count = count;
    fine->forward_kernels = segment->forward_kernels * pieces;
    return fine;
}

/* Whether the host waits when so many of the segment's kernels are issued. */
static bool waits_behind(const struct cutter *cutter, const struct segment *segment, int32_t count)
{
    for (int64_t i = 1; i <= cutter->syncs && count < segment->kernel_count; i++)
        if (count == (int64_t)segment->forward_kernels * i / (cutter->syncs + 1))
            return true;
    return segment->kernels[count - 1].host_waits;
}

static bool has_waits(const struct cutter *cutter, const struct segment *segment)
{
    bool waits = cutter->syncs > 0 && segment->forward_kernels > 0;
    for (int32_t k = 0; k < segment->kernel_count && !waits; k++)
        waits = segment->kernels[k].host_waits;
    return waits;
}

static void cut(struct cutter *cutter, int32_t index)
{
    const struct segment segment = *refine(cutter, &cutter->program->segments.items[index]);
    struct parts *parts = &cutter->parts[index];
    int32_t begin = 0;
    for (int32_t end = 1; end <= segment.kernel_count; end++) {
        const bool waits = waits_behind(cutter, &segment, end);
        if (!waits && end < segment.kernel_count)
            continue;
        struct segment part = segment;
        part.name = arena_printf(cutter->arena, "%s.part%d", segment.name, parts->count);
        part.kernels = segment.kernels + begin;
        part.kernel_count = end - begin;
        part.forward_kernels = 0;
        *ARENA_PUSH(cutter->arena, &cutter->program->segments) = part;
        *ARENA_PUSH(cutter->arena, parts) =
            (struct part){.segment = cutter->program->segments.count - 1, .waits = waits};
        begin = end;
    }
}

static void push(struct cutter *cutter, struct op_list *ops, enum op_kind kind,
                 const struct op *like, int32_t index)
{
    struct op op = *like; /* the same stream, flags and unit */
    op.kind = (uint8_t)kind;
    op.index = index;
    op.count = kind == OP_SEGMENT ? like->count : 1; /* of a segment: its microbatch */
    *ARENA_PUSH(cutter->arena, ops) = op;
}

static void push_parts(struct cutter *cutter, struct op_list *ops, const struct op *op)
{
    const struct parts *parts = &cutter->parts[op->index];
    for (int32_t i = 0; i < parts->count; i++) {
        push(cutter, ops, OP_SEGMENT, op, parts->items[i].segment);
        if (!parts->items[i].waits)
            continue;
        push(cutter, ops, OP_RECORD, op, cutter->event);
        push(cutter, ops, OP_HOST_WAIT, op, cutter->event);
        push(cutter, ops, OP_HOST_WORK, op, HOST_SYNC_WAKE);
    }
}

void program_add_host_syncs(struct arena *arena, struct program *program, int64_t count)
{
    struct cutter cutter = {
        .arena = arena, .program = program, .syncs = (int32_t)count, .event = -1};
    const int32_t segment_count = program->segments.count;
    cutter.parts = ARENA_ARRAY(arena, struct parts, segment_count + 1);
    for (int32_t i = 0; i < segment_count; i++) {
        if (!has_waits(&cutter, &program->segments.items[i]))
            continue;
        if (cutter.event < 0) {
            *ARENA_PUSH(arena, &program->events) = "host_sync";
            cutter.event = program->events.count - 1;
        }
        cut(&cutter, i);
    }
    if (cutter.event < 0)
        return;
    struct op_list ops = {0};
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind == OP_SEGMENT && cutter.parts[op->index].count > 0)
            push_parts(&cutter, &ops, op);
        else
            *ARENA_PUSH(arena, &ops) = *op;
    }
    program->step = ops;
}
