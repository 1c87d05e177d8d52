/*
 * tests/unit/cluster/test_holdout.c: attention and memory-bound kernels against measured ones that
 * no table has seen (results/measured/kernels). Cells of at least 30 points must have a median
 * error of at most 10 %.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cluster/gpu_attention.h"
#include "cluster_fixture.h"
#include "cluster_tests.h"
#include "config/csv_table.h"

enum { CELL_MIN = 30 };

static const char *const impl_names[IMPL_COUNT] = {[IMPL_EAGER] = "eager",
                                                   [IMPL_COMPOSITE] = "composite",
                                                   [IMPL_INDUCTOR] = "inductor",
                                                   [IMPL_HAND] = "hand"};

static double number(const struct csv_table *table, const struct csv_row *row, const char *name)
{
    double value = 0;
    int32_t column = csv_column(table, name);
    if (column >= 0)
        CHECK_TRUE(text_to_double(row->items[column].text, &value));
    return value;
}

static bool is(const struct csv_table *table, const struct csv_row *row, const char *name,
               const char *text)
{
    return text_equal(row->items[csv_column(table, name)].text, text);
}

static struct kernel kernel_of(const struct csv_table *table, const struct csv_row *row)
{
    struct kernel kernel = {.name = "held out",
                            .m = (int64_t)number(table, row, "m"),
                            .n = (int64_t)number(table, row, "n"),
                            .k = (int64_t)number(table, row, "k"),
                            .batch = (int64_t)number(table, row, "batch"),
                            .bytes = number(table, row, "bytes"),
                            .is_causal = is(table, row, "causal", "1"),
                            .pass =
                                is(table, row, "pass", "backward") ? PASS_BACKWARD : PASS_FORWARD};
    for (int i = 0; i < KERNEL_KIND_COUNT; i++)
        if (is(table, row, "kernel", kernel_kind_name((enum kernel_kind)i)))
            kernel.kind = (enum kernel_kind)i;
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (is(table, row, "dtype", dtype_name((enum dtype)i)))
            kernel.dtype = (enum dtype)i;
    for (int i = 0; i < IMPL_COUNT; i++)
        if (is(table, row, "impl", impl_names[i]))
            kernel.impl = (enum kernel_impl)i;
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        if (is(table, row, "impl", attention_impl_name((enum attention_impl)i)))
            kernel.attention = (enum attention_impl)i;
    if (kernel.kind == KERNEL_ATTENTION)
        kernel.flop = 4.0 * (double)kernel.batch * (double)kernel.m * (double)kernel.n *
                      (double)kernel.k / (kernel.is_causal ? 2 : 1) *
                      (kernel.pass == PASS_BACKWARD ? 2.5 : 1);
    return kernel;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median error of one kind in a table; `count` receives how many rows it has. */
static double median_error(const struct gpu *gpu, struct arena *arena,
                           const struct csv_table *table, enum kernel_kind kind, int *count)
{
    double *errors = ARENA_ARRAY(arena, double, table->rows.count);
    *count = 0;
    for (int32_t i = 0; i < table->rows.count; i++) {
        const struct csv_row *row = &table->rows.items[i];
        struct kernel kernel = kernel_of(table, row);
        if (kernel.kind != kind)
            continue;
        double seconds = gpu_kernel_burst_s(gpu, &kernel);
        struct kernel copy = {.kind = KERNEL_COPY_IN, .bytes = number(table, row, "copy_bytes")};
        if (copy.bytes > 0)
            seconds += gpu_kernel_burst_s(gpu, &copy);
        errors[(*count)++] = fabs(seconds / (number(table, row, "us") * 1e-6) - 1);
    }
    qsort(errors, (size_t)*count, sizeof(*errors), compare);
    return *count > 0 ? errors[*count / 2] : 0;
}

static void check_file(const char *kind, const char *name)
{
    struct arena arena = {0};
    struct gpu_fixture fixture;
    struct csv_table table = {0};
    struct diag diag;
    diag_init(&diag, &arena);
    gpu_fixture_init(&fixture, name);
    CHECK_INT(fixture.status, STATUS_OK);
    const char *path = arena_printf(&arena, "%s/results/measured/kernels/%s-%s.csv",
                                    FSDPSIM_SOURCE_DIR, kind, name);
    CHECK_INT(csv_load(&arena, path, &table, &diag), STATUS_OK);
    int total = 0;
    for (int i = 0; i < KERNEL_KIND_COUNT; i++) {
        int count = 0;
        double error = median_error(&fixture.gpu, &arena, &table, (enum kernel_kind)i, &count);
        total += count;
        check_context("%s, %s: median %.3f of %d", name, kernel_kind_name((enum kernel_kind)i),
                      error, count);
        if (count >= CELL_MIN)
            CHECK_TRUE(error <= 0.10);
    }
    check_context(NULL);
    CHECK_INT(total, table.rows.count);
    gpu_fixture_release(&fixture);
    arena_release(&arena);
}

static void test_attention(void)
{
    static const char *const names[] = {"a100-sxm4-80gb", "b200-sxm",
                                        "h100-sxm5-80gb", "h200-sxm-141gb",
                                        "l40s",           "rtx-pro-6000-blackwell-server"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_file("attention", names[i]);
}

static void test_memory_bound(void)
{
    static const char *const names[] = {"a100-pcie-40gb", "a100-pcie-80gb",
                                        "a100-sxm4-80gb", "gb200",
                                        "gb300",          "h100-sxm5-80gb",
                                        "h200-sxm-141gb", "l4",
                                        "rtx-5090",       "t4",
                                        "v100-pcie-32gb"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_file("memory", names[i]);
}

const struct check_case holdout_cases[] = {
    {"attention", test_attention}, {"memory-bound kernels", test_memory_bound}, {0}};
