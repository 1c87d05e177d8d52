/* tests/unit/worked/test_volumes.c: bytes on the wire and what they cost: D, E, F; the mesh: H. */
#include <string.h>

#include "worked_tests.h"

static void test_d_volumes(void)
{
    static const struct {
        const char *overrides;
        double sent_bytes; /* by each GPU in a step */
        const char *gather;
    } rows[] = {
        {"nodes=1; gpus_per_node=4", 3 * 525e6, "525 MB"},
        {NULL, 2067.1875e6, "689.0625 MB"},
        {"fsdp.reshard_after_forward=false", 1378.125e6, "689.0625 MB"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (played_play(&played, "worked-examples/d", rows[i].overrides)) {
            CHECK_NEAR(played.outcome.comm_bytes_per_gpu, rows[i].sent_bytes, EXACT);
            const char *text = played_explain(&played, -1);
            CHECK_CONTAINS(text, "all-gather receives (N-1)/N S");
            CHECK_CONTAINS(text, rows[i].gather);
            CHECK_CONTAINS(text, "N -> infinity: 700 MB");
        }
        played_release(&played);
    }
}

static void test_d_explained(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/d", NULL)) {
        const char *text = played_explain(&played, -1);
        CHECK_CONTAINS(text, "1378.125 MB");
        CHECK_CONTAINS(text, "2067.1875 MB");
        CHECK_CONTAINS(text, "2 gathers a microbatch");
    }
    played_release(&played);
}

/* Every microbatch gathers and reduces again. */
static void test_d_accumulated(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/d", "train.grad_accum=3"))
        CHECK_NEAR(played.outcome.comm_bytes_per_gpu, 3 * 2067.1875e6, EXACT);
    played_release(&played);
}

/* E replicated: 26 buckets of 100 MB (and the norm's 4 B): 2 · 7/8 · 2.6 GB / 400 GB/s = 11.375 ms.
 */
static void test_e_replicated(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/e", NULL)) {
        const char *text = played_explain(&played, 0.5333);
        CHECK_CONTAINS(text, "volume of a step, N = 8");
        CHECK_CONTAINS(text, "27, S = 2.6 GB in all: 2 (N-1)/N S sent; 11.375 ms alone");
        CHECK_CONTAINS(text, "exposed 5.309 ms");
    }
    played_release(&played);
}

static void test_e_explained(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/e-simulated", NULL)) {
        const char *text = played_explain(&played, 0.5333);
        CHECK_CONTAINS(text, "= 0.375");
        CHECK_CONTAINS(text, "no overlap: 11 ms, 37.5 % slower");
        CHECK_CONTAINS(text, "exposed 1.4 ms, 17.5 % slower");
    }
    played_release(&played);
}

/* 26 layers of 8 ms; the machine hides all but the first gather and the last scatter, 1 ms each. */
static void test_e_simulated(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/e-simulated", NULL)) {
        CHECK_NEAR(played.outcome.compute_s, 0.208, EXACT);
        CHECK_NEAR(played.outcome.exposed_comm_s, 0.002, EXACT);
        CHECK_NEAR(played.outcome.comm_s, 26 * 0.003, EXACT);
        CHECK_NEAR(played.outcome.step_time_s, 0.210, EXACT);
    }
    played_release(&played);
}

/* "Bits and bytes": 700 MB over 10 Gb/s are 560 ms, not 70. */
static void test_f(void)
{
    struct played played;
    if (played_play(&played, "worked-examples/f", NULL)) {
        const struct outcome *outcome = &played.outcome;
        CHECK_INT(outcome->collective_count, 2);
        CHECK_NEAR(outcome->collectives[0].alone_s, 0.56, EXACT);
        CHECK_NEAR(outcome->collectives[0].busbw_bytes_per_s, 1.25e9, EXACT);
        CHECK_INT(outcome->unit_count, 1);
        CHECK_NEAR(outcome->units[0].all_gather_s, 2 * 0.56, EXACT);
        /* Forward (10 ms) hides under the second gather; backward (20 ms) hides under nothing. */
        CHECK_NEAR(outcome->step_time_s, 3 * 0.56 + 0.02, EXACT);
        CHECK_TRUE(outcome->exposed_comm_fraction > 0.9);
        CHECK_CONTAINS(outcome->bottleneck, "NIC");
        CHECK_CONTAINS(played_explain(&played, -1), "1.25 GB/s");
    }
    played_release(&played);
}

/* Exchanges of tensor parallelism are not gathers of parameters: S = 54,534,144 parameters of 2 B;
   of 3/4 S half leaves a host by each of its two NICs of 50 GB/s; forward exchanges 4 times a block
   (gather, scatter for attention and MLP), backward as often and the gradients of 2 norms. */
static void test_tensor_parallel(void)
{
    struct played played;
    if (played_play(&played, "llama3-8b_dgx-h100",
                    "nodes=2; mesh.tp=4; train.activation_checkpointing=none")) {
        const char *text = played_explain(&played, -1);
        CHECK_CONTAINS(text, "S = 109.068288 MB gathered");
        CHECK_CONTAINS(text, "2 gathers a microbatch");
        CHECK_CONTAINS(text, "NIC out (ndr400), 50 GB/s; a gather puts 40.900608 MB on each");
        CHECK_CONTAINS(text, "tensor parallelism: 10 exchanges between kernels");
        CHECK_CONTAINS(text, "max(compute + exchanges, gather + scatter)");
    }
    played_release(&played);
}

/* The second gather within 4 neighbours, the sum over 2 replicas: each has a line. */
static void test_hybrid(void)
{
    struct played played;
    if (played_play(&played, "llama3-8b_dgx-h100",
                    "nodes=2; mesh.dp_replicate=2; fsdp.reshard_after_forward=4")) {
        const char *text = played_explain(&played, -1);
        CHECK_CONTAINS(text, "all-gather of backward, among 4 GPUs: ");
        CHECK_CONTAINS(text, "all-reduce of shards over 2 replicas: ");
    }
    played_release(&played);
}

/* A step of DDP: the parts of 8.03 x 10^9 parameters that 4 replicas sum, apart from the exchanges.
 */
static void test_tensor_parallel_step(void)
{
    struct played played;
    if (played_play(&played, "llama3-8b_dgx-h100",
                    "nodes=2; mesh.tp=4; fsdp.api=ddp; fsdp.wrap=null; "
                    "fsdp.reshard_after_forward=null")) {
        const char *text = played_explain(&played, -1);
        CHECK_CONTAINS(text, "volume of a step, N = 4");
        CHECK_CONTAINS(text, "exchanges among 4 GPUs");
        CHECK_TRUE(strstr(text, "all_gather") == NULL);
    }
    played_release(&played);
}

static void test_h(void)
{
    struct played played;
    if (CHECK_INT(played_load(&played, "worked-examples/h", NULL), STATUS_OK)) {
        const struct mesh_config *mesh = &played.experiment.mesh;
        CHECK_INT(played.experiment.n_gpus, 1024);
        CHECK_INT(mesh->dp_shard, 32);
        CHECK_INT(mesh->dp_shard * mesh->pp * mesh->tp, 1024);
        CHECK_TRUE(mesh->tp <= played.experiment.gpus_per_node);
    }
    played_release(&played);
}

/* The error names the factors that were given and the one that is missing. */
static void test_h_mismatch(void)
{
    struct played played;
    CHECK_INT(played_load(&played, "worked-examples/h", "mesh.dp_shard=16"), STATUS_INPUT);
    const char *messages = played_messages(&played);
    CHECK_CONTAINS(messages, "1024 GPUs");
    CHECK_CONTAINS(messages, "pp 4");
    CHECK_CONTAINS(messages, "tp 8");
    CHECK_CONTAINS(messages, "dp_shard 16");
    CHECK_CONTAINS(messages, "a factor of 2 is missing");
    CHECK_CONTAINS(messages, "dp_shard: 32");
    played_release(&played);
}

const struct check_case volumes_cases[] = {
    {"D: 525, 689.0625, 700 MB a gather", test_d_volumes},
    {"D: one or two gathers a step", test_d_explained},
    {"D: three microbatches", test_d_accumulated},
    {"E: a step of replicas", test_e_replicated},
    {"E: 0.375, 11 ms, 1.4 ms hidden in part", test_e_explained},
    {"E simulated: 2 ms exposed", test_e_simulated},
    {"F: 560 ms over 10 Gb/s", test_f},
    {"tensor parallelism is no gather of parameters", test_tensor_parallel},
    {"a second gather among neighbours, replicas", test_hybrid},
    {"tensor parallelism in a step of replicas", test_tensor_parallel_step},
    {"H: 32 x 4 x 8 = 1024", test_h},
    {"H: a product that does not match", test_h_mismatch},
    {0}};
