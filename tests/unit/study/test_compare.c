/*
 * tests/unit/study/test_compare.c: differences that hand arithmetic knows, and sums that must hold.
 *
 * worked-examples/f: one unit of 1.4 GB on N hosts of one GPU over b bytes a second, forward 10 ms,
 * backward 20 ms: t = (N - 1) / N 1.4 GB / b for a collective.
 *
 *   N = 2, 10 Gb/s   t = 0.56 s: 3 t + 20 ms = 1.70 s; forward t + 10 ms, backward 2 t + 10 ms
 *   kept gathered    2 t + 30 ms = 1.15 s: the backward has one gather less and its own 20 ms
 *   N = 4            t = 0.84 s: 2.54 s
 *   20 Gb/s          t = 0.28 s: 0.86 s
 */
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "played.h"
#include "report/report_compare.h"
#include "study/compare.h"
#include "study_tests.h"

struct pair {
    struct played a, b;
    struct arena arena;
    struct compare compare;
};

static bool play(struct pair *pair, const char *config, const char *a, const char *b)
{
    memset(pair, 0, sizeof(*pair));
    const bool has_a = played_play(&pair->a, config, a);
    const bool has_b = played_play(&pair->b, config, b);
    if (has_a && has_b)
        compare_make(&pair->compare, &pair->arena, &pair->a.outcome, &pair->b.outcome);
    check_context("%s: %s against %s", config, a, b);
    return has_a && has_b;
}

static void release(struct pair *pair)
{
    check_context(NULL);
    played_release(&pair->a);
    played_release(&pair->b);
    arena_release(&pair->arena);
}

static const char *words_of(struct pair *pair)
{
    return report_compare_words(&pair->compare, &pair->arena);
}

static double change_of(const struct compare_parts *parts, const char *name)
{
    for (int32_t i = 0; i < parts->count; i++) {
        if (text_equal(parts->items[i].name, name))
            return parts->items[i].b - parts->items[i].a;
    }
    return (double)NAN;
}

static double sum_of(const struct compare_parts *parts)
{
    double sum = 0;
    for (int32_t i = 0; i < parts->count; i++)
        sum += parts->items[i].b - parts->items[i].a;
    return sum;
}

/* The difference of a list is that of the whole, and the largest stands first. */
static void check_parts(const struct compare_parts *parts, double whole, double tolerance)
{
    CHECK_TRUE(fabs(sum_of(parts) - whole) <= tolerance);
    for (int32_t i = 1; i < parts->count; i++)
        CHECK_TRUE(fabs(parts->items[i].b - parts->items[i].a) <=
                   fabs(parts->items[i - 1].b - parts->items[i - 1].a));
}

static void check_sums(const struct compare *compare)
{
    static const double rounding_s = 1e-11; /* of times in whole picoseconds */
    const double step = compare->b->step_time_s - compare->a->step_time_s;
    double units = compare->outside_b_s - compare->outside_a_s;
    check_parts(&compare->time, step, rounding_s);
    check_parts(&compare->phases, step, rounding_s);
    for (int32_t i = 0; i < compare->units.count; i++)
        units += compare->units.items[i].b_s - compare->units.items[i].a_s;
    CHECK_TRUE(fabs(units - step) <= rounding_s);
    check_parts(&compare->memory,
                (double)(compare->b->peak_device_bytes - compare->a->peak_device_bytes), 0);
    check_parts(&compare->memory_units,
                (double)(compare->b->peak_active_bytes - compare->a->peak_active_bytes), 0);
}

/* ---- by hand ------------------------------------------------------------------------------ */

static void test_kept_gathered(void)
{
    struct pair pair;
    if (play(&pair, "worked-examples/f", "", "fsdp.reshard_after_forward=false")) {
        const struct compare *compare = &pair.compare;
        const struct compare_collective *gathers = &compare->collectives.items[0];
        CHECK_TEXT(compare->time.items[0].name, "exposed communication");
        CHECK_NEAR(change_of(&compare->time, "exposed communication"), 1.12 - 1.67, 1e-9);
        CHECK_NEAR(change_of(&compare->time, "compute"), 0, 0);
        CHECK_NEAR(change_of(&compare->phases, "backward"), 0.58 - 1.13, 1e-9);
        CHECK_NEAR(change_of(&compare->phases, "forward"), 0, 0);
        CHECK_INT(compare->units.count, 1);
        CHECK_NEAR(compare->units.items[0].b_s - compare->units.items[0].a_s, -0.55, 1e-9);
        CHECK_TEXT(gathers->op, "all_gather");
        CHECK_INT(gathers->count_a, 2);
        CHECK_INT(gathers->count_b, 1);
        CHECK_NEAR(gathers->alone_a_s, 1.12, 1e-9);
        CHECK_NEAR(gathers->alone_b_s, 0.56, 1e-9);
        CHECK_INT(compare->settings.count, 1);
        CHECK_TEXT(compare->settings.items[0].key, "fsdp.reshard_after_forward");
        CHECK_TEXT(compare->settings.items[0].a, "true");
        CHECK_TEXT(compare->settings.items[0].b, "false");
        CHECK_INT(setting_from(compare->settings.items[0].from_a), FROM_DEFAULT);
        CHECK_INT(setting_from(compare->settings.items[0].from_b), FROM_COMMAND_LINE);
        check_sums(compare);
        const char *words = words_of(&pair);
        CHECK_CONTAINS(words, "B differs from A in fsdp.reshard_after_forward (false instead of "
                              "true).");
        CHECK_CONTAINS(words, "A step of B takes 1.150 s, 32.4 % less than the 1.700 s of A "
                              "(-550 ms): exposed communication -550 ms.");
        CHECK_CONTAINS(words, "Most of it is in the backward (-550 ms).");
        CHECK_CONTAINS(words, "the all_gather over dp_shard: 2 a step, alone 1.120 s in all in A, "
                              "1 and 560 ms in B.");
        CHECK_CONTAINS(words, "Both are bound by NIC out (ideal).");
    }
    release(&pair);
}

static void test_faster_nics(void)
{
    struct pair pair;
    if (play(&pair, "worked-examples/f", "", "cluster.host.nics.link.bandwidth=20Gbps")) {
        CHECK_NEAR(change_of(&pair.compare.time, "exposed communication"), 3 * (0.28 - 0.56), 1e-9);
        CHECK_NEAR(pair.compare.b->step_time_s, 0.86, 1e-9);
        check_sums(&pair.compare);
        CHECK_CONTAINS(words_of(&pair), "A step of B takes 860 ms, 49.4 % less than the 1.700 s");
    }
    release(&pair);
}

/* More GPUs: longer steps of more work. */
static void test_more_hosts(void)
{
    struct pair pair;
    if (play(&pair, "worked-examples/f", "", "nodes=4")) {
        const char *words = words_of(&pair);
        CHECK_NEAR(change_of(&pair.compare.time, "exposed communication"), 3 * (0.84 - 0.56), 1e-9);
        check_sums(&pair.compare);
        CHECK_CONTAINS(words, "A step of B takes 2.540 s, 49.4 % more than the 1.700 s of A");
        CHECK_CONTAINS(words, "4 GPUs instead of 2, 4 tokens a step instead of 2;");
        /* 1 / 1.7 and 1 / 2.54 tokens/s a GPU; 2 / 1.7 and 4 / 2.54 in all: 1.34 times */
        CHECK_CONTAINS(words, "a GPU of B does 0.4 tokens/s, 33.1 % less than the 0.6, the whole "
                              "job 1.6 tokens/s, 33.9 % more than the 1.2.");
        /* Two moments of 4 B a parameter, over 2 and over 4: 8 x 700e6 / 4 = 1.4e9 B. */
        CHECK_NEAR(change_of(&pair.compare.memory, "optimizer"), -1.4e9, 1e-3);
        /* 'nodes' was typed; the batch follows. */
        CHECK_CONTAINS(words, "B differs from A in nodes (4 instead of 2), and ");
    }
    release(&pair);
}

/* 32 equal units: 1450 ms; kept gathered 1145 ms. One row for those that are alike. */
static void test_units(void)
{
    struct pair pair;
    if (play(&pair, "worked-examples/units-32", "", "fsdp.reshard_after_forward=false")) {
        int32_t units = 0;
        CHECK_NEAR(pair.compare.b->step_time_s - pair.compare.a->step_time_s, -0.305, 1e-9);
        for (int32_t i = 0; i < pair.compare.units.count; i++)
            units += pair.compare.units.items[i].count;
        CHECK_INT(units, 32);
        CHECK_TRUE(pair.compare.units.count < 8);
        check_sums(&pair.compare);
    }
    release(&pair);
}

/* ---- sums that must hold ------------------------------------------------------------------ */

static void test_sums(void)
{
    static const char *const rows[][2] = {
        {"", "nodes=4"},
        {"nodes=4", "nodes=4; cluster=dgx-h100-25gbe"},
        {"", "train.activation_checkpointing=none; train.micro_batch=2"},
        {"", "fsdp.reshard_after_forward=false; train.compile=false"},
        {"", "cluster=dgx-a100"},
        {"train.micro_batch=8", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pair pair;
        if (play(&pair, "llama3-8b_dgx-h100", rows[i][0], rows[i][1])) {
            CHECK_TRUE(pair.compare.has_settings && pair.compare.has_units);
            check_sums(&pair.compare);
        }
        release(&pair);
    }
}

/* ---- cases -------------------------------------------------------------------------------- */

static void test_same(void)
{
    struct pair pair;
    if (play(&pair, "worked-examples/f", "nodes=4", "nodes=4")) {
        CHECK_TRUE(pair.compare.is_same_config);
        CHECK_INT(pair.compare.settings.count, 0);
        CHECK_TEXT(
            words_of(&pair),
            arena_printf(
                &pair.arena,
                "A and B are the same configuration. A step takes 2.540 s in both. "
                "Both are bound by NIC out (ideal). A GPU needs %.2f GiB at its "
                "peak in both. Both fit (%.2f GiB free in A, %.2f GiB free in B).",
                (double)pair.a.outcome.peak_device_bytes * 0x1p-30,
                (double)(pair.a.outcome.memory_capacity_bytes - pair.a.outcome.peak_device_bytes) *
                    0x1p-30,
                (double)(pair.a.outcome.memory_capacity_bytes - pair.a.outcome.peak_device_bytes) *
                    0x1p-30));
    }
    release(&pair);
}

static void test_fits(void)
{
    struct pair pair;
    if (play(&pair, "llama3-8b_dgx-h100", "", "train.micro_batch=8")) {
        CHECK_CONTAINS(words_of(&pair), "B does not fit (");
        CHECK_CONTAINS(words_of(&pair), "; A does (");
        compare_make(&pair.compare, &pair.arena, &pair.b.outcome, &pair.a.outcome);
        CHECK_CONTAINS(words_of(&pair), "B fits (");
        compare_make(&pair.compare, &pair.arena, &pair.b.outcome, &pair.b.outcome);
        CHECK_CONTAINS(words_of(&pair), "Neither fits (");
    }
    release(&pair);
}

/* As a sweep stores it: the row of the run alone. */
static void test_row_alone(void)
{
    struct pair pair;
    if (play(&pair, "worked-examples/f", "", "nodes=4")) {
        struct outcome row = pair.b.outcome;
        row.origin_count = 0;
        row.unit_count = 0;
        row.collective_count = 0;
        row.memory_unit_count = 0;
        memset(row.peak_composition, 0, sizeof(row.peak_composition));
        compare_make(&pair.compare, &pair.arena, &pair.a.outcome, &row);
        CHECK_TRUE(!pair.compare.has_settings && !pair.compare.has_units);
        CHECK_TRUE(!pair.compare.has_composition);
        CHECK_INT(pair.compare.settings.count, 1);
        CHECK_TEXT(pair.compare.settings.items[0].key, "n_nodes");
        check_parts(&pair.compare.time, 0.84, 1e-9);
        CHECK_CONTAINS(words_of(&pair), "Not all settings are stored with these runs.");
        CHECK_CONTAINS(words_of(&pair), "by category only (sweep --detail stores them)");
    }
    release(&pair);
}

/* Other models have other units, even where they have the same names. */
static void test_other_model(void)
{
    struct pair pair;
    if (play(&pair, "llama3-8b_dgx-h100", "", "model=llama-2-7b")) {
        CHECK_TRUE(!pair.compare.has_units);
        CHECK_INT(pair.compare.units.count, 0);
        CHECK_INT(pair.compare.memory_units.count, 0);
        CHECK_CONTAINS(words_of(&pair), "The models are not the same");
        check_parts(&pair.compare.time, pair.b.outcome.step_time_s - pair.a.outcome.step_time_s,
                    1e-11);
    }
    release(&pair);
}

/* Another file's keys are one line; what was typed into it keeps its own. */
static void test_settings_inside(void)
{
    struct pair pair;
    if (play(&pair, "llama3-8b_dgx-h100", "nodes=2",
             "nodes=2; cluster=dgx-a100; cluster.host.nics.bandwidth=100Gbps")) {
        int32_t visible = 0;
        bool has_typed = false;
        for (int32_t i = 0; i < pair.compare.settings.count; i++) {
            const struct compare_setting *setting = &pair.compare.settings.items[i];
            if (setting->is_inside)
                continue;
            visible++;
            if (text_equal(setting->key, "cluster"))
                CHECK_TRUE(setting->inside > 10);
            has_typed |= strncmp(setting->key, "cluster.host.nics.", 18) == 0 &&
                         setting_from(setting->from_b) == FROM_COMMAND_LINE;
        }
        CHECK_TRUE(has_typed);
        CHECK_TRUE(visible < 10);
    }
    release(&pair);
}

static void test_setting_from(void)
{
    static const struct {
        const char *origin;
        enum setting_from from;
    } rows[] = {
        {NULL, FROM_NOWHERE},
        {"<command line>", FROM_COMMAND_LINE},
        {"my.yaml:6:8", FROM_FILE},
        {"a:b/c.yaml:12:1", FROM_FILE},
        {"default", FROM_DEFAULT},
        {"default: what the mesh leaves", FROM_OTHERS},
        {"micro_batch x grad_accum x GPUs", FROM_OTHERS},
        {"12:", FROM_OTHERS},
        {":6", FROM_OTHERS},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].origin != NULL ? rows[i].origin : "NULL");
        CHECK_INT(setting_from(rows[i].origin), rows[i].from);
    }
    check_context(NULL);
}

const struct check_case compare_cases[] = {{"kept gathered", test_kept_gathered},
                                           {"faster NICs", test_faster_nics},
                                           {"more hosts", test_more_hosts},
                                           {"units", test_units},
                                           {"sums", test_sums},
                                           {"same", test_same},
                                           {"fits", test_fits},
                                           {"row alone", test_row_alone},
                                           {"other model", test_other_model},
                                           {"settings inside", test_settings_inside},
                                           {"where from", test_setting_from},
                                           {0}};
