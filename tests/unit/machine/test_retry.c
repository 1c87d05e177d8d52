/*
 * tests/unit/machine/test_retry.c: memory that is used up, by hand.
 *
 * A GPU of 100 MiB; a cudaFree costs 2 ms and 0.1 ms for each of its pages of 2 MiB, a cudaMalloc 1
 * ms and 0.05 ms a page: 60 MiB for 60 MiB are 2 + 30 * 0.1 + 1 + 30 * 0.05 = 7.5 ms.
 */
#include "check.h"
#include "suites.h"
#include "toy.h"

static const int64_t mib = INT64_C(1) << 20;

struct seen {
    struct memory_retry retries[8];
    int32_t count;
    int64_t most_reserved;
};

static void see_retry(void *context, const struct memory_retry *retry)
{
    struct seen *seen = context;
    if (seen->count < 8)
        seen->retries[seen->count++] = *retry;
}

static void see_change(void *context, const struct memory_change *change)
{
    struct seen *seen = context;
    if (change->reserved_bytes > seen->most_reserved)
        seen->most_reserved = change->reserved_bytes;
}

static void begin(struct toy *toy, struct seen *seen, int32_t ranks, bool is_folded)
{
    toy_init(toy, ranks, is_folded);
    toy->limits_memory = true;
    toy->cluster.gpu.memory_bytes = 100 * mib;
    toy->cluster.host_cost_s[HOST_DEVICE_FREE] = 2e-3;
    toy->cluster.host_cost_s[HOST_DEVICE_FREE_PAGE] = 0.1e-3;
    toy->cluster.host_cost_s[HOST_DEVICE_MALLOC] = 1e-3;
    toy->cluster.host_cost_s[HOST_DEVICE_MALLOC_PAGE] = 0.05e-3;
    *seen = (struct seen){0};
    toy->observers[0] = (struct observer){
        .context = seen, .memory_changed = see_change, .memory_retried = see_retry};
    toy->observer_count = 1;
}

static int32_t tensor(struct toy *toy, int64_t size_mib, int32_t stream)
{
    return toy_tensor(toy, "t", size_mib * mib, MEMORY_TEMPORARIES, stream);
}

static void work(struct toy *toy, double ms)
{
    toy_op(toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(toy, "work", PASS_FORWARD, ms));
}

/* 60 MiB on one stream, freed, then as much on `stream`. */
static void write_two(struct toy *toy, int64_t second_mib, int32_t stream)
{
    const int32_t a = tensor(toy, 60, TOY_COMPUTE), b = tensor(toy, second_mib, stream);
    toy_op(toy, OP_ALLOC, 0, a);
    work(toy, 10);
    toy_op(toy, OP_FREE, 0, a);
    toy_op(toy, OP_ALLOC, 0, b);
    work(toy, 5);
}

/* The other pool's block is free in host order at once, but serves only when given back. */
static void test_retry(void)
{
    struct toy toy;
    struct seen seen;
    begin(&toy, &seen, 2, true);
    write_two(&toy, 60, TOY_GATHER);
    const struct machine_result result = toy_play(&toy);
    CHECK_TRUE(!result.is_out_of_memory);
    CHECK_NEAR(ms_from_ps(result.end_ps), 10 + 7.5 + 5, 1e-9);
    CHECK_INT(seen.count, 1);
    CHECK_NEAR(ms_from_ps(seen.retries[0].end_ps), 17.5, 1e-9);
    CHECK_INT(seen.retries[0].begin_ps, 0);
    CHECK_INT(seen.retries[0].freed_bytes, 60 * mib);
    CHECK_INT(seen.most_reserved, 60 * mib);
    toy_release(&toy);
}

static void test_no_retry(void)
{
    static const struct {
        bool limits_memory;
        int32_t stream;
        int64_t reserved_mib;
    } rows[] = {{true, TOY_COMPUTE, 60}, {false, TOY_GATHER, 120}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct toy toy;
        struct seen seen;
        begin(&toy, &seen, 2, true);
        toy.limits_memory = rows[i].limits_memory;
        write_two(&toy, 60, rows[i].stream);
        CHECK_NEAR(ms_from_ps(toy_play(&toy).end_ps), 15, 1e-9);
        CHECK_INT(seen.count, 0);
        CHECK_INT(seen.most_reserved, rows[i].reserved_mib * mib);
        toy_release(&toy);
    }
}

/* After a retry what the driver gives costs time: 10 MiB, 1 + 5 * 0.05 ms. */
static void test_malloc_behind_retry(void)
{
    struct toy toy;
    struct seen seen;
    begin(&toy, &seen, 2, true);
    const int32_t c = tensor(&toy, 10, TOY_SCATTER);
    write_two(&toy, 60, TOY_GATHER);
    toy_op(&toy, OP_ALLOC, 0, c);
    work(&toy, 3);
    CHECK_NEAR(ms_from_ps(toy_play(&toy).end_ps), 10 + 7.5 + 5 + 3, 1e-9);
    /* 1.25 ms are hidden behind the 5 ms; not behind nothing. */
    toy_release(&toy);
    begin(&toy, &seen, 2, true);
    const int32_t d = tensor(&toy, 10, TOY_SCATTER), a = tensor(&toy, 60, TOY_COMPUTE);
    const int32_t b = tensor(&toy, 60, TOY_GATHER);
    toy_op(&toy, OP_ALLOC, 0, a);
    work(&toy, 10);
    toy_op(&toy, OP_FREE, 0, a);
    toy_op(&toy, OP_ALLOC, 0, b);
    work(&toy, 1);
    toy_op(&toy, OP_ALLOC, 0, d);
    work(&toy, 3);
    CHECK_NEAR(ms_from_ps(toy_play(&toy).end_ps), 10 + 7.5 + 1.25 + 3, 1e-9);
    CHECK_INT(seen.most_reserved, 70 * mib);
    toy_release(&toy);
}

/* A block that another stream still uses comes back when the GPU is idle. */
static void test_recorded_block(void)
{
    struct toy toy;
    struct seen seen;
    begin(&toy, &seen, 2, true);
    const int32_t a = tensor(&toy, 60, TOY_GATHER), b = tensor(&toy, 60, TOY_GATHER);
    toy_op(&toy, OP_ALLOC, 0, a);
    work(&toy, 10);
    toy_op(&toy, OP_RECORD_STREAM, TOY_COMPUTE, a);
    toy_op(&toy, OP_FREE, 0, a);
    toy_op(&toy, OP_ALLOC, 0, b);
    work(&toy, 5);
    CHECK_NEAR(ms_from_ps(toy_play(&toy).end_ps), 22.5, 1e-9);
    CHECK_INT(seen.count, 1);
    toy_release(&toy);
}

static void test_out_of_memory(void)
{
    struct toy toy;
    struct seen seen;
    begin(&toy, &seen, 2, true);
    write_two(&toy, 101, TOY_GATHER);
    CHECK_TRUE(toy_play(&toy).is_out_of_memory);
    CHECK_INT(seen.count, 0);
    toy_release(&toy);
    /* Context and the communicator are not for the allocator: 44 MiB are left. */
    begin(&toy, &seen, 2, true);
    toy.cluster.gpu.context_bytes = 30 * mib;
    toy.cluster.gpu.communicator_bytes = 26 * mib;
    toy_op(&toy, OP_ALLOC, 0, tensor(&toy, 44, TOY_COMPUTE));
    work(&toy, 1);
    CHECK_TRUE(!toy_play(&toy).is_out_of_memory);
    toy.cluster.gpu.context_bytes += 1;
    CHECK_TRUE(toy_play(&toy).is_out_of_memory);
    toy_release(&toy);
}

/* Every rank on its own, a collective before and behind: each waits for its own GPU. */
static void test_two_classes(void)
{
    struct toy toy;
    struct seen seen;
    begin(&toy, &seen, 2, false);
    const int32_t gather = toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 10);
    const int32_t a = tensor(&toy, 60, TOY_COMPUTE), b = tensor(&toy, 60, TOY_GATHER);
    toy_op(&toy, OP_ALLOC, 0, a);
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, gather);
    toy_op(&toy, OP_FREE, 0, a);
    toy_op(&toy, OP_ALLOC, 0, b);
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, gather);
    CHECK_NEAR(ms_from_ps(toy_play(&toy).end_ps), 10 + 7.5 + 10, 1e-9);
    CHECK_INT(seen.count, 2);
    toy_release(&toy);
}

const struct check_case retry_cases[] = {
    {"a retry", test_retry},
    {"none", test_no_retry},
    {"the driver's time behind a retry", test_malloc_behind_retry},
    {"a recorded block", test_recorded_block},
    {"out of memory", test_out_of_memory},
    {"two classes", test_two_classes},
    {0}};
