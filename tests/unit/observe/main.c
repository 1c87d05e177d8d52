/* tests/unit/observe/main.c */
#include "observe_tests.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"breakdown", breakdown_cases},
                                         {"ledger", ledger_cases},
                                         {"critical path", critical_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
