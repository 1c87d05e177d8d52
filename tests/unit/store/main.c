/* unit/store: what is stored comes back, and no failure damages a file. */
#include "store_fixture.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"store_content", store_content_cases},
                                         {"store_failures", store_failure_cases},
                                         {"store_full", store_full_cases},
                                         {"store_merge", store_merge_cases},
                                         {"store_path", store_path_cases},
                                         {"store_sweep", store_sweep_cases},
                                         {"store_export", store_export_cases},
                                         {"store_validation", store_validation_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
