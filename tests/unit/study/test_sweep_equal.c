/*
 * tests/unit/study/test_sweep_equal.c: a point of a sweep is the run of the same settings, bit for
 * bit: what points share (files, sections, clusters, programs, what they hold) changes nothing.
 *
 * Every point is played with one cache, in an order in which neighbours share little, then again
 * with all that is kept; and by itself, with nothing shared. What is compared is all that a run
 * with --detail stores, or what is said of a point that is wrong.
 */
#include <string.h>

#include "base/strbuf.h"
#include "played.h"
#include "study/outcome_wire.h"
#include "study/sweep_plan.h"
#include "study_tests.h"

enum { OVERRIDES_MAX = 8 };

struct case_sweep {
    const char *config;
    const char *overrides[OVERRIDES_MAX]; /* of -s */
};

static const struct case_sweep cases[] = {
    {"llama3-8b_dgx-h100",
     {"model=llama-3.2-1b,gpt2", "cluster=dgx-h100,dgx-a100,a10-pcie", "nodes=1,3",
      "fsdp.api=fsdp2,ddp"}},
    {"llama3-8b_dgx-h100",
     {"model=llama-3.2-1b", "train.precision.reduce_dtype=fp32,bf16",
      "train.activation_checkpointing=none,full", "cluster.host.nics.bandwidth=25Gbps,400Gbps",
      "fsdp.reshard_after_forward=true,false"}},
    {"llama3-8b_dgx-h100",
     {"model=llama-3.2-1b", "nodes=2", "cluster.gpu.memory=80GiB,16GiB,9GiB",
      "train.allocator.expandable_segments=false,true", "fsdp.api=fsdp2,fsdp1"}},
    {"llama3-8b_dgx-h100",
     {"model=llama-3.2-1b", "nodes=2,4", "train.grad_accum=1,2",
      "cluster.overrides=[],[{host: 1, gpu: 2, clock_frac: 0.8}],[{host: 0, nic_frac: 0.5}]",
      "simulate.network=flows,messages"}},
    {"llama3-8b_dgx-h100",
     {"model=llama-3.2-1b", "simulate.steps=1,2", "simulate.warmup_steps=0,1,2",
      "simulate.ideal=[],[host],[contention, copies]", "fsdp.api=zero3,fsdp2"}},
    {"llama3-8b_dgx-h100",
     {"model=llama-3.2-1b", "nodes=1,2", "mesh.dp_replicate=1,2,3", "train.seq_len=128,8192",
      "fsdp.wrap=block,torchtitan,nonsense"}},
    {"worked-examples/units-32",
     {"fsdp.reshard_after_forward=true,false", "cluster.host.scale_up.bandwidth=2GB/s,4GB/s",
      "fsdp.separate_reduce_scatter_communicator=true,false"}},
};

/* All that is stored of a run; what was said, where there is none. */
static void answer(struct experiment *experiment, enum status status, struct diag *diag,
                   struct strbuf *bytes)
{
    struct outcome outcome = {0};
    if (status == STATUS_OK)
        status = experiment_build(experiment);
    if (status == STATUS_OK)
        status = experiment_play(experiment, &outcome);
    if (status == STATUS_OK)
        outcome_pack(&outcome, true, bytes);
    for (int32_t i = 0; i < diag->count; i++)
        strbuf_printf(bytes, "\n%d: %s", (int)diag->items[i].level, diag->items[i].text);
}

static const char *path_of(struct arena *arena, const char *config)
{
    return arena_printf(arena, "%s/configs/%s.yaml", FSDPSIM_SOURCE_DIR, config);
}

static void play_alone(const struct sweep_plan *plan, int64_t position, struct strbuf *bytes)
{
    struct arena arena = {0};
    struct diag diag;
    struct experiment experiment;
    const char *overrides[OVERRIDES_MAX];
    diag_init(&diag, &arena);
    for (int32_t i = 0; i < plan->settings.count; i++) {
        const struct sweep_setting *setting = &plan->settings.items[i];
        overrides[i] = setting->fixed != NULL
                           ? setting->fixed
                           : ARENA_JOIN(&arena, plan->axes.items[setting->axis].key, "=",
                                        sweep_plan_value(plan, position, setting->axis));
    }
    const enum status status =
        experiment_load(&experiment, plan->path, overrides, plan->settings.count, &diag);
    answer(&experiment, status, &diag, bytes);
    experiment_release(&experiment);
    arena_release(&arena);
}

static void play_shared(const struct sweep_plan *plan, int64_t position, struct strbuf *bytes)
{
    struct arena scratch = {.pool = &plan->cache->pool};
    struct diag diag;
    struct experiment experiment;
    diag_init(&diag, &scratch);
    const enum status status = sweep_plan_load(plan, position, &scratch, &experiment, &diag);
    answer(&experiment, status, &diag, bytes);
    experiment_release(&experiment);
    arena_release(&scratch);
}

static bool is_same(const struct strbuf *a, const struct strbuf *b)
{
    return a->length > 0 && a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static void check_point(const struct sweep_plan *plan, int64_t position, const struct strbuf *alone)
{
    struct strbuf shared = {0};
    struct arena arena = {0};
    play_shared(plan, position, &shared);
    /* Named, so that a failure says which. */
    CHECK_TEXT(is_same(alone, &shared) ? "" : sweep_plan_settings(plan, position, &arena), "");
    strbuf_release(&shared);
    arena_release(&arena);
}

static void check_sweep(const struct case_sweep *from)
{
    struct arena arena = {0};
    struct diag diag;
    struct config_cache cache = {0};
    struct sweep_plan plan = {0};
    int32_t count = 0;
    while (count < OVERRIDES_MAX && from->overrides[count] != NULL)
        count++;
    const struct sweep_request request = {.path = path_of(&arena, from->config),
                                          .overrides = from->overrides,
                                          .override_count = count};
    diag_init(&diag, &arena);
    CHECK_INT(sweep_plan_make(&plan, &arena, &request, &cache, &diag), STATUS_OK);
    struct strbuf *alone = ARENA_ARRAY(&arena, struct strbuf, plan.point_count);
    for (int64_t i = 0; i < plan.point_count; i++)
        play_alone(&plan, i, &alone[i]);
    /* 7 divides none of the counts above: every point once, neighbours far apart. */
    CHECK_TRUE(plan.point_count % 7 != 0);
    for (int64_t i = 0; i < plan.point_count; i++) {
        const int64_t position = 7 * i % plan.point_count;
        check_point(&plan, position, &alone[position]);
    }
    for (int64_t i = 0; i < plan.point_count; i++) {
        check_point(&plan, i, &alone[i]);
        strbuf_release(&alone[i]);
    }
    config_cache_release(&cache);
    arena_release(&arena);
}

static void test_equal(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_sweep(&cases[i]);
}

const struct check_case sweep_equal_cases[] = {{"points are runs", test_equal}, {0}};
