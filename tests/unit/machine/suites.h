/* tests/unit/machine/suites.h: one table a file. */
#include "check.h"

extern const struct check_case allocator_cases[], units_cases[], machine_cases[],
    contention_cases[], host_cases[], host_run_cases[], retry_cases[], sharing_cases[],
    transfer_cases[], jitter_cases[];
