/* unit/report/outcome_fixture.c: see outcome_fixture.h. */
#include "outcome_fixture.h"

#include <math.h>
#include <string.h>

enum { MIB = 1 << 20 };

static int64_t gib_mib(int64_t gib, int64_t mib)
{
    return (gib * 1024 + mib) * MIB;
}

static void fill_lists(struct arena *arena, struct outcome *outcome)
{
    static const struct outcome_unit units[] = {
        {.name = "root",
         .parameters = 1050677248,
         .forward_s = 0.03125,
         .backward_s = 0.0625,
         .all_gather_s = 0.0215,
         .reduce_scatter_s = 0.0435,
         .exposed_s = 0.01825},
        {.name = "layers.0",
         .parameters = 218112000,
         .forward_s = 0.2625,
         .backward_s = 0.5375,
         .all_gather_s = 0.1125,
         .reduce_scatter_s = 0.0875,
         .exposed_s = 0.2021},
        {.name = "layers.1",
         .parameters = 218112000,
         .forward_s = 0.2625,
         .backward_s = 0.5375,
         .all_gather_s = 0.1125,
         .reduce_scatter_s = 0.0875,
         .exposed_s = 0.2021},
    };
    static const struct outcome_collective collectives[] = {
        {.op = "all_gather",
         .communicator = "dp_shard",
         .count = 64,
         .bytes = 436224000,
         .alone_s = 0.00238515,
         .busbw_bytes_per_s = 1.7125e11},
        {.op = "reduce_scatter",
         .communicator = "dp_shard",
         .count = 33,
         .bytes = 872448000,
         .alone_s = 0.0047755,
         .busbw_bytes_per_s = 1.7125e11},
    };
    static const struct outcome_link links[] = {
        {.name = "nvlink",
         .capacity_bytes_per_s = 4.5e11,
         .instances = 16,
         .bytes = 5.6175e10,
         .busy_frac = 0.3125,
         .utilisation = 0.0523},
    };
    outcome->units = arena_alloc(arena, sizeof(units));
    memcpy(outcome->units, units, sizeof(units));
    outcome->unit_count = 3;
    outcome->collectives = arena_alloc(arena, sizeof(collectives));
    memcpy(outcome->collectives, collectives, sizeof(collectives));
    outcome->collective_count = 2;
    outcome->links = arena_alloc(arena, sizeof(links));
    memcpy(outcome->links, links, sizeof(links));
    outcome->link_count = 1;
    static const struct outcome_memory_unit memory_units[] = {{"layers.31", 1610612736},
                                                              {"outside units", 67108864}};
    outcome->memory_units = arena_alloc(arena, sizeof(memory_units));
    memcpy(outcome->memory_units, memory_units, sizeof(memory_units));
    outcome->memory_unit_count = 2;
}

static void fill_samples(struct arena *arena, struct outcome *outcome)
{
    static const struct outcome_interval intervals[] = {{"step_time_s", "s", 2.3, 2.385, 2.515}};
    outcome->intervals = arena_alloc(arena, sizeof(intervals));
    memcpy(outcome->intervals, intervals, sizeof(intervals));
    outcome->interval_count = 1;
    outcome->n_samples = 20;
}

static void fill_texts(struct arena *arena, struct outcome *outcome)
{
    static const struct outcome_origin origins[] = {
        {"train.seq_len", "8192", "configs/made-up.yaml:7:12"},
        {"fsdp.reshard_after_forward", "true", "default"},
        {"mesh.dp_shard", "-1", "<command line>"},
    };
    static const char *const warnings[] = {"attention 'flash' has no measured curve on 'h100'"};

    outcome->origins = arena_alloc(arena, sizeof(origins));
    memcpy(outcome->origins, origins, sizeof(origins));
    outcome->origin_count = 3;
    outcome->warnings = warnings;
    outcome->warning_count = 1;
}

static void fill_memory(struct outcome *outcome)
{
    outcome->peak_active_bytes = gib_mib(63, 512);
    outcome->peak_reserved_bytes = gib_mib(68, 256);
    outcome->peak_device_bytes = gib_mib(71, 256);
    outcome->first_step_peak_active_bytes = gib_mib(61, 0) + 7;
    outcome->first_step_peak_reserved_bytes = gib_mib(66, 512);
    outcome->alloc_retries = 1.5;
    outcome->alloc_retry_s = 0.1875;
    outcome->memory_capacity_bytes = gib_mib(79, 512);
    outcome->memory_over_bytes = 0;
    outcome->fits = true;
    outcome->peak_composition[MEMORY_PARAMETERS] = gib_mib(2, 10);
    outcome->peak_composition[MEMORY_OPTIMIZER] = gib_mib(4, 20);
    outcome->peak_composition[MEMORY_ACTIVATIONS] = gib_mib(57, 482);
    outcome->peak_composition[MEMORY_CONTEXT] = gib_mib(7, 768);
    outcome->peak_at = "saved(layers.31)";
    outcome->peak_phase = "backward";
    outcome->peak_unit = "layers.31";
    outcome->peak_operation = "layers.*.backward";
    outcome->peak_time_s = 1.1875;
}

void outcome_fixture(struct arena *arena, struct outcome *outcome)
{
    *outcome = (struct outcome){
        .config_name = "made-up",
        .model = "llama-3.1-8b",
        .cluster = "dgx-h100",
        .gpu = "h100-sxm",
        .policy = "fsdp2",
        .bottleneck = "compute",
        .n_gpus = 16,
        .n_nodes = 2,
        .gpus_per_node = 8,
        .parameters = 8030261248,
        .seq_len = 8192,
        .micro_batch = 3,
        .grad_accum = 1,
        .tokens_per_step = 393216,
        .step_time_s = 2.385,
        .tokens_per_s = 164870.440251572327,
        .tokens_per_s_per_gpu = 10304.4025157232704,
        .goodput = (double)NAN,
        .tokens_per_day = 14244806037.735847,
        .cost_per_gpu_hour = 2.5,
        .cost_per_billion_tokens = 67.39298502604166,
        .budget_tokens = 15e12,
        .budget_days = 1053.0153910319011,
        .budget_gpu_hours = 404357.91015625,
        .budget_cost = 1010894.775390625,
        .currency = "EUR",
        .mfu = 0.4375,
        .hfu = (double)NAN,
        .tflops_per_gpu = 432.6875,
        .mfu_convention = "torchtitan",
        .compute_s = 1.7125,
        .comm_s = 0.84500000000000008,
        .comm_wait_s = 0.0625,
        .copy_s = 0.1,
        .exposed_comm_s = 0.4225,
        .idle_s = 0.25,
        .memcpy_s = 0.001,
        .forward_s = 0.795,
        .backward_s = 1.5,
        .optimizer_s = 0.09,
        .exposed_comm_fraction = 0.4225 / 2.385,
        .overlap_fraction = 0.5,
        .comm_bytes_per_gpu = 4.5176e10,
        .fingerprint = UINT64_C(0x0123456789abcdef),
        .events = 4321,
        .config_hash = {UINT64_C(0x00000000deadbeef), UINT64_C(0xfedcba9876543210)},
    };
    fill_memory(outcome);
    fill_lists(arena, outcome);
    fill_samples(arena, outcome);
    fill_texts(arena, outcome);
}
