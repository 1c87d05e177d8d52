/* tests/unit/study/test_torchtitan_log.c: figures of short logs, by hand. */
#include <math.h>
#include <string.h>

#include "study/torchtitan_log.h"
#include "study_tests.h"

static enum status parse(struct arena *arena, const char *text, struct torchtitan_log *log,
                         struct diag *diag)
{
    struct source *source = ARENA_NEW(arena, struct source);
    *source = (struct source){.name = "log", .text = text, .length = strlen(text)};
    diag_init(diag, arena);
    return torchtitan_log_parse(arena, source, log, diag);
}

/* Two ranks, colours; steps 1 and 10 are left out; rates 200, 210, 220, 1,400 of what is left. */
static void test_median(void)
{
    static const char text[] =
        "[rank0]:INFO - \033[31mstep:  1  \033[32mloss: 9.1\033[39m  memory: 1.00GiB(1%)  tps: 7  "
        "mfu: 1%\n"
        "[rank1]:INFO - step:  1  loss: 9.1  memory: 1.00GiB(1%)  tps: 7  mfu: 1.00%\r\n"
        "[rank0]:INFO - step: 10  loss: 8.1  memory: 9.00GiB(1%)  tps: 90  tflops: 1  mfu: 2.0%\n"
        "a line of something else, tps: 3\n"
        "[rank0]:INFO - step: 20  loss: 7.1  memory: 2.50GiB(1%)  tps: 200  tflops: 11.5  mfu: "
        "3.0%\n"
        "[rank1]:INFO - step: 20  loss: 7.1  memory: 2.75GiB(1%)  tps: 220  tflops: 11.7  mfu: "
        "3.2%\n"
        "[rank0]:INFO - step: 30  loss: 7.1  memory: 2.50GiB(1%)  tps: 1,400  mfu: N/A\n"
        "[rank1]:INFO - step: 30  loss: 7.1  memory: 2.50GiB(1%)  tps: 210";
    struct arena arena = {0};
    struct diag diag;
    struct torchtitan_log log;
    if (CHECK_INT(parse(&arena, text, &log, &diag), STATUS_OK)) {
        CHECK_INT(log.lines, 7);
        CHECK_INT(log.lines_used, 4);
        CHECK_INT(log.ranks, 2);
        CHECK_INT(log.first_step, 20);
        CHECK_INT(log.last_step, 30);
        CHECK_NEAR(log.tokens_per_s_per_gpu, 215, 1e-12);
        CHECK_NEAR(log.tflops_per_gpu, 11.6, 1e-12);
        CHECK_NEAR(log.mfu, 0.031, 1e-12);
        CHECK_NEAR(log.reserved_bytes, 2.75 * 1073741824.0, 1e-12);
        /* Ranks 0.15 and 2.85 of 200, 210, 220, 1400. */
        CHECK_NEAR(log.slow_tokens_per_s, 201.5, 1e-12);
        CHECK_NEAR(log.fast_tokens_per_s, 1223, 1e-12);
    }
    arena_release(&arena);
}

/* Without later steps: all but the first line; a single line counts. `wps` of older versions. */
static void test_short(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct torchtitan_log log;
    if (CHECK_INT(parse(&arena, "step: 1  wps: 900\nstep: 2  wps: 6,450\nstep: 3 wps: 6,350\n",
                        &log, &diag),
                  STATUS_OK)) {
        CHECK_NEAR(log.tokens_per_s_per_gpu, 6400, 1e-12);
        CHECK_TRUE(isnan(log.mfu) && isnan(log.reserved_bytes));
    }
    if (CHECK_INT(parse(&arena, "step: 1  tps: 900", &log, &diag), STATUS_OK))
        CHECK_NEAR(log.tokens_per_s_per_gpu, 900, 1e-12);
    arena_release(&arena);
}

/* Memory has the unit that stands behind it; without one it is a mistake. */
static void test_units(void)
{
    static const struct {
        const char *written;
        double bytes;
    } rows[] = {{"27.5GiB(28%)", 27.5 * 1073741824},
                {"28160.00MiB(28%)", 27.5 * 1073741824},
                {"27.5 GB", 27.5e9},
                {"1,024.0MB(1%)", 1.024e9},
                {"0.25TiB", 274877906944.0},
                {"27.5(28%)", -1},
                {"27.5Gb(28%)", -1},
                {"27.5GiBs", -1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena arena = {0};
        struct diag diag;
        struct torchtitan_log log;
        const char *text = arena_printf(&arena, "step: 20  memory: %s  tps: 5\n", rows[i].written);
        check_context("%s", text);
        const bool is_good = rows[i].bytes > 0;
        CHECK_INT(parse(&arena, text, &log, &diag), is_good ? STATUS_OK : STATUS_INPUT);
        if (is_good)
            CHECK_NEAR(log.reserved_bytes, rows[i].bytes, 1e-12);
        arena_release(&arena);
    }
    check_context(NULL);
}

/* Lines without a rate are counted; a log of nothing else, and one of warm-up alone, say so. */
static void test_left_out(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct torchtitan_log log;
    if (CHECK_INT(
            parse(&arena, "step: 11 tps: nan\nstep: 12 tps: 40\nstep: 13 tps: N/A\n", &log, &diag),
            STATUS_OK)) {
        CHECK_INT(log.lines, 1);
        CHECK_INT(log.lines_without_rate, 2);
        CHECK_TRUE(!log.is_warm_up);
    }
    CHECK_INT(parse(&arena, "step: 11 tps: nan\n", &log, &diag), STATUS_INPUT);
    CHECK_CONTAINS(diag.items[0].text, "no line has a rate");
    if (CHECK_INT(parse(&arena, "step: 1 tps: 4\nstep: 10 tps: 5\n", &log, &diag), STATUS_OK))
        CHECK_TRUE(log.is_warm_up);
    arena_release(&arena);
}

/* All mistakes, where they stand: colour codes count as the editor counts them. */
static void test_mistakes(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct torchtitan_log log;
    CHECK_INT(parse(&arena, "step: 3 tps: x\n\033[31mstep: 0 tps: 5\n", &log, &diag), STATUS_INPUT);
    if (CHECK_INT(diag.error_count, 2)) {
        CHECK_INT(diag.items[0].place.line, 1);
        CHECK_INT(diag.items[0].place.column, 14);
        CHECK_INT(diag.items[1].place.line, 2);
        CHECK_INT(diag.items[1].place.column, 12);
    }
    CHECK_INT(parse(&arena, "", &log, &diag), STATUS_INPUT);
    CHECK_INT(parse(&arena, "nothing here\n", &log, &diag), STATUS_INPUT);
    arena_release(&arena);
}

const struct check_case torchtitan_log_cases[] = {
    {"median", test_median},     {"short", test_short},       {"units", test_units},
    {"left out", test_left_out}, {"mistakes", test_mistakes}, {NULL, NULL}};
