/*
 * tests/unit/trace/test_trace_runs.c: the timeline of whole runs: what a reader makes of it is what
 * the run says of itself, up to the rounding of a trace to nanoseconds; nothing else changes.
 */
#include <stdlib.h>
#include <string.h>

#include "played.h"
#include "trace_tests.h"

struct bytes {
    char *items;
    size_t count;
};

static bool play(struct played *played, const char *config, const char *overrides,
                 bool keeps_journal)
{
    if (!played_build(played, config, overrides))
        return false;
    played->experiment.keeps_journal = keeps_journal;
    return CHECK_INT(experiment_play(&played->experiment, &played->outcome), STATUS_OK);
}

static struct bytes write_class(struct played *played, int32_t class_idx, bool is_compressed)
{
    struct bytes bytes = {NULL, 0};
    FILE *file = open_memstream(&bytes.items, &bytes.count);
    BUG_IF(file == NULL);
    CHECK_TRUE(report_trace(&played->experiment, played->experiment.journal, class_idx,
                            is_compressed, file));
    fclose(file);
    return bytes;
}

static void check_sums(const struct trace_facts *facts, const struct outcome *outcome,
                       int64_t steps)
{
    /* Each end of an interval is off by half a nanosecond at most. */
    const double rounding_s = 1e-9 * (double)(facts->kernels + 1);
    const struct {
        int64_t ns;
        double wanted_s;
    } rows[] = {{facts->window_ns, outcome->step_time_s},
                {facts->compute_ns, outcome->compute_s},
                {facts->comm_ns, outcome->comm_s},
                {exposed_ns(facts), outcome->exposed_comm_s},
                {idle_ns(facts), outcome->idle_s}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("sum %d of %s", (int)i, outcome->config_name);
        CHECK_NEAR((double)rows[i].ns * 1e-9 / (double)steps + 1, rows[i].wanted_s + 1, rounding_s);
        check_context(NULL);
    }
    if (facts->comm_ns > 0)
        CHECK_NEAR((double)facts->overlap_ns / (double)facts->comm_ns + 1,
                   outcome->overlap_fraction + 1, 1e-6);
}

/* A host that is ahead of the GPU by most of a step has its peak before the window of the timeline.
 */
static void check_peaks(const struct trace_facts *facts, const struct outcome *outcome,
                        bool runs_ahead)
{
    if (!runs_ahead) {
        CHECK_INT(facts->most_memory_bytes, outcome->peak_active_bytes);
        CHECK_INT(facts->most_reserved_bytes, outcome->peak_reserved_bytes);
        return;
    }
    const double active = (double)outcome->peak_active_bytes;
    const double reserved = (double)outcome->peak_reserved_bytes;
    CHECK_TRUE((double)facts->most_memory_bytes <= active);
    CHECK_TRUE((double)facts->most_memory_bytes > 0.8 * active);
    CHECK_TRUE((double)facts->most_reserved_bytes <= reserved);
    CHECK_TRUE((double)facts->most_reserved_bytes > 0.8 * reserved);
}

static void test_breakdown(void)
{
    static const char run_ahead[] = "cases/gathers-run-ahead";
    static const struct {
        const char *config, *overrides;
    } rows[] = {
        {"worked-examples/units-3", NULL},
        {"worked-examples/units-32", "fsdp.separate_reduce_scatter_communicator=true"},
        {"worked-examples/reduce-buffers", NULL},
        {"llama3-8b_dgx-h100", NULL},
        {"llama3-8b_dgx-h100", "train.compile=false; train.grad_accum=2"},
        {"llama3-8b_dgx-h100", "nodes=2; mesh.dp_replicate=2; mesh.dp_shard=8"},
        {"llama3-8b_dgx-h100-25gbe", "nodes=4"},
        {"llama3-8b_dgx-h100", "fsdp.api=fsdp1; fsdp.reshard_after_forward=; fsdp.wrap=block"},
        {"llama3-8b_dgx-h100", "fsdp.cpu_offload=true"},
        {run_ahead, "cluster.host.gpu.memory.total=26GiB"},
        {"cases/ddp-bucket-copies", NULL},
        {"cases/deepspeed-hooks", NULL},
        {"cases/lora-mixed-units", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        if (play(&played, rows[i].config, rows[i].overrides, true)) {
            struct bytes bytes = write_class(&played, 0, i % 2 == 0);
            const struct trace_facts facts = trace_read(bytes.items, (int64_t)bytes.count);
            check_context("%s %s", rows[i].config, rows[i].overrides);
            CHECK_TRUE(facts.is_json);
            CHECK_INT(facts.crossing, 0);
            CHECK_INT(facts.loose_arrows, 0);
            CHECK_INT(facts.twofold_correlations, 0);
            CHECK_TRUE(facts.kernels > 0 && facts.arrows > 0 && facts.instants > 0);
            check_peaks(&facts, &played.outcome, strcmp(rows[i].config, run_ahead) == 0);
            check_context(NULL);
            check_sums(&facts, &played.outcome, played.experiment.reported_steps);
            free(bytes.items);
        }
        played_release(&played);
    }
}

/* A slow GPU: three classes, three files, of which each says how long the same step was. */
static void test_classes(void)
{
    struct played played;
    if (play(&played, "llama3-8b_dgx-h100",
             "nodes=2; cluster.overrides=[{host: 1, gpu: 3, clock_frac: 0.8}]", true)) {
        CHECK_INT(played.experiment.layout.class_count, 3);
        for (int32_t i = 0; i < played.experiment.layout.class_count; i++) {
            struct bytes bytes = write_class(&played, i, false);
            const struct trace_facts facts = trace_read(bytes.items, (int64_t)bytes.count);
            CHECK_TRUE(facts.is_json);
            CHECK_INT(facts.crossing, 0);
            CHECK_TRUE(facts.instants > 0);
            CHECK_INT(facts.most_memory_bytes, played.outcome.peak_active_bytes);
            CHECK_INT(facts.rank, played.experiment.layout.classes[i].first_rank);
            CHECK_NEAR((double)facts.window_ns * 1e-9, played.outcome.step_time_s, 1e-4);
            free(bytes.items);
        }
    }
    played_release(&played);
}

/* Watched or not, the run is the same; twice, the bytes are; packed or not, the text is. */
static void test_same(void)
{
    struct played watched;
    struct played again;
    struct played bare;
    if (play(&watched, "llama3-8b_dgx-h100", NULL, true) &&
        play(&again, "llama3-8b_dgx-h100", NULL, true) &&
        play(&bare, "llama3-8b_dgx-h100", NULL, false)) {
        CHECK_U64(watched.outcome.fingerprint, bare.outcome.fingerprint);
        CHECK_TRUE(bare.experiment.journal == NULL);
        CHECK_TEXT(played_json(&watched), played_json(&bare));
        struct bytes first = write_class(&watched, 0, true);
        struct bytes second = write_class(&again, 0, true);
        struct bytes plain = write_class(&watched, 0, false);
        CHECK_INT(first.count, second.count);
        CHECK_TRUE(first.count == second.count &&
                   memcmp(first.items, second.items, first.count) == 0);
        CHECK_TRUE(first.count * 4 < plain.count);
        const struct trace_facts a = trace_read(first.items, (int64_t)first.count);
        const struct trace_facts b = trace_read(plain.items, (int64_t)plain.count);
        CHECK_TRUE(a.is_json && b.is_json);
        CHECK_INT(a.kernels, b.kernels);
        CHECK_INT(a.overlap_ns, b.overlap_ns);
        CHECK_INT(a.most_memory_bytes, b.most_memory_bytes);
        free(first.items);
        free(second.items);
        free(plain.items);
    }
    played_release(&watched);
    played_release(&again);
    played_release(&bare);
}

const struct check_case trace_runs_cases[] = {
    {"breakdown", test_breakdown},
    {"classes", test_classes},
    {"same", test_same},
    {0},
};
