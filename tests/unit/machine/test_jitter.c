/*
 * tests/unit/machine/test_jitter.c: drawn times on the toy machine, against integrals and folding
 * off.
 *
 * A gather meets all ranks, so a step of one 10 ms segment and a gather of 5 ms takes 10 ms times
 * the largest of n factors, and 5 ms. Expected values of the largest are integrals,
 * int n phi(z) Phi(z)^(n-1) exp(sigma z - sigma^2/2) dz, by the trapezoidal rule in steps of 0.001:
 *
 *     sigma 0.1     n = 8: 1.149399   n = 64: 1.259104   n = 1024: 1.377741
 *     z itself      n = 8: 1.423600   n = 64: 2.343733
 */
#include <math.h>
#include <stdlib.h>

#include "suites.h"
#include "toy.h"

enum { SAMPLES = 1500 };

/* `segments` of 10 ms in a row before each of `gathers` gathers of 5 ms. */
struct scene {
    int32_t ranks, segments, gathers;
    struct jitter jitter;
    bool has_own_streams; /* gathers on a stream of their own, behind an event */
};

static void add_round(const struct scene *scene, struct toy *toy)
{
    for (int32_t i = 0; i < scene->segments; i++)
        toy_op(toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(toy, "work", PASS_FORWARD, 10));
    const int32_t gather = toy_collective(toy, COLLECTIVE_ALL_GATHER, 0, 5);
    if (!scene->has_own_streams) {
        toy_op(toy, OP_COLLECTIVE, TOY_COMPUTE, gather);
        return;
    }
    const int32_t before = toy_event(toy, "before"), behind = toy_event(toy, "behind");
    toy_op(toy, OP_RECORD, TOY_COMPUTE, before);
    toy_op(toy, OP_WAIT, TOY_GATHER, before);
    toy_op(toy, OP_COLLECTIVE, TOY_GATHER, gather);
    toy_op(toy, OP_RECORD, TOY_GATHER, behind);
    toy_op(toy, OP_WAIT, TOY_COMPUTE, behind);
}

static double play_ms(const struct scene *scene, uint32_t sample, bool is_folded)
{
    struct toy toy;
    struct jitter jitter = scene->jitter;
    jitter.sample = sample;
    jitter.seed = 7;
    toy_init(&toy, scene->ranks, is_folded);
    toy.jitter = &jitter;
    for (int32_t i = 0; i < scene->gathers; i++)
        add_round(scene, &toy);
    const double ms = (double)toy_play(&toy).end_ps * 1e-9;
    toy_release(&toy);
    return ms;
}

static double mean_ms(const struct scene *scene)
{
    double sum = 0;
    for (uint32_t i = 0; i < SAMPLES; i++)
        sum += play_ms(scene, i, true);
    return sum / SAMPLES;
}

/* Met after each segment, the largest counts each time: 3 (10 · 1.149399 + 5). The deviation of one
   is about 0.07 · 10 ms, of the mean of 4,500 0.01 ms: 4 of them. */
static void test_meet_each_time(void)
{
    const struct scene scene = {
        .ranks = 8, .segments = 1, .gathers = 3, .jitter = {.kernel_sigma = 0.1}};
    CHECK_NEAR(mean_ms(&scene), 3 * (10 * 1.149399 + 5), 0.003);
}

/* Met once after 16: the sum of 16 factors is nearly normal with deviation 4 sigma, so the largest
   of 64 sums is 160 + 2.343733 · 4 · 1 ms above it, not 16 times the largest of one (41 ms above).
   exp(z) is skewed: up to 3 % of the 9.4 ms. */
static void test_add_up_before_meeting(void)
{
    const struct scene scene = {
        .ranks = 64, .segments = 16, .gathers = 1, .jitter = {.kernel_sigma = 0.1}};
    CHECK_NEAR(mean_ms(&scene) - 165, 2.343733 * 4, 0.05);
}

/* 1,024 ranks are more than are kept: order statistics widen the others. */
static void test_many_ranks(void)
{
    const struct scene scene = {
        .ranks = 1024, .segments = 1, .gathers = 1, .jitter = {.kernel_sigma = 0.1}};
    CHECK_NEAR(mean_ms(&scene) - 15, 3.77741, 0.02);
}

/* The slowest GPU of 64 is so all along: 10 (10 · 1.259104 + 5). */
static void test_gpus(void)
{
    const struct scene scene = {
        .ranks = 64, .segments = 1, .gathers = 10, .jitter = {.rank_sigma = 0.1}};
    CHECK_NEAR(mean_ms(&scene), 10 * (10 * 1.259104 + 5), 0.003);
}

/* Some one of 64 is twice as slow with probability 1 - 0.99^64 = 0.474404; a rank that is slow in a
   step is so in all of its segments. Of 1,500: a deviation of 0.013. */
static void test_stragglers(void)
{
    const struct scene scene = {.ranks = 64,
                                .segments = 2,
                                .gathers = 2,
                                .jitter = {.straggler_probability = 0.01, .straggler_slowdown = 2}};
    CHECK_NEAR((mean_ms(&scene) - 50) / 40, 0.474404, 0.1);
    for (uint32_t i = 0; i < 50; i++) {
        const double ms = play_ms(&scene, i, true);
        CHECK_TRUE(fabs(ms - 50) < 1e-6 || fabs(ms - 90) < 1e-6);
    }
}

/* One factor a collective, for all its ranks: mean 1. Deviation of a mean of 1,500 · 4: 0.3 %. */
static void test_network(void)
{
    const struct scene scene = {
        .ranks = 64, .segments = 1, .gathers = 4, .jitter = {.network_sigma = 0.2}};
    CHECK_NEAR((mean_ms(&scene) - 40) / 20, 1, 0.01);
}

/* Not on average but draw by draw: members of a folded class draw what ranks of their own would. */
static void test_same_as_unfolded(void)
{
    const struct jitter all = {.kernel_sigma = 0.1,
                               .rank_sigma = 0.05,
                               .network_sigma = 0.3,
                               .straggler_probability = 0.02,
                               .straggler_slowdown = 1.5};
    for (int32_t k = 0; k < 8; k++) {
        const struct scene scene = {.ranks = k % 2 == 0 ? 8 : 64,
                                    .segments = 1 + k % 3,
                                    .gathers = 5,
                                    .jitter = all,
                                    .has_own_streams = k >= 4};
        for (uint32_t i = 0; i < 10; i++)
            CHECK_NEAR(play_ms(&scene, i, true), play_ms(&scene, i, false), 1e-9);
    }
}

/* Nothing to draw: the same to the picosecond as without. */
static void test_nothing(void)
{
    const struct scene scene = {
        .ranks = 8, .segments = 2, .gathers = 2, .jitter = {.straggler_slowdown = 1}};
    CHECK_NEAR(play_ms(&scene, 0, true), 50, 0);
    CHECK_NEAR(play_ms(&scene, 1, false), 50, 0);
}

const struct check_case jitter_cases[] = {{"nothing to draw", test_nothing},
                                          {"meet each time", test_meet_each_time},
                                          {"add up before meeting", test_add_up_before_meeting},
                                          {"more ranks than members", test_many_ranks},
                                          {"speed of GPUs", test_gpus},
                                          {"stragglers", test_stragglers},
                                          {"network", test_network},
                                          {"same as unfolded", test_same_as_unfolded},
                                          {0}};
