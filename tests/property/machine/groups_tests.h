/* tests/property/machine/groups_tests.h: one table a file. */
#include "check.h"

extern const struct check_case groups_cases[];
