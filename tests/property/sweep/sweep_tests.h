/* property/sweep/sweep_tests.h: the suites of this program. */
#ifndef FSDPSIM_TESTS_SWEEP_TESTS_H
#define FSDPSIM_TESTS_SWEEP_TESTS_H

#include "check.h"

extern const struct check_case sweep_kill_cases[];
extern const struct check_case sweep_trouble_cases[];
extern const struct check_case sweep_terminal_cases[];

#endif
