/* tests/unit/study/main.c: the suites of the study room. */
#include "numeric/curve.h"
#include "study_tests.h"

int main(int argc, char **argv)
{
    numeric_init();
    const struct check_suite suites[] = {{"outcome_wire", outcome_wire_cases},
                                         {"pool", pool_cases},
                                         {"compare", compare_cases},
                                         {"solve", solve_cases},
                                         {"sweep_axis", sweep_axis_cases},
                                         {"sweep_equal", sweep_equal_cases},
                                         {"validate_columns", validate_columns_cases},
                                         {"validate_facts", validate_facts_cases},
                                         {"validate_kernels", validate_kernels_cases},
                                         {"validate_models", validate_models_cases},
                                         {"validate_score", validate_score_cases},
                                         {"validate_run", validate_run_cases},
                                         {"validate_shape", validate_shape_cases},
                                         {"advice", advice_cases},
                                         {"beside", beside_cases},
                                         {"torchtitan_log", torchtitan_log_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
