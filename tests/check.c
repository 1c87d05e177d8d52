/* tests/check.c: see check.h. */
#include "check.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char context_text[256];

void check_context(const char *format, ...)
{
    if (format == NULL) {
        context_text[0] = '\0';
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(context_text, sizeof(context_text), format, arguments);
    va_end(arguments);
}

static bool record(const char *file, int line, bool held, const char *what)
{
    CU_assertImplementation(held ? CU_TRUE : CU_FALSE, (unsigned)line, what, file, "", CU_FALSE);
    return held;
}

static void complain(const char *file, int line, const char *what)
{
    printf("%s:%d: %s%s%s: ", file, line, context_text, context_text[0] != '\0' ? ": " : "", what);
}

bool check_int_at(const char *file, int line, const char *what, int64_t obtained, int64_t expected)
{
    const bool held = obtained == expected;
    if (!held) {
        complain(file, line, what);
        printf("expected %lld, obtained %lld\n", (long long)expected, (long long)obtained);
    }
    return record(file, line, held, what);
}

bool check_u64_at(const char *file, int line, const char *what, uint64_t obtained,
                  uint64_t expected)
{
    const bool held = obtained == expected;
    if (!held) {
        complain(file, line, what);
        printf("expected 0x%llx, obtained 0x%llx\n", (unsigned long long)expected,
               (unsigned long long)obtained);
    }
    return record(file, line, held, what);
}

bool check_near_at(const char *file, int line, const char *what, double obtained, double expected,
                   double relative_tolerance)
{
    const bool held = fabs(obtained - expected) <= relative_tolerance * fabs(expected);
    if (!held) {
        complain(file, line, what);
        printf("expected %.17g, obtained %.17g (relative tolerance %g)\n", expected, obtained,
               relative_tolerance);
    }
    return record(file, line, held, what);
}

bool check_text_at(const char *file, int line, const char *what, const char *obtained,
                   const char *expected)
{
    const bool held = obtained == expected ||
                      (obtained != NULL && expected != NULL && strcmp(obtained, expected) == 0);
    if (!held) {
        complain(file, line, what);
        printf("expected\n%s\nobtained\n%s\n", expected != NULL ? expected : "(null)",
               obtained != NULL ? obtained : "(null)");
    }
    return record(file, line, held, what);
}

bool check_contains_at(const char *file, int line, const char *what, const char *obtained,
                       const char *expected_part)
{
    const bool held = obtained != NULL && strstr(obtained, expected_part) != NULL;
    if (!held) {
        complain(file, line, what);
        printf("expected a text with\n%s\nobtained\n%s\n", expected_part,
               obtained != NULL ? obtained : "(null)");
    }
    return record(file, line, held, what);
}

bool check_true_at(const char *file, int line, const char *what, bool obtained)
{
    if (!obtained) {
        complain(file, line, what);
        printf("expected true, obtained false\n");
    }
    return record(file, line, obtained, what);
}

static bool is_wanted(int argc, char **argv, const char *suite, const char *name)
{
    if (argc < 2)
        return true;
    return strstr(suite, argv[1]) != NULL || strstr(name, argv[1]) != NULL;
}

int check_main(int argc, char **argv, const struct check_suite *suites)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    for (const struct check_suite *suite = suites; suite->name != NULL; suite++) {
        CU_pSuite added = NULL;
        for (const struct check_case *one = suite->cases; one->name != NULL; one++) {
            if (!is_wanted(argc, argv, suite->name, one->name))
                continue;
            if (added == NULL)
                added = CU_add_suite(suite->name, NULL, NULL);
            if (added == NULL || CU_add_test(added, one->name, one->run) == NULL)
                return 2;
        }
    }
    const CU_ErrorCode error = CU_run_all_tests();
    const unsigned ran = CU_get_number_of_tests_run();
    const unsigned failed = CU_get_number_of_tests_failed();
    const unsigned asserts = CU_get_number_of_asserts();
    const unsigned failed_asserts = CU_get_number_of_failures();
    printf("%u passed, %u failed\n", ran - failed, failed);
    CU_cleanup_registry();
    if (error != CUE_SUCCESS || failed > 0 || failed_asserts > 0)
        return 1;
    if (ran == 0 || asserts == 0) {
        printf("error: nothing ran\n");
        return 1;
    }
    return 0;
}
