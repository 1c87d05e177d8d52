/*
 * tests/unit/trace/test_trace.c: toy runs whose timeline is known.
 *
 * The step of two ranks that Holistic Trace Analysis was given by hand, in us:
 *
 *   gather   0 130 gather  130 350 gather              scatter stream: 800 1100 scatter
 *   compute        130 530 four products  (host: 70)  600 1000 four products
 *
 * It found compute 800, neither 230, idle 70 of 1,100, and 420 of 650 (64.62 %) overlapped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toy.h"
#include "trace_tests.h"

enum { US = 1000 };

static void gemms(struct toy *toy, int32_t count)
{
    struct kernel *kernels = ARENA_ARRAY(&toy->arena, struct kernel, count);
    for (int32_t i = 0; i < count; i++)
        kernels[i] = toy_kernel(0.1, 0);
    toy_op(toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(toy, kernels, count));
}

static void write_two_ranks(struct toy *toy)
{
    const int32_t gathered = toy_event(toy, "gathered");
    const int32_t computed = toy_event(toy, "computed");
    const int32_t reducible = toy_event(toy, "reducible");
    const int32_t reduced = toy_event(toy, "reduced");
    toy->unit = toy_unit(toy, "a \"unit\"\\\n");
    toy_marks_begin(toy);
    toy_op(toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(toy, COLLECTIVE_ALL_GATHER, 0, 0.13));
    toy_op(toy, OP_RECORD, TOY_GATHER, gathered);
    toy_op(toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(toy, COLLECTIVE_ALL_GATHER, 0, 0.22));
    toy_op(toy, OP_WAIT, TOY_COMPUTE, gathered);
    gemms(toy, 4);
    toy_op(toy, OP_RECORD, TOY_COMPUTE, computed);
    toy_op(toy, OP_HOST_WAIT, 0, computed);
    toy_op(toy, OP_HOST_WORK, 0, HOST_STEP)->count = 1;
    gemms(toy, 2);
    toy_op(toy, OP_RECORD, TOY_COMPUTE, reducible);
    gemms(toy, 2);
    toy_op(toy, OP_WAIT, TOY_SCATTER, reducible);
    toy_op(toy, OP_COLLECTIVE, TOY_SCATTER, toy_collective(toy, COLLECTIVE_REDUCE_SCATTER, 0, 0.3));
    toy_op(toy, OP_RECORD, TOY_SCATTER, reduced);
    toy_op(toy, OP_WAIT, TOY_COMPUTE, reduced);
    toy_op(toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
    toy->cluster.host_cost_s[HOST_STEP] = 70e-6;
}

struct bytes {
    char *items;
    size_t count;
};

/* The file of a class of a toy that is played now. */
static struct bytes write_class(struct toy *toy, struct journal *journal, int32_t class_idx,
                                bool is_compressed)
{
    struct bytes bytes = {NULL, 0};
    struct experiment *experiment = ARENA_NEW(&toy->arena, struct experiment);
    experiment->name = "toy";
    experiment->n_gpus = toy->layout.ranks;
    experiment->gpus_per_node = toy->layout.ranks;
    experiment->layout = toy->layout;
    FILE *file = open_memstream(&bytes.items, &bytes.count);
    BUG_IF(file == NULL);
    CHECK_TRUE(report_trace(experiment, journal, class_idx, is_compressed, file));
    fclose(file);
    return bytes;
}

static struct journal *play(struct toy *toy)
{
    struct journal *journal =
        journal_new(&toy->arena, &toy->layout, (const struct program *const *)toy->programs,
                    toy->program_count, 0, toy->steps);
    toy->observers[0] = journal_observer(journal);
    toy->observer_count = 1;
    (void)toy_play(toy);
    journal_close(journal);
    return journal;
}

static void check_sound(const struct trace_facts *facts)
{
    CHECK_TRUE(facts->is_json);
    CHECK_INT(facts->crossing, 0);
    CHECK_INT(facts->loose_arrows, 0);
    CHECK_INT(facts->twofold_correlations, 0);
    CHECK_INT(facts->arrows, facts->kernels);
}

static void check_two_ranks(const struct trace_facts *facts)
{
    CHECK_INT(facts->window_ns, 1100 * US);
    CHECK_INT(facts->compute_ns, 800 * US);
    CHECK_INT(exposed_ns(facts), 230 * US);
    CHECK_INT(idle_ns(facts), 70 * US);
    CHECK_INT(facts->comm_ns, 650 * US);
    CHECK_NEAR(100.0 * (double)facts->overlap_ns / (double)facts->comm_ns, 64.62, 1e-4);
}

static void test_two_ranks(void)
{
    struct toy toy;
    toy_init(&toy, 2, false);
    write_two_ranks(&toy);
    struct journal *journal = play(&toy);
    for (int32_t i = 0; i < 2; i++) {
        struct bytes bytes = write_class(&toy, journal, i, i == 1);
        const struct trace_facts facts = trace_read(bytes.items, (int64_t)bytes.count);
        check_sound(&facts);
        check_two_ranks(&facts);
        CHECK_INT(facts.rank, i);
        CHECK_INT(facts.kernels, 11);
        CHECK_INT(facts.annotated_steps, 1);
        free(bytes.items);
    }
    toy_release(&toy);
}

/* The reader itself: the same step as HTA was given it, without annotations of the GPU. */
static void test_reader(void)
{
    static const struct {
        const char *name;
        int32_t stream, ts, dur;
    } rows[] = {{"ncclDevKernel_AllGather_RING_LL", 20, 0, 130},
                {"ncclDevKernel_AllGather_RING_LL", 20, 130, 220},
                {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 24, 800, 300},
                {"gemm", 7, 130, 400},
                {"gemm", 7, 600, 400}};
    char text[2048];
    for (int32_t rank = 0; rank < 2; rank++) {
        int length = snprintf(text, sizeof(text),
                              "{\"distributedInfo\": {\"rank\": %d},\n\"traceEvents\": [\n"
                              "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
                              "\"ProfilerStep#1\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1100}",
                              (int)rank);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            length += snprintf(text + length, sizeof(text) - (size_t)length,
                               ",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": "
                               "0, \"tid\": %d, \"ts\": %d.0, \"dur\": %d, \"args\": "
                               "{\"stream\": %d}}",
                               rows[i].name, (int)rows[i].stream, (int)rows[i].ts, (int)rows[i].dur,
                               (int)rows[i].stream);
        length += snprintf(text + length, sizeof(text) - (size_t)length, "\n]}\n");
        const struct trace_facts facts = trace_read(text, length);
        CHECK_TRUE(facts.is_json);
        CHECK_INT(facts.rank, rank);
        check_two_ranks(&facts);
    }
}

static void test_reader_refuses(void)
{
    static const char *const wrong[] = {
        "", "{", "{\"a\":1,}", "[1 2]", "{\"a\":\"\n\"}", "{\"a\":nan}", "{} x", "{\"a\":\"\\x\"}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_TRUE(!trace_read(wrong[i], (int64_t)strlen(wrong[i])).is_json);
    /* Slices that cross, and an arrow that ends beside its kernel. */
    static const char *const crossing =
        "{\"traceEvents\":[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":5,\"args\":"
        "{\"correlation\":1}},{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":3,\"dur\":5,\"args\":"
        "{\"correlation\":1,\"stream\":7}},{\"ph\":\"s\",\"cat\":\"ac2g\",\"id\":1,\"pid\":1,"
        "\"tid\":1,\"ts\":0},{\"ph\":\"f\",\"cat\":\"ac2g\",\"id\":1,\"pid\":1,\"tid\":1,"
        "\"ts\":9}]}";
    const struct trace_facts facts = trace_read(crossing, (int64_t)strlen(crossing));
    CHECK_TRUE(facts.is_json);
    CHECK_INT(facts.crossing, 1);
    CHECK_INT(facts.loose_arrows, 1);
}

/* A kernel every 30 us of 10 us each: the host starves the stream, kernel by kernel. */
static void test_starved(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    struct kernel kernels[5];
    for (int32_t i = 0; i < 5; i++)
        kernels[i] = toy_kernel(0.01, 0);
    toy.cluster.host_cost_s[HOST_KERNEL] = 30e-6;
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_BEGIN);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(&toy, kernels, 5));
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
    struct journal *journal = play(&toy);
    struct bytes bytes = write_class(&toy, journal, 0, false);
    const struct trace_facts facts = trace_read(bytes.items, (int64_t)bytes.count);
    check_sound(&facts);
    CHECK_INT(facts.window_ns, 160 * US);
    CHECK_INT(facts.compute_ns, 50 * US);
    CHECK_INT(facts.kernels, 5);
    CHECK_INT(facts.launches, 5);
    free(bytes.items);
    toy_release(&toy);
}

static void test_full_disk(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    write_two_ranks(&toy);
    struct journal *journal = play(&toy);
    struct experiment *experiment = ARENA_NEW(&toy.arena, struct experiment);
    experiment->gpus_per_node = 2;
    experiment->layout = toy.layout;
    for (int32_t i = 0; i < 2; i++) {
        FILE *file = fopen("/dev/full", "w");
        if (file == NULL)
            break; /* not a Linux system */
        CHECK_TRUE(!report_trace(experiment, journal, 0, i == 1, file));
        fclose(file);
    }
    toy_release(&toy);
}

const struct check_case trace_cases[] = {
    {"two ranks", test_two_ranks},           {"reader", test_reader},
    {"reader refuses", test_reader_refuses}, {"starved", test_starved},
    {"full disk", test_full_disk},           {0},
};
