/* run/experiment_private.h: the root as bound, shared by the files of this room. */
#ifndef FSDPSIM_RUN_EXPERIMENT_PRIVATE_H
#define FSDPSIM_RUN_EXPERIMENT_PRIVATE_H

#include "cluster/cluster_config.h"
#include "run/experiment.h"

enum { IDEAL_HOST, IDEAL_COPIES, IDEAL_CONTENTION, IDEAL_OPTIMIZER, IDEAL_LATENCY };
extern const struct choice ideal_choices[];

struct root_config {
    int64_t version;
    struct model_config model;
    struct cluster_config cluster;
    int64_t nodes, gpus_per_node;
    struct train_config train;
    struct mesh_config mesh;
    struct fsdp_config fsdp;
    struct ddp_config ddp;
    struct zero_config zero;
    struct simulate_config simulate;
    int mfu_convention;
    struct training_cost cost;
    const struct node *sweep; /* only by -s: that of the file is taken out before */
};

/* Notes or errors on what is valid but cannot be simulated yet. */
void experiment_check_built(struct experiment *experiment, bool is_note);
/* program_peak_allocated_bytes of all steps played. */
int64_t experiment_held_bytes(const struct experiment *experiment);

/* What frozen parameters are kept in. */
enum dtype lora_base_dtype(const struct train_config *train);
/* experiment_frozen.c: modules that are not trained: where that has a meaning, which there are. */
void frozen_check(struct experiment *experiment);
MUST_CHECK enum status frozen_check_modules(struct experiment *experiment);
/* experiment_norms.c: norms that are another kernel, or none of this model. */
void norms_check(struct experiment *experiment);
/* experiment_loss.c: what of the loss and the model's output can be played. */
void loss_check(struct experiment *experiment);
/* experiment_lora.c: adapters that cannot be played; targets that the model does not have. */
void lora_check(struct experiment *experiment);
MUST_CHECK enum status lora_check_targets(struct experiment *experiment);

/* experiment_play.c: one play, of the experiment's sample. */
MUST_CHECK enum status experiment_play_once(struct experiment *experiment, struct outcome *outcome);
/* outcome_warnings.c: fills outcome->warnings. */
void outcome_warn(struct experiment *experiment, struct outcome *outcome);
/* samples.c: what simulate.samples asks for. */
MUST_CHECK enum status samples_outcome(struct experiment *experiment, struct outcome *outcome);
/* experiment_play.c: whether times are drawn (simulate.jitter, or one of many samples). */
bool experiment_is_drawn(const struct experiment *experiment);

/* train_fields.c */
extern const struct field_table train_table;

/* experiment_tensor.c: tensor parallelism, and the groups of the mesh. */
extern const struct field_table tensor_parallel_table;
void tensor_parallel_check(struct experiment *experiment);
MUST_CHECK enum status tensor_parallel_check_cut(struct experiment *experiment,
                                                 const struct train_shape *shape);
struct tensor_parallel_shape tensor_parallel_shape_of(const struct experiment *experiment);
struct mesh_groups {
    struct group tensor, shard, post_forward, secondary, replicate, data;
};
MUST_CHECK enum status mesh_groups_find(struct experiment *experiment, struct mesh_groups *groups);

static inline struct arena *experiment_play_arena(struct experiment *experiment)
{
    return experiment->play_arena != NULL ? experiment->play_arena : &experiment->arena;
}

/* outcome_build.c: facts → outcome. */
void outcome_build(struct experiment *experiment, const struct facts *facts,
                   const struct machine_result *result, struct outcome *outcome);

/* loading.c: a data loader of which too little is said. */
extern const struct field_table loading_table;
void loading_check(struct experiment *experiment);

/* saving.c: checkpoints that cannot be saved. */
extern const struct field_table saving_table;
void saving_check(struct experiment *experiment);

/* training_cost.c: what money needs and lacks. */
extern const struct field_table training_cost_table;
void training_cost_check(struct experiment *experiment);

/* experiment_costs.c: microbatches of unlike cost. */
extern const struct field_table microbatch_cost_table;
void microbatch_costs_check(struct experiment *experiment);
/* The cluster as the layout is to see it: GPUs that do unlike work are unlike. */
struct cluster microbatch_costs_cluster(struct experiment *experiment);
/* After the layout is built. */
void microbatch_costs_build(struct experiment *experiment);

#endif
