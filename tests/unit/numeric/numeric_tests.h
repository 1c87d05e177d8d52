/* tests/unit/numeric/numeric_tests.h: the suites of this program. */
#ifndef FSDPSIM_TESTS_NUMERIC_TESTS_H
#define FSDPSIM_TESTS_NUMERIC_TESTS_H

#include "check.h"

extern const struct check_case fit_cases[];
extern const struct check_case minimum_cases[];
extern const struct check_case root_cases[];
extern const struct check_case distribution_cases[];

#endif
