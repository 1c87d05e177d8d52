/*
 * tests/unit/machine/test_sharing.c: collectives that meet on a wire, with figures by hand.
 *
 * Hosts of ideal GPUs: scale-up 100 GB/s, one NIC of 1 GB/s a host, no latency, unless a case says
 * otherwise. A ring all-gather of S over n ranks on several hosts sends S · (n − 1) / n out of
 * each.
 */
#include <stdio.h>

#include "check.h"
#include "cluster/group_layout.h"
#include "cluster_fixture.h"
#include "suites.h"
#include "toy.h"

#define S_PS INT64_C(1000000000000)

enum { MAX_OPS = 4 };

struct part { /* one collective on a stream and a communicator of its own */
    enum collective_op op;
    int64_t ranks, stride; /* of its group */
    double bytes, start_s;
    double end_s; /* expected */
};

struct meeting {
    struct cluster_fixture fixture;
    struct toy toy;
    int64_t first_ps[MAX_OPS], end_ps[MAX_OPS]; /* of the classes */
};

/* By the stream's order: told when the stream behind the collective is reached. */
static void told_mark(void *context, int64_t now_ps, int32_t class_idx, int32_t step,
                      enum mark mark)
{
    (void)class_idx;
    (void)step;
    struct meeting *meeting = context;
    if (meeting->first_ps[mark] == 0)
        meeting->first_ps[mark] = now_ps;
    meeting->end_ps[mark] = now_ps;
}

static void meeting_init(struct meeting *meeting, const char *cluster, int64_t hosts, int64_t gpus,
                         const char *const *overrides, const struct part *parts, int32_t count)
{
    *meeting = (struct meeting){0};
    fixture_init(&meeting->fixture, cluster, overrides);
    if (!CHECK_INT(meeting->fixture.status, STATUS_OK))
        puts(fixture_messages(&meeting->fixture));
    struct group groups[MAX_OPS];
    const struct layout size = {.gpus_per_host = gpus, .ranks = hosts * gpus};
    for (int32_t i = 0; i < count; i++)
        CHECK_TRUE(group_along(&size, parts[i].ranks, parts[i].stride, &groups[i]));
    struct layout layout = {0};
    CHECK_INT(layout_build_for_groups(&meeting->fixture.arena, &meeting->fixture.cluster, hosts,
                                      gpus, true, groups, count, &layout, &meeting->fixture.diag),
              STATUS_OK);
    struct toy *toy = &meeting->toy;
    toy_init(toy, 2, true);
    toy->layout = layout;
    toy->observers[0] = (struct observer){.context = meeting, .mark_reached = told_mark};
    toy->observer_count = 1;
    for (int32_t i = 0; i < count; i++) {
        const int32_t comm = i > 0 ? toy_communicator(toy, "other") : 0;
        toy->program->communicators.items[comm].group = groups[i];
        struct collective *collective = ARENA_PUSH(&toy->arena, &toy->program->collectives);
        *collective =
            (struct collective){.op = parts[i].op, .communicator = comm, .bytes = parts[i].bytes};
        if (parts[i].start_s > 0)
            toy_op(toy, OP_SEGMENT, i,
                   toy_segment(toy, "before", PASS_FORWARD, parts[i].start_s * 1e3));
        toy_op(toy, OP_COLLECTIVE, i, i);
        toy_op(toy, OP_MARK, i, i);
    }
}

static void meeting_release(struct meeting *meeting)
{
    toy_release(&meeting->toy);
    fixture_release(&meeting->fixture);
}

/* Plays the parts together, as `network` says. */
static void check_meeting(int64_t hosts, int64_t gpus, const char *const *overrides,
                          enum network_mode network, const struct part *parts, int32_t count)
{
    struct meeting meeting;
    meeting_init(&meeting, "ideal-64-400", hosts, gpus, overrides, parts, count);
    meeting.toy.network = network;
    (void)toy_play(&meeting.toy);
    for (int32_t i = 0; i < count; i++)
        CHECK_NEAR((double)meeting.end_ps[i], parts[i].end_s * (double)S_PS, 1e-9);
    meeting_release(&meeting);
}

static const char *const wires[] = {"host.gpus=1",
                                    "host.nics.count=1",
                                    "host.nics.link.bandwidth=1 GB/s",
                                    "host.nics.link.step_latency=0 s",
                                    "collectives.algorithm=ring",
                                    NULL};

static void test_two_collectives_on_one_nic(void)
{
    static const struct part alone[] = {{COLLECTIVE_ALL_GATHER, 2, 1, 2e9, 0, 1}};
    check_meeting(2, 1, wires, NETWORK_FLOWS, alone, 1);
    static const struct part both[] = {{COLLECTIVE_ALL_GATHER, 2, 1, 2e9, 0, 2},
                                       {COLLECTIVE_REDUCE_SCATTER, 2, 1, 2e9, 0, 2}};
    check_meeting(2, 1, wires, NETWORK_FLOWS, both, 2);
    /* The short one ends at 1 s, when half of the long one is left and has the NIC for itself. */
    static const struct part unequal[] = {{COLLECTIVE_ALL_GATHER, 2, 1, 2e9, 0, 1.5},
                                          {COLLECTIVE_ALL_GATHER, 2, 1, 1e9, 0, 1}};
    check_meeting(2, 1, wires, NETWORK_FLOWS, unequal, 2);
    /* Begun at 0.4 s: 0.6 GB left, at half until 1.6 s, when 0.4 GB of the second are left. */
    static const struct part later[] = {{COLLECTIVE_ALL_GATHER, 2, 1, 2e9, 0, 1.6},
                                        {COLLECTIVE_ALL_GATHER, 2, 1, 2e9, 0.4, 2}};
    check_meeting(2, 1, wires, NETWORK_FLOWS, later, 2);
}

/* What a ring reaches is a cap on it, not a lower capacity: two at half of the NIC fit beside each
   other; two at three quarters get a half each. */
static void test_caps_leave_room(void)
{
    const char *overrides[8] = {NULL};
    for (int32_t i = 0; wires[i] != NULL; i++)
        overrides[i] = wires[i];
    overrides[5] = "host.nics.link.ring_efficiency=0.5";
    static const struct part halves[] = {{COLLECTIVE_ALL_GATHER, 2, 1, 2e9, 0, 2},
                                         {COLLECTIVE_ALL_GATHER, 2, 1, 2e9, 0, 2}};
    check_meeting(2, 1, overrides, NETWORK_FLOWS, halves, 1);
    check_meeting(2, 1, overrides, NETWORK_FLOWS, halves, 2);
    overrides[5] = "host.nics.link.ring_efficiency=0.75";
    static const struct part alone[] = {{COLLECTIVE_ALL_GATHER, 2, 1, 2e9, 0, 4.0 / 3}};
    check_meeting(2, 1, overrides, NETWORK_FLOWS, alone, 1);
    check_meeting(2, 1, overrides, NETWORK_FLOWS, halves, 2);
}

static const char *const pairs[] = {"host.gpus=2",
                                    "host.scale_up.link.bandwidth=100 GB/s",
                                    "host.scale_up.link.step_latency=0 s",
                                    "host.nics.count=1",
                                    "host.nics.link.bandwidth=1 GB/s",
                                    "host.nics.link.step_latency=0 s",
                                    "collectives.algorithm=ring",
                                    NULL};

/*
 * dp_replicate 2 × dp_shard 4 on 4 hosts of 2. A shard group's all-gather of 4/3 GB sends 1 GB
 * through each NIC. Replica groups {0, 4}, {1, 5}, …: an all-reduce of 0.5 GB sends 0.5 GB; the two
 * GPUs of a host do so at once: 1 GB a NIC, 1 s alone. Together three rings share each NIC, a third
 * each: the all-reduces end at 1.5 s, when the all-gather has half of its bytes to go.
 */
static void test_meshes_meet(void)
{
    static const struct part gather[] = {{COLLECTIVE_ALL_GATHER, 4, 1, 4e9 / 3, 0, 1}};
    check_meeting(4, 2, pairs, NETWORK_FLOWS, gather, 1);
    static const struct part reduce[] = {{COLLECTIVE_ALL_REDUCE, 2, 4, 0.5e9, 0, 1}};
    check_meeting(4, 2, pairs, NETWORK_FLOWS, reduce, 1);
    static const struct part both[] = {{COLLECTIVE_ALL_GATHER, 4, 1, 4e9 / 3, 0, 2},
                                       {COLLECTIVE_ALL_REDUCE, 2, 4, 0.5e9, 0, 1.5}};
    check_meeting(4, 2, pairs, NETWORK_FLOWS, both, 2);
}

/* The slow NIC of host 3 (a quarter) slows the rings that it is in: shard group 1; replicas of
 * hosts 1 and 3. The others are as fast as ever. */
static void test_one_slow_nic(void)
{
    const char *overrides[9] = {NULL};
    for (int32_t i = 0; pairs[i] != NULL; i++)
        overrides[i] = pairs[i];
    overrides[7] = "overrides=[{host: 3, nic_frac: 0.25}]";
    static const struct part gather[] = {{COLLECTIVE_ALL_GATHER, 4, 1, 4e9 / 3, 0, 4}};
    static const struct part reduce[] = {{COLLECTIVE_ALL_REDUCE, 2, 4, 0.5e9, 0, 4}};
    check_meeting(4, 2, overrides, NETWORK_FLOWS, gather, 1);
    struct meeting meeting;
    meeting_init(&meeting, "ideal-64-400", 4, 2, overrides, reduce, 1);
    CHECK_INT(meeting.toy.layout.class_count, 3); /* host 3, host 1, hosts 0 and 2 */
    CHECK_INT(toy_play(&meeting.toy).end_ps, 4 * S_PS);
    CHECK_INT(meeting.first_ps[0], S_PS);
    meeting_release(&meeting);
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Two GPUs in slots of 1 GB/s below one switch whose uplink has 1 GB/s, or as `uplink` says. */
static void check_copies(const char *uplink, double gather_bytes, double gather_end_s,
                         double copy_end_s)
{
    struct arena texts = {0};
    const char *const overrides[] = {
        "host.gpus=2",
        arena_printf(&texts,
                     "host.pcie={link: {name: ideal, bandwidth: 1 GB/s, step_latency: 0 s, "
                     "ring_efficiency: 1, sources: {bandwidth: round, step_latency: ideal, "
                     "ring_efficiency: ideal}}, switches: [{name: plx, gpus: 0-1, numa: 0%s}]}",
                     uplink),
        NULL};
    const struct part gather[] = {{COLLECTIVE_ALL_GATHER, 2, 1, gather_bytes, 0, 0}};
    struct meeting meeting;
    meeting_init(&meeting, "ideal-10gbps", 1, 2, overrides, gather, 1);
    toy_op(&meeting.toy, OP_COPY, 1, COPY_D2H)->bytes = 1000000000;
    toy_op(&meeting.toy, OP_MARK, 1, 1);
    (void)toy_play(&meeting.toy);
    CHECK_NEAR((double)meeting.end_ps[0], gather_end_s * (double)S_PS, 1e-9);
    CHECK_NEAR((double)meeting.end_ps[1], copy_end_s * (double)S_PS, 1e-9);
    meeting_release(&meeting);
    arena_release(&texts);
}

/*
 * Each GPU copies 1 GB to the host. Alone the two share the uplink: 2 s. An all-gather of 2 GB
 * sends 1 GB from slot to slot, below the switch: 1 s alone. Together each slot's way up is shared
 * half and half, which is what the uplink leaves of the copies anyway: 2 s both. With an uplink of
 * 0.5 GB/s the copies get a quarter each, 4 s, and the all-gather the other three: 1.333 s. With
 * one of 4 GB/s the slots alone bind: half and half until both are done at 2 s, or until an
 * all-gather of half the bytes is done at 1 s.
 */
static void test_copy_beside_gather(void)
{
    check_copies("", 0, 0, 2);
    check_copies(", uplink_bandwidth: 0.5 GB/s", 0, 0, 4);
    check_copies(", uplink_bandwidth: 4 GB/s", 0, 0, 1);
    check_copies("", 2e9, 2, 2);
    check_copies(", uplink_bandwidth: 0.5 GB/s", 2e9, 4.0 / 3, 4);
    check_copies(", uplink_bandwidth: 4 GB/s", 2e9, 2, 2);
    check_copies(", uplink_bandwidth: 4 GB/s", 1e9, 1, 1.5);
}

/* ---- network: messages -------------------------------------------------------------------- */

/* One ring alone: all-gathers over 2 to 16 GPUs of one host, or of hosts of 2, with latency. */
static void test_messages_agree_alone(void)
{
    static const char *const real[] = {"host.gpus=2", "host.nics.count=2", NULL};
    for (int64_t hosts = 1; hosts <= 8; hosts *= 2) {
        for (int op = 0; op < COLLECTIVE_OP_COUNT; op++) {
            const struct part part[] = {{(enum collective_op)op, 2 * hosts, 1, 3.7e9, 0, 0}};
            struct meeting meeting;
            meeting_init(&meeting, "ideal-64-400", hosts, 2, real, part, 1);
            const int64_t flows_ps = toy_play(&meeting.toy).end_ps;
            meeting.toy.network = NETWORK_MESSAGES;
            /* every round ends on a whole picosecond, up to 30 of them */
            CHECK_NEAR((double)toy_play(&meeting.toy).end_ps, (double)flows_ps, 1e-8);
            meeting_release(&meeting);
        }
    }
}

/*
 * Two rings of 4 GPUs on one host at 1 GB/s, 3 rounds of 1 ms and 3 MB, the second begun at 2 ms.
 * Flows: 3 ms of latency each, then bytes: the first has 2 of 9 MB done at 5 ms, shares until 19
 * ms; the second has 2 MB left. Messages: the bytes of one pass while the other is in its latency;
 * the first ends its rounds at 5, 11, 17 ms, the second at 8, 14, 19.
 */
static void test_messages_differ_in_gaps(void)
{
    static const char *const one_host[] = {"host.gpus=4", "host.scale_up.link.bandwidth=1 GB/s",
                                           "host.scale_up.link.step_latency=1 ms",
                                           "collectives.algorithm=ring", NULL};
    static const struct part flows[] = {{COLLECTIVE_ALL_GATHER, 4, 1, 12e6, 0, 19e-3},
                                        {COLLECTIVE_ALL_GATHER, 4, 1, 12e6, 2e-3, 21e-3}};
    check_meeting(1, 4, one_host, NETWORK_FLOWS, flows, 2);
    static const struct part messages[] = {{COLLECTIVE_ALL_GATHER, 4, 1, 12e6, 0, 17e-3},
                                           {COLLECTIVE_ALL_GATHER, 4, 1, 12e6, 2e-3, 19e-3}};
    check_meeting(1, 4, one_host, NETWORK_MESSAGES, messages, 2);
    /* Begun together they collide in every round, and agree. */
    static const struct part together[] = {{COLLECTIVE_ALL_GATHER, 4, 1, 12e6, 0, 21e-3},
                                           {COLLECTIVE_ALL_GATHER, 4, 1, 12e6, 0, 21e-3}};
    check_meeting(1, 4, one_host, NETWORK_FLOWS, together, 2);
    check_meeting(1, 4, one_host, NETWORK_MESSAGES, together, 2);
}

/*
 * A ring over 2 hosts of 2, 3 MB in 3 rounds: NIC 0.5 GB/s, bounding, and half of the bytes over
 * ports of 1 GB/s; beside it a gather of 4.5 MB inside each host. As flows the ring needs a quarter
 * of the ports all along, the gather all: both at 4/5 until the gather ends at 5.625 ms; the ring's
 * last 0.75 MB end at 7.125. As messages the ring's 2 ms of a round hold 1 ms in which its bytes
 * take half of the ports; it is not slowed, 6 ms, and neither is the gather beyond that: 0.5 + 1 MB
 * a round, 6 ms.
 */
static void test_messages_differ_on_unequal_links(void)
{
    static const char *const unequal[] = {"host.gpus=2",
                                          "host.scale_up.link.bandwidth=1 GB/s",
                                          "host.scale_up.link.step_latency=0 s",
                                          "host.nics.count=1",
                                          "host.nics.link.bandwidth=0.5 GB/s",
                                          "host.nics.link.step_latency=0 s",
                                          "collectives.algorithm=ring",
                                          NULL};
    static const struct part flows[] = {{COLLECTIVE_ALL_GATHER, 4, 1, 4e6, 0, 7.125e-3},
                                        {COLLECTIVE_ALL_GATHER, 2, 1, 9e6, 0, 5.625e-3}};
    check_meeting(2, 2, unequal, NETWORK_FLOWS, flows, 2);
    static const struct part messages[] = {{COLLECTIVE_ALL_GATHER, 4, 1, 4e6, 0, 6e-3},
                                           {COLLECTIVE_ALL_GATHER, 2, 1, 9e6, 0, 6e-3}};
    check_meeting(2, 2, unequal, NETWORK_MESSAGES, messages, 2);
}

const struct check_case sharing_cases[] = {
    {"two collectives on one NIC", test_two_collectives_on_one_nic},
    {"caps leave room", test_caps_leave_room},
    {"meshes meet", test_meshes_meet},
    {"one slow NIC", test_one_slow_nic},
    {"copy beside gather", test_copy_beside_gather},
    {"messages agree alone", test_messages_agree_alone},
    {"messages differ in gaps", test_messages_differ_in_gaps},
    {"messages differ on unequal links", test_messages_differ_on_unequal_links},
    {0},
};
