/*
 * study/torchtitan_log.h: the training log that torchtitan writes → what a step took.
 *
 *   [rank0]:2024-11-28 12:00:09,123 - root - INFO - step: 10  loss: 7.8832 memory: 27.32GiB(28.75%)
 *   tps: 1,786  tflops: 103.4  mfu: 10.46%
 *
 * A line counts that has `step:` and `tps:` (before 2024-10 `wps:`); launchers' prefixes, times,
 * colour codes and all other lines are passed over. tps is tokens a second and GPU, the mean since
 * the line before; memory is the peak of reserved memory, in the unit that stands behind it. Values
 * may be absent or N/A (mfu under float8); a line whose rate is nan is counted apart.
 *
 * The first steps are slower (compilation, the allocator, NCCL's set-up), so lines up to step 10
 * are left out; where there are no others (`is_warm_up`), only each rank's first line is; a single
 * line counts. Of the lines that are left: medians of tps, tflops and mfu over all ranks, the
 * largest memory.
 */
#ifndef FSDPSIM_STUDY_TORCHTITAN_LOG_H
#define FSDPSIM_STUDY_TORCHTITAN_LOG_H

#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"

struct torchtitan_log {
    int64_t lines, lines_used;     /* with a step and a rate */
    int64_t lines_without_rate;    /* a step whose rate is nan or N/A */
    bool is_warm_up;               /* those used are of the first steps: there are no others */
    int64_t ranks;                 /* that wrote them; 1 without prefixes */
    int64_t first_step, last_step; /* of those used */
    double tokens_per_s_per_gpu;
    double slow_tokens_per_s, fast_tokens_per_s; /* 5th and 95th percentile over the lines */
    double tflops_per_gpu, mfu;                  /* NaN: not stated; mfu a fraction */
    double reserved_bytes;                       /* NaN: not stated */
};

/* A line with a malformed figure, or a log without a line that counts: STATUS_INPUT. */
MUST_CHECK enum status torchtitan_log_parse(struct arena *arena, const struct source *source,
                                            struct torchtitan_log *log, struct diag *diag);
MUST_CHECK enum status torchtitan_log_load(struct arena *arena, const char *path,
                                           struct torchtitan_log *log, struct diag *diag);

#endif
