/* tests/unit/config/main.c: the suites of the config room. */
#include "fixture.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"node", node_cases},
                                         {"bind", bind_cases},
                                         {"override", override_cases},
                                         {"ref", ref_cases},
                                         {"origin", origin_cases},
                                         {"csv_table", csv_table_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
