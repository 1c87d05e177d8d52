/* report/trace_private.h: one file of a trace while it is written. */
#ifndef FSDPSIM_REPORT_TRACE_PRIVATE_H
#define FSDPSIM_REPORT_TRACE_PRIVATE_H

#include "report/trace.h"
#include "report/trace_output.h"

/* As PyTorch's default stream is shown; the others follow. */
enum { FIRST_STREAM = 7 };

struct trace {
    struct trace_output *out;
    const struct experiment *experiment;
    const struct journal_class *class;
    const struct journal_class
        *memory_of; /* itself, or the class that holds the same and was told */
    const struct rank_class *rank_class;
    const struct program *program;
    int64_t rank, host_pid, device;
    int32_t first_step, end_step; /* reported: from, and up to before */
    int64_t host_begin_ps, host_end_ps;
    int64_t *slots;    /* by operation of a step: launches before it; in all */
    int32_t *issue_of; /* by reported step, then operation; -1: none */
    bool has_event, has_arg;
};

/* What stands on a track for a while. The name is `name`, a blank and `of`, where that is given. */
struct slice {
    const char *category, *name, *of;
    int64_t pid, tid, begin_ps, end_ps;
};

static inline int64_t ns_from_ps(int64_t ps)
{
    return (ps + 500) / 1000;
}

/* trace.c */
void event_open(struct trace *trace, const char *head); /* `head`: its first members */
void event_close(struct trace *trace);                  /* of args too */
void arg_key(struct trace *trace, const char *key);
void arg_int(struct trace *trace, const char *key, int64_t value);
void arg_text(struct trace *trace, const char *key, const char *text);
void slice_open(struct trace *trace, const struct slice *slice);
/* NULL: belongs to none. */
const char *unit_name_of(const struct trace *trace, const struct op *op);
/* "forward" of "layers.0.forward", "copy_in" of "copy_in(layers.0)": into `text`. */
const char *short_name(const char *name, char *text, size_t size);
/* Of the first kernel of a launch; 0: not one of a step. */
int64_t correlation_of(const struct trace *trace, const struct op *op, int32_t step);
const struct issue *issue_of(const struct trace *trace, const struct op *op, int32_t step);
/* The launch of kernel `kernel` begins and ends. */
void launch_times(const struct trace *trace, const struct issue *issue, int32_t kernel,
                  int64_t *begin_ps, int64_t *end_ps);

/* trace_host.c: the host thread; needs to come first, since arrows begin in it. */
void trace_host(struct trace *trace);
/* trace_streams.c: kernels, copies and collectives, and the arrows to them. */
void trace_streams(struct trace *trace);
/* trace_collective.c: the arguments that PyTorch adds to a collective. */
void trace_collective_args(struct trace *trace, const struct op *op);
const char *trace_nccl_name(const struct trace *trace, const struct op *op, char *text,
                            size_t size);
void trace_process_groups(struct trace *trace);
/* trace_memory.c */
void trace_memory(struct trace *trace);

#endif
