/*
 * machine/machine_tape.c: lays a program out as tapes: per stream, with host times and bound
 * events.
 *
 * The host's clock runs through the operations: a kernel, a collective, a record or wait costs what
 * the cluster says, HOST_COMPUTE what the host's memory and cores allow; ALLOC, FREE, MARK and
 * HOST_WAIT cost nothing. Kernel i of a segment of n is issued (n - 1 - i) costs before the
 * segment's issue time.
 *
 * Bindings: tapes are laid out in the order prologue, step 0, step 1, step 2; step 2 stands for all
 * later ones, which differ only in their number. A wait that finds its record in the step before is
 * therefore relative; one that finds it in the prologue or in step 0 names that step.
 */
#include <string.h>

#include "base/units.h"
#include "machine/machine_private.h"

struct binder {
    int32_t site;
    int32_t step; /* STEP_NEVER: no record yet */
};

struct writer {
    struct machine *machine;
    struct arena *arena;
    struct score *score;
    struct tape *tape;
    int32_t step;
    int64_t clock_ps; /* of the host, since the epoch began */
    bool is_fresh;    /* nothing but allocations in it so far */
    int64_t cost_ps[HOST_COST_COUNT];
    struct binder *last_record;           /* by event */
    uint32_t *recorded;                   /* by tensor: streams that use it, a bit each */
    int32_t *prologue_sites, *step_sites; /* by operation */
};

static struct binding writer_bind(const struct writer *writer, int32_t event)
{
    const struct binder *last = &writer->last_record[event];
    if (last->step == STEP_NEVER)
        return (struct binding){.site = -1};
    const bool is_previous = writer->step >= 2 && last->step == writer->step - 1;
    if (last->step == writer->step || is_previous)
        return (struct binding){last->site, writer->step - last->step, true};
    return (struct binding){last->site, last->step, false};
}

static struct tape_op *writer_add(struct writer *writer, int32_t stream, enum tape_kind kind,
                                  const struct op *op)
{
    struct tape_op *item = ARENA_PUSH(writer->arena, &writer->tape->streams[stream]);
    item->op = op;
    item->kind = (uint8_t)kind;
    item->issue_ps = writer->clock_ps;
    item->epoch = writer->tape->epochs.count;
    return item;
}

static void writer_end_epoch(struct writer *writer, struct binding until)
{
    struct tape_epoch *epoch = ARENA_PUSH(writer->arena, &writer->tape->epochs);
    epoch->length_ps = writer->clock_ps;
    epoch->until = until;
    epoch->memory_end = writer->tape->memory.count;
    epoch->issue_end = writer->tape->issues.count;
    writer->clock_ps = 0;
}

static void write_memory(struct writer *writer, const struct op *op, bool is_free,
                         struct binding after)
{
    struct tape_memory *item = ARENA_PUSH(writer->arena, &writer->tape->memory);
    item->op = op;
    item->issue_ps = writer->clock_ps;
    item->is_free = is_free;
    item->epoch = writer->tape->epochs.count;
    item->after = after;
}

/* With limited memory the host may have to stop here: an epoch begins. */
static void write_allocation(struct writer *writer, const struct op *op)
{
    if (writer->machine->setup->limits_memory && !writer->is_fresh)
        writer_end_epoch(writer, (struct binding){.site = -1});
    write_memory(writer, op, false, (struct binding){.site = -1});
}

/* Other streams used the tensor: each passes a release behind what it was given until now. */
static void write_free(struct writer *writer, const struct op *op, int32_t site)
{
    const uint32_t streams = writer->recorded[op->index];
    writer->recorded[op->index] = 0;
    if (streams == 0) {
        write_memory(writer, op, true, (struct binding){.site = -1});
        return;
    }
    for (int32_t stream = 0; stream < writer->score->program->streams.count; stream++) {
        if ((streams >> stream & 1) == 0)
            continue;
        struct tape_op *item = writer_add(writer, stream, TAPE_RELEASE, op);
        item->site = site;
        item->value = (int32_t)streams;
    }
}

static void write_segment(struct writer *writer, const struct op *op)
{
    const struct segment *segment = &writer->score->program->segments.items[op->index];
    if (segment->is_compiled)
        writer->clock_ps += writer->cost_ps[HOST_COMPILED_REGION];
    writer->clock_ps += segment->kernel_count * writer->cost_ps[segment->host_cost];
    if (segment->kernel_count > 0)
        writer_add(writer, op->stream, TAPE_SEGMENT, op);
}

/* A collective, a send or a receive. */
static void write_meeting(struct writer *writer, const struct op *op, enum tape_kind kind)
{
    const int32_t queue = op_queue(writer->score->program, op);
    writer->clock_ps += writer->cost_ps[HOST_COLLECTIVE];
    writer_add(writer, op->stream, kind, op)->value = (int32_t)writer->tape->turn_counts[queue]++;
}

static void pay_stream_op(struct writer *writer, const struct op *op)
{
    if ((op->flags & OP_UNCOSTED) == 0)
        writer->clock_ps += writer->cost_ps[HOST_STREAM_OP];
}

static void write_record(struct writer *writer, const struct op *op, int32_t site)
{
    pay_stream_op(writer, op);
    writer_add(writer, op->stream, TAPE_RECORD, op)->site = site;
    writer->last_record[op->index] = (struct binder){site, writer->step};
}

static void write_wait(struct writer *writer, const struct op *op)
{
    pay_stream_op(writer, op);
    const struct binding binding = writer_bind(writer, op->index);
    if (binding.site < 0)
        return;
    struct tape_op *item = writer_add(writer, op->stream, TAPE_WAIT, op);
    item->site = binding.site;
    item->value = binding.step;
    item->is_relative = binding.is_relative;
}

/* Ends an epoch even when there is nothing to wait for: all later steps have equally many. */
static void write_host_wait(struct writer *writer, const struct op *op)
{
    writer_end_epoch(writer, writer_bind(writer, op->index));
}

static void write_host_compute(struct writer *writer, const struct op *op)
{
    if (!writer->machine->setup->ideal.optimizer)
        writer->clock_ps += ps_from_s(host_compute_s(writer->machine->setup->layout, op));
}

static void write_op(struct writer *writer, const struct op *op, int32_t site)
{
    writer->is_fresh &= op->kind == OP_ALLOC;
    switch ((enum op_kind)op->kind) {
    case OP_SEGMENT:
        write_segment(writer, op);
        break;
    case OP_COLLECTIVE:
        write_meeting(writer, op, TAPE_COLLECTIVE);
        break;
    case OP_SEND:
    case OP_RECV:
        write_meeting(writer, op, TAPE_TRANSFER);
        break;
    case OP_COPY:
        writer->clock_ps += (op->count > 1 ? op->count : 1) * writer->cost_ps[HOST_KERNEL];
        writer_add(writer, op->stream, TAPE_COPY, op);
        break;
    case OP_LOAD:
        writer_add(writer, op->stream, TAPE_LOAD, op);
        break;
    case OP_RECORD:
        write_record(writer, op, site);
        break;
    case OP_WAIT:
        write_wait(writer, op);
        break;
    case OP_HOST_WAIT:
        write_host_wait(writer, op);
        break;
    case OP_HOST_WORK:
        writer->clock_ps += op->count * writer->cost_ps[op->index];
        break;
    case OP_ALLOC:
        write_allocation(writer, op);
        break;
    case OP_FREE:
        write_free(writer, op, site);
        break;
    case OP_RECORD_STREAM:
        writer->recorded[op->index] |= UINT32_C(1) << op->stream;
        break;
    case OP_FREE_AFTER:
        write_memory(writer, op, true, writer_bind(writer, op->count));
        break;
    case OP_MARK:
        writer_add(writer, op->stream, TAPE_MARK, op);
        break;
    case OP_HOST_COMPUTE:
        write_host_compute(writer, op);
        break;
    case OP_KIND_COUNT:
        BUG("no operation of kind %d", op->kind);
    }
}

static bool is_launch(const struct op *op)
{
    return op->kind == OP_SEGMENT || op->kind == OP_COLLECTIVE || op->kind == OP_SEND ||
           op->kind == OP_RECV || op->kind == OP_COPY;
}

/* What the host is busy with, and launches that cost it nothing (ideal: host). */
static void write_issue(struct writer *writer, const struct op *op, int64_t begin_ps)
{
    if (writer->clock_ps == begin_ps && !is_launch(op))
        return;
    struct tape_issue *item = ARENA_PUSH(writer->arena, &writer->tape->issues);
    *item = (struct tape_issue){.op = op, .begin_ps = begin_ps, .end_ps = writer->clock_ps};
    if (op->kind == OP_SEGMENT)
        item->gap_ps = writer->cost_ps[writer->score->program->segments.items[op->index].host_cost];
}

static void write_watched_op(struct writer *writer, const struct op *op, int32_t site)
{
    const int64_t begin_ps = writer->clock_ps;
    const int32_t epoch = writer->tape->epochs.count;
    write_op(writer, op, site);
    if (writer->machine->is_host_watched && writer->tape->epochs.count == epoch)
        write_issue(writer, op, begin_ps);
}

/* Room for what the operations lay out; releases may add to it. */
static void reserve(const struct writer *writer, const struct op_list *ops, int32_t step)
{
    struct tape *tape = writer->tape;
    const int32_t streams = writer->score->program->streams.count;
    int32_t counts[MACHINE_MAX_STREAMS] = {0}, changes = 0;
    for (int32_t i = 0; i < ops->count; i++) {
        const struct op *op = &ops->items[i];
        if (!op_plays_in(op, step))
            continue;
        if (op->kind == OP_ALLOC || op->kind == OP_FREE || op->kind == OP_FREE_AFTER)
            changes++;
        else if (op->stream < streams)
            counts[op->stream]++;
    }
    tape->memory.items = ARENA_ARRAY(writer->arena, struct tape_memory, changes);
    tape->memory.capacity = changes;
    for (int32_t i = 0; i < streams; i++) {
        tape->streams[i].items = ARENA_ARRAY(writer->arena, struct tape_op, counts[i]);
        tape->streams[i].capacity = counts[i];
    }
}

static void write_tape(struct writer *writer, const struct op_list *ops, int32_t step,
                       const int32_t *sites)
{
    const struct program *program = writer->score->program;
    struct arena *arena = writer->arena;
    struct tape *tape = &writer->score->tapes[tape_of_step(step)];
    tape->streams = ARENA_ARRAY(arena, struct tape_ops, program->streams.count);
    /* Queues: op_queue. */
    tape->turn_counts = ARENA_ARRAY(arena, int64_t, 5 * program->communicators.count);
    writer->tape = tape;
    writer->step = step;
    reserve(writer, ops, step);
    writer->clock_ps = 0;
    writer->is_fresh = true;
    for (int32_t i = 0; i < ops->count; i++) {
        if (op_plays_in(&ops->items[i], step))
            write_watched_op(writer, &ops->items[i], sites[i]);
    }
    writer_end_epoch(writer, (struct binding){.site = -1});
}

/* One site a record; one a free of a tensor that other streams may have used, for each stream. */
static int32_t *number_sites(struct arena *arena, struct score *score, const struct op_list *ops,
                             const bool *is_shared)
{
    int32_t *sites = ARENA_ARRAY(arena, int32_t, ops->count);
    for (int32_t i = 0; i < ops->count; i++) {
        sites[i] = score->site_count;
        if (ops->items[i].kind == OP_RECORD)
            score->site_count++;
        else if (ops->items[i].kind == OP_FREE && is_shared[ops->items[i].index])
            score->site_count += score->program->streams.count;
    }
    return sites;
}

static void find_shared(struct score *score, const struct op_list *ops, bool *is_shared)
{
    for (int32_t i = 0; i < ops->count; i++) {
        const struct op *op = &ops->items[i];
        if (op->kind == OP_RECORD_STREAM)
            is_shared[op->index] = true;
        if (op->kind == OP_RECORD_STREAM || op->kind == OP_FREE_AFTER)
            score->has_timed_frees = true;
    }
}

/* ---- kept for later plays ----------------------------------------------------------------- */

/* What a tape holds follows from these and the program alone; step 2 stands for all later ones. */
struct shelved_score {
    struct shelved_score *next;
    int64_t cost_ps[HOST_COST_COUNT];
    int32_t steps;
    struct score score;
};

enum { STEPS_LAID_OUT = 3 };

static void find_costs(const struct machine *machine, int64_t *cost_ps)
{
    const double *cost_s = machine->setup->layout->cluster->host_cost_s;
    for (int32_t cost = 0; cost < HOST_COST_COUNT; cost++)
        cost_ps[cost] = machine->setup->ideal.host ? 0 : ps_from_s(cost_s[cost]);
}

static int32_t steps_of(const struct machine *machine)
{
    const int32_t steps = machine->setup->steps;
    return steps < STEPS_LAID_OUT ? steps : STEPS_LAID_OUT;
}

static bool computes_on_host(const struct op_list *ops)
{
    for (int32_t i = 0; i < ops->count; i++)
        if (ops->items[i].kind == OP_HOST_COMPUTE)
            return true;
    return false;
}

/* Not what an observer of the host sees, nor stops for memory, nor the host's own work. */
static bool is_shelvable(const struct machine *machine, const struct program *program)
{
    const struct machine_setup *setup = machine->setup;
    return setup->scores != NULL && setup->program_count == 1 && !setup->limits_memory &&
           !machine->is_host_watched && !computes_on_host(&program->prologue) &&
           !computes_on_host(&program->step);
}

bool score_recall(const struct machine *machine, const struct program *program, struct score *score)
{
    int64_t cost_ps[HOST_COST_COUNT];
    if (!is_shelvable(machine, program))
        return false;
    find_costs(machine, cost_ps);
    const struct shelved_score *kept = machine->setup->scores->first;
    while (kept != NULL && (kept->score.program != program || kept->steps != steps_of(machine) ||
                            memcmp(kept->cost_ps, cost_ps, sizeof(cost_ps)) != 0))
        kept = kept->next;
    if (kept != NULL)
        *score = kept->score;
    return kept != NULL;
}

static void score_keep(const struct machine *machine, const struct score *score)
{
    struct score_shelf *shelf = machine->setup->scores;
    const int32_t channels = 2 * machine->communicator_count;
    struct shelved_score *kept = ARENA_NEW(shelf->arena, struct shelved_score);
    *kept =
        (struct shelved_score){.next = shelf->first, .steps = steps_of(machine), .score = *score};
    find_costs(machine, kept->cost_ps);
    kept->score.has_sends = ARENA_ARRAY(shelf->arena, bool, channels);
    memcpy(kept->score.has_sends, score->has_sends, sizeof(bool) * (size_t)channels);
    shelf->first = kept;
}

void score_lay_out(struct machine *machine, struct score *score)
{
    const struct program *program = score->program;
    const bool is_kept = is_shelvable(machine, program);
    struct arena *arena = is_kept ? machine->setup->scores->arena : machine->arena;
    bool *is_shared = ARENA_ARRAY(machine->arena, bool, program->tensors.count);
    find_shared(score, &program->prologue, is_shared);
    find_shared(score, &program->step, is_shared);
    shapes_set_up(arena, score);

    struct writer writer = {.machine = machine, .arena = arena, .score = score};
    find_costs(machine, writer.cost_ps);
    writer.last_record = ARENA_ARRAY(machine->arena, struct binder, program->events.count);
    for (int32_t i = 0; i < program->events.count; i++)
        writer.last_record[i].step = STEP_NEVER;
    writer.recorded = ARENA_ARRAY(machine->arena, uint32_t, program->tensors.count);
    writer.prologue_sites = number_sites(machine->arena, score, &program->prologue, is_shared);
    writer.step_sites = number_sites(machine->arena, score, &program->step, is_shared);

    write_tape(&writer, &program->prologue, STEP_PROLOGUE, writer.prologue_sites);
    for (int32_t step = 0; step < steps_of(machine); step++)
        write_tape(&writer, &program->step, step, writer.step_sites);
    score->is_laid_out = true;
    if (is_kept)
        score_keep(machine, score);
}

/* Tapes of the second and of later steps have equal operations: only bindings differ. */
static int64_t before(int64_t prologue, int64_t first, int64_t second, int32_t step)
{
    if (step < 0)
        return 0;
    if (step == 0)
        return prologue;
    return prologue + first + (step - 1) * second;
}

int64_t score_epochs_before(const struct score *score, int32_t step)
{
    return before(score->tapes[TAPE_PROLOGUE].epochs.count, score->tapes[TAPE_FIRST].epochs.count,
                  score->tapes[TAPE_SECOND].epochs.count, step);
}

int64_t score_turns_before(const struct score *score, int32_t step, int32_t queue)
{
    if (step < 0)
        return 0;
    const int64_t second = step > 1 ? score->tapes[TAPE_SECOND].turn_counts[queue] : 0;
    return before(score->tapes[TAPE_PROLOGUE].turn_counts[queue],
                  score->tapes[TAPE_FIRST].turn_counts[queue], second, step);
}
