/* tests/unit/numeric/test_distribution.c: quantiles against tables and by hand. */
#include <math.h>

#include "numeric/distribution.h"
#include "numeric/sobol.h"
#include "numeric_tests.h"

/* Tables of the normal law. */
static void test_normal(void)
{
    CHECK_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
    CHECK_NEAR(normal_quantile(0.25), -0.6744897501960817, 1e-12);
    CHECK_NEAR(lognormal_of_normal(1.5, 0.2), exp(0.3 - 0.02), 1e-15);
    CHECK_NEAR(lognormal_of_normal(1.5, 0), 1, 0);
}

/* (1/2)^(1/64) = 0.989228 = Phi(2.29831); one draw is the law itself. */
static void test_largest(void)
{
    CHECK_NEAR(normal_max_quantile(0.5, 64), 2.2983131313834018, 1e-9);
    CHECK_NEAR(normal_max_quantile(0.5, 16384), 3.9309499018503997, 1e-9);
    CHECK_NEAR(normal_max_quantile(0.975, 1), 1.959963984540054, 1e-12);
    CHECK_TRUE(isfinite(normal_max_quantile(1 - 0x1p-53, 1e9)));
    CHECK_TRUE(isfinite(normal_max_quantile(0x1p-54, 1)));
}

/* The mean of the largest of 8 is 1.42360 (tables of order statistics): the mean of its quantiles
   over an even grid. */
static void test_mean_of_largest(void)
{
    enum { STEPS = 20000 };
    double sum = 0;
    for (int i = 0; i < STEPS; i++)
        sum += normal_max_quantile((i + 0.5) / STEPS, 8);
    CHECK_NEAR(sum / STEPS, 1.4236003, 1e-4);
}

static void test_unit(void)
{
    CHECK_NEAR(unit_of_bits(0), 0x1p-53, 0);
    CHECK_TRUE(unit_of_bits(UINT64_MAX) < 1);
    CHECK_NEAR(unit_of_bits(UINT64_C(1) << 63), 0.5, 1e-15);
}

/* Type 7 of 10, 20, 40, 80: h = 3 p; p = 0.5: half way from 20 to 40, p = 0.95: 2.85. */
static void test_quantile(void)
{
    const double sorted[] = {10, 20, 40, 80};
    CHECK_NEAR(sample_quantile(sorted, 4, 0.5), 30, 1e-15);
    CHECK_NEAR(sample_quantile(sorted, 4, 0.95), 40 + 0.85 * 40, 1e-12);
    CHECK_NEAR(sample_quantile(sorted, 4, 1), 80, 0);
    CHECK_NEAR(sample_quantile(sorted, 1, 0.05), 10, 0);
}

/* Ranks of 3.5, 1, 9, 2 are 3, 1, 4, 2; of y 2, 1, 4, 3: 1 - 6 (1 + 0 + 0 + 1) / (4 · 15) = 0.8.
   What does not vary goes with nothing. */
static void test_rank_correlation(void)
{
    const double x[] = {3.5, 1, 9, 2}, y[] = {20, 10, 40, 30}, flat[] = {7, 7, 7, 7};
    double work[8];
    CHECK_NEAR(rank_correlation(x, y, 4, work), 0.8, 1e-12);
    CHECK_NEAR(rank_correlation(x, flat, 4, work), 0, 0);
    CHECK_NEAR(rank_correlation(x, y, 1, work), 0, 0);
}

/* The first points of the sequence, without the origin (Bratley and Fox, TOMS 14, 1988). */
static void test_sobol(void)
{
    static const double expected[][2] = {{0.5, 0.5},     {0.75, 0.25},   {0.25, 0.75},
                                         {0.375, 0.375}, {0.875, 0.875}, {0.625, 0.125}};
    struct sobol *sobol = sobol_new(2);
    double point[2];
    double sums[2] = {0, 0};
    for (int i = 0; i < 127; i++) {
        sobol_next(sobol, point);
        for (int k = 0; k < 2; k++) {
            if (i < 6)
                CHECK_NEAR(point[k], expected[i][k], 0);
            sums[k] += point[k];
        }
    }
    /* 127 points and the origin are each of 0/128 … 127/128 once. */
    CHECK_NEAR(sums[0], 127.0 / 2, 1e-12);
    CHECK_NEAR(sums[1], 127.0 / 2, 1e-12);
    sobol_free(sobol);
    sobol_free(NULL);
}

const struct check_case distribution_cases[] = {{"Sobol's sequence", test_sobol},
                                                {"normal", test_normal},
                                                {"largest of n", test_largest},
                                                {"mean of the largest", test_mean_of_largest},
                                                {"open unit interval", test_unit},
                                                {"quantile", test_quantile},
                                                {"rank correlation", test_rank_correlation},
                                                {0}};
