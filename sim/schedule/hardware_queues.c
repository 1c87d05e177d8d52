/*
 * schedule/hardware_queues.c: streams that share a hardware queue (CUDA_DEVICE_MAX_CONNECTIONS).
 *
 * A host feeds a GPU through n queues, 8 where nothing is set; streams are spread over them in the
 * order of their making. What is in one queue begins in the order of issue, whatever its stream: an
 * operation that waits at the head holds up all behind it, though they depend on nothing of it.
 * With n = 1 a prefetched all-gather that waits for the reduce-scatter before it (one communicator)
 * holds up the backward issued behind it, so the reduce-scatter runs alone (verl-omni issue 421,
 * pytorch/torchtitan issue 1147).
 *
 * These false dependencies are written into the program as events: before an operation whose
 * predecessor in its queue is of another stream its own stream waits until that one has begun. A
 * segment is many kernels, of which the last one begins when it is about to end: it has begun when
 * it has ended. A collective has begun when its stream has come to it and the one before it on its
 * communicator has ended. The host pays nothing for them (OP_UNCOSTED).
 *
 * Example: fully_shard, gather = scatter = 8 ms, backward 20 ms a unit: 20 ms with 8 queues, 28
 * with one; forward 10 ms: 10 and 18.
 *
 * An event is recorded when what stands before it is done, and holds up nothing: Megatron's tensor
 * parallelism relies on n = 1 for a collective that begins before the product issued behind it.
 *
 * Left out: priorities (each has its queues on some GPUs), copies in queues of their own.
 */
#include "schedule/program.h"

/* What was issued last to a queue. */
struct tail {
    int32_t stream;  /* -1: nothing yet */
    int32_t reached; /* event before it; -1: it has begun when its stream has passed it */
    int32_t ended;   /* event behind the collective before it; -1: none */
};

struct queues {
    struct arena *arena;
    struct program *program;
    struct op_list ops;
    int32_t count;
    struct tail *tails;       /* by queue */
    int32_t *passed;          /* events by stream */
    int32_t *reached, *ended; /* events by operation of the step; -1: none */
    int32_t *last_ended;      /* by communicator: of its last collective */
};

static bool is_launch(const struct op *op)
{
    return op->kind == OP_COLLECTIVE || op->kind == OP_SEND || op->kind == OP_RECV ||
           op->kind == OP_COPY;
}

static bool is_queued(const struct op *op)
{
    return is_launch(op) || op->kind == OP_SEGMENT || op->kind == OP_WAIT;
}

static int32_t add_event(struct queues *queues, const char *what, int32_t number)
{
    *ARENA_PUSH(queues->arena, &queues->program->events) =
        arena_printf(queues->arena, "%s(%d)", what, number);
    return queues->program->events.count - 1;
}

static void add_events(struct queues *queues)
{
    const struct program *program = queues->program;
    queues->passed = ARENA_ARRAY(queues->arena, int32_t, program->streams.count);
    queues->reached = ARENA_ARRAY(queues->arena, int32_t, program->step.count + 1);
    queues->ended = ARENA_ARRAY(queues->arena, int32_t, program->step.count + 1);
    for (int32_t i = 0; i < program->streams.count; i++)
        queues->passed[i] = add_event(queues, "queue_passed", i);
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        queues->reached[i] = is_launch(op) ? add_event(queues, "queue_reached", i) : -1;
        queues->ended[i] = op->kind == OP_COLLECTIVE ? add_event(queues, "queue_ended", i) : -1;
    }
}

static void push(struct queues *queues, enum op_kind kind, int32_t stream, int32_t event)
{
    if (event >= 0)
        *ARENA_PUSH(queues->arena, &queues->ops) = (struct op){.kind = (uint8_t)kind,
                                                               .stream = (uint8_t)stream,
                                                               .flags = OP_UNCOSTED,
                                                               .unit = -1,
                                                               .index = event};
}

/* `stream` goes on when the tail of its queue has begun. */
static void follow(struct queues *queues, const struct tail *tail, int32_t stream)
{
    if (tail->stream < 0 || tail->stream == stream)
        return;
    if (tail->reached < 0) {
        push(queues, OP_RECORD, tail->stream, queues->passed[tail->stream]);
        push(queues, OP_WAIT, stream, queues->passed[tail->stream]);
        return;
    }
    push(queues, OP_WAIT, stream, tail->reached);
    push(queues, OP_WAIT, stream, tail->ended);
}

static void append(struct queues *queues, int32_t idx)
{
    const struct op op = queues->program->step.items[idx];
    struct tail *tail = &queues->tails[op.stream % queues->count];
    if (!is_queued(&op)) {
        *ARENA_PUSH(queues->arena, &queues->ops) = op;
        return;
    }
    follow(queues, tail, op.stream);
    push(queues, OP_RECORD, op.stream, queues->reached[idx]);
    *ARENA_PUSH(queues->arena, &queues->ops) = op;
    push(queues, OP_RECORD, op.stream, queues->ended[idx]);
    *tail = (struct tail){op.stream, queues->reached[idx], -1};
    if (op.kind == OP_COLLECTIVE) {
        const int32_t communicator = queues->program->collectives.items[op.index].communicator;
        tail->ended = queues->last_ended[communicator];
        queues->last_ended[communicator] = queues->ended[idx];
    }
}

/* Once over the step, from what the step before it left. */
static void walk(struct queues *queues)
{
    queues->ops = (struct op_list){0};
    for (int32_t i = 0; i < queues->program->step.count; i++)
        append(queues, i);
}

void program_limit_queues(struct arena *arena, struct program *program, int64_t count)
{
    if (count >= program->streams.count)
        return;
    struct queues queues = {.arena = arena, .program = program, .count = (int32_t)count};
    queues.tails = ARENA_ARRAY(arena, struct tail, count);
    queues.last_ended = ARENA_ARRAY(arena, int32_t, program->communicators.count + 1);
    for (int32_t i = 0; i < queues.count; i++)
        queues.tails[i].stream = -1;
    for (int32_t i = 0; i < program->communicators.count; i++)
        queues.last_ended[i] = -1;
    add_events(&queues);
    walk(&queues); /* to learn what a step leaves */
    walk(&queues);
    program->step = queues.ops;
}
