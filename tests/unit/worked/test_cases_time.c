/* tests/unit/worked/test_cases_time.c: what users met, in time (configs/cases), by hand. */
#include <string.h>

#include "worked_tests.h"

/*
 * Eight units on a machine of round numbers: gather and scatter 0.15 ms, forward 0.4, backward 0.8;
 * each hook takes the host 1 ms, so that it is behind everywhere. Forward: every gather is seen.
 * Backward: the first gather; the gather of the next unit is issued with the backward of this one
 * and hidden; each scatter is issued a hook later, alone: 8 + 1 + 8 times 0.15 ms. Explicit
 * prefetch hides seven gathers of forward. A host that costs nothing: the first and the last.
 */
#define SMALL_UNITS                                                                                \
    "model={family: abstract, units: [{repeat: 8, parameters: 150000, forward: 0.4 ms, "           \
    "backward: 0.8 ms}]}; cluster=ideal-2x1gbs; train.max_grad_norm=0; "                           \
    "train.precision={param_dtype: bf16, reduce_dtype: bf16, storage_dtype: fp32}; "               \
    "simulate.ideal=[copies, optimizer]; "

static void test_host_behind_by_hand(void)
{
    static const struct {
        const char *overrides;
        double exposed_s;
    } rows[] = {
        {SMALL_UNITS "cluster.host.cpu.hook.time=1ms", 17 * 0.15e-3},
        {SMALL_UNITS "cluster.host.cpu.hook.time=1ms; fsdp.forward_prefetch=1", 10 * 0.15e-3},
        {SMALL_UNITS, 2 * 0.15e-3},
        {SMALL_UNITS "fsdp.forward_prefetch=1", 2 * 0.15e-3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, "cases/host-behind", rows[i].overrides)) {
            CHECK_NEAR(played.outcome.exposed_comm_s, rows[i].exposed_s, EXACT);
            CHECK_NEAR(played.outcome.compute_s, 8 * 1.2e-3, EXACT);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* GPT-2 on 512 tokens: more idle than compute, which is the host's doing; explicit prefetch shows
   less communication, and the step stays what the host takes. */
static void test_host_behind(void)
{
    struct played implicit, explicit_one, fast;
    if (played_play(&implicit, "cases/host-behind", NULL) &&
        played_play(&explicit_one, "cases/host-behind", "fsdp.forward_prefetch=1") &&
        played_play(&fast, "cases/host-behind", "simulate.ideal=host")) {
        CHECK_TEXT(implicit.outcome.bottleneck, "host");
        CHECK_TRUE(implicit.outcome.idle_s > implicit.outcome.compute_s);
        CHECK_TRUE(explicit_one.outcome.exposed_comm_s < implicit.outcome.exposed_comm_s);
        CHECK_NEAR(explicit_one.outcome.step_time_s, implicit.outcome.step_time_s, 0.02);
        CHECK_TRUE(fast.outcome.exposed_comm_s < 0.5 * implicit.outcome.exposed_comm_s);
    }
    played_release(&implicit);
    played_release(&explicit_one);
    played_release(&fast);
}

/*
 * Gather 0.3 ms, forward 0.4, backward 0.8; a host that costs nothing. The next gather begins at
 * the last of n waits, 0.4/(n + 1) ms before the unit ends: n = 1 shows 0.1 ms of each of seven
 * gathers and of the first one of backward, n = 3 0.2 ms. Issued before the unit, gathers are
 * hidden, but for that one of backward. A host that takes 0.1 ms to wake up adds that to each wait.
 */
#define ROUTED                                                                                     \
    "model={family: abstract, units: [{repeat: 8, parameters: 300000, forward: 0.4 ms, "           \
    "backward: 0.8 ms}]}; cluster=ideal-2x1gbs; nodes=1; train.max_grad_norm=0; "                  \
    "train.activation_checkpointing=none; fsdp.wrap=block; train.precision={reduce_dtype: bf16}; " \
    "simulate.ideal=[copies, optimizer]; "

static void test_routing_by_hand(void)
{
    static const struct {
        const char *overrides;
        double forward_s, backward_s;
    } rows[] = {{ROUTED "train.host_syncs=0", 3.5e-3, 6.7e-3},
                {ROUTED "train.host_syncs=1", 4.2e-3, 6.8e-3},
                {ROUTED "train.host_syncs=3", 4.9e-3, 6.9e-3},
                {ROUTED "train.host_syncs=1; "
                        "cluster.host.cpu.sync_wake={time: 0.1 ms, source: given}",
                 5.0e-3, 6.8e-3},
                {ROUTED "fsdp.forward_prefetch=1", 3.5e-3, 6.8e-3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, "cases/expert-routing-syncs", rows[i].overrides)) {
            CHECK_NEAR(played.outcome.forward_s, rows[i].forward_s, EXACT);
            CHECK_NEAR(played.outcome.backward_s, rows[i].backward_s, EXACT);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* Qwen3-30B-A3B: the wait shows gathers that were hidden; explicit prefetch hides them again. */
static void test_routing(void)
{
    struct played syncs, none, ahead;
    if (played_play(&syncs, "cases/expert-routing-syncs", NULL) &&
        played_play(&none, "cases/expert-routing-syncs", "train.host_syncs=0") &&
        played_play(&ahead, "cases/expert-routing-syncs", "fsdp.forward_prefetch=1")) {
        CHECK_TRUE(syncs.outcome.exposed_comm_s > 5 * none.outcome.exposed_comm_s);
        CHECK_TRUE(ahead.outcome.exposed_comm_s < 0.2 * syncs.outcome.exposed_comm_s);
        CHECK_NEAR(ahead.outcome.forward_s, none.outcome.forward_s, 0.02);
    }
    played_release(&syncs);
    played_release(&none);
    played_release(&ahead);
}

struct slope {
    const char *config, *overrides;
    double forward_s, backward_s; /* a unit */
};

/* What as many units more add. */
static void check_slope(const struct slope *row, int32_t units)
{
    double forward_s[2] = {0}, backward_s[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), "%s; model.repeat=%d", row->overrides, i + 1);
        if (played_play(&played, row->config, overrides)) {
            forward_s[i] = played.outcome.forward_s;
            backward_s[i] = played.outcome.backward_s;
        }
        played_release(&played);
    }
    check_context("%s %s", row->config, row->overrides);
    CHECK_NEAR((forward_s[1] - forward_s[0]) / units, row->forward_s, EXACT);
    CHECK_NEAR((backward_s[1] - backward_s[0]) / units, row->backward_s, EXACT);
    check_context(NULL);
}

#define FAST_BACKWARD                                                                              \
    "model.units=[{repeat: 16, parameters: 15000000, forward: 10 ms, backward: 10 ms}]; "
#define SEPARATE "fsdp.separate_reduce_scatter_communicator=true"

/* Shared: max(B, 15 + 15); separate: max(B, 15, 15). */
static void test_one_communicator(void)
{
    static const struct slope rows[] = {
        {"cases/one-communicator", "", 0.015, 0.030},
        {"cases/one-communicator", SEPARATE, 0.015, 0.020},
        {"cases/one-communicator", FAST_BACKWARD, 0.015, 0.030},
        {"cases/one-communicator", FAST_BACKWARD SEPARATE, 0.015, 0.015},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_slope(&rows[i], 16);
}

/*
 * Two hosts of one GPU, units of 15 million parameters in bf16: half of 30 MB leaves a GPU for each
 * gather and scatter. Beside a backward of 24 ms the knee is where 30 MB take 24 ms: 1.25 GB/s,
 * 10 Gb/s; in forward, one gather beside 12 ms, the same.
 */
#define ACROSS                                                                                     \
    "model={family: abstract, units: [{repeat: 16, parameters: 15000000, forward: 12 ms, "         \
    "backward: 24 ms}]}; cluster=ideal-10gbps; nodes=2; cluster.host.nics.link.bandwidth="

static void test_knee(void)
{
    static const struct slope rows[] = {
        {"cases/one-communicator", ACROSS "5Gbps", 0.024, 0.048},
        {"cases/one-communicator", ACROSS "8Gbps", 0.015, 0.030},
        {"cases/one-communicator", ACROSS "10Gbps", 0.012, 0.024},
        {"cases/one-communicator", ACROSS "25Gbps", 0.012, 0.024},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_slope(&rows[i], 16);
    static const char *const bound[][2] = {{ACROSS "5Gbps", "NIC out (ideal)"},
                                           {ACROSS "25Gbps", "compute"}};
    for (size_t i = 0; i < sizeof(bound) / sizeof(bound[0]); i++) {
        struct played played;
        if (played_play(&played, "cases/one-communicator", bound[i][0]))
            CHECK_TEXT(played.outcome.bottleneck, bound[i][1]);
        played_release(&played);
    }
}

/* One host: hidden. Sixteen over 4 x 100 Gb/s: seen, and the NICs bind; over four times that, not.
 */
static void test_across_hosts(void)
{
    static const struct {
        const char *overrides, *bottleneck;
        double least, most; /* overlap */
    } rows[] = {{"nodes=1", "compute", 0.94, 1},
                {"", "NIC out (efa100-p4d)", 0, 0.6},
                {"cluster.host.nics.link.bandwidth=400Gbps", "compute", 0.9, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, "cases/overlap-lost-across-hosts", rows[i].overrides)) {
            CHECK_TRUE(played.outcome.overlap_fraction >= rows[i].least);
            CHECK_TRUE(played.outcome.overlap_fraction <= rows[i].most);
            CHECK_TEXT(played.outcome.bottleneck, rows[i].bottleneck);
        }
        played_release(&played);
    }
    check_context(NULL);
}

static bool warns(const struct outcome *outcome, const char *word)
{
    for (int32_t i = 0; i < outcome->warning_count; i++)
        if (strstr(outcome->warnings[i], word) != NULL)
            return true;
    return false;
}

/* Overlap that costs nothing is a shorter step, and is said to be optimistic. */
static void test_beside_collectives(void)
{
    struct played real, ideal;
    if (played_play(&real, "cases/slower-beside-collectives", NULL) &&
        played_play(&ideal, "cases/slower-beside-collectives", "simulate.ideal=contention")) {
        CHECK_TRUE(!warns(&real.outcome, "optimistic"));
        CHECK_TRUE(warns(&ideal.outcome, "optimistic"));
        /* Kernels lose no more than the time of the collectives allows at the published factors:
           what takes t beside them takes between t / 2.5 and t alone. */
        const double lost_s = real.outcome.compute_s - ideal.outcome.compute_s;
        CHECK_TRUE(lost_s > 0.2 * real.outcome.comm_s * (1 - 1 / 1.7));
        CHECK_TRUE(lost_s < real.outcome.comm_s * (1 - 1 / 2.5));
    }
    played_release(&real);
    played_release(&ideal);
}

/*
 * Gather and scatter 7/8 · 90 MB / 450 GB/s = 0.175 ms; all-reduce of 11.25 MB between two hosts at
 * 50 GB/s: 0.225 ms. Beside each other: max(B, 0.35, 0.225) a unit in backward; one after the other
 * would be 0.575.
 */
static void test_hybrid(void)
{
    static const struct slope rows[] = {
        {"cases/hybrid-all-reduce", "", 0.175e-3, 0.350e-3},
        {"cases/hybrid-all-reduce",
         "model.units=[{repeat: 16, parameters: 45000000, forward: 0.1 ms, backward: 0.4 ms}]",
         0.175e-3, 0.4e-3},
        /* A network half as fast: the all-reduce takes 0.45 ms and bounds backward alone. */
        {"cases/hybrid-all-reduce", "cluster.host.nics.link.bandwidth=25GB/s", 0.175e-3, 0.450e-3},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_slope(&rows[i], 16);
}

/* Published: 7.18 / 9.37 = 0.766 of the MFU. All communication, 0.75; where the wire is fast the
   two are one within the host's gap between steps. */
static void test_accumulation(void)
{
    static const char twice[] = "train.micro_batch=3; train.grad_accum=2; ";
    static const struct {
        const char *cluster;
        double ratio, tolerance;
    } rows[] = {{"cluster=dgx-h100-25gbe", 0.75, 0.01}, {"cluster=dgx-h100; nodes=1", 1, 0.04}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played once, two;
        char overrides[128];
        snprintf(overrides, sizeof(overrides), "%s%s", twice, rows[i].cluster);
        if (played_play(&once, "cases/accumulation-traffic", rows[i].cluster) &&
            played_play(&two, "cases/accumulation-traffic", overrides)) {
            CHECK_NEAR(two.outcome.mfu / once.outcome.mfu, rows[i].ratio, rows[i].tolerance);
            /* But for the norm's four bytes each GPU sends twice as much. */
            CHECK_NEAR(two.outcome.comm_bytes_per_gpu, 2 * once.outcome.comm_bytes_per_gpu, 1e-6);
        }
        played_release(&once);
        played_release(&two);
    }
}

/*
 * gpt2-xl: 48 blocks of twelve tensors, two tables and the final norm's two: 580; FSDP1 has 49 flat
 * shards. At 1 ms a tensor the host bounds the optimizer: norm and update, 2 · 531 ms between them.
 */
static void test_many_tensors(void)
{
    static const char slow[] = "cluster.host.cpu.optimizer_param.time=1ms; ";
    struct played each, flat;
    char overrides[128];
    snprintf(overrides, sizeof(overrides), "%sfsdp={api: fsdp1}", slow);
    if (played_play(&each, "cases/many-small-weights", slow) &&
        played_play(&flat, "cases/many-small-weights", overrides)) {
        CHECK_NEAR(each.outcome.step_time_s - flat.outcome.step_time_s, 2 * (580 - 49) * 1e-3,
                   0.05);
        CHECK_TRUE(each.outcome.optimizer_s > 1);
        CHECK_TRUE(flat.outcome.optimizer_s < 0.1);
    }
    played_release(&each);
    played_release(&flat);
    /* As measured hosts are: a larger share of the step. */
    if (played_play(&each, "cases/many-small-weights", NULL) &&
        played_play(&flat, "cases/many-small-weights", "fsdp={api: fsdp1}"))
        CHECK_TRUE(each.outcome.optimizer_s / each.outcome.step_time_s >
                   3 * flat.outcome.optimizer_s / flat.outcome.step_time_s);
    played_release(&each);
    played_release(&flat);
}

/*
 * 96 collectives of 15 ms are 1.440 s of self time. In backward gathers and scatters run side by
 * side: forward 32 · 15 + 10, then a unit every 15 ms from the first backward on, whose gather was
 * issued 10 ms before forward ended: 0.495 s. Their union is the step but for nothing: 0.985 s, of
 * which 0.640 s is beside compute.
 */
static void test_union(void)
{
    struct played played;
    if (played_play(&played, "cases/sum-of-self-times", NULL)) {
        const struct outcome *outcome = &played.outcome;
        double self_s = 0;
        for (int32_t i = 0; i < outcome->collective_count; i++)
            self_s += (double)outcome->collectives[i].count * outcome->collectives[i].alone_s;
        CHECK_NEAR(self_s, 96 * 0.015, EXACT);
        CHECK_NEAR(outcome->step_time_s, 0.490 + 0.495, EXACT);
        CHECK_NEAR(outcome->exposed_comm_s, 0.985 - 0.640, EXACT);
        CHECK_TRUE(self_s - outcome->compute_s > 2 * outcome->exposed_comm_s);
    }
    played_release(&played);
}

/*
 * Gather = scatter = 8 ms, forward 10, backward 20. One queue: the gather of the next unit stands
 * behind the forward of this one (10 + 8), and before its own backward in which it hides, but
 * behind the scatter before it, which then runs alone (20 + 8). Streams are compute, copy-in,
 * gathers, scatters: with two queues gathers, with three scatters share that of compute.
 */
#define QUEUED                                                                                     \
    "model={family: abstract, units: [{repeat: 16, parameters: 8000000, forward: 10 ms, "          \
    "backward: 20 ms}]}; cluster=ideal-2x1gbs; nodes=1; train.max_grad_norm=0; "                   \
    "train.activation_checkpointing=none; fsdp.wrap=block; train.precision={reduce_dtype: bf16}; " \
    "simulate.ideal=[copies, optimizer]; train.cuda_device_max_connections="

static void test_queues(void)
{
    static const struct slope rows[] = {{"cases/one-hardware-queue", QUEUED "1", 0.018, 0.028},
                                        {"cases/one-hardware-queue", QUEUED "2", 0.018, 0.028},
                                        {"cases/one-hardware-queue", QUEUED "3", 0.010, 0.028},
                                        {"cases/one-hardware-queue", QUEUED "4", 0.010, 0.020},
                                        {"cases/one-hardware-queue", QUEUED "8", 0.010, 0.020}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_slope(&rows[i], 16);
    struct played one, eight;
    if (played_play(&one, "cases/one-hardware-queue", NULL) &&
        played_play(&eight, "cases/one-hardware-queue", "train.cuda_device_max_connections=8")) {
        CHECK_TRUE(one.outcome.exposed_comm_s > 10 * eight.outcome.exposed_comm_s);
        CHECK_TRUE(one.outcome.step_time_s > 1.04 * eight.outcome.step_time_s);
    }
    played_release(&one);
    played_release(&eight);
}

/* Norms that wait cost time where gathers run beside compute; a margin of all that collectives hold
   costs nothing. (By hand: tests/unit/machine/test_contention.c.) */
static void test_norms(void)
{
    struct played waits, leaves, plain;
    if (played_play(&waits, "cases/norms-need-all-sms", NULL) &&
        played_play(&leaves, "cases/norms-need-all-sms", "train.norms.sm_margin=100") &&
        played_play(&plain, "cases/norms-need-all-sms", "train.norms.cooperative=false")) {
        CHECK_TRUE(waits.outcome.step_time_s > 1.05 * plain.outcome.step_time_s);
        CHECK_TRUE(waits.outcome.exposed_comm_s > 2 * plain.outcome.exposed_comm_s);
        CHECK_NEAR(leaves.outcome.step_time_s, plain.outcome.step_time_s, 0.005);
    }
    played_release(&waits);
    played_release(&leaves);
    played_release(&plain);
}

/* 6,738,415,616 parameters of 2 B, of which one GPU receives half, over 16 lanes of PCIe 4 that
   carry 25.2 GB/s: 0.267 s a forward at least; reported: 0.4 s a token. */
static void test_weights_over_pcie(void)
{
    struct played played;
    if (played_play(&played, "cases/weights-over-pcie", NULL)) {
        const double bound_s = 6738415616.0 * 2 / 2 / 25.2e9;
        CHECK_TRUE(played.outcome.forward_s > bound_s);
        CHECK_TRUE(played.outcome.forward_s < 2 * bound_s);
        CHECK_NEAR(played.outcome.forward_s, 1 / 2.5, 0.10);
        CHECK_TRUE(played.outcome.exposed_comm_s > played.outcome.compute_s);
    }
    played_release(&played);
}

/* GPT-2 XL of 1,557,611,200 parameters on eight V100: the update reads and writes 80 B for each,
   the norm and clipping 12, over 0.22 and 0.50 of 153.6 GB/s; most of a step that is 3 to 10 times
   longer than with the optimizer on the GPU. A core for all: 92 B over 14 GB/s. */
static void test_host_optimizer(void)
{
    static const double parameters = 1557611200;
    struct played host, gpu, core;
    if (played_play(&host, "cases/optimizer-on-the-host", NULL) &&
        played_play(&gpu, "cases/optimizer-on-the-host", "fsdp.cpu_offload=false") &&
        played_play(&core, "cases/optimizer-on-the-host", "cluster.host.cores=1")) {
        const double update_s = parameters * (80 / 0.22 + 12 / 0.50) / 153.6e9;
        CHECK_NEAR(host.outcome.optimizer_s, update_s, 0.01);
        CHECK_NEAR(core.outcome.optimizer_s, parameters * 92 / 14e9, 0.01);
        CHECK_TRUE(host.outcome.step_time_s > 3 * gpu.outcome.step_time_s);
        CHECK_TRUE(core.outcome.step_time_s < 10 * gpu.outcome.step_time_s);
        CHECK_TRUE(host.outcome.optimizer_s > 0.5 * host.outcome.step_time_s);
        CHECK_TEXT(host.outcome.bottleneck, "host");
    }
    played_release(&host);
    played_release(&gpu);
    played_release(&core);
}

/* Eight ranks of 536.9e6 parameters on one core: 17.2 s published, 1.93 s for one of them alone. */
static void test_ranks_without_cores(void)
{
    struct played played;
    if (played_play(&played, "cases/optimizer-on-the-host",
                    "model={family: abstract, units: [{repeat: 8, parameters: 536900000, forward: "
                    "1 ms, backward: 2 ms}]}; cluster=dgx-h100; cluster.host.cores=1; "
                    "train.max_grad_norm=0"))
        CHECK_NEAR(played.outcome.optimizer_s, 17.2, 0.12);
    played_release(&played);
}

const struct check_case cases_time_cases[] = {{"host behind: by hand", test_host_behind_by_hand},
                                              {"host behind: GPT-2", test_host_behind},
                                              {"routing: by hand", test_routing_by_hand},
                                              {"routing: experts", test_routing},
                                              {"one communicator", test_one_communicator},
                                              {"across hosts: the knee by hand", test_knee},
                                              {"across hosts: Llama", test_across_hosts},
                                              {"beside collectives", test_beside_collectives},
                                              {"hybrid: all-reduce beside", test_hybrid},
                                              {"hardware queues", test_queues},
                                              {"norms that need all SMs", test_norms},
                                              {"accumulation: traffic", test_accumulation},
                                              {"optimizer: many tensors", test_many_tensors},
                                              {"exposed: a union", test_union},
                                              {"weights over PCIe", test_weights_over_pcie},
                                              {"optimizer on the host", test_host_optimizer},
                                              {"ranks without cores", test_ranks_without_cores},
                                              {0}};
