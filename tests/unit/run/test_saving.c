/* tests/unit/run/test_saving.c: checkpoints and failures, by hand. */
#include <math.h>
#include <string.h>

#include "run_tests.h"

/* units-3: 30e6 parameters in fp32 with two moments: 360 MB from one host, a step of 245 ms. */
static void test_written(void)
{
    static const struct {
        const char *overrides;
        double bytes, write_s, block_s;
    } rows[] = {
        {"train.checkpoint.interval=10; cluster.storage.write=90MB/s", 360e6, 4, 4},
        {"train.checkpoint.interval=10; cluster.storage.shared_write=180MB/s", 360e6, 2, 2},
        {"train.checkpoint.interval=10; cluster.storage.write=90MB/s;"
         "cluster.storage.shared_write=60MB/s",
         360e6, 6, 6},
        {"train.checkpoint.interval=10; cluster.storage.write=90MB/s; train.optimizer.name=sgd",
         240e6, 240 / 90.0, 240 / 90.0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, "worked-examples/units-3", rows[i].overrides)) {
            const struct outcome *outcome = &played.outcome;
            CHECK_NEAR(outcome->checkpoint_bytes, rows[i].bytes, 1e-12);
            CHECK_NEAR(outcome->checkpoint_write_s, rows[i].write_s, 1e-12);
            CHECK_NEAR(outcome->checkpoint_block_s, rows[i].block_s, 1e-12);
            CHECK_NEAR(outcome->checkpoint_s, rows[i].block_s / 10, 1e-12);
            CHECK_NEAR(outcome->step_time_s, 0.245 + rows[i].block_s / 10, 1e-12);
            CHECK_NEAR(outcome->compute_s + outcome->exposed_comm_s + outcome->idle_s,
                       outcome->step_time_s, 1e-12);
            CHECK_NEAR(outcome->tokens_per_s, 2 / outcome->step_time_s, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 180 MB a GPU over links of 1 GB/s: 180 ms; all 360 MB are staged on the host. */
static void test_behind(void)
{
    static const char common[] =
        "train.checkpoint={interval: 10, async_mode: async_with_pinned_mem};";
    static const struct {
        const char *write;
        double block_s;
    } rows[] = {
        {"cluster.storage.write=1GB/s", 0},    /* copied beside 245 ms of forward and backward */
        {"cluster.storage.write=90MB/s", 1.73} /* 0.18 + 4 s, and the next save after 2.45 s */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), "%s%s", common, rows[i].write);
        if (played_play(&played, "worked-examples/units-3", overrides)) {
            CHECK_NEAR(played.outcome.checkpoint_block_s + 1, rows[i].block_s + 1, 1e-12);
            CHECK_INT(played.outcome.peak_host_bytes, 360000000);
        }
        played_release(&played);
    }
}

/* Llama-3.1-8B on four DGX H100: 96.4 GB, 24.1 GB a host, 3.01 GB a GPU. */
static void test_hosts(void)
{
    struct played sync, async;
    if (played_play(&sync, "llama3-8b_dgx-h100",
                    "nodes=4; train.checkpoint.interval=500; cluster.storage.write=2GB/s")) {
        CHECK_NEAR(sync.outcome.checkpoint_bytes, 12 * 8030261248.0, 1e-12);
        CHECK_NEAR(sync.outcome.checkpoint_block_s, 12 * 8030261248.0 / 4 / 2e9, 1e-12);
    }
    if (played_play(&async, "llama3-8b_dgx-h100",
                    "nodes=4; train.checkpoint.interval=500; cluster.storage.write=2GB/s;"
                    "train.checkpoint.async_mode=async")) {
        const double shard = 12 * 8030261248.0 / 32;
        /* One core reads and writes it at 22.3 GB/s: 3.011 GB in 0.27 s. */
        CHECK_NEAR(async.outcome.checkpoint_block_s, 2 * shard / 22.3e9, 1e-9);
        CHECK_NEAR((double)async.outcome.peak_host_bytes, 8 * shard, 1e-9);
        CHECK_TRUE(async.outcome.checkpoint_s < sync.outcome.checkpoint_s);
    }
    played_release(&sync);
    played_release(&async);
}

/* DeepSpeed's rank 0 writes the whole parameters: of 700e6 on two hosts 1.4 GB, and half of the 8.4
   GB of master and moments; adapters alone are small. */
static void test_what_is_saved(void)
{
    struct played zero, all, adapters;
    const char *save = "train.checkpoint.interval=500; cluster.storage.write=2GB/s; nodes=4;";
    char overrides[512];
    if (played_play(&zero, "worked-examples/f",
                    "nodes=2; train.checkpoint.interval=10; cluster.storage.write=1GB/s;"
                    "cluster.host.copy_link=pcie4;"
                    "fsdp.api=zero1; train.precision={param_dtype: bf16, reduce_dtype: bf16}")) {
        CHECK_NEAR(zero.outcome.checkpoint_bytes, 9.8e9, 1e-12);
        CHECK_NEAR(zero.outcome.checkpoint_write_s, 5.6, 1e-12);
    }
    played_release(&zero);
    snprintf(overrides, sizeof(overrides),
             "%s train.lora={rank: 16, target_modules: [q_proj]}; train.compile=false", save);
    if (played_play(&all, "llama3-8b_dgx-h100", overrides)) {
        snprintf(overrides, sizeof(overrides),
                 "%s train.lora={rank: 16, target_modules: [q_proj]}; train.compile=false;"
                 "train.checkpoint.exclude_frozen_parameters=true",
                 save);
        if (played_play(&adapters, "llama3-8b_dgx-h100", overrides)) {
            /* 32 layers, q_proj 4,096 x 4,096, rank 16: 4,194,304 parameters of 12 B. */
            CHECK_NEAR(adapters.outcome.checkpoint_bytes, 4194304 * 12.0, 1e-12);
            CHECK_NEAR(all.outcome.checkpoint_bytes - adapters.outcome.checkpoint_bytes,
                       8030261248.0 * 2, 1e-9);
        }
        played_release(&adapters);
    }
    played_release(&all);
}

/* M = 2,450 s / 2 GPUs; T = 10 (0.245 + 0.4) s; R = 61.25 s. */
static void test_failures(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-3",
                    "train.checkpoint.interval=10; cluster.storage.write=90MB/s;"
                    "cost.failures={mtbf: 2450 s, restart: 61.25 s}; cost.tokens=1M")) {
        const double mean = 1225, period = 6.45;
        const double goodput = period / (mean * exp(0.05) * (exp(period / mean) - 1));
        CHECK_NEAR(played.outcome.goodput, goodput, 1e-9);
        CHECK_TRUE(goodput > 0.94 && goodput < 0.95);
        CHECK_NEAR(played.outcome.budget_days, 1e6 * 0.3225 / 86400 / goodput, 1e-9);
        CHECK_NEAR(played.outcome.tokens_per_s, 2 / 0.645, 1e-12);
    }
    played_release(&played);
    /* Failures that come faster than checkpoints: no number, no infinity. */
    if (played_play(&played, "worked-examples/units-3",
                    "train.checkpoint.interval=100000; cluster.storage.write=90MB/s;"
                    "cost.failures={mtbf: 60 s, restart: 1 h}; cost.tokens=1M")) {
        CHECK_TRUE(isnan(played.outcome.goodput) && isnan(played.outcome.budget_days));
        CHECK_TRUE(strstr(played_json(&played), "\"goodput\": null") != NULL);
    }
    played_release(&played);
}

static void test_mistakes(void)
{
    static const struct mistake rows[] = {
        {"worked-examples/units-3",
         "train.checkpoint.interval=10",
         {"where checkpoints go, and how fast"}},
        {"worked-examples/units-3",
         "train.checkpoint={async_mode: async}",
         {"'interval' is missing in"}},
        {"worked-examples/units-3",
         "train.checkpoint.interval=0",
         {"'interval' must be an integer"}},
        {"worked-examples/units-3",
         "train.checkpoint.interval=10; cluster.storage.write=2GB",
         {"unit 'GB' does not fit"}},
        {"worked-examples/units-3",
         "train.checkpoint.interval=10; cluster.storage.write=2GB/s;"
         "train.checkpoint.async_mode=asynch",
         {"unknown value 'asynch'"}},
        {"worked-examples/units-3",
         "train.checkpoint={interval: 10, async_mode: async}; cluster.storage.write=2GB/s;"
         "cluster.host.cpu.processor=null",
         {"lacks 'host.cpu.processor'"}},
        {"worked-examples/units-3",
         "train.checkpoint={interval: 10, async_mode: async_with_pinned_mem};"
         "cluster=ideal-2x2gbs-half; cluster.storage.write=2GB/s",
         {"lacks 'host.copy_link'"}},
        {"worked-examples/units-3",
         "train.checkpoint={interval: 10}; cluster=ideal-2x2gbs-half; cluster.storage.write=2GB/s",
         {"lacks 'host.copy_link'"}},
        {"worked-examples/units-3",
         "train.checkpoint={interval: 10, async_mode: async}; cluster.storage.write=2GB/s;"
         "fsdp.api=zero1",
         {"DeepSpeed saves with torch.save"}},
        {"worked-examples/units-3",
         "cost.failures={mtbf: 50000 h, restart: 10 min}",
         {"loses the whole training"}},
        {"worked-examples/units-3", "cost.failures={mtbf: 50000 h}", {"'restart' is missing in"}},
    };
    check_mistakes(rows, sizeof(rows) / sizeof(rows[0]));
}

const struct check_case saving_cases[] = {
    {"written while training stands still", test_written},
    {"written behind the steps", test_behind},
    {"shares of hosts", test_hosts},
    {"what is saved", test_what_is_saved},
    {"failures", test_failures},
    {"mistakes", test_mistakes},
    {0},
};
