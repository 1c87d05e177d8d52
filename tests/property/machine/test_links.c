/*
 * tests/property/machine/test_links.c: what goes through links, and what faster links do.
 *
 * Bytes: what the observer saw through one instance of a resource is what the plans of all
 * collectives and kernels say, added up here from the plans; and a ring sends out of every GPU's
 * port and NIC what comes in.
 *
 * Faster links: a step in which one thing follows the other, or collectives that begin at given
 * times and meet on one link alone, never gets slower when links get faster. Where things overlap
 * on several links that is not so (Graham's anomalies: a faster gather may hold another one's wire
 * at a worse time), and nothing is claimed.
 */
#include "machine_property.h"

enum { SEED = 50923, RUNS = 120, STEPS = 2, MAX_RESOURCES = 8192, RINGS = 3 };

struct seen {
    double amount[MAX_RESOURCES];
    int64_t mark_ps[MARK_COUNT]; /* of the last class that came there */
};

static void see_use(void *context, int64_t now_ps, int32_t resource, double amount, int64_t busy_ps)
{
    (void)now_ps;
    (void)busy_ps;
    struct seen *seen = context;
    seen->amount[resource] += amount;
}

static void see_mark(void *context, int64_t now_ps, int32_t class_idx, int32_t step, enum mark mark)
{
    (void)class_idx;
    (void)step;
    struct seen *seen = context;
    seen->mark_ps[mark] = now_ps;
}

static void watch(struct toy *toy, struct seen *seen)
{
    *seen = (struct seen){0};
    toy->observers[0] =
        (struct observer){.context = seen, .mark_reached = see_mark, .resource_used = see_use};
    toy->observer_count = 1;
}

/* ---- bytes -------------------------------------------------------------------------------- */

static double share_of(const struct group_class *item, int32_t resource)
{
    for (int32_t i = 0; i < item->share_count; i++) {
        if (item->shares[i].resource == resource)
            return item->shares[i].groups;
    }
    return 1;
}

static void add_plan(struct toy *toy, const struct group_class *item,
                     const struct collective *collective, double *expected)
{
    const struct plan_options options = {0};
    const struct group all = group_whole(item->view);
    struct plan plan = {0};
    CHECK_INT(plan_build(&toy->arena, item->view, &all, collective->op, collective->bytes, &options,
                         &plan, &toy->diag),
              STATUS_OK);
    for (int32_t i = 0; i < plan.phase_count; i++) {
        const struct phase *phase = &plan.phases[i];
        for (int32_t j = 0; j < phase->load_count; j++)
            expected[phase->loads[j].resource] += STEPS * phase->bytes * phase->loads[j].per_byte *
                                                  share_of(item, phase->loads[j].resource);
    }
}

static void add_expected(struct toy *toy, double *expected)
{
    const struct program *program = toy->program;
    for (int32_t c = 0; c < program->communicators.count; c++) {
        struct group_split split;
        group_split_build(&toy->arena, &toy->layout, &program->communicators.items[c].group,
                          &split);
        for (int32_t i = 0; i < program->step.count; i++) {
            const struct op *op = &program->step.items[i];
            if (op->kind != OP_COLLECTIVE ||
                program->collectives.items[op->index].communicator != c)
                continue;
            for (int32_t g = 0; g < split.count; g++)
                add_plan(toy, &split.items[g], &program->collectives.items[op->index], expected);
        }
    }
    for (int32_t i = 0; i < program->segments.count; i++) {
        const struct kernel *kernel = &program->segments.items[i].kernels[0];
        for (int32_t c = 0; c < toy->layout.class_count; c++)
            expected[toy->layout.classes[c].hbm] += STEPS * kernel->bytes;
    }
}

static void check_both_ways(const struct layout *layout, const struct seen *seen)
{
    for (int32_t i = 0; i < layout->class_count; i++) {
        const struct rank_class *class = &layout->classes[i];
        if (class->scale_up_out >= 0)
            CHECK_NEAR(seen->amount[class->scale_up_out], seen->amount[class->scale_up_in], 1e-12);
        if (class->nic_out >= 0)
            CHECK_NEAR(seen->amount[class->nic_out], seen->amount[class->nic_in], 1e-12);
    }
}

static void test_bytes(void)
{
    for (uint32_t run = 0; run < RUNS; run++) {
        struct philox random;
        struct mesh mesh;
        struct toy toy;
        static struct seen seen;
        static double expected[MAX_RESOURCES];
        philox_init(&random, SEED, run, 0, 1);
        mesh_draw(&mesh, &random);
        check_context("seed %d, run %u: %s", SEED, run, mesh.text);
        toy_init(&toy, 2, true);
        mesh_layout(&mesh, philox_below(&random, 2) == 0, &toy.layout);
        toy.steps = STEPS;
        toy.network = philox_below(&random, 2) == 0 ? NETWORK_MESSAGES : NETWORK_FLOWS;
        watch(&toy, &seen);
        mesh_step(&mesh, &random, &toy, false);
        for (int32_t i = 0; i < MAX_RESOURCES; i++)
            expected[i] = 0;
        add_expected(&toy, expected);
        (void)toy_play(&toy);
        for (int32_t i = 0; i < toy.layout.resource_count; i++) {
            if (toy.layout.resources[i].kind != RESOURCE_SM)
                CHECK_NEAR(seen.amount[i], expected[i], 1e-9);
        }
        check_both_ways(&toy.layout, &seen);
        toy_release(&toy);
        mesh_release(&mesh);
    }
    check_context(NULL);
}

/* ---- faster links ------------------------------------------------------------------------- */

static void speed_up(struct layout *layout, struct philox *random)
{
    for (int32_t i = 0; i < layout->resource_count; i++) {
        struct resource *resource = &layout->resources[i];
        const bool is_link = resource->kind != RESOURCE_SM && resource->kind != RESOURCE_HBM &&
                             resource->kind != RESOURCE_COPY_ENGINE;
        if (is_link && philox_below(random, 2) == 0)
            resource->capacity *= 1 + 2 * philox_unit(random);
    }
}

static void test_serial_steps(void)
{
    int32_t faster = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        struct philox random;
        struct mesh mesh;
        struct toy toy;
        philox_init(&random, SEED, run, 0, 2);
        mesh_draw(&mesh, &random);
        mesh_make_whole(&mesh);
        check_context("seed %d, run %u: %s", SEED, run, mesh.text);
        toy_init(&toy, 2, true);
        mesh_layout(&mesh, true, &toy.layout);
        toy.network = philox_below(&random, 2) == 0 ? NETWORK_MESSAGES : NETWORK_FLOWS;
        mesh_step(&mesh, &random, &toy, true);
        int64_t before_ps = toy_play(&toy).end_ps;
        for (int32_t k = 0; k < 3; k++) {
            speed_up(&toy.layout, &random);
            const int64_t now_ps = toy_play(&toy).end_ps;
            CHECK_TRUE(now_ps <= before_ps);
            faster += now_ps < before_ps ? 1 : 0;
            before_ps = now_ps;
        }
        toy_release(&toy);
        mesh_release(&mesh);
    }
    check_context(NULL);
    CHECK_TRUE(faster > RUNS);
}

/* Collectives that begin when a kernel ends, on one port: none ends later when it gets faster. */
static void test_one_link(void)
{
    for (uint32_t run = 0; run < RUNS; run++) {
        struct philox random;
        struct toy toy;
        struct seen slow, fast;
        philox_init(&random, SEED, run, 0, 3);
        toy_init(&toy, 4, true);
        toy.ideal.contention = true;
        toy.cluster.scale_up_link.ring_efficiency = 0.4 + 0.6 * philox_unit(&random);
        for (int32_t i = 0; i < RINGS; i++) {
            const int32_t comm = i > 0 ? toy_communicator(&toy, "other") : 0;
            toy_op(&toy, OP_SEGMENT, i,
                   toy_segment(&toy, "before", PASS_FORWARD, 9 * philox_unit(&random)));
            toy_op(&toy, OP_COLLECTIVE, i,
                   toy_collective(&toy, COLLECTIVE_ALL_GATHER, comm, 9 * philox_unit(&random)));
            toy_op(&toy, OP_MARK, i, i);
        }
        toy_set_capacity(&toy, RESOURCE_SM, RINGS); /* kernels do not slow one another */
        watch(&toy, &slow);
        (void)toy_play(&toy);
        const double capacity = 1e9 * (1 + philox_unit(&random));
        toy_set_capacity(&toy, RESOURCE_SCALE_UP_OUT, capacity);
        toy_set_capacity(&toy, RESOURCE_SCALE_UP_IN, capacity);
        watch(&toy, &fast);
        (void)toy_play(&toy);
        check_context("seed %d, run %u", SEED, run);
        for (int32_t i = 0; i < RINGS; i++)
            CHECK_TRUE(fast.mark_ps[i] <= slow.mark_ps[i]);
        toy_release(&toy);
    }
    check_context(NULL);
}

const struct check_case links_cases[] = {
    {"bytes", test_bytes},
    {"serial steps", test_serial_steps},
    {"one link", test_one_link},
    {0},
};
