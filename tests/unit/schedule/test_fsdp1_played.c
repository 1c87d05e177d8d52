/*
 * tests/unit/schedule/test_fsdp1_played.c: FSDP1 played: times in closed form, memory in GPU order.
 *
 * Gather and scatter take 15 ms each, on one communicator; the host costs nothing, so that it is
 * always as far ahead as the limiter lets it.
 */
#include "machine/machine.h"
#include "schedule_tests.h"

#define UNITS_32 "worked-examples/units-32"
#define FOUR_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 15000000, forward: 10 ms, "          \
    "backward: 20 ms}]}; fsdp.api=fsdp1"
#define LONG_FIRST                                                                                 \
    "model={family: abstract, units: [{parameters: 15000000, forward: 40 ms, backward: 20 ms}, "   \
    "{repeat: 3, parameters: 15000000, forward: 5 ms, backward: 20 ms}]}; fsdp.api=fsdp1"

/*
 * Equal units, F = 10, B = 20. Forward: gathers behind one another, 4 x 15, then F: 70. Backward:
 * the gather of unit 3 from 60 to 75, so B 75-95; with a prefetch the gather of unit 2 75-90, its
 * B 95-115; scatter 3 95-110, gather 1 110-125, B 125-145, scatter 2 125-140, gather 0 140-155,
 * B 155-175, scatters 155-170, 175-190: 120. PRE and POST issue in one order on the communicator.
 * Without prefetch B, scatter, gather in turn: 5 + 4 x 20 + 4 x 15 + 3 x 15 = 190.
 */
static void test_equal_units(void)
{
    static const struct {
        const char *overrides;
        double forward_s, backward_s;
    } rows[] = {
        {FOUR_UNITS, 0.070, 0.120},
        {FOUR_UNITS "; fsdp.backward_prefetch=post", 0.070, 0.120},
        {FOUR_UNITS "; fsdp.backward_prefetch=none", 0.070, 0.190},
        /* Gathers once; B one behind the other, then scatters: 4 x 20 + 15. */
        {FOUR_UNITS "; fsdp.sharding_strategy=shard_grad_op", 0.070, 0.095},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_play(&played, UNITS_32, rows[i].overrides)) {
            check_context("%s", rows[i].overrides);
            CHECK_NEAR(played.outcome.forward_s, rows[i].forward_s, 1e-12);
            CHECK_NEAR(played.outcome.backward_s, rows[i].backward_s, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/*
 * F = 40, 5, 5, 5. The first unit computes from 15 to 55, gather 1 is 15-30.
 * Limited to unit i - 2 (POST): gather 2 waits for unit 0: 55-70, F 70-75; gather 3 70-85: 90.
 * To unit i - 3 (PRE): gather 2 30-45, gather 3 waits for unit 0: 55-70: 75.
 * Not at all: gathers until 60, F one behind the other: 15 + 40 + 15 = 70.
 */
static void test_limiter(void)
{
    static const struct {
        const char *overrides;
        double forward_s;
    } rows[] = {
        {LONG_FIRST "; fsdp.backward_prefetch=post", 0.090},
        {LONG_FIRST, 0.075},
        {LONG_FIRST "; fsdp.limit_all_gathers=false", 0.070},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_play(&played, UNITS_32, rows[i].overrides)) {
            check_context("%s", rows[i].overrides);
            CHECK_NEAR(played.outcome.forward_s, rows[i].forward_s, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 84: compute waits for no reduce-scatter: as fully_shard with any number of input buffers. */
static void test_no_back_pressure(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/reduce-buffers",
                    "fsdp={api: fsdp1, sharding_strategy: shard_grad_op}"))
        CHECK_NEAR(played.outcome.backward_s, 0.354, 1e-12);
    played_release(&played);
}

struct held {
    int64_t now_bytes[MEMORY_CATEGORY_COUNT], most_bytes[MEMORY_CATEGORY_COUNT];
    int64_t most_of_forward_bytes, end_of_forward_bytes; /* unsharded parameters */
    bool is_forward;
};

static void held_changed(void *context, const struct memory_change *change)
{
    const struct tensor *tensor = change->tensor;
    struct held *held = context;
    int64_t *now = &held->now_bytes[tensor->category];
    *now += change->delta_bytes;
    if (*now > held->most_bytes[tensor->category])
        held->most_bytes[tensor->category] = *now;
    const int64_t params = held->now_bytes[MEMORY_UNSHARDED_PARAMETERS];
    if (held->is_forward && params > held->most_of_forward_bytes)
        held->most_of_forward_bytes = params;
}

static void held_mark(void *context, int64_t now_ps, int32_t class_idx, int32_t step,
                      enum mark mark)
{
    (void)now_ps, (void)class_idx, (void)step;
    struct held *held = context;
    if (mark == MARK_FORWARD_BEGIN)
        held->is_forward = true;
    if (mark == MARK_FORWARD_END) {
        held->is_forward = false;
        held->end_of_forward_bytes = held->now_bytes[MEMORY_UNSHARDED_PARAMETERS];
    }
}

static bool play_held(struct held *held, int32_t steps, const char *overrides)
{
    *held = (struct held){0};
    struct played played;
    bool is_played = played_build(&played, UNITS_32, overrides);
    if (is_played) {
        const struct program *program = played.experiment.program;
        const struct observer observer = {
            .context = held, .memory_changed = held_changed, .mark_reached = held_mark};
        const struct machine_setup setup = {.layout = &played.experiment.layout,
                                            .programs = &program,
                                            .program_count = 1,
                                            .ideal = played.experiment.ideal,
                                            .steps = steps,
                                            .observers = &observer,
                                            .observer_count = 1};
        struct machine_result result;
        is_played =
            CHECK_INT(machine_play(&played.arena, &setup, &result, &played.diag), STATUS_OK);
    }
    played_release(&played);
    return is_played;
}

/* In units of gathered parameters, of 30 MB (15,000,000 bf16: 58,593.75 blocks of 512 B). */
enum { UNIT_BYTES = 58594 * 512 };

/*
 * Compute longer than communication, so that the limiter alone decides: F = B = 40. With POST the
 * next gather is allocated when the unit before is done with: 2. With PRE when the one before that
 * is: 3, in backward and from the second step on in forward. Without the limiter the host allocates
 * all of a step at once, 4 of forward and 4 of backward, and of later steps.
 */
#define COMPUTE_BOUND                                                                              \
    "model={family: abstract, units: [{repeat: 4, parameters: 15000000, forward: 40 ms, "          \
    "backward: 40 ms}]}; fsdp.api=fsdp1"

static void test_unsharded_units(void)
{
    struct held held;
    if (play_held(&held, 3, COMPUTE_BOUND "; fsdp.backward_prefetch=post"))
        CHECK_INT(held.most_bytes[MEMORY_UNSHARDED_PARAMETERS], 2 * UNIT_BYTES);
    if (play_held(&held, 3, COMPUTE_BOUND "; fsdp.backward_prefetch=none"))
        CHECK_INT(held.most_bytes[MEMORY_UNSHARDED_PARAMETERS], 2 * UNIT_BYTES);
    if (play_held(&held, 3, COMPUTE_BOUND)) {
        CHECK_INT(held.most_bytes[MEMORY_UNSHARDED_PARAMETERS], 3 * UNIT_BYTES);
        CHECK_INT(held.most_of_forward_bytes, 3 * UNIT_BYTES);
    }
    if (play_held(&held, 3, COMPUTE_BOUND "; fsdp.limit_all_gathers=false"))
        CHECK_TRUE(held.most_bytes[MEMORY_UNSHARDED_PARAMETERS] >= 8 * UNIT_BYTES);
}

/* All four from forward to backward; nothing is freed in forward, so nothing limits it, and the
   host gathers all of the next step while the last unit of this one is still in use. */
static void test_kept_parameters(void)
{
    struct held held;
    if (play_held(&held, 3, COMPUTE_BOUND "; fsdp.sharding_strategy=shard_grad_op")) {
        CHECK_INT(held.end_of_forward_bytes, 4 * UNIT_BYTES);
        CHECK_INT(held.most_bytes[MEMORY_UNSHARDED_PARAMETERS], 5 * UNIT_BYTES);
    }
    if (play_held(&held, 3, COMPUTE_BOUND "; fsdp.backward_prefetch=post"))
        CHECK_INT(held.end_of_forward_bytes, 1 * UNIT_BYTES);
}

/* 82, 84: a slow wire (B = 1, scatter 15 ms, no gathers): the flat gradients wait for their turn,
   and with those the last of them is written from 4 + 1 stand at once. */
static void test_gradients_pile_up(void)
{
    struct held held;
    if (play_held(&held, 1,
                  "model={family: abstract, units: [{repeat: 4, parameters: 15000000, "
                  "forward: 10 ms, backward: 1 ms}]}; fsdp.api=fsdp1; "
                  "fsdp.sharding_strategy=shard_grad_op"))
        CHECK_INT(held.most_bytes[MEMORY_UNSHARDED_GRADIENTS], 5 * UNIT_BYTES);
}

const struct check_case fsdp1_played_cases[] = {
    {"equal units in closed form", test_equal_units},
    {"77: the limiter", test_limiter},
    {"84: no back-pressure", test_no_back_pressure},
    {"78, 79: unsharded units", test_unsharded_units},
    {"71: SHARD_GRAD_OP keeps parameters", test_kept_parameters},
    {"84: gradients pile up", test_gradients_pile_up},
    {0}};
