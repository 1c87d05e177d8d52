/* tests/unit/base/main.c: runs the suites of base/. */
#include "suites.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"arena", arena_cases},
                                         {"diag", diag_cases},
                                         {"hash", hash_cases},
                                         {"nearest_name", nearest_name_cases},
                                         {"philox", philox_cases},
                                         {"shown text", shown_text_cases},
                                         {"status", status_cases},
                                         {"strbuf", strbuf_cases},
                                         {"units", units_cases},
                                         {"units_format", units_format_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
