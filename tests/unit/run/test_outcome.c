/* tests/unit/run/test_outcome.c: what an outcome says of a played run. */
#include <math.h>
#include <string.h>

#include "run_tests.h"

static void test_identities(void)
{
    static const char *const rows[][2] = {
        {"llama3-8b_dgx-h100", NULL},
        {"llama3-8b_dgx-h100", "nodes=4; fsdp.reshard_after_forward=false"},
        {"llama3-8b_dgx-h100", "train.grad_accum=3; fsdp.wrap=block; simulate.steps=3"},
        {"llama3-8b_dgx-h100", "cluster.overrides=[{host: 0, gpu: 5, clock_frac: 0.71}]"},
        {"llama3-8b_dgx-h100", "nodes=1; gpus_per_node=1; train.micro_batch=2"},
        {"llama3-8b_dgx-h100-25gbe", NULL},
        {"worked-examples/f", NULL},
        {"worked-examples/crosscheck-64", NULL},
        {TWO_BLOCKS, "simulate.warmup_steps=0"},
        {TWO_BLOCKS, "simulate.network=messages; simulate.warmup_steps=4"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_play(&played, rows[i][0], rows[i][1])) {
            check_context("%s %s", rows[i][0], rows[i][1] != NULL ? rows[i][1] : "");
            check_identities(&played);
            check_context(NULL);
        }
        played_release(&played);
    }
}

static void test_names(void)
{
    static const struct {
        const char *a, *b;
        bool is_alike, is_next;
    } rows[] = {
        {"layers.2", "layers.3", true, true},
        {"layers.9", "layers.10", true, true},
        {"layers.2", "layers.29", true, false},
        {"layers.3", "layers.2", true, false},
        {"layers.19.self_attn.q_proj.lora_A", "layers.20.self_attn.q_proj.lora_A", true, true},
        {"layers.1.lora_A", "layers.12.lora_A", true, false},
        {"layers.1.q_proj.lora_A", "layers.1.q_proj.lora_B", false, false},
        {"layers.1.q_proj.lora_A", "layers.2.v_proj.lora_A", false, false},
        {"layers.1.experts.2", "layers.2.experts.1", false, false},
        {"layers.1", "layers.1.norm", false, false},
        {"layers.", "layers.1", false, false},
        {"embed", "head", false, false},
        {"", "1", false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s %s", rows[i].a, rows[i].b);
        CHECK_INT(outcome_names_are_alike(rows[i].a, rows[i].b), rows[i].is_alike);
        CHECK_INT(outcome_names_are_alike(rows[i].b, rows[i].a), rows[i].is_alike);
        CHECK_INT(outcome_name_is_next(rows[i].a, rows[i].b), rows[i].is_next);
        check_context(NULL);
    }
}

/* Without losses a step is the same whichever is reported, and so is their mean. */
static void test_steps(void)
{
    static const char *const rows[] = {
        "simulate.warmup_steps=0; simulate.steps=1", "simulate.warmup_steps=0; simulate.steps=3",
        "simulate.warmup_steps=2; simulate.steps=1", "simulate.warmup_steps=1; simulate.steps=7"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_play(&played, "worked-examples/units-3", rows[i])) {
            check_context("%s", rows[i]);
            CHECK_NEAR(played.outcome.step_time_s, 0.245, 1e-12);
            CHECK_NEAR(played.outcome.compute_s, 0.225, 1e-12);
            CHECK_NEAR(played.outcome.comm_bytes_per_gpu, 90e6, 1e-12);
            CHECK_NEAR(played.outcome.links[0].bytes, 90e6, 1e-12);
            CHECK_NEAR(played.outcome.units[0].forward_s, 0.025, 1e-12);
            CHECK_NEAR(played.outcome.units[2].backward_s, 0.050, 1e-12);
            CHECK_NEAR(played.outcome.units[1].all_gather_s, 0.020, 1e-12);
            CHECK_NEAR(played.outcome.units[1].reduce_scatter_s, 0.010, 1e-12);
            check_context(NULL);
        }
        played_release(&played);
    }
}

/* 3 units: first gather (unit 0) and last scatter (unit 0) are exposed, all others hidden. */
static void test_units(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-3", NULL)) {
        const struct outcome *outcome = &played.outcome;
        CHECK_INT(outcome->unit_count, 3);
        CHECK_NEAR(outcome->units[0].exposed_s, 0.020, 1e-12);
        CHECK_NEAR(outcome->units[1].exposed_s + 1, 1, 1e-12);
        CHECK_NEAR(outcome->units[2].exposed_s + 1, 1, 1e-12);
        CHECK_NEAR(outcome->comm_s, 0.090, 1e-12);
        CHECK_NEAR(outcome->overlap_fraction, 1 - 0.020 / 0.090, 1e-12);
        CHECK_INT(outcome->collective_count, 2);
        CHECK_TEXT(outcome->collectives[0].op, "all_gather");
        CHECK_INT(outcome->collectives[0].count, 6);
        CHECK_NEAR(outcome->collectives[0].bytes, 20e6, 1e-12);
        CHECK_NEAR(outcome->collectives[0].alone_s, 0.010, 1e-12);
        CHECK_TEXT(outcome->collectives[1].op, "reduce_scatter");
        CHECK_INT(outcome->collectives[1].count, 3);
        CHECK_INT(outcome->link_count, 2);
        CHECK_INT(outcome->links[0].instances, 2);
        CHECK_NEAR(outcome->links[0].utilisation, 0.090 / 0.245, 1e-12);
        CHECK_NEAR(outcome->links[0].busy_frac, 0.090 / 0.245, 1e-12);
        CHECK_TEXT(outcome->bottleneck, "compute");
    }
    played_release(&played);
}

/* What bounds a step: compute, a link, the host. */
static void test_bottleneck(void)
{
    static const char *const rows[][3] = {
        {"worked-examples/units-3", NULL, "compute"},
        {"worked-examples/units-3", "cluster.host.scale_up.bandwidth=50MB/s", "scale-up"},
        {"worked-examples/units-3", "simulate.ideal=[copies]; cluster.host.cpu.hook.time=300ms",
         "host"},
        {"worked-examples/f", NULL, "NIC"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_play(&played, rows[i][0], rows[i][1]))
            CHECK_CONTAINS(played.outcome.bottleneck, rows[i][2]);
        played_release(&played);
    }
}

/* Too large: simulated all the same, says by how much and what to try. */
static void test_does_not_fit(void)
{
    struct played played;
    if (played_play(&played, "llama3-8b_dgx-h100",
                    "train.micro_batch=16; train.activation_checkpointing=none")) {
        const struct outcome *outcome = &played.outcome;
        CHECK_TRUE(!outcome->fits);
        CHECK_TRUE(outcome->memory_over_bytes > 0);
        CHECK_TRUE(outcome->step_time_s > 0);
        CHECK_TRUE(outcome->warning_count > 0);
        CHECK_CONTAINS(outcome->warnings[0], "does not fit by");
        check_identities(&played);
    }
    played_release(&played);
}

/* Context and communicators lie outside the allocator; the workspace inside. */
static void test_device_memory(void)
{
    static const char *const rows[] = {"fsdp.separate_reduce_scatter_communicator=false",
                                       "fsdp.separate_reduce_scatter_communicator=true",
                                       "nodes=1; gpus_per_node=1"};
    for (int i = 0; i < 3; i++) {
        struct played played;
        if (played_play(&played, "llama3-8b_dgx-h100", rows[i])) {
            const struct gpu *gpu = &played.experiment.cluster.gpu;
            const int64_t communicators = i == 2 ? 0 : i + 1;
            const int64_t *parts = played.outcome.peak_composition;
            check_context("%s", rows[i]);
            CHECK_TRUE(gpu->context_bytes > 0 && gpu->communicator_bytes > 0);
            CHECK_INT(parts[MEMORY_CONTEXT], gpu->context_bytes);
            CHECK_INT(parts[MEMORY_COMMUNICATORS], communicators * gpu->communicator_bytes);
            CHECK_INT(parts[MEMORY_WORKSPACE], rounded_up(gpu->workspace_bytes));
            CHECK_INT(played.outcome.memory_capacity_bytes, gpu->memory_bytes);
            check_context(NULL);
        }
        played_release(&played);
    }
}

/* Moments are not there in the first step until its end. */
static void test_first_step(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/units-32", NULL)) {
        /* 16 B x 480e6 / 2 at the end of the first step against its backward with 12 B less. */
        CHECK_NEAR((double)played.outcome.first_step_peak_active_bytes, 3.84e9, 1e-4);
        CHECK_TRUE(played.outcome.peak_active_bytes > played.outcome.first_step_peak_active_bytes);
    }
    played_release(&played);
    if (played_play(&played, "worked-examples/units-32",
                    "simulate.warmup_steps=0; simulate.steps=1"))
        CHECK_INT(played.outcome.peak_active_bytes, played.outcome.first_step_peak_active_bytes);
    played_release(&played);
}

static void test_metric_table(void)
{
    int32_t count = 0;
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++, count++) {
        check_context("%s", metric->name);
        CHECK_TRUE(outcome_metric(metric->name) == metric);
        CHECK_TRUE(metric->help != NULL && metric->help[0] != '\0');
        CHECK_TRUE(metric->unit != NULL && metric->unit[0] != '\0');
        if (strlen(metric->name) > 2 &&
            strcmp(metric->name + strlen(metric->name) - 2, "_s") == 0 &&
            strncmp(metric->name, "tokens", 6) != 0)
            CHECK_TEXT(metric->unit, "s");
    }
    check_context(NULL);
    CHECK_TRUE(count > 30);
    CHECK_TRUE(outcome_metric("step_time") == NULL);
    CHECK_TRUE(outcome_metric("") == NULL);
}

static void test_numbers(void)
{
    const struct outcome outcome = {.step_time_s = 2.385,
                                    .n_gpus = 7,
                                    .fits = true,
                                    .mfu = (double)NAN,
                                    .bottleneck = "compute"};
    double value = 0;
    CHECK_TRUE(outcome_number(&outcome, outcome_metric("step_time_s"), &value));
    CHECK_NEAR(value, 2.385, 1e-15);
    CHECK_TRUE(outcome_number(&outcome, outcome_metric("n_gpus"), &value));
    CHECK_NEAR(value, 7, 1e-15);
    CHECK_TRUE(outcome_number(&outcome, outcome_metric("fits"), &value));
    CHECK_NEAR(value, 1, 1e-15);
    CHECK_TRUE(!outcome_number(&outcome, outcome_metric("mfu"), &value));
    CHECK_TRUE(!outcome_number(&outcome, outcome_metric("bottleneck"), &value));
}

/* FlashAttention-3 needs Hopper: elsewhere another kernel stands in, and the run says which. */
static void test_attention_stands_in(void)
{
    static const struct {
        const char *cluster, *warning;
    } rows[] = {
        {"dgx-a100", "attention 'fa3' does not run on GPU 'a100-sxm4-80gb': 'fa2' stands in"},
        {"dgx-h100", NULL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[128];
        snprintf(overrides, sizeof(overrides), "cluster=%s; train.attention=fa3", rows[i].cluster);
        check_context("%s", rows[i].cluster);
        if (played_play(&played, "tests/golden/two-blocks.yaml", overrides)) {
            const bool has_warning = played.outcome.warning_count > 0;
            CHECK_INT(has_warning, rows[i].warning != NULL);
            if (has_warning && rows[i].warning != NULL)
                CHECK_TEXT(played.outcome.warnings[0], rows[i].warning);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* A run keeps every setting and where it was said; of a data file's constants it keeps the values,
 * not the texts that say where those were published. */
static void test_settings_kept(void)
{
    struct played played;
    if (played_play(&played, "llama3-8b_dgx-h100", "nodes=2")) {
        bool has_nodes = false, has_memory = false;
        for (int32_t i = 0; i < played.outcome.origin_count; i++) {
            const struct outcome_origin *one = &played.outcome.origins[i];
            CHECK_TRUE(strstr(one->path, ".source") == NULL);
            if (strcmp(one->path, "nodes") == 0) {
                has_nodes = true;
                CHECK_TEXT(one->value, "2");
                CHECK_TEXT(one->origin, "<command line>");
            }
            if (strcmp(one->path, "cluster.host.gpu.memory.total") == 0) {
                has_memory = true;
                CHECK_TEXT(one->value, "81559 MiB");
                CHECK_TRUE(strstr(one->origin, "h100-sxm5-80gb.yaml:") != NULL);
            }
        }
        CHECK_TRUE(has_nodes && has_memory);
    }
    played_release(&played);
}

const struct check_case outcome_cases[] = {{"identities", test_identities},
                                           {"any number of steps", test_steps},
                                           {"units, collectives, links", test_units},
                                           {"bottleneck", test_bottleneck},
                                           {"does not fit", test_does_not_fit},
                                           {"device memory", test_device_memory},
                                           {"first step", test_first_step},
                                           {"table of metrics", test_metric_table},
                                           {"metrics as numbers", test_numbers},
                                           {"attention stands in", test_attention_stands_in},
                                           {"settings kept", test_settings_kept},
                                           {"names of units", test_names},
                                           {0}};
