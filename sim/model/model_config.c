/*
 * model/model_config.c: which table reads a model file, and the cross-checks.
 *
 * A Hugging Face config.json is chosen by `model_type` (unknown keys: one warning, since such files
 * carry more than we read); `family: decoder`, `llama` and `abstract` are our own (unknown keys:
 * errors).
 */
#include <inttypes.h>
#include <string.h>

#include "base/strbuf.h"
#include "config/config.h"
#include "model/model_fields.h"

const char *const model_cosmetic_keys[] = {
    "_attn_implementation", "_attn_implementation_autoset", "_name_or_path", "activation_dropout",
    "alibi_bias_max", "attention_bias", "apply_residual_connection_post_layernorm", "architectures",
    "attention_softmax_in_fp32", "attn_implementation", "attn_impl", "attn_logit_softcapping",
    "attn_uses_sequence_id", "auto_map", "aux_loss_alpha", "boi_token_index", "bos_token_id",
    "cache_implementation", "classifier_dropout", "clip_qkv", "cls_token_id",
    "decoder_start_token_id", "do_sample", "dtype", "embedding_fraction", "encoder_stride",
    "eos_token_id", "ep_size", "experts_per_token", "gradient_checkpointing", "hidden_act",
    "id2label", "init_device", "init_std", "initial_context_length", "initializer_factor",
    "initializer_range", "is_decoder", "is_encoder_decoder", "label2id",
    "layer_norm_elementwise_affine", "layer_norm_eps", "layer_norm_epsilon", "layerdrop", "license",
    "logit_scale", "max_length", "max_position_embeddings", "model_type", "n_ctx", "n_group",
    "n_positions", "n_special", "norm_topk_prob", "norm_type", "num_nextn_predict_layers",
    "original_max_position_embeddings", "output_attentions", "output_hidden_states", "output_past",
    "output_router_logits", "pad_token_id", "position_embedding_type", "predict_special_tokens",
    "prefix_lm", "pretraining_tp", "quantization_config", "query_pre_attn_scalar",
    "relative_attention_max_distance", "return_dict", "rms_norm_eps", "rope_local_base_freq",
    "rope_parameters", "rope_scaling", "rope_theta", "rotary_emb_base", "routed_scaling_factor",
    "router_aux_loss_coef", "scale_attention_softmax_in_fp32", "scale_attn_weights", "scoring_func",
    "sep_token_id", "seq_aux", "slow_but_exact", "softmax_scale", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "swiglu_limit", "task_specific_params", "temperature", "tokenizer_class", "top_p", "topk_group",
    "topk_method", "torch_dtype", "transformers_version", "unk_token_id", "use_cache", "verbose",
    /* our own */
    "description", "source", NULL};
static const char *const abstract_ignored_keys[] = {"description", "source", NULL};

static const struct choice abstract_choice[] = {
    {.word = "abstract", .value = FAMILY_ABSTRACT, .help = "numbers given directly"}, {0}};

static const struct field abstract_unit_fields[] = {
    {.key = "repeat",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct abstract_unit, repeat),
     .default_text = "1",
     .min = 1,
     .max = MODEL_MAX_MODULES,
     .help = "this many such units in a row"},
    {.key = "parameters",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct abstract_unit, parameters),
     .is_required = true,
     .min = 1,
     .max = 1e15,
     .help = "parameters of one unit"},
    {.key = "forward",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct abstract_unit, forward_s),
     .is_required = true,
     .min = 0.0,
     .max = 1e6,
     .help = "forward compute of one microbatch"},
    {.key = "backward",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct abstract_unit, backward_s),
     .is_required = true,
     .min = 0.0,
     .max = 1e6,
     .help = "backward compute of one microbatch, without recomputation"},
    {.key = "saved_activations",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BYTES,
     .offset = offsetof(struct abstract_unit, saved_activation_bytes),
     .default_text = "0 B",
     .min = 0.0,
     .max = 1e15,
     .help = "kept from forward to backward, per microbatch"},
    {.key = "input_activation",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BYTES,
     .offset = offsetof(struct abstract_unit, input_activation_bytes),
     .default_text = "0 B",
     .min = 0.0,
     .max = 1e15,
     .help = "all that full checkpointing keeps, per microbatch"},
    {0}};

static const struct field_table abstract_unit_table = {
    .name = "units",
    .help = "units of an abstract model, in forward order",
    .fields = abstract_unit_fields,
    .struct_bytes = sizeof(struct abstract_unit),
};

static const struct field abstract_fields[] = {
    {.key = "family",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct model_config, family),
     .is_required = true,
     .choices = abstract_choice,
     .help = "which kind of model"},
    ROW_NAME,
    {.key = "repeat",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct model_config, abstract.repeat),
     .default_text = "1",
     .min = 1,
     .max = MODEL_MAX_MODULES,
     .help = "the whole list of units, so many times"},
    {.key = "units",
     .kind = FIELD_LIST,
     .offset = offsetof(struct model_config, abstract.units),
     .is_required = true,
     .min = 1,
     .max = MODEL_MAX_MODULES,
     .table = &abstract_unit_table,
     .help = "units in forward order"},
    {.key = "flop_per_token",
     .kind = FIELD_REAL,
     .offset = offsetof(struct model_config, abstract.flop_per_token),
     .default_text = "0",
     .min = 0.0,
     .max = 1e24,
     .help = "forward and backward, for the MFU; 0: 6 times the parameters"},
    {0}};

const char *model_child_path(struct config *config, const char *path, const char *key)
{
    return path[0] == '\0' ? key : arena_printf(config->arena, "%s.%s", path, key);
}

static const struct field_table *table_of(const struct model_config *model)
{
    const struct field_table *table = model_type_table((enum model_type)model->type);
    return table != NULL ? table : &decoder_table;
}

/* The key that this model_type has for a member of struct model_config. */
static const char *key_at(const struct model_config *model, size_t offset)
{
    for (const struct field *field = table_of(model)->fields; field->kind != FIELD_END; field++)
        if (field->offset == offset && field->kind != FIELD_STRUCT)
            return field->key;
    return "model_type";
}

struct check {
    struct config *config;
    const char *path;
    const struct model_config *model;
};

#define PATH_OF(check, member) path_at((check), DECODER_AT(member))
#define KEY_OF(check, member) key_at((check)->model, DECODER_AT(member))

static const char *path_at(const struct check *check, size_t offset)
{
    return model_child_path(check->config, check->path, key_at(check->model, offset));
}

static void check_heads(const struct check *check, const struct network *net)
{
    const struct decoder_config *decoder = &check->model->decoder;
    struct config *config = check->config;
    int64_t heads = net->a;
    if (net->kv_heads > heads || heads % net->kv_heads != 0)
        config_error(config, PATH_OF(check, num_key_value_heads), NULL,
                     "%s %" PRId64 " does not divide %s %" PRId64,
                     KEY_OF(check, num_key_value_heads), net->kv_heads,
                     KEY_OF(check, num_attention_heads), heads);
    bool is_derived = decoder->head_dim == 0 && decoder->kv_lora_rank == 0;
    if (is_derived && net->h % heads != 0)
        config_error(config, PATH_OF(check, num_attention_heads),
                     "give head_dim when it is not the quotient",
                     "%s %" PRId64 " does not divide %s %" PRId64,
                     KEY_OF(check, num_attention_heads), heads, KEY_OF(check, hidden_size), net->h);
    double width = (double)heads * (double)(net->d_qk > net->d_v ? net->d_qk : net->d_v);
    if (width > MAX_WIDTH)
        config_error(config, PATH_OF(check, num_attention_heads), NULL,
                     "%s %" PRId64 " times head_dim %" PRId64 " is more than %.0f",
                     KEY_OF(check, num_attention_heads), heads, net->d_qk, MAX_WIDTH);
}

static void check_activation(const struct check *check)
{
    static const char *const known[] = {"silu",
                                        "swish",
                                        "gelu",
                                        "gelu_new",
                                        "gelu_fast",
                                        "gelu_python",
                                        "gelu_pytorch_tanh",
                                        "quick_gelu",
                                        "relu",
                                        "gated-gelu",
                                        "gated-silu",
                                        NULL};
    const char *word = check->model->decoder.hidden_act;
    if (word == NULL)
        return;
    for (int i = 0; known[i] != NULL; i++)
        if (strcmp(word, known[i]) == 0)
            return;
    config_error(check->config, PATH_OF(check, hidden_act),
                 "accepted: silu, swish, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, "
                 "quick_gelu, relu; T5: gated-gelu, gated-silu",
                 "unknown activation '%s'", word);
}

static void check_experts(const struct check *check, const struct network *net)
{
    const struct decoder_config *decoder = &check->model->decoder;
    struct config *config = check->config;
    if (net->experts == 0)
        return;
    if (net->top_k < 1 || net->top_k > net->experts)
        config_error(config, PATH_OF(check, num_experts_per_tok), NULL,
                     "%s must be 1 to %s %" PRId64 ", not %" PRId64,
                     KEY_OF(check, num_experts_per_tok), KEY_OF(check, num_experts), net->experts,
                     net->top_k);
    if (net->dense_layers > net->layers)
        config_error(config, PATH_OF(check, first_k_dense_replace), NULL,
                     "%s %" PRId64 " is more than the %" PRId64 " layers",
                     KEY_OF(check, first_k_dense_replace), net->dense_layers, net->layers);
    if (decoder->moe_layer_freq > 1)
        config_error(config, PATH_OF(check, moe_layer_freq), "1 so far",
                     "experts in every other layer cannot be simulated yet");
    if (decoder->mlp_only_layers.count > 0)
        config_error(config, PATH_OF(check, mlp_only_layers), "[] so far",
                     "single layers without experts cannot be simulated yet");
    if (net->shared_f > (int64_t)MAX_WIDTH)
        config_error(config, PATH_OF(check, n_shared_experts), NULL,
                     "shared experts of %" PRId64 " columns are more than %.0f", net->shared_f,
                     MAX_WIDTH);
}

static void check_shapes(const struct check *check, const struct network *net)
{
    const struct decoder_config *decoder = &check->model->decoder;
    if (check->model->type == TYPE_VIT && decoder->image_size % decoder->patch_size != 0)
        config_error(check->config, PATH_OF(check, patch_size), NULL,
                     "patch_size %" PRId64 " does not divide image_size %" PRId64,
                     decoder->patch_size, decoder->image_size);
    if (net->traits.norms_per_layer == 3)
        config_error(check->config, PATH_OF(check, traits.norms_per_layer), "accepted: 1, 2, 4",
                     "a layer has 1, 2 or 4 norms, not 3");
    if (net->f > (int64_t)MAX_WIDTH)
        config_error(check->config, PATH_OF(check, hidden_size), NULL,
                     "an MLP of %" PRId64 " columns is wider than %.0f", net->f, MAX_WIDTH);
}

void model_check_transformer(struct config *config, const char *path, void *bound)
{
    const struct model_config *model = bound;
    const struct check check = {config, path, model};
    int32_t errors_before = config->diag->error_count;
    struct network network;
    network_of(model, &network);
    check_heads(&check, &network);
    check_activation(&check);
    check_experts(&check, &network);
    check_shapes(&check, &network);
    if (config->diag->error_count > errors_before)
        return;
    double parameters = network_parameters_estimate(&network);
    if (parameters > MODEL_MAX_PARAMETERS)
        config_error(config, PATH_OF(&check, hidden_size), NULL,
                     "a model of %.3g parameters is too large", parameters);
}

static void check_abstract(struct config *config, const char *path, void *bound)
{
    struct model_config *model = bound;
    const char *units_path = model_child_path(config, path, "units");
    double modules = abstract_module_estimate(&model->abstract);
    if (modules > MODEL_MAX_MODULES)
        config_error(config, units_path, NULL, "%.0f units in all, at most %d can be simulated",
                     modules, (int)MODEL_MAX_MODULES);
    double parameters = abstract_parameters_estimate(&model->abstract);
    if (parameters > MODEL_MAX_PARAMETERS)
        config_error(config, units_path, NULL, "a model of %.3g parameters is too large",
                     parameters);
}

const struct field_table abstract_table = {
    .name = "model (family: abstract)",
    .help = "units with parameters, times and bytes given directly",
    .fields = abstract_fields,
    .struct_bytes = sizeof(struct model_config),
    .ignored_keys = abstract_ignored_keys,
    .check = check_abstract,
};

/* The scalar at `key`; absent and null are both NULL. */
static const struct node *scalar_at(const struct node *map, const char *key)
{
    const struct node *node = node_get(map, key);
    return node != NULL && node->kind != NODE_NULL ? node : NULL;
}

static void unknown_word(struct diag *diag, const struct node *node, const char *key,
                         const char *const *known)
{
    struct strbuf accepted = {0};
    strbuf_add(&accepted, "known: ");
    for (int i = 0; known[i] != NULL; i++)
        strbuf_printf(&accepted, "%s%s", i > 0 ? ", " : "", known[i]);
    if (node->kind != NODE_SCALAR) {
        diag_add(diag, DIAG_ERROR, node->place, accepted.text, "'%s' is not a word", key);
    } else {
        const char *nearest = nearest_name(node->text, known);
        const char *hint = accepted.text;
        if (nearest != NULL)
            hint = arena_printf(diag->arena, "did you mean '%s'? %s", nearest, accepted.text);
        diag_add(diag, DIAG_ERROR, node->place, hint, "%s '%s' is not known", key, node->text);
    }
    strbuf_release(&accepted);
}

static const struct field_table *table_of_type(const struct node *model_type, struct diag *diag)
{
    const char *words[MODEL_TYPE_COUNT + 1] = {0};
    int count = 0;
    for (int type = 0; type < MODEL_TYPE_COUNT; type++) {
        if (model_type_table((enum model_type)type) == NULL)
            continue;
        words[count] = model_type_word((enum model_type)type);
        if (model_type->kind == NODE_SCALAR && text_equal(model_type->text, words[count]))
            return model_type_table((enum model_type)type);
        count++;
    }
    unknown_word(diag, model_type, "model_type", words);
    return NULL;
}

static const struct field_table *table_of_family(const struct node *family, struct diag *diag)
{
    static const char *const words[] = {"decoder", "llama", "abstract", NULL};
    static const struct field_table *const tables[] = {&decoder_table, &family_llama_table,
                                                       &abstract_table};
    for (int i = 0; words[i] != NULL; i++)
        if (family->kind == NODE_SCALAR && text_equal(family->text, words[i]))
            return tables[i];
    unknown_word(diag, family, "family", words);
    return NULL;
}

const struct field_table *model_choose_table(const struct node *map, struct diag *diag)
{
    if (map == NULL || map->kind != NODE_MAP) {
        diag_add(diag, DIAG_ERROR, map != NULL ? map->place : NO_PLACE, NULL,
                 "a model is a map of keys");
        return NULL;
    }
    const struct node *family = scalar_at(map, "family");
    const struct node *model_type = scalar_at(map, "model_type");
    const struct node *text_config = scalar_at(map, "text_config");
    if (family != NULL)
        return table_of_family(family, diag);
    if (text_config != NULL && text_config->kind == NODE_MAP)
        return &multimodal_table;
    if (model_type != NULL)
        return table_of_type(model_type, diag);
    diag_add(diag, DIAG_ERROR, map->place,
             "expected 'family: decoder', 'family: abstract', or a Hugging Face config.json with "
             "its 'model_type'",
             "a model needs 'family' or 'model_type'");
    return NULL;
}
