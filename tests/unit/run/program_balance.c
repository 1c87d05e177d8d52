/* tests/unit/run/program_balance.c: see program_balance.h. */
#include "program_balance.h"

#include <string.h>

#include "check.h"

struct balance {
    struct arena arena;
    const struct program *program;
    bool *is_there;
    int32_t wrong;
};

static void play(struct balance *balance, const struct op_list *ops, uint16_t skipped)
{
    for (int32_t i = 0; i < ops->count; i++) {
        const struct op *op = &ops->items[i];
        const bool is_free = op->kind == OP_FREE || op->kind == OP_FREE_AFTER;
        if ((op->flags & skipped) != 0 || (op->kind != OP_ALLOC && !is_free))
            continue;
        balance->wrong += balance->is_there[op->index] != is_free;
        balance->is_there[op->index] = !is_free;
    }
}

static void balance_init(struct balance *balance, const struct program *program)
{
    *balance = (struct balance){.program = program};
    arena_init(&balance->arena);
    balance->is_there = ARENA_ARRAY(&balance->arena, bool, program->tensors.count + 1);
    play(balance, &program->prologue, 0);
    play(balance, &program->step, OP_LATER_STEPS);
}

void program_check_balance(const struct program *program)
{
    struct balance balance;
    balance_init(&balance, program);
    const size_t bytes = sizeof(bool) * (size_t)program->tensors.count;
    play(&balance, &program->step, OP_FIRST_STEP);
    bool *after = ARENA_ARRAY(&balance.arena, bool, program->tensors.count + 1);
    memcpy(after, balance.is_there, bytes);
    play(&balance, &program->step, OP_FIRST_STEP);
    CHECK_INT(balance.wrong, 0);
    CHECK_TRUE(memcmp(after, balance.is_there, bytes) == 0);
    arena_release(&balance.arena);
}

int64_t program_kept_bytes(const struct program *program, enum memory_category category)
{
    struct balance balance;
    balance_init(&balance, program);
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->tensors.count; i++)
        if (balance.is_there[i] && program->tensors.items[i].category == category)
            bytes += program->tensors.items[i].bytes;
    arena_release(&balance.arena);
    return bytes;
}
