/* tests/unit/schedule/schedule_tests.h: the suites; numbers in comments: statements of
   docs/fsdp2.md. */
#ifndef FSDPSIM_TESTS_SCHEDULE_TESTS_H
#define FSDPSIM_TESTS_SCHEDULE_TESTS_H

#include "check.h"
#include "played.h"
#include "program_balance.h"
#include "program_text.h"

#define TWO_BLOCKS "tests/golden/two-blocks.yaml"

/* Overrides of TWO_BLOCKS that make one error, placed in them, with this text and a hint. */
void check_refused(const char *overrides, const char *text);

struct refusal {
    const char *overrides, *text;
};

void check_refusals(const struct refusal *rows, size_t count);

/* Bytes that a GPU sends in a step of the configuration with these overrides. */
struct volume {
    const char *overrides;
    double bytes;
};

void check_volumes(const char *config, const struct volume *rows, size_t count);

extern const struct check_case forward_cases[];
extern const struct check_case backward_cases[];
extern const struct check_case units_cases[];
extern const struct check_case memory_cases[];
extern const struct check_case fsdp2_options_cases[];
extern const struct check_case accumulation_cases[];
extern const struct check_case wrap_cases[];
extern const struct check_case frozen_cases[];
extern const struct check_case mesh_cases[];
extern const struct check_case policy_cases[];
extern const struct check_case optimizer_cases[];
extern const struct check_case fsdp1_cases[];
extern const struct check_case fsdp1_played_cases[];
extern const struct check_case lora_cases[], float8_gather_cases[];
extern const struct check_case ddp_cases[];
extern const struct check_case zero_cases[];
extern const struct check_case zero_blocking_cases[];
extern const struct check_case hsdp_cases[];
extern const struct check_case schedule_tensor_parallel_cases[];
extern const struct check_case host_syncs_cases[];
extern const struct check_case offload_cases[];
extern const struct check_case output_cases[];
extern const struct check_case program_memory_cases[];

#endif
