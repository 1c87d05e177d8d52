/*
 * schedule/program_memory.c: what a program holds allocated, in the order in which it is issued.
 *
 * Only the order counts, so no engine is needed. torch.cuda.max_memory_allocated() is this: a block
 * whose last reference is gone counts no longer, even where record_stream keeps it from being used
 * again until another stream is done with it (c10/cuda/CUDACachingAllocator.cpp: free() takes it
 * out of `allocated_bytes` at once, and out of `active_bytes` when its events have passed). FSDP1
 * records streams on what it gathers and reduces, so its active peak is the larger one; fully_shard
 * records none, and the two are equal.
 */
#include "schedule/program.h"

static int64_t rounded(int64_t bytes)
{
    enum { BLOCK = 512 };
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

int64_t tensor_allocated_bytes(const struct tensor *tensor)
{
    const int64_t pieces = tensor->pieces > 1 ? tensor->pieces : 1;
    if (tensor->parts == NULL)
        return pieces * rounded((tensor->bytes + pieces - 1) / pieces);
    int64_t bytes = 0;
    for (int32_t i = 0; i < tensor->part_count; i++)
        bytes += tensor->parts[i].count * rounded(tensor->parts[i].bytes);
    return bytes;
}

static bool has_timed_frees(const struct op_list *ops)
{
    for (int32_t i = 0; i < ops->count; i++)
        if (ops->items[i].kind == OP_RECORD_STREAM || ops->items[i].kind == OP_FREE_AFTER)
            return true;
    return false;
}

bool program_has_timed_frees(const struct program *program)
{
    return has_timed_frees(&program->prologue) || has_timed_frees(&program->step);
}

int64_t program_memory_limit(const struct program *program, const struct gpu *gpu)
{
    return gpu->memory_bytes - gpu->context_bytes -
           program_communicator_count(program) * gpu->communicator_bytes;
}

bool op_plays_in(const struct op *op, int32_t step)
{
    if (step < 0)
        return true;
    if ((op->flags & OP_FIRST_STEP) != 0 && step > 0)
        return false;
    return (op->flags & OP_LATER_STEPS) == 0 || step > 0;
}

/* Plays the operations of a step, from what is held; gives the most that was. */
static int64_t play(const struct program *program, const struct op_list *ops, int32_t step,
                    int64_t *held_bytes)
{
    int64_t peak_bytes = *held_bytes;
    for (int32_t i = 0; i < ops->count; i++) {
        const struct op *op = &ops->items[i];
        if ((op->kind != OP_ALLOC && op->kind != OP_FREE && op->kind != OP_FREE_AFTER) ||
            !op_plays_in(op, step))
            continue;
        const int64_t bytes = tensor_allocated_bytes(&program->tensors.items[op->index]);
        *held_bytes += op->kind == OP_ALLOC ? bytes : -bytes;
        if (*held_bytes > peak_bytes)
            peak_bytes = *held_bytes;
    }
    return peak_bytes;
}

int64_t program_peak_allocated_bytes(const struct program *program, int32_t steps)
{
    int64_t held_bytes = 0;
    const int64_t prologue_bytes = play(program, &program->prologue, -1, &held_bytes);
    const int64_t first_bytes = play(program, &program->step, 0, &held_bytes);
    if (steps <= 1)
        return first_bytes > prologue_bytes ? first_bytes : prologue_bytes;
    /* The second step ends with what the first of the later ones leaves to all others. */
    const int64_t second_bytes = play(program, &program->step, 1, &held_bytes);
    const int64_t third_bytes = play(program, &program->step, 2, &held_bytes);
    return third_bytes > second_bytes ? third_bytes : second_bytes;
}
