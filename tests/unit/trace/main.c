/* tests/unit/trace/main.c: the timeline, read back by a reader of its own. */
#include "trace_tests.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {
        {"trace", trace_cases}, {"trace of runs", trace_runs_cases}, {0}};
    return check_main(argc, argv, suites);
}
