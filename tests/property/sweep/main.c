/* property/sweep: the program itself, as users run it: killed, crashing, out of room, watched. */
#include "sweep_tests.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"sweep", sweep_kill_cases},
                                         {"trouble", sweep_trouble_cases},
                                         {"terminal", sweep_terminal_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
