/*
 * tests/unit/worked/worked_tests.h: worked examples: hand arithmetic from teaching material, from
 * other simulators and from PyTorch's own schedule, each typed in as a configuration under
 * configs/worked-examples/ and compared with the figure as published or as worked out by hand here.
 */
#ifndef FSDPSIM_TESTS_WORKED_TESTS_H
#define FSDPSIM_TESTS_WORKED_TESTS_H

#include "check.h"
#include "played.h"

/* Sums of a few exact terms: only the last bits may differ. */
#define EXACT 1e-12
/* Closed forms leave out that the caching allocator rounds up to 512 B. */
#define ROUNDED 1e-5

extern const struct check_case states_cases[];
extern const struct check_case activations_cases[];
extern const struct check_case volumes_cases[];
extern const struct check_case engine_cases[];
extern const struct check_case crosscheck_cases[];
extern const struct check_case cases_cases[];
extern const struct check_case cases_time_cases[];
extern const struct check_case cases_memory_cases[];
extern const struct check_case cases_policies_cases[];
extern const struct check_case network_cases[];
extern const struct check_case reserved_cases[];

/* test_cases.c: all-gathers of a step. */
int64_t count_gathers(const struct program *program);

#endif
