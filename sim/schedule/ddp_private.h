/*
 * schedule/ddp_private.h: the state of the host thread while a DDP program is written.
 *
 * The builder is the C++ Reducer of DistributedDataParallel in its second step and later: which
 * gradients fill which bucket, which buckets are under way. Numbers in comments are statements of
 * docs/ddp.md.
 */
#ifndef FSDPSIM_SCHEDULE_DDP_PRIVATE_H
#define FSDPSIM_SCHEDULE_DDP_PRIVATE_H

#include "schedule/fsdp_private.h"

enum { DDP_COMPUTE, DDP_ALL_REDUCE };

/* What follows a gradient differs by microbatch: added to what is there, copied into its bucket. */
enum { DDP_ACCUMULATES = 1, DDP_SYNCS = 2, DDP_VARIANTS = 4 };

struct ddp_bucket {
    int64_t numel;
    int32_t tensors;
    int32_t gradient_end;            /* full when backward has made so many gradients */
    int32_t memory, compressed;      /* tensors, -1: none */
    int32_t compress, restore, copy; /* segments, -1: none */
    int32_t all_reduce;              /* collective */
    int32_t ready, reduced;          /* events */
};

struct ddp_module {
    int32_t weights, grads; /* tensors, -1: none: autocast's copies; the gradients that stay */
    int32_t cast;           /* segment: weights to param_dtype */
    int32_t *slices[DDP_VARIANTS]; /* segments of backward, by gradient; of the kind */
};

struct ddp_builder {
    struct fsdp_builder fsdp;
    struct ddp_module *modules; /* as in the model */
    struct {
        struct ddp_bucket *items; /* in the order in which they are launched */
        int32_t count, capacity;
    } buckets;
    int32_t used_map, used_done; /* find_unused_parameters: collective, event */
    int32_t graph_nodes;         /* that find_unused_parameters walks */
};

/* ddp_setup.c */
void ddp_setup(struct ddp_builder *builder);

#endif
