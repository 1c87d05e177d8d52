/*
 * schedule/data_loader.c: batches come from worker processes (`train.data_loader`).
 *
 * Before each forward the host takes a batch and waits for it where it is not there yet; taking one
 * makes the workers begin another (torch.utils.data.DataLoader: num_workers x prefetch_factor are
 * asked for ahead). The workers of a rank stand as one stream that is none of the GPU's: it makes
 * one batch after the other, each in the time after which another one comes out of all of them
 * (run/loading.h). With n microbatches a step and L batches asked for ahead, batch i + L is begun
 * when batch i is taken; more than a step ahead changes nothing in the long run, so that L is at
 * most n. Without workers the host makes each batch itself: L = 0, and it waits at once.
 *
 * The first L batches are asked for when the first step begins, as by a new iterator, so that a
 * loader that is too slow is behind from the first step on.
 *
 * Example, one batch a step of 245 ms: at 300 ms a batch the step takes 300 ms, at 200 ms 245 ms;
 * without workers 200 ms lie between the steps where the host cannot run ahead.
 *
 * Left out: workers that take turns unevenly, collating, the copy of the batch to the GPU.
 */
#include "schedule/program.h"

struct loader {
    struct arena *arena;
    struct op_list ops; /* of the step, anew */
    int32_t stream, first_event, batches, lookahead;
};

static void push(struct loader *loader, enum op_kind kind, int32_t index, int flags)
{
    *ARENA_PUSH(loader->arena, &loader->ops) = (struct op){.kind = (uint8_t)kind,
                                                           .stream = (uint8_t)loader->stream,
                                                           .flags = (uint16_t)flags,
                                                           .unit = -1,
                                                           .index = index};
}

/* Batch `batch` of this step or the next one. */
static int32_t ask(struct loader *loader, int32_t batch, int flags)
{
    const int32_t event = loader->first_event + batch % loader->batches;
    push(loader, OP_LOAD, 0, flags);
    push(loader, OP_RECORD, event, flags | OP_UNCOSTED);
    return event;
}

static void take(struct loader *loader, int32_t batch)
{
    if (batch == 0)
        for (int32_t i = 0; i < loader->lookahead; i++)
            (void)ask(loader, i, OP_FIRST_STEP);
    if (loader->lookahead > 0)
        push(loader, OP_HOST_WAIT, loader->first_event + batch, 0);
    const int32_t event = ask(loader, batch + loader->lookahead, 0);
    if (loader->lookahead == 0)
        push(loader, OP_HOST_WAIT, event, 0);
}

static bool begins_forward(const struct op *op)
{
    return op->kind == OP_MARK && op->index == MARK_FORWARD_BEGIN;
}

void program_add_data_loader(struct arena *arena, struct program *program, int64_t ahead)
{
    struct loader loader = {
        .arena = arena, .stream = program->streams.count, .first_event = program->events.count};
    for (int32_t i = 0; i < program->step.count; i++)
        loader.batches += begins_forward(&program->step.items[i]);
    if (loader.batches == 0)
        return;
    loader.lookahead = ahead < loader.batches ? (int32_t)ahead : loader.batches;
    *ARENA_PUSH(arena, &program->streams) =
        (struct stream){.name = DATA_LOADER_STREAM, .role = STREAM_DATA_LOADER};
    for (int32_t i = 0; i < loader.batches; i++)
        *ARENA_PUSH(arena, &program->events) = arena_printf(arena, "batch(%d)", i);
    int32_t batch = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        if (begins_forward(&program->step.items[i]))
            take(&loader, batch++);
        *ARENA_PUSH(arena, &loader.ops) = program->step.items[i];
    }
    program->step = loader.ops;
}
