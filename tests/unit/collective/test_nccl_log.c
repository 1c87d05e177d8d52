/* tests/unit/collective/test_nccl_log.c: logs of nccl-tests in their forms, and fits of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collective/calibrate.h"
#include "plan_tests.h"

struct reading {
    struct arena arena;
    struct diag diag;
    struct source source;
    struct nccl_log log;
    enum status status;
};

static void read_text(struct reading *reading, const char *text, const struct nccl_request *request)
{
    *reading = (struct reading){.source = {.name = "x.log", .text = text, .length = strlen(text)}};
    diag_init(&reading->diag, &reading->arena);
    reading->status =
        nccl_log_parse(&reading->arena, &reading->source, request, &reading->log, &reading->diag);
}

static const struct nccl_request nothing = {0};

#define RANKS_2_HOSTS                                                                              \
    "#  Rank  0 Group  0 Pid 1 on a device  0 [0000:0f:00] NVIDIA H100 80GB HBM3\n"                \
    "#  Rank  1 Group  0 Pid 2 on b device  0 [0000:0f:00] NVIDIA H100 80GB HBM3\n"

/* Header rows of the versions, and a row of each: 1 MiB in 100 us out of place, 90 in place. */
static const struct form {
    const char *what, *text;
    double busbw_gb_per_s, in_place_us;
} forms[] = {
    {"2.13 and later",
     "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
     "1048576 131072 float none -1 100.0 10.49 5.24 0 90.0 11.65 5.83 0\n",
     5.24, 90},
    {"error instead of #wrong, no root",
     "# size count type redop time algbw busbw error time algbw busbw error\n"
     "1048576 131072 float none 100.0 10.49 5.24 2e-07 90.0 11.65 5.83 1e-07\n",
     5.24, 90},
    {"neither redop nor root",
     "# size count type time algbw busbw error time algbw busbw error\n"
     "1048576 131072 float 100.0 10.49 5.24 0e+00 90.0 11.65 5.83 0e+00\n",
     5.24, 90},
    {"not checked",
     "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
     "1048576 131072 float none -1 100.0 10.49 5.24 N/A 90.0 11.65 5.83 N/A\n",
     5.24, 90},
    {"cputime and stamps",
     "# size count type redop root cputime algbw busbw #wrong cputime algbw busbw #wrong "
     "timestamp\n"
     "1048576 131072 float none -1 100.0 10.49 5.24 0 90.0 11.65 5.83 0 2025-10-14 10:15:00\n",
     5.24, 90},
    {"percentiles",
     "# size count type redop root time p50 p95 p99 algbw busbw #wrong time p50 p95 p99 algbw "
     "busbw #wrong\n"
     "1048576 131072 float none -1 100.0 99 104 106 10.49 5.24 0 90.0 89 94 96 11.65 5.83 0\n",
     5.24, 90},
    {"out of place only",
     "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
     "1048576 131072 float none -1 100.0 10.49 5.24 0\n",
     5.24, (double)NAN},
    {"no header row, 13 columns",
     "1048576 131072 float none -1 100.0 10.49 5.24 0 90.0 11.65 5.83 0\n", 5.24, 90},
    {"no header row, 12 columns",
     "1048576 131072 float none 100.0 10.49 5.24 0 90.0 11.65 5.83 0\n", 5.24, 90},
    {"no header row, 11 columns of a published table",
     "1048576 131072 float none -1 100.0 10.49 5.24 90.0 11.65 5.83\n", 5.24, 90},
    {"no header row, 11 columns without redop",
     "1048576 131072 float 100.0 10.49 5.24 0 90.0 11.65 5.83 0\n", 5.24, 90},
    {"exponents", "1048576 131072 float none -1 1.0e+02 1.05e1 5.24 0 9e1 11.65 5.83 0\n", 5.24,
     90},
    {"mpirun, colours, CRLF, no line feed at the end",
     "[1,0]<stdout>:# size count type redop root time algbw busbw #wrong time algbw busbw "
     "#wrong\r\n"
     "[1,1]<stdout>:b:27:72 [1] NCCL INFO comm 0x7f rank 1 nranks 2 - Init COMPLETE\r\n"
     "[1,0]<stdout>:\033[32m1048576 131072 float none -1 100.0 10.49 5.24 0 90.0 11.65 5.83 "
     "0\033[0m",
     5.24, 90},
    {"srun --label", "0: 1048576 131072 float none -1 100.0 10.49 5.24 0 90.0 11.65 5.83 0\n", 5.24,
     90},
};

static void test_forms(void)
{
    char text[4096];
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct reading reading;
        check_context("%s", forms[i].what);
        snprintf(text, sizeof(text),
                 "# Collective test starting: all_gather_perf\n" RANKS_2_HOSTS "%s", forms[i].text);
        read_text(&reading, text, &nothing);
        CHECK_TEXT(diag_text(&reading.diag, &reading.arena), "");
        if (CHECK_INT(reading.log.tables.count, 1) &&
            CHECK_INT(reading.log.tables.items[0].rows.count, 1)) {
            const struct nccl_table *table = &reading.log.tables.items[0];
            const struct nccl_row *row = &table->rows.items[0];
            CHECK_INT(table->op, COLLECTIVE_ALL_GATHER);
            CHECK_INT(table->nodes, 2);
            CHECK_INT(table->gpus_per_node, 1);
            CHECK_TEXT(table->device, "NVIDIA H100 80GB HBM3");
            CHECK_INT(row->bytes, 1048576);
            CHECK_INT(row->count, 131072);
            CHECK_NEAR(row->out_of_place.time_s, 100e-6, 1e-12);
            CHECK_NEAR(row->out_of_place.busbw_bytes_per_s, forms[i].busbw_gb_per_s * 1e9, 1e-12);
            if (isnan(forms[i].in_place_us))
                CHECK_TRUE(isnan(row->in_place.time_s));
            else
                CHECK_NEAR(row->in_place.time_s, forms[i].in_place_us * 1e-6, 1e-12);
        }
        arena_release(&reading.arena);
    }
    check_context(NULL);
}

static void test_percentiles(void)
{
    struct reading reading;
    char text[2048];
    snprintf(text, sizeof(text), "# Collective test starting: all_gather_perf\n" RANKS_2_HOSTS "%s",
             forms[5].text);
    read_text(&reading, text, &nothing);
    const struct nccl_times *times = &reading.log.tables.items[0].rows.items[0].out_of_place;
    CHECK_NEAR(times->low_s, 99e-6, 1e-12);
    CHECK_NEAR(times->high_s, 106e-6, 1e-12);
    arena_release(&reading.arena);
}

static void test_several_in_one_text(void)
{
    struct reading reading;
    read_text(&reading,
              "NCCL version 2.20.5+cuda12.4\n"
              "$ mpirun -np 2 -x NCCL_ALGO=Ring -x NCCL_PROTO=LL128 ./build/all_gather_perf -g "
              "1\n" RANKS_2_HOSTS
              "8388608 1048576 float none -1 300.0 27.96 13.98 0 301.0 27.87 13.93 0\n"
              "# Avg bus bandwidth    : 13.9\n"
              "# nccl-tests version 2.18.2 nccl-headers=23007 nccl-library=22907\n"
              "# Collective test starting: alltoall_perf\n" RANKS_2_HOSTS
              "8388608 1048576 float none -1 300.0 27.96 13.98 0 301.0 27.87 13.93 0\n"
              "# Collective test starting: reduce_scatter_perf\n"
              "# nThread 1 nGpus 4 minBytes 8388608 maxBytes 8388608\n"
              "#  Rank  0 Group  0 Pid 1 on a device  0 [0x0f] A\n"
              "#  Rank  1 Group  0 Pid 1 on a device  1 [0x0f] A\n"
              "#  Rank  2 Group  0 Pid 1 on a device  2 [0x0f] A\n"
              "#  Rank  3 Group  0 Pid 1 on a device  3 [0x0f] A\n"
              "8388608 524288 float sum -1 300.0 27.96 20.97 0 301.0 27.87 20.90 0\n",
              &nothing);
    CHECK_INT(reading.status, STATUS_OK);
    if (CHECK_INT(reading.log.tables.count, 2)) {
        const struct nccl_table *tables = reading.log.tables.items;
        CHECK_TEXT(tables[0].algorithm, "ring");
        CHECK_TEXT(tables[0].protocol, "ll128");
        CHECK_TEXT(tables[0].version, "2.20.5");
        CHECK_INT(tables[1].op, COLLECTIVE_REDUCE_SCATTER);
        CHECK_INT(tables[1].nodes, 1);
        CHECK_INT(tables[1].gpus_per_node, 4);
        CHECK_TRUE(tables[1].algorithm == NULL);
    }
    CHECK_CONTAINS(diag_text(&reading.diag, &reading.arena), "'alltoall_perf' is skipped");
    arena_release(&reading.arena);
}

/* busbw / algbw: 2·(n-1)/n = 1.875 of 16; a sum below 1 is a reduce-scatter: 7/8 of 8. */
static void test_inferred(void)
{
    struct reading reading;
    const struct nccl_request one_node = {.nodes = 1};
    read_text(&reading, "8388608 2097152 float sum -1 300.0 27.96 52.43 0 301.0 27.87 52.25 0\n",
              &one_node);
    CHECK_INT(reading.log.tables.items[0].op, COLLECTIVE_ALL_REDUCE);
    CHECK_INT(reading.log.tables.items[0].ranks, 16);
    arena_release(&reading.arena);
    read_text(&reading, "8388608 262144 float sum -1 300.0 27.96 24.47 0 301.0 27.87 24.38 0\n",
              &one_node);
    CHECK_INT(reading.log.tables.items[0].op, COLLECTIVE_REDUCE_SCATTER);
    CHECK_INT(reading.log.tables.items[0].ranks, 8);
    arena_release(&reading.arena);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "no row of nccl-tests in this text"},
        {"# Collective test starting: all_gather_perf\n", "no row of nccl-tests in this text"},
        {"8388608 1 float none -1 300.0 27.96 26.21 301.0 27.87 26.13\n",
         "the text does not say which collective this is"},
        {"# collective: all_reduce\n4 1 float sum -1 5 0 0 5 0 0\n",
         "the text does not say over how many ranks it ran"},
        {"# collective: all_reduce\n# n ranks: 8\n4 1 float sum -1 5 0 0 5 0 0\n",
         "the text does not say over how many nodes it ran"},
        {"# collective: all_reduce\n# n ranks: 8, n nodes: 3\n4 1 float sum -1 5 0 0 5 0 0\n",
         "8 ranks do not fill 3 nodes evenly"},
        {"# collective: all_reduce\n# n ranks: 1, n nodes: 1\n4 1 float sum -1 5 0 0 5 0 0\n",
         "it ran over one rank: nothing was sent"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reading reading;
        check_context("%s", rows[i].text);
        read_text(&reading, rows[i].text, &nothing);
        CHECK_INT(reading.status, STATUS_INPUT);
        CHECK_CONTAINS(diag_text(&reading.diag, &reading.arena), rows[i].message);
        arena_release(&reading.arena);
    }
    check_context(NULL);
}

static void test_names(void)
{
    static const struct {
        const char *name;
        bool is_known;
        enum collective_op op;
    } rows[] = {{"./build/all_reduce_perf_mpi", true, COLLECTIVE_ALL_REDUCE},
                {"AllGather", true, COLLECTIVE_ALL_GATHER},
                {"reduce_scatter", true, COLLECTIVE_REDUCE_SCATTER},
                {"alltoall_perf", true, COLLECTIVE_ALL_TO_ALL},
                {"all_to_all", true, COLLECTIVE_ALL_TO_ALL},
                {"sendrecv_perf", true, COLLECTIVE_SEND_RECV},
                {"broadcast", true, COLLECTIVE_BROADCAST},
                {"reduce_perf", false, COLLECTIVE_ALL_REDUCE},
                {"", false, COLLECTIVE_ALL_REDUCE}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum collective_op op = rows[i].op;
        check_context("%s", rows[i].name);
        CHECK_INT(nccl_op_from_name(rows[i].name, &op), rows[i].is_known);
        CHECK_INT(op, rows[i].op);
        const bool is_read = rows[i].is_known && rows[i].op <= COLLECTIVE_ALL_REDUCE;
        CHECK_INT(nccl_op_from_log(rows[i].name, &op), is_read);
    }
    check_context(NULL);
    CHECK_NEAR(nccl_bus_factor(COLLECTIVE_ALL_REDUCE, 8), 1.75, 1e-12);
    CHECK_NEAR(nccl_bus_factor(COLLECTIVE_ALL_GATHER, 8), 0.875, 1e-12);
    CHECK_NEAR(nccl_bus_factor(COLLECTIVE_ALL_TO_ALL, 8), 0.875, 1e-12);
    CHECK_NEAR(nccl_bus_factor(COLLECTIVE_BROADCAST, 8), 1, 1e-12);
    CHECK_NEAR(nccl_bus_factor(COLLECTIVE_SEND_RECV, 8), 1, 1e-12);
}

/* ---- fits --------------------------------------------------------------------------------- */

/* Rows of an all-gather over 1 x 8 with the given times; repeats of a size are pooled. */
static void fit_rows(struct reading *reading, const double *mib, const double *us, int count,
                     struct calibrate_set *set)
{
    static char text[8192];
    int length =
        snprintf(text, sizeof(text), "# collective: all_gather\n# n ranks: 8, n nodes: 1\n");
    for (int i = 0; i < count; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length,
                           "%.0f 1 float none -1 %.6f - - - - -\n", mib[i] * 1048576, us[i]);
    read_text(reading, text, &nothing);
    CHECK_INT(reading->status, STATUS_OK);
    CHECK_TRUE(calibrate_log(&reading->arena, &reading->log, set, &reading->diag));
    CHECK_INT(set->count, 1);
}

/* 40 us + 10 us a MiB: straight pieces predict what is left out, a curve in logarithms less. */
static void test_linear_chosen(void)
{
    const double mib[] = {1, 2, 4, 8, 16, 32, 64};
    double us[7];
    struct reading reading;
    struct calibrate_set set;
    for (int i = 0; i < 7; i++)
        us[i] = 40 + 10 * mib[i];
    fit_rows(&reading, mib, us, 7, &set);
    const struct calibrate_fit *fit = &set.items[0];
    CHECK_INT(fit->table.fit, CALIBRATION_LINEAR);
    CHECK_NEAR(fit->pieces.a, 40e-6, 1e-6);
    CHECK_NEAR(fit->pieces.b, 10e-6 / 1048576, 1e-6);
    CHECK_TRUE(fit->linear_left_out < 1e-6 && fit->log_log_left_out > 1e-4);
    CHECK_TRUE(fit->max_err < 1e-6);
    CHECK_NEAR(fit->table.floor_s, 50e-6, 1e-9);
    /* 64 MiB · 7/8 in 680 us */
    CHECK_NEAR(fit->best_busbw_bytes_per_s, 64 * 1048576 * 0.875 / 680e-6, 1e-9);
    CHECK_NEAR(calibration_table_s(&fit->table, 3 * 1048576.0), 70e-6, 1e-6);
    calibrate_set_release(&set);
    arena_release(&reading.arena);
}

/* A power law is straight in logarithms: 100 us · MiB^0.7. */
static void test_log_log_chosen(void)
{
    const double mib[] = {1, 2, 4, 8, 16, 32, 64};
    double us[7];
    struct reading reading;
    struct calibrate_set set;
    for (int i = 0; i < 7; i++)
        us[i] = 100 * pow(mib[i], 0.7);
    fit_rows(&reading, mib, us, 7, &set);
    CHECK_INT(set.items[0].table.fit, CALIBRATION_LOG_LOG);
    CHECK_TRUE(set.items[0].log_log_left_out < 1e-6);
    CHECK_NEAR(calibration_table_s(&set.items[0].table, 3 * 1048576.0), 100e-6 * pow(3, 0.7), 1e-6);
    calibrate_set_release(&set);
    arena_release(&reading.arena);
}

/* The example of calibrate.h, and repeats: 4 MiB in 190, 200 and 230 us is 200 of 190 to 230. */
static void test_marks_and_repeats(void)
{
    const double mib[] = {1, 2, 4, 4, 4, 8, 16, 32};
    const double us[] = {100, 250, 190, 230, 200, 400, 800, 1600};
    struct reading reading;
    struct calibrate_set set;
    fit_rows(&reading, mib, us, 8, &set);
    const struct calibrate_fit *fit = &set.items[0];
    CHECK_INT(fit->point_count, 6);
    CHECK_INT(fit->points[2].measured_count, 3);
    CHECK_NEAR(fit->points[2].time_s, 200e-6, 1e-9);
    CHECK_NEAR(fit->points[2].low_s, 190e-6, 1e-9);
    CHECK_NEAR(fit->points[2].high_s, 230e-6, 1e-9);
    CHECK_TRUE(fit->points[1].is_outlier && !fit->points[1].is_falling);
    CHECK_INT(fit->outlier_count, 1);
    CHECK_INT(fit->falling_count, 0);
    /* The curve never falls. */
    double size = 1;
    for (int i = 0; i < 36; i++, size *= 1.1)
        CHECK_TRUE(calibration_table_s(&fit->table, size * 1.1 * 1048576) >=
                   calibration_table_s(&fit->table, size * 1048576) * (1 - 1e-12));
    calibrate_set_release(&set);
    arena_release(&reading.arena);
}

/* Another protocol from 8 MiB on: nothing is off its neighbours, but time falls once. */
static void test_falling(void)
{
    const double mib[] = {1, 2, 4, 8, 16, 32, 64};
    const double us[] = {300, 300, 310, 250, 260, 400, 700};
    struct reading reading;
    struct calibrate_set set;
    fit_rows(&reading, mib, us, 7, &set);
    CHECK_INT(set.items[0].outlier_count, 0);
    CHECK_INT(set.items[0].falling_count, 1);
    CHECK_TRUE(set.items[0].points[3].is_falling);
    calibrate_set_release(&set);
    arena_release(&reading.arena);
}

const struct check_case nccl_log_cases[] = {{"forms", test_forms},
                                            {"percentiles", test_percentiles},
                                            {"several in one text", test_several_in_one_text},
                                            {"inferred", test_inferred},
                                            {"refused", test_refused},
                                            {"names", test_names},
                                            {"linear", test_linear_chosen},
                                            {"log-log", test_log_log_chosen},
                                            {"marks and repeats", test_marks_and_repeats},
                                            {"falling", test_falling},
                                            {0}};
