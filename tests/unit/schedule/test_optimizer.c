/*
 * tests/unit/schedule/test_optimizer.c: passes, state and temporary of each optimizer, counted in
 * bytes a parameter by hand from the operands that torch.optim reads and writes.
 */
#include <string.h>

#include "schedule_tests.h"

enum { PARAMETERS = 4000000, RANKS = 2, SHARD = PARAMETERS / RANKS, UNITS = 4 };
#define FOUR_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 1000000, forward: 10 ms, "           \
    "backward: 20 ms}]}; "

static const struct segment *find_update(const struct program *program, const char *name)
{
    for (int32_t i = 0; i < program->segments.count; i++)
        if (strcmp(program->segments.items[i].name, name) == 0)
            return &program->segments.items[i];
    return NULL;
}

static double tensor_bytes(const struct program *program, enum memory_category category,
                           const char *start)
{
    double bytes = 0;
    for (int32_t i = 0; i < program->tensors.count; i++)
        if (program->tensors.items[i].category == category &&
            strncmp(program->tensors.items[i].name, start, strlen(start)) == 0)
            bytes += (double)program->tensors.items[i].bytes;
    return bytes;
}

static void test_variants(void)
{
    /* fp32: p, g and each state element are 4 B.
       AdamW fused: p g m v read, p m v written = 28. foreach: (rw p) + (g, rw m) + (rw v) + (g, rw
       v)
       + 3 passes that read and write one list + (rw p, m, t) = 8 + 12 + 8 + 12 + 24 + 16 = 80.
       SGD with momentum: fused p g b read, p b written = 20; foreach 12 + 8 + 12 + 12 = 44.
       8-bit: p g read, p written, two bytes of moments and 2 · 4/256 of scales read and written. */
    static const struct {
        const char *overrides, *name;
        int32_t kernels;
        double bytes, state_bytes, temporary;
    } rows[] = {
        {"train.optimizer={name: adamw, impl: fused}", "adamw", 1, 28, 8, 0},
        {"train.optimizer={name: adamw, impl: foreach}", "adamw", 8, 80, 8, 4.0 * SHARD},
        {"train.optimizer={name: adamw, impl: forloop}", "adamw", 8 * UNITS, 80, 8,
         4.0 * SHARD / UNITS},
        {"train.optimizer={name: adamw, impl: fused, state_dtype: bf16}", "adamw", 1, 20, 4, 0},
        {"train.optimizer={name: sgd, impl: fused}", "sgd", 1, 20, 4, 0},
        {"train.optimizer={name: sgd, impl: foreach}", "sgd", 4, 44, 4, 0},
        {"train.optimizer={name: adamw_8bit}", "adamw_8bit", 1, 12 + 4 * (1 + 4.0 / 256),
         2 * (1 + 4.0 / 256), 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        char overrides[512];
        snprintf(overrides, sizeof(overrides), FOUR_UNITS "%s", rows[i].overrides);
        if (played_build(&played, "worked-examples/units-3", overrides)) {
            const struct program *program = played.experiment.program;
            const struct segment *update = find_update(program, rows[i].name);
            if (CHECK_TRUE(update != NULL)) {
                double bytes = 0;
                for (int32_t k = 0; k < update->kernel_count; k++)
                    bytes += update->kernels[k].bytes;
                CHECK_INT(update->kernel_count, rows[i].kernels);
                CHECK_NEAR(bytes, rows[i].bytes * SHARD, 1e-12);
            }
            CHECK_NEAR(tensor_bytes(program, MEMORY_OPTIMIZER, ""), rows[i].state_bytes * SHARD,
                       1e-12);
            CHECK_NEAR(tensor_bytes(program, MEMORY_TEMPORARIES, "optimizer_temporary"),
                       rows[i].temporary, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

const struct check_case optimizer_cases[] = {{"passes, state, temporary", test_variants}, {0}};
