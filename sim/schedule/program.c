/* schedule/program.c: names and the text form of a program. */
#include "schedule/program.h"

#include <inttypes.h>

const char *mark_name(enum mark mark)
{
    static const char *const names[MARK_COUNT] = {"step_begin", "forward_begin", "forward_end",
                                                  "backward_end", "step_end"};
    return names[mark];
}

const char *memory_category_name(enum memory_category category)
{
    static const char *const names[MEMORY_CATEGORY_COUNT] = {"parameters",
                                                             "gradients",
                                                             "optimizer",
                                                             "unsharded_parameters",
                                                             "unsharded_gradients",
                                                             "reduce_buffers",
                                                             "activations",
                                                             "logits",
                                                             "temporaries",
                                                             "workspace",
                                                             "context",
                                                             "communicators",
                                                             "cached"};
    return names[category];
}

int32_t program_communicator_count(const struct program *program)
{
    int32_t count = 0;
    for (int32_t i = 0; i < program->communicators.count; i++)
        count += program->communicators.items[i].group.ranks > 1 ? 1 : 0;
    return count;
}

static void dump_tables(const struct program *program, FILE *file)
{
    fprintf(file, "program %s\n", program->policy);
    for (int32_t i = 0; i < program->streams.count; i++)
        fprintf(file, "stream %" PRId32 " %s%s\n", i, program->streams.items[i].name,
                program->streams.items[i].is_high_priority ? " high-priority" : "");
    for (int32_t i = 0; i < program->communicators.count; i++) {
        const struct communicator *communicator = &program->communicators.items[i];
        fprintf(file,
                "communicator %" PRId32 " %s (%s) ranks=%" PRId64 " hosts=%" PRId64
                " ranks_per_host=%" PRId64 "\n",
                i, communicator->name, communicator->purpose, communicator->group.ranks,
                communicator->group.hosts, communicator->group.ranks_per_host);
    }
    for (int32_t i = 0; i < program->units.count; i++) {
        const struct unit *unit = &program->units.items[i];
        fprintf(file,
                "unit %" PRId32 " %s parameters=%" PRId64 " tensors=%" PRId32
                " all_gather_bytes=%" PRId64 " reduce_scatter_bytes=%" PRId64 "\n",
                i, unit->name, unit->parameters, unit->param_count, unit->all_gather_bytes,
                unit->reduce_scatter_bytes);
    }
    for (int32_t i = 0; i < program->segments.count; i++) {
        const struct segment *segment = &program->segments.items[i];
        fprintf(file, "segment %" PRId32 " %s kernels=%" PRId32 " host=%s%s\n", i, segment->name,
                segment->kernel_count, host_cost_name((enum host_cost)segment->host_cost),
                segment->is_compiled ? " compiled" : "");
        for (int32_t k = 0; k < segment->kernel_count; k++) {
            const struct kernel *kernel = &segment->kernels[k];
            fprintf(file, "  kernel %s %s %s flop=%.0f bytes=%.0f", kernel->name,
                    kernel_kind_name(kernel->kind), dtype_name(kernel->dtype), kernel->flop,
                    kernel->bytes);
            if (kernel->kind == KERNEL_GEMM || kernel->kind == KERNEL_ATTENTION)
                fprintf(file, " batch=%" PRId64 " m=%" PRId64 " n=%" PRId64 " k=%" PRId64,
                        kernel->batch, kernel->m, kernel->n, kernel->k);
            if (kernel->kind == KERNEL_GIVEN)
                fprintf(file, " given_s=%.9g", kernel->given_s);
            fputc('\n', file);
        }
    }
}

static const char *const copy_names[COPY_KIND_COUNT] = {"h2d", "d2h", "d2d", "h2d-pageable",
                                                        "d2h-pageable"};

static void dump_op_text(const struct program *program, const struct op *op, FILE *file)
{
    switch ((enum op_kind)op->kind) {
    case OP_SEGMENT:
        fprintf(file, "segment %s", program->segments.items[op->index].name);
        break;
    case OP_COLLECTIVE: {
        const struct collective *collective = &program->collectives.items[op->index];
        fprintf(file, "%s bytes=%.0f on %s", collective_op_name(collective->op), collective->bytes,
                program->communicators.items[collective->communicator].name);
        break;
    }
    case OP_SEND:
    case OP_RECV: {
        const struct transfer *transfer = &program->transfers.items[op->index];
        fprintf(file, "%s hop=%" PRId32 " bytes=%.0f on %s", op->kind == OP_SEND ? "send" : "recv",
                transfer->hop, transfer->bytes,
                program->communicators.items[transfer->communicator].name);
        break;
    }
    case OP_COPY:
        fprintf(file, "copy %s bytes=%" PRId64, copy_names[op->index], op->bytes);
        break;
    case OP_LOAD:
        fputs("load", file);
        break;
    case OP_RECORD:
        fprintf(file, "record %s", program->events.items[op->index]);
        break;
    case OP_WAIT:
        fprintf(file, "wait %s", program->events.items[op->index]);
        break;
    case OP_HOST_WAIT:
        fprintf(file, "host_wait %s", program->events.items[op->index]);
        break;
    case OP_HOST_WORK:
        fprintf(file, "host_work %s count=%" PRId32, host_cost_name((enum host_cost)op->index),
                op->count);
        break;
    case OP_HOST_COMPUTE:
        fprintf(file, "host_compute %s bytes=%" PRId64 " threads=%" PRId32,
                op->index == HOST_PASS_FUSED ? "fused" : "passes", op->bytes, op->count);
        break;
    case OP_ALLOC:
    case OP_FREE:
    case OP_RECORD_STREAM:
    case OP_FREE_AFTER: {
        static const char *const verbs[] = {"alloc", "free", "record_stream", "free_after"};
        const struct tensor *tensor = &program->tensors.items[op->index];
        fprintf(file, "%s %s bytes=%" PRId64 " %s", verbs[op->kind - OP_ALLOC], tensor->name,
                tensor->bytes, memory_category_name((enum memory_category)tensor->category));
        break;
    }
    case OP_MARK:
        fprintf(file, "mark %s", mark_name((enum mark)op->index));
        break;
    case OP_KIND_COUNT:
        BUG("not an operation");
    }
}

static void dump_ops(const struct program *program, const struct op_list *list, FILE *file)
{
    for (int32_t i = 0; i < list->count; i++) {
        const struct op *op = &list->items[i];
        const bool is_host = op->kind == OP_HOST_WORK || op->kind == OP_HOST_WAIT ||
                             op->kind == OP_HOST_COMPUTE || op->kind == OP_ALLOC ||
                             op->kind == OP_FREE;
        fprintf(file, "%-18s ", is_host ? "host" : program->streams.items[op->stream].name);
        dump_op_text(program, op, file);
        if (op->unit >= 0)
            fprintf(file, " unit=%s", program->units.items[op->unit].name);
        if ((op->flags & OP_FIRST_STEP) != 0)
            fputs(" first-step", file);
        if ((op->flags & OP_LATER_STEPS) != 0)
            fputs(" later-steps", file);
        fputc('\n', file);
    }
}

void program_dump(const struct program *program, FILE *file)
{
    dump_tables(program, file);
    fputs("prologue\n", file);
    dump_ops(program, &program->prologue, file);
    fputs("step\n", file);
    dump_ops(program, &program->step, file);
}

void program_number_microbatches(struct program *program)
{
    int32_t microbatch = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        struct op *op = &program->step.items[i];
        if (op->kind == OP_MARK && op->index == MARK_FORWARD_BEGIN)
            microbatch++;
        if (op->kind == OP_SEGMENT && program->segments.items[op->index].is_model)
            op->count = microbatch;
    }
}
