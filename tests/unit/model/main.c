#include <stddef.h>

#include "check.h"

extern const struct check_case kernel_cases[], llama_block_cases[], model_abstract_cases[],
    model_config_cases[], model_llama_cases[];

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"kernel", kernel_cases},
                                         {"llama_block", llama_block_cases},
                                         {"model_abstract", model_abstract_cases},
                                         {"model_config", model_config_cases},
                                         {"model_llama", model_llama_cases},
                                         {NULL, NULL}};
    return check_main(argc, argv, suites);
}
