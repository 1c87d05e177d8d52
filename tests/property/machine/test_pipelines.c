/*
 * tests/property/machine/test_pipelines.c: pipeline stages with shard groups inside them, on hosts
 * of which some are slow: folded against every rank on its own.
 *
 * Microbatches go forward through all stages and back again, gathers of a unit beside them.
 */
#include "machine_property.h"

enum { SEED = 77219, RUNS = 60, MAX_RANKS = 64, MICROBATCHES = 3, MAX_STAGES = 8 };

struct pipeline {
    struct mesh mesh;
    int64_t stages;
    struct group groups[2]; /* stages, shard groups */
    double bytes[MICROBATCHES], ms[MAX_STAGES];
};

struct seen {
    int64_t end_ps[MAX_RANKS]; /* by class */
};

static void see_mark(void *context, int64_t now_ps, int32_t class_idx, int32_t step, enum mark mark)
{
    (void)step;
    (void)mark;
    struct seen *seen = context;
    seen->end_ps[class_idx] = now_ps;
}

static bool pipeline_draw(struct pipeline *line, struct philox *random)
{
    struct mesh *mesh = &line->mesh;
    mesh_draw(mesh, random);
    line->stages = mesh->hosts < MAX_STAGES && philox_below(random, 2) == 0 ? mesh->hosts : 2;
    const int64_t ranks = mesh->hosts * mesh->gpus;
    const struct layout size = {.gpus_per_host = mesh->gpus, .ranks = ranks};
    for (int32_t i = 0; i < MICROBATCHES; i++)
        line->bytes[i] = 1e6 * (1 + philox_below(random, 80));
    for (int32_t i = 0; i < MAX_STAGES; i++)
        line->ms[i] = 1 + philox_unit(random);
    const bool is_good =
        CHECK_TRUE(group_along(&size, line->stages, ranks / line->stages, &line->groups[0])) &&
        CHECK_TRUE(group_along(&size, ranks / line->stages, 1, &line->groups[1]));
    line->groups[0].order = GROUP_STAGES;
    return is_good && CHECK_INT(mesh->cluster.status, STATUS_OK);
}

static void issue_transfer(struct toy *toy, enum op_kind kind, int32_t stream, int32_t hop,
                           double bytes)
{
    struct transfer *transfer = ARENA_PUSH(&toy->arena, &toy->program->transfers);
    *transfer = (struct transfer){.communicator = 0, .hop = hop, .bytes = bytes};
    toy_op(toy, kind, stream, toy->program->transfers.count - 1);
}

/* One way through the stage, `hop` forward or back: its first stage receives nothing. */
static void write_way(struct toy *toy, const struct pipeline *line, int64_t stage, int32_t hop,
                      const int32_t *events)
{
    const int64_t first = hop > 0 ? 0 : line->stages - 1, last = line->stages - 1 - first;
    const int32_t segment = toy_segment(toy, "stage", PASS_FORWARD, line->ms[stage]);
    for (int32_t k = 0; k < MICROBATCHES; k++) {
        if (stage != first)
            issue_transfer(toy, OP_RECV, TOY_GATHER, hop, line->bytes[k]);
        toy_op(toy, OP_RECORD, TOY_GATHER, events[0]);
        toy_op(toy, OP_WAIT, TOY_COMPUTE, events[0]);
        toy_op(toy, OP_SEGMENT, TOY_COMPUTE, segment);
        toy_op(toy, OP_COLLECTIVE, TOY_COMPUTE, 0);
        toy_op(toy, OP_RECORD, TOY_COMPUTE, events[1]);
        toy_op(toy, OP_WAIT, TOY_SCATTER, events[1]);
        if (stage != last)
            issue_transfer(toy, OP_SEND, TOY_SCATTER, hop, line->bytes[k]);
    }
}

static void write_stage(struct toy *toy, const struct pipeline *line, int64_t stage)
{
    toy->program->communicators.items[0] =
        (struct communicator){.name = "pp", .purpose = "test", .group = line->groups[0]};
    const int32_t shard = toy_communicator(toy, "dp_shard");
    toy->program->communicators.items[shard].group = line->groups[1];
    struct collective *gather = ARENA_PUSH(&toy->arena, &toy->program->collectives);
    *gather =
        (struct collective){.op = COLLECTIVE_ALL_GATHER, .communicator = shard, .bytes = 3.7e7};
    const int32_t events[2] = {toy_event(toy, "there"), toy_event(toy, "done")};
    write_way(toy, line, stage, 1, events);
    write_way(toy, line, stage, -1, events);
    toy_op(toy, OP_MARK, TOY_SCATTER, MARK_STEP_END);
}

static void play(struct pipeline *line, bool is_folded, struct layout *layout, struct seen *seen)
{
    struct mesh *mesh = &line->mesh;
    struct toy toy;
    const struct program *programs[MAX_RANKS];
    const struct observer observer = {.context = seen, .mark_reached = see_mark};
    *seen = (struct seen){0};
    CHECK_INT(layout_build_for_groups(&mesh->cluster.arena, &mesh->cluster.cluster, mesh->hosts,
                                      mesh->gpus, is_folded, line->groups, 2, layout,
                                      &mesh->cluster.diag),
              STATUS_OK);
    toy_init(&toy, 2, true);
    for (int32_t i = 0; i < line->stages; i++) {
        if (i > 0)
            toy_next_program(&toy);
        write_stage(&toy, line, i);
    }
    for (int32_t i = 0; i < layout->class_count; i++)
        programs[i] = toy.programs[group_place(&line->groups[0], layout->classes[i].first_rank)];
    const struct machine_setup setup = {.layout = layout,
                                        .programs = programs,
                                        .program_count = layout->class_count,
                                        .steps = 2,
                                        .observers = &observer,
                                        .observer_count = 1};
    struct machine_result result;
    CHECK_INT(machine_play(&toy.arena, &setup, &result, &toy.diag), STATUS_OK);
    diag_write(&toy.diag, stderr, false);
    toy_release(&toy);
}

static void test_folded_or_not(void)
{
    for (uint32_t run = 0; run < RUNS; run++) {
        struct philox random;
        static struct pipeline line;
        struct layout folded, unfolded;
        struct seen few, many;
        philox_init(&random, SEED, run, 0, 1);
        const bool is_good = pipeline_draw(&line, &random);
        check_context("seed %d, run %u: %d stages, %s", SEED, run, (int)line.stages,
                      line.mesh.text);
        if (is_good) {
            play(&line, true, &folded, &few);
            play(&line, false, &unfolded, &many);
            CHECK_TRUE(folded.class_count >= line.stages);
            for (int64_t i = 0; i < unfolded.ranks; i++)
                CHECK_NEAR((double)few.end_ps[folded.each->class_of[i]], (double)many.end_ps[i],
                           1e-9);
        }
        mesh_release(&line.mesh);
    }
    check_context(NULL);
}

const struct check_case pipelines_cases[] = {{"folded or not", test_folded_or_not}, {0}};
