/* tests/unit/worked/main.c */
#include "worked_tests.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"states", states_cases},
                                         {"activations", activations_cases},
                                         {"volumes", volumes_cases},
                                         {"engine", engine_cases},
                                         {"crosscheck", crosscheck_cases},
                                         {"cases", cases_cases},
                                         {"cases in time", cases_time_cases},
                                         {"cases in memory", cases_memory_cases},
                                         {"cases of policies", cases_policies_cases},
                                         {"network", network_cases},
                                         {"reserved", reserved_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
