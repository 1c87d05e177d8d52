/*
 * run/estimate.h: memory per GPU without events: closed forms, instantly.
 *
 * Bytes a parameter: parameter and gradient in storage_dtype, two Adam moments in state_dtype, a
 * master copy where one is kept; of frozen parameters no more than they are kept in, so with
 * adapters the three are means over all parameters. Per GPU, over N data-parallel GPUs: ddp: p + g
 * + o      zero1: p + g + o/N      zero2: p + (g + o)/N      zero3, fsdp2: (p + g + o)/N Example: p
 * + g + o = 2 + 2 + 12 B, N = 8: zero1 5.5, zero2 3.75, zero3 2 B a parameter.
 *
 * On top of the states comes the larger of two moments: the loss (all saved activations, logits and
 * loss), and the first block's backward (all saved activations, the recomputed ones, and
 * `gathered_bytes`: what fully_shard holds of a unit in flight, docs/fsdp2.md: 2 gathered copies, 1
 * gradient, 1 reduce-scatter input of the largest unit); what stays gathered counts in both. And
 * what lies outside the allocator.
 */
#ifndef FSDPSIM_RUN_ESTIMATE_H
#define FSDPSIM_RUN_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "run/experiment.h"

enum estimate_stage { STAGE_DDP, STAGE_ZERO1, STAGE_ZERO2, STAGE_ZERO3, STAGE_COUNT };
const char *estimate_stage_name(enum estimate_stage stage); /* "ddp", "zero3 (fsdp2)" */

struct estimate_row {
    double parameter_bytes, gradient_bytes, optimizer_bytes; /* per GPU; master in optimizer */
    double bucket_bytes; /* ddp's copy of the gradients in buckets, when asked for */
    double host_bytes;   /* of this GPU's states, in the memory of its host (offload) */
    double states_bytes; /* sum of the others */
    double bytes_per_parameter;
    double gathered_bytes; /* in a block's backward */
    double working_bytes;  /* the larger of the two moments */
    double total_bytes;    /* states, working, outside */
    bool fits;
    double over_bytes;
};

struct estimate {
    int64_t parameters, ranks;
    double bytes_per_parameter[3]; /* parameter, gradient, optimizer (with master) */
    struct estimate_row rows[STAGE_COUNT];
    int32_t smallest_fitting;       /* enum estimate_stage, -1: none */
    double largest_unit_parameters; /* of the wrapped units */
    double largest_unit_trained;    /* of them */
    double one_unit_gathered_bytes; /* the largest unit's gathered parameters */
    /* The simple textbook bound: states of zero3 and one unit gathered. */
    double textbook_peak_bytes;
    double activation_bytes, recomputed_bytes, logits_bytes, outside_bytes;
    int64_t hidden_elements; /* batch × sequence × hidden, 0: abstract */
    double hidden_bytes;     /* the same as one activation tensor */
    int64_t layers;
    double budget_bytes; /* what `fits` compares with */
};

/* Of the whole model: parameters as stored, gradients, the optimizer's state with the master copy.
   Needs the model. */
void estimate_state_bytes(const struct experiment *experiment, double bytes[3]);

/* budget_bytes 0: the GPU's memory. Needs experiment_load only. */
MUST_CHECK enum status estimate_memory(struct experiment *experiment, double budget_bytes,
                                       bool has_ddp_buckets, struct estimate *estimate);

#endif
