/*
 * schedule/policy.h: settings of a sharding policy, their YAML tables, and the policies themselves:
 * pure functions from (model, mesh, settings) to a program.
 *
 * The mesh has the ordered dimensions pp, dp_replicate, dp_shard, cp, ep, tp; their product is the
 * number of GPUs; dp_shard: -1 takes what is left. A communicator is (dimensions, purpose).
 */
#ifndef FSDPSIM_SCHEDULE_POLICY_H
#define FSDPSIM_SCHEDULE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "config/config.h"
#include "model/model.h"
#include "schedule/program.h"

enum policy_api { API_FSDP2, API_FSDP1, API_DDP, API_ZERO1, API_ZERO2, API_ZERO3 };
enum wrap_policy {
    WRAP_BLOCK,      /* every block is a unit; embedding, final norm and head stay in the root */
    WRAP_TORCHTITAN, /* tok_embeddings; every block; [norm, output] not resharded; empty root */
    WRAP_CHILD,      /* attention and MLP of a block apart, and what is left of the block */
    WRAP_SIZE,       /* size_based_auto_wrap_policy */
    WRAP_MODULES     /* those that are named */
};
struct wrap_config {
    int policy;
    int64_t every;              /* WRAP_BLOCK: so many blocks are one unit */
    int64_t min_num_params;     /* WRAP_SIZE */
    struct config_list modules; /* WRAP_MODULES: const char * */
};

/* fsdp1 only. */
enum sharding_strategy {
    SHARDING_FULL,    /* FULL_SHARD: parameters are freed after forward and gathered again */
    SHARDING_GRAD_OP, /* SHARD_GRAD_OP: kept from forward to backward */
    SHARDING_HYBRID,  /* HYBRID_SHARD: SHARDING_FULL in a shard group, all-reduce over replicas */
    SHARDING_HYBRID_GRAD_OP, /* _HYBRID_SHARD_ZERO2: the same of SHARDING_GRAD_OP */
    SHARDING_NONE            /* NO_SHARD: all-reduce of the flat gradient, no gather */
};
enum backward_prefetch {
    PREFETCH_PRE = -1,  /* BACKWARD_PRE: before the gradient computation of the unit */
    PREFETCH_POST = -2, /* BACKWARD_POST: behind it, before its reduce-scatter is issued */
    PREFETCH_NONE = -3
};

/* In which microbatches of a step something is done. */
enum microbatches { MICROBATCH_EVERY, MICROBATCH_LAST };

struct cpu_offload_config {
    bool params, pin_memory;
};

struct fsdp_config {
    int api;
    struct cpu_offload_config cpu_offload;
    struct wrap_config wrap;
    int64_t reshard_after_forward; /* fsdp2: 0: no, 1: yes, n: to shards of n GPUs */
    int64_t forward_prefetch;      /* units; fsdp1: 0, 1 */
    int64_t backward_prefetch;     /* fsdp1: enum backward_prefetch; fsdp2: units, < 0: default */
    bool unshard_in_backward;      /* fsdp2: of embeddings */
    bool float8_all_gather;        /* fsdp2: weights of float8 layers are gathered in float8 */
    int sharding_strategy;         /* fsdp1, as the two below */
    bool limit_all_gathers;
    bool use_orig_params;
    int64_t reduce_scatter_buffers;
    bool separate_reduce_scatter_communicator;
    int requires_gradient_sync; /* enum microbatches, as the two below; fsdp1: no_sync */
    int reshard_after_backward; /* fsdp2 */
    int is_last_backward;       /* fsdp2: which backwards end with waiting for reductions */
    bool defer_all_reduce;      /* fsdp2, HSDP: not before the last microbatch */
    int64_t all_reduce_buffers; /* fsdp2, HSDP: 0: all, until the end of backward */
};

struct ddp_config { /* torch.nn.parallel.DistributedDataParallel */
    int64_t bucket_cap_mb;
    bool gradient_as_bucket_view, find_unused_parameters, static_graph;
    bool no_sync; /* all microbatches of a step but the last run under no_sync() */
};

struct zero_config {  /* DeepSpeed's zero_optimization; counts of elements */
    int overlap_comm; /* enum zero_overlap */
    bool contiguous_gradients, reduce_scatter, use_multi_rank_bucket_allreduce;
    bool allgather_partitions;
    int64_t reduce_bucket_size, allgather_bucket_size, sub_group_size;
    int64_t prefetch_bucket_size, param_persistence_threshold; /* stage 3 */
    int64_t max_live_parameters, max_reuse_distance;           /* stage 3 */
    int64_t hpz_partition_size;
    bool quantized_weights, quantized_gradients;
    int offload_optimizer, offload_param; /* enum zero_offload */
    int coordinator;                      /* enum zero_coordinator; stage 3 */
};
enum zero_overlap { OVERLAP_AUTO, OVERLAP_ON, OVERLAP_OFF }; /* auto: stage 3 alone */
enum zero_coordinator { COORDINATOR_TRACED, COORDINATOR_BLOCKING };
enum zero_offload { OFFLOAD_NONE, OFFLOAD_CPU, OFFLOAD_NVME };

enum { MASTER_NONE = 0 };
struct precision_config {
    int param_dtype, reduce_dtype, storage_dtype; /* enum dtype */
    int master_dtype;                             /* MASTER_NONE, or enum dtype + 1 */
};

enum optimizer_name { OPTIMIZER_ADAMW, OPTIMIZER_SGD, OPTIMIZER_ADAMW_8BIT };
enum optimizer_impl { OPTIMIZER_FUSED, OPTIMIZER_FOREACH, OPTIMIZER_FORLOOP };
struct optimizer_config {
    int name, impl, state_dtype;
    int64_t omp_num_threads; /* of a rank, where it runs on the host; 0: all cores, shared */
};

struct mesh_config {
    int64_t dp_replicate, dp_shard, tp, pp, cp, ep;
};

extern const struct field_table fsdp_table;
extern const struct field_table ddp_table;
extern const struct field_table zero_table;
extern const struct field_table precision_table;
extern const struct field_table optimizer_table;
extern const struct field_table mesh_table;
extern const struct choice api_choices[];
const char *policy_api_name(int api);
/* fsdp1: whether a unit is freed after its forward. */
bool sharding_frees_after_forward(int strategy);

/* fsdp1: hybrid strategies shard inside a host, no_shard nowhere, unless the mesh says otherwise.
 */
void mesh_follow_strategy(struct config *config, const struct fsdp_config *fsdp,
                          struct mesh_config *mesh, int64_t nodes, int64_t gpus_per_node);

/*
 * Resolves dp_shard and checks that the product of the dimensions is the number of GPUs; an error
 * names the factors that were given and the one that is missing. `path`: "mesh".
 */
MUST_CHECK enum status mesh_resolve(struct config *config, const char *path,
                                    struct mesh_config *mesh, int64_t gpus);

/* dtypes that the framework derives from others, where nothing is written. */
void precision_resolve(struct config *config, int api, struct precision_config *precision);

struct policy_config {
    const struct fsdp_config *fsdp;
    const struct ddp_config *ddp;
    const struct zero_config *zero;
    const struct mesh_config *mesh;
    const struct precision_config *precision;
    const struct optimizer_config *optimizer;
    int64_t grad_accum;
};
/* What is valid but cannot be played yet: tp > 1, pp > 1, offload, …: errors (is_note: notes). Keys
   that mean nothing for the chosen api are errors always. */
void policy_check_built(struct config *config, const struct policy_config *policy, bool is_note);

/* Modules that `fsdp.wrap` names and the model does not have, tied weights that it parts;
   `needs_uniform`: units of frozen and trained modules. */
MUST_CHECK enum status wrap_check(struct config *config, const struct model *model,
                                  const struct wrap_config *wrap, bool needs_uniform);

/* zero1 to zero3: an `allgather_bucket_size`, or a `sub_group_size` of an optimizer on the host,
   that makes more pieces than a step can hold. */
MUST_CHECK enum status zero_check_pieces(struct config *config, const struct model *model,
                                         const struct zero_config *zero, int api, int64_t ranks);

struct policy_settings {
    struct fsdp_config fsdp;
    struct ddp_config ddp;
    struct zero_config zero;
    struct precision_config precision;
    struct optimizer_config optimizer;
    struct group shard_group;        /* the ranks that states are sharded over */
    struct group post_forward_group; /* fsdp2: those that a unit is sharded over between forward
                                        and backward; one rank: the shard group, or none */
    struct group replicate_group;    /* those that hold the same shard (HSDP) */
    struct group
        secondary_group;       /* zero3: those of the secondary partition (hpZ); one rank: none */
    struct group tensor_group; /* those that share one model (tensor parallelism) */
    struct group dp_group;     /* all that reduce gradients together: replicas too */
    enum dtype base_dtype;     /* what frozen parameters are kept in */
    enum kept_output kept_output; /* what the training loop does with the model's output */
    int64_t grad_accum;
    int64_t host_syncs;      /* in the forward of each block (host_syncs.c) */
    int64_t hardware_queues; /* hardware_queues.c; 0: one a stream */
    bool is_compiled;
    bool is_checkpoint_per_child;
    bool is_checkpoint_reentrant; /* hooks of units that it holds act in the recompute */
    bool is_checkpoint_inside;    /* of its block's unit, whose own hooks it does not hold */
    bool is_clipping;             /* gradient norm clipping */
    bool checks_gradients;        /* the host looks at the norm before each update (DeepSpeed) */
    int64_t workspace_bytes;      /* cuBLAS, inside the allocator */
};

/* The program of every rank (they are alike). Lives in `arena`. */
struct program *fsdp2_build(struct arena *arena, const struct model *model,
                            const struct policy_settings *settings);
struct program *fsdp1_build(struct arena *arena, const struct model *model,
                            const struct policy_settings *settings);
struct program *ddp_build(struct arena *arena, const struct model *model,
                          const struct policy_settings *settings);
/* zero1, zero2, zero3 by settings->fsdp.api. */
struct program *zero_build(struct arena *arena, const struct model *model,
                           const struct policy_settings *settings);
/* That of settings->fsdp.api, which must be built (policy_check_built). */
struct program *policy_build(struct arena *arena, const struct model *model,
                             const struct policy_settings *settings);

/* Whether the optimizer runs on the host. */
bool policy_offloads_optimizer(const struct policy_settings *settings);
/* Whether parameters are kept there. */
bool policy_offloads_params(const struct policy_settings *settings);
/* Bytes of optimizer state per parameter: two moments of AdamW in state_dtype: 8 B in fp32. */
double optimizer_state_bytes(const struct optimizer_config *optimizer);

/* Elements of one GPU's shard of a parameter: ⌈dim0 / ranks⌉ rows (FSDP2 pads dim 0). */
int64_t param_shard_numel(const struct param *param, int64_t ranks);

#endif
