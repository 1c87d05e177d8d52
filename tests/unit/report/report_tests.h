/* unit/report/report_tests.h: the suites of this program. */
#ifndef FSDPSIM_TESTS_REPORT_TESTS_H
#define FSDPSIM_TESTS_REPORT_TESTS_H

#include "check.h"

extern const struct check_case json_writer_cases[];
extern const struct check_case report_cases[];
extern const struct check_case outcome_cases[];

#endif
