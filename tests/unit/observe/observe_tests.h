/* tests/unit/observe/observe_tests.h: one table a file. */
#ifndef FSDPSIM_TESTS_OBSERVE_TESTS_H
#define FSDPSIM_TESTS_OBSERVE_TESTS_H

#include "check.h"

extern const struct check_case breakdown_cases[], ledger_cases[], critical_cases[];

#endif
