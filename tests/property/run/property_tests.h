/* tests/property/run/property_tests.h: the suites, and what they share. */
#ifndef FSDPSIM_TESTS_PROPERTY_TESTS_H
#define FSDPSIM_TESTS_PROPERTY_TESTS_H

#include "check.h"
#include "identities.h"
#include "played.h"

#define TWO_BLOCKS "tests/golden/two-blocks.yaml"

extern const struct check_case cache_cases[];
extern const struct check_case same_cases[];
extern const struct check_case fold_cases[];
extern const struct check_case random_cases[];
extern const struct check_case policies_cases[];
extern const struct check_case policies_fsdp_cases[];
extern const struct check_case policies_offload_cases[];

/* The metrics of both runs are the same but for how many events it took; seconds to 1e-9. */
void check_same_metrics(const struct outcome *a, const struct outcome *b);

#endif
