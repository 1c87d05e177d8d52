/*
 * tests/bench/bench_maxmin.c: what one change costs.
 *
 *   small   one GPU: kernel and collective on one memory; the kernel is replaced
 *   medium  1,024 GPUs, a collective over all; the kernel of one GPU is replaced, memory not full
 *   wide    the same with full memories, so that everything hangs together: the worst case
 *   large   16,384 GPUs with full memories: one whole solve
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/arena.h"
#include "bench.h"
#include "machine/maxmin.h"

struct gpus {
    struct arena arena;
    struct maxmin *system;
    int32_t count;
    struct demand *collective;   /* memory and link of each GPU */
    struct demand (*kernels)[2]; /* compute and memory of each GPU */
    int32_t *kernel_ids;
};

static void gpus_init(struct gpus *gpus, int32_t count, double kernel_bytes_per_s)
{
    *gpus = (struct gpus){.count = count};
    gpus->system = maxmin_new(&gpus->arena);
    gpus->collective = ARENA_ARRAY(&gpus->arena, struct demand, 2 * count);
    gpus->kernels = arena_alloc(&gpus->arena, sizeof(*gpus->kernels) * (size_t)count);
    gpus->kernel_ids = ARENA_ARRAY(&gpus->arena, int32_t, count);
    for (int32_t i = 0; i < count; i++) {
        const int32_t sm = maxmin_add_resource(gpus->system, 1);
        const int32_t memory = maxmin_add_resource(gpus->system, 3.35e12);
        const int32_t link = maxmin_add_resource(gpus->system, 50e9);
        struct demand *pair = &gpus->collective[(ptrdiff_t)2 * i];
        pair[0] = (struct demand){memory, 2};
        pair[1] = (struct demand){link, 1};
        gpus->kernels[i][0] = (struct demand){sm, 1};
        gpus->kernels[i][1] = (struct demand){memory, kernel_bytes_per_s};
    }
    maxmin_add(gpus->system, 1e12, HUGE_VAL, gpus->collective, 2 * count);
    for (int32_t i = 0; i < count; i++)
        gpus->kernel_ids[i] = maxmin_add(gpus->system, 1, 0.875, gpus->kernels[i], 2);
}

static void solve(struct gpus *gpus)
{
    const int32_t *changed = NULL;
    int32_t count = 0;
    maxmin_solve(gpus->system, &changed, &count);
}

static double replace_kernels_s(int32_t count, double kernel_bytes_per_s, int32_t repeats)
{
    struct gpus gpus;
    gpus_init(&gpus, count, kernel_bytes_per_s);
    solve(&gpus);
    const double start_s = bench_now_s();
    for (int32_t n = 0; n < repeats; n++) {
        const int32_t i = n % count;
        maxmin_remove(gpus.system, gpus.kernel_ids[i]);
        gpus.kernel_ids[i] = maxmin_add(gpus.system, 1, 1, gpus.kernels[i], 2);
        solve(&gpus);
    }
    const double took_s = bench_now_s() - start_s;
    arena_release(&gpus.arena);
    return took_s / repeats;
}

static double full_solve_s(int32_t count, double kernel_bytes_per_s)
{
    struct gpus gpus;
    gpus_init(&gpus, count, kernel_bytes_per_s);
    const double start_s = bench_now_s();
    solve(&gpus);
    const double took_s = bench_now_s() - start_s;
    arena_release(&gpus.arena);
    return took_s;
}

void bench_maxmin(void)
{
    static const double spare_bytes_per_s = 1.2e12, full_bytes_per_s = 3.3e12;
    double small_s[BENCH_ROUNDS], medium_s[BENCH_ROUNDS], wide_s[BENCH_ROUNDS],
        large_s[BENCH_ROUNDS];
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        small_s[round] = replace_kernels_s(1, full_bytes_per_s, 20000);
        medium_s[round] = replace_kernels_s(1024, spare_bytes_per_s, 20000);
        wide_s[round] = replace_kernels_s(1024, full_bytes_per_s, 50);
        large_s[round] = full_solve_s(16384, full_bytes_per_s);
    }
    printf("  %-42s %10.3f us\n", "small: one kernel replaced", 1e6 * bench_median(small_s));
    printf("  %-42s %10.3f us\n", "medium: one of 1,024, memory to spare",
           1e6 * bench_median(medium_s));
    printf("  %-42s %10.3f us\n", "wide: one of 1,024, memory full", 1e6 * bench_median(wide_s));
    printf("  %-42s %10.3f us\n", "large: whole solve, 16,384, memory full",
           1e6 * bench_median(large_s));
}
