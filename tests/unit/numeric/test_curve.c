/* tests/unit/numeric/test_curve.c */
#include "numeric/curve.h"

#include <math.h>
#include <stddef.h>

#include "numeric_tests.h"

/*
 * x = 1, 2, 4 are equal steps h in log x; y = 0, 1, 3. Slopes in units of 1/h: secants 1 and 2, in
 * the middle 2 · min(1, 2, 0.5 · 1.5) = 1.5 (Steffen, eq. 11), at the ends the secants. Half way
 * the cubics are 0.5/8 − 0.5/4 + 1/2 = 0.4375 and 1 − 0.5/8 + 1/4 + 1.5/2 = 1.9375.
 */
static void test_steffen_by_hand(void)
{
    const double x[] = {1, 2, 4}, y[] = {0, 1, 3};
    static const struct {
        double x, expected;
    } rows[] = {{1, 0},     {1.4142135623730951, 0.4375},
                {2, 1},     {2.8284271247461903, 1.9375},
                {4, 3},     {0.5, 0},
                {1e-30, 0}, {-3, 0},
                {4.1, 3},   {1e30, 3}};
    struct curve *curve = curve_new(x, y, 3);
    if (!CHECK_TRUE(curve != NULL))
        return;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        check_context("x = %g", rows[r].x);
        CHECK_NEAR(curve_at(curve, rows[r].x), rows[r].expected, 1e-14);
    }
    check_context(NULL);
    curve_free(curve);
}

/* Linear in log x: half way between 3 and 48 is 12. */
static void test_two_points(void)
{
    const double x[] = {3, 48}, y[] = {0.25, 0.75};
    struct curve *curve = curve_new(x, y, 2);
    if (!CHECK_TRUE(curve != NULL))
        return;
    CHECK_NEAR(curve_at(curve, 12), 0.5, 1e-14);
    CHECK_NEAR(curve_at(curve, 6), 0.375, 1e-14);
    CHECK_NEAR(curve_at(curve, 2), 0.25, 0);
    CHECK_NEAR(curve_at(curve, 50), 0.75, 0);
    curve_free(curve);
}

static void test_one_point(void)
{
    const double x[] = {7}, y[] = {0.635};
    struct curve *curve = curve_new(x, y, 1);
    if (!CHECK_TRUE(curve != NULL))
        return;
    CHECK_NEAR(curve_at(curve, 1), 0.635, 0);
    CHECK_NEAR(curve_at(curve, 7), 0.635, 0);
    CHECK_NEAR(curve_at(curve, 1e9), 0.635, 0);
    curve_free(curve);
}

/* A measured ramp with a plateau: no value leaves the range of its neighbours. */
static void test_no_overshoot(void)
{
    const double x[] = {1e3, 4e3, 64e3, 1e6, 16e6, 256e6};
    const double y[] = {0.02, 0.05, 0.41, 0.83, 0.83, 0.91};
    struct curve *curve = curve_new(x, y, 6);
    if (!CHECK_TRUE(curve != NULL))
        return;
    double last = 0, at = 900;
    for (int i = 0; i < 4300; i++) {
        const double value = curve_at(curve, at);
        at *= 1.003;
        CHECK_TRUE(value >= last && value <= 0.91);
        last = value;
    }
    CHECK_NEAR(curve_at(curve, 4e6), 0.83, 1e-15);
    curve_free(curve);
}

static void test_points_refused(void)
{
    const double nothing = nan("");
    static const double y[] = {1, 2, 3};
    const double not_numbers[] = {1, nothing, 3};
    const double rows[][3] = {{1, 1, 2}, {2, 1, 3},       {0, 1, 2},       {-1, 1, 2},
                              {1, 2, 2}, {1, nothing, 3}, {nothing, 1, 2}, {1, 2, HUGE_VAL}};
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        check_context("row %zu", r);
        CHECK_TRUE(curve_new(rows[r], y, 3) == NULL);
    }
    check_context(NULL);
    CHECK_TRUE(curve_new(y, not_numbers, 3) == NULL);
    CHECK_TRUE(curve_new(y, y, 0) == NULL);
    /* Two numbers whose logarithms are equal. */
    const double near[] = {1e300, nextafter(1e300, HUGE_VAL), 2e300};
    CHECK_TRUE(curve_new(near, y, 3) == NULL);
    curve_free(NULL);
}

static const struct check_case curve_cases[] = {{"Steffen by hand", test_steffen_by_hand},
                                                {"two points", test_two_points},
                                                {"one point", test_one_point},
                                                {"no overshoot", test_no_overshoot},
                                                {"points refused", test_points_refused},
                                                {0}};

int main(int argc, char **argv)
{
    numeric_init();
    const struct check_suite suites[] = {{"curve", curve_cases},
                                         {"fit", fit_cases},
                                         {"minimum", minimum_cases},
                                         {"root", root_cases},
                                         {"distribution", distribution_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
