/*
 * model/model_config.c: field tables of model files, and their cross-checks.
 *
 * Three tables bind one struct model_config: a Hugging Face config.json with `model_type: llama`
 * (unknown keys: one warning, since such files carry more than we read), the same network written
 * by hand with `family: llama`, and `family: abstract` (unknown keys: errors).
 */
#include <inttypes.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "config/config.h"
#include "model/model_private.h"

/* Bounds of single fields: far beyond any model, and small enough for the sums in model_private.h.
 */
#define MAX_WIDTH 4194304.0
#define MAX_HEADS 65536.0
#define MAX_LAYERS 16384.0
#define MAX_VOCAB 67108864.0

/* Keys of a config.json that do not shape the network. */
static const char *const cosmetic_keys[] = {
    "_name_or_path", "architectures", "attention_dropout", "attn_implementation",
    "_attn_implementation_autoset", "bos_token_id", "do_sample", "dtype", "eos_token_id",
    "id2label", "initializer_range", "label2id", "license", "max_length", "max_position_embeddings",
    "output_attentions", "output_hidden_states", "pad_token_id", "pretraining_tp", "return_dict",
    "rms_norm_eps", "rope_parameters", "rope_scaling", "rope_theta", "sep_token_id", "temperature",
    "tokenizer_class", "top_p", "torch_dtype", "transformers_version", "unk_token_id", "use_cache",
    /* our own */
    "description", "model_type", "source", NULL};
static const char *const abstract_ignored_keys[] = {"description", "source", NULL};

static const struct choice llama_choice[] = {
    {.word = "llama", .value = FAMILY_LLAMA, .help = "dense, RMSNorm, rotary, gated MLP"}, {0}};
static const struct choice abstract_choice[] = {
    {.word = "abstract", .value = FAMILY_ABSTRACT, .help = "numbers given directly"}, {0}};

#define NAME_FIELD                                                                                 \
    {                                                                                              \
        .key = "name", .kind = FIELD_TEXT, .offset = offsetof(struct model_config, name),          \
        .help = "name in reports; default: the file's name without extension"                      \
    }

#define LLAMA_COUNT(field, max_value, default_value, text)                                         \
    {                                                                                              \
        .key = #field, .kind = FIELD_COUNT, .offset = offsetof(struct model_config, llama.field),  \
        .min = 1, .max = (max_value), .default_text = (default_value), .help = (text)              \
    }
#define LLAMA_BOOL(field, text)                                                                    \
    {                                                                                              \
        .key = #field, .kind = FIELD_BOOL, .offset = offsetof(struct model_config, llama.field),   \
        .default_text = "false", .help = (text)                                                    \
    }

#define LLAMA_FIELDS                                                                               \
    NAME_FIELD, LLAMA_COUNT(hidden_size, MAX_WIDTH, "4096", "width of the residual stream"),       \
        LLAMA_COUNT(intermediate_size, MAX_WIDTH, "11008", "width of the gated MLP"),              \
        LLAMA_COUNT(num_hidden_layers, MAX_LAYERS, "32", "transformer blocks"),                    \
        LLAMA_COUNT(num_attention_heads, MAX_HEADS, "32", "query heads"),                          \
        LLAMA_COUNT(num_key_value_heads, MAX_HEADS, NULL,                                          \
                    "key and value heads; default: num_attention_heads"),                          \
        LLAMA_COUNT(head_dim, MAX_HEADS, NULL,                                                     \
                    "width of a head; default: hidden_size / num_attention_heads"),                \
        LLAMA_COUNT(vocab_size, MAX_VOCAB, "32000", "rows of the embedding"),                      \
        LLAMA_BOOL(tie_word_embeddings, "the output layer shares the embedding's weight"),         \
        LLAMA_BOOL(attention_bias, "q, k, v, o projections have a bias"),                          \
        LLAMA_BOOL(mlp_bias, "gate, up, down projections have a bias"),                            \
    {                                                                                              \
        .key = "hidden_act", .kind = FIELD_TEXT,                                                   \
        .offset = offsetof(struct model_config, llama.hidden_act), .default_text = "silu",         \
        .help = "activation of the gate: silu (swish), gelu, …"                                  \
    }

static const struct field llama_hf_fields[] = {
    {.key = "model_type",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct model_config, family),
     .is_required = true,
     .choices = llama_choice,
     .help = "which network a Hugging Face config.json describes"},
    LLAMA_FIELDS,
    {0}};

static const struct field llama_fields[] = {{.key = "family",
                                             .kind = FIELD_ENUM,
                                             .offset = offsetof(struct model_config, family),
                                             .is_required = true,
                                             .choices = llama_choice,
                                             .help = "which kind of model"},
                                            LLAMA_FIELDS,
                                            {0}};

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
    NAME_FIELD,
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

/* "model" + "hidden_size" → "model.hidden_size"; the root's path is empty. */
static const char *child_path(struct config *config, const char *path, const char *key)
{
    return path[0] == '\0' ? key : arena_printf(config->arena, "%s.%s", path, key);
}

static void check_heads(struct config *config, const char *path, const struct llama_config *llama)
{
    int64_t heads = llama->num_attention_heads, kv_heads = llama->num_key_value_heads;
    if (heads < 1)
        return; /* said already */
    if (kv_heads > 0 && heads % kv_heads != 0)
        config_error(config, child_path(config, path, "num_key_value_heads"), NULL,
                     "num_key_value_heads %" PRId64 " does not divide num_attention_heads %" PRId64,
                     kv_heads, heads);
    if (llama->head_dim == 0 && llama->hidden_size % heads != 0)
        config_error(config, child_path(config, path, "num_attention_heads"),
                     "give head_dim if it is not hidden_size / num_attention_heads",
                     "num_attention_heads %" PRId64 " does not divide hidden_size %" PRId64, heads,
                     llama->hidden_size);
    if (llama->head_dim > 0 && (double)llama->head_dim * (double)heads > MAX_WIDTH)
        config_error(config, child_path(config, path, "head_dim"), NULL,
                     "num_attention_heads %" PRId64 " times head_dim %" PRId64 " is more than %.0f",
                     heads, llama->head_dim, MAX_WIDTH);
}

static void check_hidden_act(struct config *config, const char *path, const char *hidden_act)
{
    static const char *const known[] = {
        "silu", "swish", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", NULL};
    if (hidden_act == NULL)
        return;
    for (int i = 0; known[i] != NULL; i++)
        if (strcmp(hidden_act, known[i]) == 0)
            return;
    const char *accepted = "accepted: silu, swish, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh";
    config_error(config, child_path(config, path, "hidden_act"), accepted,
                 "unknown activation '%s'", hidden_act);
}

static void check_llama(struct config *config, const char *path, void *bound)
{
    struct model_config *model = bound;
    check_heads(config, path, &model->llama);
    check_hidden_act(config, path, model->llama.hidden_act);
    struct llama_dims dims = llama_dims_of(&model->llama);
    double parameters = llama_parameters_estimate(&dims);
    if (parameters > MODEL_MAX_PARAMETERS)
        config_error(config, child_path(config, path, "hidden_size"), NULL,
                     "a model of %.3g parameters is too large", parameters);
}

static void check_abstract(struct config *config, const char *path, void *bound)
{
    struct model_config *model = bound;
    const char *units_path = child_path(config, path, "units");
    double modules = abstract_module_estimate(&model->abstract);
    if (modules > MODEL_MAX_MODULES)
        config_error(config, units_path, NULL, "%.0f units in all, at most %d can be simulated",
                     modules, (int)MODEL_MAX_MODULES);
    double parameters = abstract_parameters_estimate(&model->abstract);
    if (parameters > MODEL_MAX_PARAMETERS)
        config_error(config, units_path, NULL, "a model of %.3g parameters is too large",
                     parameters);
}

static const struct field_table llama_hf_table = {
    .name = "model (model_type: llama)",
    .help = "Hugging Face config.json of a Llama-like network, read as it is",
    .fields = llama_hf_fields,
    .struct_bytes = sizeof(struct model_config),
    .ignored_keys = cosmetic_keys,
    .warns_unknown = true,
    .check = check_llama,
};
static const struct field_table llama_table = {
    .name = "model (family: llama)",
    .help = "Llama-like network, Hugging Face field names and defaults",
    .fields = llama_fields,
    .struct_bytes = sizeof(struct model_config),
    .ignored_keys = cosmetic_keys,
    .check = check_llama,
};
static const struct field_table abstract_table = {
    .name = "model (family: abstract)",
    .help = "units with parameters, times and bytes given directly",
    .fields = abstract_fields,
    .struct_bytes = sizeof(struct model_config),
    .ignored_keys = abstract_ignored_keys,
    .check = check_abstract,
};

const struct field_table *const model_tables[] = {&llama_hf_table, &llama_table, &abstract_table,
                                                  NULL};

/* The scalar at `key`; absent and null are both NULL. */
static const struct node *scalar_at(const struct node *map, const char *key)
{
    const struct node *node = node_get(map, key);
    return node != NULL && node->kind != NODE_NULL ? node : NULL;
}

static void unknown_word(struct diag *diag, const struct node *node, const char *key,
                         const char *const *known, const char *accepted)
{
    if (node->kind != NODE_SCALAR) {
        diag_add(diag, DIAG_ERROR, node->place, accepted, "'%s' is not a word", key);
        return;
    }
    const char *nearest = nearest_name(node->text, known);
    const char *hint = accepted;
    if (nearest != NULL)
        hint = arena_printf(diag->arena, "did you mean '%s'? %s", nearest, accepted);
    diag_add(diag, DIAG_ERROR, node->place, hint, "%s '%s' is not known", key, node->text);
}

const struct field_table *model_choose_table(const struct node *map, struct diag *diag)
{
    static const char *const families[] = {"llama", "abstract", NULL};
    static const char *const model_types[] = {"llama", NULL};
    if (map == NULL || map->kind != NODE_MAP) {
        diag_add(diag, DIAG_ERROR, map != NULL ? map->place : NO_PLACE, NULL,
                 "a model is a map of keys");
        return NULL;
    }
    const struct node *family = scalar_at(map, "family");
    const struct node *model_type = scalar_at(map, "model_type");
    if (family != NULL) {
        if (family->kind == NODE_SCALAR && text_equal(family->text, "llama"))
            return &llama_table;
        if (family->kind == NODE_SCALAR && text_equal(family->text, "abstract"))
            return &abstract_table;
        unknown_word(diag, family, "family", families, "accepted: llama, abstract");
        return NULL;
    }
    if (model_type != NULL) {
        if (model_type->kind == NODE_SCALAR && text_equal(model_type->text, "llama"))
            return &llama_hf_table;
        unknown_word(diag, model_type, "model_type", model_types,
                     "accepted: llama (other families are not built yet)");
        return NULL;
    }
    diag_add(diag, DIAG_ERROR, map->place,
             "expected 'family: llama', 'family: abstract', or a Hugging Face config.json with "
             "'model_type: llama'",
             "a model needs 'family' or 'model_type'");
    return NULL;
}
