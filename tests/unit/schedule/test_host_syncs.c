/* tests/unit/schedule/test_host_syncs.c: waits of the host inside blocks, under every policy. */
#include <string.h>

#include "program_balance.h"
#include "schedule_tests.h"

static const char *const apis[] = {"fsdp2", "fsdp1", "ddp", "zero1", "zero2", "zero3"};

static int32_t count_waits(const struct program *program)
{
    int32_t count = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        count +=
            op->kind == OP_HOST_WAIT && strcmp(program->events.items[op->index], "host_sync") == 0;
    }
    return count;
}

static int32_t count_wakes(const struct program *program)
{
    int32_t count = 0;
    for (int32_t i = 0; i < program->step.count; i++)
        if (program->step.items[i].kind == OP_HOST_WORK &&
            program->step.items[i].index == HOST_SYNC_WAKE)
            count += (int32_t)program->step.items[i].count; /* so often the cost is paid */
    return count;
}

static void sum_segments(const struct program *program, double *flop, double *given_s)
{
    *flop = *given_s = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind != OP_SEGMENT)
            continue;
        const struct segment *segment = &program->segments.items[op->index];
        for (int32_t k = 0; k < segment->kernel_count; k++) {
            *flop += segment->kernels[k].flop;
            *given_s += segment->kernels[k].given_s;
        }
    }
}

/* Two blocks, two waits in each forward, two microbatches; twice as many where the forward runs
   again. The work is the same. */
static void test_policies(void)
{
    static const struct {
        const char *overrides;
        int32_t waits;
    } rows[] = {{"train.activation_checkpointing=none", 2 * 2 * 2},
                {"train.activation_checkpointing=full", 2 * 2 * 2 * 2},
                {"train.activation_checkpointing=full; train.compile=true", 2 * 2 * 2 * 2},
                {"model={family: abstract, units: [{repeat: 2, parameters: 960, forward: 3 ms, "
                 "backward: 5 ms}]}",
                 2 * 2 * 2}};
    for (size_t a = 0; a < sizeof(apis) / sizeof(apis[0]); a++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct played with, without;
            char overrides[2][320];
            for (int k = 0; k < 2; k++)
                snprintf(overrides[k], sizeof(overrides[k]),
                         "fsdp={api: %s}; train.grad_accum=2; train.host_syncs=%d; %s", apis[a],
                         2 * k, rows[i].overrides);
            if (played_build(&without, TWO_BLOCKS, overrides[0]) &&
                played_build(&with, TWO_BLOCKS, overrides[1])) {
                double flop[2], given_s[2];
                check_context("%s", overrides[1]);
                CHECK_INT(count_waits(without.experiment.program), 0);
                CHECK_INT(count_waits(with.experiment.program), rows[i].waits);
                sum_segments(without.experiment.program, &flop[0], &given_s[0]);
                sum_segments(with.experiment.program, &flop[1], &given_s[1]);
                CHECK_NEAR(flop[1] + 1, flop[0] + 1, 1e-12);
                CHECK_NEAR(given_s[1] + 1, given_s[0] + 1, 1e-12);
                program_check_balance(with.experiment.program);
                check_context(NULL);
            }
            played_release(&with);
            played_release(&without);
        }
}

#define EXPERTS                                                                                    \
    "model={model_type: mixtral, hidden_size: 16, intermediate_size: 40, num_hidden_layers: 2, "   \
    "num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 96, num_local_experts: 4, "       \
    "num_experts_per_tok: 2}; train.experts=loop; "

/* Two blocks, two microbatches: the host waits at each check of packing, and at each of four
   experts; again where the forward runs again; what `host_syncs` adds comes on top. It wakes up
   behind each. */
static void test_kernels(void)
{
    static const struct {
        const char *overrides;
        int32_t waits;
    } rows[] = {
        {"train.packed_sequence_check=true; train.activation_checkpointing=none", 2 * 2},
        {"train.packed_sequence_check=true; train.activation_checkpointing=full", 2 * 2 * 2},
        {"train.packed_sequence_check=true; train.activation_checkpointing=full; "
         "train.compile=true",
         2 * 2 * 2},
        {"train.packed_sequence_check=true; train.activation_checkpointing=none; "
         "train.host_syncs=2",
         2 * 2 * (1 + 2)},
        {EXPERTS "train.activation_checkpointing=none", 2 * 2 * 4},
        {EXPERTS "train.activation_checkpointing=full; train.packed_sequence_check=true",
         2 * 2 * 2 * (4 + 1)}};
    for (size_t a = 0; a < sizeof(apis) / sizeof(apis[0]); a++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct played played;
            char overrides[480];
            snprintf(overrides, sizeof(overrides), "fsdp={api: %s}; train.grad_accum=2; %s",
                     apis[a], rows[i].overrides);
            check_context("%s", overrides);
            if (played_build(&played, TWO_BLOCKS, overrides)) {
                CHECK_INT(count_waits(played.experiment.program), rows[i].waits);
                CHECK_INT(count_wakes(played.experiment.program), rows[i].waits);
                program_check_balance(played.experiment.program);
            }
            played_release(&played);
        }
    check_context(NULL);
}

const struct check_case host_syncs_cases[] = {
    {"every policy", test_policies}, {"kernels that are waited for", test_kernels}, {0}};
