/* tests/unit/run/test_experiment.c: mistakes that only the whole configuration can see. */
#include "run_tests.h"

static void test_sizes(void)
{
    static const struct mistake rows[] = {
        {"worked-examples/units-3",
         "nodes=2",
         {"'nodes: 2' is more than cluster 'ideal-2x1gbs' has", "accepted: 1 to 1"}},
        {"worked-examples/units-3",
         "gpus_per_node=3",
         {"'gpus_per_node: 3' is more than a host of cluster 'ideal-2x1gbs' has", "1 to 2"}},
        {"llama3-8b_dgx-h100", "nodes=5000", {"'nodes: 5000'", "1 to 4096"}},
        {"llama3-8b_dgx-h100", "nodes=0", {"'nodes'"}},
        {"llama3-8b_dgx-h100", "gpus_per_node=9", {"'gpus_per_node: 9'", "1 to 8"}},
    };
    check_mistakes(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_batches(void)
{
    static const struct mistake rows[] = {
        {"worked-examples/units-3",
         "train.global_batch=7",
         {"'global_batch: 7' cannot be split evenly", "= 2"}},
        {"worked-examples/units-3", "train.global_batch=1", {"cannot be split evenly"}},
        {"worked-examples/units-3",
         "train.micro_batch=3; train.global_batch=30; train.grad_accum=4",
         {"'grad_accum: 4' contradicts 'global_batch: 30'", "asks for 5"}},
        {"worked-examples/units-3",
         "train.global_batch=8194",
         {"needs 4097 microbatches", "at most 4096"}},
        {"llama3-8b_dgx-h100", "train.seq_len=", {"missing key 'seq_len' in 'train'"}},
    };
    check_mistakes(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_unbuilt(void)
{
    static const struct mistake rows[] = {
        {TWO_BLOCKS, "train.decoder_seq_len=16", {"'decoder_seq_len' means nothing", "T5"}},
        {TWO_BLOCKS,
         "cluster=dgx-h100; nodes=2; cluster.overrides=[{host: 5, clock_frac: 0.5}]",
         {"override of host 5, which this run does not have", "from 0 to 1"}},
        {TWO_BLOCKS,
         "cluster=dgx-h100; gpus_per_node=4; cluster.overrides=[{host: 0, gpu: 6, clock_frac: "
         "0.5}]",
         {"override of GPU 6, which this run does not use", "from 0 to 3"}},
        {TWO_BLOCKS,
         "cluster.overrides=[{host: 0, gpu: 1, clock_frac: 0.5}, {host: 0, gpu: 1, clock_frac: "
         "0.8}]",
         {"a second override of the same GPU"}},
        {TWO_BLOCKS, "fsdp.reshard_after_forward=1", {"from 2 to", "'true', 'false'"}},
        {TWO_BLOCKS, "fsdp.reshard_after_forward=0", {"from 2 to", "'true', 'false'"}},
        {TWO_BLOCKS,
         "cluster=dgx-a100; train.float8=tensorwise",
         {"has no peak for 'fp8'", "float8: none"}},
        {TWO_BLOCKS,
         "cluster=dgx-1-v100; train.compile=false",
         {"has no peak for 'bf16'", "on this GPU: fp32"}},
        {TWO_BLOCKS,
         "train.activation_checkpointing={policy: selective, every: 2}",
         {"'every' means nothing", "policy: full"}},
        {TWO_BLOCKS,
         "train.activation_checkpointing={policy: full, save_attention: false}",
         {"keeps single operations", "policy: selective"}},
        {TWO_BLOCKS,
         "cluster=dgx-h100; train.float8=rowwise; fsdp.float8_all_gather=true",
         {"one scale a tensor", "float8: tensorwise"}},
        {"worked-examples/units-3", "fsdp.float8_all_gather=true", {"float8"}},
        {TWO_BLOCKS,
         "mesh.tp=2; train.tensor_parallel={style: megatron, gather_heads: true}",
         {"only DTensor gathers", "style: dtensor"}},
        {TWO_BLOCKS, "mesh.tp=2; train.tensor_parallel.gather_heads=true", {"this model lacks"}},
        {TWO_BLOCKS, "mesh.pp=2", {"'pp: 2' cannot be simulated yet"}},
        {TWO_BLOCKS, "simulate.ideal=[host, lag]", {"'lag'", "latency"}},
    };
    check_mistakes(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Nothing takes time: there is no step to report. */
static void test_zero_work(void)
{
    static const struct mistake rows[] = {
        {"worked-examples/units-3",
         "gpus_per_node=1; model.units=[{parameters: 1000, forward: 0 s, backward: 0 s}]",
         {"the step does no work"}},
    };
    check_mistakes(rows, sizeof(rows) / sizeof(rows[0]));
}

/* An estimate needs no simulation, so nothing is refused that only cannot be played. */
static void test_estimate_of_unbuilt(void)
{
    static const char *const rows[] = {"fsdp.api=ddp", "fsdp.api=zero3",
                                       "train.precision.param_dtype=fp16",
                                       "train.activation_checkpointing=selective"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct estimate estimate;
        check_context("%s", rows[i]);
        if (CHECK_INT(played_load(&played, TWO_BLOCKS, rows[i]), STATUS_OK))
            CHECK_INT(estimate_memory(&played.experiment, 0, false, &estimate), STATUS_OK);
        played_release(&played);
    }
    check_context(NULL);
}

static void test_stage_names(void)
{
    CHECK_TEXT(estimate_stage_name(STAGE_DDP), "ddp");
    CHECK_TEXT(estimate_stage_name(STAGE_ZERO1), "zero1");
    CHECK_TEXT(estimate_stage_name(STAGE_ZERO2), "zero2");
    CHECK_CONTAINS(estimate_stage_name(STAGE_ZERO3), "zero3");
}

/* A missing file is the world's failure, a wrong name inside a file the user's. */
static void test_files(void)
{
    struct played played;
    CHECK_INT(played_load(&played, "tests/golden/no-such-file.yaml", NULL), STATUS_WORLD);
    CHECK_CONTAINS(played_messages(&played), "no-such-file.yaml");
    played_release(&played);
    CHECK_INT(played_load(&played, TWO_BLOCKS, "cluster=ideal-2x1gb"), STATUS_INPUT);
    CHECK_CONTAINS(played_messages(&played), "ideal-2x1gbs");
    played_release(&played);
}

/* Resharding to a group as large as the whole is plain resharding. */
static void test_reshard_to_all(void)
{
    struct played all, plain;
    const bool has_all = played_play(&all, TWO_BLOCKS, "fsdp.reshard_after_forward=2");
    const bool has_plain = played_play(&plain, TWO_BLOCKS, "fsdp.reshard_after_forward=true");
    if (has_all && has_plain) {
        CHECK_NEAR(all.outcome.step_time_s, plain.outcome.step_time_s, 0);
        CHECK_U64(all.outcome.fingerprint, plain.outcome.fingerprint);
    }
    played_release(&all);
    played_release(&plain);
}

const struct check_case experiment_cases[] = {
    {"nodes and GPUs a node", test_sizes},
    {"batches that do not fit together", test_batches},
    {"what is not built yet", test_unbuilt},
    {"no work", test_zero_work},
    {"estimates of what cannot be played", test_estimate_of_unbuilt},
    {"names of stages", test_stage_names},
    {"files", test_files},
    {"reshard to all", test_reshard_to_all},
    {0}};
