/*
 * report/trace.h: the timeline of a run in the form of PyTorch's profiler (Kineto, which is
 * Chrome's trace format with conventions), for Perfetto and Holistic Trace Analysis.
 * docs/timeline.md says what every track is.
 *
 * One file a rank class, for its lowest rank: the reported steps, in simulated time from the start
 * of the run, in microseconds with three digits. Times are rounded to nanoseconds before they are
 * subtracted, so that what touched still touches. Segments are expanded into kernels: a part of a
 * segment that took longer than alone stretches all its kernels by the same factor.
 *
 * Example, a kernel:
 *
 *   {"ph":"X","cat":"kernel","name":"q_proj","pid":0,"tid":7,"ts":10000.000,"dur":412.250,
 *    "args":{"device":0,"context":1,"stream":7,"correlation":81,"External id":80,
 *            "unit":"layers.0","m":8192,"n":4096,"k":4096,"dtype":"BFloat16"}}
 *
 * Source: Chrome's Trace Event Format; Kineto's output_json.cpp for the names of arguments; the
 * readers of Perfetto and Holistic Trace Analysis.
 */
#ifndef FSDPSIM_REPORT_TRACE_H
#define FSDPSIM_REPORT_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include "observe/journal.h"
#include "run/experiment.h"

/* False: not everything could be written to `file`, which stays open. */
MUST_CHECK bool report_trace(struct experiment *experiment, const struct journal *journal,
                             int32_t class_idx, bool is_compressed, FILE *file);

#endif
