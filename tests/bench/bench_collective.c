/*
 * tests/bench/bench_collective.c: what one collective costs us: layout, plan and play of an
 * all-gather of 1 GB, all alike and folded, all on their own, and in replica groups of a mesh.
 */
#include <stdio.h>

#include "bench.h"
#include "cluster/group_layout.h"
#include "machine/machine.h"
#include "numeric/curve.h"
#include "run/experiment.h"

struct collective_case {
    const char *name;
    int64_t hosts;
    int64_t shard; /* ranks of a group */
    bool is_folded;
    int32_t repeats;
};

static const struct collective_case cases[] = {
    {"8 GPUs", 1, 8, true, 500},
    {"16,384 GPUs", 2048, 16384, true, 500},
    {"1,024 GPUs, unfolded", 128, 1024, false, 5},
    {"16,384 GPUs in groups of 64", 2048, 64, true, 5},
};

struct parts {
    double layout_s, play_s;
};

static bool collective_once(const struct cluster *cluster, const struct collective_case *one,
                            struct parts *parts)
{
    struct arena arena = {0};
    struct diag diag;
    diag_init(&diag, &arena);
    const double start_s = bench_now_s();
    const struct layout size = {.gpus_per_host = cluster->gpus_per_host,
                                .ranks = one->hosts * cluster->gpus_per_host};
    struct group group;
    struct layout layout;
    enum status status = group_along(&size, one->shard, 1, &group) ? STATUS_OK : STATUS_INPUT;
    if (status == STATUS_OK)
        status = layout_build_for_groups(&arena, cluster, one->hosts, cluster->gpus_per_host,
                                         one->is_folded, &group, 1, &layout, &diag);
    const double built_s = bench_now_s();
    struct stream stream = {.name = "gather", .role = STREAM_ALL_GATHER};
    struct communicator communicator = {.name = "all", .purpose = "bench", .group = group};
    struct collective collective = {.op = COLLECTIVE_ALL_GATHER, .bytes = 1e9};
    struct op op = {.kind = OP_COLLECTIVE, .unit = -1};
    const struct program program = {.policy = "bench",
                                    .streams = {&stream, 1, 1},
                                    .communicators = {&communicator, 1, 1},
                                    .collectives = {&collective, 1, 1},
                                    .step = {&op, 1, 1}};
    const struct program *programs[] = {&program};
    struct machine_result result;
    const struct machine_setup setup = {
        .layout = &layout, .programs = programs, .program_count = 1, .steps = 1};
    if (status == STATUS_OK)
        status = machine_play(&arena, &setup, &result, &diag);
    parts->layout_s = built_s - start_s;
    parts->play_s = bench_now_s() - built_s;
    if (status != STATUS_OK)
        diag_write(&diag, stderr, false);
    arena_release(&arena);
    return status == STATUS_OK;
}

void bench_collective(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct experiment experiment = {0};
    numeric_init();
    diag_init(&diag, &arena);
    if (experiment_load(&experiment, "llama3-8b_dgx-h100", NULL, 0, &diag) != STATUS_OK) {
        diag_write(&diag, stderr, false);
        return;
    }
    printf("  %-30s %12s %16s\n", "case", "layout us", "plan and play us");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double layout_s[BENCH_ROUNDS] = {0}, play_s[BENCH_ROUNDS] = {0};
        for (int32_t round = 0; round < BENCH_ROUNDS; round++) {
            for (int32_t k = 0; k < cases[i].repeats; k++) {
                struct parts parts;
                if (!collective_once(&experiment.cluster, &cases[i], &parts))
                    return;
                layout_s[round] += parts.layout_s / cases[i].repeats;
                play_s[round] += parts.play_s / cases[i].repeats;
            }
        }
        printf("  %-30s %12.1f %16.1f\n", cases[i].name, bench_median(layout_s) * 1e6,
               bench_median(play_s) * 1e6);
    }
    experiment_release(&experiment);
    arena_release(&arena);
}
