/* run/experiment_lora.c: what of `train.lora` has a meaning for this model and this policy. */
#include <string.h>

#include "run/experiment_private.h"

static void refuse_with(struct experiment *experiment, bool is_set, const char *path,
                        const char *hint, const char *text)
{
    if (is_set)
        config_error(&experiment->config, path, hint, "%s", text);
}

enum dtype lora_base_dtype(const struct train_config *train)
{
    const int given = train->lora.base_dtype;
    if (train->lora.rank == 0)
        return (enum dtype)train->precision.storage_dtype;
    return (enum dtype)(given != 0 ? given - 1 : train->precision.param_dtype);
}

void lora_check(struct experiment *experiment)
{
    const struct train_config *train = &experiment->train;
    const int api = experiment->fsdp.api;
    const bool is_packed = train->lora.quantization != QUANTIZE_NONE;
    if (train->lora.rank == 0)
        return;
    refuse_with(experiment, api != API_FSDP2 && api != API_FSDP1 && api != API_DDP, "train.lora",
                "'api: fsdp2', 'api: fsdp1' or 'api: ddp' so far",
                arena_printf(&experiment->arena, "'lora' cannot be simulated yet with 'api: %s'",
                             policy_api_name(api)));
    refuse_with(experiment, experiment->model_config.family == FAMILY_ABSTRACT, "train.lora",
                "it needs a transformer", "an abstract model has no linear layers to adapt");
    refuse_with(experiment, train->lora.targets.count == 0, "train.lora.target_modules",
                "all-linear, or layers: [q_proj, v_proj]", "no layer gets an adapter");
    refuse_with(experiment, train->float8 != FLOAT8_NONE, "train.float8", "'float8: none'",
                "'float8' and 'lora' together cannot be simulated yet");
    refuse_with(experiment, !is_packed && train->lora.double_quant, "train.lora.double_quant",
                "it goes with 'quantization: nf4'",
                "'double_quant' means nothing without quantisation");
    refuse_with(experiment, !is_packed && train->lora.holds_inputs, "train.lora.holds_inputs",
                "it goes with 'quantization: nf4'",
                "'holds_inputs' means nothing without quantisation");
    refuse_with(experiment, !is_packed && train->lora.output_copy, "train.lora.output_copy",
                "it goes with 'quantization: nf4'",
                "'output_copy' means nothing without quantisation");
    refuse_with(experiment, is_packed && train->compile && train->lora.output_copy,
                "train.lora.output_copy", "'compile: false'",
                "'output_copy' means nothing for compiled blocks, whose sum makes no copy");
    refuse_with(experiment, is_packed && train->precision.param_dtype == DTYPE_FP32,
                "train.lora.quantization", "'param_dtype: bf16' or 'fp16'",
                "'quantization: nf4' dequantises to 16 bits");
    refuse_with(experiment,
                is_packed && api == API_FSDP1 &&
                    train->precision.storage_dtype != train->precision.param_dtype &&
                    (experiment->fsdp.use_orig_params || train->compile),
                "train.precision.storage_dtype", "the same as param_dtype",
                "a flat parameter that holds packed weights cannot be cast");
}

/* "self_attn.q_proj.weight": whether `word` is its last but one part; NULL: no linear layer. */
static const char *layer_of(struct arena *arena, const struct module_kind *kind, int32_t index)
{
    static const char end[] = ".weight";
    const struct param *param = &kind->params[index];
    const size_t length = strlen(param->name);
    if (param->rest <= 1 || length < sizeof(end) || strstr(param->name, ".lora_") != NULL ||
        strcmp(param->name + length - (sizeof(end) - 1), end) != 0 ||
        strstr(param->name, "router") != NULL || strstr(param->name, "expert") != NULL)
        return NULL;
    const char *name = arena_strndup(arena, param->name, length - (sizeof(end) - 1));
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

static const struct module_kind *first_block(const struct model *model)
{
    for (int32_t i = 0; i < model->kind_count; i++)
        if (model->kinds[i].role == MODULE_BLOCK)
            return &model->kinds[i];
    return NULL;
}

static bool has_adapter(const struct model *model, const char *word)
{
    for (int32_t k = 0; k < model->kind_count; k++)
        for (int32_t p = 0; p < model->kinds[k].param_count; p++) {
            const char *at = strstr(model->kinds[k].params[p].name, ".lora_A");
            const size_t length = strlen(word);
            const char *name = model->kinds[k].params[p].name;
            if (at != NULL && (size_t)(at - name) > length && at[-(int64_t)length - 1] == '.' &&
                strncmp(at - length, word, length) == 0)
                return true;
        }
    return false;
}

/* q, k, v of a model that has them in one layer. */
static bool has_target(const struct model *model, const char *word)
{
    const bool is_part =
        strcmp(word, "q_proj") == 0 || strcmp(word, "k_proj") == 0 || strcmp(word, "v_proj") == 0;
    return has_adapter(model, word) || (is_part && has_adapter(model, "qkv_proj"));
}

static const char *known_layers(struct experiment *experiment)
{
    struct arena *arena = &experiment->arena;
    const struct module_kind *block = first_block(experiment->model);
    const char *known = "accepted: all-linear";
    for (int32_t p = 0; block != NULL && p < block->param_count; p++) {
        const char *layer = layer_of(arena, block, p);
        if (layer != NULL)
            known = arena_printf(arena, "%s, %s", known, layer);
    }
    return known;
}

enum status lora_check_targets(struct experiment *experiment)
{
    const struct lora_config *lora = &experiment->train.lora;
    const char *const *words = lora->targets.items;
    const int32_t errors_before = experiment->diag->error_count;
    const bool has_experts = experiment->model->active_parameters != experiment->model->parameters;
    for (int64_t i = 0; lora->rank > 0 && i < lora->targets.count; i++) {
        const bool is_all = strcmp(words[i], "all-linear") == 0;
        if (is_all && has_experts)
            config_error(&experiment->config, "train.lora.target_modules",
                         "layers outside the experts: q_proj, k_proj, v_proj, o_proj",
                         "adapters of experts cannot be simulated yet");
        else if (!is_all && !has_target(experiment->model, words[i]))
            config_error(&experiment->config, "train.lora.target_modules", known_layers(experiment),
                         "model '%s' has no linear layer '%s'", experiment->model->name, words[i]);
    }
    if (lora->quantization != QUANTIZE_NONE && has_experts &&
        experiment->train.experts != EXPERTS_LOOP)
        config_error(&experiment->config, "train.lora.quantization", "'experts: loop'",
                     "grouped products over packed experts cannot be simulated yet");
    return experiment->diag->error_count == errors_before ? STATUS_OK : STATUS_INPUT;
}
