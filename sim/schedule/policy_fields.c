/* schedule/policy_fields.c: YAML tables of the policies, and what of them can be played. */
#include <inttypes.h>

#include "schedule/policy.h"

const struct choice api_choices[] = {
    {"fsdp2", API_FSDP2, "fully_shard: per-parameter sharding"},
    {"fsdp1", API_FSDP1, "FullyShardedDataParallel: flat parameters"},
    {"ddp", API_DDP, "replicated, all-reduce in buckets"},
    {"zero1", API_ZERO1, "DeepSpeed: optimizer states sharded"},
    {"zero2", API_ZERO2, "DeepSpeed: and gradients"},
    {"zero3", API_ZERO3, "DeepSpeed: and parameters"},
    {0}};

static const struct choice wrap_choices[] = {
    {"block", WRAP_BLOCK, "every block a unit; embedding, final norm and head stay in the root"},
    {"torchtitan", WRAP_TORCHTITAN,
     "tok_embeddings; every block; [norm, output] kept after forward; empty root"},
    {0}};

static const struct choice reshard_choices[] = {
    {"true", 1, "free a unit after its forward, gather it again for backward"},
    {"false", 0, "keep units gathered from forward to backward"},
    {0}};

static const struct choice forward_prefetch_choices[] = {
    {"true", 1, "fsdp1: the next unit is gathered before this one computes"},
    {"false", 0, NULL},
    {0}};

static const struct choice sharding_choices[] = {
    {"full_shard", SHARDING_FULL, "free a unit after its forward, gather it again for backward"},
    {"shard_grad_op", SHARDING_GRAD_OP, "keep units gathered from forward to backward"},
    {0}};

static const struct choice backward_prefetch_choices[] = {
    {"pre", PREFETCH_PRE, "gather the next unit before the gradients of this one"},
    {"post", PREFETCH_POST, "behind them, before their reduce-scatter"},
    {"none", PREFETCH_NONE, "when its turn has come"},
    {0}};

static const struct choice dtype_choices[] = {
    {"fp32", DTYPE_FP32, NULL}, {"bf16", DTYPE_BF16, NULL}, {"fp16", DTYPE_FP16, NULL}, {0}};

static const struct choice state_dtype_choices[] = {{"fp32", DTYPE_FP32, NULL},
                                                    {"bf16", DTYPE_BF16, NULL},
                                                    {"fp64", DTYPE_FP64, "8-byte moments"},
                                                    {0}};

static const struct choice master_choices[] = {
    {"none", MASTER_NONE, NULL}, {"fp32", DTYPE_FP32 + 1, NULL}, {0}};

static const struct choice optimizer_choices[] = {
    {"adamw", OPTIMIZER_ADAMW, NULL},
    {"adam", OPTIMIZER_ADAMW, "the same work"},
    {"sgd", OPTIMIZER_SGD, "with momentum"},
    {"adamw_8bit", OPTIMIZER_ADAMW_8BIT, "moments in a byte each (bitsandbytes)"},
    {0}};
static const struct choice optimizer_impl_choices[] = {
    {"fused", OPTIMIZER_FUSED, "one kernel"},
    {"foreach", OPTIMIZER_FOREACH, "multi-tensor passes; PyTorch's default on GPUs"},
    {"forloop", OPTIMIZER_FORLOOP, "tensor by tensor"},
    {0}};

static const struct field fsdp_fields[] = {
    {.key = "api",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fsdp_config, api),
     .default_text = "fsdp2",
     .choices = api_choices,
     .help = "sharding policy"},
    {.key = "wrap",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fsdp_config, wrap),
     .default_text = "block",
     .choices = wrap_choices,
     .help = "which modules form a unit"},
    {.key = "reshard_after_forward",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct fsdp_config, reshard_after_forward),
     .default_text = "true",
     .min = 2,
     .max = 1 << 20,
     .choices = reshard_choices,
     .help = "free parameters after forward"},
    {.key = "forward_prefetch",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct fsdp_config, forward_prefetch),
     .default_text = "0",
     .min = 0,
     .max = 1024,
     .choices = forward_prefetch_choices,
     .help = "units gathered ahead explicitly (0: as the host runs ahead); fsdp1: true or false"},
    {.key = "sharding_strategy",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fsdp_config, sharding_strategy),
     .default_text = "full_shard",
     .choices = sharding_choices,
     .help = "fsdp1: what reshard_after_forward is to fsdp2"},
    {.key = "backward_prefetch",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fsdp_config, backward_prefetch),
     .default_text = "pre",
     .choices = backward_prefetch_choices,
     .help = "fsdp1: when the next unit of backward is gathered"},
    {.key = "limit_all_gathers",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fsdp_config, limit_all_gathers),
     .default_text = "true",
     .help = "fsdp1: the host waits for the unit two before to be freed"},
    {.key = "use_orig_params",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fsdp_config, use_orig_params),
     .default_text = "false",
     .help = "fsdp1: the model shows its original parameters, which costs the host time (always so "
             "with compile)"},
    {.key = "reduce_scatter_buffers",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct fsdp_config, reduce_scatter_buffers),
     .default_text = "1",
     .min = 1,
     .max = 1024,
     .help = "reduce-scatter input buffers alive at once (PyTorch's default: 1)"},
    {.key = "separate_reduce_scatter_communicator",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fsdp_config, separate_reduce_scatter_communicator),
     .default_text = "false",
     .help = "reduce-scatter on a communicator of its own, so that it may overlap all-gathers"},
    {0}};

const struct field_table fsdp_table = {.name = "fsdp",
                                       .help = "sharding policy",
                                       .fields = fsdp_fields,
                                       .struct_bytes = sizeof(struct fsdp_config)};

static const struct field precision_fields[] = {
    {.key = "param_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct precision_config, param_dtype),
     .default_text = "bf16",
     .choices = dtype_choices,
     .help = "gathered parameters and compute"},
    {.key = "reduce_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct precision_config, reduce_dtype),
     .default_text = "fp32",
     .choices = dtype_choices,
     .help = "gradient reduction"},
    {.key = "storage_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct precision_config, storage_dtype),
     .default_text = "fp32",
     .choices = dtype_choices,
     .help = "sharded parameters and gradients, as the optimizer sees them"},
    {.key = "master_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct precision_config, master_dtype),
     .default_text = "none",
     .choices = master_choices,
     .help = "a separate master copy, where the framework keeps one (ddp, zero1 to zero3)"},
    {0}};

const struct field_table precision_table = {.name = "precision",
                                            .help = "dtypes of parameters, reduction and storage",
                                            .fields = precision_fields,
                                            .struct_bytes = sizeof(struct precision_config)};

static const struct field optimizer_fields[] = {
    {.key = "name",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct optimizer_config, name),
     .default_text = "adamw",
     .choices = optimizer_choices,
     .help = "optimizer"},
    {.key = "impl",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct optimizer_config, impl),
     .default_text = "fused",
     .choices = optimizer_impl_choices,
     .help = "implementation"},
    {.key = "state_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct optimizer_config, state_dtype),
     .default_text = "fp32",
     .choices = state_dtype_choices,
     .help = "the two Adam moments"},
    {0}};

const struct field_table optimizer_table = {.name = "optimizer",
                                            .help = "the optimizer",
                                            .fields = optimizer_fields,
                                            .struct_bytes = sizeof(struct optimizer_config)};

const char *policy_api_name(int api)
{
    for (const struct choice *choice = api_choices; choice->word != NULL; choice++)
        if (choice->value == api)
            return choice->word;
    BUG("no such api %d", api);
}

static void complain(struct config *config, bool is_note, const char *path, const char *hint,
                     const char *text)
{
    if (is_note)
        diag_add(config->diag, DIAG_NOTE, config_place(config, path), hint, "%s", text);
    else
        config_error(config, path, hint, "%s", text);
}

static void check_mesh_built(struct config *config, const struct mesh_config *mesh, bool is_note)
{
    const struct {
        const char *path;
        int64_t size;
    } rows[] = {{"mesh.pp", mesh->pp},
                {"mesh.dp_replicate", mesh->dp_replicate},
                {"mesh.cp", mesh->cp},
                {"mesh.ep", mesh->ep},
                {"mesh.tp", mesh->tp}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].size == 1)
            continue;
        complain(config, is_note, rows[i].path, "only 'dp_shard' may differ from 1 so far",
                 arena_printf(config->arena, "'%s: %" PRId64 "' cannot be simulated yet",
                              rows[i].path + sizeof("mesh.") - 1, rows[i].size));
    }
}

/* Keys that belong to one policy alone, when another one is chosen. */
static void check_keys(struct config *config, const struct fsdp_config *fsdp)
{
    static const struct {
        const char *path;
        int api;
        const char *hint;
    } rows[] = {
        {"fsdp.backward_prefetch", API_FSDP1,
         "it belongs to 'api: fsdp1'; fsdp2 always prefetches the unit before"},
        {"fsdp.sharding_strategy", API_FSDP1,
         "it belongs to 'api: fsdp1'; with fsdp2 say 'reshard_after_forward'"},
        {"fsdp.limit_all_gathers", API_FSDP1,
         "it belongs to 'api: fsdp1'; fsdp2 never blocks the host"},
        {"fsdp.use_orig_params", API_FSDP1,
         "it belongs to 'api: fsdp1'; fsdp2 has no flat parameters"},
        {"fsdp.reshard_after_forward", API_FSDP2,
         "it belongs to 'api: fsdp2'; with fsdp1 say 'sharding_strategy'"},
        {"fsdp.reduce_scatter_buffers", API_FSDP2,
         "it belongs to 'api: fsdp2'; fsdp1 waits for no reduce-scatter before the end"},
        {"fsdp.separate_reduce_scatter_communicator", API_FSDP2,
         "it belongs to 'api: fsdp2'; fsdp1 has one communicator"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const bool is_foreign =
            rows[i].api == API_FSDP1 ? fsdp->api != API_FSDP1 : fsdp->api == API_FSDP1;
        if (is_foreign && config_is_set(config, rows[i].path))
            config_error(config, rows[i].path, rows[i].hint, "'%s' means nothing for 'api: %s'",
                         rows[i].path + sizeof("fsdp.") - 1, policy_api_name(fsdp->api));
    }
    if (fsdp->api == API_FSDP1 && fsdp->wrap == WRAP_TORCHTITAN)
        config_error(config, "fsdp.wrap", "'block': what is no block belongs to the root",
                     "'wrap: torchtitan' is a recipe of 'api: fsdp2'");
    if (fsdp->api == API_FSDP1 && fsdp->forward_prefetch > 1)
        config_error(config, "fsdp.forward_prefetch", "true or false",
                     "fsdp1 gathers one unit ahead at most, not %" PRId64, fsdp->forward_prefetch);
}

void policy_check_built(struct config *config, const struct fsdp_config *fsdp,
                        const struct mesh_config *mesh, const struct precision_config *precision,
                        bool is_note)
{
    check_keys(config, fsdp);
    if (fsdp->api != API_FSDP2 && fsdp->api != API_FSDP1)
        complain(config, is_note, "fsdp.api",
                 "simulated so far: fsdp2, fsdp1; 'memory' knows them all",
                 arena_printf(config->arena, "'api: %s' cannot be simulated yet",
                              policy_api_name(fsdp->api)));
    if (fsdp->reshard_after_forward > 1)
        complain(config, is_note, "fsdp.reshard_after_forward", "true or false so far",
                 arena_printf(config->arena,
                              "'reshard_after_forward: %" PRId64 "' cannot be simulated yet",
                              fsdp->reshard_after_forward));
    if (fsdp->forward_prefetch > 0 && fsdp->api != API_FSDP1)
        complain(config, is_note, "fsdp.forward_prefetch",
                 "0 so far: prefetch as far as the host runs ahead",
                 arena_printf(config->arena,
                              "'forward_prefetch: %" PRId64 "' cannot be simulated yet",
                              fsdp->forward_prefetch));
    if (precision->master_dtype != MASTER_NONE &&
        (fsdp->api == API_FSDP2 || fsdp->api == API_FSDP1))
        complain(config, false, "train.precision.master_dtype",
                 "'storage_dtype' is what the optimizer sees",
                 arena_printf(config->arena, "'api: %s' keeps no separate master copy",
                              policy_api_name(fsdp->api)));
    if (precision->param_dtype == DTYPE_FP16 || precision->reduce_dtype == DTYPE_FP16)
        complain(config, is_note,
                 precision->param_dtype == DTYPE_FP16 ? "train.precision.param_dtype"
                                                      : "train.precision.reduce_dtype",
                 "bf16 or fp32 so far (fp16 needs loss scaling and two more passes)",
                 "'fp16' cannot be simulated yet");
    check_mesh_built(config, mesh, is_note);
}

struct program *policy_build(struct arena *arena, const struct model *model,
                             const struct policy_settings *settings)
{
    switch ((enum policy_api)settings->fsdp.api) {
    case API_FSDP2:
        return fsdp2_build(arena, model, settings);
    case API_FSDP1:
        return fsdp1_build(arena, model, settings);
    case API_DDP:
    case API_ZERO1:
    case API_ZERO2:
    case API_ZERO3:
        break;
    }
    BUG("no program of api %d", settings->fsdp.api);
}
