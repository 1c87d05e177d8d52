/*
 * machine/machine_memory.c: what a class allocates and frees, through its caching allocator.
 *
 * Without timed frees the order of changes does not depend on the GPU: those of an epoch are played
 * when it is entered, each with its own time. In programs with timed frees (OP_FREE_AFTER, tensors
 * with OP_RECORD_STREAM) they are played when their time comes, behind all that happens in the same
 * instant. With limited memory: machine_retry.c.
 */
#include "machine/machine_private.h"

void shapes_set_up(struct arena *arena, struct score *score)
{
    const struct program *program = score->program;
    score->shapes = ARENA_ARRAY(arena, struct tensor_shape, program->tensors.count);
    for (int32_t i = 0; i < program->tensors.count; i++) {
        const struct tensor *tensor = &program->tensors.items[i];
        struct tensor_shape *shape = &score->shapes[i];
        const int32_t pieces = tensor->pieces > 1 ? tensor->pieces : 1;
        shape->whole = (struct tensor_part){(tensor->bytes + pieces - 1) / pieces, pieces};
        shape->parts = tensor->parts != NULL ? tensor->parts : &shape->whole;
        shape->part_count = tensor->parts != NULL ? tensor->part_count : 1;
        shape->rounded_bytes = tensor_allocated_bytes(tensor);
        for (int32_t k = 0; k < shape->part_count; k++)
            shape->piece_count += shape->parts[k].count;
    }
}

static bool is_played_already(const struct machine *machine, const struct class_state *class)
{
    for (int32_t i = 0; i < class->idx; i++)
        if (machine->classes[i].score == class->score &&
            machine->classes[i].rank_class->gpu == class->rank_class->gpu)
            return true;
    return false;
}

void class_memory_set_up(struct machine *machine, struct class_state *class)
{
    const struct machine_setup *setup = machine->setup;
    const bool is_alike = !setup->limits_memory && !class->score->has_timed_frees &&
                          is_played_already(machine, class);
    if ((!machine->is_memory_watched && !setup->limits_memory) || is_alike)
        return;
    const struct program *program = class->score->program;
    class->held = ARENA_NEW(machine->arena, struct class_memory);
    class->change = -1;
    class->held->tensors =
        ARENA_ARRAY(machine->arena, struct tensor_memory, program->tensors.count);
    allocator_init(&class->held->allocator, machine->arena, &setup->allocator,
                   program->streams.count);
    if (setup->limits_memory)
        class->held->allocator.limit_bytes = program_memory_limit(program, class->rank_class->gpu);
}

static void memory_tell(struct machine *machine, const struct class_state *class, int64_t time_ps,
                        int32_t step, const struct op *op, bool is_alloc)
{
    const int64_t first_epoch = score_epochs_before(class->score, step);
    const int64_t bytes = class->score->shapes[op->index].rounded_bytes;
    const struct memory_change change = {
        .time_ps = time_ps,
        /* With limited memory the first changes come before the epoch has begun. */
        .step_ps = first_epoch < class->epoch_start_ps.count
                       ? time_ps - class->epoch_start_ps.items[first_epoch]
                       : 0,
        .class_idx = class->idx,
        .step = step,
        .change = class->change,
        .op = op,
        .tensor = &class->score->program->tensors.items[op->index],
        .delta_bytes = is_alloc ? bytes : -bytes,
        .reserved_bytes = class->held->allocator.reserved_bytes};
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->memory_changed != NULL)
            observer->memory_changed(observer->context, &change);
    }
}

static struct memory_instance *instance_new(struct machine *machine, struct tensor_memory *tensor,
                                            int32_t pieces)
{
    struct memory_instance *instance = tensor->spare;
    if (instance != NULL) {
        tensor->spare = instance->next;
    } else {
        instance = ARENA_NEW(machine->arena, struct memory_instance);
        instance->blocks = ARENA_ARRAY(machine->arena, struct memory_block *, pieces);
    }
    instance->next = NULL;
    instance->count = 0;
    if (tensor->last != NULL)
        tensor->last->next = instance;
    else
        tensor->first = instance;
    tensor->last = instance;
    return instance;
}

/* The pieces that are not there yet. */
static bool instance_fill(struct allocator *allocator, const struct tensor_shape *shape,
                          int32_t stream, struct memory_instance *instance)
{
    int32_t piece = 0;
    for (int32_t i = 0; i < shape->part_count; i++) {
        const struct tensor_part *part = &shape->parts[i];
        for (int32_t k = 0; k < part->count; k++, piece++) {
            if (piece < instance->count)
                continue;
            instance->blocks[piece] = allocator_malloc(allocator, stream, part->bytes);
            if (instance->blocks[piece] == NULL)
                return false;
            instance->count++;
        }
    }
    return true;
}

bool memory_allocate(struct machine *machine, struct class_state *class, int64_t time_ps,
                     int32_t step, const struct op *op)
{
    const struct tensor_shape *shape = &class->score->shapes[op->index];
    struct tensor_memory *tensor = &class->held->tensors[op->index];
    struct memory_instance *instance = tensor->last;
    if (instance == NULL || instance->count == shape->piece_count)
        instance = instance_new(machine, tensor, shape->piece_count);
    const int32_t stream = class->score->program->tensors.items[op->index].stream;
    if (!instance_fill(&class->held->allocator, shape, stream, instance))
        return false;
    memory_tell(machine, class, time_ps, step, op, true);
    if (tensor->owed_frees > 0) {
        tensor->owed_frees--;
        memory_free(machine, class, time_ps, step, op);
    }
    return true;
}

void memory_free(struct machine *machine, struct class_state *class, int64_t time_ps, int32_t step,
                 const struct op *op)
{
    if (class->held == NULL)
        return;
    struct tensor_memory *tensor = &class->held->tensors[op->index];
    struct memory_instance *instance = tensor->first;
    if (instance == NULL) {
        if (!class->score->has_timed_frees)
            BUG("'%s' is freed more often than allocated",
                class->score->program->tensors.items[op->index].name);
        tensor->owed_frees++;
        return;
    }
    tensor->first = instance->next;
    if (tensor->first == NULL)
        tensor->last = NULL;
    for (int32_t i = 0; i < instance->count; i++)
        allocator_free(&class->held->allocator, instance->blocks[i]);
    instance->next = tensor->spare;
    tensor->spare = instance;
    memory_tell(machine, class, time_ps, step, op, false);
}

void epoch_play_memory(struct machine *machine, struct class_state *class)
{
    const struct tape *tape = host_tape(class);
    const int32_t begin =
        class->host_epoch > 0 ? tape->epochs.items[class->host_epoch - 1].memory_end : 0;
    const int32_t end = tape->epochs.items[class->host_epoch].memory_end;
    for (int32_t i = begin; i < end; i++) {
        const struct tape_memory *item = &tape->memory.items[i];
        const int64_t time_ps = machine->engine.now_ps + item->issue_ps;
        class->change = i;
        if (item->is_free)
            memory_free(machine, class, time_ps, class->host_step, item->op);
        else
            (void)memory_allocate(machine, class, time_ps, class->host_step, item->op);
    }
}

void change_times_fill(struct machine *machine)
{
    for (int32_t i = 0; i < machine->setup->change_time_count; i++) {
        struct change_time *asked = &machine->setup->change_times[i];
        const struct class_state *class = &machine->classes[asked->class_idx];
        const struct tape *tape = &class->score->tapes[tape_of_step(asked->step)];
        BUG_IF(class->score->has_timed_frees || asked->change >= tape->memory.count);
        const struct tape_memory *item = &tape->memory.items[asked->change];
        const int64_t first = score_epochs_before(class->score, asked->step);
        asked->step_ps = class->epoch_start_ps.items[first + item->epoch] + item->issue_ps -
                         class->epoch_start_ps.items[first];
    }
}

void pending_frees_check(struct machine *machine, struct class_state *class)
{
    struct pending_free **link = &class->pending;
    while (*link != NULL) {
        struct pending_free *item = *link;
        if (!is_passed(class, item->after, item->step)) {
            link = &item->next;
            continue;
        }
        memory_free(machine, class, machine->engine.now_ps, item->step, item->op);
        *link = item->next;
        item->next = class->free_list;
        class->free_list = item;
    }
}

static void pending_add(struct machine *machine, struct class_state *class, int32_t step,
                        const struct tape_memory *from)
{
    struct pending_free *item = class->free_list;
    if (item != NULL)
        class->free_list = item->next;
    else
        item = ARENA_NEW(machine->arena, struct pending_free);
    *item = (struct pending_free){.op = from->op, .after = from->after, .step = step};
    struct pending_free **link = &class->pending;
    while (*link != NULL)
        link = &(*link)->next;
    *link = item;
}

void memory_free_after(struct machine *machine, struct class_state *class, int64_t time_ps,
                       int32_t step, const struct tape_memory *item)
{
    if (is_passed(class, item->after, step))
        memory_free(machine, class, time_ps, step, item->op);
    else
        pending_add(machine, class, step, item);
}

void memory_list_due(struct machine *machine, struct class_state *class)
{
    if (class->is_memory_due)
        return;
    class->is_memory_due = true;
    machine->memory_list[machine->memory_count++] = class;
    engine_request_instant_end(&machine->engine);
}

/* The host's next change, or NULL when it is in an epoch that has not begun, or there is none. */
static const struct tape_memory *memory_next(const struct machine *machine,
                                             struct class_state *class, int64_t *time_ps)
{
    for (; class->memory_step < machine->setup->steps; class->memory_step++) {
        const struct tape *tape = &class->score->tapes[tape_of_step(class->memory_step)];
        if (class->memory_idx == tape->memory.count) {
            class->memory_idx = 0;
            continue;
        }
        const struct tape_memory *item = &tape->memory.items[class->memory_idx];
        const int64_t epoch = score_epochs_before(class->score, class->memory_step) + item->epoch;
        if (epoch >= class->epoch_start_ps.count)
            return NULL;
        *time_ps = class->epoch_start_ps.items[epoch] + item->issue_ps;
        return item;
    }
    return NULL;
}

static void class_play_memory(struct machine *machine, struct class_state *class)
{
    int64_t time_ps = 0;
    for (;;) {
        const struct tape_memory *item = memory_next(machine, class, &time_ps);
        if (item == NULL)
            return;
        const int64_t now_ps = machine->engine.now_ps;
        if (time_ps > now_ps) {
            engine_schedule(&machine->engine, &class->memory, time_ps);
            return;
        }
        if (item->is_free)
            memory_free_after(machine, class, now_ps, class->memory_step, item);
        else if (class->held != NULL)
            (void)memory_allocate(machine, class, now_ps, class->memory_step, item->op);
        class->memory_idx++;
    }
}

void memory_play_due(struct machine *machine)
{
    for (int32_t i = 0; i < machine->memory_count; i++) {
        machine->memory_list[i]->is_memory_due = false;
        class_play_memory(machine, machine->memory_list[i]);
    }
    machine->memory_count = 0;
}
