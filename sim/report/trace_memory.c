/*
 * report/trace_memory.c: what the caching allocator holds allocated, as counters by category and as
 * the instants ([memory]) of PyTorch's profiler. Both move in the order of the host thread, as the
 * allocator does, which may be ahead of the streams.
 */
#include "report/trace_private.h"

struct watch {
    int64_t bytes[MEMORY_CATEGORY_COUNT], total;
    bool is_used[MEMORY_CATEGORY_COUNT];
};

static void put_time(struct trace *trace, int64_t pid, int64_t tid, int64_t ps)
{
    put_raw(trace->out, ",\"pid\":");
    put_int(trace->out, pid);
    put_raw(trace->out, ",\"tid\":");
    put_int(trace->out, tid);
    put_raw(trace->out, ",\"ts\":");
    put_us(trace->out, ns_from_ps(ps));
}

static void put_counter(struct trace *trace, const struct watch *watch, int64_t time_ps)
{
    event_open(trace, "{\"ph\":\"C\",\"name\":\"memory\"");
    put_time(trace, trace->device, 0, time_ps);
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++) {
        if (watch->is_used[i])
            arg_int(trace, memory_category_name((enum memory_category)i), watch->bytes[i]);
    }
    arg_int(trace, "total", watch->total);
    event_close(trace);
}

static void put_instant(struct trace *trace, const struct watch *watch,
                        const struct journal_memory *item, int32_t idx)
{
    /* Addresses are made up: each tensor has a place of its own. */
    enum { ADDRESS_BITS = 32 };
    const int64_t tensor = item->tensor - trace->program->tensors.items;
    event_open(trace, "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\","
                      "\"name\":\"[memory]\",\"dur\":0");
    put_time(trace, trace->host_pid, trace->host_pid, item->time_ps);
    arg_int(trace, "Total Allocated", watch->total);
    arg_int(trace, "Total Reserved", item->reserved_bytes);
    arg_int(trace, "Bytes", item->delta_bytes);
    arg_int(trace, "Addr", (tensor + 1) << ADDRESS_BITS);
    arg_int(trace, "Device Type", 1);
    arg_int(trace, "Device Id", trace->device);
    arg_int(trace, "Ev Idx", idx);
    arg_text(trace, "tensor", item->tensor->name);
    event_close(trace);
}

static void find_used(const struct trace *trace, struct watch *watch)
{
    const struct journal_class *class = trace->memory_of;
    for (int32_t i = 0; i < class->memory.count; i++)
        watch->is_used[class->memory.items[i].tensor->category] = true;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void trace_memory(struct trace *trace)
{
    const struct journal_class *class = trace->memory_of;
    const int64_t host_begin_ps = trace->host_begin_ps < 0 ? 0 : trace->host_begin_ps;
    const int64_t begin_ps = least(host_begin_ps, trace->class->opened_ps);
    const int64_t end_ps = -least(-trace->host_end_ps, -trace->class->closed_ps);
    struct watch watch = {.total = 0};
    find_used(trace, &watch);
    bool has_begun = false;
    for (int32_t i = 0; i < class->memory.count; i++) {
        const struct journal_memory *item = &class->memory.items[i];
        if (item->time_ps > end_ps)
            break;
        if (item->time_ps >= begin_ps && !has_begun) {
            put_counter(trace, &watch, begin_ps);
            has_begun = true;
        }
        watch.bytes[item->tensor->category] += item->delta_bytes;
        watch.total += item->delta_bytes;
        if (item->time_ps < begin_ps)
            continue;
        put_instant(trace, &watch, item, i);
        /* Of what happens at once the counter shows the end. */
        const bool is_last = i + 1 == class->memory.count || item[1].time_ps > item->time_ps;
        if (is_last)
            put_counter(trace, &watch, item->time_ps);
    }
}
