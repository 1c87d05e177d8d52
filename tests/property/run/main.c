/* tests/property/run/main.c */
#include <string.h>

#include "property_tests.h"

void check_same_metrics(const struct outcome *a, const struct outcome *b)
{
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++) {
        if (strcmp(metric->name, "events") == 0)
            continue;
        if (metric->kind == METRIC_TEXT) {
            CHECK_TEXT(metric_text(b, metric), metric_text(a, metric));
            continue;
        }
        double value_a = 0, value_b = 0;
        bool has_value = outcome_number(a, metric, &value_a);
        CHECK_INT(outcome_number(b, metric, &value_b), has_value);
        if (has_value && !CHECK_NEAR(value_b, value_a, 1e-9))
            printf("  that was %s\n", metric->name);
    }
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++)
        CHECK_INT(b->peak_composition[i], a->peak_composition[i]);
}

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"same", same_cases},
                                         {"cache", cache_cases},
                                         {"fold", fold_cases},
                                         {"random", random_cases},
                                         {"policies", policies_cases},
                                         {"policies of FSDP", policies_fsdp_cases},
                                         {"policies with offload", policies_offload_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
