/*
 * study/validate_models.h: forward and backward of whole models on one GPU, beside measured ones.
 *
 * Between a kernel and a training run: every kernel of a model in its order, but no FSDP, no
 * collective and no optimizer. Each row of a CSV is one model; the prediction plays the kernels of
 * model_build one by one, as machine/machine.h plays a segment:
 *
 *   host += cost of issuing one kernel
 *   gpu   = max(gpu, host) + gpu_kernel_s + launch gap
 *
 * so that a pass is bound by the GPU or by the host, whichever it would be. Columns, by name, in
 * any order; those marked * must be there:
 *
 *   gpu*           name or alias of a GPU file
 *   model*         a name under results/measured/models or models/, or a path
 *   mode*          train; anything else is out of scope
 *   seq*, batch*   tokens a sequence, sequences
 *   e2e_latency*   measured milliseconds, forward + backward
 *   fw_latency, bwall_latency   the parts; 0 or empty: not stated
 *   variant        empty; anything else (compiled, several GPUs) is out of scope
 *
 * How a row was measured (the source's neusight/Tracing/trace.py): fp32 without TF32, eager
 * attention, dropout on; CUDA events around the forward, which ends at the logits, and around
 * loss.backward(), which begins with the gradient of the loss; gradients are never cleared, so each
 * backward adds to those that stand. Forward and backward each start with an idle GPU and a host
 * that is not ahead. The source does not name the host's CPU: xeon-8480c, of dgx-h100, is assumed.
 *
 * Not played: the cache of the allocator is emptied before each pass, so every tensor of the
 * measured forward is a cudaMalloc.
 *
 *   500 us of kernels, of which the host issues the last after 480 us: at least 500 us
 */
#ifndef FSDPSIM_STUDY_VALIDATE_MODELS_H
#define FSDPSIM_STUDY_VALIDATE_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "study/validate.h"

enum model_pass { MODEL_TOTAL, MODEL_FORWARD, MODEL_BACKWARD, MODEL_PASS_COUNT };
const char *model_pass_name(enum model_pass pass);

struct model_row {
    int32_t line; /* in the CSV */
    const char *gpu, *model;
    int64_t seq_len, batch;
    const char *reason;                           /* why it is out of scope, NULL: in scope */
    struct validate_pair pairs[MODEL_PASS_COUNT]; /* seconds */
    double starved_frac; /* of the predicted total, the GPU idle because of the host */
};

struct model_group { /* by GPU or model */
    const char *name;
    int64_t rows; /* in scope */
    struct validate_score scores[MODEL_PASS_COUNT];
};

struct model_groups {
    struct model_group *items;
    int32_t count, capacity;
};

struct model_validation {
    struct {
        struct model_row *items;
        int32_t count, capacity;
    } rows; /* in order of the file */
    int64_t in_scope;
    double median_goal; /* of |error| of the total */
    struct model_group all;
    struct model_groups by_gpu, by_model;
    struct {
        struct validate_exclusion *items;
        int32_t count;
    } exclusions;
};

/* `csv_path`: NULL for the table that ships. A malformed CSV is STATUS_INPUT. */
MUST_CHECK enum status model_validation_run(struct arena *arena, const char *csv_path,
                                            struct model_validation *validation, struct diag *diag);

#endif
