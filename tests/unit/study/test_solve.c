/*
 * tests/unit/study/test_solve.c: answers that hand arithmetic knows.
 *
 * worked-examples/f: one unit of 1.4 GB on two GPUs, one a host, over b bytes a second and
 * direction; forward 10 ms, backward 20 ms. 700 MB move in each collective.
 *
 *   kept gathered   gather, forward, backward, scatter: step = 1.4 GB / b + 30 ms, all of the
 *                   communication exposed. Half of the step at 1.4 / b = 0.03: b = 46.667 GB/s;
 *                   0.59 s at b = 2.5 GB/s = 20 Gb/s
 *   as it is        the second gather runs under the forward: step = 2.1 GB / b + 20 ms, exposed
 *                   2.1 / b - 10 ms. Half at 2.1 / b = 0.04: b = 52.5 GB/s = 420 Gb/s
 *   N hosts         each GPU sends 3 (N - 1) / N 1.4 GB: 4.0174 GB at N = 23, 4.025 at 24
 */
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "study/solve.h"
#include "study_tests.h"

enum { CONDITIONS_MAX = 4, OVERRIDES_MAX = 8 };

struct solved {
    struct arena arena;
    struct diag diag;
    struct config_cache cache;
    struct knob knob;
    struct condition conditions[CONDITIONS_MAX];
    struct solve solve;
};

struct question {
    const char *config, *vary;
    const char *until[CONDITIONS_MAX];
    const char *overrides[OVERRIDES_MAX];
    enum solve_end wanted;
    double tolerance;
};

static enum status ask(struct solved *solved, const struct question *question)
{
    memset(solved, 0, sizeof(*solved));
    diag_init(&solved->diag, &solved->arena);
    struct solve_request request = {.cache = &solved->cache,
                                    .knob = &solved->knob,
                                    .conditions = solved->conditions,
                                    .overrides = question->overrides,
                                    .wanted = question->wanted,
                                    .tolerance = question->tolerance > 0 ? question->tolerance
                                                                         : solve_default_tolerance};
    request.path =
        arena_printf(&solved->arena, "%s/configs/%s.yaml", FSDPSIM_SOURCE_DIR, question->config);
    for (; question->overrides[request.override_count] != NULL;)
        request.override_count++;
    enum status status = knob_parse(&solved->knob, &solved->arena, question->vary, &solved->diag);
    for (int i = 0; status == STATUS_OK && question->until[i] != NULL; i++) {
        status = condition_parse(&solved->arena, "--until", question->until[i],
                                 &solved->conditions[i], &solved->diag);
        request.condition_count++;
    }
    return status == STATUS_OK ? solve_run(&solved->solve, &solved->arena, &request, &solved->diag)
                               : status;
}

static bool answer(struct solved *solved, const struct question *question)
{
    check_context("%s %s", question->vary, question->until[0]);
    const bool is_answered = CHECK_INT(ask(solved, question), STATUS_OK);
    if (!is_answered)
        (void)CHECK_TEXT(diag_text(&solved->diag, &solved->arena), "");
    return is_answered;
}

static void release(struct solved *solved)
{
    check_context(NULL);
    solve_release(&solved->solve);
    config_cache_release(&solved->cache);
    arena_release(&solved->arena);
}

static double bytes_per_s(const struct solve_point *point)
{
    double value = 0;
    if (point != NULL)
        CHECK_INT(units_parse(point->value, DIM_BANDWIDTH, &value, NULL), UNIT_OK);
    return value;
}

/* ---- continuous --------------------------------------------------------------------------- */

#define NIC "cluster.host.nics.link.bandwidth"
#define KEPT "fsdp.reshard_after_forward=false"

static void test_bandwidth(void)
{
    static const struct {
        struct question question;
        double bytes_per_s;
    } rows[] = {
        {{.config = "worked-examples/f",
          .vary = NIC "=1Gbps:1600Gbps",
          .until = {"exposed_comm_fraction<=50%"},
          .overrides = {KEPT}},
         1.4e9 / 0.03},
        {{.config = "worked-examples/f",
          .vary = NIC "=1Gbps:1600Gbps",
          .until = {"step_time_s<0.59s"},
          .overrides = {KEPT}},
         2.5e9},
        {{.config = "worked-examples/f",
          .vary = NIC "=1Gbps:1600Gbps",
          .until = {"exposed_comm_fraction<=0.5"}},
         52.5e9},
        /* The same in bytes, and finer. */
        {{.config = "worked-examples/f",
          .vary = NIC "=1GB/s:100GB/s",
          .until = {"step_time_s<=0.59s"},
          .overrides = {KEPT},
          .tolerance = 1e-6},
         2.5e9},
        /* Two conditions: the harder one decides. */
        {{.config = "worked-examples/f",
          .vary = NIC "=1Gbps:1600Gbps",
          .until = {"step_time_s<=0.59s", "exposed_comm_fraction<=50%"},
          .overrides = {KEPT}},
         1.4e9 / 0.03},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct solved solved;
        const double tolerance =
            rows[i].question.tolerance > 0 ? rows[i].question.tolerance : solve_default_tolerance;
        if (answer(&solved, &rows[i].question)) {
            const double inside = bytes_per_s(solved.solve.answer);
            const double outside = bytes_per_s(solved.solve.outside);
            CHECK_INT(solved.solve.result, SOLVE_FOUND);
            CHECK_INT(solved.solve.wanted, SOLVE_SMALLEST);
            CHECK_TRUE(outside < inside);
            CHECK_TRUE(inside - outside <= tolerance * inside * (1 + 1e-6));
            CHECK_TRUE(outside <= rows[i].bytes_per_s * (1 + 1e-9));
            CHECK_TRUE(inside >= rows[i].bytes_per_s * (1 - 1e-9));
            CHECK_TRUE(solved.solve.answer->meets && !solved.solve.outside->meets);
            CHECK_INT(solved.solve.metrics[0].trend, TREND_FALLS);
            /* The grid's 17, then log2(0.586 / 0.001) = 9.2 halvings, 10 with the last. */
            CHECK_TRUE(solved.solve.points.count <= 27);
        }
        release(&solved);
    }
}

/* ---- whole numbers ------------------------------------------------------------------------ */

static void test_hosts(void)
{
    struct solved solved;
    const struct question question = {.config = "worked-examples/f",
                                      .vary = "nodes=2:4096",
                                      .until = {"comm_bytes_per_gpu<=4.02GB"}};
    if (answer(&solved, &question)) {
        CHECK_INT(solved.solve.wanted, SOLVE_LARGEST);
        CHECK_TEXT(solved.solve.answer->value, "23");
        CHECK_TEXT(solved.solve.outside->value, "24");
        /* 23 does not divide the unit: 22/23 of it and a little padding. */
        CHECK_NEAR(solved.solve.answer->numbers[0], 3 * 1.4e9 * 22 / 23, 1e-6);
        CHECK_NEAR(solved.solve.outside->numbers[0], 3 * 1.4e9 * 23 / 24, 1e-6);
        CHECK_INT(solved.solve.metrics[0].trend, TREND_RISES);
    }
    release(&solved);
}

/* 60 sequences: as many hosts as divide them. 13 and 14 do not; 12 and 15 do. */
static void test_refused(void)
{
    struct solved solved;
    const struct question question = {
        .config = "worked-examples/f",
        .vary = "nodes=2:60",
        .until = {"n_gpus<=14"},
        .overrides = {"train.global_batch=60", "train.grad_accum=null"}};
    if (answer(&solved, &question)) {
        int32_t between = 0;
        CHECK_TEXT(solved.solve.answer->value, "12");
        CHECK_TEXT(solved.solve.outside->value, "15");
        CHECK_TRUE(!solved.solve.is_cut);
        for (int32_t i = 0; i < solved.solve.points.count; i++) {
            const struct solve_point *point = solved.solve.points.items[i].point;
            if (text_equal(point->value, "13") || text_equal(point->value, "14")) {
                between++;
                CHECK_CONTAINS(point->reason, "cannot be split evenly");
            }
        }
        CHECK_INT(between, 2);
    }
    release(&solved);
}

static void test_steps_and_lists(void)
{
    static const struct {
        struct question question;
        const char *inside, *outside;
    } rows[] = {
        {{.config = "worked-examples/f", .vary = "nodes=2:100:7", .until = {"n_gpus<40"}},
         "37",
         "44"},
        {{.config = "worked-examples/f", .vary = "nodes=log2(2, 1024)", .until = {"n_gpus>=100"}},
         "128",
         "64"},
        {{.config = "worked-examples/f",
          .vary = NIC "=10Gbps:400Gbps:5Gbps",
          .until = {"step_time_s<=0.59s"},
          .overrides = {KEPT}},
         "20Gbps",
         "15Gbps"},
        /* 2.1 / b + 20 ms against 1.4 / b + 30 ms at 1.25 GB/s: 1.70 s, 1.15 s */
        {{.config = "worked-examples/f",
          .vary = "fsdp.reshard_after_forward=true,false",
          .until = {"step_time_s<1.2s"}},
         "false",
         "true"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct solved solved;
        if (answer(&solved, &rows[i].question)) {
            CHECK_TEXT(solved.solve.answer->value, rows[i].inside);
            CHECK_TEXT(solved.solve.outside->value, rows[i].outside);
        }
        release(&solved);
    }
}

/* ---- not monotone ------------------------------------------------------------------------- */

/* 2, 8, 4, 16 hosts: what they are, they are in this order. */
static const struct question zigzag = {
    .config = "worked-examples/f", .vary = "nodes=2,8,4,16", .until = {"n_gpus<=5"}};

static void test_turns(void)
{
    struct solved solved;
    if (answer(&solved, &zigzag)) {
        const struct solve_metric *metric = &solved.solve.metrics[0];
        static const char *const turns[] = {"2", "8", "4", "16"};
        CHECK_INT(metric->trend, TREND_TURNS);
        CHECK_INT(metric->turns.count, 4);
        for (int32_t i = 0; i < 4 && i < metric->turns.count; i++)
            CHECK_TEXT(metric->turns.items[i].point->value, turns[i]);
        CHECK_TRUE(!solved.knob.is_ordered);
        CHECK_INT(solved.solve.intervals.count, 2);
        CHECK_TEXT(solved.solve.intervals.items[0].last->value, "2");
        CHECK_TEXT(solved.solve.intervals.items[1].first->value, "4");
        CHECK_INT(solved.solve.wanted, SOLVE_LARGEST);
        CHECK_TEXT(solved.solve.answer->value, "4");
        CHECK_TEXT(solved.solve.outside->value, "16");
    }
    release(&solved);
}

/* Which end, by where the conditions hold and by what is asked for. */
static void test_ends(void)
{
    static const struct {
        const char *vary, *until;
        enum solve_end wanted, obtained;
        const char *inside, *outside; /* NULL: the range ends */
    } rows[] = {
        {"nodes=2,8,4,16", "n_gpus<=5", SOLVE_SMALLEST, SOLVE_SMALLEST, "2", NULL},
        {"nodes=2,8,4,16", "n_gpus>5", SOLVE_DERIVED, SOLVE_SMALLEST, "8", "2"},
        /* Neither end: the first value that meets it. */
        {"nodes=2,8,4,9,3", "n_gpus>=8", SOLVE_DERIVED, SOLVE_SMALLEST, "8", "2"},
        {"nodes=2,8,4,9,3", "n_gpus>=8", SOLVE_LARGEST, SOLVE_LARGEST, "9", "3"},
        /* Both ends, with a gap: from where on, or up to where, it holds without one. */
        {"nodes=6,2,8,4,16", "n_gpus>=5", SOLVE_DERIVED, SOLVE_SMALLEST, "16", "4"},
        {"nodes=16,2,8,4,6", "n_gpus>=5", SOLVE_DERIVED, SOLVE_LARGEST, "16", "2"},
        /* Everywhere: the end that is nearer to the bound. */
        {"nodes=2:9", "n_gpus<=10", SOLVE_DERIVED, SOLVE_LARGEST, "9", NULL},
        {"nodes=2:9", "n_gpus>=2", SOLVE_DERIVED, SOLVE_SMALLEST, "2", NULL},
        {"nodes=2:9", "n_gpus>=2", SOLVE_LARGEST, SOLVE_LARGEST, "9", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct solved solved;
        const struct question question = {.config = "worked-examples/f",
                                          .vary = rows[i].vary,
                                          .until = {rows[i].until},
                                          .wanted = rows[i].wanted};
        if (answer(&solved, &question)) {
            const struct solve_point *outside = solved.solve.outside;
            CHECK_TEXT(solved.solve.answer->value, rows[i].inside);
            CHECK_TEXT(outside != NULL ? outside->value : NULL, rows[i].outside);
            CHECK_INT(solved.solve.wanted, rows[i].obtained);
        }
        release(&solved);
    }
}

static void test_nothing(void)
{
    struct solved solved;
    const struct question question = {.config = "worked-examples/f",
                                      .vary = NIC "=1Gbps:100Gbps",
                                      .until = {"step_time_s<=0.1s"},
                                      .overrides = {KEPT}};
    if (answer(&solved, &question)) {
        CHECK_INT(solved.solve.result, SOLVE_NOTHING);
        /* 1.4 GB / 12.5 GB/s + 30 ms; 1.4 / 0.125 + 0.03 */
        CHECK_TEXT(solved.solve.answer->value, "100Gbps");
        CHECK_NEAR(solved.solve.answer->numbers[0], 0.142, 1e-9);
        CHECK_NEAR(solve_low(&solved.solve)->numbers[0], 11.23, 1e-9);
        CHECK_TRUE(solved.solve.outside == NULL);
    }
    release(&solved);
}

/* ---- input -------------------------------------------------------------------------------- */

static void test_mistakes(void)
{
    static const char *const rows[][2] = {
        {"nodes", "1: no key and values in 'nodes'"},
        {"=1:4", "1: no key and values in '=1:4'"},
        {"nodes=4", "7: only one value in '4'"},
        {"nodes=", "7: only one value in ''"},
        {"nodes=4:4", "7: nothing between the ends of '4:4'"},
        {"nodes=8:2", "7: nothing between the ends of '8:2'"},
        {"nodes=1:8:0", "7: no step in '1:8:0'"},
        {"nodes=1:8:-1", "7: no step in '1:8:-1'"},
        {"nodes=1:8:9", "7: only one value in '1:8:9'"},
        {"nodes=1:8:2:3", "7: too many ':' in '1:8:2:3'"},
        {"nodes=1:x", "9: not a number: 'x'"},
        {"nodes=:8", "7: not a number: ''"},
        {"nodes=1:9999999999", "7: too many values in '1:9999999999'"},
        {NIC "=25:400Gbps", "37: units do not go together in '25:400Gbps'"},
        {NIC "=25Gbps:4us", "41: units do not go together in '25Gbps:4us'"},
        {"nodes=log2(1,6)", "14: the end is not the start doubled some times: 'log2(1,6)'"},
        {"nodes=1,,2", "9: an empty value for 'nodes'"},
        {"nodes=range(1,2,1)", "7: only one value in 'range(1,2,1)'"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena arena = {0};
        struct diag diag;
        struct knob knob;
        diag_init(&diag, &arena);
        check_context("%s", rows[i][0]);
        CHECK_INT(knob_parse(&knob, &arena, rows[i][0], &diag), STATUS_INPUT);
        CHECK_TEXT(
            arena_printf(&arena, "%d: %s", (int)diag.items[0].place.column, diag.items[0].text),
            rows[i][1]);
        arena_release(&arena);
    }
    check_context(NULL);
}

/* A key that does not exist: its own message, with its place, once. */
static void test_unknown_key(void)
{
    struct solved solved;
    const struct question question = {
        .config = "worked-examples/f", .vary = "nodez=1:4", .until = {"fits"}};
    CHECK_INT(ask(&solved, &question), STATUS_INPUT);
    CHECK_INT(solved.diag.error_count, 1);
    CHECK_TEXT(solved.diag.items[0].text, "unknown key 'nodez'");
    CHECK_INT(solved.diag.items[0].place.column, 1);
    release(&solved);
}

/* Values as -s takes them: no exponent, no digits beyond the tolerance. */
static void test_values(void)
{
    static const struct {
        const char *vary;
        double at;
        int digits;
        const char *value;
    } rows[] = {
        {"x=25Gbps:800Gbps", 76.894612, 5, "76.895Gbps"},
        {"x=25Gbps:800Gbps", 12, 5, "25Gbps"},
        {"x=25Gbps:800Gbps", 900, 5, "800Gbps"},
        {"x=25Gbps:800Gbps", 50.0000001, 5, "50Gbps"},
        {"x=1.0:1e9", 123456789, 5, "123456789"},
        {"x=0.00001:1", 0.000123456, 3, "0.000123"},
        {"x=0us:2us", 1e-9, 3, "0.000000001us"},
        {"x=512MiB:2GiB", 1000.04, 5, "1000MiB"},
        {"x=1:1000000", 999998.6, 5, "1000000"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena arena = {0};
        struct diag diag;
        struct knob knob;
        double at = rows[i].at;
        diag_init(&diag, &arena);
        check_context("%s", rows[i].vary);
        if (CHECK_INT(knob_parse(&knob, &arena, rows[i].vary, &diag), STATUS_OK))
            CHECK_TEXT(knob_value(&knob, &arena, rows[i].digits, &at), rows[i].value);
        arena_release(&arena);
    }
    check_context(NULL);
}

const struct check_case solve_cases[] = {{"bandwidth", test_bandwidth},
                                         {"hosts", test_hosts},
                                         {"refused values", test_refused},
                                         {"steps and lists", test_steps_and_lists},
                                         {"turns", test_turns},
                                         {"ends", test_ends},
                                         {"nothing", test_nothing},
                                         {"mistakes", test_mistakes},
                                         {"unknown key", test_unknown_key},
                                         {"values", test_values},
                                         {0}};
