/*
 * schedule/fsdp_private.h: what the builders of FSDP programs share: units, modules, the optimizer,
 * appending to the program.
 *
 * Stream 0 of every program is compute, and its pool holds all tensors but those of collectives.
 * The builder of a policy has a struct fsdp_builder as a member and keeps its own state of units in
 * an array beside `units`.
 */
#ifndef FSDPSIM_SCHEDULE_FSDP_PRIVATE_H
#define FSDPSIM_SCHEDULE_FSDP_PRIVATE_H

#include "schedule/fsdp_tree.h"
#include "schedule/policy.h"

enum { FSDP_COMPUTE };

/* How a unit's parts differ where some of it is frozen, cast or packed. */
struct fsdp_sizes {
    int64_t stored_bytes;                  /* on one GPU */
    int64_t cast_shard, cast_stored_bytes; /* elements on one GPU cast for the gather; as stored */
    int64_t trained;                       /* elements whose gradient backward makes */
    int32_t trained_count;                 /* parameters */
    int64_t reduced_padded, reduced_shard; /* elements that are reduced, and on one GPU */
    int64_t optimized_shard;               /* elements the optimizer sees on one GPU */
};

/* Some modules whose parameters are gathered and reduced together. */
struct fsdp_unit {
    const char *name;
    int32_t parent;       /* the unit that it lies in */
    bool has_begun;       /* its pre-backward of this backward has run */
    int32_t first_module; /* the first of its modules in forward order; the root: 0 */
    int32_t param_count;
    int64_t parameters;        /* elements */
    int64_t padded, shard;     /* elements of param_dtype, gathered and on one GPU: by the policy */
    struct fsdp_sizes sizes;   /* by the policy; fsdp_size_whole where nothing is frozen */
    int32_t optimizer_tensors; /* that the optimizer sees: set by the policy */
    int32_t sharded_grads, reduce_output, cast_grads_output; /* tensors, -1: none */
    int32_t cast_grads, accumulate;                          /* segments, -1: none */
    int32_t optimizer_state;                                 /* tensor, -1: none */
    int32_t device_shard;    /* tensor: of a shard that the host keeps, -1: none */
    int32_t offloaded_event; /* its gradient is on the host, -1: none */
    bool has_gradient;       /* a microbatch of this step left a sharded gradient */
    bool
        is_reduced_apart; /* reduce_output is alive: the reduced shard is not the gradient itself */
};

/* What one module keeps between forward and backward. Equal modules share segments, not tensors. */
struct fsdp_module {
    int32_t unit;        /* -1: the loss, outside every unit */
    int32_t *path_units; /* of the modules inside it, where these are in several units; NULL */
    /* tensors, -1: none */
    int32_t saved, recomputed, forward_temp, backward_temp, output, output_grad, grads;
    int32_t kept, kept_before; /* its part of the model's output; that of the forward before */
    int32_t forward, backward; /* issues */
};

/* The gradient of some parameters of a module, made when backward has run so many of its kernels.
 */
struct fsdp_gradient {
    int32_t kernel_end; /* of the module's backward segment */
    int64_t numel;
    int32_t tensors;
};
struct fsdp_gradients {
    struct fsdp_gradient *items; /* in the order in which backward makes them */
    int32_t count, capacity;
};

/* Kernels of a module as they are issued (fsdp_issue.c). */
struct fsdp_issue {
    struct segment whole; /* not in the program where exchanges cut it */
    struct op_list ops;
    int32_t segments;
};

/* Kernels of a module, in a row, whose parameters are in one unit. */
struct fsdp_run {
    int32_t module, unit, issue;
    int32_t grads;     /* tensor: of the unit's parameters in the module, at its first run; -1 */
    bool begins, ends; /* the module */
    bool is_recompute; /* of a forward whose hooks run again */
};
struct fsdp_runs {
    struct fsdp_run *items;
    int32_t count, capacity;
    int32_t *first, *last; /* by unit: runs of it and of units inside it; recompute apart */
    int32_t *last_own;     /* by unit: of itself */
};

struct fsdp_builder {
    struct arena *arena;
    const struct model *model;
    const struct policy_settings *settings;
    struct program *program;
    struct fsdp_unit *units; /* root first, then traversal order */
    int32_t unit_count;
    struct fsdp_module *modules;
    struct kind_paths *paths;           /* by kind of module: what is inside */
    struct fsdp_runs forward, backward; /* in order; after fsdp_add_runs */
    struct fsdp_gradients *gradients;   /* by kind of module; after fsdp_order_gradients */
    struct {
        struct fsdp_issue *items;
        int32_t count, capacity;
    } issues;
    /* Of tensor parallelism, made with the first exchange; 0: none. Events: while there is a stream
     */
    int32_t tensor_communicator, tensor_stream, exchange_ready, exchanged;
    int64_t update_elements; /* the optimizer takes so many at a time; 0: all */
    /* optimizer.c; -1: none */
    int32_t norm_all_reduce, norm_tensor_reduce, inf_all_reduce; /* collectives */
    int32_t unscale_segment, norm_segment, scale_segment, optimizer_segment;
    int32_t to_master_segment, from_master_segment;
    int32_t norm_event;                        /* the host waits for what was found */
    int32_t optimizer_temporary, master_grads; /* tensors */
};

/* fsdp_common.c: entries of the program's tables; a tensor or pass without bytes is not made: -1.
 */
int32_t fsdp_add_event(struct fsdp_builder *builder, const char *what, const char *unit);
int32_t fsdp_add_tensor(struct fsdp_builder *builder, struct tensor tensor);
int32_t fsdp_add_segment(struct fsdp_builder *builder, struct segment segment);
/* One memory-bound kernel that FSDP or the optimizer issues. */
int32_t fsdp_add_pass(struct fsdp_builder *builder, const char *name, enum kernel_kind kind,
                      enum dtype dtype, double bytes, bool is_optimizer);
int32_t fsdp_add_collective(struct fsdp_builder *builder, enum collective_op op,
                            int32_t communicator, double bytes);
/* Of a unit, named "what(unit)". */
int32_t fsdp_add_unit_tensor(struct fsdp_builder *builder, int32_t unit, const char *what,
                             int64_t bytes, enum memory_category category, int stream);
int32_t fsdp_add_unit_pass(struct fsdp_builder *builder, int32_t unit, const char *what,
                           enum kernel_kind kind, enum dtype dtype, double bytes);
/* … of so many bytes in all, in so many kernels: one a parameter. */
int32_t fsdp_add_param_passes(struct fsdp_builder *builder, int32_t unit, const char *what,
                              enum kernel_kind kind, enum dtype dtype, double bytes, int32_t count);
/* The unit in the program's table; its bytes follow from the padded size. */
const struct unit *fsdp_list_unit(struct fsdp_builder *builder, int32_t unit);
/* Held from the prologue to the end. */
void fsdp_hold(struct fsdp_builder *builder, int32_t tensor);

/* Operations of the step; an `index` of -1 adds nothing. `unit` -1: none. */
void fsdp_op(struct fsdp_builder *builder, enum op_kind kind, int stream, int32_t unit,
             int32_t index);
/* In the first step only, or in all others; host work: once. */
void fsdp_flagged_op(struct fsdp_builder *builder, enum op_kind kind, enum op_flag flag,
                     int32_t unit, int32_t index);
void fsdp_host(struct fsdp_builder *builder, enum host_cost cost, int32_t unit, int32_t count);
/* Any other; an `index` of -1 adds nothing. */
void fsdp_add_op(struct fsdp_builder *builder, struct op op);
void fsdp_alloc(struct fsdp_builder *builder, int32_t unit, int32_t tensor);
void fsdp_free(struct fsdp_builder *builder, int32_t unit, int32_t tensor);

/* fsdp_issue.c */
/* Kernels, and where exchanges are among them what those are; to be issued any number of times. */
int32_t fsdp_add_issue(struct fsdp_builder *builder, struct segment whole);
void fsdp_issue(struct fsdp_builder *builder, int32_t unit, int32_t index);

/* fsdp_sizes.c */
/* What a policy without frozen parameters has: all of `shard` is stored, cast, reduced, updated. */
void fsdp_size_whole(const struct fsdp_builder *builder, struct fsdp_unit *unit);
/* fully_shard: every parameter is padded by itself; ddp: over one rank. */
void fsdp_size_by_param(struct fsdp_builder *builder, int64_t ranks);
/* FullyShardedDataParallel: a flat parameter. */
void fsdp_size_flat(struct fsdp_builder *builder);

/* fsdp_units.c */
/* Modules → units, named and counted, by `fsdp.wrap`; `wraps_adapters`: and each layer of an
   adapter one. */
void fsdp_assign_units(struct fsdp_builder *builder, bool wraps_adapters);
int32_t fsdp_param_unit(const struct fsdp_builder *builder, int32_t module, int32_t param);

/* fsdp_runs.c */
/* Modules → runs, after fsdp_add_modules. */
void fsdp_add_runs(struct fsdp_builder *builder);
void fsdp_play_forward(struct fsdp_builder *builder, const struct fsdp_run *run);
void fsdp_play_backward(struct fsdp_builder *builder, const struct fsdp_run *run);
/* The gradients of a unit's parameters as backward wrote them. */
void fsdp_free_module_grads(struct fsdp_builder *builder, int32_t unit);
/* A module's first run of backward that is no recompute, from its first run on. */
int32_t fsdp_behind_recompute(const struct fsdp_builder *builder, int32_t run);
/* The next unit whose backward begins with a run, outer before inner, which is the order in which
   the gradients of their outputs come (numbers rise inwards); it has_begun from here on. -1: none.
   Before a reentrant recompute those inside the checkpoint do not count. */
int32_t fsdp_begin_next(struct fsdp_builder *builder, int32_t run, bool is_before_recompute);
/* Whether a unit is another one or lies in it. */
bool fsdp_is_inside(const struct fsdp_builder *builder, int32_t inner, int32_t unit);
/* A reentrant checkpoint's forward makes no graph: the block's unit, unless the checkpoint is
   inside it, and what lies in it do not know of backward before the recompute. */
bool fsdp_is_under_checkpoint(const struct fsdp_builder *builder, int32_t unit);
/* Whether a unit is reached, or left, with this run of a recompute. */
bool fsdp_recompute_enters(const struct fsdp_builder *builder, int32_t run, int32_t unit);
bool fsdp_recompute_leaves(const struct fsdp_builder *builder, int32_t run, int32_t unit);

/* fsdp_modules.c */
const struct module_kind *fsdp_kind(const struct fsdp_builder *builder, int32_t module);
/* The shard of a unit, which stays, as so many allocations. */
void fsdp_add_shard(struct fsdp_builder *builder, int32_t unit, int32_t pieces);

/* fsdp_parts.c; a tensor of -1 stays none. */
/* A tensor of a unit as allocations, one a parameter, or `copies` of each. */
void fsdp_split_by_param(struct fsdp_builder *builder, int32_t tensor, int32_t unit,
                         bool is_trained_only, int32_t copies);
void fsdp_split_module_grads(struct fsdp_builder *builder, int32_t tensor, int32_t module);
/* Tensors that so many bytes of a module's activations are. */
int32_t fsdp_piece_count(const struct module_kind *kind, int64_t bytes);

/* fsdp_modules.c */
/* Tensors and segments of the modules, and the workspace of the GEMM library. */
void fsdp_add_modules(struct fsdp_builder *builder);
void fsdp_add_workspace(struct fsdp_builder *builder);
void fsdp_begin_forward(struct fsdp_builder *builder, int32_t module);
void fsdp_end_forward(struct fsdp_builder *builder, int32_t module);
/* Both, and its kernels between. */
void fsdp_run_forward(struct fsdp_builder *builder, int32_t module);
/* Backward: what it holds beside gradients, its kernels, and what it gives back. */
void fsdp_begin_backward(struct fsdp_builder *builder, int32_t module);
void fsdp_end_backward(struct fsdp_builder *builder, int32_t module);
/* All three, with gradients that stay. */
void fsdp_run_backward(struct fsdp_builder *builder, int32_t module);
/* An issue of a module's kernels, of which the first are the forward of a block (program.h), and
 * the gradients of so many of its parameters. */
int32_t fsdp_add_module_issue(struct fsdp_builder *builder, const char *name, bool is_backward,
                              const struct kernel *kernels, int32_t count, int32_t forward_kernels);
int32_t fsdp_add_module_grads(struct fsdp_builder *builder, const char *name, int32_t unit,
                              int64_t numel, int32_t count);

/* fsdp_outputs.c */
void fsdp_add_output(struct fsdp_builder *builder, int32_t module);
/* At the end of a module's forward, of its backward. */
void fsdp_keep_output(struct fsdp_builder *builder, int32_t module);
void fsdp_drop_output(struct fsdp_builder *builder, int32_t module);

/* fsdp_gradient.c */
/* The output of a reduce-scatter, made on `stream`; the sharded gradient, and the cast between
 * them, on `cast_stream`. */
void fsdp_add_gradient_tensors(struct fsdp_builder *builder, int32_t unit, int stream,
                               int cast_stream);
void fsdp_add_gradient_segments(struct fsdp_builder *builder, int32_t unit);
/* What gradients are divided by before they are summed, where they are; the rest comes after. */
int64_t fsdp_pre_divide_factor(const struct fsdp_builder *builder);
/* Whether this microbatch of the step does what a key says (enum microbatches). */
bool fsdp_is_due(const struct fsdp_builder *builder, int when, int64_t microbatch);
/* Whether gradients are reduced more than once a step; whether some are kept unsharded. */
bool fsdp_reduces_again(const struct fsdp_builder *builder);
bool fsdp_keeps_unsharded(const struct fsdp_builder *builder);
/* Where the reduce-scatter writes: without a cast the reduced shard is the gradient itself. */
void fsdp_alloc_reduced(struct fsdp_builder *builder, int32_t unit);
/* The reduced shard becomes, or is added to, the sharded gradient. */
void fsdp_keep_gradient(struct fsdp_builder *builder, int32_t unit, int stream);
/* … which needs no longer live, where it is not the gradient. */
void fsdp_free_reduced(struct fsdp_builder *builder, int32_t unit);
/* Whether the shard is gathered from others; whether others hold the same shard (HSDP). */
bool fsdp_is_sharded(const struct fsdp_builder *builder);
bool fsdp_is_replicated(const struct fsdp_builder *builder);

/* fsdp_offload.c */
/* Whether FSDP keeps shards in the memory of the host. */
bool fsdp_offloads(const struct fsdp_builder *builder);
/* What a unit then needs; its shard comes to the GPU on `stream`. */
void fsdp_add_offload(struct fsdp_builder *builder, int32_t unit, int stream);
/* A copy issued in so many parts, and `event` behind it. */
void fsdp_copy(struct fsdp_builder *builder, enum copy_kind kind, int stream, int32_t unit,
               int64_t bytes, int32_t parts, int32_t event);
/* The host reads and writes so many bytes of operands. */
void fsdp_host_compute(struct fsdp_builder *builder, enum host_pass pass, int32_t unit,
                       double bytes);
/* The shard to the GPU, into `device_shard`; `copied` is recorded behind it. */
void fsdp_bring_shard(struct fsdp_builder *builder, int32_t unit, int stream, int32_t copied);
/* The reduced gradient to the host, where it is kept, or added to what is there. */
void fsdp_offload_gradient(struct fsdp_builder *builder, int32_t unit, int stream);
void fsdp_await_gradient(struct fsdp_builder *builder, int32_t unit);

/* fsdp_gradient_order.c: backward cut where gradients are made. */
void fsdp_order_gradients(struct fsdp_builder *builder);
/* An issue: the kernels of backward that end with gradient `index` of a module like this one, and
 * behind them so many passes over it, each of so many bytes an element. */
int32_t fsdp_add_gradient_slice(struct fsdp_builder *builder, int32_t module, int32_t index,
                                const double *pass_bytes, int32_t pass_count);

/* optimizer.c */
/* After a unit's shard: its state. */
void optimizer_add_state(struct fsdp_builder *builder, int32_t unit);
void optimizer_setup(struct fsdp_builder *builder);
/* At the beginning of a step: zero_grad. */
void optimizer_free_gradients(struct fsdp_builder *builder);
/* Clipping, then the update. */
void optimizer_step(struct fsdp_builder *builder);
/* Elements of the shard that are updated; operand bytes that the update moves for each. */
int64_t optimizer_elements(const struct fsdp_builder *builder);
double optimizer_update_bytes(const struct fsdp_builder *builder);
/* What the update reads and writes: the master copy, or the parameters as stored. */
enum dtype optimizer_update_dtype(const struct fsdp_builder *builder);

/* optimizer_host.c: the same on the host. */
void optimizer_host_setup(struct fsdp_builder *builder);
void optimizer_host_step(struct fsdp_builder *builder, int32_t tensors);

#endif
