/* tests/unit/observe/test_facts.c: what the observers make of toy runs, and of tellings by hand. */
#include "observe/observe.h"
#include "observe_tests.h"
#include "toy.h"
#include "units.h"

#define MS INT64_C(1000000000)

static struct facts *watch(struct toy *toy, int32_t warmup)
{
    struct facts *facts =
        facts_new(&toy->arena, &toy->layout, (const struct program *const *)toy->programs,
                  toy->program_count, warmup, toy->steps - warmup);
    toy->observers[0] = facts_observer(facts);
    toy->observer_count = 1;
    return facts;
}

static void check_adds_up(const struct breakdown *sums)
{
    CHECK_INT(sums->compute_ps + sums->exposed_ps + sums->idle_ps, sums->step_ps);
    CHECK_INT(sums->forward_ps + sums->backward_ps + sums->optimizer_ps <= sums->step_ps, 1);
}

/* Forward 10 + 3·25, backward 3·50 + 10: of each step the first gather, behind the last scatter on
   the communicator, and that scatter are exposed. */
static void test_three_units(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.steps = 3;
    struct units units = units_equal(3, 25, 50, 10, 10);
    units_write(&units, &toy);
    struct facts *facts = watch(&toy, 1);
    (void)toy_play(&toy);
    facts_close(facts);
    const struct breakdown *sums = facts_breakdown(facts, 0);
    check_adds_up(sums);
    CHECK_INT(sums->compute_ps, MS * 2 * 225);
    CHECK_INT(sums->comm_ps, MS * 2 * 9 * 10);
    CHECK_INT(sums->comm_wait_ps, 0);
    CHECK_INT(sums->exposed_ps, MS * 2 * 20);
    CHECK_INT(sums->idle_ps, 0);
    CHECK_INT(sums->step_ps, MS * 2 * 245);
    const struct unit_facts *unit = facts_unit(facts, 0, 1);
    CHECK_INT(unit->forward_ps, MS * 2 * 25);
    CHECK_INT(unit->backward_ps, MS * 2 * 50);
    CHECK_INT(unit->all_gather_ps, MS * 2 * 20);
    CHECK_INT(unit->all_gather_count, 4);
    CHECK_NEAR(unit->all_gather_bytes, 4 * 20e6, 1e-12);
    CHECK_INT(unit->reduce_scatter_ps, MS * 2 * 10);
    CHECK_INT(unit->reduce_scatter_count, 2);
    CHECK_INT(unit->exposed_ps, 0);
    CHECK_INT(facts_unit(facts, 0, 0)->exposed_ps, MS * 2 * 20);
    toy_release(&toy);
}

static void test_no_warmup(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    struct units units = units_equal(3, 25, 50, 10, 10);
    units_write(&units, &toy);
    struct facts *facts = watch(&toy, 0);
    (void)toy_play(&toy);
    facts_close(facts);
    const struct breakdown *sums = facts_breakdown(facts, 0);
    check_adds_up(sums);
    CHECK_INT(sums->step_ps, 245 * MS);
    CHECK_INT(sums->exposed_ps, 20 * MS);
    CHECK_INT(sums->forward_ps, 85 * MS);
    CHECK_INT(sums->backward_ps, 160 * MS);
    CHECK_INT(sums->optimizer_ps, 0);
    const struct resource_facts *link = facts_resource(facts, toy.layout.classes[0].scale_up_out);
    CHECK_NEAR(link->amount, 9 * 10e6, 1e-12);
    CHECK_INT(link->busy_ps, 90 * MS);
    toy_release(&toy);
}

/* The host's 5 ms between steps count as idle: the period is from end of step to end of step. */
static void test_gap_between_steps(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.cluster.host_cost_s[HOST_STEP] = 5e-3;
    toy.steps = 3;
    const int32_t done = toy_event(&toy, "done");
    toy_op(&toy, OP_HOST_WORK, 0, HOST_STEP)->count = 1;
    toy_marks_begin(&toy);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "a", PASS_FORWARD, 8));
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
    toy_op(&toy, OP_RECORD, TOY_COMPUTE, done);
    toy_op(&toy, OP_HOST_WAIT, 0, done);
    struct facts *facts = watch(&toy, 1);
    (void)toy_play(&toy);
    facts_close(facts);
    const struct breakdown *sums = facts_breakdown(facts, 0);
    check_adds_up(sums);
    CHECK_INT(sums->step_ps, 26 * MS);
    CHECK_INT(sums->idle_ps, 10 * MS);
    toy_release(&toy);
}

/* A slow GPU: class 0 waits 6 of the 16 ms of its gather; a copy runs in idle time. */
static void test_wait_copy_memcpy(void)
{
    static struct kernel kernels[2];
    struct toy toy;
    toy_init(&toy, 2, false);
    toy.layout.classes[1].clock_frac = 0.625;
    toy.cluster.gpu.hbm_share[KERNEL_COPY_OUT][IMPL_EAGER][PASS_FORWARD] = 1;
    kernels[0] = toy_kernel(10, 0);
    kernels[1] = (struct kernel){.name = "out", .kind = KERNEL_COPY_OUT, .bytes = 4e9}; /* 1 ms */
    toy_marks_begin(&toy);
    const int32_t first = toy_kernels(&toy, &kernels[0], 1);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, first);
    toy_op(&toy, OP_COLLECTIVE, TOY_COMPUTE, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 10));
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(&toy, &kernels[1], 1));
    toy_op(&toy, OP_COPY, TOY_COMPUTE, COPY_D2D)->bytes = 4000000000; /* 2 ms */
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
    struct facts *facts = watch(&toy, 0);
    (void)toy_play(&toy);
    facts_close(facts);
    const struct breakdown *sums = facts_breakdown(facts, 0);
    check_adds_up(sums);
    CHECK_INT(sums->step_ps, 29 * MS);
    CHECK_INT(sums->compute_ps, 11 * MS);
    CHECK_INT(sums->copy_ps, 1 * MS);
    CHECK_INT(sums->comm_ps, 16 * MS);
    CHECK_INT(sums->comm_wait_ps, 6 * MS);
    CHECK_INT(sums->exposed_ps, 16 * MS);
    CHECK_INT(sums->idle_ps, 2 * MS);
    CHECK_INT(sums->memcpy_ps, 2 * MS);
    CHECK_INT(facts_breakdown(facts, 1)->comm_wait_ps, 0);
    CHECK_INT(facts_breakdown(facts, 1)->comm_ps, 10 * MS);
    toy_release(&toy);
}

/* Overlapping activities, told by hand: unions, not sums. */
static void test_unions(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    (void)toy_unit(&toy, "u");
    toy.unit = 0;
    struct op a = *toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "a", PASS_FORWARD, 1));
    struct op b = a;
    b.stream = TOY_SCATTER;
    struct op c =
        *toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 1));
    struct facts *facts = watch(&toy, 0);
    const struct observer *o = &toy.observers[0];
    o->mark_reached(o->context, 100, 0, 0, MARK_STEP_BEGIN);
    o->activity_begin(o->context, 110, 0, ACTIVITY_COMPUTE, &a, 0.25);
    o->activity_begin(o->context, 120, 0, ACTIVITY_COMPUTE, &b, 0.5);
    o->activity_begin(o->context, 130, 0, ACTIVITY_COMMUNICATION, &c, 0);
    o->activity_end(o->context, 140, 0, ACTIVITY_COMPUTE, &a, 0.25);
    o->transfer_begin(o->context, 147, 0, &c);
    o->activity_end(o->context, 150, 0, ACTIVITY_COMPUTE, &b, 0.5);
    o->activity_end(o->context, 173, 0, ACTIVITY_COMMUNICATION, &c, 0);
    o->mark_reached(o->context, 180, 0, 0, MARK_STEP_END);
    facts_close(facts);
    const struct breakdown *sums = facts_breakdown(facts, 0);
    check_adds_up(sums);
    CHECK_INT(sums->step_ps, 80);
    CHECK_INT(sums->compute_ps, 40);
    CHECK_INT(sums->copy_ps, 23); /* 10·0.25 + 20·0.75 + 10·0.5 = 22.5 */
    CHECK_INT(sums->comm_ps, 43);
    CHECK_INT(sums->comm_wait_ps, 17);
    CHECK_INT(sums->exposed_ps, 23);
    CHECK_INT(sums->idle_ps, 17);
    CHECK_INT(facts_unit(facts, 0, 0)->exposed_ps, 23);
    CHECK_INT(facts_unit(facts, 0, 0)->all_gather_ps, 43);
    CHECK_INT(facts_unit(facts, 0, 0)->forward_ps, 60); /* sums here */
    toy_release(&toy);
}

static void write_memory(struct toy *toy)
{
    (void)toy_unit(toy, "first");
    (void)toy_unit(toy, "second");
    const int32_t parameters = toy_tensor(toy, "parameters", 4096, MEMORY_PARAMETERS, TOY_COMPUTE);
    const int32_t buffer = toy_tensor(toy, "buffer", 1000, MEMORY_UNSHARDED_PARAMETERS, TOY_GATHER);
    const int32_t output = toy_tensor(toy, "output", 2048, MEMORY_ACTIVATIONS, TOY_COMPUTE);
    const int32_t moments = toy_tensor(toy, "moments", 8192, MEMORY_OPTIMIZER, TOY_COMPUTE);
    toy->program->tensors.items[output].unit = 1;
    toy->list = &toy->program->prologue;
    toy_op(toy, OP_ALLOC, 0, parameters);
    toy->list = &toy->program->step;
    toy_op(toy, OP_ALLOC, 0, buffer);
    toy_op(toy, OP_ALLOC, 0, output);
    toy_op(toy, OP_FREE, 0, buffer);
    toy_op(toy, OP_FREE, 0, output);
    toy_op(toy, OP_ALLOC, 0, moments)->flags = OP_FIRST_STEP;
}

/* First step: at most 4096 + 8192; later ones: 1024 + 2048 on top of that. */
static void test_ledger(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.steps = 3;
    write_memory(&toy);
    struct facts *facts = watch(&toy, 1);
    (void)toy_play(&toy);
    facts_close(facts);
    const struct memory_facts *memory = facts_memory(facts, 0);
    CHECK_INT(memory->first_peak.active_bytes, 4096 + 8192);
    CHECK_INT(memory->peak.active_bytes, 4096 + 8192 + 1024 + 2048);
    CHECK_INT(memory->peak.by_category[MEMORY_PARAMETERS], 4096);
    CHECK_INT(memory->peak.by_category[MEMORY_OPTIMIZER], 8192);
    CHECK_INT(memory->peak.by_category[MEMORY_UNSHARDED_PARAMETERS], 1024);
    CHECK_INT(memory->peak.by_category[MEMORY_ACTIVATIONS], 2048);
    CHECK_INT(memory->peak.tensor->unit, 1);
    CHECK_INT(memory->peak.by_unit[1], 2048);
    CHECK_INT(memory->peak.by_unit[2], 4096 + 8192 + 1024); /* of no unit */
    CHECK_TEXT(memory->peak.tensor->name, "output");
    /* A small segment for each of the two streams that allocate. */
    CHECK_INT(memory->peak_reserved_bytes, 2 * (2 << 20));
    CHECK_INT(memory->first_peak_reserved_bytes, 2 * (2 << 20));
    toy_release(&toy);
}

static void test_ledger_of_one_step(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    write_memory(&toy);
    struct facts *facts = watch(&toy, 0);
    (void)toy_play(&toy);
    facts_close(facts);
    const struct memory_facts *memory = facts_memory(facts, 0);
    CHECK_INT(memory->first_peak.active_bytes, 4096 + 8192);
    CHECK_INT(memory->peak.active_bytes, 4096 + 8192);
    CHECK_TEXT(memory->peak.tensor->name, "moments");
    toy_release(&toy);
}

/* Later steps allocate nothing: they hold what the first one left. */
static void test_ledger_of_quiet_steps(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.steps = 2;
    const int32_t tensor = toy_tensor(&toy, "t", 512, MEMORY_TEMPORARIES, TOY_COMPUTE);
    toy_op(&toy, OP_ALLOC, 0, tensor)->flags = OP_FIRST_STEP;
    toy_op(&toy, OP_FREE, 0, tensor)->flags = OP_FIRST_STEP;
    struct facts *facts = watch(&toy, 1);
    (void)toy_play(&toy);
    facts_close(facts);
    CHECK_INT(facts_memory(facts, 0)->first_peak.active_bytes, 512);
    CHECK_INT(facts_memory(facts, 0)->peak.active_bytes, 0);
    toy_release(&toy);
}

const struct check_case breakdown_cases[] = {
    {"three units", test_three_units},
    {"no warm-up", test_no_warmup},
    {"gap between steps", test_gap_between_steps},
    {"wait, copy, memcpy", test_wait_copy_memcpy},
    {"unions", test_unions},
    {0},
};

const struct check_case ledger_cases[] = {
    {"peaks", test_ledger},
    {"one step", test_ledger_of_one_step},
    {"quiet steps", test_ledger_of_quiet_steps},
    {0},
};
