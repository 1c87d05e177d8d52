/* tests/unit/machine/main.c */
#include "suites.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"allocator", allocator_cases},
                                         {"units", units_cases},
                                         {"machine", machine_cases},
                                         {"contention", contention_cases},
                                         {"host", host_cases},
                                         {"host of a run", host_run_cases},
                                         {"retry", retry_cases},
                                         {"sharing", sharing_cases},
                                         {"transfer", transfer_cases},
                                         {"jitter", jitter_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
