/* tests/unit/run/main.c */
#include "run_tests.h"

int main(int argc, char **argv)
{
<<<<<<< HEAD
    const struct check_suite suites[] = {
        {"outcome", outcome_cases},       {"throughput", throughput_cases},
        {"experiment", experiment_cases}, {"training_cost", training_cost_cases},
        {"fitting", fitting_cases},       {"saving", saving_cases},
        {"client", client_cases},         {0}};
=======
    const struct check_suite suites[] = {{"outcome", outcome_cases},
                                         {"throughput", throughput_cases},
                                         {"experiment", experiment_cases},
                                         {"training_cost", training_cost_cases},
                                         {"client", client_cases},
                                         {"key", key_cases},
                                         {0}};
>>>>>>> 1121342 (run, cluster: keys hash what grids of GEMMs hold)
    return check_main(argc, argv, suites);
}
