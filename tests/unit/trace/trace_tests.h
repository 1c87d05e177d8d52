/* tests/unit/trace/trace_tests.h: one table a file. */
#ifndef FSDPSIM_TESTS_TRACE_TESTS_H
#define FSDPSIM_TESTS_TRACE_TESTS_H

#include "check.h"
#include "report/trace.h"
#include "trace_reader.h"

extern const struct check_case trace_cases[], trace_runs_cases[];

#endif
