/*
 * tests/unit/cluster/test_gemm.c: GEMM times: arithmetic by hand, exactness at the points of a
 * grid, and every grid that ships against the measurements it has never seen.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/strbuf.h"
#include "check.h"
#include "cluster/gemm_grid.h"
#include "cluster/gemm_model.h"
#include "cluster_tests.h"
#include "config/csv_table.h"

#define GRIDS FSDPSIM_SOURCE_DIR "/topologies/gpus/grids/"
#define HELD FSDPSIM_SOURCE_DIR "/results/measured/kernels/gemm-"

struct gemm_fixture {
    struct arena arena;
    struct diag diag;
    struct gemm_grid grid;
};

static bool fixture_read(struct gemm_fixture *fixture, const char *path)
{
    *fixture = (struct gemm_fixture){0};
    arena_init(&fixture->arena);
    diag_init(&fixture->diag, &fixture->arena);
    return gemm_grid_read(&fixture->arena, &fixture->diag, path, &fixture->grid) == STATUS_OK;
}

/* A model with the figures that the grid itself was measured with. */
static struct gemm_model *model_of(struct gemm_fixture *fixture, const char *path,
                                   const struct gemm_spec *more)
{
    struct gemm_spec spec = *more;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const struct gemm_table *table = fixture->grid.tables[i];
        if (!table)
            continue;
        spec.peak_flop_per_s[i] = table->device.peak_flop_per_s;
        spec.hbm_bytes_per_s = table->device.hbm_bytes_per_s;
        spec.sm_count = (int64_t)table->device.sm_count;
    }
    if (!spec.gpu_name)
        spec.gpu_name = fixture->grid.gpu_name;
    struct gemm_model *model = NULL;
    if (gemm_model_new(&fixture->arena, &fixture->diag, &spec, path, &model) != STATUS_OK)
        return NULL;
    return model;
}

/*
 * 132 SMs at 989.4 TFLOP/s: an SM does 7.4955 TFLOP/s. m = 4096, n = 4352, k = 4096 in tiles of
 * 256 × 128: 16·34 = 544 tiles, 4.12 waves, so 5 of 2·256·128·4096 / 7.4955e12 = 35.813 us each.
 * In 128 × 256: 32·17 = 544, too. In 128 × 128: 1088 tiles, 9 waves of 17.906 us, each longer by
 * (1 + 3000/16384) / (1 + 3000/32768) = 1.08388: 174.7 us. Smaller ones do not pay: 64 × 128 has
 * 2176 tiles, 17 waves of 8.953 · 1.25165 us.
 */
static void test_waves(void)
{
    const struct gemm_device device = {.peak_flop_per_s = 989.4e12,
                                       .hbm_bytes_per_s = 3350e9,
                                       .sm_count = 132,
                                       .floor_s = 2.385e-6,
                                       .wave_frac = 1,
                                       .operand_bytes = 2,
                                       .result_bytes = 2};
    struct gemm_shape shape = {4096, 4352, 4096, 1};
    struct gemm_parts parts = gemm_basis(&device, &shape);
    double wave_s = 2 * 256.0 * 128 * 4096 * 132 / 989.4e12;
    double small_s = wave_s / 2 * (1 + 3000 / 16384.0) / (1 + 3000 / 32768.0);
    CHECK_NEAR(parts.compute_s, fmin(5 * wave_s, 9 * small_s), 1e-12);
    CHECK_NEAR(parts.compute_s, 174.68e-6, 1e-4);
    /* 2 bytes of (4096 · 4096 + 4352 · 4096 + 4096 · 4352) */
    CHECK_NEAR(parts.memory_s, 104.8576e6 / 3350e9, 1e-12);
    CHECK_NEAR(gemm_parts_s(&parts), 2.385e-6 + parts.compute_s, 1e-12);
    /* 132 tiles of 256 × 128 fill all SMs once; one row more would be a second wave. 128 × 128: 276
       tiles, 3 waves of half the time · 1.08388 = 1.626; 64 × 128: 45·12 = 540 tiles, 5 waves of a
       quarter · (1 + 3000/8192) / (1 + 3000/32768) = 1.25162, 1.565: the least. */
    shape = (struct gemm_shape){256 * 11, 128 * 12, 4096, 1};
    parts = gemm_basis(&device, &shape);
    CHECK_NEAR(parts.compute_s, wave_s, 1e-12);
    shape.m += 1;
    parts = gemm_basis(&device, &shape);
    CHECK_NEAR(parts.compute_s, 1.56453 * wave_s, 1e-5);
    /* Eight at once: 8·16·16 = 2048 tiles of 256 × 128 for (4096, 2048), 16 waves. */
    shape = (struct gemm_shape){4096, 2048, 512, 8};
    parts = gemm_basis(&device, &shape);
    CHECK_NEAR(parts.compute_s, 16 * wave_s / 8, 1e-12);
}

/* Half of the quantisation: the geometric middle of the ideal and of whole waves. */
static void test_wave_frac(void)
{
    const struct gemm_device device = {.peak_flop_per_s = 100e12,
                                       .hbm_bytes_per_s = 1e15,
                                       .sm_count = 100,
                                       .wave_frac = 0.5,
                                       .operand_bytes = 2,
                                       .result_bytes = 2};
    const struct gemm_shape shape = {256 * 101, 128, 65536, 1};
    struct gemm_parts parts = gemm_basis(&device, &shape);
    double tile_s = 2 * 256.0 * 128 * 65536 / 1e12;
    /* 1.01 waves of the large tile in ideal; 128 × 128: 202 tiles, 3 waves of half size, 1.08388
       each: 1.62582; 128 × 64: 404 tiles, 5 of a quarter, 1.25162 each: 1.56453; 256 × 128: 2. */
    double waves = 1.56453;
    CHECK_NEAR(parts.compute_s, tile_s * sqrt(1.01 * waves), 1e-5);
}

static void test_grid_points(void)
{
    struct gemm_fixture fixture;
    const char *path = GRIDS "h100-sxm5-80gb.grid";
    if (!CHECK_TRUE(fixture_read(&fixture, path)))
        return;
    const struct gemm_table *table = fixture.grid.tables[DTYPE_BF16];
    struct gemm_model *model = model_of(&fixture, path, &(struct gemm_spec){0});
    CHECK_TRUE(!gemm_model_is_derived(model));
    CHECK_CONTAINS(gemm_model_source(model), "aiconfigurator");
    for (int32_t i = 0; i < table->m.count * table->n.count * table->k.count; i += 7) {
        const int32_t row = i / table->k.count;
        const int32_t im = row / table->n.count;
        struct gemm_shape shape = {table->m.at[im], table->n.at[row % table->n.count],
                                   table->k.at[i % table->k.count], 1};
        struct gemm_parts parts = gemm_basis(&table->device, &shape);
        struct kernel kernel = {.kind = KERNEL_GEMM,
                                .dtype = DTYPE_BF16,
                                .m = (int64_t)shape.m,
                                .n = (int64_t)shape.n,
                                .k = (int64_t)shape.k};
        check_context("point %d", (int)i);
        CHECK_NEAR(gemm_model_burst_s(model, &kernel), table->r[i] * gemm_parts_s(&parts), 1e-12);
    }
    check_context(NULL);
    arena_release(&fixture.arena);
}

/* From burst to training step: clock, layout and ceiling touch the compute part only. */
static void test_sustained(void)
{
    struct gemm_fixture fixture;
    const char *path = GRIDS "h100-sxm5-80gb.grid";
    if (!CHECK_TRUE(fixture_read(&fixture, path)))
        return;
    const struct gemm_spec spec = {.ceiling_frac = 0.8025,
                                   .backward_frac = 0.89,
                                   .rowwise_frac = 0.95,
                                   .sustained_clock_frac = 0.88};
    struct gemm_model *model = model_of(&fixture, path, &spec);
    struct kernel kernel = {
        .kind = KERNEL_GEMM, .dtype = DTYPE_BF16, .m = 8192, .n = 14336, .k = 4096};
    double flop = 2 * 8192.0 * 14336 * 4096;
    bool is_memory_bound = true;
    double time_s = gemm_model_s(model, &kernel, 1, &is_memory_bound);
    CHECK_TRUE(!is_memory_bound);
    CHECK_TRUE(time_s >= flop / (794e12 * 0.88) * (1 - 1e-9));
    CHECK_TRUE(time_s > gemm_model_burst_s(model, &kernel) / 0.88 * 0.99);
    /* The floor is some 0.2 % of it. */
    CHECK_NEAR(gemm_model_s(model, &kernel, 0.8, NULL), time_s / 0.8, 2e-3);
    kernel.pass = PASS_BACKWARD;
    CHECK_NEAR(gemm_model_s(model, &kernel, 1, NULL), time_s / 0.89, 2e-3);
    kernel.product = PRODUCT_FLOAT8_ROWWISE;
    CHECK_NEAR(gemm_model_s(model, &kernel, 1, NULL), time_s / (0.89 * 0.95), 2e-3);
    kernel.product = PRODUCT_FLOAT8;
    CHECK_NEAR(gemm_model_s(model, &kernel, 1, NULL), time_s / 0.89, 2e-3);
    /* One row times a matrix of 134 MB, which must be read: no clock helps. */
    kernel =
        (struct kernel){.kind = KERNEL_GEMM, .dtype = DTYPE_BF16, .m = 1, .n = 16384, .k = 4096};
    time_s = gemm_model_s(model, &kernel, 1, &is_memory_bound);
    CHECK_TRUE(is_memory_bound);
    CHECK_TRUE(time_s > 134.2e6 / 3350e9);
    CHECK_NEAR(gemm_model_s(model, &kernel, 0.6, NULL), time_s, 1e-12);
    arena_release(&fixture.arena);
}

/* A GPU that borrows: the same shape on 2.5 times the peak, bandwidth and SMs of the grid's. */
static void test_derived(void)
{
    struct gemm_fixture fixture;
    const char *path = GRIDS "a40.grid";
    if (!CHECK_TRUE(fixture_read(&fixture, path)))
        return;
    struct gemm_model *own = model_of(&fixture, path, &(struct gemm_spec){0});
    const struct gemm_spec spec = {
        .gpu_name = "a10",
        .peak_flop_per_s = {[DTYPE_BF16] = 125e12, [DTYPE_FP32] = 31.2e12},
        .hbm_bytes_per_s = 600e9,
        .sm_count = 72,
        .kernel_floor_s = 2.385e-6};
    struct gemm_model *model = NULL;
    CHECK_INT(gemm_model_new(&fixture.arena, &fixture.diag, &spec, path, &model), STATUS_OK);
    CHECK_TRUE(gemm_model_is_derived(model) && !gemm_model_is_derived(own));
    struct kernel kernel = {
        .kind = KERNEL_GEMM, .dtype = DTYPE_BF16, .m = 8192, .n = 8192, .k = 8192};
    struct kernel half = kernel;
    half.dtype = DTYPE_FP16;
    /* In the limit of large shapes the ratio is that of the peaks, but for waves (at most 1 in 30).
     */
    CHECK_NEAR(gemm_model_burst_s(model, &kernel), gemm_model_burst_s(own, &half) * 149.7 / 125,
               0.04);
    /* fp32 has no table here: the share of the peak is that of 16 bits. */
    kernel.dtype = DTYPE_FP32;
    CHECK_NEAR(gemm_model_burst_s(model, &kernel), gemm_model_burst_s(own, &half) * 149.7 / 31.2,
               0.04);
    /* The tile of a half as fast GPU works at k = 512 as long as that of the grid's at 1024: the
       same cost beyond its own basis. */
    struct gemm_spec slow = spec;
    const struct gemm_table *table = fixture.grid.tables[DTYPE_FP16];
    slow.peak_flop_per_s[DTYPE_BF16] = table->device.peak_flop_per_s / 2;
    slow.hbm_bytes_per_s = 1e15;
    slow.sm_count = (int64_t)table->device.sm_count;
    CHECK_INT(gemm_model_new(&fixture.arena, &fixture.diag, &slow, path, &model), STATUS_OK);
    kernel =
        (struct kernel){.kind = KERNEL_GEMM, .dtype = DTYPE_BF16, .m = 4096, .n = 4096, .k = 512};
    struct gemm_device device = table->device;
    device.peak_flop_per_s /= 2;
    device.hbm_bytes_per_s = 1e15;
    device.floor_s = 2.385e-6;
    const struct gemm_shape shape = {4096, 4096, 512, 1};
    const struct gemm_shape alike = {4096, 4096, 1024, 1};
    struct gemm_parts parts = gemm_basis(&device, &shape);
    CHECK_NEAR(gemm_model_burst_s(model, &kernel), gemm_r(table, &alike) * gemm_parts_s(&parts),
               1e-12);
    /* Nothing is shorter than the shortest kernel. */
    kernel = (struct kernel){.kind = KERNEL_GEMM, .dtype = DTYPE_BF16, .m = 16, .n = 32, .k = 32};
    CHECK_TRUE(gemm_model_burst_s(model, &kernel) > 0.5 * 2.385e-6);
    arena_release(&fixture.arena);
}

/*
 * Scores of attention in fp32 with k = 16, 128 of 512 x 512: 128 · (2 · 512 · 16 + 512 · 512) · 4
 * bytes = 142.6 MB at 0.8 of 3350 GB/s are 53.2 us after a floor of 2.6 us. The table begins at k =
 * 768, where arithmetic bounds; its r there is of arithmetic (2.1 GFLOP: 16 us at the peak,
 * hidden).
 */
static void test_beyond_the_grid(void)
{
    struct gemm_fixture fixture;
    const char *path = GRIDS "h100-sxm5-80gb.grid";
    if (!CHECK_TRUE(fixture_read(&fixture, path)))
        return;
    struct gemm_model *model = model_of(&fixture, path, &(struct gemm_spec){.stream_frac = 0.8});
    struct kernel kernel = {
        .kind = KERNEL_GEMM, .dtype = DTYPE_FP32, .m = 512, .n = 512, .k = 16, .batch = 128};
    bool is_memory_bound = false;
    CHECK_NEAR(gemm_model_s(model, &kernel, 1, &is_memory_bound), 55.8e-6, 2e-3);
    CHECK_TRUE(is_memory_bound);
    CHECK_NEAR(gemm_model_burst_s(model, &kernel), 55.8e-6, 2e-3);
    arena_release(&fixture.arena);
}

/* What a table says of its own scatter goes with its own dtype and GPU only. */
static void test_scatter(void)
{
    struct gemm_fixture fixture;
    const char *path = GRIDS "l40s.grid";
    if (!CHECK_TRUE(fixture_read(&fixture, path)))
        return;
    struct gemm_model *own = model_of(&fixture, path, &(struct gemm_spec){0});
    struct gemm_model *other = model_of(&fixture, path, &(struct gemm_spec){.gpu_name = "l4"});
    CHECK_NEAR(gemm_model_scatter(own, DTYPE_BF16), 0.14, 1e-9);
    CHECK_NEAR(gemm_model_scatter(own, DTYPE_FP16), 0, 0);
    CHECK_NEAR(gemm_model_scatter(own, DTYPE_FP32), 0, 0);
    CHECK_NEAR(gemm_model_scatter(other, DTYPE_BF16), 0, 0);
    arena_release(&fixture.arena);
}

/*
 * FP8 has no table: twice the peak, r of half of k. TransformerEngine's docs give 1.906 for GEMMs
 * alone on H200 (layers of 4096 x 16384, 15,872 tokens, quantised before), torchao 82 us for 4096^3
 * on H100.
 */
static void test_fp8(void)
{
    struct gemm_fixture fixture;
    const char *path = GRIDS "h100-sxm5-80gb.grid";
    if (!CHECK_TRUE(fixture_read(&fixture, path)))
        return;
    CHECK_TRUE(fixture.grid.tables[DTYPE_FP8] == NULL);
    const struct gemm_spec spec = {
        .gpu_name = "h100-sxm5-80gb",
        .peak_flop_per_s = {[DTYPE_BF16] = 989.4e12, [DTYPE_FP8] = 1978.9e12},
        .hbm_bytes_per_s = 3350e9,
        .sm_count = 132};
    struct gemm_model *model = NULL;
    CHECK_INT(gemm_model_new(&fixture.arena, &fixture.diag, &spec, path, &model), STATUS_OK);
    struct kernel kernel = {
        .kind = KERNEL_GEMM, .dtype = DTYPE_BF16, .m = 15872, .n = 16384, .k = 4096};
    double bf16_s = gemm_model_burst_s(model, &kernel);
    kernel.dtype = DTYPE_FP8;
    CHECK_NEAR(bf16_s / gemm_model_burst_s(model, &kernel), 1.95, 0.06);
    kernel.m = kernel.n = kernel.k = 4096;
    CHECK_NEAR(gemm_model_burst_s(model, &kernel), 82e-6, 0.15);
    arena_release(&fixture.arena);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"gemm-grid 2\n", "the first line is not"},
        {"gemm-grid 1\ngpu x\nsource y\n", "there is no table"},
        {"gemm-grid 1\ngpu x\nsource y\ntable bf17 sm 3\n", "'table' needs a dtype"},
        {"gemm-grid 1\ngpu x\nsource y\ntable bf16 peak_gflop_per_s 0 hbm_mb_per_s 1 sm 1 floor_ns "
         "1 "
         "wave_permille 1 scatter_permille 2\n",
         "the 'table' line"},
        {"gemm-grid 1\ngpu x\nsource y\ntable bf16 peak_gflop_per_s 1 hbm_mb_per_s 1 sm 1 floor_ns "
         "1 "
         "wave_permille 1 scatter_permille 2\nm 1 1\n",
         "an axis must increase"},
        {"gemm-grid 1\ngpu x\nsource y\ntable bf16 peak_gflop_per_s 1 hbm_mb_per_s 1 sm 1 floor_ns "
         "1 "
         "wave_permille 1 scatter_permille 2\nm 1\nn 1\nk 1 2\nr 1 1 5\n",
         "a positive number for each k"},
        {"gemm-grid 1\ngpu x\nsource y\ntable bf16 peak_gflop_per_s 1 hbm_mb_per_s 1 sm 1 floor_ns "
         "1 "
         "wave_permille 1 scatter_permille 2\nm 1\nn 1\nk 1 2\nr 2 1 5 5\n",
         "missing or out of order"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].message);
        const char *path = "test_gemm.grid";
        FILE *file = fopen(path, "w");
        if (!CHECK_TRUE(file != NULL))
            return;
        fputs(rows[i].text, file);
        CHECK_INT(fclose(file), 0);
        struct gemm_fixture fixture;
        CHECK_TRUE(!fixture_read(&fixture, path));
        CHECK_INT(fixture.diag.error_count, 1);
        if (fixture.diag.count == 1)
            CHECK_CONTAINS(fixture.diag.items[0].text, rows[i].message);
        arena_release(&fixture.arena);
        remove(path);
    }
    check_context(NULL);
    struct gemm_fixture fixture;
    CHECK_TRUE(!fixture_read(&fixture, "no/such.grid"));
    arena_release(&fixture.arena);
}

/* |log(predicted / measured)| of the large and the small GEMMs of a hold-out, by dtype. */
struct errors {
    double of[1000];
    int count;
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static enum dtype dtype_of(const char *name)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (strcmp(dtype_name((enum dtype)i), name) == 0)
            return (enum dtype)i;
    return DTYPE_COUNT;
}

static double number(const struct csv_table *table, const struct csv_row *row, const char *name)
{
    double value = 0;
    CHECK_TRUE(text_to_double(row->items[csv_column(table, name)].text, &value));
    return value;
}

static void errors_collect(const struct gemm_fixture *fixture, const struct csv_table *csv,
                           enum dtype dtype, struct errors *errors)
{
    const struct gemm_table *table = fixture->grid.tables[dtype];
    errors->count = 0;
    for (int32_t i = 0; i < csv->rows.count; i++) {
        const struct csv_row *row = &csv->rows.items[i];
        const struct gemm_shape shape = {number(csv, row, "m"), number(csv, row, "n"),
                                         number(csv, row, "k"), 1};
        if (dtype_of(row->items[csv_column(csv, "dtype")].text) != dtype ||
            2 * shape.m * shape.n * shape.k < 1e9)
            continue;
        struct gemm_parts parts = gemm_basis(&table->device, &shape);
        double predicted_s = gemm_r(table, &shape) * gemm_parts_s(&parts);
        if (CHECK_TRUE(errors->count < 1000))
            errors->of[errors->count++] = fabs(predicted_s / (number(csv, row, "us") * 1e-6) - 1);
    }
    qsort(errors->of, (size_t)errors->count, sizeof(double), ascending);
}

static void test_hold_out(void)
{
    /* The goal is 5 % and 15 %. What misses it, with what bounds it: the L40S ran power-capped (its
       table scatters by 14 % about its own neighbours); MI355X switches between five kernel
       families. Tables of 40 shapes (A6000, 3090, 4090) leave too few to tell. */
    static const struct {
        const char *gpu;
        enum dtype dtype;
        int count_least;
        double median_most, p90_most;
    } rows[] = {
        {"a100-sxm4-80gb", DTYPE_BF16, 150, 0.05, 0.15},
        {"a100-sxm4-80gb", DTYPE_FP32, 100, 0.05, 0.15},
        {"h100-sxm5-80gb", DTYPE_BF16, 150, 0.05, 0.15},
        {"h100-sxm5-80gb", DTYPE_FP32, 100, 0.05, 0.15},
        {"h200-sxm-141gb", DTYPE_BF16, 150, 0.05, 0.15},
        {"b200-sxm", DTYPE_BF16, 150, 0.05, 0.15},
        {"b300-sxm", DTYPE_BF16, 150, 0.05, 0.15},
        {"gb200", DTYPE_BF16, 150, 0.05, 0.15},
        {"l40s", DTYPE_BF16, 150, 0.05, 0.16},
        {"l40s", DTYPE_FP32, 100, 0.05, 0.15},
        {"rtx-pro-6000-blackwell-server", DTYPE_BF16, 150, 0.05, 0.15},
        {"v100-sxm2-16gb", DTYPE_FP16, 20, 0.05, 0.15},
        {"v100-sxm2-16gb", DTYPE_FP32, 100, 0.05, 0.15},
        {"a40", DTYPE_FP16, 50, 0.05, 0.15},
        {"mi355x", DTYPE_BF16, 50, 0.055, 0.26},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct errors errors;
        struct gemm_fixture fixture;
        char path[512];
        check_context("%s %s", rows[i].gpu, dtype_name(rows[i].dtype));
        snprintf(path, sizeof(path), GRIDS "%s.grid", rows[i].gpu);
        bool is_read = fixture_read(&fixture, path);
        snprintf(path, sizeof(path), HELD "%s.csv", rows[i].gpu);
        struct csv_table csv;
        if (CHECK_TRUE(is_read) &&
            CHECK_INT(csv_load(&fixture.arena, path, &csv, &fixture.diag), STATUS_OK)) {
            errors_collect(&fixture, &csv, rows[i].dtype, &errors);
            double median = errors.of[errors.count / 2];
            double p90 = errors.of[errors.count * 9 / 10];
            CHECK_TRUE(errors.count >= rows[i].count_least);
            CHECK_TRUE(median <= rows[i].median_most);
            CHECK_TRUE(p90 <= rows[i].p90_most);
        }
        arena_release(&fixture.arena);
    }
    check_context(NULL);
}

const struct check_case gemm_cases[] = {
    {"waves of tiles", test_waves},
    {"how much of the waves shows", test_wave_frac},
    {"exact at the points of the grid", test_grid_points},
    {"from burst to training", test_sustained},
    {"a GPU that borrows a grid", test_derived},
    {"beyond the grid", test_beyond_the_grid},
    {"scatter of a table", test_scatter},
    {"FP8 beside BF16", test_fp8},
    {"files that are refused", test_refused},
    {"hold-out", test_hold_out},
    {0},
};
