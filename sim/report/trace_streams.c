/*
 * report/trace_streams.c: what runs on the streams of a GPU in the reported steps: a slice
 * (gpu_user_annotation) a unit's segment around its kernels, collectives, copies; arrows (ac2g)
 * from each launch of the host to what it launched.
 *
 * Annotations carry no stream: readers take everything that does for a kernel.
 */
#include <math.h>

#include "report/trace_private.h"

static bool is_reported(const struct trace *trace, const struct journal_entry *entry)
{
    return !entry->is_held && entry->end_ps > entry->begin_ps &&
           entry->end_ps > trace->class->opened_ps && entry->begin_ps < trace->class->closed_ps;
}

static void arrow_end(struct trace *trace, const char *head, int64_t id, int64_t tid, int64_t ps)
{
    event_open(trace, head);
    put_raw(trace->out, ",\"id\":");
    put_int(trace->out, id);
    put_raw(trace->out, ",\"pid\":");
    put_int(trace->out, tid == trace->host_pid ? trace->host_pid : trace->device);
    put_raw(trace->out, ",\"tid\":");
    put_int(trace->out, tid);
    put_raw(trace->out, ",\"ts\":");
    put_us(trace->out, ns_from_ps(ps));
    put_raw(trace->out, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"}");
}

/* From the launch to what runs on the stream from begin_ps on. */
static void arrow(struct trace *trace, const struct performance *performance, int32_t kernel,
                  int64_t begin_ps)
{
    const struct op *op = performance->op;
    const struct issue *issue = issue_of(trace, op, performance->step);
    if (issue == NULL)
        return;
    const int64_t id = correlation_of(trace, op, performance->step) + kernel;
    int64_t launch_ps = 0;
    int64_t launched_ps = 0;
    launch_times(trace, issue, kernel, &launch_ps, &launched_ps);
    arrow_end(trace, "{\"ph\":\"s\"", id, trace->host_pid, launch_ps);
    arrow_end(trace, "{\"ph\":\"f\",\"bp\":\"e\"", id, FIRST_STREAM + op->stream, begin_ps);
}

static struct slice stream_slice(const struct trace *trace, const struct op *op,
                                 const char *category, const char *name)
{
    return (struct slice){
        .category = category, .name = name, .pid = trace->device, .tid = FIRST_STREAM + op->stream};
}

static void kernel_args(struct trace *trace, const struct performance *performance, int32_t kernel)
{
    const struct op *op = performance->op;
    const int64_t first = correlation_of(trace, op, performance->step);
    arg_int(trace, "device", trace->device);
    arg_int(trace, "context", 1);
    arg_int(trace, "stream", FIRST_STREAM + op->stream);
    arg_int(trace, "correlation", first + kernel);
    arg_int(trace, "External id", first);
    if (op->unit >= 0)
        arg_text(trace, "unit", unit_name_of(trace, op));
}

static void number_arg(struct trace *trace, const char *key, double value)
{
    arg_key(trace, key);
    put_double(trace->out, value);
}

static void shape_args(struct trace *trace, const struct kernel *kernel)
{
    arg_text(trace, "kind", kernel_kind_name(kernel->kind));
    if (kernel->m > 0) {
        arg_int(trace, "m", kernel->m);
        arg_int(trace, "n", kernel->n);
        arg_int(trace, "k", kernel->k);
        if (kernel->batch > 1)
            arg_int(trace, "batch", kernel->batch);
    }
    arg_text(trace, "dtype", dtype_name(kernel->dtype));
    if (kernel->flop > 0)
        number_arg(trace, "flop", kernel->flop);
    if (kernel->bytes > 0)
        number_arg(trace, "bytes", kernel->bytes);
}

/* When kernel `kernel` of the part begins: its place alone, stretched. */
static int64_t kernel_begin_ps(const struct journal_entry *entry, int32_t kernel)
{
    const struct performance *part = &entry->performance;
    const int64_t before_ps = part->sum_ps[kernel] - part->sum_ps[part->kernel];
    const double stretch = (double)(entry->end_ps - entry->begin_ps) / (double)part->alone_ps;
    return entry->begin_ps + (int64_t)llround((double)before_ps * stretch);
}

static void part_kernels(struct trace *trace, const struct journal_entry *entry)
{
    const struct performance *part = &entry->performance;
    const struct segment *segment = &trace->program->segments.items[part->op->index];
    char name[64];
    for (int32_t i = part->kernel; i < part->kernel_end; i++) {
        if (part->sum_ps[i + 1] == part->sum_ps[i])
            continue;
        const struct kernel *kernel = &segment->kernels[i];
        const char *text = kernel->name != NULL ? kernel->name : kernel_kind_name(kernel->kind);
        struct slice slice =
            stream_slice(trace, part->op, "kernel", short_name(text, name, sizeof(name)));
        slice.begin_ps = kernel_begin_ps(entry, i);
        slice.end_ps = i + 1 == part->kernel_end ? entry->end_ps : kernel_begin_ps(entry, i + 1);
        slice_open(trace, &slice);
        kernel_args(trace, part, i);
        shape_args(trace, kernel);
        event_close(trace);
        arrow(trace, part, i, slice.begin_ps);
    }
}

/* All parts of the segment at `idx` that are reported, inside one annotation. Returns the last. */
static int32_t stream_segment(struct trace *trace, const struct journal_stream *stream, int32_t idx)
{
    const struct performance *first = &stream->items[idx].performance;
    int32_t last = idx;
    for (int32_t i = idx + 1; i < stream->count; i++) {
        const struct journal_entry *entry = &stream->items[i];
        if (entry->is_held)
            continue;
        if (entry->performance.op != first->op || entry->performance.step != first->step ||
            !is_reported(trace, entry))
            break;
        last = i;
    }
    char name[64];
    const char *segment = trace->program->segments.items[first->op->index].name;
    struct slice slice = stream_slice(trace, first->op, "gpu_user_annotation",
                                      short_name(segment, name, sizeof(name)));
    slice.of = unit_name_of(trace, first->op);
    slice.begin_ps = stream->items[idx].begin_ps;
    slice.end_ps = stream->items[last].end_ps;
    slice_open(trace, &slice);
    arg_int(trace, "External id", correlation_of(trace, first->op, first->step));
    event_close(trace);
    for (int32_t i = idx; i <= last; i++) {
        if (!stream->items[i].is_held)
            part_kernels(trace, &stream->items[i]);
    }
    return last;
}

static void stream_collective(struct trace *trace, const struct journal_entry *entry)
{
    char name[80];
    const struct performance *performance = &entry->performance;
    struct slice slice = stream_slice(trace, performance->op, "kernel",
                                      trace_nccl_name(trace, performance->op, name, sizeof(name)));
    slice.begin_ps = entry->begin_ps;
    slice.end_ps = entry->end_ps;
    slice_open(trace, &slice);
    kernel_args(trace, performance, 0);
    trace_collective_args(trace, performance->op);
    if (entry->transfer_ps > entry->begin_ps) {
        arg_key(trace, "waited for others us");
        put_us(trace->out, ns_from_ps(entry->transfer_ps) - ns_from_ps(entry->begin_ps));
    }
    event_close(trace);
    arrow(trace, performance, 0, entry->begin_ps);
}

static void stream_copy(struct trace *trace, const struct journal_entry *entry)
{
    static const char *const names[] = {[COPY_H2D] = "Memcpy HtoD (Pinned -> Device)",
                                        [COPY_D2H] = "Memcpy DtoH (Device -> Pinned)",
                                        [COPY_D2D] = "Memcpy DtoD (Device -> Device)"};
    const struct op *op = entry->performance.op;
    struct slice slice = stream_slice(trace, op, "gpu_memcpy", names[op->index]);
    slice.begin_ps = entry->begin_ps;
    slice.end_ps = entry->end_ps;
    slice_open(trace, &slice);
    kernel_args(trace, &entry->performance, 0);
    arg_int(trace, "bytes", op->bytes);
    event_close(trace);
    arrow(trace, &entry->performance, 0, entry->begin_ps);
}

static void stream_entries(struct trace *trace, const struct journal_stream *stream)
{
    for (int32_t i = 0; i < stream->count; i++) {
        const struct journal_entry *entry = &stream->items[i];
        if (!is_reported(trace, entry))
            continue;
        if (entry->performance.kind == ACTIVITY_COMPUTE)
            i = stream_segment(trace, stream, i);
        else if (entry->performance.kind == ACTIVITY_COMMUNICATION)
            stream_collective(trace, entry);
        else
            stream_copy(trace, entry);
    }
}

/* The reported steps in GPU order, from end of step to end of step, above the compute stream. */
static void step_slices(struct trace *trace)
{
    int64_t begin_ps = trace->class->opened_ps;
    for (int32_t step = trace->first_step; step < trace->end_step; step++) {
        const struct journal_mark *end = journal_find_mark(trace->class, step, MARK_STEP_END);
        if (end == NULL)
            return;
        char name[32];
        snprintf(name, sizeof(name), "ProfilerStep#%d", (int)step);
        const struct slice slice = {.category = "gpu_user_annotation",
                                    .name = name,
                                    .pid = trace->device,
                                    .tid = FIRST_STREAM + end->stream,
                                    .begin_ps = begin_ps,
                                    .end_ps = end->now_ps};
        slice_open(trace, &slice);
        event_close(trace);
        begin_ps = end->now_ps;
    }
}

void trace_streams(struct trace *trace)
{
    step_slices(trace);
    for (int32_t i = 0; i < trace->program->streams.count; i++)
        stream_entries(trace, &trace->class->streams[i]);
}
