/* tests/unit/base/test_nearest_name.c */
#include <stddef.h>

#include "base/diag.h"
#include "suites.h"

static void test_nearest(void)
{
    static const char *const names[] = {
        "bandwidth", "latency", "count", "nvlink4", "tp", "pp", "reshard_after_forward", NULL};
    static const struct {
        const char *word, *expected;
    } rows[] = {
        {"bandwidth", "bandwidth"},
        {"bandwdith", "bandwidth"},
        {"bandwith", "bandwidth"},
        {"bndwidht", "bandwidth"},
        {"badnwidht", "bandwidth"},
        {"bandw", NULL},
        {"latencyy", "latency"},
        {"cuont", "count"},
        {"nvlnk4", "nvlink4"},
        {"Latency", "latency"},
        {"tq", "tp"},
        {"xy", NULL},
        {"x", NULL},
        {"", NULL},
        {"reshard_after_fwd", NULL},
        {"reshard-after-forward", "reshard_after_forward"},
        {"a_name_far_longer_than_any_name_that_there_is_or_ever_will_be_in_a_table", NULL},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        check_context("'%s'", rows[r].word);
        CHECK_TEXT(nearest_name(rows[r].word, names), rows[r].expected);
    }
    check_context(NULL);
}

const struct check_case nearest_name_cases[] = {{"nearest", test_nearest}, {0}};
