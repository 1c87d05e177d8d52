/*
 * run/experiment.h: the root of a configuration, resolved, and how it is played.
 *
 *   experiment_load (YAML + overrides → checked config → model, layout, program)
 *   experiment_play (program → machine → observers → outcome)
 */
#ifndef FSDPSIM_RUN_EXPERIMENT_H
#define FSDPSIM_RUN_EXPERIMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cluster/layout.h"
#include "config/config.h"
#include "machine/machine.h"
#include "model/model.h"
#include "run/outcome.h"
#include "schedule/policy.h"

struct train_config {
    int64_t seq_len, micro_batch, grad_accum, global_batch;
    struct precision precision;
    struct optimizer_config optimizer;
    int checkpointing;         /* enum activation_checkpointing */
    int attention, loss_chunks_unused;
    bool loss_upcast, compile;
    double max_grad_norm;      /* 0: no clipping */
};

struct mesh_config { int64_t dp_replicate, dp_shard, tp, pp, cp, ep; };

struct simulate_config {
    int64_t warmup_steps, steps, seed;
    bool is_folded;
    int network;               /* enum network_mode */
    struct ideal ideal;
};

struct experiment {
    struct arena arena;
    struct config config;
    struct diag *diag;
    const char *name;
    struct model_config model_config;
    struct cluster cluster;
    int64_t nodes, gpus_per_node, n_gpus;
    struct train_config train;
    struct mesh_config mesh;
    int64_t dp_shard;          /* resolved */
    struct policy_settings policy;
    struct simulate_config simulate;
    struct model *model;
    struct layout layout;
    struct program *program;
};

#endif
