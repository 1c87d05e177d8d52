/* tests/unit/cluster/cluster_tests.h: the suites of this program. */
#ifndef FSDPSIM_TESTS_CLUSTER_TESTS_H
#define FSDPSIM_TESTS_CLUSTER_TESTS_H

#include "check.h"

extern const struct check_case cluster_cases[];
extern const struct check_case gemm_cases[];
extern const struct check_case gpu_cases[];
extern const struct check_case group_cases[];
extern const struct check_case holdout_cases[];
extern const struct check_case host_cost_cases[];
extern const struct check_case import_cases[];
extern const struct check_case import_ring_cases[];
extern const struct check_case import_table_cases[];
extern const struct check_case layout_cases[];
extern const struct check_case partition_cases[];
extern const struct check_case traffic_cases[];

#endif
