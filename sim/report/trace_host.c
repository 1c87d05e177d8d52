/*
 * report/trace_host.c: the host thread of the reported steps: what it issues and when it stands
 * still. An operation on a stream is a slice (cpu_op) around the launches of its kernels
 * (cuda_runtime); other work of the host (hooks, the optimizer's Python) is a slice alone.
 */
#include "report/trace_private.h"

static struct slice host_slice(const struct trace *trace, const char *category, const char *name,
                               int64_t begin_ps, int64_t end_ps)
{
    return (struct slice){.category = category,
                          .name = name,
                          .pid = trace->host_pid,
                          .tid = trace->host_pid,
                          .begin_ps = begin_ps,
                          .end_ps = end_ps};
}

static void launches(struct trace *trace, const struct issue *issue, const char *name,
                     int32_t count)
{
    const int64_t first = correlation_of(trace, issue->op, issue->step);
    for (int32_t i = 0; i < count; i++) {
        int64_t begin_ps = 0;
        int64_t end_ps = 0;
        launch_times(trace, issue, i, &begin_ps, &end_ps);
        const struct slice slice = host_slice(trace, "cuda_runtime", name, begin_ps, end_ps);
        slice_open(trace, &slice);
        arg_int(trace, "External id", first);
        arg_int(trace, "correlation", first + i);
        event_close(trace);
    }
}

static void op_slice(struct trace *trace, const struct issue *issue, const char *name)
{
    struct slice slice = host_slice(trace, "cpu_op", name, issue->begin_ps, issue->end_ps);
    slice.of = unit_name_of(trace, issue->op);
    slice_open(trace, &slice);
}

static void issue_segment(struct trace *trace, const struct issue *issue)
{
    char name[64];
    const struct segment *segment = &trace->program->segments.items[issue->op->index];
    op_slice(trace, issue, short_name(segment->name, name, sizeof(name)));
    arg_int(trace, "External id", correlation_of(trace, issue->op, issue->step));
    event_close(trace);
    launches(trace, issue, "cudaLaunchKernel", segment->kernel_count);
}

static void issue_collective(struct trace *trace, const struct issue *issue)
{
    const struct slice slice =
        host_slice(trace, "cpu_op", "record_param_comms", issue->begin_ps, issue->end_ps);
    slice_open(trace, &slice);
    arg_int(trace, "External id", correlation_of(trace, issue->op, issue->step));
    trace_collective_args(trace, issue->op);
    event_close(trace);
    launches(trace, issue, "cudaLaunchKernelExC", 1);
}

static const char *stream_op_name(const struct op *op)
{
    return op->kind == OP_RECORD ? "cudaEventRecord" : "cudaStreamWaitEvent";
}

static void issue_other(struct trace *trace, const struct issue *issue)
{
    const struct op *op = issue->op;
    if (issue->end_ps == issue->begin_ps)
        return;
    if (op->kind == OP_RECORD || op->kind == OP_WAIT) {
        const struct slice slice =
            host_slice(trace, "cuda_runtime", stream_op_name(op), issue->begin_ps, issue->end_ps);
        slice_open(trace, &slice);
    } else {
        op_slice(trace, issue,
                 op->kind == OP_HOST_WORK ? host_cost_name((enum host_cost)op->index)
                                          : "host compute");
    }
    event_close(trace);
}

static void issue_copy(struct trace *trace, const struct issue *issue)
{
    op_slice(trace, issue, "copy");
    event_close(trace);
    launches(trace, issue, "cudaMemcpyAsync", 1);
}

static void issue_one(struct trace *trace, const struct issue *issue)
{
    const enum op_kind kind = (enum op_kind)issue->op->kind;
    if (kind == OP_SEGMENT)
        issue_segment(trace, issue);
    else if (kind == OP_COLLECTIVE || kind == OP_SEND || kind == OP_RECV)
        issue_collective(trace, issue);
    else if (kind == OP_COPY)
        issue_copy(trace, issue);
    else
        issue_other(trace, issue);
}

static void waits(struct trace *trace)
{
    for (int32_t i = 0; i < trace->class->host.count; i++) {
        const struct journal_host_entry *entry = &trace->class->host.items[i];
        if (!entry->is_held || entry->now_ps <= trace->host_begin_ps ||
            entry->since_ps >= trace->host_end_ps)
            continue;
        const struct slice slice = host_slice(trace, "cuda_runtime", "cudaEventSynchronize",
                                              entry->since_ps, entry->now_ps);
        slice_open(trace, &slice);
        event_close(trace);
    }
}

static void retries(struct trace *trace)
{
    for (int32_t i = 0; i < trace->class->retries.count; i++) {
        const struct journal_retry *retry = &trace->class->retries.items[i];
        if (retry->end_ps <= trace->host_begin_ps || retry->begin_ps >= trace->host_end_ps)
            continue;
        const struct slice slice =
            host_slice(trace, "cuda_runtime", "cudaMalloc (retry)", retry->begin_ps, retry->end_ps);
        slice_open(trace, &slice);
        event_close(trace);
    }
}

/* The host's part of a step: PyTorch's profiler marks it so, and HTA finds steps by it. */
static void step_slice(struct trace *trace, int32_t step, int64_t begin_ps, int64_t end_ps)
{
    char name[32];
    snprintf(name, sizeof(name), "ProfilerStep#%d", (int)step);
    const struct slice slice = host_slice(trace, "user_annotation", name, begin_ps, end_ps);
    slice_open(trace, &slice);
    event_close(trace);
}

void trace_host(struct trace *trace)
{
    const struct issue *issues = trace->class->issues.items;
    const int32_t count = trace->class->issues.count;
    int32_t step = -1;
    for (int32_t i = 0; i < count; i++) {
        if (issues[i].step < trace->first_step || issues[i].step >= trace->end_step)
            continue;
        if (issues[i].step != step) {
            step = issues[i].step;
            int32_t last = i;
            while (last + 1 < count && issues[last + 1].step == step)
                last++;
            step_slice(trace, step, issues[i].begin_ps, issues[last].end_ps);
        }
        issue_one(trace, &issues[i]);
    }
    waits(trace);
    retries(trace);
}
