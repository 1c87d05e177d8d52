#include <stddef.h>

#include "check.h"

extern const struct check_case kernel_cases[], block_cases[], catalog_cases[], checkpoint_cases[],
    float8_cases[], kernels_cases[], lora_cases[], model_abstract_cases[], model_config_cases[],
    model_tree_cases[], transformer_cases[], tensor_parallel_cases[];

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"kernel", kernel_cases},
                                         {"block", block_cases},
                                         {"catalog", catalog_cases},
                                         {"checkpoint", checkpoint_cases},
                                         {"float8", float8_cases},
                                         {"kernels", kernels_cases},
                                         {"lora", lora_cases},
                                         {"model_abstract", model_abstract_cases},
                                         {"model_config", model_config_cases},
                                         {"model_tree", model_tree_cases},
                                         {"transformer", transformer_cases},
                                         {"tensor_parallel", tensor_parallel_cases},
                                         {NULL, NULL}};
    return check_main(argc, argv, suites);
}
