/*
 * tests/unit/trace/trace_reader.h: reads a trace of PyTorch's profiler and breaks it down as
 * Holistic Trace Analysis does. It shares nothing with the writer: a JSON reader of its own, sums
 * in nanoseconds.
 *
 * HTA's definitions: what has a stream is a kernel; it is communication when its name begins with
 * nccl, memory with Memcpy or Memset, else computation. Times are lengths of unions. Overlap is
 * computation and communication at once, over communication.
 *
 * The window is that of ProfilerStep# on the GPU (gpu_user_annotation); without one, as in HTA,
 * from the first kernel's begin to the last one's end.
 */
#ifndef FSDPSIM_TESTS_TRACE_READER_H
#define FSDPSIM_TESTS_TRACE_READER_H

#include <stdbool.h>
#include <stdint.h>

struct trace_facts {
    bool is_json; /* well-formed to its end */
    int64_t rank; /* as HTA finds it: "rank" with white space behind the colon; -1: none */
    int64_t window_ns, compute_ns, comm_ns, memory_ns, overlap_ns, busy_ns;
    int64_t kernels, launches, arrows, instants;
    int64_t loose_arrows; /* an end outside the slice that it belongs to, or alone */
    int64_t crossing;     /* slices of a track that overlap without nesting */
    int64_t twofold_correlations;
    int64_t most_memory_bytes; /* counters and instants */
    int64_t most_reserved_bytes;
    int64_t annotated_steps;
};

static inline int64_t exposed_ns(const struct trace_facts *facts)
{
    return facts->comm_ns - facts->overlap_ns;
}
static inline int64_t idle_ns(const struct trace_facts *facts)
{
    return facts->window_ns - facts->busy_ns;
}

/* `text`: JSON, or gzip of it. The caller frees nothing. */
struct trace_facts trace_read(const void *bytes, int64_t count);

#endif
