/* report/trace.c: see trace.h: the frame of a file, and the events in general. */
#include <string.h>

#include "base/strbuf.h"
#include "report/trace_private.h"

void event_open(struct trace *trace, const char *head)
{
    put_raw(trace->out, trace->has_event ? ",\n" : "\n");
    put_raw(trace->out, head);
    trace->has_event = true;
    trace->has_arg = false;
}

void event_close(struct trace *trace)
{
    put_raw(trace->out, trace->has_arg ? "}}" : ",\"args\":{}}");
}

void arg_key(struct trace *trace, const char *key)
{
    put_raw(trace->out, trace->has_arg ? ",\"" : ",\"args\":{\"");
    put_raw(trace->out, key);
    put_raw(trace->out, "\":");
    trace->has_arg = true;
}

void arg_int(struct trace *trace, const char *key, int64_t value)
{
    arg_key(trace, key);
    put_int(trace->out, value);
}

void arg_text(struct trace *trace, const char *key, const char *text)
{
    arg_key(trace, key);
    put_raw(trace->out, "\"");
    put_escaped(trace->out, text);
    put_raw(trace->out, "\"");
}

static void put_member(struct trace *trace, const char *key, int64_t value)
{
    put_raw(trace->out, key);
    put_int(trace->out, value);
}

void slice_open(struct trace *trace, const struct slice *slice)
{
    struct trace_output *out = trace->out;
    const int64_t begin_ns = ns_from_ps(slice->begin_ps);
    event_open(trace, "{\"ph\":\"X\",\"cat\":\"");
    put_raw(out, slice->category);
    put_raw(out, "\",\"name\":\"");
    put_escaped(out, slice->name);
    if (slice->of != NULL) {
        put_raw(out, " ");
        put_escaped(out, slice->of);
    }
    put_raw(out, "\"");
    put_member(trace, ",\"pid\":", slice->pid);
    put_member(trace, ",\"tid\":", slice->tid);
    put_raw(out, ",\"ts\":");
    put_us(out, begin_ns);
    put_raw(out, ",\"dur\":");
    put_us(out, ns_from_ps(slice->end_ps) - begin_ns);
}

const char *unit_name_of(const struct trace *trace, const struct op *op)
{
    return op->unit >= 0 ? trace->program->units.items[op->unit].name : NULL;
}

const char *short_name(const char *name, char *text, size_t size)
{
    const char *open = strchr(name, '(');
    const char *dot = strrchr(name, '.');
    if (open != NULL)
        snprintf(text, size, "%.*s", (int)(open - name), name);
    else
        snprintf(text, size, "%s", dot != NULL && dot[1] != '\0' ? dot + 1 : name);
    return text;
}

/* ---- launches ------------------------------------------------------------------------------ */

static int64_t launches_of(const struct program *program, const struct op *op)
{
    if (op->kind == OP_SEGMENT)
        return program->segments.items[op->index].kernel_count;
    return op->kind == OP_COLLECTIVE || op->kind == OP_SEND || op->kind == OP_RECV ||
           op->kind == OP_COPY;
}

static int64_t op_place(const struct trace *trace, const struct op *op)
{
    const struct op_list *ops = &trace->program->step;
    return op >= ops->items && op < ops->items + ops->count ? op - ops->items : -1;
}

int64_t correlation_of(const struct trace *trace, const struct op *op, int32_t step)
{
    const int64_t place = op_place(trace, op);
    if (place < 0)
        return 0;
    return 1 + step * trace->slots[trace->program->step.count] + trace->slots[place];
}

const struct issue *issue_of(const struct trace *trace, const struct op *op, int32_t step)
{
    const int64_t place = op_place(trace, op);
    if (place < 0 || step < trace->first_step || step >= trace->end_step)
        return NULL;
    const int32_t idx =
        trace->issue_of[(step - trace->first_step) * (int64_t)trace->program->step.count + place];
    return idx < 0 ? NULL : &trace->class->issues.items[idx];
}

void launch_times(const struct trace *trace, const struct issue *issue, int32_t kernel,
                  int64_t *begin_ps, int64_t *end_ps)
{
    if (issue->op->kind != OP_SEGMENT) {
        *begin_ps = issue->begin_ps;
        *end_ps = issue->end_ps;
        return;
    }
    const int64_t after = launches_of(trace->program, issue->op) - 1 - kernel;
    *end_ps = issue->end_ps - after * issue->gap_ps;
    *begin_ps = *end_ps - issue->gap_ps;
}

static void number_launches(struct trace *trace, struct arena *arena)
{
    const struct program *program = trace->program;
    const struct op_list *ops = &program->step;
    trace->slots = ARENA_ARRAY(arena, int64_t, ops->count + 1);
    for (int32_t i = 0; i < ops->count; i++)
        trace->slots[i + 1] = trace->slots[i] + launches_of(program, &ops->items[i]);
    const int64_t count = (int64_t)(trace->end_step - trace->first_step) * ops->count;
    trace->issue_of = ARENA_ARRAY(arena, int32_t, count);
    for (int64_t i = 0; i < count; i++)
        trace->issue_of[i] = -1;
    trace->host_begin_ps = -1;
    for (int32_t i = 0; i < trace->class->issues.count; i++) {
        const struct issue *issue = &trace->class->issues.items[i];
        const int64_t place = op_place(trace, issue->op);
        if (place < 0 || issue->step < trace->first_step || issue->step >= trace->end_step)
            continue;
        trace->issue_of[(issue->step - trace->first_step) * (int64_t)ops->count + place] = i;
        if (trace->host_begin_ps < 0)
            trace->host_begin_ps = issue->begin_ps;
        trace->host_end_ps = issue->end_ps;
    }
}

/* ---- the frame ----------------------------------------------------------------------------- */

static void put_header(struct trace *trace)
{
    struct trace_output *out = trace->out;
    const struct experiment *experiment = trace->experiment;
    const struct gpu *gpu = trace->rank_class->gpu;
    put_raw(out, "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [\n{\"id\": ");
    put_int(out, trace->device);
    put_raw(out, ", \"name\": \"");
    put_escaped(out, gpu->name);
    put_raw(out, "\", \"totalGlobalMem\": ");
    put_int(out, gpu->memory_bytes);
    put_raw(out, ", \"numSms\": ");
    put_int(out, gpu->sm_count);
    /* Readers look for the rank by a blank behind the colon. */
    put_raw(out, "}\n],\n\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": ");
    put_int(out, trace->rank);
    put_raw(out, ", \"world_size\": ");
    put_int(out, experiment->n_gpus);
    put_raw(out, ", \"pg_count\": ");
    put_int(out, trace->program->communicators.count);
    put_raw(out, ", \"pg_config\": [");
    trace_process_groups(trace);
    put_raw(out, "]},\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": 0,\n"
                 "\"traceName\": \"");
    put_escaped(out, experiment->name != NULL ? experiment->name : "-");
    put_raw(out, "\",\n\"simulated\": true,\n\"traceEvents\": [");
}

static void meta(struct trace *trace, const char *kind, int64_t pid, int64_t tid)
{
    event_open(trace, "{\"ph\":\"M\",\"name\":\"");
    put_raw(trace->out, kind);
    put_raw(trace->out, "\"");
    put_member(trace, ",\"pid\":", pid);
    put_member(trace, ",\"tid\":", tid);
    put_raw(trace->out, ",\"ts\":0.000");
}

static void meta_name(struct trace *trace, const char *kind, int64_t pid, int64_t tid,
                      const char *name)
{
    meta(trace, kind, pid, tid);
    arg_text(trace, "name", name);
    event_close(trace);
}

static void meta_order(struct trace *trace, const char *kind, int64_t pid, int64_t tid,
                       int64_t order)
{
    meta(trace, kind, pid, tid);
    arg_int(trace, "sort_index", order);
    event_close(trace);
}

static void put_tracks(struct trace *trace, struct arena *arena)
{
    const struct rank_class *rank_class = trace->rank_class;
    const char *alike = rank_class->count > 1 ? arena_printf(arena, ", stands for %lld alike",
                                                             (long long)rank_class->count)
                                              : "";
    meta_name(trace, "process_name", trace->host_pid, 0,
              arena_printf(arena, "host of rank %lld (python)", (long long)trace->rank));
    meta_order(trace, "process_sort_index", trace->host_pid, 0, 0);
    meta_name(trace, "thread_name", trace->host_pid, trace->host_pid, "host thread");
    meta_name(trace, "process_name", trace->device, 0,
              arena_printf(arena, "GPU %lld of rank %lld (%s%s)", (long long)trace->device,
                           (long long)trace->rank, rank_class->gpu->name, alike));
    meta_order(trace, "process_sort_index", trace->device, 0, 1);
    for (int32_t i = 0; i < trace->program->streams.count; i++) {
        const int64_t tid = FIRST_STREAM + i;
        meta_name(trace, "thread_name", trace->device, tid,
                  arena_printf(arena, "%s (stream %lld)", trace->program->streams.items[i].name,
                               (long long)tid));
        meta_order(trace, "thread_sort_index", trace->device, tid, tid);
    }
}

/* Of classes that play the same program the first may be told for all. */
static const struct journal_class *memory_of(const struct journal *journal, int32_t class_idx)
{
    const struct journal_class *class = &journal->classes[class_idx];
    for (int32_t i = 0; i < journal->class_count && class->memory.count == 0; i++) {
        if (journal->classes[i].program == class->program)
            class = &journal->classes[i];
    }
    return class;
}

bool report_trace(struct experiment *experiment, const struct journal *journal, int32_t class_idx,
                  bool is_compressed, FILE *file)
{
    struct arena arena;
    arena_init(&arena);
    const struct rank_class *rank_class = &experiment->layout.classes[class_idx];
    const struct journal_class *class = &journal->classes[class_idx];
    enum { HOST_PID = 1000 }; /* no device's */
    struct trace trace = {.out = trace_output_new(&arena, file, is_compressed),
                          .experiment = experiment,
                          .class = class,
                          .memory_of = memory_of(journal, class_idx),
                          .rank_class = rank_class,
                          .program = class->program,
                          .rank = rank_class->first_rank,
                          .host_pid = HOST_PID + rank_class->first_rank,
                          .device = rank_class->first_rank % experiment->gpus_per_node,
                          .first_step = journal->warmup,
                          .end_step = journal->warmup + journal->steps};
    number_launches(&trace, &arena);
    put_header(&trace);
    put_tracks(&trace, &arena);
    trace_host(&trace);
    trace_streams(&trace);
    trace_memory(&trace);
    put_raw(trace.out, "\n]\n}\n");
    const bool is_written = trace_output_close(trace.out);
    arena_release(&arena);
    return is_written;
}
