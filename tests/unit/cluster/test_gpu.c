/* tests/unit/cluster/test_gpu.c: kernel times by hand, from the figures of the H100 file. */
#include "check.h"
#include "cluster_fixture.h"
#include "cluster_tests.h"

/* 2 * 8192 * 14336 * 4096 FLOP lie between the bins at 724.1 (0.789) and 1448 GFLOP (0.778). */
static void test_gemm(void)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", NULL);
    struct kernel kernel = {.kind = KERNEL_GEMM,
                            .dtype = DTYPE_BF16,
                            .flop = 2.0 * 8192 * 14336 * 4096,
                            .bytes = 2.0 * (8192 * 4096.0 + 14336 * 4096.0 + 8192 * 14336.0)};
    bool is_memory_bound = true;
    double time_s = gpu_kernel_s(&fixture.cluster.gpu, &kernel, 1, &is_memory_bound);
    CHECK_TRUE(time_s > 962.07e9 / (989.4e12 * 0.789 * 0.88));
    CHECK_TRUE(time_s < 962.08e9 / (989.4e12 * 0.778 * 0.88));
    CHECK_TRUE(!is_memory_bound);
    double slow_s = gpu_kernel_s(&fixture.cluster.gpu, &kernel, 0.8, NULL);
    CHECK_NEAR(slow_s, time_s / 0.8, 1e-12);
    kernel.pass = PASS_BACKWARD;
    CHECK_NEAR(gpu_kernel_s(&fixture.cluster.gpu, &kernel, 1, NULL), time_s / 0.89, 1e-12);
    fixture_release(&fixture);
}

static void test_kinds(void)
{
    static const struct {
        struct kernel kernel;
        double clock_frac, expected_s;
        bool is_memory_bound;
    } rows[] = {
        /* copy-out: 436 MB in, 436 MB out at 0.40 of 3350 GB/s; the clock does not matter */
        {{.kind = KERNEL_COPY_OUT, .bytes = 872.4e6}, 0.5, 872.4e6 / 1340e9, true},
        {{.kind = KERNEL_CHUNK_CAT, .bytes = 1308e6}, 1, 1308e6 / 1675e9, true},
        {{.kind = KERNEL_NORM, .pass = PASS_BACKWARD, .bytes = 268e6}, 1, 268e6 / 1340e9, true},
        {{.kind = KERNEL_ELEMENTWISE, .bytes = 256}, 1, 2.6e-6, false},
        {{.kind = KERNEL_GEMM, .dtype = DTYPE_BF16, .flop = 1e3, .bytes = 64}, 1, 2.6e-6, false},
        /* a matrix times a vector: its weights must be read */
        {{.kind = KERNEL_GEMM, .dtype = DTYPE_FP8, .flop = 2.385e9, .bytes = 1.1925e9},
         1,
         1.1925e9 / 2680e9,
         true},
        {{.kind = KERNEL_ATTENTION, .dtype = DTYPE_BF16, .flop = 549.8e9, .bytes = 0.27e9},
         1,
         549.8e9 / (989.4e12 * 0.337),
         false},
        {{.kind = KERNEL_ATTENTION, .dtype = DTYPE_BF16, .pass = PASS_BACKWARD, .flop = 1374.4e9},
         0.9,
         1374.4e9 / (989.4e12 * 0.286 * 0.9),
         false},
        {{.kind = KERNEL_GIVEN, .given_s = 4.6e-3}, 0.8, 5.75e-3, false},
        {{.kind = KERNEL_GIVEN, .given_s = 1e-9}, 1, 1e-9, false},
    };
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("row %d", (int)i);
        bool is_memory_bound = false;
        double time_s = gpu_kernel_s(&fixture.cluster.gpu, &rows[i].kernel, rows[i].clock_frac,
                                     &is_memory_bound);
        CHECK_NEAR(time_s, rows[i].expected_s, 1e-9);
        CHECK_INT(is_memory_bound, rows[i].is_memory_bound);
    }
    check_context(NULL);
    fixture_release(&fixture);
}

static void test_ideal(void)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, "ideal-8x400", NULL);
    const struct gpu *gpu = &fixture.cluster.gpu;
    const struct kernel kernel = {.kind = KERNEL_GEMM, .dtype = DTYPE_BF16, .flop = 2.385e12};
    CHECK_NEAR(gpu_kernel_s(gpu, &kernel, 1, NULL), 2.385e-3, 1e-12);
    CHECK_INT(gpu->memory_bytes, INT64_C(80000000000));
    CHECK_INT(gpu->context_bytes + gpu->communicator_bytes + gpu->workspace_bytes, 0);
    fixture_release(&fixture);
    fixture_init(&fixture, "ideal-8-40gb", NULL);
    CHECK_INT(fixture.cluster.gpu.memory_bytes, INT64_C(40000000000));
    fixture_release(&fixture);
}

/* The words of a GPU file are the names that kernels print. */
static void test_words_are_kernel_names(void)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100", NULL);
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++) {
        if (kind == KERNEL_GIVEN)
            continue;
        const char *path = arena_printf(&fixture.arena, "host.gpu.hbm_shares.%s.forward",
                                        kernel_kind_name((enum kernel_kind)kind));
        check_context("%s", path);
        CHECK_TRUE(config_is_set(&fixture.config, path));
        CHECK_TRUE(fixture.cluster.gpu.hbm_share[kind][PASS_FORWARD] > 0);
    }
    check_context(NULL);
    fixture_release(&fixture);
}

const struct check_case gpu_cases[] = {{"GEMM", test_gemm},
                                       {"kinds of kernel", test_kinds},
                                       {"ideal", test_ideal},
                                       {"words are kernel names", test_words_are_kernel_names},
                                       {0}};
