/*
 * run/experiment.h: the root of a configuration: checked, resolved, built, played.
 *
 *   experiment_load   YAML + overrides → checked config → model, cluster, mesh (no program yet)
 *   experiment_build  → layout, program        (refuses what cannot be simulated yet)
 *   experiment_play   program → machine → observers → outcome
 *
 * An experiment owns one arena; everything it derives lives there, the outcome too.
 */
#ifndef FSDPSIM_RUN_EXPERIMENT_H
#define FSDPSIM_RUN_EXPERIMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cluster/cluster.h"
#include "cluster/layout.h"
#include "config/config.h"
#include "machine/machine.h"
#include "model/model.h"
#include "observe/journal.h"
#include "run/loading.h"
#include "run/outcome.h"
#include "run/saving.h"
#include "run/training_cost.h"
#include "schedule/policy.h"

struct shelved; /* shelf.h */

enum mfu_convention { MFU_TORCHTITAN, MFU_PALM, MFU_LLM_FOUNDRY, MFU_MEGATRON };

struct microbatch_cost { /* of the network's kernels in a microbatch: longer or shorter sequences */
    int64_t host, gpu;   /* -1: all */
    int64_t microbatch;  /* of a step, from 0; -1: all */
    double cost;         /* multiple of its time */
};

struct norms_config {
    bool fused;       /* PyTorch's own RMSNorm */
    bool cooperative; /* TransformerEngine's norms over several blocks a row */
    int64_t sm_margin;
};

struct loss_config {
    int impl; /* enum loss_impl */
    int64_t chunks;
    int upcast; /* enum loss_upcast */
    bool shifted;
    int keeps_logits; /* enum kept_output */
    int64_t metrics;
};

struct checkpointing_config {
    int policy; /* enum activation_checkpointing */
    int64_t every;
    bool early_stop, reentrant, inside_unit, save_attention;
};

struct lora_config { /* PEFT's LoraConfig and BitsAndBytesConfig */
    int64_t rank;
    double alpha;
    struct config_list targets; /* const char * */
    double dropout;
    int adapter_dtype; /* 0: param_dtype, 1: fp32 */
    bool fused_scale;
    bool output_copy;
    int quantization; /* enum quantization */
    bool double_quant, holds_inputs;
    int base_dtype; /* 0: param_dtype; else enum dtype + 1 */
};

struct tensor_parallel_config {
    int style; /* enum tensor_parallel_style */
    bool sequence_parallel, loss_parallel, async, gather_heads;
};

struct allocator_config { /* as PYTORCH_CUDA_ALLOC_CONF names them */
    bool expandable_segments;
    int64_t max_split_size_mb; /* 0: none */
    int roundup_power2_divisions;
};

struct train_config {
    int64_t seq_len, decoder_seq_len, micro_batch, grad_accum, global_batch;
    struct precision_config precision;
    struct optimizer_config optimizer;
    struct checkpointing_config checkpointing;
    int attention; /* enum attention_impl */
    int float8;    /* enum float8_recipe */
    int rotary;    /* enum rotary_form */
    int experts;   /* enum expert_impl */
    struct loss_config loss;
    struct norms_config norms;
    struct config_list frozen; /* const char *: modules that are not trained */
    struct allocator_config allocator;
    struct config_list microbatch_costs; /* struct microbatch_cost */
    struct tensor_parallel_config tensor_parallel;
    struct loading_config loading; /* nothing to do: batches are there */
    struct saving_config saving;   /* interval 0: none */
    struct lora_config lora;       /* rank 0: all parameters are trained */
    int64_t host_syncs;            /* in the forward of each block */
    bool checks_packing;           /* in each fused attention */
    int64_t hardware_queues;       /* CUDA_DEVICE_MAX_CONNECTIONS */
    double max_grad_norm;          /* 0: no clipping */
    bool compile, key_value_cache;
    int fused_kernels; /* enum fused_kernels */
};

enum { EXPERIMENT_MAX_SAMPLES = 100000 };

struct straggler_config {
    double probability, slowdown;
};

struct jitter_config {
    double kernels, gpus, network; /* sigma of the logarithm */
    struct straggler_config stragglers;
};

struct simulate_config {
    int64_t warmup_steps, steps, seed;
    int64_t samples; /* 0: one run */
    struct jitter_config jitter;
    int fold; /* 1: auto, 0: off */
    int network;
    struct config_list ideal_words;
};

struct experiment {
    struct arena arena;
    struct config config;
    struct diag *diag;
    const char *name; /* the file's stem */
    const struct node
        *sweep; /* what the file says under `sweep`, for study/sweep_plan.h; or NULL */
    struct model_config model_config;
    struct cluster cluster;
    int64_t nodes, gpus_per_node, n_gpus;
    struct train_config train;
    struct mesh_config mesh;
    struct fsdp_config fsdp;
    struct ddp_config ddp;
    struct zero_config zero;
    struct simulate_config simulate;
    int64_t reported_steps; /* of the play: simulate.steps, or more where memory is limited */
    struct training_cost cost;
    struct ideal ideal;
    int mfu_convention;
    bool has_shared_cluster; /* it belongs to the cache */
    uint64_t tie_seed;       /* tests only: permutes ties */
    struct shelved *shelved; /* what the model and the program belong to; NULL: this */
    struct model *model;
    struct layout layout;
    struct program *program;  /* after experiment_build */
    double *microbatch_costs; /* by rank class, then microbatch; NULL: 1 */
    int64_t sample;           /* which numbers are drawn, from 0 */
    struct arena *play_arena; /* of what is played; NULL: its own */
    bool is_sampled;          /* one of many: what is not known of calibrations is drawn, too */
    bool keeps_journal;       /* asked for before experiment_play */
    bool is_brief;            /* the outcome need not say where values come from (origins) */
    int32_t headline_class;   /* after it: the one whose times the outcome has */
    struct journal *journal;  /* after it, where it was asked for; in the arena */
};

/* The root table, for `schema config`. */
extern const struct field_table experiment_table;

/*
 * `path`: a file, "-", or the name of a shipped config. All mistakes are in `diag`. Whatever the
 * status, release it afterwards.
 */
MUST_CHECK enum status experiment_load(struct experiment *experiment, const char *path,
                                       const char *const *overrides, int32_t override_count,
                                       struct diag *diag);
/* The same, with files that were read before: for many runs in a row. */
MUST_CHECK enum status experiment_load_cached(struct experiment *experiment, const char *path,
                                              const char *const *overrides, int32_t override_count,
                                              struct config_cache *cache, struct diag *diag);
/* Whether the words and values of overrides of `path` can stand, before any is judged beside
   others: what they say of a configuration that is not complete yet. */
MUST_CHECK enum status experiment_check_overrides(struct arena *arena, const char *path,
                                                  const char *const *overrides,
                                                  int32_t override_count, struct diag *diag);
void experiment_release(struct experiment *experiment);

/* Hash of the resolved content, the seed and the version of the physics: of what decides the
   outcome. */
struct hash128 experiment_key(const struct experiment *experiment);

/* Notes (not errors) on what is valid but cannot be simulated yet; for `check`. */
void experiment_note_unbuilt(struct experiment *experiment);

/* The model alone (experiment_build does it too). */
MUST_CHECK enum status experiment_build_model(struct experiment *experiment);

MUST_CHECK enum status experiment_build(struct experiment *experiment);

/* The outcome lives in the experiment's arena. With simulate.samples it is that of the sample in
   the middle, with the intervals of all (samples.h). */
MUST_CHECK enum status experiment_play(struct experiment *experiment, struct outcome *outcome);

/* Model FLOP per token, forward and backward, under a convention; NaN where it is not defined. */
double experiment_flop_per_token(const struct experiment *experiment, int convention);

#endif
