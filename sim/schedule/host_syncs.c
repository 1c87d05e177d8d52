/*
 * schedule/host_syncs.c: the host waits for the GPU inside blocks (`train.host_syncs`).
 *
 * The routing of experts reads how many tokens each one gets (.tolist()), a loss is logged
 * (.item()): the host stops until compute has drained, and what it would have issued meanwhile, the
 * next unit's all-gather first of all, is issued late (pytorch/torchtitan issue 1581). Prefetch
 * that lives on the host running ahead is lost; explicit prefetch is issued before the block and is
 * not.
 *
 * With n of them the K kernels of a block's forward are cut behind kernel K/(n + 1), 2 K/(n + 1),
 * …, and the host waits for each but the last part; so also where the forward runs again in
 * backward. An abstract unit's time is cut into equal parts. Each part of a compiled block is a
 * region of its own, since a wait breaks the graph.
 *
 * Example: forward 0.4 ms, gather 0.3 ms, one wait: the next gather begins 0.2 ms before the end of
 * the block and is seen for 0.1 ms.
 *
 * Left out: the copy itself (some bytes), and the time a waiting thread takes to wake up.
 */
#include "schedule/program.h"

struct parts {
    int32_t *segments; /* of the program, in order */
    int32_t count;     /* 0: not cut */
};

struct cutter {
    struct arena *arena;
    struct program *program;
    struct parts *parts; /* by segment */
    int32_t syncs, event;
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

static void cut(struct cutter *cutter, int32_t index)
{
    const struct segment segment = *refine(cutter, &cutter->program->segments.items[index]);
    struct parts *parts = &cutter->parts[index];
    parts->segments = ARENA_ARRAY(cutter->arena, int32_t, cutter->syncs + 1);
    int32_t begin = 0;
    for (int32_t i = 1; i <= cutter->syncs + 1; i++) {
        const bool is_last = i == cutter->syncs + 1;
        const int32_t end =
            is_last ? segment.kernel_count
                    : (int32_t)((int64_t)segment.forward_kernels * i / (cutter->syncs + 1));
        struct segment part = segment;
        part.name = arena_printf(cutter->arena, "%s.part%d", segment.name, i - 1);
        part.kernels = segment.kernels + begin;
        part.kernel_count = end - begin;
        part.forward_kernels = 0;
        *ARENA_PUSH(cutter->arena, &cutter->program->segments) = part;
        parts->segments[parts->count++] = cutter->program->segments.count - 1;
        begin = end;
    }
}

static void push(struct cutter *cutter, struct op_list *ops, enum op_kind kind,
                 const struct op *like, int32_t index)
{
    *ARENA_PUSH(cutter->arena, ops) = (struct op){.kind = (uint8_t)kind,
                                                  .stream = like->stream,
                                                  .flags = like->flags,
                                                  .unit = like->unit,
                                                  .index = index,
                                                  .count = like->count};
}

static void push_parts(struct cutter *cutter, struct op_list *ops, const struct op *op)
{
    const struct parts *parts = &cutter->parts[op->index];
    for (int32_t i = 0; i < parts->count; i++) {
        push(cutter, ops, OP_SEGMENT, op, parts->segments[i]);
        if (i + 1 == parts->count)
            break;
        push(cutter, ops, OP_RECORD, op, cutter->event);
        push(cutter, ops, OP_HOST_WAIT, op, cutter->event);
    }
}

void program_add_host_syncs(struct arena *arena, struct program *program, int64_t count)
{
    if (count == 0)
        return;
    struct cutter cutter = {.arena = arena, .program = program, .syncs = (int32_t)count};
    const int32_t segment_count = program->segments.count;
    cutter.parts = ARENA_ARRAY(arena, struct parts, segment_count + 1);
    *ARENA_PUSH(arena, &program->events) = "host_sync";
    cutter.event = program->events.count - 1;
    for (int32_t i = 0; i < segment_count; i++)
        if (program->segments.items[i].forward_kernels > 0)
            cut(&cutter, i);
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
