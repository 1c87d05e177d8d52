/* tests/unit/numeric/test_fit.c: straight pieces, isotonic regression, quantiles, minima. */
#include <math.h>
#include <stddef.h>

#include "numeric/fit.h"
#include "numeric/minimum.h"
#include "numeric_tests.h"

/* 20 us + x / 2 up to 100, then 0.1 a unit more slowly: all points lie on it. */
static void test_two_pieces(void)
{
    const double x[] = {10, 20, 40, 100, 200, 400, 800};
    double y[7];
    struct pieces pieces;
    for (int i = 0; i < 7; i++)
        y[i] = 20 + 0.5 * x[i] - 0.4 * fmax(0, x[i] - 100);
    CHECK_TRUE(fit_pieces(x, y, 7, &pieces));
    CHECK_NEAR(pieces.a, 20, 1e-9);
    CHECK_NEAR(pieces.b, 0.5, 1e-9);
    CHECK_NEAR(pieces.c, -0.4, 1e-9);
    CHECK_NEAR(pieces.k, 100, 1e-12);
    CHECK_NEAR(pieces_at(&pieces, 300), 20 + 150 - 80, 1e-9);
}

/* Two points and a line through the origin: by relative error b minimises (1 - b)^2 + (1 - 2b/3)^2:
   b = (1 + 2/3) / (1 + 4/9) = 15/13; with a latency the line fits both. */
static void test_relative_error(void)
{
    const double x[] = {1, 2};
    const double line[] = {1, 3};
    struct pieces pieces;
    CHECK_TRUE(fit_pieces(x, line, 2, &pieces));
    /* y = -1 + 2x would be negative at 0: the latency is left out. */
    CHECK_NEAR(pieces.a, 0, 0);
    CHECK_NEAR(pieces.b, 15.0 / 13, 1e-9);
}

/* A falling line has no slope below zero: the constant that fits 4 and 2 best by relative error is
   (1/4 + 1/2) / (1/16 + 1/4) = 2.4. */
static void test_signs(void)
{
    const double x[] = {1, 2};
    const double falling[] = {4, 2};
    struct pieces pieces;
    CHECK_TRUE(fit_pieces(x, falling, 2, &pieces));
    CHECK_NEAR(pieces.a, 2.4, 1e-9);
    CHECK_NEAR(pieces.b, 0, 0);
    CHECK_TRUE(!fit_pieces(x, falling, 1, &pieces));
}

/* One line and one outlier: errors of the constants are zero without freedom, more with it. */
static void test_errors(void)
{
    const double x[] = {1, 2, 3, 4};
    const double y[] = {3, 5, 7, 10};
    struct pieces pieces;
    CHECK_TRUE(fit_pieces(x, y, 2, &pieces));
    CHECK_NEAR(pieces.a_error, 0, 0);
    CHECK_TRUE(fit_pieces(x, y, 4, &pieces));
    CHECK_TRUE(pieces.a_error > 0 && pieces.b_error > 0 && pieces.chi2 > 0);
}

static void test_isotonic(void)
{
    double y[] = {1, 3, 2, 4, 3.5, 3, 9};
    const double expected[] = {1, 2.5, 2.5, 3.5, 3.5, 3.5, 9};
    fit_isotonic(y, 7);
    for (int i = 0; i < 7; i++)
        CHECK_NEAR(y[i], expected[i], 1e-12);
    double falling[] = {3, 2, 1};
    fit_isotonic(falling, 3);
    CHECK_NEAR(falling[0], 2, 1e-12);
    CHECK_NEAR(falling[2], 2, 1e-12);
}

static void test_quantile(void)
{
    double values[] = {4, 1, 3, 2};
    CHECK_NEAR(quantile(values, 4, 0.5), 2.5, 1e-12);
    CHECK_NEAR(quantile(values, 4, 0.9), 3.7, 1e-12);
    CHECK_TRUE(isnan(quantile(values, 0, 0.5)));
}

const struct check_case fit_cases[] = {{"two pieces", test_two_pieces},
                                       {"relative error", test_relative_error},
                                       {"signs", test_signs},
                                       {"errors", test_errors},
                                       {"isotonic", test_isotonic},
                                       {"quantile", test_quantile},
                                       {0}};

static double kink(double x, void *context)
{
    return fabs(x - *(const double *)context);
}

/* Two valleys: the deeper one is at 7.5, with a hole where nothing is defined. */
static double valleys(double x, void *context)
{
    (void)context;
    if (x > 4 && x < 5)
        return (double)NAN;
    return x < 4.5 ? 1 + fabs(x - 2) : fabs(x - 7.5);
}

static void test_minimum(void)
{
    double least;
    double at = 2.385;
    CHECK_NEAR(minimum_on(kink, &at, 0, 10, 8, 1e-6, &least), 2.385, 1e-5);
    CHECK_TRUE(least < 1e-5);
    CHECK_NEAR(minimum_on(valleys, NULL, 0, 10, 10, 1e-6, NULL), 7.5, 1e-5);
    at = -3; /* outside: the end of the interval */
    CHECK_NEAR(minimum_on(kink, &at, 0, 10, 8, 1e-6, &least), 0, 0);
    CHECK_NEAR(least, 3, 1e-12);
}

const struct check_case minimum_cases[] = {{"minimum", test_minimum}, {0}};
