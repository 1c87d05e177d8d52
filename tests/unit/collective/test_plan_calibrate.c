/*
 * tests/unit/collective/test_plan_calibrate.c: measured times over the model.
 *
 * The clusters are ideal: 8 GPUs at 400 GB/s, 5 us a step, so that an all-reduce is exactly two
 * all-gathers and the factors can be had by hand.
 */
#include <math.h>

#include "cluster_fixture.h"
#include "collective/plan_calibrate.h"
#include "plan_tests.h"

#define MIB 1048576.0
#define GIB 1073741824.0

/* 1 MiB in 100 us, 1 GiB in 5 ms, a straight line between: half way between the sizes 2.55 ms. */
#define ONE_HOST                                                                                   \
    "collectives.calibration={name: measured, tables: [{op: all_gather, nodes: 1, gpus_per_node: " \
    "8, fit: linear, floor: 80 us, source: a test, points: [{bytes: 1 MiB, time: 100 us}, "        \
    "{bytes: 1 GiB, time: 5 ms}]}]}"

enum { AG = COLLECTIVE_ALL_GATHER, RS = COLLECTIVE_REDUCE_SCATTER, AR = COLLECTIVE_ALL_REDUCE };

static void test_times(void)
{
    const double half_s = 35e-6 + (MIB + GIB) / 2 * 7 / 8 / 400e9;
    const struct {
        const char *what;
        int op;
        double bytes, expected_s;
    } rows[] = {
        {"a point", AG, MIB, 100e-6},
        {"half way", AG, (MIB + GIB) / 2, 2.55e-3},
        /* the model: 35 us + S·7/8/400e9 */
        {"below: the factor of the first", AG, 65536,
         100e-6 * (35e-6 + 65536 * 0.875 / 400e9) / (35e-6 + MIB * 0.875 / 400e9)},
        {"above: the factor of the last", AG, 2 * GIB,
         5e-3 * (35e-6 + 2 * GIB * 0.875 / 400e9) / (35e-6 + GIB * 0.875 / 400e9)},
        /* factor 2.55 ms / half; cost 0.5: power 0.8; cost 1.5: power 4/7 */
        {"the other of the pair", RS, (MIB + GIB) / 2, half_s * pow(2.55e-3 / half_s, 0.8)},
        {"both in a row", AR, (MIB + GIB) / 2, 2 * half_s * pow(2.55e-3 / half_s, 4.0 / 7)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].what);
        CHECK_NEAR(
            alone_s("ideal-8x400", ONE_HOST, 1, 8, (enum collective_op)rows[i].op, rows[i].bytes),
            rows[i].expected_s, 1e-9);
    }
    check_context(NULL);
}

/* 4 of the 8 GPUs: the model says 15 us + S·3/4/400e9, for 8 of them 35 us + S·7/8/400e9; a factor
   of two in GPUs a node costs 2: power 1/2. */
static void test_another_shape(void)
{
    const double bytes = (MIB + GIB) / 2;
    const double factor = 2.55e-3 / (35e-6 + bytes * 7 / 8 / 400e9);
    CHECK_NEAR(alone_s("ideal-8x400", ONE_HOST, 1, 4, COLLECTIVE_ALL_GATHER, bytes),
               sqrt(factor) * (15e-6 + bytes * 3 / 4 / 400e9), 1e-9);
}

/* What a plan takes, and what was said of it. */
static double planned_s(const char *cluster, const char *override, int64_t hosts, int64_t gpus,
                        enum collective_op op, double bytes, char *messages, size_t size)
{
    const char *const overrides[] = {override, NULL};
    const struct plan_options options = {0};
    struct cluster_fixture fixture;
    struct layout layout = {0};
    struct plan plan = {0};
    fixture_init(&fixture, cluster, overrides);
    const struct group group = {.ranks = hosts * gpus, .hosts = hosts, .ranks_per_host = gpus};
    CHECK_INT(fixture.status, STATUS_OK);
    CHECK_INT(
        layout_build(&fixture.arena, &fixture.cluster, hosts, gpus, true, &layout, &fixture.diag),
        STATUS_OK);
    CHECK_INT(
        plan_build(&fixture.arena, &layout, &group, op, bytes, &options, &plan, &fixture.diag),
        STATUS_OK);
    const double time_s = plan_alone_s(&layout, &plan);
    snprintf(messages, size, "%s", fixture_messages(&fixture));
    fixture_release(&fixture);
    return time_s;
}

static void test_warnings(void)
{
    char said[1024];
    planned_s("ideal-8x400", ONE_HOST, 1, 8, COLLECTIVE_ALL_GATHER, 16 * MIB, said, sizeof(said));
    CHECK_TEXT(said, "");
    planned_s("ideal-8x400", ONE_HOST, 1, 8, COLLECTIVE_ALL_GATHER, 2 * GIB, said, sizeof(said));
    CHECK_TEXT(said,
               "sizes outside the calibration's 1.0 MiB to 1.0 GiB: extrapolated by the model\n");
    planned_s("ideal-8x400", ONE_HOST, 1, 8, COLLECTIVE_ALL_REDUCE, 16 * MIB, said, sizeof(said));
    CHECK_TEXT(said, "all_reduce over 1 nodes x 8 GPUs is not in the calibration: scaled from "
                     "all_gather over 1 x 8 by the model\n");
    /* A table of one host says nothing of the network. */
    const double alone = alone_s("ideal-64-400", NULL, 2, 8, COLLECTIVE_ALL_GATHER, 16 * MIB);
    CHECK_NEAR(planned_s("ideal-64-400", ONE_HOST, 2, 8, COLLECTIVE_ALL_GATHER, 16 * MIB, said,
                         sizeof(said)),
               alone, 1e-12);
    CHECK_TEXT(said, "the calibration says nothing of all_gather over 2 nodes x 8 GPUs\n");
}

#define TABLE(nodes, gpus, time)                                                                   \
    "{op: all_gather, nodes: " nodes ", gpus_per_node: " gpus                                      \
    ", source: a test, points: [{bytes: "                                                          \
    "16 MiB, time: " time "}]}"

/* A table of a shape that the cluster has not is left out: the next one, or the model, speaks. */
static void test_larger_than_the_cluster(void)
{
    char said[1024];
    const char *of_16 =
        "collectives.calibration={name: measured, tables: [" TABLE("1", "16", "1 ms") "]}";
    const char *of_4_nodes =
        "collectives.calibration={name: measured, tables: [" TABLE("4", "8", "1 ms") "]}";
    const char *of_both = "collectives.calibration={name: measured, tables: [" TABLE(
        "1", "4", "1 ms") ", " TABLE("1", "16", "9 ms") "]}";
    const double model_8 = alone_s("ideal-8x400", NULL, 1, 8, COLLECTIVE_ALL_GATHER, 16 * MIB);
    const double model_4 = alone_s("ideal-8x400", NULL, 1, 4, COLLECTIVE_ALL_GATHER, 16 * MIB);
    CHECK_NEAR(
        planned_s("ideal-8x400", of_16, 1, 8, COLLECTIVE_ALL_GATHER, 16 * MIB, said, sizeof(said)),
        model_8, 1e-12);
    CHECK_CONTAINS(said, "measured on 1 nodes x 16 GPUs, but cluster 'ideal-8x400' has at most "
                         "1 x 8, without NICs: not used\n");
    CHECK_NEAR(planned_s("ideal-8x400", of_4_nodes, 1, 8, COLLECTIVE_ALL_GATHER, 16 * MIB, said,
                         sizeof(said)),
               model_8, 1e-12);
    CHECK_CONTAINS(said, "the calibration says nothing of all_gather over 1 nodes x 8 GPUs\n");
    /* 8 GPUs from 4, cost 2: half of the factor's logarithm. */
    CHECK_NEAR(planned_s("ideal-8x400", of_both, 1, 8, COLLECTIVE_ALL_GATHER, 16 * MIB, said,
                         sizeof(said)),
               model_8 * sqrt(1e-3 / model_4), 1e-9);
}

/* 1 GiB in 1 ms is 940 GB/s through a link of 400: the link's own 2.349 ms stand, latency is gone.
 */
static void test_faster_than_the_links(void)
{
    static const char fast[] =
        "collectives.calibration={name: measured, tables: [{op: all_gather, nodes: 1, "
        "gpus_per_node: 8, source: a test, points: [{bytes: 1 GiB, time: 1 ms}]}]}";
    char said[1024];
    const double time_s =
        planned_s("ideal-8x400", fast, 1, 8, COLLECTIVE_ALL_GATHER, GIB, said, sizeof(said));
    CHECK_NEAR(time_s, GIB * 7 / 8 / 400e9, 1e-9);
    CHECK_TEXT(said, "all_gather was measured faster than the links of cluster 'ideal-8x400' can "
                     "carry it\n");
}

static struct calibration_table measured(enum collective_op op, int64_t nodes, int64_t gpus,
                                         const char *algorithm)
{
    return (struct calibration_table){
        .op = op, .nodes = nodes, .gpus_per_node = gpus, .algorithm = algorithm};
}

/* Index of the table that is taken, -1: none. */
static int64_t found(const struct calibration *calibration, enum collective_op op, int64_t nodes,
                     int64_t gpus)
{
    double weight;
    const struct calibration_table *table = calibration_find(calibration, op, nodes, gpus, &weight);
    CHECK_TRUE(table == NULL || (weight > 0 && weight <= 1));
    return table == NULL ? -1 : table - calibration->tables;
}

static void test_which_table(void)
{
    struct calibration_table tables[] = {
        measured(COLLECTIVE_ALL_REDUCE, 2, 8, NULL),
        measured(COLLECTIVE_REDUCE_SCATTER, 1, 8, NULL),
        measured(COLLECTIVE_ALL_GATHER, 32, 8, NULL),
        measured(COLLECTIVE_ALL_REDUCE, 8, 8, "tree"),
        measured(COLLECTIVE_ALL_REDUCE, 8, 8, NULL),
    };
    struct calibration calibration = {.tables = tables, .table_count = 5};
    CHECK_INT(found(&calibration, COLLECTIVE_ALL_REDUCE, 2, 8), 0);
    CHECK_INT(found(&calibration, COLLECTIVE_ALL_GATHER, 1, 4), 1);
    CHECK_INT(found(&calibration, COLLECTIVE_ALL_REDUCE, 8, 8), 4);
    /* From 8: 2 hosts' all-reduce does not count; 8's costs 1.5, 32's log2 4 = 2. */
    CHECK_INT(found(&calibration, COLLECTIVE_ALL_GATHER, 8, 8), 4);
    CHECK_INT(found(&calibration, COLLECTIVE_REDUCE_SCATTER, 16, 8), 2);
    calibration.table_count = 1;
    CHECK_INT(found(&calibration, COLLECTIVE_ALL_GATHER, 2, 8), -1);
    tables[0].algorithm = "ring";
    CHECK_INT(found(&calibration, COLLECTIVE_ALL_GATHER, 2, 8), 0);
}

const struct check_case calibrate_cases[] = {
    {"times", test_times},
    {"another shape", test_another_shape},
    {"warnings", test_warnings},
    {"faster than the links", test_faster_than_the_links},
    {"which table", test_which_table},
    {"larger than the cluster", test_larger_than_the_cluster},
    {0}};
