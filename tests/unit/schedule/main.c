/* tests/unit/schedule/main.c */
#include "schedule_tests.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"fsdp2_forward", forward_cases},
                                         {"fsdp2_backward", backward_cases},
                                         {"fsdp2_units", units_cases},
                                         {"fsdp2_memory", memory_cases},
                                         {"fsdp2_options", fsdp2_options_cases},
                                         {"accumulation", accumulation_cases},
                                         {"wrap", wrap_cases},
                                         {"frozen", frozen_cases},
                                         {"mesh", mesh_cases},
                                         {"policy", policy_cases},
                                         {"optimizer", optimizer_cases},
                                         {"fsdp1", fsdp1_cases},
                                         {"fsdp1_played", fsdp1_played_cases},
                                         {"lora", lora_cases},
                                         {"ddp", ddp_cases},
                                         {"zero", zero_cases},
                                         {"hsdp", hsdp_cases},
                                         {"host_syncs", host_syncs_cases},
                                         {"offload", offload_cases},
                                         {"program_memory", program_memory_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
