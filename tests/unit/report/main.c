/* unit/report: JSON, summary, tables, and the table of metrics they are made from. */
#include "report_tests.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"json_writer", json_writer_cases},
                                         {"report", report_cases},
                                         {"outcome", outcome_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
