/* tests/unit/collective/plan_tests.h: what both files of this program use. */
#ifndef FSDPSIM_TESTS_PLAN_TESTS_H
#define FSDPSIM_TESTS_PLAN_TESTS_H

#include "check.h"
#include "collective/plan.h"

extern const struct check_case algorithm_cases[];
extern const struct check_case published_cases[];
extern const struct check_case calibrate_cases[];
extern const struct check_case nccl_log_cases[];

/* Seconds of a collective over all GPUs of a shipped cluster; `override` may be NULL. */
double alone_s(const char *cluster, const char *override, int64_t hosts, int64_t gpus_per_host,
               enum collective_op op, double bytes);

#endif
