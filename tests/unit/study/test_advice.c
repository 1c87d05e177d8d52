/*
 * tests/unit/study/test_advice.c: settings that are tried, on steps that hand arithmetic knows.
 *
 * units-32 (forward 10 ms, gather 15, backward 20, scatter 15; 1450 ms a step):
 *   kept gathered          forward 32 · 15 + 10, backward 32 · 20 + 15          1145 ms
 *   own communicator       forward 490, backward 5 + 32 · 20 + 15               1150 ms
 *   links twice as fast    7.5 + 32 · 10 + 32 · 20 + 7.5                         975 ms
 * reduce-buffers (804 ms): with two buffers 482 − 354 ms less, 676 ms.
 */
#include <math.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "observe/critical_path.h"
#include "played.h"
#include "study/advice.h"
#include "study_tests.h"

static const struct advice *advise(struct played *played, const char *config,
                                   const char *const *overrides, int32_t count)
{
    const char *path =
        arena_printf(&played->arena, "%s/configs/%s.yaml", FSDPSIM_SOURCE_DIR, config);
    return advice_find(&played->arena, &played->experiment, &played->outcome, path, overrides,
                       count);
}

static const struct advice_item *find(const struct advice_list *list, const char *settings)
{
    static const struct advice_item none = {.step_time_s = (double)NAN};
    for (int32_t i = 0; i < list->count; i++) {
        if (text_equal(list->items[i].texts[0], settings))
            return &list->items[i];
    }
    return &none;
}

static void test_units_32(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-32", NULL)) {
        const struct advice *advice = advise(&played, "worked-examples/units-32", NULL, 0);
        CHECK_TRUE(advice->did_fit);
        CHECK_TEXT(advice->settings.items[0].texts[0], "fsdp.reshard_after_forward=false");
        CHECK_NEAR(advice->settings.items[0].step_time_s, 1.145, 1e-9);
        CHECK_NEAR(advice->settings.items[0].gain, 1 - 1.145 / 1.450, 1e-9);
        CHECK_TEXT(advice->settings.items[1].texts[0],
                   "fsdp.separate_reduce_scatter_communicator=true");
        CHECK_NEAR(advice->settings.items[1].step_time_s, 1.150, 1e-9);
        CHECK_INT(advice->hardware.count, 1);
        CHECK_TEXT(advice->hardware.items[0].texts[0], "cluster.host.scale_up.bandwidth=4 GB/s");
        CHECK_NEAR(advice->hardware.items[0].step_time_s, 0.975, 1e-9);
        /* One unit's parameters are gathered at a time, or all 32: 30 MB each, in 2 parts. */
        CHECK_TRUE(advice->settings.items[0].peak_device_bytes >
                   played.outcome.peak_device_bytes + 28 * INT64_C(30000000));
    }
    played_release(&played);
}

static void test_reduce_buffers(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/reduce-buffers", NULL)) {
        const struct advice *advice = advise(&played, "worked-examples/reduce-buffers", NULL, 0);
        CHECK_NEAR(find(&advice->settings, "fsdp.reduce_scatter_buffers=2")->step_time_s,
                   0.804 - (0.482 - 0.354), 1e-9);
    }
    played_release(&played);
}

/* The best value of a key alone; every one as it plays when it is loaded by itself. */
static void test_played_alone(void)
{
    static const char *const own[] = {"nodes=2", "train.seq_len=4096"};
    struct played played;
    struct played again;
    if (played_play(&played, "llama3-8b_dgx-h100", "nodes=2; train.seq_len=4096")) {
        const struct advice *advice = advise(&played, "llama3-8b_dgx-h100", own, 2);
        CHECK_TRUE(advice->settings.count > 3 && advice->refused > 0);
        for (int32_t i = 0; i < 3 && i < advice->settings.count; i++) {
            const struct advice_item *item = &advice->settings.items[i];
            CHECK_TRUE(i == 0 || item->gain <= advice->settings.items[i - 1].gain);
            CHECK_TRUE(item->gain >= advice_least_gain);
            const char *overrides =
                arena_printf(&played.arena, "nodes=2; train.seq_len=4096; %s", item->texts[0]);
            if (played_play(&again, "llama3-8b_dgx-h100", overrides)) {
                CHECK_NEAR(item->step_time_s, again.outcome.step_time_s, 1e-12);
                CHECK_INT(item->peak_device_bytes, again.outcome.peak_device_bytes);
                CHECK_TRUE(again.outcome.fits);
            }
            played_release(&again);
        }
    }
    played_release(&played);
}

/* One GPU alone, of which all that can be ideal is. */
static void test_none_helps(void)
{
    struct played played;
    const char *overrides = "gpus_per_node=1";
    if (played_play(&played, "worked-examples/units-3", overrides)) {
        const struct advice *advice = advise(&played, "worked-examples/units-3", &overrides, 1);
        CHECK_INT(advice->settings.count, 0);
        CHECK_INT(advice->hardware.count, 0);
        CHECK_TRUE(advice->tried > 0);
    }
    played_release(&played);
}

static void test_does_not_fit(void)
{
    static const char *const own[] = {"train.micro_batch=2", "train.activation_checkpointing=none"};
    struct played played;
    if (played_play(&played, "llama3-8b_dgx-h100",
                    "train.micro_batch=2; train.activation_checkpointing=none")) {
        CHECK_TRUE(!played.outcome.fits);
        const struct advice *advice = advise(&played, "llama3-8b_dgx-h100", own, 2);
        CHECK_TRUE(!advice->did_fit);
        CHECK_TRUE(advice->unfit > 0);
        CHECK_TRUE(advice->settings.count > 0);
        for (int32_t i = 0; i < advice->settings.count; i++)
            CHECK_TRUE(advice->settings.items[i].peak_device_bytes <=
                       played.outcome.memory_capacity_bytes);
        CHECK_TRUE(find(&advice->settings, "train.micro_batch=1")->gain < 0.05);
    }
    played_release(&played);
}

/* The parts of the path add up to the step, whatever is played. */
static void test_path_of_runs(void)
{
    static const struct {
        const char *config, *overrides;
    } rows[] = {
        {"llama3-8b_dgx-h100", "simulate.steps=3"},
        {"llama3-8b_dgx-h100", "train.compile=false; train.grad_accum=2"},
        {"llama3-8b_dgx-h100", "nodes=4; mesh.dp_replicate=4"},
        {"llama3-8b_dgx-h100", "nodes=2; cluster.overrides=[{host: 1, gpu: 3, clock_frac: 0.8}]"},
        {"llama3-8b_dgx-h100", "fsdp.api=fsdp1; fsdp.reshard_after_forward=; fsdp.wrap=block"},
        {"llama3-8b_dgx-h100-25gbe", "nodes=4; simulate.network=messages"},
        {"llama3-8b_dgx-h100", "fsdp.cpu_offload=true"},
        {"llama3-8b_dgx-h100", "simulate.warmup_steps=0; simulate.fold=off"},
        {"cases/gathers-run-ahead", "cluster.host.gpu.memory.total=26GiB"},
        {"cases/ddp-bucket-copies", NULL},
        {"cases/deepspeed-hooks", NULL},
        {"cases/lora-mixed-units", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_build(&played, rows[i].config, rows[i].overrides)) {
            played.experiment.keeps_journal = true;
            CHECK_INT(experiment_play(&played.experiment, &played.outcome), STATUS_OK);
            const struct critical_path *path = critical_path_find(
                &played.arena, played.experiment.journal, played.experiment.headline_class);
            int64_t sum_ps = 0;
            for (int32_t k = 0; k < path->shares.count; k++)
                sum_ps += path->shares.items[k].ps;
            check_context("%s %s", rows[i].config, rows[i].overrides);
            CHECK_INT(sum_ps, path->length_ps);
            CHECK_NEAR(s_from_ps(path->length_ps),
                       played.outcome.step_time_s * (double)played.experiment.reported_steps,
                       1e-12);
            CHECK_TRUE(path->held_ps <= path->length_ps);
            CHECK_TRUE((path->by_cause_ps[PATH_RETRY] > 0) == (played.outcome.alloc_retries > 0));
            check_context(NULL);
        }
        played_release(&played);
    }
}

const struct check_case advice_cases[] = {
    {"units-32", test_units_32},
    {"reduce buffers", test_reduce_buffers},
    {"played alone", test_played_alone},
    {"none helps", test_none_helps},
    {"does not fit", test_does_not_fit},
    {"path of runs", test_path_of_runs},
    {0},
};
