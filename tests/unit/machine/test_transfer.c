/*
 * tests/unit/machine/test_transfer.c: point to point, with figures by hand, on hosts of ideal GPUs
 * without latency.
 */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "cluster/group_layout.h"
#include "cluster_fixture.h"
#include "suites.h"
#include "toy.h"

#define MS INT64_C(1000000000)

enum { STAGES_MAX = 4 };

struct line {
    struct cluster_fixture fixture;
    struct toy toy;
};

/* Every stage its program, all still empty; places are rank / stride mod ranks. */
static void line_init(struct line *line, int64_t hosts, int64_t gpus, const char *const *overrides,
                      int64_t ranks, int64_t stride, enum group_order order)
{
    *line = (struct line){0};
    fixture_init(&line->fixture, "ideal-64-400", overrides);
    if (!CHECK_INT(line->fixture.status, STATUS_OK))
        puts(fixture_messages(&line->fixture));
    const struct layout size = {.gpus_per_host = gpus, .ranks = hosts * gpus};
    struct group group;
    CHECK_TRUE(group_along(&size, ranks, stride, &group));
    group.order = order;
    toy_init(&line->toy, 2, true);
    CHECK_INT(layout_build_for_groups(&line->fixture.arena, &line->fixture.cluster, hosts, gpus,
                                      true, &group, 1, &line->toy.layout, &line->fixture.diag),
              STATUS_OK);
    const int32_t count = order == GROUP_STAGES ? (int32_t)ranks : 1;
    for (int32_t i = 1; i < count; i++)
        toy_next_program(&line->toy);
    for (int32_t i = 0; i < count; i++)
        line->toy.programs[i]->communicators.items[0] =
            (struct communicator){.name = "pp", .purpose = "test", .group = group};
}

static void line_release(struct line *line)
{
    toy_release(&line->toy);
    fixture_release(&line->fixture);
}

/* What follows is written for this stage. */
static void line_stage(struct line *line, int32_t stage)
{
    line->toy.program = line->toy.programs[stage];
    line->toy.list = &line->toy.program->step;
}

static void transfer(struct line *line, enum op_kind kind, int32_t stream, int32_t hop,
                     double bytes)
{
    struct toy *toy = &line->toy;
    struct transfer *made = ARENA_PUSH(&toy->arena, &toy->program->transfers);
    *made = (struct transfer){.communicator = 0, .hop = hop, .bytes = bytes};
    toy_op(toy, kind, stream, toy->program->transfers.count - 1);
}

static const char *const one_nic[] = {"host.nics.count=1",
                                      "host.nics.link.bandwidth=1 GB/s",
                                      "host.nics.link.step_latency=0 s",
                                      "host.scale_up.link.bandwidth=1 GB/s",
                                      "host.scale_up.link.step_latency=0 s",
                                      NULL};

/* Stage 0 on host 0, stage 1 on host 1: 8 GPUs send 1 MB each through one NIC of 1 GB/s: 8 ms. The
   way back is another direction of the NIC: as much beside it takes no longer. */
static void test_stages_share_a_nic(void)
{
    struct line line;
    line_init(&line, 2, 8, one_nic, 2, 8, GROUP_STAGES);
    CHECK_INT(line.toy.layout.class_count, 2);
    line_stage(&line, 0);
    transfer(&line, OP_SEND, TOY_GATHER, 1, 1e6);
    line_stage(&line, 1);
    transfer(&line, OP_RECV, TOY_GATHER, 1, 1e6);
    CHECK_INT(toy_play(&line.toy).end_ps, 8 * MS);
    line_stage(&line, 0);
    transfer(&line, OP_RECV, TOY_SCATTER, -1, 1e6);
    line_stage(&line, 1);
    transfer(&line, OP_SEND, TOY_SCATTER, -1, 1e6);
    CHECK_INT(toy_play(&line.toy).end_ps, 8 * MS);
    line_release(&line);
}

/* All of a ring send on and receive: in and out of each port at once, one class. */
static void test_ring_shift(void)
{
    static const char *const four[] = {"host.gpus=4", "host.scale_up.link.bandwidth=1 GB/s",
                                       "host.scale_up.link.step_latency=0.5 ms", NULL};
    struct line line;
    line_init(&line, 1, 4, four, 4, 1, GROUP_RING);
    CHECK_INT(line.toy.layout.class_count, 1);
    transfer(&line, OP_SEND, TOY_GATHER, 1, 3e6);
    transfer(&line, OP_RECV, TOY_SCATTER, 1, 3e6);
    transfer(&line, OP_SEND, TOY_GATHER, 1, 2e6);
    transfer(&line, OP_RECV, TOY_SCATTER, 1, 2e6);
    CHECK_INT(toy_play(&line.toy).end_ps, 6 * MS); /* 0.5 + 3 + 0.5 + 2 */
    line_release(&line);
}

/* Stage s of 4 computes microbatch k for 10 ms once it is there; it arrives 1 ms after the stage
   before is done: the last of 3 ends at 11 · 3 + 10 · 3. */
static void test_pipeline_fills(void)
{
    static const char *const lines[] = {"host.gpus=1", "host.nics.count=1",
                                        "host.nics.link.bandwidth=1 GB/s",
                                        "host.nics.link.step_latency=0 s", NULL};
    struct line line;
    line_init(&line, STAGES_MAX, 1, lines, STAGES_MAX, 1, GROUP_STAGES);
    for (int32_t stage = 0; stage < STAGES_MAX; stage++) {
        line_stage(&line, stage);
        struct toy *toy = &line.toy;
        const int32_t there = toy_event(toy, "there"), done = toy_event(toy, "done");
        const int32_t segment = toy_segment(toy, "stage", PASS_FORWARD, 10);
        for (int32_t k = 0; k < 3; k++) {
            if (stage > 0)
                transfer(&line, OP_RECV, TOY_GATHER, 1, 1e6);
            toy_op(toy, OP_RECORD, TOY_GATHER, there);
            toy_op(toy, OP_WAIT, TOY_COMPUTE, there);
            toy_op(toy, OP_SEGMENT, TOY_COMPUTE, segment);
            toy_op(toy, OP_RECORD, TOY_COMPUTE, done);
            toy_op(toy, OP_WAIT, TOY_SCATTER, done);
            if (stage + 1 < STAGES_MAX)
                transfer(&line, OP_SEND, TOY_SCATTER, 1, 1e6);
        }
    }
    CHECK_INT(toy_play(&line.toy).end_ps, 63 * MS);
    line_release(&line);
}

static bool has_message(const struct toy *toy, const char *part)
{
    for (int32_t i = 0; i < toy->diag.count; i++) {
        if (strstr(toy->diag.items[i].text, part) != NULL)
            return true;
    }
    return false;
}

static void test_mistakes_are_explained(void)
{
    struct line line;
    struct machine_result result;
    line_init(&line, 2, 8, one_nic, 2, 8, GROUP_STAGES);
    line_stage(&line, 0);
    transfer(&line, OP_SEND, TOY_GATHER, 1, 1e6);
    CHECK_INT(toy_try_play(&line.toy, &result), STATUS_INPUT);
    CHECK_TRUE(has_message(&line.toy, "send on communicator 'pp' awaits its receiver"));
    line_stage(&line, 1);
    transfer(&line, OP_RECV, TOY_GATHER, 1, 2e6);
    CHECK_INT(toy_try_play(&line.toy, &result), STATUS_INPUT);
    CHECK_TRUE(has_message(&line.toy, "transfer of 2000000 bytes"));
    line_release(&line);
    line_init(&line, 2, 8, one_nic, 2, 8, GROUP_STAGES);
    line_stage(&line, 1);
    transfer(&line, OP_RECV, TOY_GATHER, 1, 1e6);
    CHECK_INT(toy_try_play(&line.toy, &result), STATUS_INPUT);
    CHECK_TRUE(has_message(&line.toy, "recv on communicator 'pp' awaits its sender"));
    line_release(&line);
}

const struct check_case transfer_cases[] = {
    {"stages share a NIC", test_stages_share_a_nic},
    {"ring shift", test_ring_shift},
    {"pipeline fills", test_pipeline_fills},
    {"mistakes are explained", test_mistakes_are_explained},
    {0},
};
