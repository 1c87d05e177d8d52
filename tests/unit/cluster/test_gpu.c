/* tests/unit/cluster/test_gpu.c: kernel times by hand, from the figures of the GPU files. */
#include <string.h>

#include "check.h"
#include "cluster/gemm_model.h"
#include "cluster_fixture.h"
#include "cluster_tests.h"
#include "config/csv_table.h"

/* Never faster than the ceiling at the clock of a step: 0.803 and 0.88 of 989.4 TFLOP/s. */
static void test_gemm(void)
{
    struct gpu_fixture fixture;
    gpu_fixture_init(&fixture, "h100-sxm5-80gb");
    struct kernel kernel = {.kind = KERNEL_GEMM,
                            .dtype = DTYPE_BF16,
                            .m = 8192,
                            .n = 14336,
                            .k = 4096,
                            .batch = 1,
                            .flop = 2.0 * 8192 * 14336 * 4096,
                            .bytes = 2.0 * (8192 * 4096.0 + 14336 * 4096.0 + 8192 * 14336.0)};
    bool is_memory_bound = true;
    double time_s = gpu_kernel_s(&fixture.gpu, &kernel, 1, &is_memory_bound);
    CHECK_TRUE(time_s >= kernel.flop / (989.4e12 * 0.803 * 0.88) * (1 - 1e-12));
    CHECK_TRUE(time_s < kernel.flop / (989.4e12 * 0.803 * 0.88) * 1.10);
    CHECK_TRUE(!is_memory_bound);
    double burst_s = gpu_kernel_burst_s(&fixture.gpu, &kernel);
    CHECK_NEAR(burst_s, gemm_model_burst_s(fixture.gpu.gemm, &kernel), 0);
    CHECK_TRUE(burst_s < time_s);
    double slow_s = gpu_kernel_s(&fixture.gpu, &kernel, 0.8, NULL);
    CHECK_NEAR(slow_s, time_s / 0.8, 0.01);
    kernel.pass = PASS_BACKWARD;
    CHECK_NEAR(gpu_kernel_s(&fixture.gpu, &kernel, 1, NULL), time_s / 0.89, 0.01);
    gpu_fixture_release(&fixture);
}

/* The rates of charts: TFLOP/s with the causal half counted once, backward 2.5 times the FLOP. */
static void test_attention(void)
{
    static const struct {
        const char *gpu;
        enum attention_impl impl;
        bool is_causal;
        int64_t head_dim, sequence;
        double forward, both; /* 0: not printed */
        double tolerance;
    } rows[] = {
        {"h100-sxm5-80gb", ATTENTION_FA2, true, 128, 8192, 333, 315, 0.03},
        {"h100-sxm5-80gb", ATTENTION_FA2, true, 64, 512, 180, 0, 0.03},
        {"h100-sxm5-80gb", ATTENTION_FA2, false, 128, 16384, 370, 0, 0.05},
        {"h100-sxm5-80gb", ATTENTION_FA3, true, 128, 8192, 602, 0, 0.03},
        {"h100-sxm5-80gb", ATTENTION_CUDNN, true, 128, 8192, 529, 514, 0.05},
        {"h100-sxm5-80gb", ATTENTION_EAGER, true, 128, 4096, 35, 61, 0.03},
        {"a100-sxm4-80gb", ATTENTION_FA2, true, 128, 2048, 0, 155, 0.03},
        {"a100-sxm4-80gb", ATTENTION_FA2, false, 64, 8192, 0, 175, 0.02},
        /* Forward: xformers' table; Triton's own of a causal mask. Both: 3.5 · 4·b·h·s²·d / 2 over
           the chart's 7.07, 24.67, 48.10 ms less 2 · s/128 copies of 67.1 MB at 1733 GB/s. */
        {"a100-sxm4-80gb", ATTENTION_TRITON, false, 64, 4096, 148.4, 0, 0.01},
        {"a100-sxm4-80gb", ATTENTION_TRITON, true, 64, 16384, 122.2, 0, 0.01},
        {"a100-sxm4-80gb", ATTENTION_TRITON, true, 128, 2048, 0, 82.4, 0.03},
        {"a100-sxm4-80gb", ATTENTION_TRITON, true, 128, 8192, 0, 97.6, 0.03},
        {"a100-sxm4-80gb", ATTENTION_TRITON, true, 64, 16384, 0, 100.8, 0.05},
        {"a100-sxm4-80gb", ATTENTION_XFORMERS, true, 64, 2048, 0, 66, 0.03},
        {"a100-sxm4-80gb", ATTENTION_FA1, false, 64, 4096, 0, 108, 0.03},
        {"rtx-a5000", ATTENTION_FA2, false, 64, 4096, 81.7, 76.6, 0.02},
        {"v100-sxm2-16gb", ATTENTION_FA2, false, 128, 8192, 37.8, 0, 0.03},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("row %d", (int)i);
        struct gpu_fixture fixture;
        gpu_fixture_init(&fixture, rows[i].gpu);
        double s = (double)rows[i].sequence;
        struct kernel kernel = {.kind = KERNEL_ATTENTION,
                                .dtype = DTYPE_FP16,
                                .attention = rows[i].impl,
                                .is_causal = rows[i].is_causal,
                                .m = rows[i].sequence,
                                .n = rows[i].sequence,
                                .k = rows[i].head_dim,
                                .batch = 16384 * 2048 / (rows[i].sequence * rows[i].head_dim)};
        kernel.flop = 4.0 * (double)kernel.batch * s * s * (double)rows[i].head_dim /
                      (rows[i].is_causal ? 2 : 1);
        double forward_s = gpu_kernel_s(&fixture.gpu, &kernel, 1, NULL);
        if (rows[i].forward > 0)
            CHECK_NEAR(kernel.flop / forward_s, rows[i].forward * 1e12, rows[i].tolerance);
        kernel.pass = PASS_BACKWARD;
        kernel.flop *= 2.5;
        double both_s = forward_s + gpu_kernel_s(&fixture.gpu, &kernel, 1, NULL);
        if (rows[i].both > 0)
            CHECK_NEAR(kernel.flop * 1.4 / both_s, rows[i].both * 1e12, rows[i].tolerance);
        gpu_fixture_release(&fixture);
    }
    check_context(NULL);
}

/* 8 heads of 128 rows are 8 tiles on 132 SMs; a head dimension between two rows lies between. */
static void test_attention_shapes(void)
{
    struct gpu_fixture fixture;
    gpu_fixture_init(&fixture, "h100-sxm5-80gb");
    struct kernel kernel = {.kind = KERNEL_ATTENTION,
                            .dtype = DTYPE_BF16,
                            .is_causal = true,
                            .m = 128,
                            .n = 128,
                            .k = 128,
                            .batch = 8,
                            .flop = 2.0 * 8 * 128 * 128 * 128};
    double rate = 989.4e12 * 0.352 * 128 / (128 + 376) * 8 / 132;
    CHECK_NEAR(gpu_kernel_s(&fixture.gpu, &kernel, 1, NULL), 2.6e-6 + kernel.flop / rate, 1e-9);
    kernel.m = kernel.n = 4096;
    kernel.batch = 64;
    kernel.k = 96;
    kernel.flop = 2.0 * 64 * 4096 * 4096 * 96;
    rate = 989.4e12 * (0.312 + 0.352) / 2 * 4096 / (4096 + (364 + 376) / 2.0);
    CHECK_NEAR(gpu_kernel_s(&fixture.gpu, &kernel, 1, NULL), 2.6e-6 + kernel.flop / rate, 1e-9);
    kernel.bytes = 268e9; /* so much traffic that memory bounds it */
    bool is_memory_bound = false;
    CHECK_NEAR(gpu_kernel_s(&fixture.gpu, &kernel, 0.5, &is_memory_bound),
               2.6e-6 + 268e9 / (3350e9 * 0.80), 1e-9);
    CHECK_TRUE(is_memory_bound);
    gpu_fixture_release(&fixture);
}

static void test_kinds(void)
{
    static const struct {
        struct kernel kernel;
        double clock_frac, expected_s;
        bool is_memory_bound;
    } rows[] = {
        /* copy-out: 436 MB in, 436 MB out at 0.55 of 3350 GB/s; the clock does not matter */
        {{.kind = KERNEL_COPY_OUT, .bytes = 872.4e6}, 0.5, 2.6e-6 + 872.4e6 / 1842.5e9, true},
        {{.kind = KERNEL_CHUNK_CAT, .bytes = 1308e6}, 1, 2.6e-6 + 1308e6 / 1675e9, true},
        {{.kind = KERNEL_NORM, .pass = PASS_BACKWARD, .bytes = 268e6},
         1,
         2.6e-6 + 268e6 / 2144e9,
         true},
        {{.kind = KERNEL_NORM, .impl = IMPL_COMPOSITE, .bytes = 268e6},
         1,
         2.6e-6 + 268e6 / 2680e9,
         true},
        {{.kind = KERNEL_ELEMENTWISE, .bytes = 256}, 1, 2.6e-6 + 256 / 3015e9, false},
        {{.kind = KERNEL_ELEMENTWISE, .impl = IMPL_HAND, .pass = PASS_BACKWARD, .bytes = 1e9},
         1,
         2.6e-6 + 1e9 / 2177.5e9,
         true},
        {{.kind = KERNEL_GIVEN, .given_s = 4.6e-3}, 0.8, 5.75e-3, false},
        {{.kind = KERNEL_GIVEN, .given_s = 1e-9}, 1, 1e-9, false},
    };
    struct gpu_fixture fixture;
    gpu_fixture_init(&fixture, "h100-sxm5-80gb");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("row %d", (int)i);
        bool is_memory_bound = false;
        double time_s =
            gpu_kernel_s(&fixture.gpu, &rows[i].kernel, rows[i].clock_frac, &is_memory_bound);
        CHECK_NEAR(time_s, rows[i].expected_s, 1e-9);
        CHECK_INT(is_memory_bound, rows[i].is_memory_bound);
    }
    check_context(NULL);
    gpu_fixture_release(&fixture);
}

/* A 500 W part: GEMMs at 0.80 of a burst, attention at 0.91 of the 700 W part; not in a burst. */
static void test_clock(void)
{
    struct gpu_fixture hot, cold;
    gpu_fixture_init(&hot, "h100-sxm5-96gb-hbm2e");
    gpu_fixture_init(&cold, "h100-sxm5-80gb");
    struct kernel kernel = {.kind = KERNEL_ATTENTION,
                            .dtype = DTYPE_BF16,
                            .is_causal = true,
                            .m = 8192,
                            .n = 8192,
                            .k = 128,
                            .batch = 32,
                            .flop = 2.0 * 32 * 8192 * 8192 * 128};
    double full_s = gpu_kernel_s(&cold.gpu, &kernel, 1, NULL) - 2.6e-6;
    CHECK_NEAR(gpu_kernel_s(&hot.gpu, &kernel, 1, NULL), 2.6e-6 + full_s / 0.91, 1e-9);
    CHECK_NEAR(gpu_kernel_burst_s(&hot.gpu, &kernel), 2.6e-6 + full_s, 1e-9);
    CHECK_NEAR(hot.gpu.sustained_clock_frac, 0.80, 0);
    gpu_fixture_release(&hot);
    gpu_fixture_release(&cold);
}

static void test_ideal(void)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, "ideal-8x400", NULL);
    const struct gpu *gpu = &fixture.cluster.gpu;
    struct kernel kernel = {.kind = KERNEL_GEMM, .dtype = DTYPE_BF16, .flop = 2.385e12};
    CHECK_NEAR(gpu_kernel_s(gpu, &kernel, 1, NULL), 2.385e-3, 1e-12);
    kernel.kind = KERNEL_ATTENTION;
    kernel.batch = 1;
    CHECK_NEAR(gpu_kernel_s(gpu, &kernel, 1, NULL), 2.385e-3, 1e-12);
    CHECK_INT(gpu->memory_bytes, INT64_C(80000000000));
    CHECK_INT(gpu->context_bytes + gpu->communicator_bytes + gpu->workspace_bytes, 0);
    fixture_release(&fixture);
    fixture_init(&fixture, "ideal-8-40gb", NULL);
    CHECK_INT(fixture.cluster.gpu.memory_bytes, INT64_C(40000000000));
    fixture_release(&fixture);
}

static void check_whole(const struct gpu *gpu, const char *name)
{
    CHECK_TEXT(gpu->name, name);
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++) {
        for (int impl = 0; impl < IMPL_COUNT && kind != KERNEL_GIVEN; impl++) {
            for (int pass = 0; pass < 2; pass++) {
                CHECK_TRUE(gpu->hbm_share[kind][impl][pass] > 0.05);
                CHECK_TRUE(gpu->hbm_share[kind][impl][pass] <= 1);
            }
        }
    }
    for (int impl = 0; impl < ATTENTION_IMPL_COUNT; impl++) {
        const struct kernel kernel = {.kind = KERNEL_ATTENTION,
                                      .dtype = DTYPE_FP16,
                                      .attention = (enum attention_impl)impl,
                                      .m = 2048,
                                      .n = 2048,
                                      .k = 80,
                                      .batch = 64,
                                      .flop = 4.0 * 64 * 2048 * 2048 * 80};
        double rate = kernel.flop / gpu_kernel_s(gpu, &kernel, 1, NULL);
        CHECK_TRUE(rate > 0.01 * gpu->peak_flop_per_s[DTYPE_FP16]);
        CHECK_TRUE(rate <= gpu->peak_flop_per_s[DTYPE_FP16]);
    }
    CHECK_TRUE(gpu->price_low_usd_per_h <= gpu->price_high_usd_per_h);
}

/* Every GPU that ships loads, and knows every kind of kernel and of attention. */
static void test_all(void)
{
    static const char *const folders[] = {FSDPSIM_SOURCE_DIR, NULL};
    struct arena arena = {0};
    const char *const *names = data_names(&arena, folders, "topologies/gpus");
    int count = 0;
    for (; names[count] != NULL; count++) {
        struct gpu_fixture fixture;
        gpu_fixture_init(&fixture, names[count]);
        check_context("%s", names[count]);
        if (CHECK_INT(fixture.status, STATUS_OK))
            check_whole(&fixture.gpu, names[count]);
        gpu_fixture_release(&fixture);
    }
    check_context(NULL);
    CHECK_TRUE(count >= 40);
    arena_release(&arena);
}

/* How published runs spell their GPUs; two are of makers that no file describes. */
static void test_published_names(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct csv_table table = {0};
    diag_init(&diag, &arena);
    CHECK_INT(
        csv_load(&arena, FSDPSIM_SOURCE_DIR "/results/measured/measured_runs.csv", &table, &diag),
        STATUS_OK);
    int32_t column = csv_column(&table, "gpu");
    const char *last = "";
    for (int32_t i = 0; column >= 0 && i < table.rows.count; i++) {
        const char *name = table.rows.items[i].items[column].text;
        if (strcmp(name, last) == 0 || name[0] == '\0' || strncmp(name, "PVC", 3) == 0)
            continue;
        last = name;
        const char *const overrides[] = {arena_printf(&arena, "host.gpu='%s'", name), NULL};
        struct cluster_fixture fixture;
        fixture_init(&fixture, "dgx-h100", overrides);
        check_context("%s", name);
        CHECK_INT(fixture.status, STATUS_OK);
        fixture_release(&fixture);
    }
    check_context(NULL);
    arena_release(&arena);
}

const struct check_case gpu_cases[] = {{"GEMM", test_gemm},
                                       {"attention as published", test_attention},
                                       {"attention by shape", test_attention_shapes},
                                       {"kinds of kernel", test_kinds},
                                       {"clock", test_clock},
                                       {"ideal", test_ideal},
                                       {"all that ship", test_all},
                                       {"names of published runs", test_published_names},
                                       {0}};
