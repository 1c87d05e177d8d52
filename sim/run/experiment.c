/* run/experiment.c: YAML → checked, resolved, built experiment; and playing it. */
#include <inttypes.h>
#include <math.h>

#include "base/strbuf.h"
#include "run/experiment_private.h"
#include "run/shelf.h"

static void resolve_ideal(struct experiment *experiment)
{
    const char *const *words = experiment->simulate.ideal_words.items;
    for (int64_t i = 0; i < experiment->simulate.ideal_words.count; i++) {
        const struct choice *choice = ideal_choices;
        while (choice->word != NULL && !text_equal(choice->word, words[i]))
            choice++;
        switch (choice->word == NULL ? -1 : choice->value) {
        case IDEAL_HOST:
            experiment->ideal.host = true;
            break;
        case IDEAL_COPIES:
            experiment->ideal.copies = true;
            break;
        case IDEAL_CONTENTION:
            experiment->ideal.contention = true;
            break;
        case IDEAL_OPTIMIZER:
            experiment->ideal.optimizer = true;
            break;
        case IDEAL_LATENCY:
            experiment->ideal.latency = true;
            break;
        default:
            config_error(&experiment->config, "simulate.ideal",
                         "accepted: host, copies, contention, optimizer, latency",
                         "unknown word '%s' in 'ideal'", words[i]);
        }
    }
}

/* Whether two overrides set the same thing of the same host or GPU. */
static bool says_again(const struct override *a, const struct override *b)
{
    return a->host == b->host && a->gpu == b->gpu &&
           ((a->clock_frac < 1 && b->clock_frac < 1) || (a->nic_frac < 1 && b->nic_frac < 1));
}

/* Overrides of hosts and GPUs that this run does not have, or that say a thing twice. */
static void check_overrides(struct experiment *experiment)
{
    const struct cluster *cluster = &experiment->cluster;
    for (int64_t i = 0; i < cluster->override_count; i++) {
        const struct override *one = &cluster->overrides[i];
        if (one->host >= experiment->nodes)
            diag_add(experiment->diag, DIAG_ERROR, one->place,
                     arena_printf(&experiment->arena, "hosts count from 0 to %" PRId64,
                                  experiment->nodes - 1),
                     "override of host %" PRId64 ", which this run does not have", one->host);
        if (one->gpu >= experiment->gpus_per_node)
            diag_add(experiment->diag, DIAG_ERROR, one->place,
                     arena_printf(&experiment->arena, "GPUs of a host count from 0 to %" PRId64,
                                  experiment->gpus_per_node - 1),
                     "override of GPU %" PRId64 ", which this run does not use", one->gpu);
        for (int64_t k = 0; k < i; k++)
            if (says_again(one, &cluster->overrides[k]))
                diag_add(experiment->diag, DIAG_ERROR, one->place, "say it in one entry",
                         "a second override of the same %s", one->gpu < 0 ? "host" : "GPU");
    }
}

static void resolve_size(struct experiment *experiment, const struct root_config *root)
{
    struct config *config = &experiment->config;
    const struct cluster *cluster = &experiment->cluster;
    experiment->nodes = root->nodes != 0 ? root->nodes : cluster->default_hosts;
    experiment->gpus_per_node =
        root->gpus_per_node != 0 ? root->gpus_per_node : cluster->gpus_per_host;
    if (experiment->nodes > cluster->max_hosts)
        config_error(
            config, "nodes",
            arena_printf(&experiment->arena, "accepted: 1 to %" PRId64, cluster->max_hosts),
            "'nodes: %" PRId64 "' is more than cluster '%s' has", experiment->nodes, cluster->name);
    if (experiment->gpus_per_node > cluster->gpus_per_host)
        config_error(config, "gpus_per_node",
                     arena_printf(&experiment->arena, "accepted: all, or 1 to %" PRId64,
                                  cluster->gpus_per_host),
                     "'gpus_per_node: %" PRId64 "' is more than a host of cluster '%s' has",
                     experiment->gpus_per_node, cluster->name);
    experiment->n_gpus = experiment->nodes * experiment->gpus_per_node;
    check_overrides(experiment);
}

static void resolve_batch(struct experiment *experiment)
{
    struct config *config = &experiment->config;
    struct train_config *train = &experiment->train;
    const int64_t replicas = experiment->mesh.dp_replicate * experiment->mesh.dp_shard;
    if (train->seq_len == 0) {
        if (experiment->model_config.family == FAMILY_ABSTRACT)
            train->seq_len = 1;
        else
            config_error(config, "train", "tokens a sequence, for example 'seq_len: 8192'",
                         "missing key 'seq_len' in 'train'");
    }
    if (train->decoder_seq_len != 0 && experiment->model_config.type != TYPE_T5)
        config_error(config, "train.decoder_seq_len", "it belongs to encoder-decoder models (T5)",
                     "'decoder_seq_len' means nothing for model '%s'",
                     experiment->model_config.name);
    if (train->global_batch == 0) {
        if (train->grad_accum == 0)
            train->grad_accum = 1;
        train->global_batch = train->micro_batch * train->grad_accum * replicas;
        return;
    }
    const int64_t micro = train->micro_batch * replicas;
    const int64_t accum = train->global_batch / micro;
    if (accum < 1 || accum * micro != train->global_batch)
        config_error(config, "train.global_batch",
                     arena_printf(&experiment->arena,
                                  "a multiple of micro_batch %" PRId64
                                  " x data-parallel GPUs %" PRId64 " = %" PRId64,
                                  train->micro_batch, replicas, micro),
                     "'global_batch: %" PRId64 "' cannot be split evenly", train->global_batch);
    else if (train->grad_accum != 0 && train->grad_accum != accum)
        config_error(config, "train.grad_accum",
                     arena_printf(&experiment->arena,
                                  "give one of the two; global_batch asks for %" PRId64, accum),
                     "'grad_accum: %" PRId64 "' contradicts 'global_batch: %" PRId64 "'",
                     train->grad_accum, train->global_batch);
    else if (accum > 4096)
        config_error(config, "train.global_batch", "at most 4096 microbatches a step",
                     "'global_batch: %" PRId64 "' needs %" PRId64 " microbatches",
                     train->global_batch, accum);
    else
        train->grad_accum = accum;
}

/* Values in force that no file states. */
static void add_derived(struct experiment *experiment, const struct root_config *root)
{
    struct arena *arena = &experiment->arena;
    const struct {
        bool is_derived;
        const char *path, *origin;
        int64_t value;
    } rows[] = {
        {root->nodes == 0, "nodes", "cluster's default", experiment->nodes},
        {root->gpus_per_node == 0, "gpus_per_node", "cluster's host", experiment->gpus_per_node},
        {root->mesh.dp_shard == -1, "mesh.dp_shard", "what the mesh leaves",
         experiment->mesh.dp_shard},
        {root->train.seq_len == 0, "train.seq_len", "abstract model", experiment->train.seq_len},
        {root->train.grad_accum == 0, "train.grad_accum", "global_batch, or 1",
         experiment->train.grad_accum},
        {root->train.global_batch == 0, "train.global_batch", "micro_batch x grad_accum x GPUs",
         experiment->train.global_batch},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].is_derived)
            config_add_derived(&experiment->config, rows[i].path,
                               arena_printf(arena, "%" PRId64, rows[i].value), rows[i].origin);
}

static void release_shared(void *cluster)
{
    cluster_release(cluster);
}

/* A cluster that many configurations have in common is built once. */
static enum status build_cluster(struct experiment *experiment, const struct cluster_config *bound)
{
    struct config *config = &experiment->config;
    struct config_derived *derived = config_derived(config, "cluster");
    struct cluster *cluster = &experiment->cluster;
    if (derived != NULL && derived->value != NULL) {
        *cluster = *(const struct cluster *)derived->value;
        experiment->has_shared_cluster = true;
        return STATUS_OK;
    }
    const int32_t messages = experiment->diag->count;
    struct arena *arena = derived != NULL ? &config->cache->memo_arena : &experiment->arena;
    config->arena = arena;
    const enum status status = cluster_build(arena, config, "cluster", bound, cluster);
    config->arena = &experiment->arena;
    if (derived == NULL || status != STATUS_OK || experiment->diag->count != messages)
        return status;
    struct cluster *shared = ARENA_NEW(arena, struct cluster);
    *shared = *cluster;
    *derived = (struct config_derived){.value = shared, .release = release_shared};
    experiment->has_shared_cluster = true;
    return STATUS_OK;
}

static enum status resolve(struct experiment *experiment, const struct root_config *root)
{
    struct config *config = &experiment->config;
    experiment->model_config = root->model;
    experiment->train = root->train;
    experiment->mesh = root->mesh;
    experiment->fsdp = root->fsdp;
    experiment->ddp = root->ddp;
    experiment->zero = root->zero;
    precision_resolve(config, experiment->fsdp.api, &experiment->train.precision);
    experiment->simulate = root->simulate;
    experiment->cost = root->cost;
    experiment->mfu_convention = root->mfu_convention;
    if (experiment->model_config.name == NULL)
        experiment->model_config.name = "inline";
    enum status status = build_cluster(experiment, &root->cluster);
    if (status != STATUS_OK)
        return status;
    resolve_ideal(experiment);
    resolve_size(experiment, root);
    if (experiment->diag->error_count > 0)
        return STATUS_INPUT;
    mesh_follow_strategy(config, &experiment->fsdp, &experiment->mesh, experiment->nodes,
                         experiment->gpus_per_node);
    status = mesh_resolve(config, "mesh", &experiment->mesh, experiment->n_gpus);
    if (status != STATUS_OK)
        return status;
    /* A group as large as the whole is plain resharding. */
    if (experiment->fsdp.reshard_after_forward == experiment->mesh.dp_shard &&
        experiment->mesh.dp_shard > 1)
        experiment->fsdp.reshard_after_forward = 1;
    resolve_batch(experiment);
    microbatch_costs_check(experiment);
    training_cost_check(experiment);
    saving_check(experiment);
    loading_check(experiment);
    add_derived(experiment, root);
    return experiment->diag->error_count > 0 ? STATUS_INPUT : STATUS_OK;
}

static enum status bind_overridden(struct config *config, const char *const *overrides,
                                   int32_t override_count, struct root_config *root)
{
    enum status override_status = STATUS_OK;
    for (int32_t i = 0; i < override_count; i++) {
        const enum status one = config_override(config, overrides[i]);
        override_status = one != STATUS_OK ? one : override_status;
    }
    const enum status status = config_bind(config, &experiment_table, root);
    if (root->sweep != NULL) {
        config_error(config, "sweep", "'fsdpsim sweep FILE -s key=v1,v2'",
                     "'sweep' is what a file says: an override cannot set it");
        return STATUS_INPUT;
    }
    return status != STATUS_OK ? status : override_status;
}

enum status experiment_load(struct experiment *experiment, const char *path,
                            const char *const *overrides, int32_t override_count, struct diag *diag)
{
    return experiment_load_cached(experiment, path, overrides, override_count, NULL, diag);
}

enum status experiment_load_cached(struct experiment *experiment, const char *path,
                                   const char *const *overrides, int32_t override_count,
                                   struct config_cache *cache, struct diag *diag)
{
    *experiment = (struct experiment){.diag = diag};
    arena_init(&experiment->arena);
    if (cache != NULL) {
        config_cache_next(cache);
        shelf_trim(cache);
        experiment->arena.pool = &cache->pool;
    }
    config_init(&experiment->config, &experiment->arena, diag,
                cache != NULL ? config_cache_folders(cache)
                              : data_folders_find(&experiment->arena));
    experiment->config.cache = cache;
    enum status status = config_load(&experiment->config, path);
    experiment->name =
        experiment->config.root_name != NULL ? experiment->config.root_name : "stdin";
    if (status != STATUS_OK)
        return status;
    experiment->sweep = config_take(&experiment->config, "sweep");
    struct root_config *root = ARENA_NEW(&experiment->arena, struct root_config);
    status = bind_overridden(&experiment->config, overrides, override_count, root);
    return status == STATUS_OK ? resolve(experiment, root) : status;
}

enum status experiment_check_overrides(struct arena *arena, const char *path,
                                       const char *const *overrides, int32_t override_count,
                                       struct diag *diag)
{
    struct config config;
    struct root_config *root = ARENA_NEW(arena, struct root_config);
    config_init(&config, arena, diag, data_folders_find(arena));
    const enum status status = config_load(&config, path);
    config_take(&config, "sweep");
    return status == STATUS_OK ? bind_overridden(&config, overrides, override_count, root) : status;
}

struct hash128 experiment_key(const struct experiment *experiment)
{
    struct hash128 hash = config_hash(&experiment->config);
    cluster_hash_data(&experiment->cluster, &hash);
    hash128_u64(&hash, OUTCOME_MODEL_VERSION);
    return hash128_done(hash);
}

void experiment_release(struct experiment *experiment)
{
    if (!experiment->has_shared_cluster)
        cluster_release(&experiment->cluster);
    arena_release(&experiment->arena);
}

/* Peaks of the GPU for dtypes that can be simulated as compute dtype. */
static const char *known_peaks(struct experiment *experiment, const struct gpu *gpu)
{
    const char *known = "";
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (gpu->peak_flop_per_s[i] > 0 && (i == DTYPE_FP32 || i == DTYPE_BF16 || i == DTYPE_FP16))
            known = arena_printf(&experiment->arena, "%s%s%s", known, known[0] != '\0' ? ", " : "",
                                 dtype_name((enum dtype)i));
    return known;
}

/* A GPU without a peak for a dtype cannot time a GEMM in it. */
static void check_compute_dtype(struct experiment *experiment)
{
    const struct cluster *cluster = &experiment->cluster;
    const enum dtype dtype = (enum dtype)experiment->train.precision.param_dtype;
    if (experiment->model_config.family == FAMILY_ABSTRACT)
        return;
    for (int32_t i = -1; i < cluster->other_gpu_count; i++) {
        const struct gpu *gpu = i < 0 ? &cluster->gpu : &cluster->other_gpus[i];
        if (!(gpu->peak_flop_per_s[dtype] > 0))
            config_error(&experiment->config, "train.precision.param_dtype",
                         arena_printf(&experiment->arena,
                                      "'train.precision.param_dtype' on this GPU: %s",
                                      known_peaks(experiment, gpu)),
                         "GPU '%s' has no peak for '%s'", gpu->name, dtype_name(dtype));
        if (experiment->train.float8 != FLOAT8_NONE && !(gpu->peak_flop_per_s[DTYPE_FP8] > 0))
            config_error(&experiment->config, "train.float8", "'float8: none' on this GPU",
                         "GPU '%s' has no peak for 'fp8'", gpu->name);
    }
}

/* torchao's config.py: float8 all-gather only with one scale a tensor. */
static void check_float8_gather(struct experiment *experiment)
{
    if (!experiment->fsdp.float8_all_gather)
        return;
    if (experiment->train.float8 != FLOAT8_TENSORWISE)
        config_error(&experiment->config, "fsdp.float8_all_gather", "'train.float8: tensorwise'",
                     "only weights with one scale a tensor are gathered in float8");
    if (experiment->model_config.family == FAMILY_ABSTRACT)
        config_error(&experiment->config, "fsdp.float8_all_gather", "a network",
                     "an abstract model has no linear layers");
}

/* Compiled blocks are traced through their checkpoints, which reentrant ones do not allow. */
static void check_reentrant(struct experiment *experiment)
{
    static const char path[] = "train.activation_checkpointing.reentrant";
    const struct train_config *train = &experiment->train;
    struct config *config = &experiment->config;
    if (!train->checkpointing.reentrant) {
        if (train->checkpointing.inside_unit)
            config_error(config, "train.activation_checkpointing.inside_unit", "'reentrant: true'",
                         "'inside_unit' means nothing for a checkpoint that is not reentrant");
        return;
    }
    if (train->checkpointing.policy != CHECKPOINT_FULL)
        config_error(config, path, "it goes with 'policy: full'",
                     "'reentrant' means nothing for this checkpointing policy");
    if (train->compile)
        config_error(config, path, "'reentrant: false', or 'compile: false'",
                     "a compiled block cannot have a reentrant checkpoint");
    if (train->checkpointing.early_stop &&
        config_is_set(config, "train.activation_checkpointing.early_stop"))
        config_error(config, "train.activation_checkpointing.early_stop", "'early_stop: false'",
                     "a reentrant checkpoint never stops early");
}

/* What offload needs to know of the host. */
static void check_host(struct experiment *experiment)
{
    const struct cluster *cluster = &experiment->cluster;
    const struct policy_settings settings = {.fsdp = experiment->fsdp, .zero = experiment->zero};
    const bool has_optimizer = policy_offloads_optimizer(&settings);
    const char *missing = host_compute_missing(&cluster->compute);
    if (has_optimizer && missing != NULL)
        config_error(&experiment->config, "cluster", "topologies/cpus/ has examples",
                     "the optimizer is on the host, and cluster '%s' lacks 'host.%s'",
                     cluster->name, missing);
    if ((has_optimizer || policy_offloads_params(&settings)) && !cluster->tree.has_pcie &&
        cluster->copy_link.bytes_per_s <= 0)
        config_error(&experiment->config, "cluster", "'copy_link: pcie4', for example, or 'pcie'",
                     "states are on the host, and cluster '%s' lacks 'host.copy_link'",
                     cluster->name);
}

void experiment_check_built(struct experiment *experiment, bool is_note)
{
    struct config *config = &experiment->config;
    check_compute_dtype(experiment);
    check_float8_gather(experiment);
    if (experiment->train.checkpointing.every > 1 &&
        experiment->train.checkpointing.policy != CHECKPOINT_FULL)
        config_error(config, "train.activation_checkpointing.every", "it goes with 'policy: full'",
                     "'every' means nothing for this checkpointing policy");
    if (experiment->train.experts == EXPERTS_LOOP && experiment->train.compile)
        config_error(
            config, "train.experts", "'experts: grouped', or 'compile: false'",
            "'experts: loop' cannot be compiled: the number of an expert's tokens is data");
    if (experiment->train.checks_packing && experiment->train.attention == ATTENTION_EAGER)
        config_error(config, "train.packed_sequence_check", "fa2, for example",
                     "'packed_sequence_check' means nothing for 'attention: eager'");
    if (experiment->train.checkpointing.policy == CHECKPOINT_NONE &&
        config_is_set(config, "train.activation_checkpointing.early_stop"))
        config_error(config, "train.activation_checkpointing.early_stop",
                     "it goes with a policy that recomputes: full, selective, per_child",
                     "'early_stop' means nothing without activation checkpointing");
    if (!experiment->train.checkpointing.save_attention &&
        experiment->train.checkpointing.policy != CHECKPOINT_SELECTIVE_OP)
        config_error(config, "train.activation_checkpointing.save_attention",
                     "it goes with 'policy: selective'",
                     "only selective checkpointing keeps single operations");
    check_reentrant(experiment);
    norms_check(experiment);
    loss_check(experiment);
    tensor_parallel_check(experiment);
    lora_check(experiment);
    frozen_check(experiment);
    const struct policy_config policy = {.fsdp = &experiment->fsdp,
                                         .ddp = &experiment->ddp,
                                         .zero = &experiment->zero,
                                         .mesh = &experiment->mesh,
                                         .precision = &experiment->train.precision,
                                         .optimizer = &experiment->train.optimizer,
                                         .grad_accum = experiment->train.grad_accum};
    policy_check_built(config, &policy, is_note);
    check_host(experiment);
}

void experiment_note_unbuilt(struct experiment *experiment)
{
    experiment_check_built(experiment, true);
    /* Which layers there are the model knows; what is wrong is in `diag`. */
    if ((experiment->train.lora.rank > 0 || experiment->train.frozen.count > 0) &&
        experiment->diag->error_count == 0) {
        const enum status status = experiment_build_model(experiment);
        BUG_IF(status != STATUS_OK && experiment->diag->error_count == 0);
    }
}

double experiment_flop_per_token(const struct experiment *experiment, int convention)
{
    const struct model *model = experiment->model;
    if (convention == MFU_TORCHTITAN || model->family == FAMILY_ABSTRACT)
        return model->flop_per_token;
    /* What a token passes: of experts, the chosen ones. */
    const double parameters = (double)model->active_parameters;
    const double layers = (double)model->layers;
    const double width = (double)(model->heads * model->head_dim);
    const double sequence = (double)model->seq_len;
    switch ((enum mfu_convention)convention) {
    case MFU_TORCHTITAN:
    case MFU_PALM:
    case MFU_LLM_FOUNDRY: /* 3 (2 N s + 4 L h s²) / s: the same figure */
        return 6 * parameters + 12 * layers * width * sequence;
    case MFU_MEGATRON: {
        const double hidden = (double)experiment->model_config.decoder.hidden_size;
        const double vocab = (double)experiment->model_config.decoder.vocab_size;
        return 72 * layers * hidden * hidden *
               (1 + sequence / (6 * hidden) + vocab / (12 * hidden * layers));
    }
    }
    BUG("no such convention %d", convention);
}
