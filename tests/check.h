/*
 * tests/check.h: CUnit with expected and obtained values, and an exit status that tells the truth.
 *
 * CUnit's runner returns 0 after failed asserts; check_main returns 1 when an assert failed or when
 * nothing ran, and prints a closing line "N passed, N failed" (tests). A suite is a table of cases:
 *
 *   static const struct check_case cases[] = {{"ring of 8", test_ring_of_8}, {0}};
 *   int main(int argc, char **argv)
 *   {
 *       const struct check_suite suites[] = {{"plan", cases}, {0}};
 *       return check_main(argc, argv, suites);   // argument: only suites or cases that contain it
 *   }
 */
#ifndef FSDPSIM_TESTS_CHECK_H
#define FSDPSIM_TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct check_case {
    const char *name;
    void (*run)(void);
};
struct check_suite {
    const char *name;
    const struct check_case *cases;
};

int check_main(int argc, char **argv, const struct check_suite *suites);

/* A word for the messages of the checks that follow (a table row's name); NULL: none. */
void check_context(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool check_int_at(const char *file, int line, const char *what, int64_t obtained, int64_t expected);
bool check_u64_at(const char *file, int line, const char *what, uint64_t obtained,
                  uint64_t expected);
bool check_near_at(const char *file, int line, const char *what, double obtained, double expected,
                   double relative_tolerance);
bool check_text_at(const char *file, int line, const char *what, const char *obtained,
                   const char *expected);
bool check_contains_at(const char *file, int line, const char *what, const char *obtained,
                       const char *expected_part);
bool check_true_at(const char *file, int line, const char *what, bool obtained);

/* Each records one CUnit assert, prints expected and obtained on failure, returns whether it held.
 */
#define CHECK_INT(obtained, expected)                                                              \
    check_int_at(__FILE__, __LINE__, #obtained, (int64_t)(obtained), (int64_t)(expected))
#define CHECK_U64(obtained, expected)                                                              \
    check_u64_at(__FILE__, __LINE__, #obtained, (uint64_t)(obtained), (uint64_t)(expected))
#define CHECK_NEAR(obtained, expected, relative_tolerance)                                         \
    check_near_at(__FILE__, __LINE__, #obtained, (obtained), (expected), (relative_tolerance))
#define CHECK_TEXT(obtained, expected)                                                             \
    check_text_at(__FILE__, __LINE__, #obtained, (obtained), (expected))
#define CHECK_CONTAINS(obtained, part)                                                             \
    check_contains_at(__FILE__, __LINE__, #obtained, (obtained), (part))
#define CHECK_TRUE(condition) check_true_at(__FILE__, __LINE__, #condition, (condition))

#endif
