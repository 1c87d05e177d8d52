/* tests/unit/schedule/main.c */
#include "schedule_tests.h"

void check_refused(const char *overrides, const char *text)
{
    struct played played;
    check_context("%s", overrides);
    CHECK_INT(played_try(&played, TWO_BLOCKS, overrides), STATUS_INPUT);
    CHECK_INT(played.diag.error_count, 1);
    const char *messages = played_messages(&played);
    CHECK_CONTAINS(messages, text);
    CHECK_CONTAINS(messages, "<command line>:1:");
    CHECK_CONTAINS(messages, "= ");
    played_release(&played);
    check_context(NULL);
}

void check_refusals(const struct refusal *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_refused(rows[i].overrides, rows[i].text);
}

void check_volumes(const char *config, const struct volume *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, config, rows[i].overrides)) {
            CHECK_NEAR(played.outcome.comm_bytes_per_gpu, rows[i].bytes, 1e-8);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

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
                                         {"float8_gather", float8_gather_cases},
                                         {"ddp", ddp_cases},
                                         {"zero", zero_cases},
                                         {"zero blocking", zero_blocking_cases},
                                         {"hsdp", hsdp_cases},
                                         {"tensor_parallel", schedule_tensor_parallel_cases},
                                         {"host_syncs", host_syncs_cases},
                                         {"offload", offload_cases},
                                         {"outputs", output_cases},
                                         {"program_memory", program_memory_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
