/* tests/unit/study/study_tests.h: the suites of the study room. */
#ifndef FSDPSIM_TESTS_STUDY_TESTS_H
#define FSDPSIM_TESTS_STUDY_TESTS_H

#include "check.h"

extern const struct check_case advice_cases[];
extern const struct check_case outcome_wire_cases[];
extern const struct check_case beside_cases[];
extern const struct check_case torchtitan_log_cases[];
extern const struct check_case pool_cases[];
extern const struct check_case compare_cases[];
extern const struct check_case solve_cases[];
extern const struct check_case sweep_axis_cases[];
extern const struct check_case sweep_equal_cases[];
extern const struct check_case validate_columns_cases[];
extern const struct check_case validate_facts_cases[];
extern const struct check_case validate_kernels_cases[];
extern const struct check_case validate_models_cases[];
extern const struct check_case validate_score_cases[];
extern const struct check_case validate_run_cases[];
extern const struct check_case validate_shape_cases[];

#endif
