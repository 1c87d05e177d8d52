/* tests/unit/numeric/test_root.c: changes of sign, kept between two points. */
#include <math.h>

#include "numeric/root.h"
#include "numeric_tests.h"

struct counted {
    double at;
    int calls;
};

static double square(double x, void *context)
{
    struct counted *counted = context;
    counted->calls++;
    return x * x - counted->at;
}

static double jump(double x, void *context)
{
    struct counted *counted = context;
    counted->calls++;
    return x < counted->at ? -3.5 : 2;
}

/* Flat far away, as a part of time that bandwidth no longer changes. */
static double hyperbola(double x, void *context)
{
    struct counted *counted = context;
    counted->calls++;
    return 1 / x - 1 / counted->at;
}

static void check_bracket(const struct root_bracket *bracket, double at, double tolerance)
{
    CHECK_TRUE(bracket->low <= at && at <= bracket->high);
    CHECK_TRUE(bracket->high - bracket->low <= tolerance);
    CHECK_TRUE(signbit(bracket->low_value) != signbit(bracket->high_value));
}

static void test_smooth(void)
{
    struct counted counted = {.at = 2};
    struct root_bracket bracket = {0, 4, -2, 14};
    CHECK_TRUE(root_narrow(square, &counted, &bracket, 1e-6));
    check_bracket(&bracket, sqrt(2), 1e-6);
    /* Halving would take log2(4 / 1e-6) = 22. */
    CHECK_TRUE(counted.calls < 15);
}

static void test_falling(void)
{
    struct counted counted = {.at = 2.385};
    struct root_bracket bracket = {0.1, 1000, 10 - 1 / 2.385, 0.001 - 1 / 2.385};
    CHECK_TRUE(root_narrow(hyperbola, &counted, &bracket, 1e-4));
    check_bracket(&bracket, 2.385, 1e-4);
}

static void test_jump(void)
{
    struct counted counted = {.at = 2.385};
    struct root_bracket bracket = {0, 10, -3.5, 2};
    CHECK_TRUE(root_narrow(jump, &counted, &bracket, 1e-9));
    check_bracket(&bracket, 2.385, 1e-9);
    CHECK_TRUE(counted.calls < 100);
}

/* Two numbers have nothing between them, however fine the tolerance. */
static void test_out_of_reach(void)
{
    struct counted counted = {.at = 2.385};
    struct root_bracket bracket = {0, 10, -3.5, 2};
    CHECK_TRUE(!root_narrow(jump, &counted, &bracket, 1e-30));
    CHECK_NEAR(bracket.low, 2.385, 1e-15);
}

const struct check_case root_cases[] = {{"smooth", test_smooth},
                                        {"falling", test_falling},
                                        {"jump", test_jump},
                                        {"out of reach", test_out_of_reach},
                                        {0}};
