/* tests/unit/base/suites.h: the suites of this room, one a file. */
#ifndef FSDPSIM_TESTS_UNIT_BASE_SUITES_H
#define FSDPSIM_TESTS_UNIT_BASE_SUITES_H

#include "check.h"

extern const struct check_case arena_cases[];
extern const struct check_case diag_cases[];
extern const struct check_case hash_cases[];
extern const struct check_case nearest_name_cases[];
extern const struct check_case philox_cases[];
extern const struct check_case shown_text_cases[];
extern const struct check_case status_cases[];
extern const struct check_case strbuf_cases[];
extern const struct check_case units_cases[];
extern const struct check_case units_format_cases[];

#endif
