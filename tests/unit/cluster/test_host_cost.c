/*
 * tests/unit/cluster/test_host_cost.c: what a kernel of an eager block costs the host, against
 * published decode steps. A step of generation is a forward without autograd that waits for the
 * host; measured ratios make a training step's block of it (results/measured/host/README.md):
 *
 *   forward  = step / layers x (forward with autograd / without) x kernels of the block / of the
 * step backward = forward x (backward / forward)
 *
 * H100: 17.0 ms / 28 x 1.199 x 40 / 42 = 693 us, 21.7 us for each of 32 kernels.
 */
#include <math.h>

#include "base/strbuf.h"
#include "cluster_fixture.h"
#include "cluster_tests.h"
#include "config/csv_table.h"

#define MEASURED FSDPSIM_SOURCE_DIR "/results/measured/host/"

/* Kernels of a Llama block as they are played: tests/golden/two-blocks.program. */
enum { PLAYED_FORWARD = 32, PLAYED_BACKWARD = 55, BLOCK_KERNELS = 40 };

static const char *text(const struct csv_table *table, const struct csv_row *row, const char *name)
{
    return row->items[csv_column(table, name)].text;
}

static double number(const struct csv_table *table, const struct csv_row *row, const char *name)
{
    double value = (double)NAN;
    CHECK_TRUE(text_to_double(text(table, row, name), &value));
    return value;
}

static struct csv_table load(struct arena *arena, const char *name)
{
    struct csv_table table;
    struct diag diag;
    diag_init(&diag, arena);
    CHECK_INT(csv_load(arena, arena_printf(arena, MEASURED "%s", name), &table, &diag), STATUS_OK);
    return table;
}

/* Microseconds of a pass of the Llama block with one version of PyTorch, profiler off. */
static double block_us(const struct csv_table *table, const char *torch, const char *pass)
{
    for (int32_t i = 0; i < table->rows.count; i++) {
        const struct csv_row *row = &table->rows.items[i];
        if (text_equal(text(table, row, "torch"), torch) &&
            text_equal(text(table, row, "block"), "llama") &&
            text_equal(text(table, row, "pass"), pass) &&
            text_equal(text(table, row, "profiler"), "off"))
            return number(table, row, "us");
    }
    return (double)NAN;
}

/* Mean over the versions. */
static double ratio(const struct csv_table *table, const char *pass, const char *to)
{
    static const char *const versions[] = {"1.13.1", "2.6.0"};
    double sum = 0;
    for (int i = 0; i < 2; i++)
        sum += block_us(table, versions[i], pass) / block_us(table, versions[i], to);
    return sum / 2;
}

static void check_cpu(const char *cpu, double forward_s, double backward_s)
{
    struct arena arena = {0};
    const char *const overrides[] = {arena_printf(&arena, "host.cpu=%s", cpu), NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", overrides);
    CHECK_INT(fixture.status, STATUS_OK);
    check_context("%s", cpu);
    CHECK_NEAR(fixture.cluster.host_cost_s[HOST_KERNEL], forward_s, 0.10);
    CHECK_NEAR(fixture.cluster.host_cost_s[HOST_KERNEL_BACKWARD], backward_s, 0.10);
    check_context(NULL);
    fixture_release(&fixture);
    arena_release(&arena);
}

static void test_decode_steps(void)
{
    static const char *const cpus[] = {"xeon-8480c", "epyc-7742"};
    struct arena arena = {0};
    const struct csv_table block = load(&arena, "eager-block.csv");
    const struct csv_table decode = load(&arena, "decode.csv");
    const double autograd = ratio(&block, "forward", "forward without autograd");
    const double backward = ratio(&block, "backward", "forward");
    CHECK_NEAR(autograd, 1.199, 1e-3);
    CHECK_NEAR(backward, 1.887, 1e-3);
    int used = 0;
    for (int i = 0; i < 2; i++) {
        double log_sum = 0;
        int count = 0;
        for (int32_t k = 0; k < decode.rows.count; k++) {
            const struct csv_row *row = &decode.rows.items[k];
            if (!text_equal(text(&decode, row, "cpu"), cpus[i]))
                continue;
            log_sum += log(number(&decode, row, "ms") * 1e-3 / number(&decode, row, "layers") *
                           BLOCK_KERNELS / number(&decode, row, "kernels"));
            count++;
        }
        const double forward_s = autograd * exp(log_sum / count);
        check_cpu(cpus[i], forward_s / PLAYED_FORWARD, forward_s * backward / PLAYED_BACKWARD);
        used += count;
    }
    CHECK_INT(used, decode.rows.count);
    arena_release(&arena);
}

const struct check_case host_cost_cases[] = {{"decode steps", test_decode_steps}, {0}};
