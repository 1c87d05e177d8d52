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
    WRAP_BLOCK,     /* every block is a unit; embedding, final norm and head stay in the root */
    WRAP_TORCHTITAN /* tok_embeddings; every block; [norm, output] not resharded; empty root */
};

/* fsdp1 only. */
enum sharding_strategy {
    SHARDING_FULL,   /* FULL_SHARD: parameters are freed after forward and gathered again */
    SHARDING_GRAD_OP /* SHARD_GRAD_OP: kept from forward to backward */
};
enum backward_prefetch {
    PREFETCH_PRE,  /* BACKWARD_PRE: before the gradient computation of the unit */
    PREFETCH_POST, /* BACKWARD_POST: behind it, before its reduce-scatter is issued */
    PREFETCH_NONE
};

struct fsdp_config {
    int api;
    int wrap;
    int64_t reshard_after_forward; /* 0, 1; fsdp2 */
    int64_t forward_prefetch;      /* fsdp1: 0, 1 */
    int sharding_strategy;         /* fsdp1, as the three below */
    int backward_prefetch;
    bool limit_all_gathers;
    bool use_orig_params;
    int64_t reduce_scatter_buffers;
    bool separate_reduce_scatter_communicator;
};

enum { MASTER_NONE = 0 };
struct precision_config {
    int param_dtype, reduce_dtype, storage_dtype; /* enum dtype */
    int master_dtype;                             /* MASTER_NONE, or enum dtype + 1 */
};

enum optimizer_name { OPTIMIZER_ADAMW, OPTIMIZER_SGD, OPTIMIZER_ADAMW_8BIT };
enum optimizer_impl { OPTIMIZER_FUSED, OPTIMIZER_FOREACH, OPTIMIZER_FORLOOP };
struct optimizer_config {
    int name, impl, state_dtype;
};

struct mesh_config {
    int64_t dp_replicate, dp_shard, tp, pp, cp, ep;
};

extern const struct field_table fsdp_table;
extern const struct field_table precision_table;
extern const struct field_table optimizer_table;
extern const struct field_table mesh_table;
extern const struct choice api_choices[];
const char *policy_api_name(int api);

/*
 * Resolves dp_shard and checks that the product of the dimensions is the number of GPUs; an error
 * names the factors that were given and the one that is missing. `path`: "mesh".
 */
MUST_CHECK enum status mesh_resolve(struct config *config, const char *path,
                                    struct mesh_config *mesh, int64_t gpus);

/* What is valid but cannot be played yet: tp > 1, pp > 1, api ddp, …: errors (is_note: notes). */
void policy_check_built(struct config *config, const struct fsdp_config *fsdp,
                        const struct mesh_config *mesh, const struct precision_config *precision,
                        bool is_note);

struct policy_settings {
    struct fsdp_config fsdp;
    struct precision_config precision;
    struct optimizer_config optimizer;
    struct group shard_group; /* the ranks a unit is sharded over */
    int64_t grad_accum;
    bool is_compiled;
    bool is_checkpoint_per_child;
    bool is_clipping;        /* gradient norm clipping */
    int64_t workspace_bytes; /* cuBLAS, inside the allocator */
};

/* The program of every rank (they are alike). Lives in `arena`. */
struct program *fsdp2_build(struct arena *arena, const struct model *model,
                            const struct policy_settings *settings);
struct program *fsdp1_build(struct arena *arena, const struct model *model,
                            const struct policy_settings *settings);
/* That of settings->fsdp.api, which must be built (policy_check_built). */
struct program *policy_build(struct arena *arena, const struct model *model,
                             const struct policy_settings *settings);

/* Bytes of optimizer state per parameter: two moments of AdamW in state_dtype: 8 B in fp32. */
double optimizer_state_bytes(const struct optimizer_config *optimizer);

/* Elements of one GPU's shard of a parameter: ⌈dim0 / ranks⌉ rows (FSDP2 pads dim 0). */
int64_t param_shard_numel(const struct param *param, int64_t ranks);

#endif
