/* tests/unit/run/main.c */
#include "run_tests.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"outcome", outcome_cases},
                                         {"throughput", throughput_cases},
                                         {"experiment", experiment_cases},
                                         {"training_cost", training_cost_cases},
                                         {"fitting", fitting_cases},
                                         {"saving", saving_cases},
                                         {"loading", loading_cases},
                                         {"samples", samples_cases},
                                         {"client", client_cases},
                                         {"key", key_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
