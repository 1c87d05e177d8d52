/* tests/property/layout/layout_property.h: the suites of this program. */
#ifndef FSDPSIM_TESTS_LAYOUT_PROPERTY_H
#define FSDPSIM_TESTS_LAYOUT_PROPERTY_H

#include "check.h"

extern const struct check_case traffic_fold_cases[];

#endif
