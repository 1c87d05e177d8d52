/*
 * schedule/fsdp2_private.h: the state of the host thread while an FSDP2 program is written.
 *
 * The builder is the Python of `fully_shard`, run once: it keeps the same state (which unit is
 * gathered, which all-gather buffer is parked, which reduce-scatter inputs are pending, the order
 * of post-forwards) and writes down what would be issued. Numbers in comments are statements of the
 * behavioural specification of FSDP2 in docs/fsdp2.md.
 */
#ifndef FSDPSIM_SCHEDULE_FSDP2_PRIVATE_H
#define FSDPSIM_SCHEDULE_FSDP2_PRIVATE_H

#include "schedule/fsdp_private.h"

enum {
    FSDP2_COMPUTE,
    FSDP2_COPY_IN,
    FSDP2_ALL_GATHER,
    FSDP2_REDUCE_SCATTER,
    FSDP2_ALL_REDUCE /* HSDP only */
};

/* One FSDP group. */
struct fsdp2_unit {
    struct fsdp_unit *common;
    bool is_resharded;          /* after forward */
    bool is_needed_in_backward; /* its backward reads its parameters, or it is not known not to */
    bool reduces_at_end; /* its inputs carry no gradient: reduced in the end-of-backward callback */
    /* tensors (index into the program's table) */
    int32_t cast, gather_buffer, params, post_forward_shard, kept_grads, reduce_input, partial;
    /* segments */
    int32_t copy_in, copy_out, keep_slice, copy_in_slice, keep_grads, add_grads, chunk_cat,
        chunk_cat_kept, pre_divide, post_divide, sum_partial;
    /* collectives */
    int32_t all_gather, all_gather_slices, reduce_scatter, all_reduce;
    /* events */
    int32_t copied_in, gathered, copied_out, resharded, reduce_ready, reduced, summed, post_reduced;
    /* state */
    bool is_pending; /* all-gather issued, not waited for */
    bool is_unsharded;
    bool has_slice;           /* post_forward_shard is alive: resharded to a smaller group */
    bool has_ended;           /* its post-backward of this backward has run */
    bool has_kept;            /* kept_grads is alive: the sum of earlier microbatches, unsharded */
    int32_t post_forward_idx; /* its last place in post-forward order, −1: prefetched from */
    bool has_partial;         /* a microbatch left its reduced shard, not yet all-reduced */
};

struct fsdp2_builder {
    struct fsdp_builder fsdp;
    struct fsdp2_unit *units;    /* as in fsdp.units */
    int32_t root_event;          /* compute stream at root pre-forward */
    int32_t *post_forward_order; /* units */
    int32_t post_forward_count;
    int32_t parked_unit;     /* whose all-gather buffer is parked, -1 */
    int32_t *pending_reduce; /* units whose reduce-scatter input is alive, oldest first */
    int32_t pending_reduce_count;
    int32_t *held_reduced; /* HSDP: units whose all-reduced shard is alive, oldest first */
    int32_t held_reduced_count;
    /* in this microbatch */
    bool syncs, all_reduces, reshards_after_backward, is_last_backward;
    int32_t reduce_communicator, slice_communicator; /* slice: -1: none */
};

/* fsdp2_setup.c */
void fsdp2_setup(struct fsdp2_builder *builder);

/* fsdp2.c */
void fsdp2_unshard(struct fsdp2_builder *builder, int32_t unit, bool is_backward);
/* What was kept of a unit after forward, if anything was. */
void fsdp2_free_slice(struct fsdp2_builder *builder, int32_t unit);
/* A run of the recompute, with the hooks of units that backward has not reached. */
void fsdp2_recompute(struct fsdp2_builder *builder, int32_t run);
void fsdp2_wait_for_unshard(struct fsdp2_builder *builder, int32_t unit, bool is_backward);

/* fsdp2_backward.c */
void fsdp2_backward(struct fsdp2_builder *builder);

#endif
