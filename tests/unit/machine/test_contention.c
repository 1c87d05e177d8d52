/*
 * tests/unit/machine/test_contention.c: kernels beside collectives against published magnitudes.
 *
 * The shares of memory bandwidth: 2.5 bytes for each byte on the bus, H100 360 GB/s of 3350, A100
 * 235 of 2039, L20 20 of 864 over PCIe. H800: 20 SMs of an expert dispatch whose traffic is not
 * stated; NCCL's is taken. Expected figures by hand from contention.h.
 */
#include "cluster/contention.h"

#include "check.h"
#include "suites.h"
#include "toy.h"

#define US INT64_C(1000000)

struct published {
    const char *what;
    int64_t sms, held;
    double share; /* of memory bandwidth, by the transfer */
    const struct kernel *kernel;
    double expected;    /* by our rule */
    double least, most; /* published, with its spread */
    const char *why;    /* outside; NULL: inside */
};

static const struct kernel products_108 = {.kind = KERNEL_GEMM, .m = 1536, .n = 2304};
static const struct kernel products_132 = {.kind = KERNEL_GEMM, .m = 1536, .n = 2816};
static const struct kernel products_64 = {.kind = KERNEL_GEMM, .m = 4096, .n = 256};
static const struct kernel llama_q = {.kind = KERNEL_GEMM, .m = 8192, .n = 4096};
static const struct kernel llama_up = {.kind = KERNEL_GEMM, .m = 8192, .n = 14336};
static const struct kernel gpt_ffn = {.kind = KERNEL_GEMM, .m = 4096, .n = 49152};
static const struct kernel attention = {
    .kind = KERNEL_ATTENTION, .m = 2048, .n = 2048, .batch = 384};
static const struct kernel elementwise = {.kind = KERNEL_ELEMENTWISE};

static void test_published(void)
{
    const struct published rows[] = {
        {"H100, 132 tiles, 24 SMs held, nothing moves yet (forum 337991, pytorch 143988)", 132, 24,
         0, &products_132, 2, 1.7, 2.0, NULL},
        {"the same, bytes moving", 132, 24, 0.269, &products_132, 2.1644, 1.7, 2.0,
         "caches are counted on top of the waves, in one of the two"},
        {"H100 matmul of Llama-3-8B, q (pytorch 179937)", 132, 24, 0.269, &llama_q, 1.4094, 1.3,
         1.4, "a partial last wave; over all products of the block 1.40"},
        {"H100 matmul of Llama-3-8B, up", 132, 24, 0.269, &llama_up, 1.3737, 1.3, 1.4, NULL},
        {"A100 GEMM, many waves (nccl 1428)", 108, 24, 0.288, &gpt_ffn, 1.4830, 1.7, 1.8,
         "shape not stated: between this and the next row"},
        {"A100 GEMM, one wave", 108, 24, 0.288, &products_108, 2.1851, 1.7, 1.8,
         "shape not stated: between this and the row before"},
        {"A100 attention (nccl 1428)", 108, 24, 0.288, &attention, 1.4709, 1.8, 1.86,
         "one report; 32 channels and the upper bound of the caches make 1.79"},
        {"A100 &attention, 32 channels, upper bound of the caches", 108, 32, 0.518, &attention,
         1.7891, 1.8, 1.86, "see the row before"},
        {"A100 element-wise (nccl 1428: 0.02 -> 0.05 ms)", 108, 24, 0.288, &elementwise, 1.144, 1.8,
         3.7, "one digit; memory shared in the solver makes it 1.27 at 85 % of the peak"},
        {"H800 memory-bound kernels (16 of a trace, median 1.15)", 132, 20, 0.269, &elementwise,
         1.1345, 1.05, 1.26, NULL},
        {"H800 product of 64 tiles (n = 3, 1)", 132, 20, 0.269, &products_64, 1.0769, 1.1, 1.2,
         "one covered run of 52 us against 45"},
        {"L20 GEMM over PCIe (bytedance/flux)", 92, 2, 0.058, &gpt_ffn, 1.0594, 0.93, 1.0,
         "alone and overlapped are different libraries"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct published *row = &rows[i];
        const struct contention contention = {row->held, 1 + 0.5 * row->share};
        const double found = contention_slowdown(&contention, row->sms, row->kernel, false);
        check_context("%s", row->what);
        CHECK_NEAR(found, row->expected, 2e-4);
        CHECK_INT(found >= row->least && found <= row->most, row->why == NULL);
    }
    check_context(NULL);
}

/* Products of a Llama-3-8B block on 8,192 tokens by FLOP: published 1.3 to 1.4 for all of them. */
static void test_products_of_a_block(void)
{
    static const struct {
        int64_t n;
        double flop; /* relative: columns × inner dimension */
    } products[] = {{4096, 4096 * 4096.0}, {1024, 1024 * 4096.0},   {1024, 1024 * 4096.0},
                    {4096, 4096 * 4096.0}, {14336, 14336 * 4096.0}, {14336, 14336 * 4096.0},
                    {4096, 4096 * 14336.0}};
    const struct contention contention = {24, 1 + 0.5 * 0.269};
    double alone = 0;
    double beside = 0;
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        const struct kernel kernel = {.kind = KERNEL_GEMM, .m = 8192, .n = products[i].n};
        alone += products[i].flop;
        beside += products[i].flop * contention_slowdown(&contention, 132, &kernel, false);
    }
    CHECK_NEAR(beside / alone, 1.3994, 1e-3);
}

/*
 * MI300X, 28 of 304 CUs, 0.15 of the bandwidth: t = 304 / 276 · (1 + 3.2 · 0.15) = 1.63 for a
 * product of many waves. A gather as long as the product, slowed 1.56 times beside it, then takes
 * 1 - t / 1.56 alone: of the ideal gain of 1 some 0.42 is left (arXiv 2412.14335: 0.21 to 0.42).
 */
static void test_pair_on_mi300x(void)
{
    const struct kernel product = {.kind = KERNEL_GEMM, .m = 65536, .n = 65536};
    const struct contention contention = {28, 1 + 3.2 * 0.15};
    const double t = contention_slowdown(&contention, 304, &product, false);
    CHECK_NEAR(t, 1.63, 0.01);
    const double both = t + 1 - t / 1.56;
    CHECK_NEAR(2 - both, 0.42, 0.03);
}

/* Few blocks leave SMs over; memory-bound kernels too; everything held leaves one. */
static void test_limits(void)
{
    const struct contention held = {24, 1};
    CHECK_NEAR(contention_slowdown(&held, 132, &products_64, false), 1, 1e-12);
    CHECK_NEAR(contention_slowdown(&held, 132, &llama_q, true), 1, 1e-12);
    CHECK_NEAR(contention_slowdown(&held, 132, &elementwise, false), 1, 1e-12);
    const struct kernel given = {.kind = KERNEL_GIVEN};
    CHECK_NEAR(contention_slowdown(&held, 132, &given, false), 132.0 / 108, 1e-12);
    const struct contention all = {200, 1.25};
    CHECK_NEAR(contention_slowdown(&all, 132, &given, false), 165, 1e-12);
    /* 24 queries of 80 heads: 80 blocks of 132 SMs, on 108 all of them at once. */
    const struct kernel few = {.kind = KERNEL_ATTENTION, .m = 24, .n = 24, .batch = 80};
    CHECK_NEAR(contention_slowdown(&held, 132, &few, false), 1, 1e-12);
}

static void write_late_gather(struct toy *toy)
{
    toy_op(toy, OP_SEGMENT, TOY_SCATTER, toy_segment(toy, "late", PASS_FORWARD, 12));
    toy_op(toy, OP_COLLECTIVE, TOY_SCATTER, toy_collective(toy, COLLECTIVE_ALL_GATHER, 0, 8));
}

/*
 * Class 0 stands in the gather from the start: 20 of 80 SMs are held, its kernel of 30 ms runs at
 * 3/4. Class 1 comes at 12 ms; the 8 ms of bytes take 1 TB/s of 4: a = 1.125, so 2/3. Then alone:
 * 12 · 3/4 + 8 · 2/3 + 15.667 = 30 ms, at 35.667 ms.
 */
static void test_level_changes(void)
{
    struct toy toy;
    toy_init(&toy, 2, false);
    toy.cluster.channels_one_host = 20;
    toy.cluster.hbm_bytes_per_bus_byte = 1000;
    toy.cluster.kernel_loss_per_hbm_share = 0.5;
    toy_op(&toy, OP_COLLECTIVE, TOY_SCATTER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 8));
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "long", PASS_FORWARD, 30));
    toy_next_program(&toy);
    write_late_gather(&toy);
    CHECK_NEAR(ms_from_ps(toy_play(&toy).end_ps), 35 + 2.0 / 3, 1e-9);
    toy.ideal.contention = true;
    CHECK_INT(toy_play(&toy).end_ps, 30000 * US);
    toy_release(&toy);
}

/* A gather of 20 ms takes 1.25 times as long beside a kernel: 10 ms make 8 of it, 12 are left. */
static void test_collective_is_slowed(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.cluster.comm_slowdown = 1.25;
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "short", PASS_FORWARD, 10));
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 20));
    CHECK_INT(toy_play(&toy).end_ps, 22000 * US);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "rest", PASS_FORWARD, 30));
    CHECK_INT(toy_play(&toy).end_ps, 40000 * US);
    toy.ideal.contention = true;
    CHECK_INT(toy_play(&toy).end_ps, 40000 * US);
    toy_release(&toy);
}

/* Three kernels of 4, 1 and 5 ms, the second of which needs all SMs, beside gathers of 8 ms that
   hold 20 of 80. */
static void write_full_kernel(struct toy *toy, bool needs_all, int32_t margin, int32_t gathers)
{
    toy_init(toy, 2, true);
    toy->cluster.channels_one_host = 20;
    struct kernel *kernels = ARENA_ARRAY(&toy->arena, struct kernel, 3);
    kernels[0] = toy_kernel(4, 0);
    kernels[1] = toy_kernel(1, 0);
    kernels[2] = toy_kernel(5, 0);
    kernels[1].needs_all_sms = needs_all;
    kernels[1].sm_margin = margin;
    toy_op(toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(toy, kernels, 3));
    for (int32_t i = 0; i < gathers; i++)
        toy_op(toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(toy, COLLECTIVE_ALL_GATHER, 0, 8));
}

/*
 * Beside a gather kernels run at 60/80. Without the need: 8 ms make 6, the other 4 follow: 12 ms.
 * With it the first kernel is done at 5.333 ms and the second waits until 8: 8 + 1 + 5 = 14. A
 * margin of 20 SMs suffices, 19 do not. A second gather that is issued begins at 8 too, beside the
 * second kernel: 8 + 1/0.75, then 5/0.75: 16 ms. Collectives that hold nothing hold up nothing.
 */
static void test_full_kernel(void)
{
    static const struct {
        bool needs_all;
        int32_t margin, gathers;
        bool is_ideal;
        int64_t end_us;
    } rows[] = {{false, 0, 1, false, 12000}, {true, 0, 1, false, 14000},
                {true, 19, 1, false, 14000}, {true, 20, 1, false, 12000},
                {true, 0, 2, false, 16000},  {true, 0, 1, true, 10000},
                {true, 0, 0, false, 10000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct toy toy;
        write_full_kernel(&toy, rows[i].needs_all, rows[i].margin, rows[i].gathers);
        toy.ideal.contention = rows[i].is_ideal;
        check_context("row %d", (int)i);
        CHECK_NEAR((double)toy_play(&toy).end_ps / 1e6, (double)rows[i].end_us, 1e-9);
        check_context(NULL);
        toy_release(&toy);
    }
}

const struct check_case contention_cases[] = {
    {"a pair on MI300X", test_pair_on_mi300x},
    {"published magnitudes", test_published},
    {"products of a block", test_products_of_a_block},
    {"limits", test_limits},
    {"level changes", test_level_changes},
    {"collective is slowed", test_collective_is_slowed},
    {"kernel that needs all SMs", test_full_kernel},
    {0},
};
