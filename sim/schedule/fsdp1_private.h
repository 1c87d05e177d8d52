/*
 * schedule/fsdp1_private.h: the state of the host thread while an FSDP1 program is written.
 *
 * The builder is the Python of FullyShardedDataParallel, run once: which flat parameters are
 * gathered, which were prefetched, which free events are queued. Numbers in comments are statements
 * of docs/fsdp1.md.
 *
 * The queue of free events outlives a step. So the step is written again until the queue it begins
 * with is the one it ends with; waits for an event of the step before are left out of the first
 * step.
 */
#ifndef FSDPSIM_SCHEDULE_FSDP1_PRIVATE_H
#define FSDPSIM_SCHEDULE_FSDP1_PRIVATE_H

#include "schedule/fsdp_private.h"

enum {
    FSDP1_COMPUTE,
    FSDP1_PRE_UNSHARD,
    FSDP1_UNSHARD,
    FSDP1_POST_BACKWARD,
    FSDP1_ALL_REDUCE /* hybrid strategies; no_shard reduces on post-backward */
};

/* One flat parameter. */
struct fsdp1_unit {
    struct fsdp_unit *common;
    bool is_resharded; /* after forward */
    /* tensors (index into the program's table), -1: none */
    int32_t cast, flat_params, flat_grads, kept_grads, reduce_input;
    /* segments */
    int32_t cast_shard, concat_grads, add_grads, cast_unsharded_grads, pre_divide, post_divide;
    /* collectives */
    int32_t all_gather, reduce_scatter, all_reduce;
    /* events */
    int32_t pre_unsharded, unsharded, grads_ready, scattered, forward_freed, backward_freed;
    /* state */
    bool is_gathered;
    bool is_prefetched;
    bool has_kept;               /* kept_grads is alive: the sum of microbatches under no_sync */
    bool needs_backward_unshard; /* ran forward, not yet its pre-backward */
    int32_t post_forward_idx;    /* place in post-forward order */
};

/* An event recorded behind the last use of a flat parameter that was freed. */
struct free_event {
    int32_t unit, event;
    bool is_of_last_step;
};

struct free_queue {
    struct free_event *items; /* oldest first */
    int32_t count, capacity;
};

struct fsdp1_builder {
    struct fsdp_builder fsdp;
    struct fsdp1_unit *units;    /* as in fsdp.units */
    int32_t root_event;          /* compute stream at root pre-forward */
    int32_t done_event;          /* post-backward stream at the end of backward */
    int32_t offloaded_event;     /* compute stream then, with all gradients on the host */
    int32_t all_reduced_event;   /* all-reduce stream there, -1: none */
    int all_reduce_stream;       /* of the shards */
    int32_t *post_forward_order; /* units */
    int32_t post_forward_count;
    struct free_queue queue;
    int32_t *kept_inputs; /* by module: tensor, -1: none (fsdp1_setup.c: setup_kept_inputs) */
    bool syncs;           /* in this microbatch */
    bool uses_orig_params;
};

/* fsdp1_setup.c */
void fsdp1_setup(struct fsdp1_builder *builder);

/* fsdp1.c */
bool fsdp1_has_params(const struct fsdp1_builder *builder, int32_t unit);
void fsdp1_unshard(struct fsdp1_builder *builder, int32_t unit, bool is_backward);
void fsdp1_wait_for_unshard(struct fsdp1_builder *builder, int32_t unit);
void fsdp1_reshard(struct fsdp1_builder *builder, int32_t unit, bool frees, bool is_backward);

/* A run of the recompute, with the hooks of units that backward has not reached. */
void fsdp1_recompute(struct fsdp1_builder *builder, int32_t run);

/* fsdp1_backward.c */
void fsdp1_backward(struct fsdp1_builder *builder);

#endif
