/*
 * tests/property/run/test_fold.c: ranks played once for all that are alike, against every rank on
 * its own, on 64 ranks: the same answer.
 */
#include "base/philox.h"
#include "property_tests.h"

enum { SEED = 4711, SEEDS = 20, HOSTS = 8, GPUS = 8 };

#define REAL_CLUSTER "cluster=dgx-h100; nodes=8; model.num_hidden_layers=3; "
#define SMALL_LLAMA                                                                                \
    "model.hidden_size=1024; model.intermediate_size=2816; model.num_attention_heads=16; "         \
    "model.num_key_value_heads=4; model.vocab_size=32000; train.seq_len=1024; "

static void check_fold(const char *config, const char *overrides, bool is_split)
{
    struct played folded, unfolded;
    char text[1024];
    snprintf(text, sizeof(text), "simulate.fold=off; %s", overrides);
    if (played_play(&folded, config, overrides)) {
        if (played_play(&unfolded, config, text)) {
            check_context("%s %s", config, overrides);
            CHECK_INT(folded.experiment.layout.ranks, HOSTS * GPUS);
            CHECK_INT(unfolded.experiment.layout.class_count, HOSTS * GPUS);
            CHECK_TRUE(folded.experiment.layout.class_count < HOSTS * GPUS);
            CHECK_INT(folded.experiment.layout.class_count > 1, is_split);
            check_same_metrics(&unfolded.outcome, &folded.outcome);
            check_identities(&folded);
            check_identities(&unfolded);
            check_context(NULL);
        }
        played_release(&unfolded);
    }
    played_release(&folded);
}

static void test_symmetric(void)
{
    check_fold("worked-examples/crosscheck-64", "", false);
    check_fold(TWO_BLOCKS, REAL_CLUSTER SMALL_LLAMA, false);
    check_fold(TWO_BLOCKS, REAL_CLUSTER SMALL_LLAMA "simulate.network=messages", false);
    check_fold(TWO_BLOCKS, REAL_CLUSTER SMALL_LLAMA "fsdp={api: ddp}", false);
    check_fold(TWO_BLOCKS, REAL_CLUSTER SMALL_LLAMA "fsdp={api: zero3}", false);
    check_fold(TWO_BLOCKS,
               REAL_CLUSTER SMALL_LLAMA "fsdp={api: zero1}; mesh.dp_replicate=8; mesh.dp_shard=8",
               false);
}

static void test_slow_gpu(void)
{
    static const char slow[] = "cluster.overrides=[{host: 3, gpu: 2, clock_frac: 0.8}]";
    char overrides[512];
    check_fold("worked-examples/crosscheck-64", slow, true);
    snprintf(overrides, sizeof(overrides), "%s%s", REAL_CLUSTER SMALL_LLAMA, slow);
    check_fold(TWO_BLOCKS, overrides, true);
}

static void test_slow_nic(void)
{
    static const char slow[] = "cluster.overrides=[{host: 5, nic_frac: 0.37}]";
    char overrides[512];
    check_fold("worked-examples/crosscheck-64", slow, true);
    snprintf(overrides, sizeof(overrides), "%s%s", REAL_CLUSTER SMALL_LLAMA, slow);
    check_fold(TWO_BLOCKS, overrides, true);
}

/* States shared in groups of 16 GPUs, gradients all-reduced over all: two unlike sets of groups. */
static void test_groups(void)
{
    static const char mesh[] =
        "cluster=dgx-h100; nodes=8; fsdp.api=zero1; mesh.dp_replicate=4; mesh.dp_shard=16";
    char overrides[512];
    check_fold("worked-examples/7b-ddp", mesh, false);
    snprintf(overrides, sizeof(overrides),
             "%s; cluster.overrides=[{host: 3, gpu: 2, clock_frac: 0.8}, {host: 5, nic_frac: 0.5}]",
             mesh);
    check_fold("worked-examples/7b-ddp", overrides, true);
}

/* HSDP: shards inside hosts, or over two of them; a slow GPU, slow NICs, the same answer. */
static void test_hybrid(void)
{
    static const char slow[] =
        "cluster.overrides=[{host: 3, gpu: 2, clock_frac: 0.8}, {host: 5, nic_frac: 0.5}]";
    static const char *const meshes[] = {
        "mesh.dp_replicate=8; mesh.dp_shard=8",
        "mesh.dp_replicate=4; mesh.dp_shard=16; train.grad_accum=2; fsdp.defer_all_reduce=true",
        ("mesh.dp_replicate=16; mesh.dp_shard=4; train.precision.storage_dtype=bf16; "
         "fsdp.all_reduce_buffers=1"),
    };
    char overrides[768];
    for (size_t i = 0; i < sizeof(meshes) / sizeof(meshes[0]); i++) {
        snprintf(overrides, sizeof(overrides), "%s%s", REAL_CLUSTER SMALL_LLAMA, meshes[i]);
        check_fold(TWO_BLOCKS, overrides, false);
        snprintf(overrides, sizeof(overrides), "%s%s; %s", REAL_CLUSTER SMALL_LLAMA, meshes[i],
                 slow);
        check_fold(TWO_BLOCKS, overrides, true);
    }
    snprintf(overrides, sizeof(overrides),
             "%sfsdp={api: fsdp1, sharding_strategy: hybrid_shard, wrap: block}; %s",
             REAL_CLUSTER SMALL_LLAMA, slow);
    check_fold(TWO_BLOCKS, overrides, true);
}

/* Tensor parallelism inside shards and replicas, each exchange on both kinds of streams. */
static void test_tensor(void)
{
    static const char slow[] =
        "cluster.overrides=[{host: 3, gpu: 2, clock_frac: 0.8}, {host: 5, nic_frac: 0.5}]";
    static const char *const meshes[] = {
        "mesh.tp=2",
        "mesh.tp=4; mesh.dp_replicate=4; train.tensor_parallel.async=true",
        "mesh.tp=4; train.tensor_parallel={style: megatron, sequence_parallel: false}",
        "mesh.tp=4; fsdp={api: zero1}; mesh.dp_replicate=8; mesh.dp_shard=2",
    };
    char overrides[768];
    for (size_t i = 0; i < sizeof(meshes) / sizeof(meshes[0]); i++) {
        snprintf(overrides, sizeof(overrides), "%s%s", REAL_CLUSTER SMALL_LLAMA, meshes[i]);
        check_fold(TWO_BLOCKS, overrides, false);
        snprintf(overrides, sizeof(overrides), "%s%s; %s", REAL_CLUSTER SMALL_LLAMA, meshes[i],
                 slow);
        check_fold(TWO_BLOCKS, overrides, true);
    }
}

/* What one override says beside its host: of all that can differ. */
static const char *write_difference(struct philox *random, char *text, size_t size)
{
    const double frac = 0.3 + 0.7 * philox_unit(random);
    const int gpu = (int)philox_below(random, GPUS);
    switch (philox_below(random, 9)) {
    case 0:
        snprintf(text, size, "nic_frac: %.3f", frac);
        break;
    case 1:
        snprintf(text, size, "nic: %d, nic_frac: %.3f", gpu, frac);
        break;
    case 2:
        snprintf(text, size, "nics: %d", 1 + gpu);
        break;
    case 3:
        snprintf(text, size, "step_latency: %d us", 1 + gpu);
        break;
    case 4:
        snprintf(text, size, "gpu: %d, hbm_frac: %.3f", gpu, frac);
        break;
    case 5:
        snprintf(text, size, "gpu: %d, scale_up_frac: %.3f", gpu, frac);
        break;
    case 6:
        snprintf(text, size, "gpu: %d, pcie_frac: %.3f", gpu, 0.3 * frac);
        break;
    case 7:
        snprintf(text, size, "clock_frac: %.3f", frac);
        break;
    default:
        snprintf(text, size, "gpu: %d, clock_frac: %.3f", gpu, frac);
        break;
    }
    return text;
}

/* "cluster.overrides=[…]": one to four GPUs, NICs or hosts that differ, one at least. */
static void write_overrides(struct philox *random, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "cluster.overrides=[");
    const uint32_t count = 1 + philox_below(random, 4);
    char difference[64];
    for (uint32_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, size - length, "{host: %d, %s}, ",
                                   (int)philox_below(random, HOSTS),
                                   write_difference(random, difference, sizeof(difference)));
    snprintf(text + length, size - length, "{host: %d, gpu: 1, clock_frac: 0.9}]",
             (int)philox_below(random, HOSTS));
}

/* Another kind of GPU on one host, and one of it elsewhere. */
static void test_other_gpus(void)
{
    check_fold(TWO_BLOCKS,
               REAL_CLUSTER SMALL_LLAMA "cluster.overrides=[{host: 2, gpu_type: a100-sxm4-80gb}, "
                                        "{host: 5, gpu: 3, gpu_type: a100-sxm4-80gb}]",
               true);
}

static void test_random(void)
{
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        struct philox random;
        philox_init(&random, SEED, seed, 0, 0);
        char slow[448], overrides[960];
        write_overrides(&random, slow, sizeof(slow));
        snprintf(overrides, sizeof(overrides), "%s%s; train.grad_accum=%d",
                 seed % 2 == 0 ? "" : REAL_CLUSTER SMALL_LLAMA, slow,
                 1 + (int)philox_below(&random, 2));
        check_fold(seed % 2 == 0 ? "worked-examples/crosscheck-64" : TWO_BLOCKS, overrides, true);
    }
}

/* Kernels and collectives that a fast host keeps busy. */
#define BUSY_LLAMA SMALL_LLAMA "train.micro_batch=4; simulate.ideal=[host]"

/* Median and 95 % of the step over the same samples. Members of a folded class draw what ranks of
   their own do; what is left is contention, which a class has in common: at most 1 % of the step.
 */
static void check_samples(const char *overrides, const char *jitter)
{
    struct played folded, unfolded;
    char text[1024];
    check_context("%s %s", overrides, jitter);
    snprintf(text, sizeof(text), "%s; simulate.samples=30; simulate.jitter=%s", overrides, jitter);
    if (played_play(&folded, TWO_BLOCKS, text)) {
        snprintf(text, sizeof(text),
                 "%s; simulate.samples=30; simulate.jitter=%s; simulate.fold=off", overrides,
                 jitter);
        if (played_play(&unfolded, TWO_BLOCKS, text)) {
            static const char *const metrics[] = {"step_time_s", "tokens_per_s"};
            for (int i = 0; i < 2; i++) {
                const struct outcome_interval *a = outcome_interval(&folded.outcome, metrics[i]);
                const struct outcome_interval *b = outcome_interval(&unfolded.outcome, metrics[i]);
                CHECK_NEAR(a->p50, b->p50, 0.01);
                CHECK_NEAR(a->p95, b->p95, 0.01);
                CHECK_TRUE(b->p95 > b->p05);
            }
            CHECK_TRUE(unfolded.experiment.layout.class_count >
                       folded.experiment.layout.class_count);
        }
        played_release(&unfolded);
    }
    played_release(&folded);
    check_context(NULL);
}

static void test_jitter(void)
{
    static const char *const sizes[] = {
        "cluster=dgx-h100; nodes=1; model.num_hidden_layers=3; " BUSY_LLAMA,
        REAL_CLUSTER BUSY_LLAMA, REAL_CLUSTER BUSY_LLAMA "; mesh.dp_replicate=8; mesh.dp_shard=8"};
    for (int i = 0; i < 3; i++) {
        check_samples(sizes[i], "{kernels: 0.1}");
        check_samples(sizes[i], "{gpus: 0.05}");
        check_samples(sizes[i], "{network: 0.2}");
        check_samples(sizes[i], "{stragglers: {probability: 0.02, slowdown: 1.5}}");
        check_samples(sizes[i], "{kernels: 0.05, gpus: 0.03, network: 0.1}");
    }
}

const struct check_case fold_cases[] = {{"all alike", test_symmetric},
                                        {"one slow GPU", test_slow_gpu},
                                        {"slow NICs of one host", test_slow_nic},
                                        {"groups of a mesh", test_groups},
                                        {"other GPUs", test_other_gpus},
                                        {"replicas of shards", test_hybrid},
                                        {"tensor parallelism", test_tensor},
                                        {"random overrides", test_random},
                                        {"drawn times", test_jitter},
                                        {0}};
