/* tests/unit/run/run_tests.h: the suites. */
#ifndef FSDPSIM_TESTS_RUN_TESTS_H
#define FSDPSIM_TESTS_RUN_TESTS_H

#include "check.h"
#include "identities.h"
#include "played.h"

#define TWO_BLOCKS "tests/golden/two-blocks.yaml"

extern const struct check_case outcome_cases[];
extern const struct check_case throughput_cases[];
extern const struct check_case experiment_cases[];
extern const struct check_case training_cost_cases[];
extern const struct check_case fitting_cases[];
extern const struct check_case saving_cases[];
extern const struct check_case samples_cases[];
extern const struct check_case loading_cases[];
extern const struct check_case client_cases[];
extern const struct check_case key_cases[];

#endif
