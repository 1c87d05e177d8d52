/* tests/unit/machine/test_units.c: the engine fixtures of the worked examples, in milliseconds. */
#include "check.h"
#include "suites.h"
#include "units.h"

#define MS INT64_C(1000000000)

static void test_three_units(void)
{
    struct units units = units_equal(3, 25, 50, 10, 10);
    units_play(&units);
    CHECK_INT(units.forward_ps, 85 * MS);
    CHECK_INT(units.backward_ps, 160 * MS);
    units = units_equal(3, 25, 50, 10, 10);
    units.is_host_late = true;
    units_play(&units);
    CHECK_INT(units.forward_ps, 85 * MS);
    CHECK_INT(units.backward_ps, 170 * MS);
}

/* Per unit in steady state: what sixteen units more cost. */
static void check_steady(double backward_ms, bool has_own_communicator, int64_t expected_ms)
{
    struct units few = units_equal(16, 10, backward_ms, 15, 15);
    struct units many = units_equal(32, 10, backward_ms, 15, 15);
    few.has_own_communicator = many.has_own_communicator = has_own_communicator;
    units_play(&few);
    units_play(&many);
    CHECK_INT(many.forward_ps - few.forward_ps, MS * 16 * 15);
    CHECK_INT(many.backward_ps - few.backward_ps, 16 * expected_ms * MS);
}

static void test_shared_communicator(void)
{
    check_steady(20, false, 30);
    check_steady(20, true, 20);
    check_steady(10, false, 30);
    check_steady(10, true, 15);
}

static void test_reduce_scatter_buffers(void)
{
    struct units units = units_equal(32, 1, 0, 1, 0);
    units.is_resharded = false;
    for (int32_t i = 0; i < 32; i++) {
        const bool is_short = (31 - i) % 4 < 2;
        units.backward_ms[i] = is_short ? 2 : 20;
        units.scatter_ms[i] = is_short ? 18 : 2;
    }
    units_play(&units);
    CHECK_INT(units.backward_ps, 482 * MS);
    units.scatter_buffers = 2;
    units_play(&units);
    CHECK_INT(units.backward_ps, 354 * MS);
}

const struct check_case units_cases[] = {
    {"three units", test_three_units},
    {"shared communicator", test_shared_communicator},
    {"reduce-scatter buffers", test_reduce_scatter_buffers},
    {0},
};
