/*
 * tests/unit/machine/test_host.c: a host that is too slow, and one that waits, as users met them.
 *
 * A forward pass of 4 layers of 10 kernels of 0.5 ms each, behind a gather of 4 ms a layer (FSDP2
 * has no other prefetch than the host running ahead: fsdp_semantics 0.5). Exposed: a collective
 * runs and no kernel does.
 */
#include "check.h"
#include "suites.h"
#include "toy.h"

#define US INT64_C(1000000)

enum { LAYERS = 4, KERNELS = 10 };

struct exposure {
    int32_t running[ACTIVITY_KIND_COUNT];
    int64_t since_ps, exposed_ps;
};

static void exposure_move(struct exposure *exposure, int64_t now_ps)
{
    if (exposure->running[ACTIVITY_COMMUNICATION] > 0 && exposure->running[ACTIVITY_COMPUTE] == 0)
        exposure->exposed_ps += now_ps - exposure->since_ps;
    exposure->since_ps = now_ps;
}

static void exposure_begin(void *context, int64_t now_ps, int32_t class_idx,
                           enum activity_kind kind, const struct op *op, double copy_frac)
{
    (void)class_idx;
    (void)op;
    (void)copy_frac;
    struct exposure *exposure = context;
    exposure_move(exposure, now_ps);
    exposure->running[kind]++;
}

static void exposure_end(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                         const struct op *op, double copy_frac)
{
    (void)class_idx;
    (void)op;
    (void)copy_frac;
    struct exposure *exposure = context;
    exposure_move(exposure, now_ps);
    exposure->running[kind]--;
}

struct layers {
    double host_cost_ms;        /* of a kernel */
    bool is_prefetched;         /* the next layer is gathered before this one is issued */
    bool is_waited;             /* the host needs a result of each layer */
    int64_t end_ps, exposed_ps; /* found */
};

static void write_gather(struct toy *toy, const int32_t *gathered, int32_t gather, int32_t layer)
{
    if (layer >= LAYERS)
        return;
    toy_op(toy, OP_COLLECTIVE, TOY_GATHER, gather);
    toy_op(toy, OP_RECORD, TOY_GATHER, gathered[layer]);
}

static void write_layers(const struct layers *layers, struct toy *toy)
{
    struct kernel *kernels = ARENA_ARRAY(&toy->arena, struct kernel, KERNELS);
    int32_t gathered[LAYERS];
    for (int32_t i = 0; i < KERNELS; i++)
        kernels[i] = toy_kernel(0.5, 0);
    for (int32_t i = 0; i < LAYERS; i++)
        gathered[i] = toy_event(toy, "gathered");
    const int32_t segment = toy_kernels(toy, kernels, KERNELS);
    const int32_t gather = toy_collective(toy, COLLECTIVE_ALL_GATHER, 0, 4);
    const int32_t done = toy_event(toy, "done");
    const int32_t ahead = layers->is_prefetched ? 1 : 0;
    if (ahead == 1)
        write_gather(toy, gathered, gather, 0);
    for (int32_t i = 0; i < LAYERS; i++) {
        write_gather(toy, gathered, gather, i + ahead);
        toy_op(toy, OP_WAIT, TOY_COMPUTE, gathered[i]);
        toy_op(toy, OP_SEGMENT, TOY_COMPUTE, segment);
        if (!layers->is_waited)
            continue;
        toy_op(toy, OP_RECORD, TOY_COMPUTE, done);
        toy_op(toy, OP_HOST_WAIT, 0, done);
    }
}

static void layers_play(struct layers *layers)
{
    struct toy toy;
    struct exposure exposure = {{0}, 0, 0};
    toy_init(&toy, 2, true);
    toy.cluster.host_cost_s[HOST_KERNEL] = layers->host_cost_ms * 1e-3;
    toy.observers[0] = (struct observer){
        .context = &exposure, .activity_begin = exposure_begin, .activity_end = exposure_end};
    toy.observer_count = 1;
    write_layers(layers, &toy);
    layers->end_ps = toy_play(&toy).end_ps;
    layers->exposed_ps = exposure.exposed_ps;
    toy_release(&toy);
}

/*
 * pytorch 163153. At 0.1 ms a kernel the host is ahead: the first gather alone is exposed, 4 + 4 ·
 * 5. At 1 ms, issuing a layer takes 10 ms and computing 5: gather i is issued at 10 i, when all but
 * the last kernel of the layer before is over: 4 + 3 · 3.5 exposed, the end 0.5 behind the host.
 */
static void test_small_model_is_host_bound(void)
{
    struct layers fast = {.host_cost_ms = 0.1};
    layers_play(&fast);
    CHECK_INT(fast.end_ps, 24000 * US);
    CHECK_INT(fast.exposed_ps, 4000 * US);
    struct layers slow = {.host_cost_ms = 1};
    layers_play(&slow);
    CHECK_INT(slow.end_ps, 40500 * US);
    CHECK_INT(slow.exposed_ps, 14500 * US);
    /* Gathered a layer ahead, beside kernels: 4, 0.5 (of 4 to 8), then half of each. */
    struct layers ahead = {.host_cost_ms = 1, .is_prefetched = true};
    layers_play(&ahead);
    CHECK_INT(ahead.end_ps, 40500 * US);
    CHECK_INT(ahead.exposed_ps, 8500 * US);
}

/* torchtitan 1581: a result of each layer is read back; then 4 + 5 ms a layer. A gather issued
   before the layer hides again: 4 + 4 · 5, and each layer's first kernel waits 0.1 ms for its
   issue.
 */
static void test_reading_back_kills_prefetch(void)
{
    struct layers waited = {.host_cost_ms = 0.1, .is_waited = true};
    layers_play(&waited);
    CHECK_INT(waited.end_ps, 36000 * US);
    CHECK_INT(waited.exposed_ps, 16000 * US);
    struct layers ahead = {.host_cost_ms = 0.1, .is_waited = true, .is_prefetched = true};
    layers_play(&ahead);
    CHECK_INT(ahead.end_ps, 24300 * US);
    CHECK_INT(ahead.exposed_ps, 4200 * US);
}

const struct check_case host_cases[] = {
    {"small model is host bound", test_small_model_is_host_bound},
    {"reading back kills prefetch", test_reading_back_kills_prefetch},
    {0},
};
