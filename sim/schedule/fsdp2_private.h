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

#include "schedule/policy.h"

enum { FSDP2_COMPUTE, FSDP2_COPY_IN, FSDP2_ALL_GATHER, FSDP2_REDUCE_SCATTER };

/* One FSDP group: some modules whose parameters are gathered and reduced together. */
struct fsdp_unit {
    int32_t first_module; /* the first of its modules in forward order */
    bool is_root;
    bool is_resharded;   /* after forward */
    bool reduces_at_end; /* its inputs carry no gradient: reduced in the end-of-backward callback */
    int32_t param_count;
    /* tensors (index into the program's table) */
    int32_t cast, gather_buffer, params, reduce_input, reduce_output, sharded_grads,
        cast_grads_output;
    /* segments */
    int32_t copy_in, copy_out, chunk_cat, cast_grads, accumulate;
    /* collectives */
    int32_t all_gather, reduce_scatter;
    /* events */
    int32_t copied_in, gathered, copied_out, reduce_ready, reduced, post_reduced;
    /* state */
    bool is_pending; /* all-gather issued, not waited for */
    bool is_unsharded;
    bool has_reduced;  /* in this backward */
    bool has_gradient; /* a microbatch of this step left a sharded gradient */
};

/* What one module keeps between forward and backward. Equal modules share segments, not tensors. */
struct fsdp_module {
    int32_t unit; /* -1: the loss, outside every unit */
    /* tensors, -1: none */
    int32_t saved, recomputed, forward_temp, backward_temp, output, output_grad, grads;
    int32_t forward, backward; /* segments */
};

struct fsdp2_builder {
    struct arena *arena;
    const struct model *model;
    const struct policy_settings *settings;
    struct program *program;
    struct fsdp_unit *units; /* root first, then traversal order */
    int32_t unit_count;
    struct fsdp_module *modules;
    int32_t root_event;          /* compute stream at root pre-forward */
    int32_t *post_forward_order; /* units */
    int32_t post_forward_count;
    int32_t parked_unit;     /* whose all-gather buffer is parked, -1 */
    int32_t *pending_reduce; /* units whose reduce-scatter input is alive, oldest first */
    int32_t pending_reduce_count;
    int32_t norm_all_reduce; /* collective */
    int32_t norm_segment, scale_segment, optimizer_segment;
    int32_t *optimizer_state; /* tensor by unit */
    int64_t shard_parameters; /* elements of all shards of one GPU, padded */
};

/* fsdp2_setup.c */
void fsdp2_setup(struct fsdp2_builder *builder);

/* fsdp2.c: appending operations. `unit` -1: none. */
void fsdp2_op(struct fsdp2_builder *builder, enum op_kind kind, int stream, int32_t unit,
              int32_t index);
void fsdp2_host(struct fsdp2_builder *builder, enum host_cost cost, int32_t unit, int32_t count);
void fsdp2_alloc(struct fsdp2_builder *builder, int32_t unit, int32_t tensor); /* -1: nothing */
void fsdp2_free(struct fsdp2_builder *builder, int32_t unit, int32_t tensor);
void fsdp2_unshard(struct fsdp2_builder *builder, int32_t unit);
void fsdp2_wait_for_unshard(struct fsdp2_builder *builder, int32_t unit, bool is_backward);

/* fsdp2_backward.c */
void fsdp2_backward(struct fsdp2_builder *builder);

#endif
