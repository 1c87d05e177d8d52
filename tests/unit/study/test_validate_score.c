/* tests/unit/study/test_validate_score.c: scores by hand. */
#include <math.h>

#include "study/validate_causes.h"
#include "study/validate_private.h"
#include "study_tests.h"

static void test_three_errors(void)
{
    struct arena arena = {0};
    static const double errors[] = {0.10, -0.05, 0.20};
    const struct validate_score score = score_of(&arena, errors, 3);
    CHECK_INT(score.n, 3);
    CHECK_NEAR(score.median_abs_err, 0.10, 1e-12);
    CHECK_NEAR(score.p90_abs_err, 0.18, 1e-12); /* 0.10 + 0.8 x 0.10 */
    CHECK_NEAR(score.bias, 0.10, 1e-12);
    CHECK_NEAR(score.within_10pct, 2.0 / 3.0, 1e-12);
    CHECK_NEAR(score.within_15pct, 2.0 / 3.0, 1e-12);
    arena_release(&arena);
}

static void test_even_count(void)
{
    struct arena arena = {0};
    /* |.| sorted: 0.012 0.034 0.126 0.238; rank of the 90th percentile 2.7 */
    static const double errors[] = {-0.126, 0.034, -0.238, 0.012};
    const struct validate_score score = score_of(&arena, errors, 4);
    CHECK_NEAR(score.median_abs_err, 0.080, 1e-12);
    CHECK_NEAR(score.p90_abs_err, 0.2044, 1e-12);
    CHECK_NEAR(score.bias, -0.057, 1e-12); /* between -0.126 and 0.012 */
    CHECK_NEAR(score.within_10pct, 0.5, 1e-12);
    CHECK_NEAR(score.within_15pct, 0.75, 1e-12);
    arena_release(&arena);
}

static void test_few(void)
{
    struct arena arena = {0};
    static const double one[] = {-0.143};
    const struct validate_score score = score_of(&arena, one, 1);
    CHECK_NEAR(score.median_abs_err, 0.143, 1e-12);
    CHECK_NEAR(score.p90_abs_err, 0.143, 1e-12);
    CHECK_NEAR(score.bias, -0.143, 1e-12);
    const struct validate_score none = score_of(&arena, one, 0);
    CHECK_INT(none.n, 0);
    CHECK_TRUE(isnan(none.median_abs_err) && isnan(none.within_10pct));
    arena_release(&arena);
}

static struct validate_row row_of(const char *source, const char *regime, double error)
{
    return (struct validate_row){.source = source,
                                 .gpu = "g",
                                 .hosts = "one",
                                 .regime = regime,
                                 .is_scored = true,
                                 .step_s = {1.0, 1.0 + error, error},
                                 .memory_bytes = {0.0, 0.0, (double)NAN},
                                 .mfu = {0.0, 0.0, (double)NAN}};
}

/* Source a: 0.02, -0.04, 0.30 (median 0.04); b: 0.16; c only of trust C; d out of scope. */
static void test_groups(void)
{
    struct arena arena = {0};
    struct validate_row rows[] = {row_of("a", "x", 0.02), row_of("a", "x", -0.04),
                                  row_of("a", "y", 0.30), row_of("b", "y", 0.16),
                                  row_of("c", "y", 0.90), row_of("d", NULL, 0.0)};
    struct validation validation = {.rows = rows, .row_count = 6};
    for (int k = 0; k < 6; k++)
        rows[k].line = k + 2;
    rows[3].is_assumed = true;
    rows[0].mfu = (struct validate_pair){0.413, 0.401, 0.401 - 0.413};
    rows[0].mfu_convention = "palm";
    rows[4].is_scored = false;
    rows[5].reason = "no GPU stated";
    rows[5].step_s.error = (double)NAN;
    validation_score(&arena, &validation);
    CHECK_INT(validation.in_scope, 5);
    CHECK_INT(validation.headline.step_time.n, 4);
    CHECK_NEAR(validation.headline.step_time.median_abs_err, 0.10, 1e-12);
    CHECK_NEAR(validation.headline.step_time.mean_source_median, 0.10, 1e-12);
    CHECK_NEAR(validation.without_assumed.step_time.median_abs_err, 0.04, 1e-12);
    CHECK_NEAR(validation.all_trust.step_time.mean_source_median, 1.10 / 3.0, 1e-12);
    CHECK_INT(validation.headline.memory.n, 0);
    CHECK_INT(validation.headline.mfu.n, 1);
    CHECK_NEAR(validation.headline.mfu.bias, -0.012, 1e-12);
    CHECK_INT(validation.by_convention.count, 1);
    CHECK_TEXT(validation.by_convention.items[0].name, "palm");
    CHECK_INT(validation.by_source.count, 4);
    CHECK_NEAR(validation.by_source.items[0].scores.step_time.median_abs_err, 0.04, 1e-12);
    CHECK_INT(validation.by_hosts.count, 1);
    CHECK_INT(validation.by_hosts.items[0].scores.step_time.n, 4);
    CHECK_NEAR(validation.by_hosts.items[0].scores.step_time.mean_source_median, 0.10, 1e-12);
    CHECK_INT(validation.by_regime.count, 2);
    CHECK_NEAR(validation.by_regime.items[1].scores.step_time.bias, 0.23, 1e-12);
    CHECK_INT(validation.exclusions.count, 1);
    CHECK_TEXT(validation.exclusions.items[0].reason, "no GPU stated");
    CHECK_INT(validation.rows[0].line, 6); /* +90 % */
    CHECK_INT(validation.rows[5].line, 7); /* out of scope: last */
    arena_release(&arena);
}

/* YA-001 is in the file that ships, with a cause; YA-007 too, but is near; X is not in it; the
   others do not count. */
static void test_causes(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct validation validation = {0};
    struct validate_causes causes;
    struct validate_row rows[] = {row_of("a", "x", -0.16), row_of("a", "x", 0.15),
                                  row_of("a", "x", 0.50), row_of("a", "x", 0.50),
                                  row_of("a", "x", 0.50)};
    static const char *const labels[] = {"YA-001", "YA-007", "X", "Y", "Z"};
    for (int k = 0; k < 5; k++)
        rows[k].label = labels[k];
    rows[3].is_scored = false;
    rows[4].reason = "no GPU stated";
    validation.rows = rows;
    validation.row_count = 5;
    diag_init(&diag, &arena);
    CHECK_INT(validate_causes_load(&arena, &validation, &causes, &diag), STATUS_OK);
    CHECK_INT(causes.far, 2);
    CHECK_INT(causes.unknown, 1);
    if (CHECK_INT(causes.count, 2)) {
        CHECK_TRUE(causes.items[0].is_known && causes.items[0].text != NULL);
        CHECK_INT(causes.items[0].count, 1);
        CHECK_TEXT(causes.items[0].rows[0]->label, "YA-001");
        CHECK_TRUE(causes.items[1].text == NULL);
        CHECK_TEXT(causes.items[1].rows[0]->label, "X");
    }
    arena_release(&arena);
}

const struct check_case validate_score_cases[] = {{"three errors", test_three_errors},
                                                  {"an even count", test_even_count},
                                                  {"one, none", test_few},
                                                  {"groups and order", test_groups},
                                                  {"causes", test_causes},
                                                  {0}};
