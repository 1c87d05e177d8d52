/*
 * tests/unit/schedule/test_fsdp2_memory.c: what the program holds, in host order, without
 * allocator.
 *
 * Four equal units of U parameters; figures are multiples of U bytes. A ledger of its own walks the
 * operations: nothing of machine or observers is used.
 */
#include "schedule_tests.h"

enum { U = 1000000 };
#define FOUR_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 1000000, forward: 10 ms, "           \
    "backward: 20 ms}]}; "
#define MIXED FOUR_UNITS "train.precision={param_dtype: bf16, reduce_dtype: fp32}"
#define FULL FOUR_UNITS "train.precision={param_dtype: fp32, reduce_dtype: fp32}"

struct held {
    double forward, backward; /* most unsharded bytes at once, in U */
    double behind_reduce;     /* most right behind the allocation of a reduce-scatter input, in U */
    double end_of_forward;
    double forward_pools[2]; /* most in the pools of compute and copy-in, forward, in U */
    int32_t reduce_inputs;   /* most at once */
};

static bool is_unsharded(const struct tensor *tensor)
{
    return tensor->category == MEMORY_UNSHARDED_PARAMETERS ||
           tensor->category == MEMORY_UNSHARDED_GRADIENTS ||
           tensor->category == MEMORY_REDUCE_BUFFERS;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

struct walk {
    double now, pools[4];
    int32_t inputs;
    bool is_forward;
};

static void walk_op(const struct program *program, const struct op *op, struct walk *walk,
                    struct held *held)
{
    const struct tensor *tensor = &program->tensors.items[op->index];
    if (!is_unsharded(tensor))
        return;
    const double delta = (op->kind == OP_ALLOC ? 1 : -1) * (double)tensor->bytes / U;
    const bool is_input =
        tensor->category == MEMORY_REDUCE_BUFFERS && tensor->bytes >= 2 * (int64_t)U;
    walk->now += delta;
    walk->pools[tensor->stream] += delta;
    if (is_input)
        walk->inputs += op->kind == OP_ALLOC ? 1 : -1;
    if (walk->inputs > held->reduce_inputs)
        held->reduce_inputs = walk->inputs;
    if (is_input && op->kind == OP_ALLOC)
        held->behind_reduce = larger(held->behind_reduce, walk->now);
    if (!walk->is_forward) {
        held->backward = larger(held->backward, walk->now);
        return;
    }
    held->forward = larger(held->forward, walk->now);
    for (int i = 0; i < 2; i++)
        held->forward_pools[i] = larger(held->forward_pools[i], walk->pools[i]);
}

static bool walk_through(const char *overrides, struct held *held)
{
    *held = (struct held){0};
    struct played played;
    const bool is_built = played_build(&played, "worked-examples/units-32", overrides);
    if (is_built) {
        const struct program *program = played.experiment.program;
        struct walk walk = {.is_forward = true};
        for (int32_t i = 0; i < program->step.count; i++) {
            const struct op *op = &program->step.items[i];
            if (op->kind == OP_MARK && op->index == MARK_FORWARD_END) {
                walk.is_forward = false;
                held->end_of_forward = walk.now;
            }
            if ((op->kind == OP_ALLOC || op->kind == OP_FREE) && op->flags == 0)
                walk_op(program, op, &walk, held);
        }
        /* All that was gathered or copied is given back within the step. */
        CHECK_NEAR(walk.now + 1, 1, 1e-12);
    }
    played_release(&played);
    return is_built;
}

static void check_held(const char *overrides, const struct held *expected)
{
    struct held held;
    check_context("%s", overrides);
    if (walk_through(overrides, &held)) {
        check_context("%s", overrides);
        CHECK_NEAR(held.forward, expected->forward, 1e-12);
        CHECK_NEAR(held.backward, expected->backward, 1e-12);
        CHECK_NEAR(held.behind_reduce, expected->behind_reduce, 1e-12);
        CHECK_NEAR(held.end_of_forward, expected->end_of_forward, 1e-12);
        CHECK_NEAR(held.forward_pools[0], expected->forward_pools[0], 1e-12);
        CHECK_NEAR(held.forward_pools[1], expected->forward_pools[1], 1e-12);
        CHECK_INT(held.reduce_inputs, expected->reduce_inputs);
    }
    check_context(NULL);
}

/* 41, 43, 45: bf16 and fp32: forward two buffers, or a buffer and parameters, 4 U; their pools 2
   and 4 U. End of a backward 2 + 2 + 2 + 4 = 10 U; behind its copy-in 2 + 2 + 4 = 8 U. */
static void test_mixed(void)
{
    check_held(MIXED, &(struct held){.forward = 4,
                                     .backward = 10,
                                     .behind_reduce = 8,
                                     .forward_pools = {2, 4},
                                     .reduce_inputs = 1});
}

/* All fp32: 8 U; 4 + 4 + 4 + 4 = 16 U, then 12 U. */
static void test_fp32(void)
{
    check_held(FULL, &(struct held){.forward = 8,
                                    .backward = 16,
                                    .behind_reduce = 12,
                                    .forward_pools = {4, 8},
                                    .reduce_inputs = 1});
}

/* 44: kept after forward: at its end all four, and before that the last buffer; in backward all
   four, gradients of the last: 8 + 2, then 6 + 2 + 4 of the first to be reduced; the next 6 + 2 and
   the input before it: 12. */
static void test_kept(void)
{
    check_held(MIXED "; fsdp.reshard_after_forward=false", &(struct held){.forward = 4 * 2 + 2,
                                                                          .backward = 12,
                                                                          .behind_reduce = 12,
                                                                          .end_of_forward = 8,
                                                                          .forward_pools = {8, 4},
                                                                          .reduce_inputs = 1});
}

/* 42: k units ahead: buffer, parameters and k buffers, (2 + k) 2 U; backward as ever. */
static void test_explicit_prefetch(void)
{
    check_held(MIXED "; fsdp.forward_prefetch=1", &(struct held){.forward = 6,
                                                                 .backward = 10,
                                                                 .behind_reduce = 8,
                                                                 .forward_pools = {2, 4},
                                                                 .reduce_inputs = 1});
    check_held(MIXED "; fsdp.forward_prefetch=2", &(struct held){.forward = 8,
                                                                 .backward = 10,
                                                                 .behind_reduce = 8,
                                                                 .forward_pools = {2, 6},
                                                                 .reduce_inputs = 1});
}

/* k units behind in backward: parameters, k buffers, gradients, the input before: (2 + 2 k + 2 + 4)
   U; behind a copy-in (2 k + 2 + 4) U. */
static void test_backward_list(void)
{
    for (int k = 1; k <= 2; k++) {
        const char *const overrides[] = {MIXED "; fsdp.backward_prefetch=1",
                                         MIXED "; fsdp.backward_prefetch=2"};
        check_held(overrides[k - 1], &(struct held){.forward = 4,
                                                    .backward = 8 + 2 * k,
                                                    .behind_reduce = 6 + 2 * k,
                                                    .forward_pools = {2, 4},
                                                    .reduce_inputs = 1});
    }
}

/* A second reduce-scatter input: 4 U more. */
static void test_two_inputs(void)
{
    check_held(MIXED "; fsdp.reduce_scatter_buffers=2", &(struct held){.forward = 4,
                                                                       .backward = 14,
                                                                       .behind_reduce = 12,
                                                                       .forward_pools = {2, 4},
                                                                       .reduce_inputs = 2});
}

/* 46: constant in the number of units. */
static void test_constant_in_units(void)
{
    check_held(MIXED "; model.repeat=6", &(struct held){.forward = 4,
                                                        .backward = 10,
                                                        .behind_reduce = 8,
                                                        .forward_pools = {2, 4},
                                                        .reduce_inputs = 1});
}

/* Persistent: 16 B a parameter over N, moments from the first step on; as the machine counts. */
static void test_states(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-32", MIXED)) {
        const int64_t *parts = played.outcome.peak_composition;
        const int64_t shard = rounded_up(U / 2 * 4);
        CHECK_INT(parts[MEMORY_PARAMETERS], 4 * shard);
        CHECK_INT(parts[MEMORY_OPTIMIZER], 8 * shard);
        /* Two of four units were reduced when the second holds its 10 U. */
        CHECK_INT(parts[MEMORY_GRADIENTS], 2 * shard);
        CHECK_INT(parts[MEMORY_UNSHARDED_PARAMETERS], 2 * rounded_up(2 * (int64_t)U));
        CHECK_INT(parts[MEMORY_UNSHARDED_GRADIENTS], rounded_up(2 * (int64_t)U));
        CHECK_INT(parts[MEMORY_REDUCE_BUFFERS], rounded_up(4 * (int64_t)U));
    }
    played_release(&played);
}

const struct check_case memory_cases[] = {
    {"41, 43, 45: bf16 and fp32", test_mixed},
    {"45: fp32", test_fp32},
    {"44: kept after forward", test_kept},
    {"42: explicit prefetch", test_explicit_prefetch},
    {"27, 45: a list in backward", test_backward_list},
    {"two reduce-scatter inputs", test_two_inputs},
    {"46: constant in the number of units", test_constant_in_units},
    {"as the machine counts", test_states},
    {0}};
